"""The Python client of clients/python against a server: types both ways, pipelines, digests that are forgotten, plans beside SQL, sessions of many threads, kills, timeouts, a lost connection."""

import contextlib
import datetime
import decimal
import io
import os
import sys
import tempfile
import threading
import time

from beluga import Server, Tally

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))

from beluga_xrpc import Connection, ConnectionLost, Identifier, Pool, Raw, ServerError, SessionEnded, Statement, Timeout
from beluga_xrpc import plan as p

tally = Tally()


def messages():
    """The checked-in messages match the compiler's output for the proto file."""
    from grpc_tools import protoc

    clients, name = os.path.join(ROOT, "clients"), "xrpc_pb2.py"
    with tempfile.TemporaryDirectory(prefix="beluga-proto-") as out:
        assert protoc.main(["protoc", f"-I{clients}", f"--python_out={out}", os.path.join(clients, "xrpc.proto")]) == 0
        made, kept = (open(os.path.join(folder, name)).read() for folder in (out, os.path.join(clients, "python", "beluga_xrpc")))
    tally.check("messages are those of clients/xrpc.proto", made == kept)


def readme(pool, server):
    """The example in the client's README does what it says."""
    pool.execute("create database shop")
    pool.execute("create table shop.item (id int primary key, name varchar(20), price double)")
    pool.execute("create user app identified with mysql_native_password by 'secret'")
    pool.execute("grant all on shop.* to app")
    with open(os.path.join(ROOT, "clients", "python", "README.md")) as file:
        lines = file.read().split("```python\n")[1].split("```")[0]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(lines.replace("33660", str(server.xrpc_port)), {})
    tally.equal("the README's example", said.getvalue(), "pen costs 1.5\n")
    tally.check("in ten lines", lines.count("\n") <= 10)
    pool.execute("drop user app")
    pool.execute("drop database shop")


def fails(name, code, action):
    try:
        action()
    except ServerError as error:
        tally.equal(name, error.code, code)
        return error
    tally.check(name, False, "it worked")


COLUMNS = {
    "ti": "tinyint", "tu": "tinyint unsigned", "i": "int", "b": "bigint", "bu": "bigint unsigned", "y": "year", "f": "float", "d": "double", "n": "decimal(20,4)", "nn": "decimal(65,30)",
    "c": "char(5)", "v": "varchar(40)", "vb": "varbinary(20)", "bi": "binary(4)", "e": "enum('a','b c','ö')", "s": "set('x','y','zz')", "bits": "bit(10)", "da": "date", "dt": "datetime(6)",
    "tm": "time(6)", "t": "text", "bl": "blob", "j": "json",
}
D = decimal.Decimal
ROWS = [
    (127, 255, 2**31 - 1, 2**63 - 1, 2**64 - 1, 2155, 1.5, 1e300, D("9999999999999999.9999"), D("0.000000000000000000000000000001"), "é字'\"\\", "a\0b", b"\xff\0", b"\0\1\2\3", "ö",
     frozenset({"x", "zz"}), 1023, datetime.date(9999, 12, 31), datetime.datetime(2024, 2, 29, 13, 7, 0, 123456), -datetime.timedelta(hours=838, minutes=59, seconds=59), "long", b"bytes", '{"a": [1, null]}'),
    (-128, 0, -(2**31), -(2**63), 0, 1901, -0.25, -0.1, D("-12.3401"), D("-" + "9" * 35 + "." + "9" * 30), "", "", b"", b"abcd", "a",
     frozenset(), 0, datetime.date(1000, 1, 1), datetime.datetime(1999, 12, 31), datetime.timedelta(seconds=30, microseconds=5), "", b"", '"ä"'),
    (None,) * len(COLUMNS),
]


