"""Statements at the PostgreSQL door by psycopg: both protocols, text and binary, pipelines, cursors, COPY, notices, errors; and pgbench in its three modes."""

import os
import re
import struct
import subprocess
import sys
import threading

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.composite import CompositeInfo, register_composite

from beluga import Server, Tally

tally = Tally()
SCRIPT = os.path.join(os.path.dirname(__file__), "../../../scripts/postgres.sh")


def connect(port, **more):
    return psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", sslmode="disable", autocommit=True, **more)


def state(action):
    try:
        action()
    except psycopg.Error as error:
        return error.sqlstate
    return None


def statements(port):
    with connect(port) as connection:
        one = lambda text, values=(), **more: connection.execute(text, values, **more).fetchone()
        tally.equal("a parameter", one("select %s::int4 + 1", (41,)), (42,))
        tally.equal("binary results", one("select 7::int8, 'x'::text, true, null::int4", binary=True), (7, "x", True, None))
        tally.equal("binary parameters", one("select %b::int4, %b::text", (5, "ä")), (5, "ä"))
        connection.execute("create table item (id int4 primary key, name text, price int8)")
        with connection.cursor() as cursor:
            cursor.executemany("insert into item values (%s, %s, %s)", [(i, f"name {i}", i * 10) for i in range(500)])
            tally.equal("executemany", cursor.rowcount, 500)
        tally.equal("prepared", [one("select name from item where id = %s", (i,), prepare=True)[0] for i in range(0, 500, 50)], [f"name {i}" for i in range(0, 500, 50)])
        tally.equal("counts", connection.execute("update item set price = price + 1 where id < 10").rowcount, 10)
        tally.equal("tags", connection.execute("delete from item where id >= 490").statusmessage, "DELETE 10")
        description = connection.execute("select id, name, price from item where false").description
        tally.equal("types of columns", [(column.name, column.type_code) for column in description], [("id", 23), ("name", 25), ("price", 20)])
        with connection.cursor(row_factory=dict_row) as cursor:
            tally.equal("names", cursor.execute("select id, name from item where id = 3").fetchone(), {"id": 3, "name": "name 3"})
        tally.equal("a long result", sum(1 for _ in connection.execute("select a.id, b.id from item a, item b")), 490 * 490)
        tally.equal("a long text", one("select length(%s::text)", ("x" * 5_000_000,)), (5_000_000,))



