"""A crowd of sessions waits, in SLEEP, for one row, for one table and for one user-level lock: all doors answer, KILL works, clients that leave and SIGTERM end every wait. `--sessions` says how many."""

import argparse
import contextlib
import os
import resource
import selectors
import socket
import struct
import time

import pymysql

from beluga import Server, Tally, redis_ping, status, until
from sql import ask

tally = Tally()
COM_QUERY = 3


def come(server, database=None):
    return pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", database=database, connect_timeout=60, read_timeout=60, ssl_disabled=True, autocommit=True)


class Crowd:
    """Sessions on bare sockets: thousands of them cost the client little."""

    def __init__(self, server, count, first=()):
        self.wires = []
        for _ in range(count):
            wire = socket.create_connection(("127.0.0.1", server.mysql_port), 60)
            wire.settimeout(60)
            self.read(wire)
            self.send(wire, 1, struct.pack("<IIB23x", 0x0008A205, 1 << 24, 255) + b"root\0" + b"\0" + b"mysql_native_password\0")
            answer = self.read(wire)
            if answer[0] == 0xFE:
                # Another method of proving a password, which there is not.
                self.send(wire, 3, b"")
                answer = self.read(wire)
            assert answer[0] == 0, answer
            for text in first:
                self.send(wire, 0, bytes([COM_QUERY]) + text.encode())
                assert self.read(wire)[0] == 0, text
            self.wires.append(wire)

    @staticmethod
    def send(wire, sequence, payload):
        wire.sendall(struct.pack("<I", len(payload) | sequence << 24) + payload)

    @staticmethod
    def read(wire):
        def exactly(count):
            got = b""
            while len(got) < count:
                piece = wire.recv(count - len(got))
                if not piece:
                    raise ConnectionError("the server has closed the connection")
                got += piece
            return got

        return exactly(struct.unpack("<I", exactly(4))[0] & 0xFFFFFF)

    def ask_all(self, text):
        for wire in self.wires:
            self.send(wire, 0, bytes([COM_QUERY]) + text.encode())

    def answered(self):
        """Those that have an answer, or were closed."""
        with selectors.DefaultSelector() as selector:
            for wire in self.wires:
                selector.register(wire, selectors.EVENT_READ)
            return [key.fileobj for key, _ in selector.select(0)]

    def leave(self, count):
        for wire in self.wires[:count]:
            wire.close()
        del self.wires[:count]

    def close(self):
        self.leave(len(self.wires))


def doors_answer(server, what, database=None):
    slowest = 0
    for _ in range(20):
        fine, took = redis_ping(server)
        slowest = max(slowest, took if fine else 60)
        begun = time.monotonic()
        with contextlib.closing(come(server, database)) as wire:
            assert ask(wire, "select 1") == [[1]]
        slowest = max(slowest, time.monotonic() - begun)
    tally.check(f"{what}: all doors answer", slowest < 5, f"{slowest:.2f} s")


def running(wire, text):
    return sum(row[7] == text for row in ask(wire, "show processlist"))


def kills(server, crowd, text, what):
    """KILL QUERY ends a statement, KILL a session, and the client's departure both, each within a second."""
    with contextlib.closing(come(server)) as boss:
        before = running(boss, text)
        ids = [row[0] for row in ask(boss, "show processlist") if row[7] == text]
        begun = time.monotonic()
        ask(boss, f"kill query {ids[0]}")
        tally.check(f"{what}: KILL QUERY", until(lambda: len(crowd.answered()) == 1, 10) and time.monotonic() - begun < 1, f"{time.monotonic() - begun:.2f} s")
        begun = time.monotonic()
        ask(boss, f"kill {ids[1]}")
        tally.check(f"{what}: KILL", until(lambda: len(crowd.answered()) == 2, 10) and time.monotonic() - begun < 1, f"{time.monotonic() - begun:.2f} s")
        for wire in crowd.answered():
            wire.close()
            crowd.wires.remove(wire)
        begun = time.monotonic()
        crowd.leave(20)
        tally.check(f"{what}: clients leave", until(lambda: running(boss, text) == before - 22, 10) and time.monotonic() - begun < 2, f"{time.monotonic() - begun:.2f} s, {running(boss, text)} of {before}")


