"""Random values of every type, as commands, and what a server holds of them."""

import hashlib

POLYNOMIAL = 0x95AC9329AC4BC9B5


def crc_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


TABLE = crc_table()


def with_checksum(body):
    crc = 0
    for byte in body:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return body + crc.to_bytes(8, "little")


def text(rng, longest=30):
    kind = rng.randrange(7)
    if kind < 2:
        return str(rng.choice([rng.randrange(-200, 200), rng.randrange(-40000, 40000), rng.randrange(-(2**63), 2**63)])).encode()
    if kind == 2:
        return rng.choice([b"", b"-0", b"+1", b"01", b"1e3", b"9223372036854775808", b"2147483648"])
    if kind == 3:
        return rng.randbytes(rng.randrange(longest))
    if kind == 4:
        return rng.choice([b"a", b"xyz", b"\x00"]) * rng.randrange(longest * 4)
    return b"".join(rng.choice([b"alpha", b"beta", b" ", b"0", b"aaaa"]) for _ in range(rng.randrange(longest)))


def score(rng):
    # Not -0, whose sign Redis' listpack forgets, so that it depends on the history of the set.
    return rng.choice(["0", "-1.5", "1e300", "3", "inf", "-inf", repr(rng.random()), str(rng.randrange(-1000, 1000)), str(2**60), "0.1", "1e-7"])


def string(rng, key):
    return [("SET", key, text(rng, rng.choice([5, 100, 20000])))]


def hash_of(rng, key):
    return [("HSET", key, text(rng), text(rng)) for _ in range(rng.choice([1, 3, 20, 300]))]


def set_of(rng, key):
    width = rng.choice([2**14, 2**30, 2**62])
    make = rng.choice([text, lambda rng: str(rng.randrange(-width, width)).encode()])
    return [("SADD", key, make(rng)) for _ in range(rng.choice([1, 3, 20, 200, 700]))]


def sorted_set(rng, key):
    return [("ZADD", key, score(rng), text(rng)) for _ in range(rng.choice([1, 3, 20, 300]))]


def list_of(rng, key):
    longest = rng.choice([5, 30, 3000])
    return [("RPUSH", key, text(rng, longest)) for _ in range(rng.choice([1, 3, 20, 300]))]


def stream(rng, key):
    commands, ids, ms, seq = [], [], rng.randrange(2**41), 1
    usual = [text(rng) for _ in range(rng.randrange(1, 4))]
    for _ in range(rng.choice([1, 3, 20, 300])):
        fields = usual if rng.random() < 0.7 else [text(rng) for _ in range(rng.randrange(1, 5))]
        ids.append(f"{ms}-{seq}")
        commands.append(("XADD", key, ids[-1], *[part for name in fields for part in (name, text(rng))]))
        ms, seq = (ms, seq + 1) if rng.random() < 0.5 else (ms + rng.randrange(1, 2**20), rng.randrange(3))
    for at in rng.sample(ids, rng.choice([0, 0, min(len(ids), 4)])):
        commands.append(("XDEL", key, at))
    for group in GROUPS[: rng.randrange(3)]:
        commands.append(("XGROUP", "CREATE", key, group, rng.choice(["0", "$", rng.choice(ids)]), *rng.choice([[], ["ENTRIESREAD", "2"]])))
        commands.append(("XGROUP", "CREATECONSUMER", key, group, "idle"))
        for consumer in ("c1", "c2"):
            commands.append(("XREADGROUP", "GROUP", group, consumer, "COUNT", rng.randrange(1, 400), "STREAMS", key, ">"))
    return commands


GROUPS = ["g1", "g2"]
KINDS = [string, stream, list_of, hash_of, set_of, sorted_set]
# Redis keeps the members of these encodings in the order of a hash table.
UNORDERED = [b"hashtable"]


def digest(value):
    """Short enough for a message."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16], repr(value)[:300]


def bulk(reply):
    return None if reply.startswith((b"$-1", b"_")) else reply[reply.index(b"\r\n") + 2 : -2]


def content(wire, key):
    """All of a key's value, in an order that does not depend on how it is kept."""
    kind = wire.call("TYPE", key)
    if kind == b"+string\r\n":
        return wire.call("GET", key)
    if kind == b"+stream\r\n":
        # First, as it makes the consumer.
        parts = [wire.call("XREADGROUP", "GROUP", group, "c1", "STREAMS", key, "0") for group in GROUPS]
        parts += [wire.call("XRANGE", key, "-", "+"), wire.call("XINFO", "GROUPS", key)]
        info = wire.call("XINFO", "STREAM", key)
        parts += [info[info.index(name) :].split(b"\r\n")[1:3] for name in (b"last-generated-id", b"max-deleted-entry-id", b"entries-added")]
        for group in GROUPS:
            parts.append(wire.call("XPENDING", key, group))
        named = b"$%d\r\n%s\r\n" % (len(key), key)
        return [part.replace(named, b"KEY").replace(b"'%s'" % key, b"KEY") if isinstance(part, bytes) else part for part in parts]
    if kind == b"+list\r\n":
        return wire.call("LRANGE", key, 0, -1)
    if kind == b"+hash\r\n":
        return sorted(pairs(wire.call("HGETALL", key)))
    if kind == b"+set\r\n":
        return sorted(items(wire.call("SMEMBERS", key)))
    if kind == b"+zset\r\n":
        return wire.call("ZRANGE", key, 0, -1, "WITHSCORES")
    return kind


def items(raw):
    """The bulk strings of an array."""
    at, found = raw.index(b"\r\n") + 2, []
    while at < len(raw):
        end = raw.index(b"\r\n", at)
        length = int(raw[at + 1 : end])
        found.append(raw[end + 2 : end + 2 + length])
        at = end + 4 + length
    return found


def pairs(raw):
    flat = items(raw)
    return list(zip(flat[::2], flat[1::2]))
