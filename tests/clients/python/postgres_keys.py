"""Keys of the Redis door as tables of the PostgreSQL door: rows read and changed by psycopg, random transactions beside a model and the other two doors, and kills with a model of what was acknowledged."""

import datetime
import random
import subprocess
import threading

import psycopg
import redis

from beluga import Server, Tally, rounds_and_seed
from sql import ask as ask_mysql
from sql import come as come_to_mysql

rounds, seed = rounds_and_seed(3)
tally = Tally()


def come(server, **more):
    more.setdefault("autocommit", True)
    return psycopg.connect(host="127.0.0.1", port=server.postgres_port, user=more.pop("user", "postgres"), dbname="postgres", sslmode="disable", connect_timeout=60, **more)


def ask(connection, text, *values):
    """The rows, the number of rows that were changed, or the SQLSTATE."""
    try:
        cursor = connection.execute(text, values or None)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else cursor.rowcount
    except psycopg.Error as error:
        return error.sqlstate


def reads(server):
    keys, one = redis.Redis(port=server.port), come(server)
    keys.set("string", b"\x00\xff")
    keys.set("dies", "1", px=1_000_000)
    keys.hset("h", mapping={"a": "1", "b": b"\x00\xff", "long": "x" * 300_000})
    keys.rpush("l", "zero", "one", "two")
    keys.sadd("s", "m", "n")
    keys.zadd("z", {"low": -1.5, "mid": 2, "high": 1e300})
    keys.xadd("x", {"f": "1", "g": "2"}, id="5-1")
    keys.xadd("x", {"f": "3"}, id="18446744073709551615-7")
    tally.equal("a string", ask(one, "select db, key, value, expires_at from redis.strings where db = 0 and key = 'string'"), [(0, b"string", b"\x00\xff", None)])
    tally.equal("a parameter", ask(one, "select value from redis.strings where db = %s and key = %s", 0, b"string"), [(b"\x00\xff",)])
    ((left,),) = ask(one, "select expires_at - now() from redis.strings where key = 'dies'")
    tally.check("a time", datetime.timedelta(seconds=900) < left <= datetime.timedelta(seconds=1001), left)
    tally.equal("a field", ask(one, "select value from redis.hashes where db = 0 and key = 'h' and field = 'b'"), [(b"\x00\xff",)])
    tally.equal("IN", ask(one, "select field, length(value) from redis.hashes where key = 'h' and field in ('a', 'long', 'none') order by 1"), [(b"a", 1), (b"long", 300_000)])
    tally.equal("a list", ask(one, "select position, value from redis.lists where key = 'l' and position >= 1 order by position"), [(1, b"one"), (2, b"two")])
    tally.equal("members", ask(one, "select member from redis.sets order by 1"), [(b"m",), (b"n",)])
    tally.equal("scores", ask(one, "select member, score from redis.sorted_sets where key = 'z' and score between -2 and 2 order by score"), [(b"low", -1.5), (b"mid", 2.0)])
    entries = [("5-1", 5, 1, 0, b"f", b"1"), ("5-1", 5, 1, 1, b"g", b"2"), ("18446744073709551615-7", 2**64 - 1, 7, 0, b"f", b"3")]
    tally.equal("entries", ask(one, "select id, ms, seq, position, field, value from redis.streams where key = 'x' order by ms, seq, position"), entries)
    tally.equal("an entry", ask(one, "select value from redis.streams where key = 'x' and id = '5-1' and field = 'g'"), [(b"2",)])
    tally.equal("ids", ask(one, "select id from redis.streams where key = 'x' and ms > 5"), [("18446744073709551615-7",)])
    tally.equal("of another type", ask(one, "select * from redis.hashes where key = 'string'"), [])
    tally.equal("a join", ask(one, "select l.value, h.value from redis.lists l join redis.hashes h on h.db = l.db and h.key = 'h' and h.field = case l.position when 0 then 'a'::bytea end where l.key = 'l'"), [(b"zero", b"1")])
    tally.equal("as text", ask(one, "select convert_from(key, 'UTF8') from redis.strings where key like 's%%' group by 1"), [("string",)])
    tally.equal("a path", (ask(one, "set search_path = redis"), ask(one, "select count(*) from sets")), (-1, [(2,)]))
    ask(one, "reset search_path")
    tally.equal("tables", ask(one, "select table_name from information_schema.tables where table_schema = 'redis' order by 1"), [(name,) for name in ("hashes", "lists", "sets", "sorted_sets", "streams", "strings")])
    tally.equal("columns", ask(one, "select attname, format_type(atttypid, atttypmod), attnotnull from pg_attribute where attrelid = 'redis.sorted_sets'::regclass and attnum > 0 order by attnum"), [("db", "integer", True), ("key", "bytea", True), ("member", "bytea", True), ("score", "double precision", True), ("expires_at", "timestamp with time zone", False)])
    tally.equal("names", ask(one, "select 'redis.strings'::regclass::text, oid::regclass::text, relnamespace::regnamespace::text from pg_class where relname = 'streams'"), [("redis.strings", "redis.streams", "redis")])
    tally.equal("an extension", ask(one, "select count(*) from pg_depend d join pg_extension e on d.refobjid = e.oid where e.extname = 'redis' and deptype = 'e'"), [(7,)])
    ask(one, "create view fields as select convert_from(field, 'UTF8') f, value from redis.hashes where db = 0 and key = 'h' and field <> 'long'")
    tally.equal("a view", ask(one, "select f from fields order by 1"), [("a",), ("b",)])
    tally.check("its text", "FROM redis.hashes" in ask(one, "select pg_get_viewdef('fields'::regclass)")[0][0], ask(one, "select pg_get_viewdef('fields'::regclass)"))
    with one.cursor() as cursor, cursor.copy("copy (select position, value from redis.lists where key = 'l') to stdout") as copy:
        tally.equal("COPY TO", b"".join(bytes(part) for part in copy), b"0\t\\\\x7a65726f\n1\t\\\\x6f6e65\n2\t\\\\x74776f\n")
    with one.transaction(), one.cursor("some", scrollable=True) as cursor:
        cursor.execute("select position from redis.lists where key = 'l' order by 1")
        tally.equal("a cursor", (cursor.fetchmany(2), cursor.fetchmany(2)), ([(0,), (1,)], [(2,)]))
    with come(server, prepare_threshold=0) as other:
        for value in (b"1", b"2"):
            keys.hset("h", "a", value)
            tally.equal("prepared", ask(other, "select value from redis.hashes where key = %s and field = %s", b"h", b"a"), [(value,)])


