// node-postgres: both protocols, values of every type as text and in binary, errors, transactions, cursors, COPY, cancelled statements, logins.
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import Cursor from 'pg-cursor';
import { equal, tell } from './tally.mjs';

const port = Number(process.argv.at(-1));
const DATABASE = 'node_suite';
// Dates and times as the server's text, so that no zone of this machine is in between.
const text = { getTypeParser: (oid, format) => (format === 'text' && [1082, 1083, 1114, 1184, 1186, 1266].includes(oid) ? (value) => value : pg.types.getTypeParser(oid, format)) };

async function connect(more = {}) {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: DATABASE, types: text, ...more });
  await client.connect();
  return client;
}

async function fault(action) {
  try {
    await action();
  } catch (error) {
    return error;
  }
  return {};
}

const pick = (...values) => values[randomInt(values.length)];
const digits = (count) => Array.from({ length: count }, () => randomInt(10)).join('');
const letters = () => Array.from({ length: randomInt(40) }, () => pick('a', 'Z', "'", '"', '\\', '\n', '\t', 'ä', '\u{1f40b}', ' ', '%', '$1')).join('');
const two = (value) => String(value).padStart(2, '0');
const date = () => `${1000 + randomInt(8999)}-${two(1 + randomInt(12))}-${two(1 + randomInt(28))}`;
// Trailing zeros of a fraction are not shown.
const time = () => `${two(randomInt(24))}:${two(randomInt(60))}:${two(randomInt(60))}.${digits(5)}${1 + randomInt(9)}`;
const whole = (bits) => {
  const one = BigInt.asIntN(bits, BigInt(`0x${randomBytes(bits / 8).toString('hex')}`));
  return pick(one, one, one >> BigInt(bits / 2), 0n, -(1n << BigInt(bits - 1)), (1n << BigInt(bits - 1)) - 1n);
};
const float = () => {
  const one = randomBytes(8).readDoubleBE();
  return Number.isFinite(one) ? one : 0.1;
};
// Name of the type -> [a random value as a parameter, what comes back].
const same = (make) => () => {
  const value = make();
  return [value, value];
};
const KINDS = {
  bool: same(() => pick(true, false)),
  int2: same(() => Number(whole(16))),
  int4: same(() => Number(whole(32))),
  int8: same(() => String(whole(64))),
  float8: same(float),
  float4: same(() => (randomInt(200_000) - 100_000) / 4),
  numeric: same(() => pick(`${pick('', '-')}${1 + randomInt(9)}${digits(randomInt(40))}.${digits(randomInt(30) + 1)}`, String(whole(64)), `0.${digits(20)}`)),
  text: same(letters),
  varchar: same(letters),
  bytea: same(() => randomBytes(randomInt(60))),
  date: same(date),
  time: same(time),
  timestamp: same(() => `${date()} ${time()}`),
  timestamptz: same(() => `${date()} ${time()}+00`),
  interval: same(() => `${2 + randomInt(900)} days ${two(randomInt(99))}:${two(randomInt(60))}:${two(1 + randomInt(59))}`),
  uuid: same(randomUUID),
  json: same(() => ({ a: letters(), b: [randomInt(100), null, true] })),
};
const ROUNDS = 1000;

async function values(client) {
  await client.query("set timezone to 'UTC'");
  for (const [kind, make] of Object.entries(KINDS)) {
    await client.query(`create table kind_${kind} (id int4 primary key, v ${kind})`);
    const rows = Array.from({ length: ROUNDS }, (_, id) => (id % 10 === 9 ? [null, null] : make()));
    await client.query('begin');
    for (const [id, [value]] of rows.entries()) await client.query({ name: `insert ${kind}`, text: `insert into kind_${kind} values ($1, $2)`, values: [id, value] });
    await client.query('commit');
    const back = await client.query(`select v from kind_${kind} order by id`);
    const wrong = rows.findIndex(([, expected], id) => JSON.stringify(back.rows[id].v) !== JSON.stringify(expected));
    equal(`${kind} there and back`, wrong < 0 ? null : [back.rows[wrong].v, rows[wrong][1]], null);
    // A parameter whose type follows from its cast.
    const [value, expected] = make();
    equal(`${kind} as a parameter`, (await client.query(`select $1::${kind} as v`, [value])).rows, [{ v: expected }]);
    const found = (await client.query(`select count(*) as n from kind_${kind} where v is null`)).rows[0].n;
    equal(`${kind}: NULLs`, found, '100');
  }
  // What the client reads in binary.
  for (const kind of ['bool', 'int2', 'int4', 'float4', 'float8', 'text', 'numeric']) {
    const ask = (binary) => client.query({ text: `select id, v from kind_${kind} order by id`, binary, types: pg.types });
    const [one, other] = [await ask(false), await ask(true)];
    const number = (value) => (kind === 'numeric' && value !== null ? Number(value).toPrecision(12) : value);
    const differs = one.rows.findIndex((row, at) => number(row.v) !== number(other.rows[at].v));
    equal(`${kind} in binary`, differs < 0 ? null : [one.rows[differs], other.rows[differs]], null);
  }
}

