"""Statements at the PostgreSQL door by asyncpg, which sends and reads every value in binary: values of each type there and back, prepared statements, cursors, pools, COPY, errors, changed tables, logins.

With a port as its argument it runs against that server, so that PostgreSQL itself confirms what it expects."""

import asyncio
import datetime
import decimal
import io
import random
import ssl
import struct
import sys
import tempfile
import uuid

import asyncpg

from beluga import Server, Tally, Wire, certificate

tally = Tally()
DATABASE = "asyncpg_suite"
ROUNDS = 1000


async def connect(port, **more):
    return await asyncpg.connect(**{"host": "127.0.0.1", "port": port, "user": "postgres", "database": DATABASE, "ssl": False, **more})


async def fault(awaitable):
    """The error of a statement, or an object without a state."""
    try:
        await awaitable
    except asyncpg.PostgresError as error:
        return error
    return asyncpg.PostgresError("no error")


def kinds(draw):
    letters = lambda: "".join(draw.choice(["a", "Z", "'", '"', "\\", "\n", "\t", "ä", "\U0001f40b", " ", "%"]) for _ in range(draw.randrange(40)))
    whole = lambda bits: draw.choice([0, 1, -1, (1 << bits - 1) - 1, -(1 << bits - 1), draw.randrange(-(1 << bits - 1), 1 << bits - 1) >> draw.randrange(bits)])
    moment = lambda: datetime.datetime(1, 1, 1) + datetime.timedelta(microseconds=draw.randrange(9999 * 365 * 86_400 * 1_000_000))
    double = lambda: draw.choice([0.0, -0.0, float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308, draw.gauss(0, 1) * 10.0 ** draw.randrange(-300, 300)])
    single = lambda: struct.unpack("f", struct.pack("f", draw.gauss(0, 1) * 10.0 ** draw.randrange(-30, 30)))[0]
    number = lambda: draw.choice([decimal.Decimal(whole(200)).scaleb(-draw.randrange(60)), decimal.Decimal("NaN"), decimal.Decimal("Infinity"), decimal.Decimal("0.000"), decimal.Decimal(10) ** draw.randrange(100)])
    # The client sends whole minutes.
    zone = datetime.timezone(datetime.timedelta(minutes=draw.randrange(-950, 950)))
    return {
        "bool": lambda: draw.random() < 0.5,
        "int2": lambda: whole(16),
        "int4": lambda: whole(32),
        "int8": lambda: whole(64),
        "float4": single,
        "float8": double,
        "numeric": number,
        "text": letters,
        "varchar": letters,
        "bytea": lambda: draw.randbytes(draw.randrange(60)),
        "date": lambda: moment().date(),
        "time": lambda: moment().time(),
        "timetz": lambda: moment().time().replace(tzinfo=zone),
        "timestamp": moment,
        "timestamptz": lambda: moment().replace(tzinfo=datetime.timezone.utc),
        "interval": lambda: datetime.timedelta(days=draw.randrange(-100_000, 100_000), microseconds=whole(40)),
        "uuid": lambda: uuid.UUID(int=draw.getrandbits(128)),
        "json": lambda: '{"a": [1, null, "' + str(whole(60)) + '"]}',
        "oid": lambda: draw.getrandbits(32),
    }


