"""kill -9 amid a large transaction: the doors open before it is rolled back.

A transaction updates, deletes and inserts some 100,000 rows of a table with two indexes, 300,000 changes; then the server is killed, again and again amid the rollback, and stopped in order amid it. After each
start the answers come at once and show the table as it was; rows of the transaction are locked, all others are not; what is committed amid the rollback, in rows that are free again too, stands after the next
kill; the table cannot be altered meanwhile, and a temporary table of the transaction does not stand in the way. `--rows 1700000` plays it with five million changes and prints how long each start took.
"""

import argparse
import random
import subprocess
import threading
import time

import pymysql

from beluga import Server, Tally

arguments = argparse.ArgumentParser()
arguments.add_argument("--rows", type=int, default=100_000)
arguments.add_argument("--kills", type=int, default=3)
arguments.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
arguments.add_argument("--memory", default="128mb")
arguments = arguments.parse_args()
ROWS, tally = arguments.rows, Tally()
print(f"seed {arguments.seed}", flush=True)
generator = random.Random(arguments.seed)
INTERRUPTED = 1317
# As `big` was made: a value that says which row it is of.
TOTALS = "select count(*), sum(id), sum(k), sum(crc32(note)) from {}"


def connect(server, **more):
    return pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", autocommit=True, read_timeout=600, **more)


def ask(cursor, text, *values):
    cursor.execute(text, values)
    return cursor.fetchall()


def fails(cursor, text):
    """The number of the error."""
    try:
        cursor.execute(text)
    except pymysql.Error as error:
        return error.args[0]
    return 0


def load(cursor):
    cursor.execute("create database undone")
    cursor.execute("use undone")
    cursor.execute("create table big (id int primary key, k int not null, note varchar(80) not null, key (k), key (note))")
    cursor.execute("create table small (id int primary key, n int not null)")
    cursor.execute("insert into small values (1, 0), (2, 0)")
    cursor.execute("set cte_max_recursion_depth = 1000000000")
    for first in range(0, ROWS, 50_000):
        last = min(first + 50_000, ROWS) - 1
        rows = f"with recursive n (i) as (select {first} union all select i + 1 from n where i < {last})"
        cursor.execute(f"insert into big {rows} select i * 2, i % 1000, concat('row ', i, ' ', repeat('x', i % 40)) from n")


def change(cursor):
    """Three changes a row: the row, and an entry of an index that goes and one that comes. Then some that go and some that come."""
    cursor.execute("create temporary table scratch (id int primary key, key (id))")
    cursor.execute("begin")
    cursor.execute("insert into scratch select id from big where id < 1000")
    changed = cursor.execute("update big set k = k + 1000")
    tally.equal("rows changed", changed, ROWS)
    # Rows that were rolled back before the crash are free afterwards.
    cursor.execute("savepoint here")
    cursor.execute("update big set note = 'regretted' where id between 2000 and 2100")
    cursor.execute("rollback to here")
    cursor.execute("delete from big where id % 40 = 0")
    cursor.execute("insert into big (id, k, note) select id + 1, 7, 'new' from big where id % 30 = 2")


def left(cursor):
    """Changes that are not taken back yet."""
    rows = ask(cursor, "select trx_rows_modified from information_schema.innodb_trx where trx_state = 'ROLLING BACK' and trx_mysql_thread_id = 0")
    return sum(row[0] for row in rows)


def alter(server, cursor):
    """DDL waits for the rollback, and can be killed meanwhile. Returns its error number."""
    with connect(server, database="undone") as waiting:
        found = []
        thread = threading.Thread(target=lambda: found.append(fails(waiting.cursor(), "alter table big comment = 'altered'")))
        thread.start()
        while not found and not ask(cursor, "select 1 from information_schema.processlist where id = %s and info like 'alter%%'", waiting.thread_id()):
            pass
        cursor.execute(f"kill query {waiting.thread_id()}")
        thread.join()
        return found[0]


class Expected:
    """The committed changes."""

    def __init__(self, totals):
        self.totals, self.free = totals, {}

    def look(self, name, cursor):
        """As it was, but for what was committed since."""
        count, ids, keys, notes = ask(cursor, TOTALS.format("big"))[0]
        added = sum(n for n, _ in self.free.values())
        tally.equal(f"{name}: the table", (count, ids, keys, notes), (*self.totals[:2], self.totals[2] + added, self.totals[3]))