def changes(server):
    keys, one = redis.Redis(port=server.port, db=1), come(server)
    tally.equal("INSERT", ask(one, "insert into redis.strings (db, key, value) values (1, 'a', '1'), (1, 'b', '2') returning key"), [(b"a",), (b"b",)])
    tally.equal("strings", (keys.get("a"), keys.get("b"), keys.ttl("a")), (b"1", b"2", -1))
    tally.equal("database 0 by default", (ask(one, "insert into redis.sets (key, member) values ('s', 'x')"), redis.Redis(port=server.port).sismember("s", "x")), (1, 1))
    tally.equal("a duplicate", ask(one, "insert into redis.strings (db, key, value) values (1, 'c', '3'), (1, 'a', '9')"), "23505")
    tally.equal("nothing of it", keys.get("c"), None)
    tally.equal("no database", ask(one, "insert into redis.strings (db, key, value) values (16, 'a', '1')"), "22003")
    tally.equal("no value", ask(one, "insert into redis.strings (db, key) values (1, 'x')"), "23502")
    tally.equal("no text", ask(one, "insert into redis.strings (db, key, value) values (1, 'x', 1)"), "42804")
    tally.equal("DO NOTHING", ask(one, "insert into redis.strings (db, key, value) values (1, 'a', '9') on conflict do nothing"), 0)
    tally.equal("DO UPDATE", ask(one, "insert into redis.strings as s (db, key, value) values (1, 'a', '9') on conflict (db, key) do update set value = s.value || excluded.value returning value"), [(b"19",)])
    tally.equal("twice", ask(one, "insert into redis.strings (db, key, value) values (1, 'q', '1'), (1, 'q', '2') on conflict (db, key) do update set value = excluded.value"), "21000")
    tally.equal("UPDATE", ask(one, "update redis.strings set value = value || '!', expires_at = now() + interval '100 s' where db = 1 and key in ('a', 'b') returning key"), [(b"a",), (b"b",)])
    tally.check("and a time", keys.get("b") == b"2!" and 98 <= keys.ttl("b") <= 100, (keys.get("b"), keys.ttl("b")))
    ask(one, "update redis.strings set value = '3' where db = 1 and key = 'b'")
    tally.check("which stays", 98 <= keys.ttl("b") <= 100, keys.ttl("b"))
    ask(one, "update redis.strings set expires_at = 'infinity' where db = 1 and key = 'b'")
    tally.equal("infinity", keys.ttl("b"), -1)
    ask(one, "update redis.strings set expires_at = '-infinity' where db = 1 and key = 'a'")
    tally.equal("the past", keys.get("a"), None)
    tally.equal("renamed", (ask(one, "update redis.strings set key = 'd' where db = 1 and key = 'b'"), keys.get("d"), keys.exists("b")), (1, b"3", 0))
    keys.hset("h", mapping={"a": "1", "b": "2"})
    tally.equal("of another type", ask(one, "insert into redis.sets (db, key, member) values (1, 'h', 'a')"), "42809")
    ask(one, "update redis.hashes set value = (convert_from(value, 'UTF8')::int + 1)::text::bytea where db = 1 and key = 'h'")
    tally.equal("fields", keys.hgetall("h"), {b"a": b"2", b"b": b"3"})
    ask(one, "insert into redis.lists (db, key, value) select 1, 'l', i::text::bytea from generate_series(1, 4) i")
    ask(one, "insert into redis.lists (db, key, position, value) values (1, 'l', -1, 'first')")
    tally.equal("a list", keys.lrange("l", 0, -1), [b"first", b"1", b"2", b"3", b"4"])
    tally.equal("in the middle", ask(one, "insert into redis.lists (db, key, position, value) values (1, 'l', 1, 'x')"), "23505")
    tally.equal("from the middle", ask(one, "delete from redis.lists where db = 1 and key = 'l' and position = 1"), "0A000")
    ask(one, "insert into redis.sorted_sets (db, key, member, score) select 1, 'z', value, position from redis.lists where db = 1 and key = 'l'")
    ask(one, "update redis.sorted_sets set score = -score where db = 1 and key = 'z' and score >= 3")
    tally.equal("scores", keys.zrange("z", 0, -1), [b"4", b"3", b"first", b"1", b"2"])
    tally.equal("no score", ask(one, "update redis.sorted_sets set score = 'NaN' where db = 1 and key = 'z'"), "22003")
    ask(one, "create table t (k bytea, v bytea); insert into t values ('a', '7'), ('n', '8')")
    tally.equal("FROM", ask(one, "update redis.hashes h set value = t.v from t where h.db = 1 and h.key = 'h' and h.field = t.k returning field, h.value"), [(b"a", b"7")])
    tally.equal("MERGE", ask(one, "merge into redis.hashes h using t on h.db = 1 and h.key = 'h' and h.field = t.k when matched then update set value = t.v || '!' when not matched then insert (db, key, field, value) values (1, 'h', t.k, t.v)"), 2)
    tally.equal("merged", keys.hgetall("h"), {b"a": b"7!", b"b": b"3", b"n": b"8"})
    tally.equal("WITH", ask(one, "with gone as (delete from redis.hashes where db = 1 and key = 'h' and field = 'n' returning value) insert into t select 'gone', value from gone returning v"), [(b"8",)])
    tally.equal("USING", ask(one, "delete from redis.hashes h using t where h.db = 1 and h.key = 'h' and h.field = t.k"), 1)
    with one.cursor() as cursor, cursor.copy("copy redis.strings (db, key, value) from stdin") as copy:
        for at in range(1000):
            copy.write_row((1, f"copied{at}".encode(), b"x" * at))
    tally.equal("COPY FROM", (len(keys.keys("copied*")), keys.strlen("copied999")), (1000, 999))
    tally.equal("LIKE", ask(one, "delete from redis.strings where db = 1 and key like 'copied%%'"), 1000)
    keys.xadd("x", {"f": "1"}, id="1-1")
    for text, wanted in [
        ("delete from redis.streams where db = 1 and key = 'x'", "0A000"),
        ("truncate redis.sets", "42P01"),
        ("drop table redis.sets", "42P01"),
        ("alter table redis.sets add column c int", "42P01"),
        ("create index on redis.sets (member)", "42P01"),
        ("create table redis.mine (a int)", "42501"),
        ("create table refers (a bytea references redis.strings (key))", "42P01"),
        ("create schema redis", "42P06"),
        ("drop schema redis", "3F000"),
        ("grant select on redis.sets to public", "0A000"),
        ("insert into redis.none values (1)", "42P01"),
    ]:
        tally.equal(text, ask(one, text), wanted)


