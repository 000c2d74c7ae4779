// mysql2: text and prepared statements, types, errors, transactions, many statements at once.
import mysql from 'mysql2/promise';
import { equal, tell } from './tally.mjs';

const port = Number(process.argv.at(-1));
async function code(action) {
  try {
    await action();
  } catch (error) {
    return [error.errno, error.sqlState];
  }
  return null;
}

const client = await mysql.createConnection({ host: '127.0.0.1', port, user: 'root', multipleStatements: true, dateStrings: true });
equal('select', (await client.query('SELECT 1 AS one'))[0], [{ one: 1 }]);
equal('ping', await client.ping(), true);
await client.query('CREATE DATABASE shop');
await client.changeUser({ user: 'root', database: 'shop' });
await client.query('CREATE TABLE t (id BIGINT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50), price DECIMAL(10,2), at DATETIME(3), blob_ BLOB, n DOUBLE)');
const [made] = await client.execute('INSERT INTO t (name, price, at, blob_, n) VALUES (?, ?, ?, ?, ?)', ['wal \u{1f40b}', '12.50', '2026-11-21 08:05:04.123', Buffer.from([0, 255]), 0.1]);
equal('insert', [made.affectedRows, made.insertId], [1, 1]);
const row = { id: 1, name: 'wal \u{1f40b}', price: '12.50', at: '2026-11-21 08:05:04.123', blob_: { type: 'Buffer', data: [0, 255] }, n: 0.1 };
equal('text row', (await client.query('SELECT * FROM t'))[0], [row]);
equal('binary row', (await client.execute('SELECT * FROM t WHERE id = ?', [1]))[0], [row]);
equal('null', (await client.execute('SELECT ? AS a', [null]))[0], [{ a: null }]);
equal('duplicate', await code(() => client.query("INSERT INTO t (id) VALUES (1)")), [1062, '23000']);
equal('syntax', await code(() => client.query('SELEC 1')), [1064, '42000']);
await client.beginTransaction();
await client.execute('UPDATE t SET name = ? WHERE id = ?', ['changed', 1]);
await client.rollback();
equal('rolled back', (await client.query('SELECT name FROM t'))[0], [{ name: row.name }]);
equal('several', (await client.query('SELECT 1 AS a; SELECT 2 AS b'))[0], [[{ a: 1 }], [{ b: 2 }]]);
const squeezed = await mysql.createConnection({ host: '127.0.0.1', port, user: 'root', database: 'shop', compress: true });
equal('compressed', (await squeezed.query("SELECT REPEAT('x', 1000000) AS x"))[0][0].x.length, 1000000);
equal('compressed both ways', (await squeezed.execute('SELECT ? AS x', ['y'.repeat(300000)]))[0][0].x.length, 300000);
equal('compressed error', await code(() => squeezed.query('SELEC 1')), [1064, '42000']);
await squeezed.end();
await client.end();
tell();
