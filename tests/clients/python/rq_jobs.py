"""RQ: jobs, retries, schedules, dependencies, limits and commands to workers, with workers that are killed in the middle, and then the server itself. The file is the module of the jobs and the worker's program too.

With `--peer` it runs against redis-server, but for the kill of the server.
"""

import os
import signal
import sys
import threading
from datetime import datetime, timedelta, timezone

import redis
from rq import Callback, Queue, Repeat, Retry, Worker, get_current_job
from rq.command import send_shutdown_command, send_stop_job_command
from rq.exceptions import DuplicateJobError
from rq.group import Group
from rq.job import Job
from rq.rate_limit import RateLimit
from rq.suspension import resume, suspend

from beluga import Tally
from processes import Processes, redis_door

tally = Tally()


# Jobs. What they do shows in keys; one that must be met under way waits for an element of a list.


def server_of_job():
    return get_current_job().connection


def add(left, right):
    server_of_job().rpush("done", get_current_job().id)
    return left + right


def hold():
    connection = server_of_job()
    connection.rpush("begun", get_current_job().id)
    connection.blpop(f"gate:{get_current_job().id}")
    connection.rpush("done", get_current_job().id)
    return "held"


def fail_until(times):
    """Fails so many times, and then does not."""
    count = server_of_job().incr(f"tries:{get_current_job().id}")
    if count <= times:
        raise ValueError(f"try {count}")
    return count


def crowded():
    """Returns how many of these jobs run at once, which a peak keeps."""
    connection = server_of_job()
    peak = connection.incr("inside")
    connection.zadd("peak", {"peak": peak}, gt=True)
    connection.decr("inside")


def noted(job, connection, *_):
    connection.rpush("noted", job.id)


class FrailWorker(Worker):
    """Its jobs count as abandoned a second after its last sign of life instead of ninety."""

    def get_heartbeat_ttl(self, job, working_time=0.0):
        return 1


def work(port, name, kind, *queues):
    connection = redis.Redis(port=int(port))
    # A SIGTERM that comes just before the wait for a job is seen after the wait, which is 15 seconds shorter than the time to live.
    worker = {"frail": FrailWorker, "plain": Worker}[kind]([Queue(queue, connection=connection) for queue in queues], name=name, connection=connection, maintenance_interval=1, worker_ttl=17)
    worker.work(with_scheduler=True, logging_level="DEBUG")


