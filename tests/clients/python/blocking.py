"""Clients that are blocked by BLPOP, BZPOPMIN and the like, beside redis-server: random conversations of several clients, in RESP2 and RESP3. After every request the raw output
of every client is compared: who was served, in which order, with which bytes, by an error, a timeout, CLIENT UNBLOCK or nothing.

At the end: nearly ten thousand blocked clients, as many as maxclients allows, without a thread of their own, and clients that go away while they are blocked.
"""

import argparse
import random
import resource
import select
import time

from beluga import Peer, Server, Tally, Wire, request

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=30)
parser.add_argument("--seed", type=int, default=None)
parser.add_argument("--crowd", type=int, default=9_900)
arguments = parser.parse_args()
seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
print(f"seed {seed}", flush=True)
tally = Tally()

KEYS = ["a", "b", "c", "d"]
# A sorted set of m and n, as DUMP of Redis 7.0 gives it.
DUMPED = b"\x11\x11\x11\x00\x00\x00\x04\x00\x81m\x02\x01\x01\x81n\x02\x02\x01\xff\n\x00(\xbc\x08Y\xf6n\xc9Y"
CLIENTS = 5


class Crowd:
    """The clients of one server. A client is blocked from a request without a reply until that reply comes."""

    def __init__(self, port, resp3):
        self.wires = [Wire(port) for _ in range(CLIENTS)]
        for wire in self.wires:
            wire.call("HELLO", "3" if resp3 else "2")
        self.control = Wire(port)
        self.control.call("FLUSHALL")
        self.ids = [wire.call("CLIENT", "ID")[1:-2] for wire in self.wires]
        self.blocked = set()

    def waiting(self):
        """The clients that the server says are blocked."""
        lines = self.control.call("CLIENT", "LIST").split(b"\n")
        found = set()
        for line in lines:
            fields = dict(field.split(b"=", 1) for field in line.split() if b"=" in field)
            if b"b" in fields.get(b"flags", b"") and fields[b"id"] in self.ids:
                found.add(self.ids.index(fields[b"id"]))
        return found

    def run(self, at, words, expected=None):
        """Sends a request, and returns what each client gets until all are served or blocked: until those are blocked that are expected to be."""
        self.wires[at].send(request(*words))
        output = [b""] * CLIENTS
        pending = {at} | self.blocked
        until = time.monotonic() + 5
        while time.monotonic() < until:
            waiting = self.waiting()
            for client in sorted(pending):
                wire = self.wires[client]
                if wire.at < len(wire.buffer) or select.select([wire.socket], [], [], 0)[0]:
                    output[client] += wire.reply()
                    pending.discard(client)
            if pending <= waiting and (expected is None or pending == expected):
                break
        self.blocked = pending
        return output, sorted(pending)

    def close(self):
        for wire in [*self.wires, self.control]:
            wire.close()


def keys(rng):
    return [rng.choice(KEYS) for _ in range(rng.randrange(1, 4))]


def ends(rng, count):
    return [rng.choice(["LEFT", "RIGHT"]) for _ in range(count)]


def item(rng):
    return rng.choice(["1", "2", "x" * 30, "y" * 1099, "z" * 5000])


def waits(rng):
    several = keys(rng)
    return rng.choice([
        [rng.choice(["BLPOP", "BRPOP"]), *several, "0"],
        ["BLMOVE", rng.choice(KEYS), rng.choice(KEYS), *ends(rng, 2), "0"],
        ["BRPOPLPUSH", rng.choice(KEYS), rng.choice(KEYS), "0"],
        ["BLMPOP", "0", str(len(several)), *several, *ends(rng, 1), *rng.choice([[], ["COUNT", "2"]])],
        [rng.choice(["BZPOPMIN", "BZPOPMAX"]), *several, "0"],
        ["BZMPOP", "0", str(len(several)), *several, rng.choice(["MIN", "MAX"]), *rng.choice([[], ["COUNT", "2"]])],
        *[reads(rng) for _ in range(3)],
    ])


STREAMS = ["s", "t", "a"]
GROUPS = ["g", "h"]


