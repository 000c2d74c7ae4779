"""Client-side caching beside redis-server: random histories of several clients that track keys in all modes. After every request the raw output of every client is compared: replies, invalidations and their order.

At the end, of Beluga alone: many clients cache keys that others change, also by SQL, and no client keeps a value that has changed.
"""

import argparse
import random
import threading

from beluga import Peer, Server, Tally, Wire, request

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=40)
parser.add_argument("--seed", type=int, default=None)
arguments = parser.parse_args()
seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
print(f"seed {seed}", flush=True)
tally = Tally()

LONG = "long" + "x" * 600
KEYS = ["a", "b", "ab", "c", LONG, ""]
CLIENTS = 4
# The last client subscribes in RESP2, as the target of redirections.
TARGET = CLIENTS - 1


class Crowd:
    def __init__(self, port, versions):
        self.wires = [Wire(port) for _ in range(CLIENTS)]
        self.ids = [wire.call("CLIENT", "ID")[1:-2] for wire in self.wires]
        for wire, version in zip(self.wires, versions):
            wire.call("HELLO", version)
            wire.call("CLIENT", "SETNAME", "synchronised")
        # Beluga forgets all keys when nobody tracks.
        self.keeper = Wire(port)
        self.keeper.call("CLIENT", "TRACKING", "ON")
        self.wires[0].call("FLUSHALL")
        self.wires[TARGET].call("SUBSCRIBE", "__redis__:invalidate")

    def run(self, at, requests):
        """Sends requests in one piece. Returns what each client has got when it answers a request that follows."""
        self.wires[at].send(b"".join(request(*[self.ids[word] if isinstance(word, int) else word for word in words]) for words in requests))
        self.output = [[] for _ in range(CLIENTS)]
        # Redis sends what it broadcasts when it has read all that has come, so the others are asked behind the replies.
        replies = 0
        while replies < len(requests):
            reply = self.wires[at].reply()
            replies += not reply.startswith(b">")
            self.output[at].append(reply)
        for client in [at, *[other for other in range(CLIENTS) if other != at]]:
            wire = self.wires[client]
            wire.send(request("PING") if client == TARGET else request("CLIENT", "GETNAME"))
            while True:
                reply = wire.reply()
                if reply in (b"$12\r\nsynchronised\r\n", b"*2\r\n$4\r\npong\r\n$0\r\n\r\n", b"+PONG\r\n"):
                    break
                self.output[client].append(reply)
        return self.output

    def close(self):
        for wire in [*self.wires, self.keeper]:
            wire.close()


def key(rng):
    return rng.choice(KEYS)


def reads(rng):
    return rng.choice([
        ["GET", key(rng)], ["GET", key(rng)], ["MGET", key(rng), key(rng)], ["EXISTS", key(rng), key(rng)], ["STRLEN", key(rng)], ["TYPE", key(rng)], ["LRANGE", key(rng), "0", "-1"],
        ["HGETALL", key(rng)], ["TTL", key(rng)], ["SINTER", key(rng), key(rng)], ["ZSCORE", key(rng), "m"], ["XREAD", "STREAMS", key(rng), "0"], ["GET"], ["BITCOUNT", key(rng)],
        ["EVAL", "return redis.call('GET', KEYS[1])", "1", key(rng)], ["EVAL_RO", "return redis.call('EXISTS', KEYS[1])", "1", key(rng)],
        ["EVAL", "return redis.call('GET', KEYS[1])", "2", key(rng), key(rng)], ["EVAL_RO", "return redis.call('PING')", "2", key(rng), key(rng)],
        ["EVAL", "redis.call('SET', KEYS[2], 1); redis.call('GET', KEYS[2]); return redis.call('SET', KEYS[1], 2)", "2", key(rng), key(rng)],
        ["EVAL", "redis.call('SET', KEYS[1], 1); redis.call('GET', KEYS[1]); return redis.call('EXISTS', KEYS[2])", "2", key(rng), key(rng)],
    ])


def changes(rng):
    one, other = key(rng), key(rng)
    return rng.choice([
        ["SET", one, "1"], ["SET", one, "1"], ["SET", one, "2", "EX", "1000"], ["INCR", one], ["APPEND", one, "x"], ["DEL", one, other], ["DEL", one], ["RPUSH", one, "i"], ["LPOP", one],
        ["HSET", one, "f", "v"], ["HSET", one, "f", "v"], ["SADD", one, "m"], ["SMOVE", one, other, "m"], ["ZADD", one, "1", "m"], ["ZADD", one, "NX", "1", "m"], ["RENAME", one, other],
        ["COPY", one, other, "REPLACE"], ["EXPIRE", one, "1000"], ["PEXPIRE", one, "-1"], ["PERSIST", one], ["MSET", one, "1", other, "2"], ["SETNX", one, "1"], ["GETDEL", one],
        ["XADD", one, "*", "f", "v"], ["SUNIONSTORE", one, other], ["PFADD", one, "m"], ["SETRANGE", one, "0", "x"], ["FLUSHDB"], ["FLUSHALL"], ["MOVE", one, "1"],
        ["EVAL", "redis.call('SET', KEYS[1], 1); return redis.call('INCR', KEYS[2])", "2", one, other],
    ])


