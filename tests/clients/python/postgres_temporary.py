"""Temporary objects at the PostgreSQL door by psycopg and psql: what psql lists, sessions beside each other, DISCARD ALL as poolers send it, thousands of tables, sessions that end and a server that is killed in the middle.

    postgres_temporary.py           at a server of its own
    postgres_temporary.py PORT      at a server that runs, a real PostgreSQL too (without the parts that read the server's memory or kill it)"""

import os
import subprocess
import sys

import psycopg

from beluga import Server, Tally

tally = Tally()
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts/postgres.sh")
TABLES = int(os.environ.get("TEMPORARY_TABLES", "2000"))


def connect(port, **more):
    more.setdefault("autocommit", True)
    return psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", sslmode="disable", **more)


def error(connection, text):
    try:
        connection.execute(text)
    except psycopg.Error as found:
        return found.sqlstate
    return None


def listed(port):
    """The lists of psql. N stands for the number of the session."""
    folder = subprocess.run([SCRIPT, "bin"], capture_output=True, text=True).stdout.strip()
    psql = os.path.join(folder, "psql")
    if not os.path.exists(psql):
        return tally.skip("no psql")
    script = """drop table if exists shown; create table shown (a int primary key, b text);
        create temp table shown (c int check (c > 0), d serial); create temp view seen as select c from shown; create temp sequence counted;
        \\d shown
        \\d public.shown
        \\dt
        \\dv
        \\ds
        \\d seen
        drop table public.shown;"""
    done = subprocess.run(
        [psql, "-X", "-A", "-t", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", "postgres"],
        input="\n".join(line.strip() for line in script.splitlines()), capture_output=True, text=True, env={**os.environ, "PGSSLMODE": "disable"},
    )
    words = [word for word in done.stdout.replace("pg_temp_", "pg_temp_ ").split("\n")]
    found = [line for line in (without_numbers(word) for word in words) if line]
    expected = [
        "c|integer|||", "d|integer||not null|nextval('shown_d_seq'::regclass)",
        "a|integer||not null|", "b|text|||",
        "pg_temp_N|shown|table|postgres",
        "pg_temp_N|seen|view|postgres",
        "pg_temp_N|counted|sequence|postgres", "pg_temp_N|shown_d_seq|sequence|postgres",
        "c|integer|||",
    ]
    tally.equal("what psql lists", found, expected)
    tally.equal("its errors", done.stderr.strip(), 'NOTICE:  table "shown" does not exist, skipping')


def without_numbers(line):
    head, mark, rest = line.partition("pg_temp_ ")
    return head + "pg_temp_N" + rest.lstrip("0123456789") if mark else line


def sessions(port):
    with connect(port) as one, connect(port) as other:
        one.execute("drop table if exists t")
        one.execute("create table t (a int)")
        one.execute("insert into t values (1)")
        read = lambda connection: connection.execute("select a from t where a < %s", (100,), prepare=True).fetchall()
        tally.equal("before", (read(one), read(other)), ([(1,)], [(1,)]))
        one.execute("create temp table t (a int)")
        one.execute("insert into t values (2)")
        tally.equal("beside a temporary table", (read(one), read(other)), ([(2,)], [(1,)]))
        other.execute("create temp table t (a int)")
        tally.equal("of both", (read(one), read(other)), ([(2,)], []))
        one.execute("discard all")
        one.execute("deallocate all")
        tally.equal("DISCARD ALL", (one.execute("select a from t where a < 100").fetchall(), read(other)), ([(1,)], []))
        one.execute("create temp table mine (a int)")
        tally.equal("another session's table", error(other, "select * from mine"), "42P01")
        tally.equal("DROP twice", (error(other, "drop table t"), error(other, "drop table t"), error(other, "drop table t")), (None, None, "42P01"))


def transactions(port):
    with connect(port) as connection:
        connection.execute("drop table if exists t")
        connection.execute("create table t (a int)")
        for nth in range(20):
            try:
                with connection.transaction():
                    connection.execute("create temp table t (a int) on commit drop")
                    connection.execute("insert into t select generate_series(1, 100)")
                    with connection.transaction():
                        connection.execute("create temp view v as select count(*) from t")
                        tally.equal("in the transaction", connection.execute("select * from v").fetchone(), (100,))
                    if nth % 2:
                        raise KeyError
            except KeyError:
                pass
            tally.equal("after it", connection.execute("select count(*) from t").fetchone(), (0,))
        connection.execute("drop table t")


def resident(server):
    with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def churn(connection, count, keeps=False):
    cursor = connection.cursor()
    for nth in range(count):
        cursor.execute(f"create temp table churned{nth if keeps else ''} (a serial primary key, b text unique)")
        if nth % 10 == 0:
            cursor.execute("insert into churned (b) values ('x')" if not keeps else f"insert into churned{nth} (b) values ('x')")
        if not keeps:
            cursor.execute("drop table churned")


def memory(port, server):
    """Tables that come and go hold nothing."""
    with connect(port) as connection:
        churn(connection, TABLES // 5)
        before = resident(server)
        churn(connection, TABLES)
        after = resident(server)
        tally.check(f"memory after {TABLES} temporary tables", after < before + 24_000, f"{before} kB, then {after} kB")
        tally.equal("none is left", connection.execute("select count(*) from pg_class where relnamespace = pg_my_temp_schema()").fetchone(), (0,))


def ends(port, server):
    """Sessions that end with tables, in transactions too, and a server that is killed with them."""
    for nth in range(6):
        connection = connect(port)
        churn(connection, 50, keeps=True)
        if nth % 2:
            connection.execute("begin")
            connection.execute("create temp table late (a int)")
            connection.execute("drop table churned1")
        connection.close()
    connection = connect(port)
    churn(connection, 50, keeps=True)
    connection.execute("begin")
    connection.execute("create temp table late (a int)")
    server.kill()
    server.start()
    with connect(server.postgres_port) as after:
        tally.equal("after the crash", error(after, "select * from churned1"), "42P01")
        tally.equal("no schema is left", after.execute("select count(*) from pg_namespace where nspname like 'pg_temp%'").fetchone(), (0,))
        churn(after, 20)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        # Beside another server: its answers are the expected ones.
        [part(int(sys.argv[1])) for part in (listed, sessions, transactions)]
        tally.close()
    with Server(postgres=True) as server:
        for part in (listed, sessions, transactions):
            try:
                part(server.postgres_port)
            except psycopg.Error as found:
                tally.check(part.__name__, False, repr(found))
        for part in (memory, ends):
            try:
                part(server.postgres_port, server)
            except psycopg.Error as found:
                tally.check(part.__name__, False, repr(found))
        server.terminate()
    tally.close()
