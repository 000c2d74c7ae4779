"""Indexes over expressions, of some rows and with included columns, at random, under changes and kill -9.

Two tables get the same changes. One has indexes over random expressions with random predicates, which come and go; the other has none. Each query must give the same rows of both, each change must count the same, and a change that
the unique indexes of the one refuse is refused by them and not made in the other. After a kill -9 the tables hold the changes that were acknowledged, and `beluga check` finds each entry that there must be, and no other.

    postgres_indexes.py [--seed N] [--rounds N]      against a server of its own
    SERVER_PORT=N postgres_indexes.py ...            against a server that runs (a PostgreSQL, for the test of the test), without kills
"""

import os
import random
import subprocess
import threading
import time

import psycopg

from beluga import Server, Tally, rounds_and_seed

rounds, seed = rounds_and_seed(4)
tally = Tally()
PORT = os.environ.get("SERVER_PORT")
STEPS = 250
COLUMNS = {"a": "int", "b": "int", "s": "text", "v": "varchar(12)", "n": "numeric", "d": "date", "ok": "bool", "f": "float8"}


def literal(rng, column):
    if rng.random() < 0.08:
        return "null"
    match COLUMNS[column]:
        case "int":
            return str(rng.randrange(-5, 25))
        case "text" | "varchar(12)":
            return "'" + rng.choice(["", "x", "X", "abc", "Abc", "aBC", "y%", "_z", "ä", "Ä", "it''s"]) + rng.choice(["", "", "1", "2"]) + "'"
        case "numeric":
            return rng.choice(["0", "1.5", "1.50", "-2.25", "10", "'NaN'", "3"])
        case "date":
            return "'2026-" + rng.choice(["01-01", "02-03", "11-26", "12-31"]) + "'"
        case "bool":
            return rng.choice(["true", "false"])
        case _:
            return rng.choice(["0", "-0.0", "1.5", "'NaN'", "'Infinity'", "2"])


EXPRESSIONS = [
    ("lower(s)", "s"), ("upper(v)", "s"), ("a + b", "a"), ("a * 2", "a"), ("coalesce(a, b, 0)", "a"), ("s || v", "s"), ("length(s)", "a"), ("abs(a)", "a"), ("n * 2", "n"), ("extract(day from d)", "n"),
    ("a % 3", "a"), ("ok and a > 3", "ok"), ("case when a > b then a else b end", "a"), ("(a::text)", "s"), ("left(s, 1)", "s"), ("d + a", "d"), ("-f", "f"), ("a is null", "ok"), ("nullif(a, 7)", "a"), ("round(n)", "n"),
]


def atom(rng):
    if rng.random() < 0.3:
        expression, like = rng.choice(EXPRESSIONS)
    else:
        expression = like = rng.choice(list(COLUMNS))
    kind = rng.random()
    if like == "ok" and kind < 0.6:
        return rng.choice(["({})", "not ({})", "({}) is true", "({}) = true", "({}) is not null"]).format(expression)
    if kind < 0.15:
        return f"({expression}) is " + rng.choice(["null", "not null"])
    if kind < 0.25:
        return f"({expression}) in (" + ", ".join(literal(rng, like) for _ in range(rng.randrange(1, 4))) + ")"
    if kind < 0.35:
        return f"({expression}) between {literal(rng, like)} and {literal(rng, like)}"
    if kind < 0.42 and like in ("s", "v"):
        return f"({expression}) like " + rng.choice(["'a%'", "'%b%'", "'x'", "'A_c%'"])
    return f"({expression}) " + rng.choice(["=", "=", "=", "<", "<=", ">", ">=", "<>"]) + " " + literal(rng, like)


def condition(rng, depth=0):
    kind = rng.random()
    if depth > 1 or kind < 0.55:
        return atom(rng)
    parts = [condition(rng, depth + 1) for _ in range(2)]
    return "(" + (" and " if kind < 0.85 else " or ").join(parts) + ")"