def rights(server):
    root = come(server)
    ask(root, "create role plain login password 'x'; create role reader login password 'x' in role pg_read_all_data; create role writer login password 'x' in role pg_read_all_data, pg_write_all_data")
    expected = {"plain": ("42501", "42501", "42501"), "reader": ([(1,)], "42501", "42501"), "writer": ([(1,)], 1, 1)}
    for role, wanted in expected.items():
        one = come(server, user=role, password="x")
        found = (
            ask(one, "select count(*) from redis.strings where db = 3"),
            ask(one, "update redis.strings set value = '2' where db = 3 and key = 'secret'"),
            ask(one, "insert into redis.sets (db, key, member) values (3, 's', 'm')"),
        )
        tally.equal(f"rights of {role}", found, wanted)
        has = tuple(ask(root, f"select has_table_privilege('{role}', 'redis.strings', 'select'), has_table_privilege('{role}', 'redis.strings', 'insert')"))
        tally.equal(f"shown of {role}", has, ((wanted[0] != "42501", wanted[1] != "42501"),))


def transactions(server):
    keys, one, other = redis.Redis(port=server.port, db=2), come(server, autocommit=False), come(server, autocommit=False)
    keys.hset("h", mapping={"a": "1", "b": "2"})
    ask(one, "update redis.hashes set value = 'x' where db = 2 and key = 'h' and field = 'a'")
    ask(one, "savepoint s")
    ask(one, "delete from redis.hashes where db = 2 and key = 'h'")
    tally.equal("own deletion", ask(one, "select * from redis.hashes where db = 2"), [])
    ask(one, "rollback to s")
    tally.equal("taken back", ask(one, "select field, value from redis.hashes where db = 2 order by 1"), [(b"a", b"x"), (b"b", b"2")])
    tally.equal("others", keys.hgetall("h"), {b"a": b"1", b"b": b"2"})
    waited = []
    waiting = threading.Thread(target=lambda: waited.append(redis.Redis(port=server.port, db=2).hset("h", "c", "3")))
    waiting.start()
    tally.equal("NOWAIT", ask(other, "select 1 from redis.hashes where db = 2 and key = 'h' for update nowait"), "55P03")
    other.rollback()
    tally.equal("SKIP LOCKED", ask(other, "select 1 from redis.hashes where db = 2 for update skip locked"), [])
    one.commit()
    waiting.join(60)
    tally.equal("after COMMIT", (waited, keys.hgetall("h")), ([1], {b"a": b"x", b"b": b"2", b"c": b"3"}))
    other.rollback()
    tally.equal("FOR KEY SHARE", ask(one, "select 1 from redis.hashes where db = 2 and key = 'h' and field = 'a' for key share"), [(1,)])
    tally.equal("and FOR SHARE", ask(other, "select 1 from redis.hashes where db = 2 and key = 'h' and field = 'a' for share"), [(1,)])
    ends(one, other)
    # A deadlock between a row of a table and a key.
    ask(one, "create table rows (id int primary key); insert into rows values (1)")
    one.commit()
    ask(one, "select * from rows where id = 1 for update")
    ask(other, "update redis.hashes set value = '4' where db = 2 and key = 'h' and field = 'a'")
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(ask(other, "select * from rows where id = 1 for update")))
    waiting.start()
    watcher = come(server)
    while not ask(watcher, "select 1 from pg_locks where not granted"):
        pass
    answers.append(ask(one, "select 1 from redis.hashes where db = 2 and key = 'h' for update"))
    one.rollback()
    waiting.join(60)
    tally.check("a deadlock", answers.count("40P01") == 1, answers)
    other.rollback()
    # SERIALIZABLE locks what it names, and refuses to walk.
    ask(one, "set transaction isolation level serializable")
    tally.equal("serializable", ask(one, "select value from redis.hashes where db = 2 and key = 'h' and field = 'b'"), [(b"2",)])
    tally.equal("nothing there", ask(one, "select value from redis.strings where db = 2 and key = 'absent'"), [])
    tally.equal("locked", ask(other, "select 1 from redis.hashes where db = 2 and key = 'h' for update nowait"), "55P03")
    other.rollback()
    tally.equal("its absence too", ask(other, "set lock_timeout = '50ms'; insert into redis.strings (db, key, value) values (2, 'absent', '1')"), "55P03")
    other.rollback()
    tally.equal("a walk", ask(one, "select count(*) from redis.strings"), "0A000")
    one.rollback()
    ask(one, "set transaction isolation level serializable")
    tally.equal("a walk of fields", ask(one, "update redis.hashes set value = '1' where db = 2"), "0A000")
    ends(one, other)


