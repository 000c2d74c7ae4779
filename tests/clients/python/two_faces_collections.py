"""Collections of the Redis door as tables of SQL: rows read and changed by PyMySQL, random histories over both doors beside a model, and kills with a model of what was acknowledged."""

import random
import subprocess
import threading
import time

import redis

from beluga import Server, Tally, rounds_and_seed
from sql import CrashWriter, ask, come, until_committed

rounds, seed = rounds_and_seed(4)
tally = Tally()
STEPS = 1500


def reads(server):
    keys, root = redis.Redis(port=server.port), come(server)
    keys.hset("h", mapping={"a": "1", "b": b"\x00\xff", "long": "x" * 300_000})
    keys.rpush("l", "zero", "one", "two")
    keys.sadd("s", "m", "n")
    keys.zadd("z", {"low": -1.5, "mid": 2, "high": 1e300})
    keys.xadd("x", {"f": "1", "g": "2"}, id="5-1")
    keys.xadd("x", {"f": "3"}, id="10-0")
    keys.set("string", "1")
    tally.equal("a field", ask(root, "SELECT value FROM redis.hashes WHERE db = 0 AND `key` = 'h' AND field = 'b'"), [[b"\x00\xff"]])
    tally.equal("fields", ask(root, "SELECT field, LENGTH(value) FROM redis.hashes WHERE `key` = 'h' ORDER BY 1"), [[b"a", 1], [b"b", 2], [b"long", 300_000]])
    tally.equal("IN", ask(root, "SELECT field FROM redis.hashes WHERE `key` = 'h' AND field IN ('a', 'b', 'none') ORDER BY 1"), [[b"a"], [b"b"]])
    tally.equal("a list", ask(root, "SELECT position, value FROM redis.lists WHERE `key` = 'l' ORDER BY position"), [[0, b"zero"], [1, b"one"], [2, b"two"]])
    tally.equal("a position", ask(root, "SELECT value FROM redis.lists WHERE `key` = 'l' AND position >= 1 AND position < 2"), [[b"one"]])
    tally.equal("members", ask(root, "SELECT member FROM redis.sets ORDER BY 1"), [[b"m"], [b"n"]])
    tally.equal("scores", ask(root, "SELECT member FROM redis.sorted_sets WHERE `key` = 'z' AND score BETWEEN -2 AND 2 ORDER BY score"), [[b"low"], [b"mid"]])
    tally.equal("all scores", ask(root, "SELECT member, score FROM redis.sorted_sets ORDER BY score DESC"), [[b"high", 1e300], [b"mid", 2.0], [b"low", -1.5]])
    entries = [[b"5-1", 5, 1, 0, b"f", b"1"], [b"5-1", 5, 1, 1, b"g", b"2"], [b"10-0", 10, 0, 0, b"f", b"3"]]
    tally.equal("entries", ask(root, "SELECT id, ms, seq, position, field, value FROM redis.streams WHERE `key` = 'x' ORDER BY ms, seq, position"), entries)
    tally.equal("an entry", ask(root, "SELECT value FROM redis.streams WHERE `key` = 'x' AND id = '10-0'"), [[b"3"]])
    tally.equal("ids", ask(root, "SELECT id FROM redis.streams WHERE `key` = 'x' AND ms > 5"), [[b"10-0"]])
    tally.equal("of another type", ask(root, "SELECT * FROM redis.hashes WHERE `key` = 'string'"), [])
    keys.expire("h", 1000)
    left = ask(root, "SELECT DISTINCT TIMESTAMPDIFF(SECOND, NOW(), expires_at) FROM redis.hashes WHERE `key` = 'h'")
    tally.check("a time", len(left) == 1 and 990 <= left[0][0] <= 1001, left)
    tally.equal("tables", ask(root, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'redis' ORDER BY 1"), [[name] for name in ("hashes", "lists", "sets", "sorted_sets", "streams", "strings")])
    tally.equal("a join", ask(root, "SELECT l.value, h.value FROM redis.lists l JOIN redis.hashes h ON h.db = l.db AND h.`key` = 'h' AND h.field = IF(l.position = 0, 'a', 'none') WHERE l.`key` = 'l'"), [[b"zero", b"1"]])
    tally.check("EXPLAIN", "sorted_sets" in str(ask(root, "EXPLAIN FORMAT=TREE SELECT * FROM redis.sorted_sets WHERE `key` = 'z' AND score > 1")), None)


def changes(server):
    keys, root = redis.Redis(port=server.port, db=1), come(server)
    tally.equal("INSERT", ask(root, "INSERT INTO redis.hashes (db, `key`, field, value) VALUES (1, 'h', 'a', '1'), (1, 'h', 'b', '2')"), [])
    tally.equal("a hash", keys.hgetall("h"), {b"a": b"1", b"b": b"2"})
    tally.equal("a duplicate", ask(root, "INSERT INTO redis.hashes (db, `key`, field, value) VALUES (1, 'h', 'c', '3'), (1, 'h', 'a', '9')"), 1062)
    tally.equal("nothing of it", keys.hgetall("h"), {b"a": b"1", b"b": b"2"})
    tally.equal("of another type", ask(root, "INSERT INTO redis.sets (db, `key`, member) VALUES (1, 'h', 'a')"), 1347)
    tally.equal("no score", ask(root, "INSERT INTO redis.sorted_sets (db, `key`, member) VALUES (1, 'z', 'a')"), 1364)
    ask(root, "INSERT INTO redis.hashes (db, `key`, field, value) VALUES (1, 'h', 'a', '5') ON DUPLICATE KEY UPDATE value = VALUES(value)")
    tally.equal("ON DUPLICATE KEY", keys.hget("h", "a"), b"5")
    ask(root, "REPLACE INTO redis.hashes (db, `key`, field, value) VALUES (1, 'h', 'b', '6')")
    ask(root, "UPDATE redis.hashes SET value = value + 1 WHERE db = 1 AND `key` = 'h' AND field = 'b'")
    tally.equal("UPDATE", keys.hgetall("h"), {b"a": b"5", b"b": b"7"})
    ask(root, "UPDATE redis.hashes SET field = 'c' WHERE db = 1 AND `key` = 'h' AND field = 'b'")
    tally.equal("renamed", keys.hgetall("h"), {b"a": b"5", b"c": b"7"})
    tally.equal("onto another", ask(root, "UPDATE redis.hashes SET field = 'a' WHERE db = 1 AND `key` = 'h' AND field = 'c'"), 1062)
    ask(root, "UPDATE redis.hashes SET expires_at = NOW() + INTERVAL 100 SECOND WHERE db = 1 AND `key` = 'h' AND field = 'a'")
    tally.check("the key's time", 98 <= keys.ttl("h") <= 100, keys.ttl("h"))
    ask(root, "INSERT INTO redis.hashes (db, `key`, field, value) VALUES (1, 'h', 'd', '')")
    tally.check("kept", 98 <= keys.ttl("h") <= 100, keys.ttl("h"))
    ask(root, "DELETE FROM redis.hashes WHERE db = 1 AND `key` = 'h'")
    tally.equal("the last field", keys.exists("h"), 0)
    ask(root, "INSERT INTO redis.hashes (db, `key`, field, value) VALUES (1, 'h', 'd', '')")
    tally.equal("no inherited time", keys.ttl("h"), -1)
    for value in ("b", "c"):
        ask(root, "INSERT INTO redis.lists (db, `key`, value) VALUES (1, 'l', %s)", value)
    ask(root, "INSERT INTO redis.lists (db, `key`, position, value) VALUES (1, 'l', -1, 'a'), (1, 'l', 3, 'd')")
    tally.equal("a list", keys.lrange("l", 0, -1), [b"a", b"b", b"c", b"d"])
    tally.equal("in the middle", ask(root, "INSERT INTO redis.lists (db, `key`, position, value) VALUES (1, 'l', 1, 'x')"), 1062)
    tally.equal("beyond the end", ask(root, "INSERT INTO redis.lists (db, `key`, position, value) VALUES (1, 'l', 9, 'x')"), 1264)
    tally.equal("from the middle", ask(root, "DELETE FROM redis.lists WHERE db = 1 AND `key` = 'l' AND position = 1"), 1235)
    ask(root, "UPDATE redis.lists SET value = CONCAT(value, position) WHERE db = 1 AND `key` = 'l' AND position > 0")
    tally.equal("items", keys.lrange("l", 0, -1), [b"a", b"b1", b"c2", b"d3"])
    ask(root, "DELETE FROM redis.lists WHERE db = 1 AND `key` = 'l' AND position < 2 ORDER BY position")
    tally.equal("the first two", keys.lrange("l", 0, -1), [b"c2", b"d3"])
    ask(root, "DELETE FROM redis.lists WHERE db = 1 AND `key` = 'l'")
    tally.equal("all of them", keys.exists("l"), 0)
    ask(root, "INSERT INTO redis.sorted_sets (db, `key`, member, score) SELECT 1, 'z', CONCAT('m', position), position / 2 FROM redis.lists WHERE db = 0 AND `key` = 'l'")
    tally.equal("a sorted set", keys.zrange("z", 0, -1, withscores=True), [(b"m0", 0.0), (b"m1", 0.5), (b"m2", 1.0)])
    ask(root, "UPDATE redis.sorted_sets SET score = -score WHERE db = 1 AND `key` = 'z' AND score >= 0.5")
    tally.equal("scores", keys.zrange("z", 0, -1), [b"m2", b"m1", b"m0"])
    keys.xadd("x", {"f": "1"}, id="1-1")
    tally.equal("a stream", ask(root, "DELETE FROM redis.streams WHERE db = 1 AND `key` = 'x'"), 1235)
    tally.equal("TRUNCATE", ask(root, "TRUNCATE TABLE redis.sets"), 1235)


def transactions(server):
    """Changes are the transaction's own until COMMIT; savepoints take them back; other clients wait."""
    keys, root = redis.Redis(port=server.port, db=2), come(server)
    keys.hset("h", mapping={"a": "1", "b": "2"})
    keys.rpush("l", *"abcd")
    keys.expire("l", 1000)
    root.begin()
    ask(root, "UPDATE redis.hashes SET value = 'x' WHERE db = 2 AND `key` = 'h' AND field = 'a'")
    ask(root, "DELETE FROM redis.hashes WHERE db = 2 AND `key` = 'h' AND field = 'b'")
    ask(root, "SAVEPOINT s")
    ask(root, "DELETE FROM redis.hashes WHERE db = 2 AND `key` = 'h'")
    tally.equal("own deletion", ask(root, "SELECT * FROM redis.hashes WHERE db = 2"), [])
    ask(root, "INSERT INTO redis.sets (db, `key`, member) VALUES (2, 'h', 'now a set')")
    tally.equal("own set", ask(root, "SELECT member FROM redis.sets WHERE db = 2"), [[b"now a set"]])
    ask(root, "ROLLBACK TO s")
    tally.equal("taken back", ask(root, "SELECT field, value FROM redis.hashes WHERE db = 2"), [[b"a", b"x"]])
    ask(root, "DELETE FROM redis.lists WHERE db = 2 AND `key` = 'l' AND position < 2 ORDER BY position")
    ask(root, "INSERT INTO redis.lists (db, `key`, position, value) VALUES (2, 'l', -1, 'B'), (2, 'l', -1, 'A'), (2, 'l', -1, 'new'), (2, 'l', NULL, 'end')")
    own = ask(root, "SELECT value FROM redis.lists WHERE db = 2 AND `key` = 'l' ORDER BY position")
    tally.equal("own list", own, [[b"new"], [b"A"], [b"B"], [b"c"], [b"d"], [b"end"]])
    tally.equal("others", (keys.hgetall("h"), keys.lrange("l", 0, -1)), ({b"a": b"1", b"b": b"2"}, [b"a", b"b", b"c", b"d"]))
    waited = []
    waiting = threading.Thread(target=lambda: waited.append(redis.Redis(port=server.port, db=2).rpush("l", "behind")))
    waiting.start()
    tally.check("it waits", not waited, waited)
    root.commit()
    waiting.join(60)
    tally.equal("it waited", waited, [7])
    tally.equal("after COMMIT", (keys.hgetall("h"), keys.lrange("l", 0, -1)), ({b"a": b"x"}, [b"new", b"A", b"B", b"c", b"d", b"end", b"behind"]))
    tally.check("its time", 900 < keys.ttl("l") <= 1000, keys.ttl("l"))
    blocked = []
    client = redis.Redis(port=server.port, db=2)
    waiting = threading.Thread(target=lambda: blocked.append(client.blpop("queue", timeout=50)))
    waiting.start()
    while not keys.info("clients")["blocked_clients"]:
        pass
    ask(root, "INSERT INTO redis.lists (db, `key`, value) VALUES (2, 'queue', 'job')")
    waiting.join(60)
    tally.equal("a waiter", blocked, [(b"queue", b"job")])
    one, other = come(server), come(server)
    one.begin()
    other.begin()
    tally.equal("locked", ask(one, "SELECT value FROM redis.hashes WHERE db = 2 AND `key` = 'h' AND field = 'a' FOR UPDATE"), [[b"x"]])
    tally.equal("NOWAIT", ask(other, "SELECT value FROM redis.hashes WHERE db = 2 AND `key` = 'h' FOR UPDATE NOWAIT"), 3572)
    tally.equal("SKIP LOCKED", ask(other, "SELECT value FROM redis.hashes WHERE db = 2 FOR UPDATE SKIP LOCKED"), [])
    one.rollback()
    tally.equal("free", ask(other, "SELECT value FROM redis.hashes WHERE db = 2 FOR UPDATE NOWAIT"), [[b"x"]])
    other.rollback()


def events(server):
    keys, root = redis.Redis(port=server.port, db=3), come(server)
    keys.config_set("notify-keyspace-events", "KEA")
    listener = keys.pubsub()
    listener.psubscribe("__keyspace@3__:*")
    listener.get_message(timeout=10)
    root.begin()
    ask(root, "INSERT INTO redis.hashes (db, `key`, field, value) VALUES (3, 'h', 'a', '1')")
    ask(root, "INSERT INTO redis.sorted_sets (db, `key`, member, score) VALUES (3, 'z', 'a', 1)")
    root.commit()
    ask(root, "DELETE FROM redis.hashes WHERE db = 3")
    seen = []
    while len(seen) < 4 and (message := listener.get_message(timeout=10)):
        seen.append((message["channel"].split(b":")[1], message["data"]))
    tally.equal("events", seen[:3], [(b"h", b"hset"), (b"z", b"zadd"), (b"h", b"del")])
    listener.close()


def large(server):
    """10^6 fields are read in batches, within the memory of a statement."""
    keys, root = redis.Redis(port=server.port, db=4), come(server)
    pipe = keys.pipeline(transaction=False)
    for start in range(0, 1_000_000, 10_000):
        pipe.hset("h", mapping={f"field{at}": at for at in range(start, start + 10_000)})
        pipe.zadd("z", {f"member{at}": at for at in range(start, start + 10_000)})
        pipe.execute()
    ask(root, "SET max_execution_time = 0")
    tally.equal("counted", ask(root, "SELECT COUNT(*), SUM(value) FROM redis.hashes WHERE db = 4 AND `key` = 'h'"), [[1_000_000, 499999500000.0]])
    began = time.monotonic()
    for at in range(50):
        tally.equal("a range", ask(root, f"SELECT member FROM redis.sorted_sets WHERE db = 4 AND `key` = 'z' AND score >= {at * 10_000} AND score < {at * 10_000 + 1}"), [[f"member{at * 10_000}".encode()]])
        tally.equal("a field", ask(root, f"SELECT value FROM redis.hashes WHERE db = 4 AND `key` = 'h' AND field = 'field{at}'"), [[str(at).encode()]])
    tally.check("reads of one element touch few", time.monotonic() - began < 20, time.monotonic() - began)
    keys.delete("h", "z")


class Model:
    """Hashes, sets, sorted sets and lists of database 5, as Python has them."""

    def __init__(self):
        self.keys = {}

    def copy(self):
        other = Model()
        other.keys = {key: (kind, list(value) if kind == "lists" else dict(value)) for key, (kind, value) in self.keys.items()}
        return other

    def of(self, key, kind):
        held = self.keys.get(key)
        if held is None:
            return [] if kind == "lists" else {}
        return held[1] if held[0] == kind else None

    def put(self, key, kind, value):
        if value:
            self.keys[key] = (kind, value)
        else:
            self.keys.pop(key, None)


NAMES = {"hashes": "field", "sets": "member", "sorted_sets": "member"}


def change(model, generator, sql, keys):
    """One random change by SQL or by Redis, of the model too. Returns the answer and the one that was to be expected."""
    kind = generator.choice(["hashes", "sets", "sorted_sets", "lists"])
    key = f"k{generator.randrange(6)}"
    held, name = model.of(key, kind), f"n{generator.randrange(12)}"
    value = {"hashes": generator.choice(["v", "w" * 40, "x" * 700]) + str(generator.randrange(9)), "sets": "", "sorted_sets": float(generator.randrange(20)), "lists": generator.choice(["a", "b" * 300])}[kind]
    where = f"WHERE db = 5 AND `key` = '{key}'"
    if keys is not None:
        if held is None or generator.random() < 0.1:
            keys.delete(key)
            model.keys.pop(key, None)
        elif kind == "lists":
            is_behind = generator.random() < 0.6
            (keys.rpush if is_behind else keys.lpush)(key, value)
            held = held + [value] if is_behind else [value] + held
            model.put(key, kind, held)
        else:
            {"hashes": lambda: keys.hset(key, name, value), "sets": lambda: keys.sadd(key, name), "sorted_sets": lambda: keys.zadd(key, {name: value})}[kind]()
            model.put(key, kind, {**held, name: value})
        return None, None
    if kind == "lists":
        roll = generator.random()
        if roll < 0.5:
            position = generator.choice(["NULL", "-1", "0", "3"])
            answer = ask(sql, f"INSERT INTO redis.lists (db, `key`, position, value) VALUES (5, '{key}', {position}, '{value}')")
            if held is None:
                return answer, 1347
            place = len(held) if position == "NULL" else int(position)
            if place == -1:
                model.put(key, kind, [value] + held)
            elif place == len(held):
                model.put(key, kind, held + [value])
            else:
                return answer, 1062 if place < len(held) else 1264
            return answer, []
        if roll < 0.75:
            at = generator.randrange(4)
            answer = ask(sql, f"UPDATE redis.lists SET value = '{value}' {where} AND position = {at}")
            if held and at < len(held):
                held = list(held)
                held[at] = value
                model.put(key, kind, held)
            return answer, []
        count = generator.randrange(4)
        answer = ask(sql, f"DELETE FROM redis.lists {where} AND position < {count} ORDER BY position")
        if held:
            model.put(key, kind, held[count:])
        return answer, []
    column, roll = NAMES[kind], generator.random()
    names, values = {"hashes": ("field, value", f"'{name}', '{value}'"), "sets": ("member", f"'{name}'"), "sorted_sets": ("member, score", f"'{name}', {value}")}[kind]
    if roll < 0.5:
        answer = ask(sql, f"INSERT INTO redis.{kind} (db, `key`, {names}) VALUES (5, '{key}', {values})")
        if held is None:
            return answer, 1347
        if name in held:
            return answer, 1062
        model.put(key, kind, {**held, name: value})
        return answer, []
    if roll < 0.7 and kind != "sets":
        answer = ask(sql, f"UPDATE redis.{kind} SET {'value' if kind == 'hashes' else 'score'} = {value!r} {where} AND {column} = '{name}'")
        if held and name in held:
            model.put(key, kind, {**held, name: value})
        return answer, []
    some = [f"n{generator.randrange(12)}" for _ in range(generator.randrange(1, 6))]
    listed = ", ".join(f"'{one}'" for one in some)
    answer = ask(sql, f"DELETE FROM redis.{kind} {where} AND {column} IN ({listed})")
    if held:
        model.put(key, kind, {one: of for one, of in held.items() if one not in some})
    return answer, []


def seen_by_sql(sql):
    found = {}
    for kind, columns in (("hashes", "field, value"), ("sets", "member, ''"), ("sorted_sets", "member, score"), ("lists", "position, value")):
        for key, name, value in ask(sql, f"SELECT `key`, {columns} FROM redis.{kind} WHERE db = 5"):
            text = value.decode() if isinstance(value, bytes) else value
            held = found.setdefault(key.decode(), (kind, {}))
            held[1][name if kind == "lists" else name.decode()] = text
    return {key: (kind, [value[at] for at in range(len(value))] if kind == "lists" else value) for key, (kind, value) in found.items()}


def seen_by_redis(keys):
    found = {}
    for key in keys.scan_iter():
        kind = {b"hash": "hashes", b"set": "sets", b"zset": "sorted_sets", b"list": "lists"}[keys.type(key)]
        read = {
            "hashes": lambda: {field.decode(): value.decode() for field, value in keys.hgetall(key).items()},
            "sets": lambda: {member.decode(): "" for member in keys.smembers(key)},
            "sorted_sets": lambda: {member.decode(): score for member, score in keys.zrange(key, 0, -1, withscores=True)},
            "lists": lambda: [item.decode() for item in keys.lrange(key, 0, -1)],
        }
        found[key.decode()] = (kind, read[kind]())
    return found


def same(name, found, expected):
    tally.equal(name, found, expected)
    return found == expected


def histories(server, generator):
    sql, keys = come(server), redis.Redis(port=server.port, db=5)
    committed = Model()
    for step in range(STEPS // 5):
        if generator.random() < 0.4:
            change(committed, generator, None, keys)
            continue
        own, points = committed.copy(), []
        sql.begin()
        for _ in range(generator.randrange(1, 7)):
            roll = generator.random()
            if roll < 0.1:
                points.append(own.copy())
                ask(sql, f"SAVEPOINT p{len(points)}")
            elif roll < 0.2 and points:
                own = points[-1].copy()
                ask(sql, f"ROLLBACK TO p{len(points)}")
            else:
                answer, wanted = change(own, generator, sql, None)
                if not same(f"step {step}", answer, wanted):
                    return
        if generator.random() < 0.5 and not same(f"step {step}: own", seen_by_sql(sql), own.keys):
            return
        if generator.random() < 0.3:
            sql.rollback()
        else:
            sql.commit()
            committed = own
        if step % 5 == 0:
            tally.equal(f"step {step}: Redis", seen_by_redis(keys), committed.keys)
    tally.equal("at the end", (seen_by_redis(keys), seen_by_sql(sql)), (committed.keys, committed.keys))


class Writer(CrashWriter):
    """Moves tokens between a hash, a sorted set and lists, and notes in a row and in a hash how often."""

    def steps(self, line):
        sign, at = self.random.choice([1, -1]), self.random.randrange(400)
        return [
            f"UPDATE redis.hashes SET value = value + {sign} WHERE db = 6 AND `key` = 'money' AND field = 'f{at}'",
            f"UPDATE redis.sorted_sets SET score = score - {sign} WHERE db = 6 AND `key` = 'money:z' AND member = 'm{at}'",
            f"UPDATE crash.`lines` SET number = {line} WHERE writer = {self.number}",
            f"REPLACE INTO redis.hashes (db, `key`, field, value) VALUES (6, 'lines', 'w{self.number}', {line})",
            f"INSERT INTO redis.lists (db, `key`, value) VALUES (6, 'log{self.number}', '{line} {'x' * self.random.choice([0, 10, 400, 3000])}')",
        ]


def verify(server, acknowledged, name):
    root, keys = come(server), redis.Redis(port=server.port, db=6)
    money = sum(int(value) for value in keys.hvals("money")) + sum(score for _, score in keys.zrange("money:z", 0, -1, withscores=True))
    tally.equal(f"{name}: money", money, 800 * 100)
    of_rows = ask(root, "SELECT SUM(value) FROM redis.hashes WHERE db = 6 AND `key` = 'money'")[0][0] + ask(root, "SELECT SUM(score) FROM redis.sorted_sets WHERE db = 6 AND `key` = 'money:z'")[0][0]
    tally.equal(f"{name}: money of rows", of_rows, 800 * 100)
    for writer, known in enumerate(acknowledged):
        row = ask(root, f"SELECT number FROM crash.`lines` WHERE writer = {writer}")[0][0]
        field, log = int(keys.hget("lines", f"w{writer}") or 0), keys.llen(f"log{writer}")
        tally.check(f"{name}: writer {writer}", row == field == log and row in (known, known + 1), f"row {row}, field {field}, {log} items, {known} acknowledged")
        acknowledged[writer] = row


def crashes(server, generator):
    root, keys = come(server), redis.Redis(port=server.port, db=6)
    ask(root, "CREATE DATABASE crash")
    ask(root, "CREATE TABLE crash.`lines` (writer INT PRIMARY KEY, number INT NOT NULL)")
    keys.hset("money", mapping={f"f{at}": 100 for at in range(400)})
    keys.zadd("money:z", {f"m{at}": 100 for at in range(400)})
    acknowledged = [0, 0, 0]
    for writer in range(3):
        ask(root, f"INSERT INTO crash.`lines` VALUES ({writer}, 0)")
    for round_number in range(rounds):
        name = f"round {round_number}"
        threads = [Writer(server, at, random.Random(generator.random()), acknowledged) for at in range(3)]
        for thread in threads:
            thread.start()
        until_committed(threads, generator.randrange(10, 200))
        server.kill()
        for thread in threads:
            thread.join(60)
            tally.check(f"{name}: a writer", thread.wrong is None, thread.wrong)
        checked = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True, timeout=120)
        tally.check(f"{name}: beluga check", checked.returncode == 0, checked.stdout[-500:] + checked.stderr[-500:])
        server.start()
        verify(server, acknowledged, name)
    print(f"{rounds} crashes, {sum(acknowledged)} transactions", flush=True)


def main():
    generator = random.Random(seed)
    with Server(mysql=True) as server:
        for part in (reads, changes, transactions, events):
            part(server)
        histories(server, generator)
        crashes(server, generator)
    with Server(mysql=True) as server:
        large(server)
    tally.close()


if __name__ == "__main__":
    main()
