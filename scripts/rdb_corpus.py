#!/usr/bin/env python3
"""Records what a real redis-server replies to DUMP, for the tests of the crate `rdb`.

  scripts/rdb_corpus.py PORT COUNT [SEED] >crates/rdb/tests/it/corpus.txt

A line is a value: its type, the reply in hexadecimal, and the value's parts as the test prints them. The server at 127.0.0.1:PORT is emptied first. Needs redis-py.
"""
import random
import struct
import sys

import redis


def text(r, longest=40):
    kind = r.randrange(8)
    if kind < 2:
        return str(r.choice([r.randrange(-200, 200), r.randrange(-40000, 40000), r.randrange(-(2**33), 2**33), r.randrange(-(2**63), 2**63)])).encode()
    if kind == 2:
        return r.choice([b"", b"-0", b"+1", b"01", b" 1", b"1e3", b"9223372036854775808", b"-9223372036854775808"])
    if kind == 3:
        return bytes(r.randrange(256) for _ in range(r.randrange(longest)))
    if kind == 4:
        return r.choice([b"a", b"xyz", b"\x00"]) * r.randrange(longest * 2)
    words = [b"alpha", b"beta", b"gamma", b"delta", b" ", b"0", b"aaaa"]
    return b"".join(r.choice(words) for _ in range(r.randrange(longest)))


def score(r):
    return r.choice([0.0, -1.5, 1e300, 3.0, float("inf"), float("-inf"), r.random(), float(r.randrange(-1000, 1000)), r.random() * 2**60, 0.1, 1e-7])


def hexes(items):
    return " ".join(item.hex() or "-" for item in items)


def member(r, size, at):
    """Many members differ from each other, so that they are too many for a listpack."""
    return b"%d " % at if size > 100 else text(r, 6)


def number(value):
    return struct.pack(">d", value).hex()


def make(r, db, key, kind):
    """Makes a value and returns its parts."""
    size = r.choice([1, 2, 5, 20, 140 if kind in ("hash", "zset", "set") else 40])
    if kind == "string":
        value = text(r, 100)
        db.set(key, value)
        return [f"string {hexes([value])}"]
    if kind == "list":
        items = [text(r, r.choice([10, 40, 3000]) if size < 20 else 10) for _ in range(size)]
        for item in items:
            db.rpush(key, item)
        return [f"item {hexes([item])}" for item in items]
    if kind == "set":
        numbers = r.random() < 0.5
        width = r.choice([2**14, 2**30, 2**62])
        for _ in range(size):
            db.sadd(key, str(r.randrange(-width, width)).encode() if numbers else text(r, 6))
        return sorted(f"member {hexes([member])}" for member in db.smembers(key))
    if kind == "hash":
        for at in range(size):
            db.hset(key, member(r, size, at), text(r, 6))
        return sorted(f"field {hexes(pair)}" for pair in db.hgetall(key).items())
    if kind == "zset":
        for at in range(size):
            db.zadd(key, {member(r, size, at): score(r)})
        return sorted(f"scored {hexes([member])} {number(value)}" for member, value in db.zrange(key, 0, -1, withscores=True))
    return stream(r, db, key, size)


def stream(r, db, key, size):
    ids, ms, seq = [], r.randrange(2**41), r.randrange(5)
    usual = [text(r, 8) for _ in range(r.randrange(1, 4))]
    for _ in range(size):
        fields = usual if r.random() < 0.7 else [text(r, 8) for _ in range(r.randrange(1, 5))]
        at = b"%d-%d" % (ms, seq)
        db.execute_command("XADD", key, at, *[part for field in fields for part in (field, text(r, 6))])
        ids.append(at)
        ms, seq = (ms, seq + r.randrange(1, 3)) if r.random() < 0.5 else (ms + r.randrange(1, 2**20), r.randrange(3))
    for at in r.sample(ids, r.randrange(min(len(ids), 4))):
        db.xdel(key, at)
    for group in range(r.randrange(3)):
        name = b"group-%d" % group
        db.execute_command("XGROUP", "CREATE", key, name, r.choice([b"0", b"$", r.choice(ids)]), *r.choice([[], [b"ENTRIESREAD", b"2"]]))
        db.execute_command("XGROUP", "CREATECONSUMER", key, name, b"idle")
        for consumer in range(r.randrange(1, 3)):
            db.execute_command("XREADGROUP", "GROUP", name, b"c%d" % consumer, "COUNT", r.randrange(1, 9), "STREAMS", key, ">")
    return stream_parts(db, key)


def colon(at):
    ms, seq = (int(part) for part in at.split(b"-"))
    return f"{ms}-{seq}"


def stream_parts(db, key):
    full = pairs(db.execute_command("XINFO", "STREAM", key, "FULL", "COUNT", 0))
    parts = [f"entry {colon(at)} {hexes(fields)}" for at, fields in full[b"entries"]]
    parts.append(
        f"state {full[b'length']} {colon(full[b'last-generated-id'])} {colon(full[b'max-deleted-entry-id'])} {full[b'entries-added']}"
    )
    for group in map(pairs, full[b"groups"]):
        read = group[b"entries-read"]
        parts.append(f"group {hexes([group[b'name']])} {colon(group[b'last-delivered-id'])} {'?' if read is None else read}")
        for at, _, time, count in group[b"pel" if b"pel" in group else b"pending"]:
            parts.append(f"pending {colon(at)} {time} {count}")
        for consumer in map(pairs, group[b"consumers"]):
            parts.append(f"consumer {hexes([consumer[b'name']])} {consumer[b'seen-time']}")
            parts += [f"owns {colon(entry[0])}" for entry in consumer[b"pel" if b"pel" in consumer else b"pending"]]
    return parts


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2]))


def main():
    port, count, seed = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    r = random.Random(seed)
    db = redis.Redis(port=port)
    db.flushall()
    db.config_set("hash-max-listpack-entries", 128)
    db.response_callbacks.pop("XINFO STREAM", None)
    kinds = ["string", "list", "set", "hash", "zset", "stream"]
    for at in range(count):
        key, kind = b"k%d" % at, kinds[at % len(kinds)]
        parts = make(r, db, key, kind)
        print(kind, db.dump(key).hex(), "; ".join(parts), sep="\t")


main()
