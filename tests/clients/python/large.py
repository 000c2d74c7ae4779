"""Transactions and tables larger than `memory`: loaded, looked at by an old snapshot, changed, taken back in parts and as a whole, indexed, altered, locked row by row, grouped, sorted and joined, changed by 64
connections at once; and kill -9 in the middle of each.

What is watched beside the rows: RssAnon stays within a tenth of the setting (as in `memory`), and `beluga check` finds nothing in the folder of each dead server.
`--megabytes 2500 --memory 256mb` is the test in earnest; what `make test` runs is more than its memory too. Values of hundreds of megabytes follow (`long_values`): of 200 MB, in earnest of 1 GB.
"""

import argparse
import random
import subprocess
import threading
import time

import pymysql

import long_values
from beluga import Server, Tally
from sql import ask

parser = argparse.ArgumentParser()
parser.add_argument("--memory", default="64mb")
parser.add_argument("--megabytes", type=int, default=80)
parser.add_argument("--long", type=int, default=200)
arguments = parser.parse_args()
tally = Tally()
LIMIT = int(arguments.memory[:-2]) << {"mb": 20, "gb": 30}[arguments.memory[-2:]]
PAD = 180
ROWS = (arguments.megabytes << 20) // (PAD + 60) // 1000 * 1000
STEP = 1000
GONE = (pymysql.OperationalError, pymysql.InterfaceError, OSError, EOFError)