def ends(*connections):
    for connection in connections:
        connection.rollback()


TABLES = {"strings": ("value",), "hashes": ("field", "value"), "sets": ("member",), "sorted_sets": ("member", "score"), "lists": ("position", "value")}


def seen(server_rows):
    """The elements of each key by its type."""
    found = {}
    for name, *row in server_rows:
        found.setdefault(name, []).append(tuple(row))
    return {name: sorted(rows) for name, rows in found.items()}


def by_postgres(one, db):
    return {table: seen(ask(one, f"select key, {', '.join(columns)} from redis.{table} where db = {db}")) for table, columns in TABLES.items()}


def by_mysql(root, db):
    return {table: seen(ask_mysql(root, f"SELECT `key`, {', '.join(columns)} FROM redis.{table} WHERE db = {db}")) for table, columns in TABLES.items()}


def by_redis(keys):
    found = {table: {} for table in TABLES}
    for name in keys.keys("*"):
        match keys.type(name):
            case b"string":
                found["strings"][name] = [(keys.get(name),)]
            case b"hash":
                found["hashes"][name] = sorted(keys.hgetall(name).items())
            case b"set":
                found["sets"][name] = sorted((member,) for member in keys.smembers(name))
            case b"zset":
                found["sorted_sets"][name] = sorted(keys.zrange(name, 0, -1, withscores=True))
            case b"list":
                found["lists"][name] = list(enumerate(keys.lrange(name, 0, -1)))
    return found


