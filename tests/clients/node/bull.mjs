// BullMQ over the Redis door: queues, workers, delays, repetitions, rates, priorities, flows, events, and jobs of a worker with kill -9.
// The file is the program of that worker too. `node bull.mjs PORT`
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import IORedis from 'ioredis';
import { equal, tell } from './tally.mjs';

const port = Number(process.argv[process.argv.length - 1]);
const connect = () => new IORedis({ port, maxRetriesPerRequest: null });
const keys = connect();
const open = [];

const queueOf = (name, options = {}) => kept(new Queue(name, { connection: connect(), ...options }));
const workerOf = (name, work, options = {}) => kept(new Worker(name, work, { connection: connect(), ...options }));

function kept(one) {
  one.setMaxListeners(100);
  one.on('error', (error) => console.log(`an error: ${error.stack}`));
  open.push(one);
  return one;
}

// Waits for a state; one that does not come ends the suite.
async function until(what, condition, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what} in ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const closed = async (...several) => Promise.all(several.map((one) => one.close()));
const counts = async (queue) => queue.getJobCounts('wait', 'active', 'delayed', 'completed', 'failed', 'prioritized', 'waiting-children');
const NONE = { wait: 0, active: 0, delayed: 0, completed: 0, failed: 0, prioritized: 0, 'waiting-children': 0 };

async function plain() {
  const queue = queueOf('plain');
  const events = kept(new QueueEvents('plain', { connection: connect(), lastEventId: '0-0' }));
  await events.waitUntilReady();
  const seen = [];
  for (const name of ['added', 'waiting', 'active', 'progress', 'completed', 'failed', 'drained']) events.on(name, (one) => seen.push([name, one.jobId]));
  const jobs = await queue.addBulk(Array.from({ length: 50 }, (_, nth) => ({ name: 'double', data: { nth } })));
  equal('waiting jobs', await counts(queue), { ...NONE, wait: 50 });
  equal('their order', (await queue.getJobs(['wait'], 0, -1, true)).map((job) => job.data.nth), Array.from({ length: 50 }, (_, nth) => nth));
  const order = [];
  const worker = workerOf('plain', async (job) => {
    order.push(job.data.nth);
    await job.updateProgress(50);
    await job.log('half of it');
    return job.data.nth * 2;
  });
  equal('results', await Promise.all(jobs.map((job) => job.waitUntilFinished(events))), Array.from({ length: 50 }, (_, nth) => nth * 2));
  equal('one after the other', order, Array.from({ length: 50 }, (_, nth) => nth));
  await until('all are completed', async () => (await counts(queue)).completed === 50);
  const first = await queue.getJob(jobs[0].id);
  equal('a finished job', [first.progress, first.returnvalue, await first.getState(), (await queue.getJobLogs(first.id)).logs], [50, 0, 'completed', ['half of it']]);
  await until('its events', () => seen.filter(([, id]) => id === first.id).length >= 5);
  equal('its events', seen.filter(([, id]) => id === first.id).map(([name]) => name), ['added', 'waiting', 'active', 'progress', 'completed']);
  equal('one of an id', (await queue.add('double', { nth: 1 }, { jobId: 'own' })).id, (await queue.add('double', { nth: 2 }, { jobId: 'own' })).id);
  await (await queue.getJob('own')).waitUntilFinished(events);
  equal('removed when done', await (await queue.add('double', { nth: 3 }, { removeOnComplete: true })).waitUntilFinished(events), 6);
  await until('it is gone', async () => (await counts(queue)).completed === 51 && (await counts(queue)).active === 0);
  await queue.pause();
  await queue.add('double', { nth: 4 });
  equal('paused', [await queue.isPaused(), await queue.getPausedCount?.() ?? (await queue.getJobCounts('paused')).paused], [true, 1]);
  await queue.resume();
  await until('resumed', async () => (await counts(queue)).completed === 52);
  equal('cleaned', (await queue.clean(0, 20, 'completed')).length, 20);
  await closed(worker);
  await queue.obliterate({ force: true });
  equal('nothing is left', (await keys.keys('bull:plain:*')).filter((key) => !key.endsWith(':stalled-check')), []);
}

