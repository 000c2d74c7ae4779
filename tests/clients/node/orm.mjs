// TypeORM: entities of all kinds of columns, relations, synchronize twice without a difference, migrations there and back, transactions, the query builder.
import 'reflect-metadata';
import { DataSource, EntitySchema, In, Table, TableColumn, TableIndex } from 'typeorm';
import { equal, tell } from './tally.mjs';

const port = Number(process.argv.at(-1));
async function fails(action) {
  try {
    await action();
  } catch (error) {
    return error.driverError?.errno ?? error.name;
  }
  return null;
}

const Person = new EntitySchema({
  name: 'Person',
  tableName: 'person',
  columns: {
    id: { type: 'int', unsigned: true, primary: true, generated: true },
    name: { type: 'varchar', length: 60, comment: "who it's" },
    mail: { type: 'varchar', length: 100, nullable: true, unique: true },
    born: { type: 'date', nullable: true },
    height: { type: 'decimal', precision: 5, scale: 2, default: 1.5 },
    kind: { type: 'enum', enum: ['reader', 'writer'], default: 'reader' },
    tags: { type: 'simple-array', nullable: true },
    more: { type: 'json', nullable: true },
    active: { type: 'boolean', default: true },
    photo: { type: 'blob', nullable: true },
    key: { type: 'char', length: 36, generated: 'uuid' },
    created: { type: 'datetime', precision: 6, createDate: true },
    updated: { type: 'timestamp', precision: 6, updateDate: true },
    version: { type: 'int', version: true },
    gone: { type: 'datetime', precision: 6, deleteDate: true, nullable: true },
  },
  indices: [{ name: 'by_name_and_kind', columns: ['name', 'kind'] }],
  relations: { books: { type: 'one-to-many', target: 'Book', inverseSide: 'author' } },
});
const Book = new EntitySchema({
  name: 'Book',
  tableName: 'book',
  columns: {
    id: { type: 'bigint', primary: true, generated: true },
    title: { type: 'varchar', length: 200, collation: 'utf8mb4_bin' },
    pages: { type: 'smallint', unsigned: true, nullable: true },
    text: { type: 'longtext', nullable: true },
    price: { type: 'double', nullable: true },
    total: { type: 'int', nullable: true, generatedType: 'STORED', asExpression: '`pages` * 2' },
  },
  relations: {
    author: { type: 'many-to-one', target: 'Person', inverseSide: 'books', onDelete: 'CASCADE', joinColumn: { name: 'author_id' }, nullable: false },
    topics: { type: 'many-to-many', target: 'Topic', joinTable: { name: 'book_topics' } },
  },
});
const Topic = new EntitySchema({
  name: 'Topic',
  tableName: 'topic',
  columns: { id: { type: 'int', primary: true, generated: true }, word: { type: 'varchar', length: 30 } },
  relations: {
    parent: { type: 'many-to-one', target: 'Topic', nullable: true, onDelete: 'SET NULL', inverseSide: 'children' },
    children: { type: 'one-to-many', target: 'Topic', inverseSide: 'parent' },
  },
});

class First1700000000001 {
  async up(runner) {
    await runner.createTable(new Table({
      name: 'made',
      columns: [{ name: 'id', type: 'int', isPrimary: true, isGenerated: true, generationStrategy: 'increment' }, { name: 'a', type: 'varchar', length: '20', isNullable: true }],
    }), true);
    await runner.createIndex('made', new TableIndex({ name: 'of_a', columnNames: ['a'] }));
  }
  async down(runner) {
    await runner.dropTable('made');
  }
}
class Second1700000000002 {
  async up(runner) {
    await runner.addColumn('made', new TableColumn({ name: 'b', type: 'int', default: 7 }));
    await runner.changeColumn('made', 'a', new TableColumn({ name: 'letters', type: 'varchar', length: '50', isNullable: true }));
    await runner.query("INSERT INTO made (letters) VALUES ('x')");
  }
  async down(runner) {
    await runner.dropColumn('made', 'b');
    await runner.renameColumn('made', 'letters', 'a');
  }
}

const options = {
  type: 'mysql', host: '127.0.0.1', port, username: 'root', database: 'orm', charset: 'utf8mb4', timezone: 'Z', entities: [Person, Book, Topic],
  migrations: [First1700000000001, Second1700000000002], migrationsTransactionMode: 'each',
};
const first = await new DataSource({ ...options, database: undefined, entities: [], migrations: [] }).initialize();
await first.query('CREATE DATABASE orm');
await first.destroy();
const db = await new DataSource(options).initialize();
await db.synchronize();
const again = await db.driver.createSchemaBuilder().log();
equal('a second synchronize has nothing to do', again.upQueries.map((query) => query.query), []);