class Play:
    def __init__(self, rng, wire):
        self.rng, self.wire, self.indexes, self.made, self.predicates = rng, wire, [], 0, ["true"]
        self.used = 0

    def ask(self, text):
        """Returns (rows or count, None), or (None, the SQLSTATE)."""
        try:
            cursor = self.wire.execute(text)
            return (cursor.fetchall() if cursor.description else cursor.rowcount), None
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise
            return None, error.sqlstate

    def begin(self):
        columns = ", ".join(f"{name} {ty}" for name, ty in COLUMNS.items())
        for table in ("plain", "keyed"):
            self.wire.execute(f"drop table if exists {table}")
            self.wire.execute(f"create table {table} (id int primary key, {columns})")

    def create_index(self):
        rng = self.rng
        self.made += 1
        parts = [rng.choice(EXPRESSIONS)[0] if rng.random() < 0.6 else rng.choice(list(COLUMNS)) for _ in range(rng.randrange(1, 4))]
        parts = [f"({part})" + rng.choice(["", "", " desc", " nulls first", " desc nulls last"]) for part in parts]
        unique = rng.random() < 0.3
        text = f"create {'unique ' if unique else ''}index i{self.made} on keyed ({', '.join(parts)})"
        if rng.random() < 0.3:
            text += " include (" + ", ".join(rng.sample(list(COLUMNS), rng.randrange(1, 3))) + ")"
        if unique and rng.random() < 0.3:
            text += " nulls not distinct"
        predicate = condition(rng) if rng.random() < 0.6 else None
        if predicate:
            text += f" where {predicate}"
        _, state = self.ask(text)
        if state is None:
            self.indexes.append(f"i{self.made}")
            if predicate:
                self.predicates.append(predicate)
        else:
            tally.check(f"{text}: {state}", state in ("23505", "22003", "22008", "22012"), state)

    def drop_index(self):
        if self.indexes:
            self.wire.execute(f"drop index {self.indexes.pop(self.rng.randrange(len(self.indexes)))}")

    def row(self):
        return ", ".join([str(self.rng.randrange(60))] + [literal(self.rng, name) for name in COLUMNS])

    def change(self):
        """Changes the table with indexes, and then the other, unless an index refuses it."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.45:
            conflict = rng.choice(["", "", " on conflict do nothing", " on conflict (id) do nothing", " on conflict (id) do update set a = excluded.a, s = excluded.s"])
            text = f"insert into {{}} values ({self.row()}){'' if conflict == ' on conflict do nothing' else conflict}"
        elif kind < 0.8:
            sets = ", ".join(f"{name} = {literal(rng, name)}" for name in rng.sample(list(COLUMNS), rng.randrange(1, 4)))
            text = f"update {{}} set {sets} where {condition(rng)}"
        elif kind < 0.88:
            text = f"update {{}} set id = id + 100 where id = {rng.randrange(60)}"
        else:
            text = f"delete from {{}} where {condition(rng)} and id % 3 = {rng.randrange(3)}"
        undone = rng.random() < 0.15
        self.wire.execute("begin")
        found, state = self.ask(text.format("keyed"))
        if state is not None:
            self.wire.execute("rollback")
            return
        expected, other = self.ask(text.format("plain"))
        tally.check(f"{text}: {found} {expected}", (found, state) == (expected, other), (found, state, expected, other))
        self.wire.execute("rollback" if undone or other else "commit")

    def query(self):
        rng = self.rng
        known = rng.choice(self.predicates) if rng.random() < 0.6 else None
        where = condition(rng) if known is None or rng.random() < 0.8 else "true"
        where = f"({known}) and {where}" if known else where
        wanted = rng.choice(["*", "id", "count(*)", ", ".join(rng.sample(list(COLUMNS), 2)), "s, lower(s)"])
        text = f"select {wanted} from {{}} where {where}"
        found, expected = self.ask(text.format("keyed")), self.ask(text.format("plain"))
        def key(rows):
            return sorted(map(repr, rows)) if isinstance(rows, list) else rows
        tally.check(text, (key(found[0]), found[1]) == (key(expected[0]), expected[1]), (found, expected))
        if rng.random() < 0.2:
            plan, _ = self.ask("explain " + text.format("keyed"))
            self.used += any(" using i" in line for (line,) in plan or [])

    def step(self):
        kind = self.rng.random()
        if kind < 0.06 and len(self.indexes) < 12:
            self.create_index()
        elif kind < 0.08:
            self.drop_index()
        elif kind < 0.55:
            self.change()
        else:
            self.query()

    def same(self, name):
        rows = [self.wire.execute(f"select * from {table} order by id").fetchall() for table in ("plain", "keyed")]
        tally.check(f"{name}: the tables are the same", repr(rows[0]) == repr(rows[1]), rows)
        for index in self.indexes:
            _, state = self.ask(f"select pg_get_indexdef('{index}'::regclass)")
            tally.check(f"{name}: {index} is there", state is None, state)


def connect(port):
    return psycopg.connect(host="127.0.0.1", port=port, user="postgres", autocommit=True, sslmode="disable", prepare_threshold=None)


def play(port, number):
    rng = random.Random(f"{seed} {number}")
    with connect(port) as wire:
        one = Play(rng, wire)
        one.begin()
        for _ in range(8):
            one.create_index()
        for _ in range(STEPS):
            one.step()
        one.same(f"round {number}")
        return one


def crash(server, number):
    """Changes both tables in transactions until the server is killed; both must have the same afterwards."""
    rng = random.Random(f"{seed} {number} crash")
    with connect(server.postgres_port) as wire:
        one = Play(rng, wire)
        one.begin()
        for _ in range(8):
            one.create_index()

        changes, wanted = [0], rng.randrange(30, 300)

        def work():
            try:
                while True:
                    changes[0] += 1
                    if rng.random() < 0.1:
                        one.create_index()
                        one.drop_index()
                    one.change()
            except psycopg.Error as error:
                if error.sqlstate is not None:
                    tally.check(f"crash {number}", False, error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        patience = time.monotonic() + 20
        while changes[0] < wanted and time.monotonic() < patience and thread.is_alive():
            time.sleep(0.001)
        server.kill()
        thread.join(20)
    checked = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True, timeout=120)
    tally.check(f"crash {number}: beluga check", checked.returncode == 0, checked.stdout[-500:] + checked.stderr[-500:])
    server.start()
    with connect(server.postgres_port) as wire:
        after = Play(rng, wire)
        after.same(f"crash {number}")
        after.predicates = one.predicates
        for _ in range(40):
            after.query()


def main():
    used = 0
    if PORT:
        for number in range(rounds):
            used += play(int(PORT), number).used
    else:
        with Server(postgres=True) as server:
            for number in range(rounds):
                used += play(server.postgres_port, number).used
                crash(server, number)
            server.terminate()
            checked = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True, timeout=120)
            tally.check("beluga check", checked.returncode == 0, checked.stdout[-500:] + checked.stderr[-500:])
    print(f"{used} of the plans that were looked at use an index")
    tally.check("plans use the indexes", used > 0, used)
    tally.close()


main()
