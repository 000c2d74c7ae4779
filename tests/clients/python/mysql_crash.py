"""kill -9 under load of SQL transactions, restart, and an oracle that knows what was acknowledged.

Each writer moves money between accounts and writes a line to a ledger, in one transaction, several statements; it numbers its lines, so the ledger must hold all numbers up to the last one
acknowledged, or one more. The sum of the accounts never changes, for readers during the load either. What the secondary indexes find is what the tables hold. Tables and indexes are made and dropped
meanwhile: what was acknowledged of that stands too. `beluga check` finds nothing in the folder of each dead server.
"""

import random
import subprocess
import threading
import time

import pymysql

from beluga import Server, Tally, rounds_and_seed

rounds, seed = rounds_and_seed(10)
tally = Tally()
WRITERS, ACCOUNTS, EACH = 4, 12, 1000
# Lost wires and a server that has gone, in PyMySQL's words.
GONE = (pymysql.OperationalError, pymysql.InterfaceError, OSError, EOFError)
AGAIN = (1205, 1213)


def connect(port, **more):
    return pymysql.connect(host="127.0.0.1", port=port, user="root", database="crash", **more)


def note(writer, number):
    """The content of a row: computed from its number, and sometimes too long for a record."""
    size = random.Random(writer * 1_000_003 + number).choice([0, 10, 100, 100, 200, 3_000, 30_000])
    return f"{writer}/{number} " + "x" * size


class Client(threading.Thread):
    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.wrong = port, None
        # Set when it has its connection. The server is not killed before: a machine under load may take longer for that than the load is meant to last.
        self.has_come = threading.Event()

    def come(self, **more):
        wire = connect(self.port, **more)
        self.has_come.set()
        return wire


class Writer(Client):
    def __init__(self, port, number, seed, acknowledged):
        super().__init__(port)
        self.number, self.random, self.acknowledged = number, random.Random(seed), acknowledged

    def transaction(self, cursor, line):
        """True if it was committed."""
        a, b = self.random.sample(range(ACCOUNTS), 2)
        amount = self.random.randrange(1, 20)
        cursor.execute("begin")
        cursor.execute("select balance from accounts where id = %s for update", (a,))
        cursor.execute("update accounts set balance = balance - %s where id = %s", (amount, a))
        cursor.execute("insert into ledger (writer, number, note) values (%s, %s, %s)", (self.number, line, note(self.number, line)))
        cursor.execute("update accounts set balance = balance + %s where id = %s", (amount, b))
        if self.random.random() < 0.1:
            cursor.execute("rollback")
            return False
        cursor.execute("commit")
        return True

    def run(self):
        try:
            cursor = self.come().cursor()
            while True:
                try:
                    if self.transaction(cursor, self.acknowledged[self.number] + 1):
                        self.acknowledged[self.number] += 1
                except pymysql.Error as error:
                    if error.args[0] not in AGAIN:
                        raise
                    cursor.execute("rollback")
        except GONE as error:
            # 2006 and 2013: the server has gone. Anything else is its answer.
            if isinstance(error, pymysql.Error) and error.args[0] not in (0, 2006, 2013):
                self.wrong = repr(error)
        except pymysql.Error as error:
            self.wrong = repr(error)


class Builder(Client):
    """Makes and drops tables and indexes. `tables`: number -> the acknowledged state, or two where one is not acknowledged."""

    def __init__(self, port, seed, tables):
        super().__init__(port)
        self.random, self.tables = random.Random(seed), tables

    def run(self):
        try:
            cursor = self.come(autocommit=True).cursor()
            # Nobody drops it: the next start does, and `beluga check` finds nothing of it.
            cursor.execute("create temporary table scratch (id int auto_increment primary key, k int, v int as (k + 1), key (k), key (v))")
            while True:
                cursor.execute("insert into scratch (k) select balance from accounts")
                if self.random.random() < 0.3:
                    cursor.execute("create temporary table more select * from scratch")
                    cursor.execute("drop temporary table more")
                number = self.random.randrange(6)
                state = self.tables.setdefault(number, {"absent"})
                if state == {"absent"}:
                    state.add("present")
                    cursor.execute(f"create table made{number} (id int primary key, k int, v int as (k * 2), s varchar(20) as (concat('s', k)) stored, key (k), key ((k + id)))")
                    self.tables[number] = {"present"}
                    rows = ", ".join(f"({at}, {at % 7})" for at in range(50))
                    cursor.execute(f"insert into made{number} (id, k) values {rows}")
                elif self.random.random() < 0.2:
                    cursor.execute("drop table if exists copied")
                    cursor.execute(f"create table copied (key (k), key ((k * 2))) select id, k, s from made{number}")
                elif self.random.random() < 0.5:
                    # A VIRTUAL column comes into a key, and so into the rows; a functional index brings a column of its own.
                    parts = self.random.choice(["k, id", "v", "(lower(s)), v", "(k % 3) desc, s"])
                    cursor.execute(f"create index more on made{number} ({parts})")
                    cursor.execute(f"update made{number} set k = k where v > 4")
                    cursor.execute(f"drop index more on made{number}")
                else:
                    state.add("absent")
                    cursor.execute(f"drop table made{number}")
                    self.tables[number] = {"absent"}
        except GONE as error:
            if isinstance(error, pymysql.Error) and error.args[0] not in (0, 2006, 2013):
                self.wrong = repr(error)
        except pymysql.Error as error:
            self.wrong = repr(error)