const people = db.getRepository('Person');
const books = db.getRepository('Book');
const topics = db.getRepository('Topic');
const ann = await people.save({
  name: 'Ann \u{1f40b}', mail: 'ann@example.org', born: '1999-12-31', height: 1.75, kind: 'writer', tags: ['a', 'b'], more: { deep: [1, 'x'] }, photo: Buffer.from([0, 255]), active: false,
});
equal('made', [ann.id, ann.version, ann.key.length], [1, 1, 36]);
const found = await people.findOneByOrFail({ id: 1 });
equal('read back', [found.name, found.born, found.height, found.kind, found.tags, found.more, found.photo.length, found.active, found.created instanceof Date],
  ['Ann \u{1f40b}', '1999-12-31', '1.75', 'writer', ['a', 'b'], { deep: [1, 'x'] }, 2, false, true]);
found.name = 'Anna';
await people.save(found);
equal('versions', (await people.findOneByOrFail({ id: 1 })).version, 2);
equal('unique', await fails(() => people.insert({ name: 'b', mail: 'ann@example.org' })), 1062);
const [root, leaf] = await topics.save([{ word: 'all' }, { word: 'some' }]);
leaf.parent = root;
await topics.save(leaf);
await books.save([{ title: 'One', pages: 100, price: 0.1, author: ann, topics: [root, leaf] }, { title: 'one', pages: 50, author: ann, topics: [leaf] }, { title: 'Three', author: ann }]);
equal('computed', (await books.find({ order: { id: 'ASC' } })).map((book) => book.total), [200, 100, null]);
equal('relations', (await people.findOne({ where: { id: 1 }, relations: { books: { topics: true } }, order: { books: { id: 'ASC', topics: { id: 'ASC' } } } })).books.map((book) => book.topics.map((topic) => topic.word)),
  [['all', 'some'], ['some'], []]);
equal('tree', (await topics.findOne({ where: { word: 'all' }, relations: { children: true } })).children.map((topic) => topic.word), ['some']);
equal('binary collation', await books.countBy({ title: 'one' }), 1);
equal('pages of a result', (await books.findAndCount({ order: { id: 'ASC' }, skip: 1, take: 1, relations: { topics: true } })).map((part) => (part.length ? part[0].title : part)), ['one', 3]);
equal('IN', await books.countBy({ title: In(['One', 'Three']) }), 2);
const grouped = await books.createQueryBuilder('b').leftJoin('b.topics', 't').select('b.title', 'title').addSelect('COUNT(t.id)', 'n').groupBy('b.id').having('COUNT(t.id) > :n', { n: 0 }).orderBy('n', 'DESC').getRawMany();
equal('grouped', grouped, [{ title: 'One', n: '2' }, { title: 'one', n: '1' }]);
const inner = books.createQueryBuilder('x').select('MAX(x.pages)');
equal('subquery', (await books.createQueryBuilder('b').where(`b.pages = (${inner.getQuery()})`).getMany()).map((book) => book.title), ['One']);
equal('update', (await books.createQueryBuilder().update().set({ pages: () => 'pages + 1' }).where('pages IS NOT NULL').execute()).affected, 2);
equal('upsert', [(await people.upsert({ name: 'Bob', mail: 'ann@example.org' }, ['mail'])).raw.affectedRows, (await people.findOneByOrFail({ id: 1 })).name], [2, 'Bob']);
equal('rolled back', await fails(() => db.transaction(async (manager) => {
  await manager.insert('Topic', { word: 'never' });
  throw new Error('no');
})), 'Error');
await db.transaction('SERIALIZABLE', async (manager) => {
  await manager.insert('Topic', { word: 'ever' });
  equal('locked', (await manager.createQueryBuilder('Topic', 't').setLock('pessimistic_write').where('t.word = :word', { word: 'ever' }).getMany()).length, 1);
  await manager.transaction(async (nested) => nested.insert('Topic', { word: 'nested' }));
});
equal('committed', (await topics.find({ order: { id: 'ASC' } })).map((topic) => topic.word), ['all', 'some', 'ever', 'nested']);
await people.softDelete(1);
equal('softly deleted', [await people.count(), await people.count({ withDeleted: true })], [0, 1]);
await people.delete(1);
equal('cascade', [await books.count(), await db.query('SELECT COUNT(*) AS n FROM book_topics')], [0, [{ n: '0' }]].map((part) => part));
const stream = await topics.createQueryBuilder('t').orderBy('t.id').stream();
const words = [];
for await (const row of stream) {
  words.push(row.t_word);
}
equal('stream', words, ['all', 'some', 'ever', 'nested']);

equal('migrations', (await db.runMigrations()).map((migration) => migration.name), ['First1700000000001', 'Second1700000000002']);
equal('none left', await db.showMigrations(), false);
equal('what they made', await db.query('SELECT * FROM made'), [{ id: 1, b: 7, letters: 'x' }]);
await db.undoLastMigration();
equal('undone', await db.query('SELECT * FROM made'), [{ id: 1, a: 'x' }]);
await db.undoLastMigration();
equal('all undone', (await db.query("SHOW TABLES LIKE 'made'")).length, 0);
const last = await db.driver.createSchemaBuilder().log();
equal('still nothing to do', last.upQueries.map((query) => query.query), []);
await db.dropDatabase();
await db.destroy();
tell();
