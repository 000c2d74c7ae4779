"""Celery with the Redis door as its broker and result backend: tasks, retries, times, priorities, chords, control of workers, events; a worker with kill -9, whose tasks come again after the visibility timeout, and then the server
itself. The file is the module of the tasks too.

With `--peer` it runs against redis-server, but for the kill of the server.
"""

import gc
import os
import sys
import threading
import time
from datetime import datetime, timedelta, timezone

import redis
from celery import Celery, chain, chord, group
from celery.exceptions import Ignore, TaskRevokedError
from kombu.exceptions import OperationalError
from kombu.transport.redis import Channel, QoS
from kombu.utils.uuid import uuid

from beluga import Tally
from processes import Processes, redis_door

PORT = os.environ.get("CELERY_TASKS_PORT", "0")
app = Celery("celery_tasks")
app.conf.update(
    broker_url=f"redis://127.0.0.1:{PORT}/0",
    result_backend=f"redis://127.0.0.1:{PORT}/1",
    broker_transport_options={"visibility_timeout": int(os.environ.get("CELERY_TASKS_VISIBILITY", "3600")), "queue_order_strategy": "priority"},
    broker_connection_retry_on_startup=True,
    result_extended=True,
    result_expires=1000,
    task_track_started=True,
    task_send_sent_event=True,
    worker_send_task_events=True,
    worker_prefetch_multiplier=1,
)
tally = Tally()


class NotingQoS(QoS):
    """Kombu takes a task off its list with BRPOP and adds it to the hash of unacknowledged tasks with a later command. A task between them is in no key, so this notes it when the later command fails."""

    def append(self, message, delivery_tag):
        try:
            super().append(message, delivery_tag)
        except redis.exceptions.RedisError:
            with open(os.environ["CELERY_TASKS_DROPPED"], "a") as file:
                print(message.headers["id"], file=file)
            raise


Channel.QoS = NotingQoS


# Tasks. What they do shows in keys of a third database.


def keys():
    return redis.Redis(port=int(PORT), db=2)


@app.task(bind=True)
def add(self, left, right):
    # The tasks of a chunk have no id of their own.
    keys().rpush("done", self.request.id or "")
    return left + right


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, acks_late=True)
def hold(self):
    """Waits until it is let go. Acknowledged only when it is done."""
    keys().rpush("begun", self.request.id)
    keys().blpop(f"gate:{self.request.id}")
    keys().rpush("done", self.request.id)
    return "held"


@app.task(bind=True, max_retries=3)
def fails(self, times, countdown=0):
    count = keys().incr(f"tries:{self.request.id}")
    if count <= times:
        raise self.retry(exc=ValueError(f"try {count}"), countdown=countdown)
    return count


@app.task(bind=True)
def ignored(self):
    self.update_state(state="PROGRESS", meta={"at": 7})
    raise Ignore()


@app.task(bind=True, acks_late=True)
def once(self, nth):
    keys().rpush("done", nth)