def reads(rng):
    several = [rng.choice(STREAMS) for _ in range(rng.choice([1, 1, 2]))]
    options = [*rng.choice([[], ["COUNT", "1"], ["COUNT", "2"]]), "BLOCK", "0"]
    if rng.random() < 0.4:
        return ["XREAD", *options, "STREAMS", *several, *[rng.choice(["$", "$", "0", "5-1", "9-9"]) for _ in several]]
    ids = [">"] * len(several) if rng.random() < 0.9 else [rng.choice([">", "0"]) for _ in several]
    return ["XREADGROUP", "GROUP", rng.choice(GROUPS), rng.choice(["c", "d"]), *options, *rng.choice([[], ["NOACK"]]), "STREAMS", *several, *ids]


entries = [0]


def adds(rng):
    entries[0] += 1
    return ["XADD", rng.choice(STREAMS), *rng.choice([[], [], ["MAXLEN", "2"], ["MAXLEN", "0"], ["NOMKSTREAM"]]), f"{entries[0]}-1", "f", rng.choice(["v", "w" * 1200])]


def streams(rng):
    one, other, group = rng.choice(STREAMS), rng.choice(STREAMS), rng.choice(GROUPS)
    last = f"{rng.randrange(entries[0] + 2)}-1"
    return rng.choice([
        *[adds(rng) for _ in range(6)],
        *[["XGROUP", "CREATE", one, group, rng.choice(["$", "0"]), "MKSTREAM"] for _ in range(4)],
        ["XGROUP", "DESTROY", one, group],
        ["XGROUP", "SETID", one, group, rng.choice(["$", "0", last])],
        ["XGROUP", rng.choice(["DELCONSUMER", "CREATECONSUMER"]), one, group, "c"],
        ["XACK", one, group, last],
        ["XDEL", one, last],
        ["XTRIM", one, "MAXLEN", "1"],
        ["XSETID", one, last],
        ["XREADGROUP", "GROUP", group, "e", "STREAMS", one, ">"],
        ["XREAD", "STREAMS", one, "0"],
        ["XPENDING", one, group],
        ["RENAME", one, other],
        ["COPY", one, other, "REPLACE"],
        ["DEL", one],
        ["DEL", one, other],
        ["SET", one, "text"],
        ["ZADD", one, "1", "m"],
        ["RPUSH", one, "i"],
        ["PEXPIRE", one, "-1"],
        ["EVAL", "redis.call('XADD', KEYS[1], ARGV[1], 'f', 'v'); return redis.call('XADD', KEYS[2], ARGV[2], 'f', 'v')", "2", one, other, f"{entries[0]}-5", f"{entries[0]}-6"],
        ["EVAL", "return redis.call('XREAD', 'BLOCK', 0, 'STREAMS', KEYS[1], '$')", "1", one],
    ])


def scored(rng):
    return [word for _ in range(rng.randrange(1, 4)) for word in (rng.choice(["1", "2", "-inf", "0.1"]), rng.choice(["m", "n", "x" * 300]))]


def changes(rng):
    if rng.random() < 0.5:
        return streams(rng)
    one, other = rng.choice(KEYS), rng.choice(KEYS)
    return rng.choice([
        [rng.choice(["LPUSH", "RPUSH"]), one, *[item(rng) for _ in range(rng.randrange(1, 4))]],
        [rng.choice(["LPUSH", "RPUSH"]), one, item(rng)],
        [rng.choice(["LPOP", "RPOP"]), one],
        ["LMOVE", one, other, *ends(rng, 2)],
        ["RENAME", one, other],
        ["COPY", one, other, "REPLACE"],
        ["SET", one, "text"],
        ["DEL", one],
        ["SADD", one, "member"],
        ["ZADD", one, *scored(rng)],
        ["ZADD", one, *scored(rng)],
        ["ZINCRBY", one, "1.5", "m"],
        [rng.choice(["ZUNIONSTORE", "ZINTERSTORE"]), one, "2", other, "set"],
        ["ZRANGESTORE", one, other, "0", "-1"],
        ["GEOADD", one, "13.361389", "38.115556", "Palermo"],
        ["GEOSEARCHSTORE", one, other, "FROMLONLAT", "13", "38", "BYRADIUS", "200", "km"],
        ["ZREM", one, "m"],
        ["SADD", "set", "m", "n"],
        ["EVAL", "redis.call('ZADD', KEYS[1], 1, 'm', 2, 'n'); redis.call('RPUSH', KEYS[2], 'x'); return redis.call('ZPOPMIN', KEYS[1])", "2", one, other],
        ["EVAL", "return redis.call('BZMPOP', 0, 1, KEYS[1], 'MIN')", "1", one],
        ["RESTORE", one, "0", DUMPED, "REPLACE"],
        ["LREM", one, "0", "1"],
        ["SWAPDB", "0", "1"],
        ["FLUSHDB"],
        ["LLEN", one],
    ])


