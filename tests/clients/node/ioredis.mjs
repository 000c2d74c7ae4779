// ioredis beyond node-redis' ground: pipelines that it makes by itself, scripts by name, scans as streams, messages, blocking commands, transactions, streams
// and groups, connections that are killed. With `cluster` as its argument its cluster client runs, against a server that is the one node of a cluster; without, that
// client is told that there is none.
import Redis from 'ioredis';
import { equal, tell } from './tally.mjs';

const port = Number(process.argv.at(-1));
const message = (error) => error.message;

// Waits for a state.
async function until(name, condition) {
  for (let tries = 0; tries < 1000; tries += 1) {
    const value = await condition();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  equal(name, 'it has not come in time', 'it has');
  return null;
}

async function cluster() {
  const nodes = new Redis.Cluster([{ host: '127.0.0.1', port }], { scaleReads: 'all' });
  const keys = Array.from({ length: 300 }, (_, at) => `key:${at}`);
  equal('keys of all slots', new Set(await Promise.all(keys.map((key, at) => nodes.set(key, at)))), new Set(['OK']));
  equal('are read', await Promise.all(keys.map((key) => nodes.get(key))), keys.map((_, at) => String(at)));
  equal('the one node', nodes.nodes('master').length, 1);
  equal('a pipeline of one slot', await nodes.pipeline().set('{a}1', 1).incr('{a}1').exec(), [[null, 'OK'], [null, 2]]);
  equal('a transaction of one slot', await nodes.multi().incr('{a}1').get('{a}1').exec(), [[null, 3], [null, '3']]);
  equal('two slots', await nodes.mget('{a}1', '{b}1').catch(message), "CROSSSLOT Keys in request don't hash to the same slot");
  equal('a script', await nodes.eval('return redis.call("incr", KEYS[1])', 1, '{a}1'), 4);
  nodes.defineCommand('twice', { numberOfKeys: 1, lua: 'return redis.call("incrby", KEYS[1], ARGV[1] * 2)' });
  equal('a script by name', await nodes.twice('{a}1', 3), 10);
  const heard = new Promise((resolve) => nodes.on('message', (channel, text) => resolve([channel, text])));
  await nodes.subscribe('news');
  await nodes.publish('news', 'of today');
  equal('a message', await heard, ['news', 'of today']);
  nodes.disconnect();
}

async function withoutCluster() {
  const nodes = new Redis.Cluster([{ host: '127.0.0.1', port }], { clusterRetryStrategy: () => null, lazyConnect: true });
  const reasons = [];
  nodes.on('error', () => {});
  nodes.on('node error', (error) => reasons.push(error.message));
  await nodes.connect().catch(message);
  equal('there is no cluster', reasons, ['ERR This instance has cluster support disabled']);
  nodes.disconnect();
}

async function scripts(io) {
  io.defineCommand('add', { numberOfKeys: 2, lua: 'return redis.call("get", KEYS[1]) + redis.call("get", KEYS[2]) + ARGV[1]' });
  await io.mset('one', 1, 'two', 2);
  equal('a script by name', await io.add('one', 'two', 39), 42);
  await io.script('FLUSH');
  equal('after a flush', await io.add('one', 'two', 0), 3);
  equal('in a pipeline', await io.pipeline().add('one', 'two', 1).get('one').exec(), [[null, 4], [null, '1']]);
  equal('its error', /attempt to perform arithmetic/.test(await io.add('one', 'missing', 0).catch(message)), true);
  equal('bytes', await io.eval('return ARGV[1]', 0, Buffer.from([0, 255, 13, 10])).then((text) => text.length > 0), true);
}

async function scans(io) {
  const keys = Array.from({ length: 3000 }, (_, at) => `scan:${at}`);
  await io.mset(keys.flatMap((key, at) => [key, at]));
  await io.hset('hash', Object.fromEntries(keys.map((key, at) => [key, at])));
  await io.zadd('zset', ...keys.flatMap((key, at) => [at, key]));
  const all = async (stream) => {
    const found = new Set();
    for await (const part of stream) part.forEach((key) => found.add(key));
    return found;
  };
  equal('keys', (await all(io.scanStream({ match: 'scan:*', count: 100 }))).size, 3000);
  equal('keys of a type', (await all(io.scanStream({ match: 'scan:*', type: 'hash' }))).size, 0);
  equal('fields', [...(await all(io.hscanStream('hash', { match: 'scan:1*' })))].filter((key) => key.startsWith('scan:')).length, 1111);
  equal('members', [...(await all(io.zscanStream('zset')))].filter((key) => key.startsWith('scan:')).length, 3000);
  equal('by score', await io.zrange('zset', '(10', 12, 'BYSCORE', 'WITHSCORES'), ['scan:11', '11', 'scan:12', '12']);
}

async function messages(io) {
  const subscriber = new Redis(port, '127.0.0.1');
  const heard = [];
  subscriber.on('message', (channel, text) => heard.push([channel, text]));
  subscriber.on('pmessage', (pattern, channel, text) => heard.push([pattern, channel, text]));
  equal('channels', await subscriber.subscribe('a', 'b'), 2);
  equal('patterns', await subscriber.psubscribe('c*'), 3);
  equal('no other command', /subscriber mode|only.*allowed in this context/.test(await subscriber.get('a').catch(message)), true);
  for (const [channel, text] of [['a', '1'], ['cat', '2'], ['b', '3'], ['d', '4']]) await io.publish(channel, text);
  await until('messages', () => heard.length === 3);
  equal('messages', heard, [['a', '1'], ['c*', 'cat', '2'], ['b', '3']]);
  // It subscribes again by itself when its connection is lost.
  const id = (await io.client('LIST', 'TYPE', 'pubsub')).match(/id=(\d+)/)[1];
  equal('a kill', await io.client('KILL', 'ID', id), 1);
  await until('a new subscription', async () => (await io.publish('a', 'again')) === 1);
  await until('the message', () => heard.some(([, text]) => text === 'again'));
  await subscriber.quit();
}

async function waits(io) {
  const waiting = io.duplicate();
  const popped = waiting.blpop('list', 'other', 0);
  await until('it waits', async () => /cmd=blpop/.test(await io.client('LIST')));
  await io.multi().rpush('other', 'x').rpush('list', 'y').exec();
  equal('BLPOP', ['other', 'list'].includes((await popped)[0]), true);
  equal('a timeout', await waiting.brpop('nothing', 0.05), null);
  await io.xgroup('CREATE', 'stream', 'group', '$', 'MKSTREAM');
  const read = waiting.xreadgroup('GROUP', 'group', 'me', 'COUNT', 10, 'BLOCK', 0, 'STREAMS', 'stream', '>');
  await until('it waits', async () => /cmd=xreadgroup/.test(await io.client('LIST')));
  const id = await io.xadd('stream', '*', 'field', 'value');
  equal('XREADGROUP', await read, [['stream', [[id, ['field', 'value']]]]]);
  equal('pending', await io.xpending('stream', 'group'), [1, id, id, [['me', '1']]]);
  equal('XAUTOCLAIM', (await io.xautoclaim('stream', 'group', 'you', 0, '0'))[1], [[id, ['field', 'value']]]);
  equal('XACK', await io.xack('stream', 'group', id), 1);
  waiting.disconnect();
}

async function transactions(io) {
  const other = io.duplicate();
  await io.set('watched', 1);
  await io.watch('watched');
  await other.set('watched', 2);
  equal('a watched key has changed', await io.multi().set('watched', 3).exec(), null);
  equal('it has not', await io.multi().incr('watched').exec(), [[null, 3]]);
  equal('an error inside', (await io.multi().set('text', 'x').incr('text').get('text').exec()).map(([error, value]) => error?.message ?? value), [
    'OK',
    'ERR value is not an integer or out of range',
    'x',
  ]);
  equal('an error before', await io.multi().set('text').exec().catch(message), 'EXECABORT Transaction discarded because of previous errors.');
  other.disconnect();
}

async function single() {
  const io = new Redis(port, '127.0.0.1', { enableAutoPipelining: true });
  await io.flushall();
  const answers = await Promise.all(Array.from({ length: 500 }, (_, at) => io.set(`auto:${at}`, at).then(() => io.get(`auto:${at}`))));
  equal('automatic pipelines', answers.every((answer, at) => answer === String(at)), true);
  await scripts(io);
  await scans(io);
  await messages(io);
  await waits(io);
  await transactions(io);
  const monitor = await io.monitor();
  const seen = new Promise((resolve) => monitor.on('monitor', (time, args) => args[0].toLowerCase() === 'echo' && resolve(args)));
  await io.echo('seen');
  equal('MONITOR', (await seen).slice(1), ['seen']);
  monitor.disconnect();
  io.disconnect();
  await withoutCluster();
}

await (process.argv.includes('cluster') ? cluster() : single());
tell();