class Suite:
    def __init__(self, server, workers):
        self.server, self.workers = server, workers
        self.keys, self.names = keys(), 0

    def wait(self, what, condition):
        """A state without which the rest means nothing."""
        self.workers.until(what, condition)

    def worker(self, *options, concurrency=2):
        """The name of a new worker, which answers."""
        self.names += 1
        name = f"worker{self.names}"
        words = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "-n", f"{name}@here", "-c", str(concurrency), "-O", "fair", "-l", "INFO", *options]
        self.workers.start(name, *words)
        self.wait(f"{name} is there", lambda: self.answers(name))
        return name

    @staticmethod
    def answers(name):
        """Connections that a kill of the server has broken are replaced at the next try."""
        try:
            return bool(app.control.ping([f"{name}@here"], timeout=0.5))
        except (OperationalError, redis.exceptions.RedisError):
            return False

    def list(self, name):
        return [element.decode() for element in self.keys.lrange(name, 0, -1)]

    def begun(self, result):
        self.wait(f"{result.id} begins", lambda: result.id in self.list("begun"))

    def go(self, result):
        self.keys.rpush(f"gate:{result.id}", "go")

    def results(self):
        results = [add.delay(nth, 1000) for nth in range(50)]
        tally.equal("results", [result.get(timeout=60) for result in results], [1000 + nth for nth in range(50)])
        meta = redis.Redis(port=int(PORT), db=1)
        key = f"celery-task-meta-{results[0].id}"
        tally.check("a result's time to live", 900 < meta.ttl(key) <= 1000, meta.ttl(key))
        results[0].forget()
        tally.equal("a result that is forgotten", (meta.exists(key), results[0].state), (0, "PENDING"))
        together = group(add.s(nth, nth) for nth in range(40)).apply_async()
        together.save()
        tally.equal("a group", together.get(timeout=60), [2 * nth for nth in range(40)])
        tally.equal("by its id", app.GroupResult.restore(together.id).join_native(timeout=60), [2 * nth for nth in range(40)])
        tally.equal("in any order", sorted(meta["result"] for _, meta in together.iter_native(timeout=60)), [2 * nth for nth in range(40)])
        tally.equal("a chain", chain(add.s(1, 2), add.s(10), add.s(100)).apply_async().get(timeout=60), 113)
        tally.equal("a chord", chord((add.s(nth, 1) for nth in range(30)), total.s()).apply_async().get(timeout=60), sum(range(1, 31)))
        nested = chord([chord([add.s(one, two) for two in range(3)], total.s()) for one in range(4)], total.s())
        tally.equal("chords in a chord", nested.apply_async().get(timeout=60), 30)
        tally.equal("chunks", add.chunks(zip(range(10), range(10)), 4).apply_async().get(timeout=60), [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]])
        broken = chord([add.s(1, 1), fails.s(9)], total.s()).apply_async()
        try:
            broken.get(timeout=60)
            tally.check("a chord with a failure", False, "it has a result")
        except Exception as error:
            tally.check("a chord with a failure", "try 4" in str(error), error)
        progress = ignored.delay()
        self.wait("a state of its own", lambda: (progress.state, progress.info) == ("PROGRESS", {"at": 7}))

    def failures(self):
        result = fails.delay(2)
        tally.equal("retries", (result.get(timeout=60), self.keys.get(f"tries:{result.id}")), (3, b"3"))
        result = fails.delay(1, countdown=1)
        tally.equal("a retry after a second", result.get(timeout=60), 2)
        result = fails.delay(9)
        self.wait("no retry is left", lambda: result.state == "FAILURE")
        tally.equal("its tries", self.keys.get(f"tries:{result.id}"), b"4")
        tally.check("its traceback", "ValueError" in result.traceback, result.traceback)

    def times(self):
        self.keys.delete("done")
        now = datetime.now(timezone.utc)
        later, soon, past = add.apply_async((1, 1), countdown=1.5), add.apply_async((2, 2), eta=now + timedelta(seconds=0.7)), add.apply_async((3, 3), eta=now - timedelta(hours=1))
        tally.equal("times", [result.get(timeout=60) for result in (past, soon, later)], [6, 4, 2])
        tally.equal("their order", self.list("done"), [past.id, soon.id, later.id])
        tally.check("not before", datetime.now(timezone.utc) - now >= timedelta(seconds=1.5))
        expired = add.apply_async((1, 1), expires=now - timedelta(seconds=1))
        self.wait("a task that comes too late", lambda: expired.state == "REVOKED")

    def controls(self, worker):
        """Commands and replies of workers go by publish and subscribe, and by lists."""
        node = f"{worker}@here"
        look = app.control.inspect([node], timeout=10, limit=1)
        held = hold.delay()
        self.begun(held)
        tally.equal("active", [task["id"] for task in look.active()[node]], [held.id])
        scheduled = add.apply_async((1, 1), countdown=3600)
        self.wait("a scheduled task", lambda: [task["request"]["id"] for task in look.scheduled()[node]] == [scheduled.id])
        tally.equal("queues", [queue["name"] for queue in look.active_queues()[node]], ["celery"])
        tally.check("registered", "celery_tasks.add" in look.registered()[node], look.registered())
        tally.check("stats", look.stats()[node]["broker"]["transport"] == "redis" and look.stats()[node]["total"]["celery_tasks.add"] >= 50, look.stats())
        tally.equal("a task that is asked for", look.query_task(held.id)[node][held.id][0], "active")
        app.control.revoke(scheduled.id)
        self.wait("revoked tasks", lambda: scheduled.id in look.revoked()[node])
        app.control.revoke(held.id, terminate=True, signal="SIGKILL")
        try:
            held.get(timeout=60)
            tally.check("a task that is terminated", False, "it has a result")
        except TaskRevokedError:
            tally.check("a task that is terminated", True)
        other = add.apply_async((1, 2), queue="other")
        tally.equal("a queue that is added", app.control.add_consumer("other", destination=[node], reply=True, timeout=10, limit=1), [{node: {"ok": "add consumer other"}}])
        tally.equal("its task", other.get(timeout=60), 3)
        app.control.cancel_consumer("other", destination=[node], reply=True, timeout=10, limit=1)
        self.wait("a queue that is taken away", lambda: [queue["name"] for queue in look.active_queues()[node]] == ["celery"])
        tally.equal("a rate", app.control.rate_limit("celery_tasks.total", "5/m", destination=[node], reply=True, timeout=10, limit=1), [{node: {"ok": "new rate limit set successfully"}}])
        app.control.broadcast("shutdown", destination=[node])
        self.wait("a worker that is shut down", lambda: self.workers.has_ended(worker))
        tally.equal("nobody answers", app.control.ping(timeout=0.2), [])

    def queues(self):
        """Tasks that wait for a worker: revoked ones do not run, and the others run by their priorities."""
        broker = redis.Redis(port=int(PORT))
        app.control.purge()
        self.keys.delete("done")
        results = [add.apply_async((nth, 0), priority=priority) for nth, priority in enumerate([9, 3, 6, 0, 3])]
        tally.equal("lists of priorities", [broker.llen(name) for name in ("celery", "celery\x06\x163", "celery\x06\x166", "celery\x06\x169")], [1, 2, 1, 1])
        worker = self.worker(concurrency=1)
        tally.equal("priorities", [result.get(timeout=60) for result in results], [0, 1, 2, 3, 4])
        tally.equal("their order", self.list("done"), [results[nth].id for nth in (3, 1, 4, 2, 0)])
        events = []

        def note(event):
            if event.get("uuid") == wanted:
                events.append(event["type"])

        before, wanted = broker.pubsub_numpat(), uuid()
        with app.connection_for_read() as connection:
            receiver = app.events.Receiver(connection, handlers={"*": note})
            listener = threading.Thread(target=receiver.capture, kwargs={"limit": None, "timeout": None, "wakeup": False})
            listener.start()
            self.wait("a listener", lambda: broker.pubsub_numpat() > before)
            add.apply_async((5, 5), task_id=wanted)
            self.wait("a last event", lambda: "task-succeeded" in events)
            receiver.should_stop = True
            listener.join(60)
        tally.equal("events", sorted(events), ["task-received", "task-sent", "task-started", "task-succeeded"])
        self.workers.terminate(worker)

    def kills(self):
        """A worker is killed with a task under way and one that it holds. Both are there for the next worker after the visibility timeout, here of two seconds."""
        broker = redis.Redis(port=int(PORT))
        app.control.purge()
        self.keys.delete("done")
        os.environ["CELERY_TASKS_VISIBILITY"] = "2"
        worker = self.worker("--prefetch-multiplier", "2", concurrency=1)
        first = hold.delay()
        self.begun(first)
        second = hold.delay()
        self.wait("two tasks at the worker", lambda: broker.zcard("unacked_index") == 2)
        self.workers.kill(worker)
        tally.equal("tasks of a killed worker", (broker.hlen("unacked"), broker.llen("celery")), (2, 0))
        self.wait("the visibility timeout", lambda: broker.zcount("unacked_index", time.time() - 2, "+inf") == 0)
        # A worker looks for such tasks as it begins.
        worker = self.worker(concurrency=2)
        self.wait("both begin", lambda: self.list("begun").count(first.id) >= 2 and self.list("begun").count(second.id) >= 1)
        self.go(first)
        self.go(second)
        tally.equal("their results", [first.get(timeout=60), second.get(timeout=60)], ["held", "held"])
        self.workers.terminate(worker)

    def killed_server(self):
        """The server is killed under producers and a worker, which connects again: every task whose publication was acknowledged runs, but for one that Kombu has dropped."""
        self.keys.delete("done")
        broker, dropped = redis.Redis(port=int(PORT)), os.path.join(self.workers.home, "dropped")
        os.environ["CELERY_TASKS_DROPPED"] = dropped
        worker, acknowledged = self.worker(), [[] for _ in range(3)]

        def produce(who, mine):
            try:
                with app.connection_for_write() as connection, app.amqp.Producer(connection) as producer:
                    for nth in range(100_000):
                        name = f"{who}-{nth}"
                        once.apply_async((name,), task_id=name, producer=producer, retry=False, ignore_result=True)
                        mine.append(name)
            except (OperationalError, redis.exceptions.RedisError, OSError):
                pass

        producers = [threading.Thread(target=produce, args=each) for each in enumerate(acknowledged)]
        for producer in producers:
            producer.start()
        self.wait("tasks of all producers, and some are done", lambda: min(map(len, acknowledged)) >= 50 and self.keys.llen("done") >= 20)
        # The worker takes no further task, and the reply with the one that it has asked for is on its way: what the server has given away, the worker reads.
        self.workers.pause(worker)
        self.wait("no pop is under way", lambda: not any(client["cmd"] == "brpop" and "b" in client["flags"] for client in broker.client_list()))
        # Its reply leaves when the pop is on disk, as that of a later write does.
        self.keys.set("later", 1)
        time.sleep(0.1)
        self.server.kill()
        self.workers.go_on(worker)
        for producer in producers:
            producer.join(60)
        self.server.start()
        wanted = {name for mine in acknowledged for name in mine}
        self.wait("the worker is there again", lambda: self.answers(worker))
        self.wait("the queue is empty", lambda: broker.llen("celery") == 0)
        self.workers.terminate(worker)
        # What was at the worker when the server died is in the hash of such tasks.
        self.wait("the visibility timeout", lambda: broker.zcount("unacked_index", time.time() - 2, "+inf") == 0)
        worker = self.worker()
        self.wait("all tasks are acknowledged", lambda: broker.hlen("unacked") == 0 and broker.llen("celery") == 0)
        with open(dropped, "a+") as file:
            file.seek(0)
            names = set(file.read().split())
        tally.equal("acknowledged tasks that did not run", wanted - set(self.list("done")), names & wanted)
        self.workers.terminate(worker)


def main():
    global PORT
    with redis_door() as server, Processes() as workers:
        PORT = os.environ["CELERY_TASKS_PORT"] = str(server.port)
        app.conf.update(broker_url=f"redis://127.0.0.1:{PORT}/0", result_backend=f"redis://127.0.0.1:{PORT}/1")
        suite = Suite(server, workers)
        worker = suite.worker()
        suite.results()
        suite.failures()
        suite.times()
        suite.controls(worker)
        suite.queues()
        suite.kills()
        if "--peer" not in sys.argv:
            suite.killed_server()
        # Results unsubscribe when they are collected, which needs the server.
        gc.collect()
    tally.close()


if __name__ == "__main__":
    # The tasks are those of the module that workers import.
    import celery_tasks

    celery_tasks.main()