def conversation(beluga, peer, rng, resp3):
    crowds = [Crowd(beluga.port, resp3), Crowd(peer.port, resp3)]
    said = []
    try:
        for _ in range(60):
            free = [client for client in range(CLIENTS) if client not in crowds[1].blocked]
            at = rng.choice(free)
            kind = rng.random()
            if kind < 0.4 and len(free) > 1:
                requests = [waits(rng)]
            elif kind < 0.5 and crowds[1].blocked:
                target = rng.choice(sorted(crowds[1].blocked))
                requests = [["CLIENT", "UNBLOCK", target, *rng.choice([[], ["ERROR"], ["TIMEOUT"]])]]
            elif kind < 0.65:
                requests = [["MULTI"], *[waits(rng) if rng.random() < 0.2 else changes(rng) for _ in range(rng.randrange(1, 5))], ["EXEC"]]
            else:
                requests = [changes(rng)]
            for words in requests:
                said.append((at, words))
                real = [[crowd.ids[word] if isinstance(word, int) else word for word in words] for crowd in crowds]
                theirs = crowds[1].run(at, real[1])
                ours = crowds[0].run(at, real[0], crowds[1].blocked)
                if ours != theirs:
                    return f"seed {seed}: {said[-14:]}: Beluga {ours}, Redis {theirs}"
        return None
    finally:
        for crowd in crowds:
            crowd.close()


def timeouts(beluga, peer):
    for words in (["XREAD", "BLOCK", "50", "STREAMS", "k", "$"], ["XREADGROUP", "GROUP", "g", "c", "BLOCK", "50", "STREAMS", "group", ">"], ["BZPOPMIN", "k", "0.05"], ["BZPOPMAX", "k", "l", "0.05"], ["BZMPOP", "0.05", "1", "k", "MIN"], ["BLPOP", "k", "0.05"], ["BLMOVE", "k", "l", "LEFT", "LEFT", "0.05"], ["BRPOPLPUSH", "k", "l", "0.05"], ["BLMPOP", "0.05", "1", "k", "LEFT"]):
        for version in ("2", "3"):
            replies, times = [], []
            for port in (beluga.port, peer.port):
                wire = Wire(port)
                wire.call("HELLO", version)
                wire.call("XGROUP", "CREATE", "group", "g", "0", "MKSTREAM")
                begin = time.monotonic()
                replies.append(wire.call(*words))
                times.append(time.monotonic() - begin)
                wire.close()
            tally.equal(f"timeout of {words[0]}, RESP{version}", replies[0], replies[1])
            tally.check(f"{words[0]} waits for its time", times[0] >= 0.05, f"{times}")


def pipelines(beluga, peer):
    """Replies before a blocking command come at once; requests behind it wait for it."""
    outputs = []
    for port in (beluga.port, peer.port):
        wire, other = Wire(port), Wire(port)
        wire.send(request("SET", "s", "1") + request("CLIENT", "REPLY", "SKIP") + request("PING") + request("BLPOP", "q", "0") + request("INCR", "s") + request("BLPOP", "q", "0"))
        out = wire.reply()
        out += other.call("GET", "s")
        out += other.call("RPUSH", "q", "one") + wire.reply() + wire.reply()
        out += other.call("RPUSH", "q", "two") + wire.reply() + other.call("GET", "s")
        outputs.append(out)
        wire.close()
        other.close()
    tally.equal("a pipeline around blocking commands", outputs[0], outputs[1])


