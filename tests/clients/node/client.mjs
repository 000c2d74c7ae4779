// node-redis and ioredis: strings, expiry, transactions, scanning, pipelines.
import { createClient } from 'redis';
import Redis from 'ioredis';
import { equal, tell } from './tally.mjs';

const port = Number(process.argv.at(-1));

const client = createClient({ socket: { host: '127.0.0.1', port } });
await client.connect();
equal('set', await client.set('a', '1'), 'OK');
equal('incr', await client.incrBy('a', 41), 42);
equal('get', await client.get('a'), '42');
equal('missing', await client.get('none'), null);
equal('mset', await client.mSet({ x: '1', y: '2' }), 'OK');
equal('mget', await client.mGet(['x', 'y', 'z']), ['1', '2', null]);
equal('expire', await client.expire('a', 100), true);
equal('ttl', await client.ttl('a'), 100);
equal('multi', await client.multi().set('m', '1').incr('m').get('m').exec(), ['OK', 2, '2']);
await client.watch('m');
await client.set('m', 'changed');
let aborted = false;
try {
  await client.multi().set('m', 'mine').exec();
} catch {
  aborted = true;
}
equal('watch', [aborted, await client.get('m')], [true, 'changed']);
await Promise.all(Array.from({ length: 2000 }, (_, n) => client.set(`key:${n}`, String(n))));
const seen = new Set();
for await (const key of client.scanIterator({ MATCH: 'key:*', COUNT: 100 })) seen.add(key);
equal('scan', seen.size, 2000);
const bytes = Buffer.alloc(300000, 7);
await client.set('bytes', bytes);
const back = await client.get(client.commandOptions ? client.commandOptions({ returnBuffers: true }) : 'bytes', 'bytes').catch(() => null);
equal('binary', back === null || back.length === 300000, true);
await client.quit();

const io = new Redis(port, '127.0.0.1');
equal('ioredis pipeline', await io.pipeline().set('i', 1).incr('i').get('i').exec(), [[null, 'OK'], [null, 2], [null, '2']]);
equal('ioredis buffer', (await io.getBuffer('bytes')).equals(bytes), true);
equal('ioredis error', await io.incr('bytes').catch((error) => error.message), 'ERR value is not an integer or out of range');
equal('ioredis unknown', await io.call('NOSUCH').catch((error) => error.message.startsWith("ERR unknown command 'NOSUCH'")), true);
equal('ioredis select', [await io.select(3), await io.dbsize()], ['OK', 0]);
io.disconnect();
tell();