class Suite:
    def __init__(self, server, workers):
        self.server, self.workers = server, workers
        self.connection = redis.Redis(port=server.port)
        self.queue = Queue("low", connection=self.connection)
        self.names = 0

    def worker(self, *queues, kind="plain"):
        """The name of a new worker, which has registered itself."""
        self.names += 1
        name = f"worker{self.names}"
        self.workers.start(name, sys.executable, os.path.abspath(__file__), "--worker", str(self.server.port), name, kind, *(queues or ["low"]))
        self.wait(f"{name} is there", lambda: name in {worker.name for worker in Worker.all(self.connection)})
        return name

    def wait(self, what, condition):
        """A state without which the rest means nothing."""
        self.workers.until(what, condition)

    def status(self, *jobs):
        return [str(job.get_status().value) for job in jobs]

    def finished(self, what, *jobs):
        self.wait(what, lambda: set(self.status(*jobs)) == {"finished"})

    def list(self, name):
        return [element.decode() for element in self.connection.lrange(name, 0, -1)]

    def results(self):
        worker = self.worker()
        jobs = [self.queue.enqueue("rq_jobs.add", nth, right=1000) for nth in range(12)]
        with self.connection.pipeline() as pipe:
            jobs += self.queue.enqueue_many([Queue.prepare_data("rq_jobs.add", args=(nth, 1000)) for nth in range(12, 24)], pipeline=pipe)
            pipe.execute()
        self.finished("results", *jobs)
        tally.equal("return values", [job.return_value(refresh=True) for job in jobs], [1000 + nth for nth in range(24)])
        tally.equal("their order", self.list("done"), [job.id for job in jobs])
        tally.equal("finished registry", (self.queue.finished_job_registry.count, len(self.queue), self.queue.started_job_registry.count), (24, 0, 0))
        self.wait("an idle worker", lambda: Worker.find_by_key(f"rq:worker:{worker}", self.connection).state == "idle")
        found = Worker.find_by_key(f"rq:worker:{worker}", self.connection)
        tally.equal("the worker's counts", (found.successful_job_count, found.failed_job_count, found.get_current_job_id()), (24, 0, None))
        # Waits with XREAD BLOCK for the result of a job under way.
        job = self.queue.enqueue("rq_jobs.hold")
        self.wait("a job begins", lambda: self.list("begun")[-1:] == [job.id])
        tally.equal("a job under way", (self.status(job), self.queue.started_job_registry.get_job_ids()), (["started"], [job.id]))
        latest = []
        waiter = threading.Thread(target=lambda: latest.append(job.latest_result(timeout=60)))
        waiter.start()
        self.wait("a blocked reader of results", lambda: self.connection.info("clients")["blocked_clients"] >= 1)
        self.connection.rpush(f"gate:{job.id}", "go")
        waiter.join(60)
        tally.equal("a result that was waited for", (latest[0].return_value, latest[0].type.name), ("held", "SUCCESSFUL"))
        tally.equal("SIGTERM", self.workers.terminate(worker), 0)
        tally.equal("no worker is registered", Worker.all(self.connection), [])

    def queues(self):
        """Queues without workers, and those that several queues have."""
        high, low = Queue("high", connection=self.connection), self.queue
        first, second, third = low.enqueue("rq_jobs.add", 1, 1), low.enqueue("rq_jobs.add", 2, 2), low.enqueue("rq_jobs.add", 3, 3, at_front=True)
        tally.equal("at the front", low.job_ids, [third.id, first.id, second.id])
        tally.equal("positions", [job.get_position() for job in (third, first, second)], [0, 1, 2])
        first.cancel()
        tally.equal("cancelled", (self.status(first), low.job_ids, low.canceled_job_registry.get_job_ids()), (["canceled"], [third.id, second.id], [first.id]))
        second.delete()
        tally.equal("deleted", (Job.exists(second.id, self.connection), low.job_ids), (False, [third.id]))
        low.enqueue("rq_jobs.add", 1, 1, job_id="one", unique=True)
        for what, again in (("enqueue", lambda: low.enqueue("rq_jobs.add", 1, 1, job_id="one", unique=True)), ("schedule", lambda: low.enqueue_in(timedelta(hours=1), "rq_jobs.add", 1, 1, job_id="one", unique=True))):
            try:
                again()
                tally.check(f"a second job of one id: {what}", False, "it was taken")
            except DuplicateJobError:
                tally.check(f"a second job of one id: {what}", True)
        tally.equal("all queues", sorted(queue.name for queue in Queue.all(self.connection)), ["high", "low"] if self.connection.sismember("rq:queues", "rq:queue:high") else ["low"])
        tally.equal("emptied", (low.empty(), len(low), Job.exists("one", self.connection)), (2, 0, False))
        self.connection.delete("done")
        jobs = [low.enqueue("rq_jobs.add", 1, 1), high.enqueue("rq_jobs.add", 2, 2), low.enqueue("rq_jobs.add", 3, 3), high.enqueue("rq_jobs.add", 4, 4)]
        worker = self.worker("high", "low")
        self.finished("two queues", *jobs)
        tally.equal("the first queue first", self.list("done"), [jobs[nth].id for nth in (1, 3, 0, 2)])
        self.workers.terminate(worker)

    def failures(self):
        worker = self.worker()
        queue = self.queue
        job = queue.enqueue("rq_jobs.fail_until", 1, on_failure=Callback(noted))
        self.wait("a failure", lambda: self.status(job) == ["failed"])
        tally.equal("failed registry", queue.failed_job_registry.get_job_ids(), [job.id])
        tally.check("its traceback", "ValueError: try 1" in job.latest_result().exc_string, job.latest_result().exc_string)
        tally.equal("its callback", self.list("noted"), [job.id])
        tally.equal("requeued", queue.failed_job_registry.requeue(job.id).id, job.id)
        self.finished("a job that was requeued", job)
        tally.equal("its results", ([result.type.name for result in job.results()], queue.failed_job_registry.count), (["SUCCESSFUL", "FAILED"], 0))
        job = queue.enqueue("rq_jobs.fail_until", 3, retry=Retry(max=3))
        self.finished("retries at once", job)
        tally.equal("tries", (job.return_value(refresh=True), [result.type.name for result in job.results()]), (4, ["SUCCESSFUL"]))
        job = queue.enqueue("rq_jobs.fail_until", 5, retry=Retry(max=1))
        self.wait("no retry is left", lambda: self.status(job) == ["failed"])
        tally.equal("two tries", self.connection.get(f"tries:{job.id}"), b"2")
        job = queue.enqueue("rq_jobs.fail_until", 1, retry=Retry(max=3, interval=[3600, 1]))
        registry = queue.scheduled_job_registry
        self.wait("a retry that waits", lambda: job.id in registry.get_job_ids())
        tally.equal("its status", self.status(job), ["scheduled"])
        at = registry.get_scheduled_time(job)
        tally.check("its time", timedelta(minutes=59) < at - datetime.now(timezone.utc) <= timedelta(hours=1), at)
        registry.schedule(job, datetime.now(timezone.utc))
        self.finished("a retry whose time has come", job)
        self.workers.terminate(worker)

    def schedules(self):
        queue = self.queue
        self.connection.delete("done")
        now = datetime.now(timezone.utc)
        later = queue.enqueue_in(timedelta(hours=1), "rq_jobs.add", 0, 0)
        second = queue.enqueue_at(now - timedelta(seconds=5), "rq_jobs.add", 2, 2)
        first = queue.enqueue_at(now - timedelta(seconds=10), "rq_jobs.add", 1, 1)
        soon = queue.enqueue_in(timedelta(seconds=1), "rq_jobs.add", 3, 3)
        repeated = queue.enqueue("rq_jobs.add", 4, 4, repeat=Repeat(times=2, interval=0), on_success=Callback(noted))
        tally.equal("scheduled registry", queue.scheduled_job_registry.get_job_ids(), [job.id for job in (first, second, soon, later)])
        worker = self.worker()
        self.finished("scheduled jobs", first, second, soon, repeated)
        self.wait("all repetitions", lambda: self.list("done").count(repeated.id) == 3)
        order = [one for one in self.list("done") if one != repeated.id]
        tally.equal("in the order of their times", order, [first.id, second.id, soon.id])
        tally.equal("the rest", queue.scheduled_job_registry.get_job_ids(), [later.id])
        tally.check("the scheduler's lock", 0 < self.connection.ttl("rq:scheduler-lock:low") <= 61, self.connection.ttl("rq:scheduler-lock:low"))
        later.cancel()
        self.workers.terminate(worker)
        self.wait("the lock is released", lambda: not self.connection.exists("rq:scheduler-lock:low"))

    def dependencies(self):
        queue = self.queue
        self.connection.delete("done")
        parents = [queue.enqueue("rq_jobs.add", nth, nth) for nth in range(3)]
        child = queue.enqueue("rq_jobs.add", 10, 10, depends_on=parents)
        grandchild = queue.enqueue("rq_jobs.add", 100, 100, depends_on=child)
        tally.equal("deferred", (self.status(child, grandchild), sorted(queue.deferred_job_registry.get_job_ids())), (["deferred"] * 2, sorted([child.id, grandchild.id])))
        group = Group.create(self.connection, name="group")
        members = group.enqueue_many(queue, [Queue.prepare_data("rq_jobs.add", args=(nth, 0)) for nth in range(5)])
        limited = [queue.enqueue("rq_jobs.crowded", rate_limit=RateLimit("limit", 2)) for _ in range(12)]
        tally.equal("a limit", [self.status(*limited).count(status) for status in ("queued", "rate_limited")], [2, 10])
        names = [self.worker(), self.worker(), self.worker()]
        self.finished("dependents", *parents, child, grandchild)
        order = self.list("done")
        tally.check("their order", max(order.index(job.id) for job in parents) < order.index(child.id) < order.index(grandchild.id), order)
        self.finished("a group", *members)
        tally.equal("its members", {job.id for job in Group.fetch("group", self.connection).get_jobs()}, {job.id for job in members})
        self.finished("jobs with a limit", *limited)
        tally.check("at most so many at once", self.connection.zscore("peak", "peak") <= 2, self.connection.zscore("peak", "peak"))
        for name in names:
            self.workers.terminate(name)

    def begun(self, job):
        self.wait(f"{job.id} begins", lambda: job.id in self.list("begun"))

    def commands(self):
        """Commands go to workers by publish and subscribe."""
        worker = self.worker()
        job = self.queue.enqueue("rq_jobs.hold")
        self.begun(job)
        send_stop_job_command(self.connection, job.id)
        self.wait("a job that is stopped", lambda: self.status(job) == ["stopped"])
        suspend(self.connection)
        # A worker that waits for a job already looks after that job.
        last = self.queue.enqueue("rq_jobs.add", 0, 0)
        self.wait("a suspended worker", lambda: Worker.find_by_key(f"rq:worker:{worker}", self.connection).state == "suspended")
        waits = self.queue.enqueue("rq_jobs.add", 1, 1)
        tally.equal("nothing runs", self.status(waits), ["queued"])
        resume(self.connection)
        self.finished("after the suspension", last, waits)
        send_shutdown_command(self.connection, worker)
        self.wait("a worker that is shut down", lambda: self.workers.has_ended(worker))
        tally.equal("no worker", Worker.count(self.connection), 0)

    def kills(self):
        """A process that runs a job is killed, then a worker with all that it has."""
        worker = self.worker(kind="frail")
        job = self.queue.enqueue("rq_jobs.hold")
        self.begun(job)
        self.wait("the pid of the process", lambda: self.connection.hget(f"rq:worker:{worker}", "state") == b"busy")
        horse = int(next(line for line in self.children(self.workers.running[worker].pid)))
        os.kill(horse, signal.SIGKILL)
        self.wait("a job whose process was killed", lambda: self.status(job) == ["failed"])
        tally.check("the reason", "Work-horse terminated unexpectedly" in job.latest_result().exc_string, job.latest_result().exc_string)
        again, lost = self.queue.enqueue("rq_jobs.hold", retry=Retry(max=1)), None
        self.begun(again)
        self.workers.kill(worker)
        tally.equal("a job of a killed worker", (self.status(again), self.queue.started_job_registry.get_job_ids(cleanup=False)), (["started"], [again.id]))
        other = self.worker("other", kind="frail")
        lost = Queue("other", connection=self.connection).enqueue("rq_jobs.hold")
        self.begun(lost)
        self.workers.kill(other)
        # A worker that is killed while it cleans registries leaves RQ's lock of them, for a quarter of an hour: with redis-server too.
        self.connection.delete(self.queue.registry_cleaning_key, Queue("other", connection=self.connection).registry_cleaning_key)
        # The next one cleans them as it goes on.
        worker = self.worker("low", "other")
        self.wait("the job begins again", lambda: self.list("begun").count(again.id) == 2)
        self.connection.rpush(f"gate:{again.id}", "go")
        self.finished("a job whose worker was killed", again)
        self.wait("a job without a retry", lambda: self.status(lost) == ["failed"])
        tally.check("it was abandoned", "AbandonedJobError" in lost.latest_result().exc_string, lost.latest_result().exc_string)
        tally.equal("once", self.list("done").count(again.id), 1)
        self.workers.terminate(worker)

    @staticmethod
    def children(pid):
        """The processes that run jobs: those whose own command line says so are forks of the worker, the scheduler among them, which has the oldest pid."""
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return sorted(children.read().split(), key=int)[1:]

    def killed_server(self):
        """The server is killed under producers and workers: every job whose enqueue was acknowledged runs."""
        self.connection.delete("done")
        names, acknowledged = [self.worker(kind="frail"), self.worker(kind="frail")], [[] for _ in range(3)]

        def produce(mine):
            queue = Queue("low", connection=redis.Redis(port=self.server.port))
            try:
                for nth in range(100_000):
                    mine.append(queue.enqueue("rq_jobs.add", nth, nth, retry=Retry(max=3)).id)
            except redis.exceptions.ConnectionError:
                pass

        producers = [threading.Thread(target=produce, args=(mine,)) for mine in acknowledged]
        for producer in producers:
            producer.start()
        self.wait("jobs of all producers, and some are done", lambda: min(map(len, acknowledged)) >= 30 and self.connection.llen("done") >= 10)
        self.server.kill()
        for producer in producers:
            producer.join(60)
        for name in names:
            self.workers.kill(name)
        self.server.start()
        wanted = {one for mine in acknowledged for one in mine}
        known = {key.decode()[len("rq:job:"):] for key in self.connection.scan_iter("rq:job:*", count=1000) if b":dependents" not in key}
        tally.equal("acknowledged jobs that are lost", wanted - known, set())
        intermediate = {one.decode() for one in self.connection.lrange("rq:queue:low:intermediate", 0, -1)}
        where = {status: {job.id for job in Job.fetch_many(sorted(wanted), self.connection) if job.get_status(refresh=False).value == status} for status in ("queued", "started", "finished")}
        tally.equal("queued jobs are in the queue, or on their way to a worker", where["queued"] - set(self.queue.job_ids) - intermediate, set())
        tally.equal("started jobs are registered", where["started"] - set(self.queue.started_job_registry.get_job_ids(cleanup=False)), set())
        tally.equal("finished jobs were done", where["finished"] - set(self.list("done")), set())
        # All but a few need not run again for this.
        for job in self.queue.get_jobs(20):
            job.cancel()
            wanted.discard(job.id)
        worker = self.worker()
        self.wait("the jobs of killed workers run", lambda: wanted - intermediate <= set(self.list("done")))
        tally.check("few were on their way", len(intermediate - set(self.list("done"))) <= 2, intermediate)
        self.workers.terminate(worker)


def main():
    with redis_door() as server, Processes() as workers:
        suite = Suite(server, workers)
        for part in (suite.results, suite.queues, suite.failures, suite.schedules, suite.dependencies, suite.commands, suite.kills):
            part()
        if "--peer" not in sys.argv:
            suite.killed_server()
    tally.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(*sys.argv[2:])
    else:
        main()