async function statements(client) {
  equal('fields', (await client.query('select 1 as a, now() as b, null as c')).fields.map((field) => [field.name, field.dataTypeID, field.format]), [['a', 23, 'text'], ['b', 1184, 'text'], ['c', 25, 'text']]);
  equal('rows as arrays', (await client.query({ text: 'select 1 as a, 2 as a', rowMode: 'array' })).rows, [[1, 2]]);
  equal('several', (await client.query('select 1 as a; select 2 as b; create table several (a int4)')).map((result) => result.command), ['SELECT', 'SELECT', 'CREATE']);
  equal('nothing', [(await client.query('')).rows, (await client.query('-- nothing')).rowCount], [[], null]);
  await client.query('create table item (id int4 generated always as identity primary key, name text not null, price numeric(10,2) check (price > 0), unique (name))');
  const made = await client.query("insert into item (name, price) values ($1, $2), ('b', 2) returning id, name, price", ['a', '1.5']);
  equal('returning', [made.rows, made.rowCount, made.command], [[{ id: 1, name: 'a', price: '1.50' }, { id: 2, name: 'b', price: '2.00' }], 2, 'INSERT']);
  const errors = {
    unique: ["insert into item (name, price) values ('a', 1)", { code: '23505', schema: 'public', table: 'item', constraint: 'item_name_key', detail: 'Key (name)=(a) already exists.' }],
    check: ["insert into item (name, price) values ('c', -1)", { code: '23514', table: 'item', constraint: 'item_price_check' }],
    'not null': ['insert into item (price) values (1)', { code: '23502', table: 'item', column: 'name' }],
    syntax: ['select 1 frm item', { code: '42601', position: '14', severity: 'ERROR' }],
    column: ['select nme from item', { code: '42703', position: '8', hint: 'Perhaps you meant to reference the column "item.name".' }],
    number: ['select 1 / (price - price) from item', { code: '22012', message: 'division by zero' }],
  };
  for (const [name, [statement, expected]] of Object.entries(errors)) {
    const found = await fault(() => client.query(statement));
    equal(`error: ${name}`, Object.fromEntries(Object.keys(expected).map((key) => [key, found[key]])), expected);
    const extended = await fault(() => client.query(`${statement} -- $1`, []));
    equal(`error of the extended protocol: ${name}`, extended.code, expected.code);
  }
  await client.query('begin');
  await client.query("update item set name = 'x' where id = $1", [1]);
  await client.query('savepoint s');
  equal('in a block', (await fault(() => client.query("insert into item (name, price) values ('x', 1)"))).code, '23505');
  equal('aborted', (await fault(() => client.query('select 1'))).code, '25P02');
  await client.query('rollback to s');
  await client.query('rollback');
  equal('rolled back', (await client.query('select name from item order by id')).rows.map((row) => row.name), ['a', 'b']);
  const long = 'ü'.repeat(3_000_000);
  equal('a long value', (await client.query({ name: 'long', text: 'select length($1) as n, $1 as v', values: [long] })).rows[0], { n: 3_000_000, v: long });
  const notices = [];
  client.on('notice', (notice) => notices.push([notice.severity, notice.code, notice.message]));
  await client.query('drop table if exists nothing_at_all');
  equal('a notice', notices, [['NOTICE', '00000', 'table "nothing_at_all" does not exist, skipping']]);
}

// A prepared statement outlives changes of its table until its columns change.
async function changed(client) {
  await client.query('create table changing (a int4)');
  await client.query('insert into changing values (1)');
  const ask = () => client.query({ name: 'star', text: 'select * from changing', values: [] });
  equal('before', (await ask()).rows, [{ a: 1 }]);
  await client.query('create index on changing (a)');
  equal('after an index', (await ask()).rows, [{ a: 1 }]);
  await client.query('alter table changing add b text');
  const found = await fault(ask);
  equal('after a column', [found.code, found.message], ['0A000', 'cached plan must not change result type']);
  await client.query('alter table changing drop b');
  equal('as before', (await ask()).rows, [{ a: 1 }]);
  await client.query('drop table changing');
  equal('gone', (await fault(ask)).code, '42P01');
}