def stops(server, what):
    begun = time.monotonic()
    code = server.terminate()
    took = time.monotonic() - begun
    tally.check(f"{what}: SIGTERM", code == 0 and took < 5, f"{code} after {took:.1f} s")


def sleepers(count, memory):
    with Server("--memory", memory, "--max-connections", str(count + 200), mysql=True) as server:
        idle = status(server, "RssAnon")
        crowd = Crowd(server, count)
        print(f"an idle session takes {(status(server, 'RssAnon') - idle) / count:.1f} KiB", flush=True)
        threads = status(server, "Threads")
        crowd.ask_all("select sleep(3600)")
        with contextlib.closing(come(server)) as boss:
            tally.check("sleepers: all sleep", until(lambda: running(boss, "select sleep(3600)") == count))
            tally.check("sleepers: they keep no threads", status(server, "Threads") <= threads + 4, f"{threads}, {status(server, 'Threads')}")
        doors_answer(server, "sleepers")
        kills(server, crowd, "select sleep(3600)", "sleepers")
        tally.check("sleepers: nobody else has woken", crowd.answered() == [])
        share = status(server, "RssAnon") / 1024 / int(memory.removesuffix("mb"))
        tally.check("sleepers: memory", share <= 1.1, f"{share:.2f} of the setting")
        stops(server, "sleepers")
        crowd.close()


def row_waiters(count, memory):
    update = "update crowd.t set k = k + 1 where id = 1"
    with Server("--memory", memory, "--max-connections", str(count + 200), mysql=True) as server:
        holder = come(server)
        ask(holder, "create database crowd")
        ask(holder, "create table crowd.t (id int primary key, k int)")
        ask(holder, "insert into crowd.t values (1, 0), (2, 0)")
        crowd = Crowd(server, count, ["set innodb_lock_wait_timeout = 1000"])
        ask(holder, "begin")
        ask(holder, update)
        threads = status(server, "Threads")
        crowd.ask_all(update)
        with contextlib.closing(come(server)) as boss:
            tally.check("row: all wait", until(lambda: running(boss, update) == count))
        tally.check("row: they keep no threads", status(server, "Threads") <= threads + 4, f"{threads}, {status(server, 'Threads')}")
        doors_answer(server, "row")
        with contextlib.closing(come(server)) as boss:
            tally.check("row: another row", ask(boss, "update crowd.t set k = 7 where id = 2") == [])
        kills(server, crowd, update, "row")
        left = len(crowd.wires)
        ask(holder, "commit")
        begun = time.monotonic()
        good = sum(Crowd.read(wire)[0] == 0 for wire in crowd.wires)
        tally.check("row: all others go on", good == left, f"{good} of {left}, {time.monotonic() - begun:.1f} s")
        tally.check("row: each once", ask(holder, "select k from crowd.t where id = 1") == [[left + 1]], str(ask(holder, "select k from crowd.t where id = 1")))
        ask(holder, "begin")
        ask(holder, update)
        crowd.ask_all(update)
        with contextlib.closing(come(server)) as boss:
            tally.check("row: all wait again", until(lambda: running(boss, update) == left))
        share = status(server, "RssAnon") / 1024 / int(memory.removesuffix("mb"))
        tally.check("row: memory", share <= 1.1, f"{share:.2f} of the setting")
        stops(server, "row")
        crowd.close()


