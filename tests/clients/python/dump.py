"""DUMP and RESTORE beside redis-server: random values of every type that both serve. What one dumps the other restores; where the form of a value does not depend on chance, both
dump the same bytes. Damaged payloads with a right checksum are refused or restored, and the server goes on.
"""

import random
import time

from beluga import Peer, Server, Tally, Wire, rounds_and_seed
from dump_values import KINDS, UNORDERED, bulk, content, digest, stream, with_checksum

rounds, seed = rounds_and_seed(400)
tally = Tally()


def play(ours, theirs, rng, at):
    kind, key = rng.choice(KINDS), b"k%d" % at
    name = f"round {at}, {kind.__name__}"
    for command in kind(rng, key):
        ours.call(*command)
        theirs.call(*command)
    encodings = [bulk(wire.call("OBJECT", "ENCODING", key)) for wire in (ours, theirs)]
    tally.equal(f"{name}: encoding", *encodings)
    mine, other = (bulk(wire.call("DUMP", key)) for wire in (ours, theirs))
    # Redis keeps deleted entries in their listpack, and the moment when a consumer was seen differs.
    if encodings[1] not in UNORDERED and kind is not stream:
        tally.equal(f"{name}: payload", digest(mine), digest(other))
    ttl = rng.choice([0, 0, 100000])
    for wire, payload, whose in ((ours, other, "Redis'"), (theirs, mine, "Beluga's")):
        tally.equal(f"{name}: RESTORE of {whose}", wire.call("RESTORE", b"copy", ttl, payload, "REPLACE"), b"+OK\r\n")
        tally.equal(f"{name}: the copy of {whose}", digest(content(wire, b"copy")), digest(content(theirs, key)))
        tally.equal(f"{name}: its encoding", bulk(wire.call("OBJECT", "ENCODING", b"copy")), encodings[1])
        left = int(wire.call("PTTL", b"copy")[1:])
        tally.check(f"{name}: its time", left == -1 if ttl == 0 else 0 < left <= ttl, left)
    damage(ours, rng, name, mine)
    for wire in (ours, theirs):
        wire.call("DEL", key)


def damage(ours, rng, name, payload):
    """Redis does not check all of a payload unless it is told to, and may end; so ours alone gets these."""
    for _ in range(4):
        body = bytearray(payload[:-8])
        for _ in range(rng.choice([1, 1, 3])):
            body[rng.randrange(len(body) - 2)] = rng.choice([rng.randrange(256), 0, 0xFF, 0x80, 0xC3])
        if rng.random() < 0.2:
            cut = rng.randrange(1, len(body) - 1)
            body = body[:cut] + body[-2:]
        reply = ours.call("RESTORE", b"bad", 0, with_checksum(bytes(body)), "REPLACE")
        tally.check(f"{name}: a damaged payload", reply in (b"+OK\r\n", b"-ERR Bad data format\r\n"), f"{reply} {bytes(body).hex()[:400]}")
        if reply == b"+OK\r\n":
            again = bulk(ours.call("DUMP", b"bad"))
            tally.equal(f"{name}: what was restored", ours.call("RESTORE", b"bad", 0, again, "REPLACE"), b"+OK\r\n")
        ours.call("DEL", b"bad")


def refusals(ours, theirs):
    theirs.call("SET", b"k", b"hello")
    payload = bulk(theirs.call("DUMP", b"k"))
    wrong = payload[:-1] + bytes([payload[-1] ^ 1])
    newer = with_checksum(payload[:-10] + (99).to_bytes(2, "little"))
    older = with_checksum(payload[:-10] + (3).to_bytes(2, "little"))
    unknown = with_checksum(b"\x63" + payload[1:-8])
    module = with_checksum(b"\x07" + payload[1:-8])
    soon, past = str(int(time.time() * 1000) + 500000), "1000"
    for command in [
        ("DUMP",), ("DUMP", "none"), ("DUMP", "a", "b"), ("RESTORE", "a", "0"),
        ("RESTORE", "a", "0", payload), ("RESTORE", "a", "0", payload), ("RESTORE", "a", "x", payload), ("RESTORE", "a", "x", payload, "REPLACE"),
        ("RESTORE", "a", "-1", payload, "REPLACE"), ("RESTORE", "a", "0", wrong, "REPLACE"), ("RESTORE", "a", "0", b"", "REPLACE"), ("RESTORE", "a", "0", b"12345678", "REPLACE"),
        ("RESTORE", "a", "0", newer, "REPLACE"), ("RESTORE", "a", "0", older, "REPLACE"), ("RESTORE", "a", "0", unknown, "REPLACE"), ("RESTORE", "a", "0", module, "REPLACE"),
        ("RESTORE", "a", "0", payload, "replace", "absttl"), ("RESTORE", "a", soon, payload, "REPLACE", "ABSTTL"), ("RESTORE", "a", past, payload, "REPLACE", "ABSTTL"), ("GET", "a"),
        ("RESTORE", "a", past, payload, "ABSTTL"), ("GET", "a"), ("RESTORE", "a", "0", payload, "IDLETIME"), ("RESTORE", "a", "0", payload, "IDLETIME", "-1"),
        ("RESTORE", "a", "0", payload, "IDLETIME", "x"), ("RESTORE", "a", "0", payload, "FREQ", "256"), ("RESTORE", "a", "0", payload, "FREQ", "5", "IDLETIME", "3"),
        ("RESTORE", "a", "0", payload, "IDLETIME", "3"), ("RESTORE", "a", "0", payload, "FREQ", "5", "REPLACE"), ("RESTORE", "a", "0", payload, "NOSUCH"), ("GET", "a"),
        ("MULTI",), ("RESTORE", "b", "0", payload), ("DUMP", "b"), ("RESTORE", "b", "0", payload), ("EXEC",),
    ]:
        tally.equal(f"{command}", ours.call(*command), theirs.call(*command))


with Server() as beluga, Peer() as peer:
    rng = random.Random(seed)
    ours, theirs = Wire(beluga.port), Wire(peer.port)
    for wire in (ours, theirs):
        wire.call("CONFIG", "SET", "hash-max-listpack-entries", "128")
    refusals(ours, theirs)
    for at in range(rounds):
        play(ours, theirs, rng, at)
        if tally.failed > 10:
            break
    # What was restored is there after a crash.
    theirs.call("ZADD", b"z", 1, b"a", 2, b"b")
    payload = bulk(theirs.call("DUMP", b"z"))
    tally.equal("a sorted set", ours.call("RESTORE", b"z", 0, payload), b"+OK\r\n")
    beluga.kill()
    beluga.start()
    again = Wire(beluga.port)
    tally.equal("the same after kill -9", content(again, b"z"), content(theirs, b"z"))
tally.close()
