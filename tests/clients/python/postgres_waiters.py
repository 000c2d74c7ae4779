"""A crowd of sessions waits for one table, in each kind of statement, and for one advisory lock: all doors answer, cancels and disconnects work, SIGTERM ends every wait. `--sessions` says how many."""

import argparse
import contextlib
import resource
import selectors
import socket
import struct
import time

import psycopg

from beluga import Server, Tally, redis_ping, status, until

tally = Tally()


def come(server):
    return psycopg.connect(host="127.0.0.1", port=server.postgres_port, user="postgres", dbname="postgres", autocommit=True, connect_timeout=60)


class Crowd:
    """Sessions on bare sockets, in a transaction each."""

    def __init__(self, server, count):
        self.wires = []
        body = struct.pack(">I", 196608) + b"user\0postgres\0database\0postgres\0\0"
        for _ in range(count):
            wire = socket.create_connection(("127.0.0.1", server.postgres_port), 60)
            wire.settimeout(60)
            wire.sendall(struct.pack(">I", len(body) + 4) + body)
            self.answer(wire)
            self.ask(wire, "begin")
            self.answer(wire)
            self.wires.append(wire)

    @staticmethod
    def ask(wire, text):
        body = text.encode() + b"\0"
        wire.sendall(b"Q" + struct.pack(">I", len(body) + 4) + body)

    @staticmethod
    def answer(wire):
        """The letters of the messages up to ReadyForQuery."""
        def exactly(count):
            got = b""
            while len(got) < count:
                piece = wire.recv(count - len(got))
                if not piece:
                    raise ConnectionError("the server has closed the connection")
                got += piece
            return got

        letters = ""
        while not letters.endswith("Z"):
            head = exactly(5)
            letters += chr(head[0])
            exactly(struct.unpack(">I", head[1:])[0] - 4)
        return letters

    def ask_all(self, text):
        for wire in self.wires:
            self.ask(wire, text)

    def answered(self):
        with selectors.DefaultSelector() as selector:
            for wire in self.wires:
                selector.register(wire, selectors.EVENT_READ)
            return [key.fileobj for key, _ in selector.select(0)]

    def leave(self, count):
        for wire in self.wires[:count]:
            wire.close()
        del self.wires[:count]


def one(wire, text, *values):
    return wire.execute(text, values).fetchone()[0]


def running(wire, text):
    return one(wire, "select count(*) from pg_stat_activity where query = %s and state = 'active'", text)


def doors_answer(server, what):
    slowest = 0
    for _ in range(20):
        fine, took = redis_ping(server)
        slowest = max(slowest, took if fine else 60)
        begun = time.monotonic()
        with contextlib.closing(come(server)) as wire:
            assert one(wire, "select 1") == 1
        slowest = max(slowest, time.monotonic() - begun)
    tally.check(f"{what}: all doors answer", slowest < 5, f"{slowest:.2f} s")


def ends(server, crowd, text):
    with contextlib.closing(come(server)) as boss:
        before = running(boss, text)
        pids = [row[0] for row in boss.execute("select pid from pg_stat_activity where query = %s and state = 'active' limit 2", (text,))]
        for nth, (end, pid) in enumerate(zip(("pg_cancel_backend", "pg_terminate_backend"), pids)):
            begun = time.monotonic()
            one(boss, f"select {end}({pid})")
            tally.check(f"{text}: {end}", until(lambda: len(crowd.answered()) == nth + 1, 10) and time.monotonic() - begun < 1, f"{time.monotonic() - begun:.2f} s")
        for wire in crowd.answered():
            wire.close()
            crowd.wires.remove(wire)
        begun = time.monotonic()
        crowd.leave(20)
        tally.check(f"{text}: clients leave", until(lambda: running(boss, text) == before - 22, 10) and time.monotonic() - begun < 2, f"{time.monotonic() - begun:.2f} s")


def waiters(count, memory):
    texts = ["select * from t", "update t set k = k where id = 0", "lock table t in share mode", "create index on t (k)", "alter table t alter k set default 0", "select pg_advisory_lock(1)"]
    with Server("--memory", memory, "--max-connections", str(count + 200), postgres=True) as server:
        holder = come(server)
        holder.execute("create table t (id int primary key, k int)")
        threads = status(server, "Threads")
        for text in texts:
            crowd = Crowd(server, count)
            threads = max(threads, status(server, "Threads"))
            holder.execute("begin")
            holder.execute("lock table t")
            holder.execute("select pg_advisory_lock(1)")
            crowd.ask_all(text)
            with contextlib.closing(come(server)) as boss:
                tally.check(f"{text}: all wait", until(lambda: running(boss, text) == count))
            tally.check(f"{text}: they keep no threads", status(server, "Threads") <= threads + 4, f"{threads}, {status(server, 'Threads')}")
            doors_answer(server, text)
            ends(server, crowd, text)
            if text == texts[-1]:
                break
            holder.execute("rollback")
            holder.execute("select pg_advisory_unlock_all()")
            if text.startswith(("select", "update", "lock")):
                good = sum("E" not in Crowd.answer(wire) for wire in crowd.wires)
                tally.check(f"{text}: all others go on", good == len(crowd.wires), f"{good} of {len(crowd.wires)}")
            else:
                tally.check(f"{text}: one goes on", until(lambda: len(crowd.answered()) == 1))
            crowd.leave(len(crowd.wires))
        share = status(server, "RssAnon") / 1024 / int(memory.removesuffix("mb"))
        tally.check("memory", share <= 1.1, f"{share:.2f} of the setting")
        begun = time.monotonic()
        code = server.terminate()
        tally.check("SIGTERM", code == 0 and time.monotonic() - begun < 5, f"{code} after {time.monotonic() - begun:.1f} s")
        crowd.leave(len(crowd.wires))


arguments = argparse.ArgumentParser()
arguments.add_argument("--sessions", type=int, default=1000)
arguments.add_argument("--memory", default="128mb")
arguments = arguments.parse_args()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
limit = hard if hard != resource.RLIM_INFINITY else 1 << 20
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
waiters(min(arguments.sessions, limit - 300), arguments.memory)
tally.close()
