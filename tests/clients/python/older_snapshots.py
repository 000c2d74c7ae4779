"""Snapshots that are older than an index or than the rows of a table: random definitions and changes by one session, random reads by another whose transaction is older.

Two tables get the same changes. One gets indexes, rewritten rows and constraints while the reader's transaction is open, the other stays as it is. Under every isolation level and through every door a query must give the same rows of both, whatever plan it gets;
where the definition has made that impossible the reader gets the error of its door (1412, 40001), or sees no rows where PostgreSQL says that it sees none (TRUNCATE, a column of another type). Then the reader changes rows, and both tables must agree again.

    older_snapshots.py [--seed N] [--rounds N]      against a server of its own
    older_snapshots.py --canary                     spoils an answer: must fail"""

import random
import sys

import psycopg
import pymysql

from beluga import Server, Tally, rounds_and_seed

CANARY = "--canary" in sys.argv and not sys.argv.remove("--canary")
rounds, seed = rounds_and_seed(60)
tally = Tally()
COLUMNS = ("id", "x", "y", "s")


class Refused(Exception):
    def __init__(self, code):
        self.code = code


class MySQL:
    LEVELS = ("REPEATABLE READ", "REPEATABLE READ", "SERIALIZABLE", "READ COMMITTED", "READ UNCOMMITTED")
    # A definition, and whether it writes the rows anew.
    DEFINITIONS = [
        ("CREATE INDEX i{n} ON t (x)", False), ("CREATE INDEX i{n} ON t (y, x)", False), ("CREATE UNIQUE INDEX i{n} ON t (y)", False), ("CREATE INDEX i{n} ON t (s, id)", False), ("CREATE INDEX i{n} ON t ((x + y))", True),
        ("ALTER TABLE t MODIFY x BIGINT", True), ("ALTER TABLE t ADD COLUMN z{n} INT DEFAULT 5", False), ("TRUNCATE TABLE t", True), ("ALTER TABLE t DROP INDEX i{n}", False), ("OPTIMIZE TABLE t", True),
    ]

    def __init__(self, server):
        self.connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", autocommit=True)
        self.run("CREATE DATABASE IF NOT EXISTS older")
        self.run("USE older")

    def run(self, text, *_):
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(text)
                return sorted(cursor.fetchall(), key=repr) if cursor.description else cursor.rowcount
            except pymysql.Error as error:
                raise Refused(error.args[0]) from error

    def begin(self, level, rng):
        self.run(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT" if rng.random() < 0.5 else "BEGIN")

    # Rows written anew, and new tables.
    refusals = {1412}
    # A change waits for nobody here, so these are all.
    change_refusals = {1412}


class Postgres:
    LEVELS = ("REPEATABLE READ", "REPEATABLE READ", "SERIALIZABLE", "READ COMMITTED")
    DEFINITIONS = [
        ("CREATE INDEX i{n} ON t (x)", False), ("CREATE INDEX i{n} ON t (y DESC, x)", False), ("CREATE UNIQUE INDEX i{n} ON t (y)", False), ("CREATE INDEX i{n} ON t (s) INCLUDE (id)", False), ("CREATE INDEX i{n} ON t ((x + y))", True),
        ("CREATE INDEX i{n} ON t (id) WHERE x > 3", True), ("ALTER TABLE t ALTER x TYPE bigint", True), ("ALTER TABLE t ADD COLUMN z{n} int DEFAULT 5", False), ("TRUNCATE t", True), ("DROP INDEX IF EXISTS i{n}", False),
        ("ALTER TABLE t ADD CONSTRAINT u{n} UNIQUE (y, x)", False), ("ALTER TABLE t DROP CONSTRAINT t_pkey", True),
    ]

    def __init__(self, server):
        options = {"host": "127.0.0.1", "port": server.postgres_port, "user": "postgres", "autocommit": True}
        with psycopg.connect(dbname="postgres", **options) as first:
            if not first.execute("SELECT 1 FROM pg_database WHERE datname = 'older'").fetchone():
                first.execute("CREATE DATABASE older")
        self.connection = psycopg.connect(dbname="older", prepare_threshold=0, **options)

    def run(self, text, prepare=None):
        try:
            cursor = self.connection.execute(text, prepare=prepare)
            return sorted(cursor.fetchall(), key=repr) if cursor.description else cursor.rowcount
        except psycopg.Error as error:
            raise Refused(error.sqlstate) from error

    def begin(self, level, _):
        self.run(f"BEGIN ISOLATION LEVEL {level}")

    refusals = change_refusals = {"40001"}


def condition(rng):
    small = rng.randrange(-1, 9)
    return rng.choice([
        f"x = {small}", f"x > {small}", f"y = {small * 10}", f"y BETWEEN {small} AND {small * 12}", f"s = 's{small}'", f"x + y = {small * 11}", f"x = {small} AND y > 3", f"x IN ({small}, 2, 3)", f"id = {small}", f"x > 3 AND id < {small}",
        f"x = {small} OR y = {small * 10}", f"EXISTS (SELECT 1 FROM few WHERE few.y = {{t}}.y)", f"y IN (SELECT few.y FROM few)", "TRUE",
    ])


def query(rng):
    columns = rng.choice(["id, x, y, s", "id", "x", "y, x", "count(*)", "max(x), min(y)", "count(y), sum(x)"])
    where = condition(rng)
    order = rng.choice(["", "", " ORDER BY x, id LIMIT 3", " ORDER BY y DESC, id LIMIT 2"]) if "(" not in columns else ""
    joined = "" if rng.random() < 0.7 or "{t}.y" in where or "few.y" in where else " JOIN few f ON f.y = {t}.y"
    columns = ", ".join("{t}." + name if name in COLUMNS else name.replace("(x", "({t}.x").replace("(y", "({t}.y") for name in columns.split(", "))
    if joined:
        for name in COLUMNS:
            where = where.replace(f"{name} ", "{t}." + name + " ") if name != "s" else where.replace("s = '", "{t}.s = '")
        order = order.replace(" x,", " {t}.x,").replace(" y ", " {t}.y ").replace(" id ", " {t}.id ")
    return f"SELECT {columns} FROM {{t}}{joined} WHERE {where}{order}"


def change(rng):
    small = rng.randrange(0, 9)
    where = condition(rng)
    return rng.choice([
        f"UPDATE {{t}} SET s = 'changed' WHERE {where}", f"UPDATE {{t}} SET x = x + 1 WHERE {where}", f"DELETE FROM {{t}} WHERE {where}", f"INSERT INTO {{t}} (id, x, y, s) VALUES ({100 + rng.randrange(50)}, {small}, {1000 + rng.randrange(100)}, 'new')",
    ])


def both(session, text, name, refusals, prepare):
    """The same of both tables. Returns what `t` gave, or the code of its refusal, and what `plain` gave."""
    expected = session.run(text.replace("{t}", "plain"), prepare)
    try:
        return session.run(text.replace("{t}", "t"), prepare), expected
    except Refused as refused:
        tally.check(f"{name}: {text}", refused.code in refusals, f"refused with {refused.code}")
        return refused.code, expected


def play(reader, writer, rng, name):
    for table in ("t", "plain", "few"):
        writer.run(f"DROP TABLE IF EXISTS {table}")
    for table in ("t", "plain"):
        writer.run(f"CREATE TABLE {table} (id int PRIMARY KEY, x int, y int, s varchar(20))")
    writer.run("CREATE TABLE few (y int PRIMARY KEY)")
    writer.run("INSERT INTO few VALUES (0), (10), (30), (50)")
    rows = ", ".join(f"({id}, {rng.randrange(8)}, {id * 10}, 's{rng.randrange(6)}')" for id in range(rng.choice([3, 12, 300])))
    for table in ("t", "plain"):
        writer.run(f"INSERT INTO {table} VALUES {rows}")
    texts = [query(rng) for _ in range(4)]
    if rng.random() < 0.5:
        # Plans from before, which all sessions share.
        for text in texts:
            reader.run(text.replace("{t}", "t"), True)
    level = rng.choice(reader.LEVELS)
    reader.begin(level, rng)
    if rng.random() < 0.8:
        reader.run("SELECT * FROM few")
    history, is_anew = [], False
    keeps = level in ("REPEATABLE READ", "SERIALIZABLE")
    for step in range(rng.randrange(1, 4)):
        for _ in range(rng.randrange(3)):
            text = change(rng)
            try:
                for table in ("plain", "t"):
                    writer.run(text.replace("{t}", table))
            except Refused:
                writer.run("DELETE FROM plain")
                writer.run("INSERT INTO plain SELECT id, x, y, s FROM t")
            history.append(text)
        definition, writes_anew = rng.choice(writer.DEFINITIONS)
        definition = definition.format(n=step)
        try:
            writer.run(definition)
            if definition.startswith("TRUNCATE"):
                writer.run("DELETE FROM plain")
            history.append(definition)
            is_anew |= writes_anew
        except Refused:
            pass
        if rng.random() < 0.5:
            # A plan by the new definition, which the reader must not take.
            writer.run(texts[0].replace("{t}", "t"), True)
    told = f"{name} {level} {history}"
    refusals = reader.refusals if is_anew else set()
    if isinstance(reader, Postgres) and any("TYPE" in text for text in history):
        # The columns of a prepared statement must not change, as in PostgreSQL.
        refusals = refusals | {"0A000"}
    for text in texts + [query(rng) for _ in range(4)]:
        found, expected = both(reader, text, told, refusals, rng.choice([True, None]))
        if CANARY and isinstance(found, list):
            found = found + [("spoilt",)]
        if not isinstance(found, list):
            if isinstance(reader, Postgres):
                reader.run("ROLLBACK")
                return
            continue
        # What TRUNCATE and a new type leave of the rows for an older snapshot: none.
        nothing = isinstance(reader, Postgres) and is_anew and keeps
        empty = nothing and all(row in ((0,), (0, None), (None, None)) for row in found)
        tally.check(f"{told}: {text}", found == expected or empty, f"found {found!r}, expected {expected!r}")
    for text in [change(rng) for _ in range(3)]:
        try:
            found, expected = both(reader, text, told, reader.change_refusals, None)
            if not is_anew and isinstance(found, int) and found < 1000:
                tally.equal(f"{told}: {text}", found, expected)
        except Refused:
            # In the plain table: a row was changed since, or the keys are taken.
            break
    reader.run("ROLLBACK")
    after = [query(rng) for _ in range(2)]
    for text in after:
        found, expected = both(reader, text, f"{told} after it", set(), None)
        tally.equal(f"{told} after it: {text}", found, expected)


with Server(mysql=True, postgres=True) as server:
    for number in range(rounds):
        rng = random.Random(f"{seed} {number}")
        door = rng.choice([MySQL, Postgres])
        play(door(server), door(server), rng, f"round {number} {door.__name__}")
tally.close()
