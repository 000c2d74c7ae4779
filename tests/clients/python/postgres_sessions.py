"""Random transactions of several sessions at the PostgreSQL door, and an oracle that needs no order of them: whatever waits for whom, nothing is lost, done twice or left without its parent.

    postgres_sessions.py [--seconds N] [--seed N]     at a server of its own
    postgres_sessions.py --port PORT                  at a server that runs, a real PostgreSQL too

What must hold: a row's counter is the number of committed increments of it, also if its key was changed meanwhile; a job is taken by one session; ON CONFLICT counts every insert; every child has its parent; a transaction
that reads a sum twice in REPEATABLE READ reads the same."""

import argparse
import collections
import random
import threading
import time

import psycopg

DATABASE = "sessions"
ROWS, JOBS, THREADS = 12, 400, 6
# Errors after which a transaction is tried no more: serialization, deadlock, a lock that is not waited for, a key that is taken, a foreign key.
EXPECTED = {"40001", "40P01", "55P03", "23505", "23503"}

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
parser.add_argument("--seconds", type=float, default=10)
parser.add_argument("--seed", type=int, default=None)


class Oracle:
    def __init__(self):
        self.lock = threading.Lock()
        self.counted, self.jobs, self.words = collections.Counter(), collections.Counter(), collections.Counter()
        self.done, self.failed, self.wrong = collections.Counter(), collections.Counter(), []


def increment(cursor, prng, notes):
    """Increments a row by its number, its key or a range. `name` never changes, `id` does."""
    how = prng.randrange(4)
    wanted = prng.randrange(ROWS)
    if how == 0:
        cursor.execute(f"update t set v = v + 1 where name = {wanted} returning name")
    elif how == 1:
        cursor.execute(f"update t set v = v + 1 where id between {wanted} and {wanted + 2} and v >= 0 returning name")
    elif how == 2:
        cursor.execute(f"select name from t where name in ({wanted}, {(wanted + 5) % ROWS}) order by v desc for update")
        names = [row[0] for row in cursor.fetchall()]
        for name in names:
            cursor.execute(f"update t set v = v + 1 where name = {name}")
            assert cursor.rowcount == 1, f"a locked row is gone: {name}"
            notes["counted"][name] += 1
        return
    else:
        cursor.execute(f"update t set v = t.v + 1 from other o where o.name = t.name and o.kind = {wanted % 3} returning t.name")
    notes["counted"].update(row[0] for row in cursor.fetchall())


def move(cursor, prng, _):
    cursor.execute(f"update t set id = {prng.randrange(1000)} where name = {prng.randrange(ROWS)}")


def take(cursor, prng, notes):
    cursor.execute("update jobs set state = 'done' where id in (select id from jobs where state = 'new' order by prio limit 2 for update skip locked) returning id")
    notes["jobs"].update(row[0] for row in cursor.fetchall())


def count(cursor, prng, notes):
    word = prng.choice("abcd")
    cursor.execute(f"insert into words values ('{word}', 1) on conflict (word) do update set n = words.n + 1")
    notes["words"][word] += 1


def forget(cursor, prng, notes):
    word = prng.choice("abcd")
    cursor.execute(f"delete from words where word = '{word}' returning n")
    for row in cursor.fetchall():
        notes["words"][word] -= row[0]


def adopt(cursor, prng, _):
    parent = prng.randrange(8)
    what = prng.randrange(4)
    if what == 0:
        cursor.execute(f"insert into parents values ({parent}, 0) on conflict do nothing")
    elif what == 1:
        cursor.execute(f"insert into children (parent) values ({parent})")
    elif what == 2:
        cursor.execute(f"update parents set v = v + 1 where id = {parent}")
    else:
        cursor.execute(f"delete from parents where id = {parent}")


def look(cursor, prng, _):
    cursor.execute("select sum(v), count(*) from t")
    before = cursor.fetchone()
    cursor.execute(f"select name from t where name = {prng.randrange(ROWS)} for key share")
    cursor.execute("select sum(v), count(*) from t")
    return before, cursor.fetchone()


STEPS = [increment] * 4 + [move] * 2 + [take, count, count, forget, adopt, adopt, adopt, look]


