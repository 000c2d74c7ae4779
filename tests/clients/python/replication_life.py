"""What the tests of replication share: changes of every kind, and the comparison of two servers. The tests of REPLICAOF and of PSYNC use it."""

from beluga import Tally, Wire, request
from dump_values import KINDS, bulk, content, digest

tally = Tally()
LIBRARY = b"#!lua name=lib\nredis.register_function('f', function() return %d end)"
DATABASES = (0, 1, 7, 15)


def facts(port, section="replication"):
    text = bulk(Wire(port).call("INFO", section)).decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def is_up(server):
    return facts(server.port).get("master_link_status") == "up"


def has_all(server, master):
    ours, theirs = facts(server.port), facts(master.port)
    return ours.get("master_link_status") == "up" and ours["slave_repl_offset"] == theirs["master_repl_offset"]


def fill(master, rng, count):
    """Random values in some databases, some with times."""
    wire = Wire(master.port)
    for at in range(count):
        wire.call("SELECT", rng.choice(DATABASES))
        key = b"k%d" % rng.randrange(2 * count)
        wire.call("DEL", key)
        for command in rng.choice(KINDS)(rng, key):
            wire.call(*command)
        if rng.random() < 0.3:
            wire.call("PEXPIREAT", key, 4_000_000_000_000)


def change(wire, rng, count):
    """Changes of which the master sends others than it got, or transactions."""
    key = b"c%d" % rng.randrange(20)
    wire.call("SELECT", rng.choice(DATABASES))
    for command in rng.choice(
        [
            [("SADD", key, *[b"m%d" % rng.randrange(50) for _ in range(5)]), ("SPOP", key, rng.randrange(3))],
            [("HINCRBYFLOAT", key, b"f", "0.1"), ("HSET", key, b"n%d" % rng.randrange(600), rng.randbytes(20))],
            [("INCRBYFLOAT", key, "1.7"), ("APPEND", key, b"x"), ("SETRANGE", key, 30, b"y")],
            [("SET", key, b"v", "PX", rng.choice([1, 30, 10**9])), ("GETEX", key, "EX", 1000), ("GETEX", key, "PERSIST")],
            [("RPUSH", key, *[rng.randbytes(rng.choice([3, 300])) for _ in range(9)]), ("LPOP", key, 3), ("LMOVE", key, b"other", "LEFT", "RIGHT"), ("LTRIM", b"other", -50, -1)],
            [("ZADD", key, "CH", "INCR", rng.random(), b"m%d" % rng.randrange(300)), ("ZPOPMIN", key, 1), ("ZRANGESTORE", b"ranged", key, 0, -1)],
            [("XADD", key, "MAXLEN", "~", 40, "*", b"f", rng.randbytes(5)), ("XGROUP", "CREATE", key, b"g", "0"), ("XREADGROUP", "GROUP", b"g", b"c", "COUNT", 2, "STREAMS", key, ">"), ("XAUTOCLAIM", key, b"g", b"d", 0, "0")],
            [("GEOADD", key, rng.random() * 50, rng.random() * 50, b"p%d" % rng.randrange(9)), ("GEOSEARCHSTORE", b"near", key, "FROMLONLAT", 20, 20, "BYRADIUS", 5000, "km", "ASC")],
            [("PFADD", key, *[b"%d" % rng.randrange(1000) for _ in range(9)]), ("SETBIT", b"bits", rng.randrange(5000), 1), ("BITFIELD", b"bits", "INCRBY", "u8", 8, 3)],
            [("RPUSH", b"sorted", rng.randrange(100)), ("SORT", b"sorted", "BY", b"w_*", "GET", "#", "STORE", b"result")],
            [("DEL", key), ("RENAME", b"other", key), ("COPY", key, b"copied", "DB", 7, "REPLACE"), ("MOVE", key, 1)],
            [("EVAL", "for i = 1, 5 do redis.call('INCR', KEYS[1]) redis.call('RPUSH', KEYS[2], redis.call('TIME')[2]) end", 2, b"lua", b"luas"), ("LTRIM", b"luas", -30, -1)],
            [("MULTI",), ("INCR", b"in_multi"), ("SELECT", 1), ("INCR", b"in_multi"), ("SELECT", 7), ("LPUSH", b"log", b"x"), ("LTRIM", b"log", 0, 20), ("EXEC",)],
            [("SWAPDB", 1, 7)],
            [("FLUSHDB",)] if rng.random() < 0.1 else [("DBSIZE",)],
            [("PUBLISH", b"news", b"n")],
            [("FUNCTION", "LOAD", "REPLACE", LIBRARY % rng.randrange(100))],
        ]
    ):
        wire.call(*command)
    for _ in range(count):
        wire.send(request("SELECT", 0) + request("INCR", b"counter") + request("LPUSH", b"pushed", b"p"))
        [wire.reply() for _ in range(3)]


def compare(server, master, scratch, what, twin=None):
    """Compares all keys, through a third server that restores both dumps, so that neither of the two changes. Where a replica of Redis itself differs from its master (entries that groups have
    read), ours may be as that replica."""
    ours, theirs, third = Wire(server.port), Wire(master.port), Wire(scratch.port)
    other = Wire((twin or master).port)
    differ = []
    for db in range(16):
        for wire in (ours, theirs, other):
            wire.call("SELECT", db)
        names = [sorted(keys(wire)) for wire in (ours, theirs)]
        tally.equal(f"{what}: keys of database {db}", len(names[0]), len(names[1]))
        for key in sorted(set(names[0]) & set(names[1])):
            third.call("FLUSHALL")
            values = []
            for wire in (ours, theirs, other):
                answer = third.call("RESTORE", key, 0, bulk(wire.call("DUMP", key)), "REPLACE")
                values.append((answer, digest(content(third, key)), wire.call("PEXPIRETIME", key), bulk(wire.call("TYPE", key))))
            if values[0] not in values[1:]:
                differ.append((db, key, values))
        tally.equal(f"{what}: names of database {db}", set(names[0]) ^ set(names[1]), set())
    tally.check(f"{what}: values", not differ, f"{len(differ)} differ: {differ[:2]}")
    tally.equal(f"{what}: functions", ours.call("FUNCTION", "LIST", "WITHCODE"), theirs.call("FUNCTION", "LIST", "WITHCODE"))
    return not differ


def keys(wire):
    raw, found = wire.call("KEYS", "*"), []
    at = raw.index(b"\r\n") + 2
    while at < len(raw):
        end = raw.index(b"\r\n", at)
        length = int(raw[at + 1 : end])
        found.append(raw[end + 2 : end + 2 + length])
        at = end + 4 + length
    return found