async function failures() {
  const queue = queueOf('failures');
  const worker = workerOf('failures', async (job) => {
    if (job.attemptsMade < job.data.failures) throw new Error(`try ${job.attemptsMade}`);
    return job.attemptsMade;
  });
  const again = await queue.add('fails', { failures: 2 }, { attempts: 3 });
  const late = await queue.add('fails', { failures: 2 }, { attempts: 3, backoff: { type: 'exponential', delay: 100 } });
  const never = await queue.add('fails', { failures: 9 }, { attempts: 2 });
  await until('jobs that fail', async () => (await counts(queue)).completed === 2 && (await counts(queue)).failed === 1);
  equal('attempts', [(await queue.getJob(again.id)).returnvalue, (await queue.getJob(late.id)).returnvalue], [2, 2]);
  const failed = await queue.getJob(never.id);
  equal('the last failure', [failed.failedReason, failed.attemptsMade, failed.stacktrace.length, await failed.getState()], ['try 1', 2, 2, 'failed']);
  await failed.updateData({ failures: 0 });
  await failed.retry();
  await until('a retry', async () => (await counts(queue)).completed === 3);
  await closed(worker);
}

async function delays() {
  const queue = queueOf('delays');
  const order = [];
  const begin = Date.now();
  const added = await queue.addBulk([900, 300, 600].map((delay) => ({ name: String(delay), data: {}, opts: { delay } })));
  const far = await queue.add('far', {}, { delay: 3_600_000 });
  equal('delayed', await counts(queue), { ...NONE, delayed: 4 });
  const worker = workerOf('delays', async (job) => order.push([job.name, Date.now() - begin >= job.opts.delay || job.name === 'far']));
  await until('delayed jobs', async () => (await counts(queue)).completed === 3);
  equal('in the order of their times, and none before', order, [['300', true], ['600', true], ['900', true]]);
  await far.promote();
  await until('a job that is promoted', async () => (await counts(queue)).completed === 4);
  equal('delayed ones', added.length, 3);
  await closed(worker);

  const priorities = queueOf('priorities');
  await priorities.addBulk([5, 1, 3, 1, 0].map((priority, nth) => ({ name: `${priority}-${nth}`, data: {}, opts: { priority } })));
  equal('prioritized', await counts(priorities), { ...NONE, wait: 1, prioritized: 4 });
  const taken = [];
  const second = workerOf('priorities', async (job) => taken.push(job.name));
  await until('priorities', async () => (await counts(priorities)).completed === 5);
  equal('the order of priorities', taken, ['0-4', '1-1', '1-3', '3-2', '5-0']);
  await closed(second);
}

async function repetitions() {
  const queue = queueOf('repetitions');
  await queue.upsertJobScheduler('often', { every: 100, limit: 4 }, { name: 'tick', data: { of: 'often' } });
  await queue.upsertJobScheduler('nightly', { pattern: '0 3 * * *', tz: 'UTC' }, { name: 'night' });
  equal('schedulers', (await queue.getJobSchedulers()).map((one) => one.key).sort(), ['nightly', 'often']);
  const worker = workerOf('repetitions', async (job) => job.data.of);
  await until('repetitions', async () => (await counts(queue)).completed === 4);
  await until('the last one was the last', async () => (await counts(queue)).delayed === 1);
  equal('the one that is left', (await queue.getDelayed()).map((job) => job.name), ['night']);
  equal('removed', [await queue.removeJobScheduler('nightly'), (await counts(queue)).delayed], [true, 0]);
  await closed(worker);
}