def table_waiters(count, memory):
    """All wait for one table: readers, writers, LOCK TABLES, DDL and GET_LOCK."""
    texts = ["select * from crowd.t", "update crowd.t set k = k + 1 where id = 1", "lock tables crowd.t read", "alter table crowd.t comment = 'x'", "select get_lock('one', 3600)"]
    with Server("--memory", memory, "--max-connections", str(count + 200), mysql=True) as server:
        holder = come(server)
        ask(holder, "create database crowd")
        ask(holder, "create table crowd.t (id int primary key, k int)")
        ask(holder, "insert into crowd.t values (1, 0)")
        crowd = Crowd(server, count, ["set lock_wait_timeout = 3600"])
        threads = status(server, "Threads")
        for text in texts:
            ask(holder, "select get_lock('one', 0)")
            ask(holder, "lock tables crowd.t write")
            crowd.ask_all(text)
            with contextlib.closing(come(server)) as boss:
                tally.check(f"table, {text}: all wait", until(lambda: running(boss, text) == len(crowd.wires)))
            tally.check(f"table, {text}: they keep no threads", status(server, "Threads") <= threads + 4, f"{threads}, {status(server, 'Threads')}")
            doors_answer(server, f"table, {text}")
            kills(server, crowd, text, f"table, {text}")
            ask(holder, "unlock tables")
            ask(holder, "do release_lock('one')")
            if "get_lock" in text:
                tally.check(f"table, {text}: one has it", until(lambda: len(crowd.answered()) == 1) and Crowd.read(crowd.answered()[0])[0] != 0xFF)
            else:
                good = sum(Crowd.read(wire)[0] != 0xFF for wire in crowd.wires)
                tally.check(f"table, {text}: all others go on", good == len(crowd.wires), f"{good} of {len(crowd.wires)}")
            crowd.close()
            crowd = Crowd(server, count, ["set lock_wait_timeout = 3600"])
        share = status(server, "RssAnon") / 1024 / int(memory.removesuffix("mb"))
        tally.check("table: memory", share <= 1.1, f"{share:.2f} of the setting")
        stops(server, "table")
        crowd.close()


def thread_waiters(memory):
    """A wait that cannot be suspended holds one of a bounded number of threads. Beyond the bound it fails, and other requests always have a thread."""
    with Server("--memory", memory, mysql=True) as server:
        holder = come(server)
        ask(holder, "create database crowd")
        ask(holder, "create table crowd.t (id int primary key)")
        ask(holder, "insert into crowd.t values (1), (2), (3)")
        ask(holder, "select get_lock('one', 0)")
        ask(holder, "begin")
        ask(holder, "select * from crowd.t where id = 1 for update")
        for text, error in [
            ("select sleep(3600) from crowd.t", 1135),
            ("select get_lock('one', 3600) from crowd.t limit 1", 1135),
            ("select a.id from crowd.t a join crowd.t b on a.id = b.id where a.id = 1 for update", 1205),
        ]:
            crowd = Crowd(server, 200, ["set lock_wait_timeout = 3600", "set innodb_lock_wait_timeout = 3600"])
            crowd.ask_all(text)
            with contextlib.closing(come(server)) as boss:
                settled = until(lambda: running(boss, text) + len(crowd.answered()) == 200)
                waiting = running(boss, text)
                told = {struct.unpack("<H", Crowd.read(wire)[1:3])[0] for wire in crowd.answered()}
                tally.check(f"{text}: some wait, the others hear of it", settled and 0 < waiting < 200 and told == {error}, f"{waiting} wait, {told}")
            doors_answer(server, text)
            with contextlib.closing(come(server)) as boss:
                begun = time.monotonic()
                crowd.close()
                tally.check(f"{text}: all have left", until(lambda: running(boss, text) == 0, 20) and time.monotonic() - begun < 3, f"{time.monotonic() - begun:.2f} s")
        crowd = Crowd(server, 30)
        crowd.ask_all("select sleep(3600) from crowd.t")
        with contextlib.closing(come(server)) as boss:
            until(lambda: running(boss, "select sleep(3600) from crowd.t") + len(crowd.answered()) == 30)
        stops(server, "threads")
        crowd.close()


arguments = argparse.ArgumentParser()
arguments.add_argument("--sessions", type=int, default=1500)
arguments.add_argument("--memory", default="128mb")
arguments = arguments.parse_args()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
limit = hard if hard != resource.RLIM_INFINITY else 1 << 20
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
sessions = min(arguments.sessions, limit - 300)
sleepers(sessions, arguments.memory)
row_waiters(sessions, arguments.memory)
table_waiters(sessions, arguments.memory)
thread_waiters(arguments.memory)
tally.close()