def amid(name, server, expected, small, whole):
    """Checks during the rollback. Without `whole`, only those quick enough for the next kill to hit the rollback. Returns what was left of it before and after, and rows that were locked."""
    with connect(server, database="undone") as wire, connect(server, database="undone") as other:
        cursor, second = wire.cursor(), other.cursor()
        cursor.execute("set innodb_lock_wait_timeout = 1")
        before = left(cursor)
        # The last row of the largest index is put back near the end.
        locked = [row for row in (2, ROWS, ROWS * 2 - 2) if fails(cursor, f"select * from big where id = {row} for update nowait") != 0]
        if whole:
            expected.look(name, second)
        second.execute("update small set n = n + 1 where id = 1")
        small[0] += 1
        # Rows that are free already belong to whoever takes them.
        for row in generator.sample(range(0, ROWS), 20):
            if fails(cursor, f"select * from big where id = {row * 2} for update nowait") == 0:
                cursor.execute("update big set k = k + 5 where id = %s", (row * 2,))
                n, times = expected.free.get(row, (0, 0))
                expected.free[row] = (n + 5, times + 1)
        after = left(cursor)
        # Numbers of temporary tables begin anew; the one of before the crash is there until its rows are put back.
        cursor.execute("create temporary table scratch (id int primary key)")
        cursor.execute("insert into scratch values (1), (2)")
        tally.equal(f"{name}: a temporary table", ask(cursor, "select count(*) from scratch")[0][0], 2)
        altered = alter(server, cursor)
        over = left(cursor) == 0
        tally.check(f"{name}: ALTER", altered == INTERRUPTED or (over and altered == 0), f"error {altered} amid the rollback")
        return before, locked, after


def main():
    small, seen, starts = [0], 0, []
    server = Server("--memory", arguments.memory, mysql=True)
    with server:
        wire = connect(server)
        cursor = wire.cursor()
        load(cursor)
        expected = Expected(ask(cursor, TOTALS.format("big"))[0])
        loser = connect(server, database="undone")
        change(loser.cursor())
        # All before it in the log is on disk with it.
        cursor.execute("update small set n = n + 1 where id = 1")
        small[0] += 1
        for kill in range(arguments.kills):
            name = f"kill {kill}"
            server.kill()
            began = time.monotonic()
            server.start(timeout=600)
            with connect(server, database="undone") as first:
                tally.equal(f"{name}: a commit of before", ask(first.cursor(), "select n from small where id = 1")[0][0], small[0])
            starts.append(time.monotonic() - began)
            before, locked, after = amid(name, server, expected, small, kill >= 1)
            print(f"{name}: first answer after {starts[-1]:.2f} s, {before} changes to take back then, {after} after the look, locked {locked}", flush=True)
            if after > 0:
                seen += 1
                tally.check(f"{name}: rows are locked", locked != [], "none of them")
        tally.check("starts amid the rollback", seen > 0, "the rollback was always over before anybody looked")
        # In order, amid the rollback or behind it.
        tally.equal("SIGTERM", server.terminate(), 0)
        checked = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True, timeout=600)
        tally.check("beluga check", checked.returncode == 0, checked.stdout[-500:] + checked.stderr[-500:])
        server.start(timeout=600)
        with connect(server, database="undone") as wire:
            cursor = wire.cursor()
            began = time.monotonic()
            cursor.execute("set innodb_lock_wait_timeout = 600")
            # It waits until the last row is put back.
            cursor.execute("alter table big add column more int")
            print(f"rolled back {time.monotonic() - began:.2f} s after the last start", flush=True)
            tally.equal("nothing is left", left(cursor), 0)
            expected.look("in the end", cursor)
            tally.equal("CHECK TABLE", ask(cursor, "check table big")[0][3], "OK")
            tally.equal("what was committed beside it", ask(cursor, "select n from small where id = 1")[0][0], small[0])
            for row, (n, _) in expected.free.items():
                tally.equal(f"row {row}", ask(cursor, "select k from big where id = %s", row * 2)[0][0], row % 1000 + n)
        tally.check("the log tells of it", "rolling back beside the service" in server.output(), server.output()[-300:])
    tally.close()


if __name__ == "__main__":
    main()