class Sampler(threading.Thread):
    """The most memory the process had since `begin`."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.most = server, 0

    def run(self):
        while True:
            try:
                with open(f"/proc/{self.server.process.pid}/status") as lines:
                    for line in lines:
                        if line.startswith("RssAnon:"):
                            self.most = max(self.most, int(line.split()[1]) << 10)
            except (OSError, ValueError):
                pass
            time.sleep(0.05)


def come(server, database="large"):
    return pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", database=database, connect_timeout=60, read_timeout=1800, ssl_disabled=True, autocommit=True)


def insert(wire, table, first, last):
    pad = "x" * PAD
    for at in range(first, last, STEP):
        lines = ",".join(f"({number},{number % 1000},{number * 7919 % 1000003},'{pad}')" for number in range(at, min(at + STEP, last)))
        answer = ask(wire, f"insert into {table} values {lines}")
        if answer != []:
            raise AssertionError(answer)


def update(wire, first, last, what):
    for at in range(first, last, 2 * STEP):
        answer = ask(wire, f"update t set {what} where id >= {at} and id < {min(at + 2 * STEP, last)}")
        if answer != []:
            raise AssertionError(answer)


def shown(wire, table="t", index=""):
    return ask(wire, f"select count(*), sum(a), sum(b) from {table} {index}")


def sums(first, last, more=0):
    numbers = range(first, last)
    return [[len(numbers), sum(number % 1000 for number in numbers) + more * len(numbers), sum(number * 7919 % 1000003 for number in numbers)]]


def same(name, answer, expected):
    def plain(rows):
        return [[value if value is None else int(value) for value in row] for row in rows] if isinstance(rows, list) else rows

    tally.check(name, plain(answer) == plain(expected), f"{answer}, not {expected}")


def phase(name, sampler, work):
    sampler.most, began = 0, time.monotonic()
    work()
    share = sampler.most / LIMIT
    tally.check(f"{name}: memory", share <= 1.10, f"{share:.2f} of the setting")
    print(f"{name}: {share:.2f} of the setting, {time.monotonic() - began:.1f} s", flush=True)


def check(server, name):
    done = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True)
    tally.check(f"{name}: beluga check", done.returncode == 0, (done.stdout + done.stderr)[-500:])


def killed(server, name, work, after, wait_for=None):
    """Runs `work` on a connection of its own, kills the server after so many seconds, and starts it again."""
    wire = come(server)

    def run():
        try:
            work(wire)
        except (*GONE, AssertionError):
            pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    time.sleep(after)
    busy = thread.is_alive()
    server.kill()
    thread.join(60)
    check(server, name)
    began = time.monotonic()
    server.start(timeout=900)
    print(f"{name}: killed {'in the middle' if busy else 'when it was over'}, {time.monotonic() - began:.1f} s to start", flush=True)


def crowded(server, sampler):
    """64 connections that each move numbers between rows and look at ranges, until the server is killed: the sums stay what they are."""
    wire = come(server)
    before = shown(wire)
    done, over = [0] * 64, threading.Event()

    def one(number):
        draw = random.Random(number)
        try:
            wire = come(server)
            while not over.is_set():
                low, high = sorted(draw.sample(range(ROWS), 2))
                ask(wire, "begin")
                if ask(wire, f"update t set a = a - 1, pad = '{'y' * draw.randrange(PAD)}' where id = {low}") == ask(wire, f"update t set a = a + 1 where id = {high}") == []:
                    if ask(wire, "commit") == []:
                        done[number] += 1
                ask(wire, "rollback")
                ask(wire, f"select sum(a), max(pad) from t where id between {low} and {low + 300}")
        except (*GONE, AssertionError):
            pass

    sampler.most = 0
    threads = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(64)]
    for thread in threads:
        thread.start()
    time.sleep(max(5, arguments.megabytes / 50))
    share = sampler.most / LIMIT
    over.set()
    tally.check("64 connections: memory", share <= 1.10, f"{share:.2f} of the setting")
    server.kill()
    for thread in threads:
        thread.join(60)
    check(server, "kill in the crowd")
    began = time.monotonic()
    server.start(timeout=900)
    print(f"64 connections: {share:.2f} of the setting, {sum(done)} transactions; {time.monotonic() - began:.1f} s to start", flush=True)
    tally.check("all of them did something", sum(done) > 64, str(done))
    same("the sums stay", shown(come(server)), before)


def play(server):
    sampler = Sampler(server)
    sampler.start()
    ask(come(server, None), "create database large")
    one, other = come(server), come(server)
    ask(one, "create table t (id int primary key, a int, b int, pad varchar(200))")
    half = ROWS // 2

    def load():
        ask(one, "begin")
        insert(one, "t", 0, half)
        ask(one, "savepoint here")
        insert(one, "t", half, ROWS)
        same("others see nothing", shown(other), [[0, None, None]])
        same("it sees itself", shown(one), sums(0, ROWS))
        ask(one, "rollback to savepoint here")
        same("half is taken back", shown(one), sums(0, half))
        insert(one, "t", half, ROWS)
        ask(one, "commit")
        same("others see all", shown(other), sums(0, ROWS))

    def change():
        ask(other, "begin")
        same("a snapshot", shown(other), sums(0, ROWS))
        ask(one, "begin")
        update(one, 0, ROWS, "a = a + 1")
        same("it sees its change", shown(one), sums(0, ROWS, 1))
        same("a snapshot does not", shown(other), sums(0, ROWS))
        ask(one, "commit")
        same("nor afterwards", shown(other), sums(0, ROWS))
        ask(other, "commit")
        same("a new one does", shown(other), sums(0, ROWS, 1))

    def regret():
        ask(one, "begin")
        update(one, 0, half, "a = a + 5, pad = 'short'")
        same("it deletes", ask(one, f"delete from t where id < {2 * STEP}"), [])
        ask(one, "rollback")
        same("all is taken back", shown(other), sums(0, ROWS, 1))

    def lock():
        ask(one, "begin")
        same("every row locked", ask(one, "select count(*) from (select id from t for update) x"), [[ROWS]])
        ask(other, "set innodb_lock_wait_timeout = 1")
        same("others wait for any", ask(other, f"update t set a = 0 where id = {half}"), 1205)
        ask(one, "commit")

    def index():
        same("an index", ask(one, "create index by_b on t (b)"), [])
        same("by the index", ask(one, "select count(*) from t force index (by_b) where b >= 0"), [[ROWS]])
        same("altered", ask(one, "alter table t modify a bigint, add column c int not null default 7, add unique index by_c_id (c, id)"), [])
        same("as before", shown(one), sums(0, ROWS, 1))
        same("by the new index", ask(one, "select count(*) from t force index (by_c_id) where c = 7"), [[ROWS]])
        same("a duplicate", ask(one, "alter table t add unique index no (a)"), 1062)
        same("untouched by it", shown(one), sums(0, ROWS, 1))

    def queries():
        same("a range", ask(one, f"select count(*), sum(a), sum(b) from t where id between {half} and {half + 9999}"), sums(half, half + 10000, 1))
        groups = ask(one, "select a, count(*), min(id), max(id) from t group by a order by a")
        tally.check("groups", len(groups) == 1000 and sum(row[1] for row in groups) == ROWS and all((row[2] + 1) % 1000 == row[0] % 1000 for row in groups), str(groups[:3]))
        many = ask(one, "select count(*), sum(n) from (select b, count(*) n from t group by b, id % 7) x")
        tally.check("many groups", many[0][0] > min(ROWS, 1000003) // 2 and many[0][1] == ROWS, str(many))
        ordered = ask(one, f"select b, id from t order by b, id limit 5 offset {half}")
        expected = sorted((number * 7919 % 1000003, number) for number in range(ROWS))[half : half + 5]
        same("ordered", ordered, [list(row) for row in expected])
        same("a join", ask(one, "select count(*), sum(y.a) from t x join t y on y.id = x.id + 1"), [[ROWS - 1, sums(1, ROWS, 1)[0][1]]])
        like = sum(len(range(number % 1000003, ROWS, 1000003)) for number in range(20000))
        same("a join by an index", ask(one, "select count(*) from t x straight_join t y force index (by_b) on y.b = x.b where x.id < 20000"), [[like]])

    for name, work in (("load", load), ("change", change), ("regret", regret), ("lock", lock), ("index", index), ("queries", queries)):
        phase(name, sampler, work)
    crowded(server, sampler)
    one, other = come(server), come(server)
    seconds = max(1.5, arguments.megabytes / 100)
    killed(server, "kill in ALTER", lambda wire: ask(wire, "alter table t modify a int"), seconds)
    killed(server, "kill in UPDATE", lambda wire: (ask(wire, "begin"), update(wire, 0, ROWS, "a = a + 1, b = b + 1"), time.sleep(900)), seconds * 2)

    def rollback(wire):
        ask(wire, "begin")
        update(wire, 0, half, "a = a + 1")
        started.append(time.monotonic())
        ask(wire, "rollback")

    started = []
    killed(server, "kill in ROLLBACK", rollback, seconds * 2)
    phase("after the crashes", sampler, lambda: None)
    one = come(server)
    add = int(ask(one, "select sum(a) from t")[0][0]) - int(sums(0, ROWS)[0][1])
    same("all or nothing", shown(one), sums(0, ROWS, add // ROWS))
    tally.check("one step", add in (ROWS, 2 * ROWS), f"{add} of {ROWS}")
    same("indexes have all", ask(one, "select count(*) from t force index (by_b) where b >= 0"), [[ROWS]])


with Server("--memory", arguments.memory, "--log-segment", "16mb", "--checkpoint-distance", "64mb", mysql=True) as server:
    play(server)
long_values.play(tally, arguments.long, 256)
tally.close()