async function cursors(client) {
  await client.query('create table many as select i, i % 7 as k from generate_series(1, 5000) i');
  const cursor = client.query(new Cursor('select i from many where k < $1 order by i', [5]));
  let count = 0;
  for (let rows = await cursor.read(300); rows.length > 0; rows = await cursor.read(300)) {
    count += rows.length;
  }
  equal('rows by a portal', count, 3572);
  const other = client.query(new Cursor('select i from many order by i'));
  equal('the first rows', (await other.read(3)).map((row) => row.i), [1, 2, 3]);
  await other.close();
  equal('after a closed portal', (await client.query('select count(*) as n from many')).rows, [{ n: '5000' }]);
}

async function copies(client) {
  await client.query('create table line (id int4 primary key, v text)');
  const lines = Array.from({ length: 20_000 }, (_, id) => `${id}\t${id % 9 === 0 ? '\\N' : `value ${id} \\\\ \\t`}\n`);
  await pipeline(Readable.from(lines), client.query(copyFrom('copy line from stdin')));
  equal('copied', (await client.query('select count(*) as n, count(v) as v from line')).rows, [{ n: '20000', v: '17777' }]);
  const pieces = [];
  const out = client.query(copyTo('copy (select * from line order by id) to stdout'));
  for await (const piece of out) pieces.push(piece);
  equal('copied out', Buffer.concat(pieces).toString() === lines.join(''), true);
  equal('a broken line', (await fault(() => pipeline(Readable.from(['x\ty\n']), client.query(copyFrom('copy line from stdin'))))).code, '22P02');
  equal('the session goes on', (await client.query('select 1 as a')).rows, [{ a: 1 }]);
}

async function cancelled(client) {
  const { processID, secretKey } = client;
  const sleeps = fault(() => client.query('select pg_sleep(300)'));
  // A request may come before the statement: it is sent until the statement has ended.
  let over = false;
  sleeps.then(() => (over = true));
  while (!over) {
    const request = new pg.Connection();
    request.connect(port, '127.0.0.1');
    request.on('connect', () => request.cancel(processID, secretKey));
    request.on('error', () => {});
    await Promise.race([sleeps, new Promise((resolve) => setTimeout(resolve, 100))]);
  }
  equal('cancelled', (await sleeps).code, '57014');
  equal('and on', (await client.query('select 1 as a')).rows, [{ a: 1 }]);
  await client.query("set statement_timeout to '50ms'");
  equal('statement_timeout', (await fault(() => client.query('select pg_sleep(300)'))).code, '57014');
  await client.query('reset statement_timeout');
}

async function crowd() {
  const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'postgres', database: DATABASE, max: 16 });
  await pool.query('create table counter (id int4 primary key, n int8 not null)');
  await pool.query('insert into counter values (0, 0), (1, 0)');
  await Promise.all(Array.from({ length: 400 }, (_, at) => pool.query({ name: 'count', text: 'update counter set n = n + 1 where id = $1', values: [at % 2] })));
  equal('a pool', (await pool.query('select sum(n)::int4 as n from counter')).rows, [{ n: 400 }]);
  await pool.end();
}

async function logins() {
  if (!process.env.CERTIFICATE) return;
  const ca = readFileSync(process.env.CERTIFICATE);
  const driver = { user: 'driver', password: "driver's" };
  const ways = {
    SCRAM: driver,
    TLS: { ssl: { ca } },
    'SCRAM and TLS': { ...driver, ssl: { ca } },
    'channel binding': { ...driver, ssl: { ca }, enableChannelBinding: true },
  };
  for (const [name, options] of Object.entries(ways)) {
    const client = await connect(options);
    equal(name, (await client.query('select current_user as u')).rows, [{ u: options.user ?? 'postgres' }]);
    await client.end();
  }
  equal('a wrong password', (await fault(() => connect({ ...driver, password: 'driver' }))).code, '28P01');
  equal('no such database', (await fault(() => connect({ database: 'nowhere' }))).code, '3D000');
}

const admin = await connect({ database: 'postgres' });
await admin.query(`drop database if exists ${DATABASE}`);
await admin.query(`create database ${DATABASE}`);
await admin.end();
const client = await connect();
for (const part of [values, statements, changed, cursors, copies, cancelled, crowd, logins]) {
  const found = await fault(() => part(client));
  equal(`${part.name}: no error`, found.message ?? null, null);
}
await client.end();
tell();