class Reader(Client):
    def run(self):
        try:
            cursor = self.come(autocommit=True).cursor()
            while self.wrong is None:
                cursor.execute("select sum(balance), count(*) from accounts")
                found = cursor.fetchone()
                if found != (ACCOUNTS * EACH, ACCOUNTS):
                    self.wrong = f"a reader saw {found}"
        except GONE:
            pass


def make(port):
    wire = pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True)
    cursor = wire.cursor()
    cursor.execute("create database crash")
    cursor.execute("use crash")
    cursor.execute("create table accounts (id int primary key, balance int not null)")
    cursor.execute(
        "create table ledger (id bigint auto_increment primary key, writer int not null, number int not null, note text not null, unique key line (writer, number))"
    )
    rows = ", ".join(f"({at}, {EACH})" for at in range(ACCOUNTS))
    cursor.execute(f"insert into accounts values {rows}")


def verify(port, acknowledged, tables, name):
    cursor = connect(port, autocommit=True).cursor()
    cursor.execute("select sum(balance) from accounts")
    tally.equal(f"{name}: money", cursor.fetchone()[0], ACCOUNTS * EACH)
    cursor.execute("select writer, number, note from ledger order by writer, number")
    lines = {writer: [] for writer in range(WRITERS)}
    wrong = []
    for writer, number, text in cursor.fetchall():
        lines[writer].append(number)
        if text != note(writer, number):
            wrong.append((writer, number, text[:40]))
    tally.check(f"{name}: what the lines say", not wrong, wrong[:3])
    for writer, numbers in lines.items():
        known = acknowledged[writer]
        whole = numbers == list(range(1, len(numbers) + 1)) and len(numbers) in (known, known + 1)
        tally.check(f"{name}: lines of writer {writer}", whole, f"{len(numbers)} lines to {numbers[-1:]}, {known} acknowledged")
        cursor.execute("select count(*) from ledger where writer = %s and number > 0", (writer,))
        tally.equal(f"{name}: index of writer {writer}", cursor.fetchone()[0], len(numbers))
        acknowledged[writer] = len(numbers)
    cursor.execute("show tables")
    found = {row[0] for row in cursor.fetchall()}
    if "copied" in found:
        cursor.execute("select count(*), count(s) from copied where k * 2 >= 0")
        tally.check(f"{name}: a table made from a query", cursor.fetchone() in [(50, 50), (0, 0)], "rows by half")
    for number, possible in tables.items():
        state = "present" if f"made{number}" in found else "absent"
        tally.check(f"{name}: table made{number}", state in possible, f"{state}, expected {possible}")
        tables[number] = {state}
        if state == "present":
            cursor.execute(f"select count(*) from made{number} where v <> k * 2 or s <> concat('s', k)")
            tally.equal(f"{name}: generated columns of made{number}", cursor.fetchone()[0], 0)
            cursor.execute(f"select count(*), (select count(*) from made{number}) from made{number} where k + id = 8")
            tally.check(f"{name}: functional index of made{number}", cursor.fetchone() in [(1, 50), (0, 0)], "rows that the index does not find")
            cursor.execute(f"select count(*), sum(k) from made{number}")
            tally.check(f"{name}: rows of made{number}", cursor.fetchone() in [(50, 147), (0, None)], "a statement by half")
            cursor.execute(f"drop table made{number}")
            tables[number] = {"absent"}


def main():
    generator = random.Random(seed)
    acknowledged, tables = [0] * WRITERS, {}
    with Server(mysql=True) as server:
        port = server.mysql_port
        make(port)
        started = []
        for round_number in range(rounds):
            threads = [Writer(port, at, generator.random(), acknowledged) for at in range(WRITERS)]
            threads += [Builder(port, generator.random(), tables), Reader(port)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.has_come.wait(30)
            time.sleep(generator.uniform(0.3, 1.5))
            server.kill()
            for thread in threads:
                thread.join(30)
                tally.check(f"round {round_number}: {type(thread).__name__}", thread.wrong is None, thread.wrong)
            if round_number % 3 == 0:
                checked = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True, timeout=120)
                tally.check(f"round {round_number}: beluga check", checked.returncode == 0, checked.stdout[-500:] + checked.stderr[-500:])
            before = time.monotonic()
            server.start()
            started.append(time.monotonic() - before)
            verify(port, acknowledged, tables, f"round {round_number}")
        started.sort()
        print(f"{rounds} crashes, {sum(acknowledged)} acknowledged transactions, restart {started[len(started) // 2]:.2f} s in the median", flush=True)
    tally.close()


if __name__ == "__main__":
    main()