def blocked_count(wire):
    info = wire.call("INFO", "clients")
    return int(info.split(b"blocked_clients:")[1].split(b"\r\n")[0])


def until_blocked(what, wire, count):
    tally.until(what, lambda: blocked_count(wire) == count, detail=lambda: f"{blocked_count(wire)} are blocked")


def departures(beluga):
    """A client that goes away while it is blocked takes nothing."""
    control = Wire(beluga.port)
    control.call("FLUSHALL")
    for nth in range(50):
        gone, stays = Wire(beluga.port), Wire(beluga.port)
        name = gone.call("CLIENT", "ID")[1:-2]
        gone.send(request("BLPOP", "q", "0"))
        until_blocked(f"{nth}: the first is blocked", control, 1)
        stays.send(request("BLPOP", "q", "0"))
        until_blocked(f"{nth}: both are blocked", control, 2)
        if nth % 2:
            gone.close()
        else:
            control.call("CLIENT", "KILL", "ID", name)
        until_blocked(f"{nth}: one is left", control, 1)
        control.call("RPUSH", "q", "element")
        tally.equal(f"{nth}: the element goes to the client that is there", stays.reply(), b"*2\r\n$1\r\nq\r\n$7\r\nelement\r\n")
        stays.close()
    control.close()


def crowd(beluga, count):
    """Many blocked clients have no thread and little memory, and are served in their order."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 1000), hard))
    count = min(count, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 500)
    control = Wire(beluga.port)
    control.call("FLUSHALL")
    status = lambda word: int(next(line for line in open(f"/proc/{beluga.process.pid}/status") if line.startswith(word)).split()[1])
    threads, memory = status("Threads:"), status("VmRSS:")
    wires = []
    control.call("XGROUP", "CREATE", "stream", "group", "0", "MKSTREAM")
    for nth in range(count):
        wire = Wire(beluga.port)
        words = ["XREADGROUP", "GROUP", "group", f"c{nth}", "COUNT", "1", "BLOCK", "0", "STREAMS", "stream", ">"] if nth % 2 else ["BLPOP", "queue", "0"]
        wire.send(request(*words))
        wires.append(wire)
        if nth % 500 == 499:
            until_blocked(f"{nth + 1} are blocked", control, nth + 1)
    until_blocked("all are blocked", control, count)
    more, each = status("Threads:") - threads, (status("VmRSS:") - memory) * 1024 / count
    print(f"{count} blocked clients: {more} more threads, {each:.0f} bytes each")
    tally.check("blocked clients have no thread", more < 40, f"{more} more threads")
    tally.check("blocked clients have little memory", each < 12_000, f"{each:.0f} bytes each")
    for first in range(0, count, 1000):
        part = range(first, min(first + 1000, count))
        control.call("RPUSH", "queue", *[str(nth) for nth in part if nth % 2 == 0])
        for nth in part:
            if nth % 2:
                control.call("XADD", "stream", "*", "f", str(nth))
    served = [wire.reply().split(b"\r\n")[12 if nth % 2 else 4] for nth, wire in enumerate(wires)]
    # The clients have come together, so their order is not known.
    tally.check("each client has an element of its own", sorted(served, key=int) == [b"%d" % nth for nth in range(count)])
    tally.check("an element each, none left", control.call("LLEN", "queue") == b":0\r\n" and control.call("XPENDING", "stream", "group").startswith(b"*4\r\n:%d\r\n" % (count // 2)))
    for wire in [*wires, control]:
        wire.close()


def main(beluga, peer):
    rng = random.Random(seed)
    timeouts(beluga, peer)
    pipelines(beluga, peer)
    for number in range(arguments.rounds):
        difference = conversation(beluga, peer, rng, number % 2 == 1)
        tally.check(f"conversation {number}", difference is None, difference)
        if tally.failed > 5:
            return
    departures(beluga)
    if arguments.crowd:
        crowd(beluga, arguments.crowd)


with Server() as beluga, Peer() as peer:
    try:
        main(beluga, peer)
    except (EOFError, OSError) as error:
        tally.check("the servers answer", False, f"seed {seed}: {error}\n{beluga.output()}")
tally.close()