def types(session):
    session.execute(f"create table types (id int primary key auto_increment, {', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
    names = ", ".join(COLUMNS)
    for row in ROWS:
        session.execute(f"insert into types ({names}) values ({', '.join('?' for _ in row)})", *row)
    answer = session.execute(f"select {names} from types order by id")
    tally.equal("rows of all types", answer.rows, ROWS)
    tally.equal("decimals keep their digits", [str(row[8]) for row in answer.rows], ["9999999999999999.9999", "-12.3401", "None"])
    tally.equal("names of columns", [column.name for column in answer.columns], list(COLUMNS))
    short = ", ".join(list(COLUMNS)[:20])
    for repeat in ("", ", (select 1 union select 2) twice, types other, types third"):
        select = f"select {', '.join('a.' + name for name in short.split(', '))} from types a{repeat} order by a.id"
        tally.equal("chunks and rows are the same", session.execute(select, chunks=True).rows, session.execute(select).rows)
    tally.equal("columns without names", session.execute("select id from types", names=False).columns[0].name, "")
    session.execute("set sql_mode = ''")
    session.execute("create table zero (d date, t datetime)")
    session.execute("insert into zero values ('0000-00-00', '0000-00-00 00:00:00')")
    tally.equal("dates that are none", session.execute("select * from zero").rows, [("0000-00-00", "0000-00-00 00:00:00")])


def statements(pool, session):
    session.execute("create table t (id int primary key auto_increment, n int, key by_n (n))")
    answer = session.execute("insert into t (n) values (?), (?), (?)", 10, 20, None)
    tally.equal("what an INSERT tells", (answer.affected, answer.insert_id, answer.columns), (3, 1, []))
    update = "update t set n = 10 where n = 10"
    tally.equal("rows found and rows changed", (session.execute(update).affected, session.execute(update, capabilities=0).affected), (1, 0))
    tally.equal("an UPDATE's line", session.execute(update).info, "Rows matched: 1  Changed: 0  Warnings: 0")
    error = fails("a key twice", 1062, lambda: session.execute("insert into t values (1, 1)"))
    tally.equal("its state", (error.sql_state, error.fatal), ("23000", False))
    tally.equal("names as arguments", session.execute("select ? from ? where id = 2", Identifier("n"), Identifier("t")).rows, [(20,)])
    tally.equal("a list as an argument", session.execute("select id from t where id in (?) order by id", Raw("1, 2")).rows, [(1,), (2,)])
    tally.equal("truth", session.execute("select ?, ?", True, False).rows, [(1, 0)])
    tally.equal("a statement outside of sessions", pool.execute("select count(*) from t", schema="shop", hint="/* here */").rows, [(3,)])
    fails("one that fails", 1146, lambda: pool.execute("select * from shop.nowhere"))
    with pool.session() as other:
        other.set_schema("nowhere")
        fails("a database that is not there", 1049, lambda: other.execute("select 1"))


def digests(session):
    by_id = Statement("select n from t where id = ?")
    tally.equal("by digest", [session.execute(by_id, id).rows for id in (1, 2, 1)], [[(10,)], [(20,)], [(10,)]])
    # More than the server keeps.
    others = [Statement(f"select {at}") for at in range(3000)]
    for start in range(0, 3000, 50):
        pipeline = session.pipeline()
        for other in others[start : start + 50]:
            pipeline.add(other)
        tally.equal("a pipeline of digests", [answer.rows for answer in pipeline.collect()], [[(at,)] for at in range(start, start + 50)])
    tally.equal("by a digest that was forgotten", session.execute(by_id, 2).rows, [(20,)])
    session.connection.known.add(Statement("select 77").digest)
    tally.equal("one that the server never had, at the end of a pipeline", [answer.rows for answer in session.pipeline().add("select 1").add(Statement("select 77")).collect()], [[(1,)], [(77,)]])


def pipelines(session):
    pipeline = session.pipeline()
    for at in range(500):
        pipeline.add("select ?", at)
    tally.equal("more answers than the server keeps in line", [answer.rows for answer in pipeline.collect()], [[(at,)] for at in range(500)])
    pipeline = session.pipeline().add("insert into t values (50, 1)").then("insert into t values (50, 2)").then("insert into t values (51, 1)").add("select id from t where id >= 50")
    *found, last = pipeline.collect()
    tally.equal("what follows a failed request", [getattr(answer, "code", 0) for answer in found], [0, 1062, 1062])
    tally.equal("was not executed", last.rows, [(50,)])
    session.execute("delete from t where id = 50")
    session.execute("create table big (id int primary key, s varchar(200))")
    for start in range(0, 4000, 1000):
        session.execute("insert into big values " + ", ".join(f"({at}, repeat('x', 150))" for at in range(start, start + 1000)))
    rows = list(session.stream("select id, s from big order by id", token=1))
    tally.equal("rows by tokens of a kilobyte", rows, [(at, "x" * 150) for at in range(4000)])
    left = session.stream("select id, s from big order by id", token=1)
    tally.equal("a row of an answer that is left", next(left)[0], 0)
    tally.equal("the next statement passes over the rest", session.execute("select 3").rows, [(3,)])
    tally.equal("which has no more rows", list(left)[:1], [])
    tally.equal("chunks by tokens", session.execute("select id, s from big order by id", token=1, chunks=True).rows, rows)


def plans(session):
    session.execute("create table p (a int, b int, s varchar(20), d decimal(10,2), primary key (a, b), key by_s (s))")
    session.execute("insert into p values (1, 1, 'x', 1.5), (1, 2, 'y', null), (2, 1, 'x', 3), (3, 7, 'zebra', -4)")
    table = p.table("p", "shop")
    a, b, s, d = (p.reference(at) for at in range(4))
    one = p.parameter(0)
    everything = p.scan(table)
    for sql, read, *parameters in [
        ("select * from p where a = 1", p.get(table, [p.key(a=1)])),
        ("select * from p where (a, b) in ((1, 2), (3, 7)) order by a", p.get(table, [p.key(a=1, b=2), p.key(3, 7)])),
        ("select s, a from p where s = 'x' order by a", p.get(p.table("p", "shop", "by_s"), [p.key(s="x")]).columns("s", "a")),
        ("select * from p where a = 3", p.get(p.table(one, p.parameter(1), "PRIMARY"), [p.key(a=p.parameter(2))]), Identifier("p"), Identifier("shop"), 3),
        ("select b, a from p", everything.columns(1, 0)),
        ("select * from p order by a desc, b desc", p.scan(table, reverse=True)),
        ("select * from p where a between 1 and 2", p.between(table, p.key(1), p.key(a=2))),
        ("select * from p where a >= 2 order by a desc", p.between(table, p.key(a=2), reverse=True)),
        ("select b * 2, s from p where a = 1", everything.filter(a == one).compute(twice=b * 2, s=s), 1),
        *((f"select {sql} from p", everything.aggregate(kind, b)) for kind, sql in [
            ("COUNT", "count(b)"), ("COUNT_DISTINCT", "count(distinct b)"), ("SUM", "sum(b)"), ("SUM_DISTINCT", "sum(distinct b)"), ("AVG", "avg(b)"), ("AVG_DISTINCT", "avg(distinct b)"),
            ("MIN", "min(b)"), ("MAX", "max(b)"),
        ]),
        *((f"select * from p where {sql}", everything.filter(condition)) for sql, condition in [
            ("a = b", a == b), ("a <> b", a != b), ("d <=> null", d.same_as(None)), ("a < b", a < b), ("a <= b", a <= b), ("a > b", a > b), ("a >= b", a >= b),
            ("a = 1 and b = 2", (a == 1) & (b == 2)), ("a = 1 or b = 7", (a == 1) | (b == 7)), ("not (a = 1)", ~(a == 1)), ("d is null", d.is_null()), ("d is not null", d.is_not_null()),
            ("s like 'z%'", s.like("z%")), ("s not like '%e%'", s.not_like("%e%")), ("b in (2, 7)", b.is_in(2, 7)), ("b not in (2, 7)", b.is_not_in(2, 7)), ("d > -5.5", d > -5.5),
        ]),
        *((f"select {sql} from p", everything.compute(x=of)) for sql, of in [
            ("a + b", a + b), ("a - b", a - b), ("a * b", a * b), ("a / b", a / b), ("a div b", a // b), ("a % b", a % b), ("-a", -a), ("+a", +a), ("5 - a", p.literal(5) - a),
        ]),
    ]:
        expected, plan = session.execute(sql).rows, read.plan()
        for _ in range(2):
            tally.equal(sql, session.execute(plan, *parameters).rows, expected)
    tally.equal("a plan's rows by column", session.execute(everything.plan(), chunks=True).rows, session.execute("select * from p").rows)
    fails("a plan of no table", 1146, lambda: session.execute(p.scan(p.table("nowhere", "shop")).plan()))


def crowd(pool):
    wrong = []

    def one(thread):
        sessions = [pool.session() for _ in range(50)]
        for at, session in enumerate(sessions):
            session.execute("set @mine = ?", thread * 100 + at)
        for _ in range(3):
            sent = [session.pipeline().add("select @mine").send() for session in sessions]
            wrong.extend(at for at, pipeline in enumerate(sent) if pipeline.collect()[0].rows != [(thread * 100 + at,)])
        for session in sessions:
            session.close()

    threads = [threading.Thread(target=one, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    tally.equal("two hundred sessions on four connections", wrong, [])


def transactions(pool, session):
    session.execute("begin")
    session.execute("insert into t values (101, 1)")
    session.savepoint("here")
    session.execute("insert into t values (102, 1)")
    session.rollback_to("here")
    session.release("here")
    fails("a savepoint that is gone", 1305, lambda: session.rollback_to("here"))
    other = pool.session()
    tally.equal("others see nothing of it", other.execute("select id from shop.t where id > 100").rows, [])
    session.execute("commit")
    tally.equal("until it is committed", other.execute("select id from shop.t where id > 100").rows, [(101,)])
    other.execute("begin")
    other.execute("update shop.t set n = 7 where id = 101")
    other.close()
    tally.equal("a closed session holds no lock", session.execute("update t set n = 8 where id = 101").affected, 1)
    session.execute("begin")
    session.execute("update t set n = 9 where id = 101")
    for kill, code in (("kill_statement", None), ("kill", 8001)):
        waiting, found = pool.session(), []

        def wait():
            for sql in ("update shop.t set n = 10 where id = 101", "select 1", "select 1"):
                try:
                    found.append(waiting.execute(sql).rows)
                except (ServerError, SessionEnded) as error:
                    found.append(getattr(error, "code", "ended"))

        waiting.execute("select 1")
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.3)
        getattr(waiting, kill)()
        thread.join(30)
        tally.equal(kill, found, [1317, [(1,)], [(1,)]] if code is None else [1317, code, "ended"])
    session.execute("rollback")


def control(pool, server):
    connection = pool.connection()
    tally.equal("what the server can do", connection.ping(), ["polarx_rpc"])
    first = connection.timestamp(5)
    tally.check("timestamps grow by their batches", connection.timestamp() >= first + 5 * 64)
    pool.execute("create user app identified with mysql_native_password by 'secret'")
    pool.execute("grant select on shop.* to app")
    with Connection(port=server.xrpc_port, user="app", password="secret", answer_timeout=0.3) as app:
        session = app.session()
        tally.equal("an account with a password", session.execute("select id from shop.t where id = 1").rows, [(1,)])
        fails("its rights are those of SQL", 1142, lambda: session.execute("delete from shop.t"))
        slow = app.session()
        try:
            slow.execute("select sleep(30)")
            tally.check("no answer in time", False)
        except Timeout:
            tally.check("no answer in time", slow.ended)
        tally.equal("others on the connection go on", session.execute("select 4").rows, [(4,)])
    for user, password in (("app", "Secret"), ("app", ""), ("nobody", "secret")):
        fails("a wrong password", 1045, lambda: Connection(port=server.xrpc_port, user=user, password=password))


def losses(pool, server):
    session = pool.session()
    session.execute("select 1")
    server.kill()
    try:
        session.execute("select 1")
        tally.check("a lost connection is told", False)
    except ConnectionLost:
        tally.check("a lost connection is told", True)
    server.start()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            tally.equal("a pool replaces it", pool.execute("select id from shop.t where id = 101").rows, [(101,)])
            return
        except (ConnectionLost, OSError):
            time.sleep(0.05)
    tally.check("a pool replaces it", False)


messages()
with Server(xrpc=True) as server:
    until = time.monotonic() + 20
    while True:
        try:
            pool = Pool(port=server.xrpc_port, answer_timeout=60)
            break
        except ConnectionRefusedError:
            # Doors open one after the other.
            assert time.monotonic() < until
            time.sleep(0.05)
    readme(pool, server)
    pool.execute("create database shop")
    session = pool.session()
    session.set_schema("shop")
    types(session)
    statements(pool, session)
    digests(session)
    pipelines(session)
    plans(session)
    crowd(pool)
    transactions(pool, session)
    control(pool, server)
    session.close()
    losses(pool, server)
    pool.close()
tally.close()