def run(port, seed, until, oracle):
    prng = random.Random(seed)
    wire = psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname={DATABASE} sslmode=disable", autocommit=True)
    cursor = wire.cursor()
    while time.monotonic() < until and not oracle.wrong:
        notes = {"counted": collections.Counter(), "jobs": collections.Counter(), "words": collections.Counter()}
        level = prng.choice(["read committed", "read committed", "repeatable read"])
        try:
            cursor.execute(f"begin isolation level {level}")
            for nth in range(prng.randrange(1, 4)):
                step = prng.choice(STEPS)
                if prng.random() < 0.3:
                    kept = {name: value.copy() for name, value in notes.items()}
                    cursor.execute(f"savepoint s{nth}")
                    try:
                        step(cursor, prng, notes)
                    except psycopg.Error as error:
                        if error.sqlstate not in EXPECTED:
                            raise
                        oracle.failed[error.sqlstate] += 1
                        cursor.execute(f"rollback to s{nth}")
                        notes = kept
                    else:
                        if prng.random() < 0.3:
                            cursor.execute(f"rollback to s{nth}")
                            notes = kept
                    continue
                seen = step(cursor, prng, notes)
                if seen and level == "repeatable read" and seen[0] != seen[1]:
                    oracle.wrong.append(f"{level}: {seen}")
            if prng.random() < 0.2:
                cursor.execute("rollback")
                continue
            cursor.execute("commit")
            with oracle.lock:
                oracle.counted.update(notes["counted"])
                oracle.jobs.update(notes["jobs"])
                for word, n in notes["words"].items():
                    oracle.words[word] += n
                oracle.done[level] += 1
        except psycopg.Error as error:
            oracle.failed[error.sqlstate] += 1
            if error.sqlstate not in EXPECTED:
                oracle.wrong.append(f"{error.sqlstate} {error}")
            cursor.execute("rollback")
        except AssertionError as error:
            oracle.wrong.append(str(error))
    wire.close()


def main(port, seconds, seed, tally):
    dsn = f"host=127.0.0.1 port={port} user=postgres sslmode=disable"
    with psycopg.connect(dsn + " dbname=postgres", autocommit=True) as admin:
        admin.execute(f"drop database if exists {DATABASE} with (force)")
        admin.execute(f"create database {DATABASE}")
    db = psycopg.connect(dsn + f" dbname={DATABASE}", autocommit=True)
    for statement in [
        "create table t (id int primary key, name int, v int)", "create index on t (name)",
        "create table other (name int primary key, kind int)",
        "create table jobs (id int primary key, prio int, state text)", "create index on jobs (state)",
        "create table words (word text primary key, n int)",
        "create table parents (id int primary key, v int)",
        "create table children (id bigserial primary key, parent int references parents)",
        f"insert into t select i, i, 0 from generate_series(0, {ROWS - 1}) i",
        f"insert into other select i, i % 3 from generate_series(0, {ROWS - 1}) i",
        f"insert into jobs select i, (i * 7) % 50, 'new' from generate_series(1, {JOBS}) i",
    ]:
        db.execute(statement)
    oracle = Oracle()
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=run, args=(port, seed + nth, until, oracle)) for nth in range(THREADS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(f"committed {dict(oracle.done)}, failed {dict(oracle.failed)}")
    tally.check("no session saw anything wrong", not oracle.wrong, oracle.wrong[:3])
    found = dict(db.execute("select name, v from t").fetchall())
    tally.check("every increment counts once", found == {name: oracle.counted[name] for name in range(ROWS)}, (found, dict(oracle.counted)))
    taken = {row[0] for row in db.execute("select id from jobs where state = 'done'").fetchall()}
    tally.check("every job is taken by one session", taken == set(oracle.jobs) and set(oracle.jobs.values()) <= {1}, oracle.jobs.most_common(3))
    words = dict(db.execute("select word, n from words").fetchall())
    tally.check("every insert is counted", words == {word: n for word, n in oracle.words.items() if n}, (words, dict(oracle.words)))
    orphans = db.execute("select count(*) from children c where not exists (select 1 from parents p where p.id = c.parent)").fetchone()[0]
    tally.check("every child has its parent", orphans == 0, orphans)
    by_index = db.execute("select sum(v), count(*) from t where name >= 0").fetchone()
    tally.check("the index has the rows", by_index == (sum(found.values()), ROWS), by_index)


if __name__ == "__main__":
    arguments = parser.parse_args()
    from beluga import Server, Tally

    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    tally = Tally()
    if arguments.port:
        main(arguments.port, arguments.seconds, seed, tally)
    else:
        with Server(postgres=True) as server:
            main(server.postgres_port, arguments.seconds, seed, tally)
    tally.close()