def change(generator, one, model):
    """Runs a random statement, and changes the model as it should change the keys. Returns the answer and the one that was expected."""
    table = generator.choice(["strings", "hashes", "sets", "sorted_sets"])
    name, element, value = f"{table[:2]}{generator.randrange(4)}".encode(), f"e{generator.randrange(6)}".encode(), str(generator.randrange(100)).encode()
    columns = TABLES[table]
    score = float(generator.randrange(-5, 6))
    given = {"strings": (value,), "hashes": (element, value), "sets": (element,), "sorted_sets": (element, score)}[table]
    own = model[table].setdefault(name, {})
    key_of = (lambda row: row[:1] if table != "strings" else ())
    known = own.get(key_of(given))
    roll = generator.random()
    if roll < 0.4:
        marks = ", ".join(["%s"] * len(given))
        conflict = ("key",) if table == "strings" else ("key", columns[0])
        action = generator.choice(["", "nothing", "update"]) if table != "sets" else generator.choice(["", "nothing"])
        clause = {"": "", "nothing": "on conflict do nothing", "update": f"on conflict (db, {', '.join(conflict)}) do update set {columns[-1]} = excluded.{columns[-1]}"}[action]
        if action == "" and known is not None:
            return "skip", "skip"
        wanted = 1 if known is None or action == "update" else 0
        if wanted:
            own[key_of(given)] = given
        return ask(one, f"insert into redis.{table} (db, key, {', '.join(columns)}) values (4, %s, {marks}) {clause}", name, *given), wanted
    if roll < 0.7:
        condition, chosen = conditions(generator, table, columns, given, own)
        for row in chosen:
            del own[row]
        return ask(one, f"delete from redis.{table} where db = 4 and key = %s and {condition}", name), len(chosen)
    if table == "sets":
        return "skip", "skip"
    condition, chosen = conditions(generator, table, columns, given, own)
    fresh = score if table == "sorted_sets" else value
    for row in chosen:
        own[row] = own[row][:-1] + (fresh,)
    return ask(one, f"update redis.{table} set {columns[-1]} = %s where db = 4 and key = %s and {condition}", fresh, name), len(chosen)


def conditions(generator, table, columns, given, own):
    """A condition on elements, and the elements of the model that satisfy it."""
    if table == "strings":
        return "true", list(own)
    if table == "sorted_sets" and generator.random() < 0.5:
        return f"score >= {given[1]}", [key for key, row in own.items() if row[1] >= given[1]]
    if generator.random() < 0.5:
        return f"{columns[0]} = '{given[0].decode()}'", [key for key in own if key == given[:1]]
    return f"{columns[0]} in ('e1', 'e3')", [key for key in own if key[0] in (b"e1", b"e3")]


def copy_of(model):
    return {table: {name: dict(rows) for name, rows in names.items()} for table, names in model.items()}


def shown(model):
    full = {table: {name: sorted(rows.values()) for name, rows in names.items() if rows} for table, names in model.items()}
    return full | {"lists": {}}