async def values(connection, draw):
    for kind, make in kinds(draw).items():
        await connection.execute(f"create table kind_{kind} (id int4 primary key, v {kind})")
        rows = [(i, None if i % 10 == 9 else make()) for i in range(ROUNDS)]
        await connection.executemany(f"insert into kind_{kind} values ($1, $2)", rows)
        found = [tuple(row) for row in await connection.fetch(f"select id, v from kind_{kind} order by id")]
        wrong = [(one, other) for one, other in zip(found, rows, strict=True) if repr(one) != repr(other) and one != other]
        tally.check(f"{kind} there and back", not wrong, wrong[:2])
        value = make()
        found = await connection.fetchval(f"select $1::{kind}", value)
        tally.check(f"{kind} as a parameter", found == value or repr(found) == repr(value), (found, value))
        # As a key of an index, and by COPY in binary.
        copied = await connection.copy_records_to_table(f"kind_{kind}", records=[(i + ROUNDS, value) for i, value in rows], columns=["id", "v"])
        tally.equal(f"{kind} by COPY", (copied, await connection.fetchval(f"select count(*) from kind_{kind} where id >= $1 and v is not null", ROUNDS)), (f"COPY {ROUNDS}", ROUNDS * 9 // 10))
        if kind != "json":
            differ = await connection.fetchval(f"select count(*) from kind_{kind} a join kind_{kind} b on b.id = a.id + {ROUNDS} where a.v is distinct from b.v")
            tally.equal(f"{kind}: both are the same", differ, 0)


async def statements(connection):
    await connection.execute("create table item (id int8 generated always as identity primary key, name text not null unique, price numeric(10, 2) check (price > 0))")
    tally.equal("returning", [tuple(row) for row in await connection.fetch("insert into item (name, price) values ($1, $2), ('b', 2) returning *", "a", decimal.Decimal("1.5"))], [(1, "a", decimal.Decimal("1.50")), (2, "b", decimal.Decimal("2.00"))])
    tally.equal("a tag", await connection.execute("update item set price = price + 1"), "UPDATE 2")
    prepared = await connection.prepare("select id, name, price, now() as at, null::bytea as data from item where id = $1 and name like $2")
    tally.equal("parameters", [one.name for one in prepared.get_parameters()], ["int8", "text"])
    tally.equal("columns", [(one.name, one.type.name) for one in prepared.get_attributes()], [("id", "int8"), ("name", "text"), ("price", "numeric"), ("at", "timestamptz"), ("data", "bytea")])
    tally.equal("a prepared statement", (await prepared.fetchrow(1, "a%"))["name"], "a")
    tally.equal("fetchmany", [tuple(row) for row in await connection.fetchmany("insert into item (name, price) values ($1, $2) returning id", [("n1", 1), ("n2", 2)])], [(3,), (4,)])
    cases = {
        "23505": ("insert into item (name, price) values ('a', 1)", {"table_name": "item", "constraint_name": "item_name_key", "schema_name": "public", "detail": "Key (name)=(a) already exists."}),
        "23514": ("insert into item (name, price) values ('c', -1)", {"table_name": "item", "constraint_name": "item_price_check"}),
        "23502": ("insert into item (price) values (1)", {"table_name": "item", "column_name": "name"}),
        "42703": ("select nothing from item", {"position": "8"}),
        "42601": ("selec 1", {"position": "1"}),
        "22012": ("select 1 / (price - price) from item", {}),
    }
    for state, (text, fields) in cases.items():
        found = await fault(connection.fetch(text))
        tally.equal(f"error {state}", (found.sqlstate, {name: getattr(found, name, None) for name in fields}), (state, fields))
    transaction = connection.transaction(isolation="repeatable_read")
    await transaction.start()
    await connection.execute("update item set price = 9 where id = 1")
    try:
        async with connection.transaction():
            await connection.execute("insert into item (name) values ('b')")
    except asyncpg.UniqueViolationError:
        tally.check("a savepoint", True)
    await transaction.commit()
    tally.equal("committed", await connection.fetchval("select price from item where id = 1"), 9)
    tally.equal("a long text", len(await connection.fetchval("select $1::text || 'x'", "ü" * 3_000_000)), 3_000_001)
    notices = []
    connection.add_log_listener(lambda _, notice: notices.append(notice.message))
    await connection.execute("drop table if exists nothing_at_all")
    await asyncio.sleep(0)
    tally.equal("a notice", notices, ['table "nothing_at_all" does not exist, skipping'])


async def changed(port):
    one, other = await connect(port), await connect(port)
    await other.execute("create table changing (a int4)")
    await other.execute("insert into changing values (1)")
    tally.equal("before", len(await one.fetchrow("select * from changing")), 1)
    await other.execute("alter table changing add b text")
    # Outside of a transaction the client prepares it again.
    tally.equal("after", len(await one.fetchrow("select * from changing")), 2)
    async with one.transaction():
        await one.fetchrow("select * from changing")
    await other.execute("alter table changing drop b")
    try:
        async with one.transaction():
            await one.fetchrow("select * from changing")
        tally.check("in a transaction", False)
    except asyncpg.InvalidCachedStatementError as error:
        tally.equal("in a transaction", error.sqlstate, "0A000")
    await one.close()
    await other.close()


async def cursors(connection):
    async with connection.transaction():
        tally.equal("a cursor", [row["i"] async for row in connection.cursor("select i from generate_series(1, $1) as of(i)", 2000, prefetch=70)], list(range(1, 2001)))
        cursor = await connection.cursor("select i from generate_series(1, 100) as of(i)")
        tally.equal("some rows", [row["i"] for row in await cursor.fetch(3)], [1, 2, 3])


async def copies(connection):
    await connection.execute("create table line (id int4 primary key, v text)")
    source = io.BytesIO(b"".join(b"%d,\"a,\"\"%d\"\n" % (i, i) for i in range(20_000)))
    tally.equal("COPY in", await connection.copy_to_table("line", source=source, format="csv"), "COPY 20000")
    for format in ("text", "csv", "binary"):
        out = io.BytesIO()
        tally.equal(f"COPY out as {format}", await connection.copy_from_query("select * from line where id < $1", 100, output=out, format=format), "COPY 100")
    tally.equal("a broken line", (await fault(connection.copy_to_table("line", source=io.BytesIO(b"x,y\n"), format="csv"))).sqlstate, "22P02")


async def cancelled(port):
    # In a connection of its own: after a COPY that fails early the client forgets the timeout of its next statement.
    connection = await connect(port)
    try:
        await connection.execute("select pg_sleep(300)", timeout=0.3)
        tally.check("a timeout", False)
    except asyncio.TimeoutError:
        tally.check("a timeout", True)
    tally.equal("and on", await connection.fetchval("select 1"), 1)
    await connection.execute("set statement_timeout = 50")
    tally.equal("statement_timeout", (await fault(connection.execute("select pg_sleep(300)"))).sqlstate, "57014")
    await connection.close()


async def nothing(_):
    """Between two users of a connection of the pool: the statements of the client itself need advisory locks and LISTEN."""


async def crowd(port):
    async with asyncpg.create_pool(host="127.0.0.1", port=port, user="postgres", database=DATABASE, ssl=False, min_size=4, max_size=16, reset=nothing) as pool:
        await pool.execute("create table counter (id int4 primary key, n int4 not null)")
        await pool.execute("insert into counter values (0, 0), (1, 0)")
        await asyncio.gather(*[pool.execute("update counter set n = n + 1 where id = $1", at % 2) for at in range(400)])
        tally.equal("a pool", await pool.fetchval("select sum(n) from counter"), 400)


async def logins(port, chain):
    context = ssl.create_default_context(cafile=chain)
    for name, options in {"SCRAM": {}, "SCRAM and TLS": {"host": "localhost", "ssl": context}}.items():
        connection = await connect(port, user="driver", password="driver's", **options)
        tally.equal(name, await connection.fetchval("select current_user"), "driver")
        await connection.close()
        tally.equal(f"{name}: a wrong password", (await fault(connect(port, user="driver", password="driver", **options))).sqlstate, "28P01")
    tally.equal("no such database", (await fault(connect(port, database="nowhere"))).sqlstate, "3D000")


async def run(port, chain=None):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    admin = await connect(port, database="postgres")
    await admin.execute(f"drop database if exists {DATABASE}")
    await admin.execute(f"create database {DATABASE}")
    await admin.close()
    connection = await connect(port)
    parts = [lambda: values(connection, random.Random(seed)), lambda: statements(connection), lambda: changed(port), lambda: cursors(connection), lambda: copies(connection), lambda: cancelled(port), lambda: crowd(port)]
    for part in parts + ([lambda: logins(port, chain)] if chain else []):
        try:
            await part()
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, ValueError) as error:
            tally.check("no error", False, repr(error))
    await connection.close()


def main():
    if len(sys.argv) > 1:
        asyncio.run(run(int(sys.argv[1])))
        tally.close()
    with tempfile.TemporaryDirectory() as folder:
        chain, key = certificate(folder)
        with Server("--memory", "512mb", "--postgres-ssl-cert", chain, "--postgres-ssl-key", key, "--login-delay-max", "0", postgres=True) as server:
            Wire(server.port).call("ACL", "SETUSER", "driver", "on", ">driver's", "~*", "+@all")
            asyncio.run(run(server.postgres_port, chain))
    tally.close()


if __name__ == "__main__":
    main()
