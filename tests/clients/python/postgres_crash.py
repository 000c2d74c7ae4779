"""kill -9 under load at the PostgreSQL door, restart, and an oracle that knows what was acknowledged.

Each writer moves money between accounts and writes a line to a ledger, in one transaction; it numbers its lines, so the ledger must hold all numbers up to the last one acknowledged, or one
more. The sum of the accounts never changes, for readers during the load either. A sequence never gives a number twice, before and after any crash, to any of three sessions, with a cache or without. A COPY FROM STDIN brings in all of
its rows or none, in each format, alone and within a transaction with a savepoint; and so does a table that is made from a query, and a pipeline between two Syncs. A counter that several sessions raise by ON CONFLICT is as high as
they were told. `beluga check` finds nothing in the folder of each dead server.
"""

import random
import subprocess
import threading
import time

import psycopg

from beluga import Server, Tally, rounds_and_seed

rounds, seed = rounds_and_seed(10)
tally = Tally()
LOCK = threading.Lock()
WRITERS, ACCOUNTS, EACH, PIECE = 4, 12, 1000, 300
TAKERS, RAISERS, KEYS, PIPED = 3, 3, 5, 20
# Deadlocks and conflicts: the transaction is tried again.
AGAIN = ("40P01", "40001", "55P03")


def connect(port, **more):
    return psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="crash", sslmode="disable", **more)


def note(writer, number):
    """The content of a row: computed from its number, and sometimes too long for a record."""
    size = random.Random(writer * 1_000_003 + number).choice([0, 10, 100, 100, 200, 3_000, 30_000])
    return f"{writer}/{number} " + "x" * size