def histories(server, generator, count=400):
    keys, one, root = redis.Redis(port=server.port, db=4), come(server), come_to_mysql(server)
    committed = {table: {} for table in TABLES if table != "lists"}
    for step in range(count):
        own, points = copy_of(committed), []
        level = generator.choice(["read committed", "repeatable read", "serializable"])
        ask(one, f"begin isolation level {level}")
        for _ in range(generator.randrange(1, 7)):
            roll = generator.random()
            if roll < 0.1:
                points.append(copy_of(own))
                ask(one, f"savepoint p{len(points)}")
            elif roll < 0.2 and points:
                own = copy_of(points[-1])
                ask(one, f"rollback to p{len(points)}")
            else:
                answer, wanted = change(generator, one, own)
                tally.equal(f"step {step}", answer, wanted)
                if answer != wanted:
                    return
        if level != "serializable":
            tally.equal(f"step {step}: own", by_postgres(one, 4), shown(own))
        if generator.random() < 0.3:
            ask(one, "rollback")
        else:
            ask(one, "commit")
            committed = own
        if step % 10 == 0:
            wanted = shown(committed)
            tally.equal(f"step {step}: other doors", (by_redis(keys), by_mysql(root, 4)), (wanted, wanted))


class Writer(threading.Thread):
    """Moves money between a hash and a sorted set, and notes in a row and in a list how often."""

    def __init__(self, server, number, generator, acknowledged):
        super().__init__(daemon=True)
        self.server, self.number, self.generator, self.acknowledged, self.wrong = server, number, generator, acknowledged, None

    def run(self):
        try:
            one = come(self.server)
            while True:
                line, at, sign = self.acknowledged[self.number] + 1, self.generator.randrange(200), self.generator.choice([1, -1])
                try:
                    one.execute("begin")
                    one.execute(f"update redis.hashes set value = (convert_from(value, 'UTF8')::int + {sign})::text::bytea where db = 6 and key = 'money' and field = 'f{at}'")
                    one.execute(f"update redis.sorted_sets set score = score - {sign} where db = 6 and key = 'money:z' and member = 'm{at}'")
                    one.execute(f"update lines set number = {line} where writer = {self.number}")
                    one.execute(f"insert into redis.lists (db, key, value) values (6, 'log{self.number}', '{line}')")
                    if self.generator.random() < 0.1:
                        one.execute("rollback")
                        continue
                    one.execute("commit")
                    self.acknowledged[self.number] = line
                except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                    one.execute("rollback")
        except psycopg.OperationalError:
            pass
        except psycopg.Error as error:
            self.wrong = repr(error)


def crashes(server, generator):
    one, keys = come(server), redis.Redis(port=server.port, db=6)
    ask(one, "create table lines (writer int primary key, number int not null); insert into lines select w, 0 from generate_series(0, 2) w")
    keys.hset("money", mapping={f"f{at}": 100 for at in range(200)})
    keys.zadd("money:z", {f"m{at}": 100 for at in range(200)})
    acknowledged = [0, 0, 0]
    for round_number in range(rounds):
        name = f"round {round_number}"
        writers = [Writer(server, at, random.Random(generator.random()), acknowledged) for at in range(3)]
        for writer in writers:
            writer.start()
        wanted = sum(acknowledged) + generator.randrange(10, 200)
        while sum(acknowledged) < wanted and all(writer.is_alive() for writer in writers):
            pass
        server.kill()
        for writer in writers:
            writer.join(60)
            tally.check(f"{name}: a writer", writer.wrong is None, writer.wrong)
        checked = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True, timeout=120)
        tally.check(f"{name}: beluga check", checked.returncode == 0, checked.stdout[-500:] + checked.stderr[-500:])
        server.start()
        one, keys = come(server), redis.Redis(port=server.port, db=6)
        money = sum(int(value) for value in keys.hvals("money")) + sum(score for _, score in keys.zrange("money:z", 0, -1, withscores=True))
        tally.equal(f"{name}: money", money, 400 * 100)
        for at, known in enumerate(acknowledged):
            ((row,),), items = ask(one, f"select number from lines where writer = {at}"), keys.llen(f"log{at}")
            tally.check(f"{name}: writer {at}", row == items and row in (known, known + 1), f"row {row}, {items} items, {known} acknowledged")
            acknowledged[at] = row


def main():
    generator = random.Random(seed)
    with Server(mysql=True, postgres=True) as server:
        keys = redis.Redis(port=server.port, db=3)
        reads(server)
        changes(server)
        keys.set("secret", "1")
        rights(server)
        transactions(server)
        histories(server, generator)
        crashes(server, generator)
    tally.close()


if __name__ == "__main__":
    main()