def composites(port):
    """Rows of composite types in text and binary, as parameters, results and in COPY."""
    with connect(port) as connection:
        connection.execute("create type pair as (a int4, b text)")
        connection.execute("create type nest as (p pair, ps pair[])")
        infos = [CompositeInfo.fetch(connection, name) for name in ("pair", "nest")]
        [register_composite(info, connection) for info in infos]
        pair, nest = (info.python_type for info in infos)
        value = nest(pair(1, 'x "y",'), [pair(2, None), None, pair(None, "")])
        for binary in (False, True):
            one = lambda text, values=(): connection.execute(text, values, binary=binary).fetchone()
            tally.equal("a row", one("select row(1, 'x')::pair, null::pair"), (pair(1, "x"), None))
            tally.equal("a row in text", one("select %t::nest", (value,)), (value,))
            tally.equal("a row in binary", one("select %b::nest", (value,)), (value,))
            tally.equal("an array of rows", one("select %b::pair[]", ([pair(1, "a"), pair(2, "b")],)), ([pair(1, "a"), pair(2, "b")],))
        connection.execute("create table of_rows (id int4, n nest)")
        connection.execute("create table copied (id int4, n nest)")
        connection.execute("insert into of_rows values (1, %b), (2, null), (3, row(null, '{}'))", (value,))
        for form in ("text", "csv", "binary"):
            with connection.cursor() as cursor:
                with cursor.copy(f"copy of_rows to stdout (format {form})") as copy:
                    data = b"".join(copy)
                with cursor.copy(f"copy copied from stdin (format {form})") as copy:
                    copy.write(data)
                same = cursor.execute("select count(*) from of_rows o join copied c on o.id = c.id and o.n is not distinct from c.n").fetchone()
                tally.equal(f"COPY in {form}", same, (3,))
                cursor.execute("truncate copied")
        raw = connection.pgconn
        field = lambda oid, data: struct.pack(">Ii", oid, len(data)) + data

        def answer(data):
            result = raw.exec_params(b"select $1::pair", [data], [infos[0].oid], [1])
            if result.status == psycopg.pq.ExecStatus.TUPLES_OK:
                return result.get_value(0, 0)
            fields = psycopg.pq.DiagnosticField
            return (result.error_field(fields.SQLSTATE), result.error_field(fields.MESSAGE_PRIMARY))

        four, text = field(23, struct.pack(">i", 5)), field(25, b"x")
        tally.equal("a row by hand", answer(struct.pack(">i", 2) + four + text), b"(5,x)")
        tally.equal("a NULL field", answer(struct.pack(">i", 2) + four + struct.pack(">Ii", 25, -1)), b"(5,)")
        tally.equal("too many fields", answer(struct.pack(">i", 3) + four + text + text), (b"42804", b"wrong number of columns: 3, expected 2"))
        wrong = b"binary data has type 25 (text) instead of expected 23 (integer) in record column 1"
        tally.equal("a field of another type", answer(struct.pack(">i", 2) + text + text), (b"42804", wrong))
        tally.equal("a field that is cut", answer(struct.pack(">i", 2) + four + text[:-1]), (b"22P03", b"insufficient data left in message"))
        tally.equal("no field", answer(b""), (b"08P01", b"insufficient data left in message"))
        short = answer(struct.pack(">i", 2) + field(23, b"\0\0\0") + text)
        tally.equal("a short number", short, (b"08P01", b"insufficient data left in message"))
        long = answer(struct.pack(">i", 2) + field(23, b"\0\0\0\0\0") + text)
        tally.equal("a long number", long, (b"22P03", b"improper binary format in record column 1"))
        tally.equal("bytes behind the row", answer(struct.pack(">i", 2) + four + text + b"x"), (b"22P03", b"incorrect binary data format in bind parameter 1"))

def transactions(port):
    with connect(port) as connection:
        connection.execute("create table account (id int4 primary key, amount int8)")
        connection.execute("insert into account values (1, 10), (2, 20)")
        with connection.transaction(force_rollback=True):
            connection.execute("update account set amount = 0")
        tally.equal("rolled back", connection.execute("select amount from account order by id").fetchall(), [(10,), (20,)])
        with connection.transaction():
            connection.execute("update account set amount = amount + 1 where id = 1")
            tally.equal("a savepoint", state(lambda: nested(connection)), "23505")
        tally.equal("committed", connection.execute("select amount from account order by id").fetchall(), [(11,), (20,)])
        connection.execute("begin")
        tally.equal("an error aborts", state(lambda: connection.execute("select 1/0")), "22012")
        tally.equal("aborted", (state(lambda: connection.execute("select 1")), connection.info.transaction_status.name), ("25P02", "INERROR"))
        connection.execute("rollback")
        tally.equal("idle", connection.info.transaction_status.name, "IDLE")


def nested(connection):
    with connection.transaction():
        connection.execute("insert into account values (1, 0)")


def pipelines(port):
    with connect(port) as connection:
        connection.execute("create table log (id int4 primary key)")
        with connection.pipeline():
            for i in range(300):
                connection.execute("insert into log values (%s)", (i,))
            cursor = connection.execute("select count(*) from log")
        tally.equal("a pipeline", cursor.fetchone(), (300,))

        def fails():
            with connection.pipeline():
                connection.execute("insert into log values (1000)")
                connection.execute("insert into log values (1)")
                connection.execute("insert into log values (1001)")

        tally.equal("an error in a pipeline", state(fails), "23505")
        tally.equal("its transaction is undone", connection.execute("select count(*) from log where id >= 1000").fetchone(), (0,))