def tracking(rng):
    words = ["CLIENT", "TRACKING", rng.choice(["ON", "ON", "ON", "OFF", "on", "maybe"])]
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        words += rng.choice([["BCAST"], ["NOLOOP"], ["OPTIN"], ["OPTOUT"], ["PREFIX", rng.choice(["a", "b", "ab", "", "lo"])], ["REDIRECT", TARGET], ["REDIRECT", rng.randrange(CLIENTS)], ["REDIRECT", "999999"], ["BAD"], ["bcast", "PREFIX", "a"]])
    return words


def step(rng):
    kind = rng.random()
    if kind < 0.35:
        return [reads(rng)]
    if kind < 0.65:
        return [changes(rng)]
    if kind < 0.78:
        return [rng.choice([tracking(rng), tracking(rng), ["CLIENT", "TRACKING", "ON"], ["CLIENT", "TRACKING", "OFF"], ["CLIENT", "TRACKING", "ON", "OPTIN"], ["CLIENT", "TRACKING", "ON", "BCAST"]])]
    if kind < 0.86:
        return [["CLIENT", "CACHING", rng.choice(["YES", "NO", "yes", "BAD"])]]
    if kind < 0.92:
        return [rng.choice([["CLIENT", "TRACKINGINFO"], ["CLIENT", "GETREDIR"]])]
    return [["MULTI"], *[rng.choice([reads, changes])(rng) for _ in range(rng.randrange(1, 5))], ["EXEC"]]


def differs(requests, is_quiet):
    """Whether Redis 7.0 does what Beluga does not: it reports the second of overlapping prefixes with an error and with OK; it tells a client with BCAST and NOLOOP of what its own scripts change; and it has reads behind a FLUSHALL of the same transaction in its table."""
    prefixes = [words[at + 1] for words in requests for at, word in enumerate(words[:-1]) if word == "PREFIX"]
    names = [words[0] for words in requests]
    return len(prefixes) > 1 or is_quiet and "EVAL" in names or "EXEC" in names and ("FLUSHALL" in names or "FLUSHDB" in names)


def history(beluga, peer, rng):
    versions = [rng.choice("33332") for _ in range(TARGET)] + ["2"]
    crowds = [Crowd(beluga.port, versions), Crowd(peer.port, versions)]
    said, quiet = [], set()
    try:
        for _ in range(80):
            at, requests = rng.randrange(TARGET), step(rng)
            if differs(requests, at in quiet):
                continue
            words = [word.upper() if isinstance(word, str) else word for word in requests[0]]
            if words[1:3] == ["TRACKING", "ON"]:
                (quiet.add if "NOLOOP" in words else quiet.discard)(at)
            said.append((at, requests))
            ours, theirs = ([masked(output, crowd.ids if requests[0][0] == "CLIENT" else []) for output in crowd.run(at, requests)] for crowd in crowds)
            if ours != theirs:
                return f"seed {seed}: RESP {versions}, {said[-16:]}: Beluga {ours}, Redis {theirs}".replace(LONG, "LONG")
        return None
    finally:
        for crowd in crowds:
            crowd.close()


def masked(output, ids):
    """The lines of an output, without the ids of clients and the new ids of entries. To a target of RESP2, Redis sends the null of RESP3 if that is the version of the client that redirects."""
    places = {b"_": b"$-1"} | {b":" + name: b"client %d" % at for at, name in enumerate(ids)}
    lines, pushes = [], []
    for reply in [*output, b""]:
        # The keys of one command have no order.
        shown = [places.get(line, b"an id" if len(line) == 15 and line.startswith(b"17") else line) for line in reply.split(b"\r\n")[:-1]]
        if shown[:1] == [b">2"] or shown[1:3] == [b"$7", b"message"]:
            pushes.append(shown)
        else:
            lines += [*sorted(pushes), shown]
            pushes = []
    return lines


with Server() as beluga, Peer() as peer:
    rng = random.Random(seed)
    try:
        for number in range(arguments.rounds):
            difference = history(beluga, peer, rng)
            tally.check(f"history {number}", difference is None, difference)
            if tally.failed > 5:
                break
    except (EOFError, OSError) as error:
        tally.check("the servers answer", False, f"seed {seed}: {error}\n{beluga.output()}")
tally.close()
