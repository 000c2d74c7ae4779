"""A crowd of sessions waits, in SLEEP, for one row, for one table and for one user-level lock: all doors answer, KILL works, clients that leave and SIGTERM end every wait. `--sessions` says how many."""

import contextlib
import struct
import time

import pymysql

import crowd as crowds
from beluga import Server, Tally, status
from crowd import MySQLCrowd
from sql import ask

tally = Tally()


def come(server, database=None):
    return pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", database=database, connect_timeout=60, read_timeout=60, ssl_disabled=True, autocommit=True)


def select_one(server):
    with contextlib.closing(come(server)) as wire:
        return ask(wire, "select 1")[0][0]


def doors_answer(server, what):
    crowds.doors_answer(tally, server, what, lambda: select_one(server))


def running(wire, text):
    return sum(row[7] == text for row in ask(wire, "show processlist"))


def kills(server, crowd, text, what):
    """KILL QUERY ends a statement, KILL a session, and the client's departure both, each within a second."""
    with contextlib.closing(come(server)) as boss:
        ids = [row[0] for row in ask(boss, "show processlist") if row[7] == text]
        interrupts = [("KILL QUERY", lambda: ask(boss, f"kill query {ids[0]}")), ("KILL", lambda: ask(boss, f"kill {ids[1]}"))]
        crowds.ends(tally, crowd, what, lambda: running(boss, text), interrupts)


def sleepers(count, memory):
    with Server("--memory", memory, "--max-connections", str(count + 200), mysql=True) as server:
        with crowds.measured(server, count, "an idle session"):
            crowd = MySQLCrowd(server, count)
        threads = status(server, "Threads")
        with crowds.measured(server, count, "a SLEEP"), contextlib.closing(come(server)) as boss:
            crowd.ask_all("select sleep(3600)")
            tally.until("sleepers: all sleep", lambda: running(boss, "select sleep(3600)") == count)
        with contextlib.closing(come(server)) as boss:
            tally.check("sleepers: they keep no threads", status(server, "Threads") <= threads + 4, f"{threads}, {status(server, 'Threads')}")
        doors_answer(server, "sleepers")
        kills(server, crowd, "select sleep(3600)", "sleepers")
        tally.check("sleepers: nobody else has woken", crowd.answered() == [])
        crowds.keeps_within(tally, server, memory, "sleepers")
        crowds.stops(tally, server, "sleepers")
        crowd.close()


def row_waiters(count, memory):
    update = "update crowd.t set k = k + 1 where id = 1"
    with Server("--memory", memory, "--max-connections", str(count + 200), mysql=True) as server:
        holder = come(server)
        ask(holder, "create database crowd")
        ask(holder, "create table crowd.t (id int primary key, k int)")
        ask(holder, "insert into crowd.t values (1, 0), (2, 0)")
        crowd = MySQLCrowd(server, count, ["set innodb_lock_wait_timeout = 1000"])
        ask(holder, "begin")
        ask(holder, update)
        threads = status(server, "Threads")
        with crowds.measured(server, count, "a wait for a row"), contextlib.closing(come(server)) as boss:
            crowd.ask_all(update)
            tally.until("row: all wait", lambda: running(boss, update) == count)
        tally.check("row: they keep no threads", status(server, "Threads") <= threads + 4, f"{threads}, {status(server, 'Threads')}")
        doors_answer(server, "row")
        with contextlib.closing(come(server)) as boss:
            tally.check("row: another row", ask(boss, "update crowd.t set k = 7 where id = 2") == [])
        kills(server, crowd, update, "row")
        left = len(crowd.wires)
        ask(holder, "commit")
        begun = time.monotonic()
        good = crowd.good()
        tally.check("row: all others go on", good == left, f"{good} of {left}, {time.monotonic() - begun:.1f} s")
        tally.check("row: each once", ask(holder, "select k from crowd.t where id = 1") == [[left + 1]], str(ask(holder, "select k from crowd.t where id = 1")))
        ask(holder, "begin")
        ask(holder, update)
        crowd.ask_all(update)
        with contextlib.closing(come(server)) as boss:
            tally.until("row: all wait again", lambda: running(boss, update) == left)
        crowds.keeps_within(tally, server, memory, "row")
        crowds.stops(tally, server, "row")
        crowd.close()


def table_waiters(count, memory):
    """All wait for one table: readers, writers, LOCK TABLES, DDL and GET_LOCK."""
    texts = ["select * from crowd.t", "update crowd.t set k = k + 1 where id = 1", "lock tables crowd.t read", "alter table crowd.t comment = 'x'", "select get_lock('one', 3600)"]
    with Server("--memory", memory, "--max-connections", str(count + 200), mysql=True) as server:
        holder = come(server)
        ask(holder, "create database crowd")
        ask(holder, "create table crowd.t (id int primary key, k int)")
        ask(holder, "insert into crowd.t values (1, 0)")
        crowd = MySQLCrowd(server, count, ["set lock_wait_timeout = 3600"])
        threads = status(server, "Threads")
        for text in texts:
            ask(holder, "select get_lock('one', 0)")
            ask(holder, "lock tables crowd.t write")
            crowd.ask_all(text)
            with contextlib.closing(come(server)) as boss:
                tally.until(f"table, {text}: all wait", lambda: running(boss, text) == len(crowd.wires))
            tally.check(f"table, {text}: they keep no threads", status(server, "Threads") <= threads + 4, f"{threads}, {status(server, 'Threads')}")
            doors_answer(server, f"table, {text}")
            kills(server, crowd, text, f"table, {text}")
            ask(holder, "unlock tables")
            ask(holder, "do release_lock('one')")
            if "get_lock" in text:
                has_it = tally.until(f"table, {text}: one answers", lambda: len(crowd.answered()) == 1)
                tally.check(f"table, {text}: one has it", has_it and crowd.is_good(crowd.answer(crowd.answered()[0])))
            else:
                good = crowd.good()
                tally.check(f"table, {text}: all others go on", good == len(crowd.wires), f"{good} of {len(crowd.wires)}")
            crowd.close()
            crowd = MySQLCrowd(server, count, ["set lock_wait_timeout = 3600"])
        crowds.keeps_within(tally, server, memory, "table")
        crowds.stops(tally, server, "table")
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
            crowd = MySQLCrowd(server, 200, ["set lock_wait_timeout = 3600", "set innodb_lock_wait_timeout = 3600"])
            crowd.ask_all(text)
            with contextlib.closing(come(server)) as boss:
                tally.until(f"{text}: all wait or hear of it", lambda: running(boss, text) + len(crowd.answered()) == 200)
                waiting = running(boss, text)
                told = {struct.unpack("<H", crowd.answer(wire)[1:3])[0] for wire in crowd.answered()}
                tally.check(f"{text}: some wait, the others hear of it", 0 < waiting < 200 and told == {error}, f"{waiting} wait, {told}")
            doors_answer(server, text)
            with contextlib.closing(come(server)) as boss:
                crowd.close()
                tally.until(f"{text}: all have left", lambda: running(boss, text) == 0, 3)
        crowd = MySQLCrowd(server, 30)
        crowd.ask_all("select sleep(3600) from crowd.t")
        with contextlib.closing(come(server)) as boss:
            tally.until("threads: all sleep or hear of it", lambda: running(boss, "select sleep(3600) from crowd.t") + len(crowd.answered()) == 30)
        crowds.stops(tally, server, "threads")
        crowd.close()


sessions, memory = crowds.arguments(1500)
sleepers(sessions, memory)
row_waiters(sessions, memory)
table_waiters(sessions, memory)
thread_waiters(memory)
tally.close()