def copies(port):
    with connect(port) as connection:
        connection.execute("create table line (id int4 primary key, text text)")
        with connection.cursor() as cursor:
            with cursor.copy("copy line from stdin") as copy:
                for i in range(20_000):
                    copy.write_row((i, None if i % 7 == 0 else f"a\tb\\{i}\n"))
            tally.equal("copy in", cursor.rowcount, 20_000)
            with cursor.copy("copy line to stdout") as copy:
                rows = list(copy.rows())
        expected = [(str(i), None if i % 7 == 0 else f"a\tb\\{i}\n") for i in range(20_000)]
        tally.check("copy out", sorted(rows) == sorted(expected), rows[:3])

        def broken():
            with connection.cursor().copy("copy line from stdin") as copy:
                copy.write("30000\tx\nno\n")

        tally.equal("a broken line", state(broken), "22P02")

        def given_up():
            with connection.cursor().copy("copy line from stdin") as copy:
                copy.write_row((40_000, "x"))
                raise ValueError("given up")

        try:
            given_up()
            tally.check("given up", False)
        except ValueError:
            pass
        tally.equal("nothing of them stays", connection.execute("select count(*) from line where id >= 30000").fetchone(), (0,))


def errors(port):
    with connect(port) as connection:
        try:
            connection.execute("select nothing from nowhere")
        except psycopg.Error as error:
            diagnostics = error.diag
            tally.equal("diagnostics", (diagnostics.sqlstate, diagnostics.message_primary, diagnostics.statement_position, diagnostics.severity_nonlocalized),
                        ("42P01", 'relation "nowhere" does not exist', "21", "ERROR"))
        tally.equal("syntax", state(lambda: connection.execute("selec 1")), "42601")
        tally.equal("a wrong number", state(lambda: connection.execute("select %s::int4", ("x",))), "22P02")
        tally.equal("names are quoted", connection.execute(sql.SQL("select 1 as {}").format(sql.Identifier('a "b'))).description[0].name, 'a "b')


def crowd(port):
    """Thirty-two clients at once, each with a table row of its own."""
    with connect(port) as connection:
        connection.execute("create table counter (id int4 primary key, n int8)")
        connection.cursor().executemany("insert into counter values (%s, 0)", [(i,) for i in range(32)])

    def count(nth):
        with connect(port) as connection:
            for _ in range(50):
                connection.execute("update counter set n = n + 1 where id = %s", (nth,))

    threads = [threading.Thread(target=count, args=(nth,)) for nth in range(32)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    with connect(port) as connection:
        tally.equal("a crowd", connection.execute("select sum(n), min(n) from counter").fetchone(), (1600, 50))


def pgbench(port):
    if subprocess.run([SCRIPT, "install"], capture_output=True).returncode != 0:
        return tally.skip("no pgbench")
    program = os.path.join(subprocess.run([SCRIPT, "bin"], capture_output=True, text=True).stdout.strip(), "pgbench")
    target = ["-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]
    made = subprocess.run([program, *target, "-i", "-q", "-s", "1", "postgres"], capture_output=True, text=True, timeout=300)
    tally.check("pgbench -i", made.returncode == 0, made.stderr[-500:])
    if made.returncode != 0:
        return
    for mode in ("simple", "extended", "prepared"):
        for script in ("tpcb-like", "simple-update", "select-only"):
            run = subprocess.run([program, *target, "-n", "-M", mode, "-b", script, "-c", "4", "-t", "50", "postgres"], capture_output=True, text=True, timeout=300)
            done = re.search(r"actually processed: (\d+)/200", run.stdout)
            tally.check(f"pgbench {mode} {script}", run.returncode == 0 and done and done[1] == "200" and "failed transactions: 0" in run.stdout, (run.stdout + run.stderr)[-500:])


PARTS = [statements, composites, transactions, pipelines, copies, errors, crowd, pgbench]

if __name__ == "__main__":
    if len(sys.argv) > 1:
        # Beside another server: its answers are the expected ones.
        [part(int(sys.argv[1])) for part in PARTS]
        tally.close()
    with Server("--memory", "512mb", postgres=True) as server:
        for part in PARTS:
            try:
                part(server.postgres_port)
            except (psycopg.Error, subprocess.TimeoutExpired) as error:
                tally.check(part.__name__, False, repr(error))
        server.terminate()
    tally.close()