class Client(threading.Thread):
    """Works until the server has gone; any other error is the server's answer, and wrong."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.wrong = port, None
        # Set when it has its connection. The server is not killed before: a machine under load may take longer for that than the load is meant to last.
        self.has_come = threading.Event()

    def run(self):
        try:
            with connect(self.port, autocommit=True) as wire:
                self.has_come.set()
                while self.wrong is None:
                    self.work(wire)
        except psycopg.Error as error:
            # Without a state libpq says that the connection is lost.
            if error.sqlstate is not None:
                self.wrong = f"{error.sqlstate} {error}"


class Writer(Client):
    def __init__(self, port, number, seed, acknowledged):
        super().__init__(port)
        self.number, self.random, self.acknowledged = number, random.Random(seed), acknowledged

    def transaction(self, wire, line):
        """True if it was committed."""
        a, b = self.random.sample(range(ACCOUNTS), 2)
        amount = self.random.randrange(1, 20)
        wire.execute("begin")
        wire.execute("select balance from accounts where id = %s for update", (a,))
        wire.execute("update accounts set balance = balance - %s where id = %s", (amount, a))
        if self.random.random() < 0.2:
            wire.execute("savepoint undone")
            wire.execute("update accounts set balance = balance + 1 where id = %s", (a,))
            wire.execute("rollback to savepoint undone")
        wire.execute("insert into ledger (writer, number, note) values (%s, %s, %s)", (self.number, line, note(self.number, line)))
        wire.execute("update accounts set balance = balance + %s where id = %s", (amount, b))
        if self.random.random() < 0.1:
            wire.execute("rollback")
            return False
        wire.execute("commit")
        return True

    def work(self, wire):
        try:
            if self.transaction(wire, self.acknowledged[self.number] + 1):
                self.acknowledged[self.number] += 1
        except psycopg.Error as error:
            if error.sqlstate not in AGAIN:
                raise
            wire.execute("rollback")


class Taker(Client):
    """Takes numbers of the sequence, alone and for rows. `given` has all that the server has told anybody."""

    def __init__(self, port, seed, given):
        super().__init__(port)
        self.random, self.given = random.Random(seed), given

    def work(self, wire):
        draw = self.random.random()
        if draw < 0.3:
            self.given["ticket"].append(wire.execute("select nextval('ticket')").fetchone()[0])
        elif draw < 0.6:
            self.given["ticket"].append(wire.execute("insert into tickets (said) values (%s) returning id", (len(self.given),)).fetchone()[0])
        elif draw < 0.7:
            # What is rolled back has been given all the same.
            wire.execute("begin")
            self.given["ticket"].append(wire.execute("select nextval('ticket')").fetchone()[0])
            wire.execute("rollback")
        else:
            self.given["cached"] += [row[0] for row in wire.execute("select nextval('cached') from generate_series(1, 7)").fetchall()]


class Copier(Client):
    """Copies pieces of `PIECE` rows. `pieces`: number -> the row counts that are possible."""

    def __init__(self, port, seed, pieces):
        super().__init__(port)
        self.random, self.pieces = random.Random(seed), pieces

    def work(self, wire):
        number = len(self.pieces)
        breaks, in_block = self.random.random() < 0.3, self.random.random() < 0.5
        self.pieces[number] = {0} if breaks else {0, PIECE}
        if in_block:
            wire.execute("begin")
            wire.execute("savepoint before")
        try:
            self.copy(wire, number, breaks)
        except (psycopg.errors.InvalidTextRepresentation, psycopg.errors.BadCopyFileFormat):
            wire.execute("rollback to before") if in_block else None
        if in_block:
            wire.execute("insert into copied values (%s, (select count(*) from pieces where piece = %s))", (number, number))
            wire.execute("commit")
        if not breaks:
            self.pieces[number] = {PIECE}

    def copy(self, wire, number, breaks):
        format = self.random.choice(["text", "csv", "binary"])
        with wire.cursor() as cursor, cursor.copy(f"copy pieces (piece, at, note) from stdin (format {format})") as copy:
            if format == "csv":
                for at in range(PIECE):
                    copy.write(f'{number},{at},"{note(number, at % 7)}"\n')
                copy.write("none\n" if breaks else "")
                return
            if format == "binary":
                copy.set_types(["int4", "int4", "text"])
            for at in range(PIECE):
                copy.write_row((number, at, note(number, at % 7)))
            if breaks:
                # Half a record, or a number that is none.
                copy.write(b"\0\3\0\0" if format == "binary" else "none\t1\tx\n")


class Piper(Client):
    """Inserts rows by pipelines. Those between two Syncs are one transaction. `piped` has the numbers of the pipelines that were acknowledged."""

    def __init__(self, port, seed, piped):
        super().__init__(port)
        self.random, self.piped = random.Random(seed), piped

    def work(self, wire):
        number = self.piped["next"]
        self.piped["next"] += 1
        breaks = self.random.random() < 0.2
        try:
            with wire.pipeline():
                for at in range(PIPED):
                    wire.execute("insert into piped values (%s, %s)", (number, at))
                if breaks:
                    wire.execute("insert into piped values (%s, 0)", (number,))
            self.piped["done"].add(number)
        except psycopg.errors.UniqueViolation:
            self.piped["broken"].add(number)


class Raiser(Client):
    """Raises counters that others raise too. `raised`: key -> how often that was acknowledged."""

    def __init__(self, port, seed, raised):
        super().__init__(port)
        self.random, self.raised = random.Random(seed), raised

    def work(self, wire):
        key = self.random.randrange(KEYS)
        try:
            wire.execute("insert into raised values (%s, 1) on conflict (key) do update set n = raised.n + 1", (key,), prepare=True)
            with LOCK:
                self.raised[key] += 1
        except psycopg.Error as error:
            if error.sqlstate not in AGAIN:
                raise


class Builder(Client):
    """Makes and drops tables and indexes. `tables`: number -> the acknowledged state, or two where one is not acknowledged."""

    def __init__(self, port, seed, tables):
        super().__init__(port)
        self.random, self.tables = random.Random(seed), tables

    def work(self, wire):
        number = self.random.randrange(6)
        state = self.tables.setdefault(number, {"absent"})
        if state == {"absent"}:
            state.add("present")
            wire.execute(f"create table made{number} as select id, id % 7 as k, 's' || id as s from generate_series(0, 49) as of(id)")
            self.tables[number] = {"present"}
        elif self.random.random() < 0.5:
            wire.execute(f"create index more{number} on made{number} ({self.random.choice(['k, id', 's', 'k desc, s'])})")
            wire.execute(f"update made{number} set s = s || '' where k > 4")
            wire.execute(f"drop index more{number}")
        else:
            state.add("absent")
            wire.execute(f"drop table made{number}")
            self.tables[number] = {"absent"}


class Reader(Client):
    def work(self, wire):
        found = wire.execute("select sum(balance), count(*) from accounts").fetchone()
        if found != (ACCOUNTS * EACH, ACCOUNTS):
            self.wrong = f"a reader saw {found}"


def make(port):
    with psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", sslmode="disable", autocommit=True) as wire:
        wire.execute("create database crash")
    with connect(port, autocommit=True) as wire:
        wire.execute("create table accounts (id int primary key, balance int not null)")
        wire.execute("create table ledger (id bigserial primary key, writer int not null, number int not null, note text not null, unique (writer, number))")
        wire.execute("create sequence ticket")
        wire.execute("create table tickets (id bigint primary key default nextval('ticket'), said int)")
        wire.execute("create sequence cached increment by 3 cache 5")
        wire.execute("create table pieces (piece int, at int, note text, primary key (piece, at))")
        wire.execute("create table copied (piece int primary key, count int8)")
        wire.execute("create table piped (pipeline int, at int, primary key (pipeline, at))")
        wire.execute("create table raised (key int primary key, n int not null)")
        wire.cursor().executemany("insert into accounts values (%s, %s)", [(at, EACH) for at in range(ACCOUNTS)])


class Oracle:
    """What was acknowledged, and what is not known to be."""

    def __init__(self):
        self.acknowledged, self.given, self.pieces, self.tables = [0] * WRITERS, {"ticket": [], "cached": []}, {}, {}
        self.piped, self.raised = {"next": 0, "done": set(), "broken": set()}, dict.fromkeys(range(KEYS), 0)

    def verify(self, port, name):
        with connect(port, autocommit=True) as wire:
            tally.equal(f"{name}: money", wire.execute("select sum(balance) from accounts").fetchone()[0], ACCOUNTS * EACH)
            self.verify_ledger(wire, name)
            self.verify_tickets(wire, name)
            self.verify_pieces(wire, name)
            self.verify_tables(wire, name)
            self.verify_pipelines(wire, name)
            self.verify_raised(wire, name)

    def verify_ledger(self, wire, name):
        lines = {writer: [] for writer in range(WRITERS)}
        wrong = []
        for writer, number, text in wire.execute("select writer, number, note from ledger order by writer, number"):
            lines[writer].append(number)
            if text != note(writer, number):
                wrong.append((writer, number, text[:40]))
        tally.check(f"{name}: what the lines say", not wrong, wrong[:3])
        for writer, numbers in lines.items():
            known = self.acknowledged[writer]
            whole = numbers == list(range(1, len(numbers) + 1)) and len(numbers) in (known, known + 1)
            tally.check(f"{name}: lines of writer {writer}", whole, f"{len(numbers)} lines to {numbers[-1:]}, {known} acknowledged")
            counted = wire.execute("select count(*) from ledger where writer = %s and number > 0", (writer,)).fetchone()[0]
            tally.equal(f"{name}: index of writer {writer}", counted, len(numbers))
            self.acknowledged[writer] = len(numbers)

    def verify_tickets(self, wire, name):
        for sequence, given in self.given.items():
            given.append(wire.execute(f"select nextval('{sequence}')").fetchone()[0])
            tally.equal(f"{name}: numbers of {sequence} given twice", len(given) - len(set(given)), 0)
        # Rows whose numbers nobody was told are below the next number too.
        highest = wire.execute("select coalesce(max(id), 0) from tickets").fetchone()[0]
        given = self.given["ticket"]
        tally.check(f"{name}: the sequence goes on", given[-1] > max([highest, *given[:-1]]), (given[-1], highest))

    def verify_pipelines(self, wire, name):
        found = dict(wire.execute("select pipeline, count(*) from piped group by pipeline").fetchall())
        wrong = [number for number, count in found.items() if count != PIPED or number in self.piped["broken"]]
        tally.check(f"{name}: pipelines are whole", not wrong, wrong[:3])
        tally.check(f"{name}: pipelines that were acknowledged", self.piped["done"] <= found.keys(), sorted(self.piped["done"] - found.keys())[:3])

    def verify_raised(self, wire, name):
        found = {key: 0 for key in range(KEYS)} | dict(wire.execute("select key, n from raised").fetchall())
        wrong = [(key, n, self.raised[key]) for key, n in found.items() if not self.raised[key] <= n]
        # Each session may have raised one more that it was not told.
        tally.check(f"{name}: counters", not wrong and sum(found.values()) <= sum(self.raised.values()) + RAISERS, (found, self.raised))
        self.raised.update(found)

    def verify_pieces(self, wire, name):
        found = dict(wire.execute("select piece, count(*) from pieces group by piece").fetchall())
        wrong = [(piece, found.get(piece, 0), possible) for piece, possible in self.pieces.items() if found.get(piece, 0) not in possible]
        tally.check(f"{name}: pieces that were copied", not wrong and found.keys() <= self.pieces.keys(), wrong[:3])
        self.pieces.update({piece: {found.get(piece, 0)} for piece in self.pieces})
        differs = wire.execute("select piece, count from copied c where count <> (select count(*) from pieces p where p.piece = c.piece)").fetchall()
        tally.equal(f"{name}: what their transactions counted", differs, [])

    def verify_tables(self, wire, name):
        found = {row[0] for row in wire.execute("select tablename from pg_tables where schemaname = 'public'")}
        for number, possible in self.tables.items():
            state = "present" if f"made{number}" in found else "absent"
            tally.check(f"{name}: table made{number}", state in possible, f"{state}, expected {possible}")
            if state == "present":
                tally.equal(f"{name}: rows of made{number}", wire.execute(f"select count(*), sum(k) from made{number}").fetchone(), (50, 147))
                wire.execute(f"drop table made{number}")
            self.tables[number] = {"absent"}


def main():
    generator = random.Random(seed)
    oracle, started = Oracle(), []
    with Server(postgres=True) as server:
        port = server.postgres_port
        make(port)
        for round_number in range(rounds):
            threads = [Writer(port, at, generator.random(), oracle.acknowledged) for at in range(WRITERS)]
            threads += [Taker(port, generator.random(), oracle.given) for _ in range(TAKERS)]
            threads += [Raiser(port, generator.random(), oracle.raised) for _ in range(RAISERS)]
            threads += [Copier(port, generator.random(), oracle.pieces), Piper(port, generator.random(), oracle.piped), Builder(port, generator.random(), oracle.tables), Reader(port)]
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
            oracle.verify(port, f"round {round_number}")
        started.sort()
        print(f"{rounds} crashes, {sum(oracle.acknowledged)} acknowledged transactions, {sum(map(len, oracle.given.values()))} numbers, {sum(oracle.raised.values())} raised, {len(oracle.piped['done'])} pipelines, {len(oracle.pieces)} pieces, restart {started[len(started) // 2]:.2f} s in the median", flush=True)
    tally.close()


if __name__ == "__main__":
    main()