async function rates() {
  const queue = queueOf('rates');
  await queue.addBulk(Array.from({ length: 6 }, (_, nth) => ({ name: 'one', data: { nth } })));
  const [times, begin] = [[], Date.now()];
  const worker = workerOf('rates', async () => times.push(Date.now()), { limiter: { max: 2, duration: 300 }, concurrency: 4 });
  await until('jobs with a rate', async () => (await counts(queue)).completed === 6);
  times.sort((left, right) => left - right);
  equal('no more than two in their time', [times[2] - begin >= 300, times[4] - begin >= 600], [true, true]);
  await closed(worker);
}

async function flows() {
  const flow = kept(new FlowProducer({ connection: connect() }));
  const tree = await flow.add({
    name: 'root', queueName: 'parents', data: {},
    children: [
      { name: 'branch', queueName: 'parents', data: {}, children: [1, 2, 3].map((value) => ({ name: 'leaf', queueName: 'leaves', data: { value } })) },
      { name: 'leaf', queueName: 'leaves', data: { value: 10 } },
    ],
  });
  const parents = queueOf('parents');
  equal('parents wait for their children', await counts(parents), { ...NONE, 'waiting-children': 2 });
  equal('dependencies', Object.entries(await tree.job.getDependenciesCount()).filter(([, count]) => count > 0), [['unprocessed', 2]]);
  const leaves = workerOf('leaves', async (job) => job.data.value, { concurrency: 3 });
  const roots = workerOf('parents', async (job) => Object.values(await job.getChildrenValues()).reduce((sum, value) => sum + value, 0));
  await until('a flow', async () => (await counts(parents)).completed === 2);
  equal('its sum', (await parents.getJob(tree.job.id)).returnvalue, 16);
  equal('its tree', (await flow.getFlow({ id: tree.job.id, queueName: 'parents' })).children.length, 2);
  await closed(leaves, roots);
}

// Jobs of a worker that is killed stall when its locks have run out, and another worker has them then.
async function killed() {
  const queue = queueOf('killed');
  const again = await queue.add('hold', {});
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), 'worker', String(port)], { stdio: 'inherit' });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  await until('a job of another process', async () => (await keys.llen('held')) === 1);
  const exists = await keys.exists(`bull:killed:${again.id}:lock`);
  child.kill('SIGKILL');
  await ended;
  equal('its job, with a lock', [(await counts(queue)).active, exists], [1, 1]);
  const stalled = [];
  const worker = workerOf('killed', async (job) => job.id, { stalledInterval: 200, maxStalledCount: 1 });
  worker.on('stalled', (id) => stalled.push(id));
  await until('a stalled job is done', async () => (await counts(queue)).completed === 1);
  equal('it had stalled', [stalled, (await queue.getJob(again.id)).returnvalue], [[again.id], again.id]);
  await closed(worker);
}

// Many workers: each job is done once.
async function crowd() {
  const queue = queueOf('crowd');
  const done = new Map();
  const workers = Array.from({ length: 5 }, () => workerOf('crowd', async (job) => done.set(job.id, (done.get(job.id) ?? 0) + 1), { concurrency: 10 }));
  const jobs = (await Promise.all(Array.from({ length: 10 }, () => queue.addBulk(Array.from({ length: 50 }, () => ({ name: 'one', data: {} })))))).flat();
  await until('all jobs', async () => (await counts(queue)).completed === 500);
  equal('each is done once', [jobs.length, new Set(jobs.map((job) => job.id)).size, done.size, Math.max(...done.values())], [500, 500, 500, 1]);
  await closed(...workers);
}

if (process.argv[2] === 'worker') {
  workerOf('killed', async (job) => {
    await keys.rpush('held', job.id);
    await new Promise(() => {});
  }, { lockDuration: 1000, stalledInterval: 200 });
} else {
  await keys.flushall();
  for (const part of [plain, failures, delays, repetitions, rates, flows, killed, crowd]) {
    try {
      await part();
    } catch (error) {
      equal(part.name, error.stack, 'no error');
    }
  }
  await Promise.all(open.map((one) => one.close()));
  tell();
}
