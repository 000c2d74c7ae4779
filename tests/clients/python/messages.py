"""Publish/subscribe beside redis-server: random requests of several clients, in RESP2 and RESP3; every client's raw output is compared after every request.

A PING with a text of its own ends the output of a client. Within the output of one request the lines are compared sorted: Redis keeps patterns and subscriptions in hash tables.

Not compared: PUBLISH in EXEC at its own subscriber, which Redis 7.0 sends in the middle of the reply.
"""

import argparse
import os
import random
import re
import tempfile
import threading

from beluga import Peer, Server, Tally, Wire, request

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=30)
parser.add_argument("--seed", type=int, default=None)
arguments = parser.parse_args()
seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
print(f"seed {seed}", flush=True)
tally = Tally()

CHANNELS = ["a", "b", "ab", "news", "", "x" * 300, "k\x00\r\n", "[a]"]
PATTERNS = ["*", "a*", "?", "[ab]", "[^a]*", "n[a-z]ws", "\\[a\\]", "", "a*b*a*b*c", "x*", "**", "[", "\\"]


class Crowd:
    """The clients of one server."""

    def __init__(self, port, count):
        self.port = port
        self.wires = [Wire(port) for _ in range(count)]
        self.resp3 = [False] * count
        self.marks = 0

    def drain(self, at):
        """What the client has got so far."""
        self.marks += 1
        mark = b"mark %d" % self.marks
        wire = self.wires[at]
        wire.send(request("PING", mark))
        got = b""
        while True:
            reply = wire.reply()
            if mark in reply:
                return got
            got += reply

    def run(self, at, words):
        self.wires[at].send(request(*words))
        # The sender's first: what it has sent has then run.
        own = self.drain(at)
        return [own if client == at else self.drain(client) for client in range(len(self.wires))]

    def close(self):
        for wire in self.wires[1:]:
            wire.close()
        # The others are gone when the server knows no more of them.
        self.wires[0].call("RESET")
        while self.wires[0].call("CLIENT", "LIST").count(b"id=") > 1:
            pass
        self.wires[0].close()


def names(rng, of, low=1):
    return [rng.choice(of) for _ in range(rng.randrange(low, 4))]


def draw(rng):
    """A request, and whether only RESP3 or an unsubscribed client may send it."""
    kind = rng.random()
    if kind < 0.34:
        return [rng.choice(["PUBLISH", "PUBLISH", "publish", "SPUBLISH"]), rng.choice(CHANNELS), rng.choice(["", "hello", "x" * 5000, "\r\n"])]
    if kind < 0.55:
        word = rng.choice(["SUBSCRIBE", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"])
        return [word, *names(rng, PATTERNS if word == "PSUBSCRIBE" else CHANNELS)]
    if kind < 0.75:
        word = rng.choice(["UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"])
        return [word, *names(rng, PATTERNS if word == "PUNSUBSCRIBE" else CHANNELS, low=0)]
    if kind < 0.9:
        return rng.choice([
            ["PUBSUB", "CHANNELS"], ["PUBSUB", "CHANNELS", rng.choice(PATTERNS)], ["PUBSUB", "NUMPAT"], ["PUBSUB", "NUMSUB", *names(rng, CHANNELS, low=0)],
            ["PUBSUB", "SHARDCHANNELS"], ["PUBSUB", "SHARDCHANNELS", "*"], ["PUBSUB", "SHARDNUMSUB", *names(rng, CHANNELS, low=0)], ["PUBSUB", "HELP"],
            ["PUBSUB", "CHANNELS", "a", "b"], ["PUBSUB", "NUMPAT", "x"], ["PUBSUB", "NOTHING"], ["PUBSUB"], ["SUBSCRIBE"], ["PUBLISH", "a"], ["SSUBSCRIBE"],
        ])
    return rng.choice([["PING"], ["PING", "x"], ["PING", "x", "y"], ["ECHO", "x"], ["GET", "k"], ["EXEC"], ["EXEC", "x"], ["DISCARD"], ["RESET"], ["SET", "k", "v"], ["SELECT", "1"],
                       ["CLIENT", "REPLY", "SKIP"], ["CLIENT", "KILL", "TYPE", "nothing"], ["CLIENT", "LIST", "TYPE", "master"]])


def plays(round, port, peer_port):
    rng = random.Random(seed * 1000 + round)
    crowds = [Crowd(port, 4), Crowd(peer_port, 4)]
    done = []
    for _ in range(120):
        at, words = rng.randrange(4), draw(rng)
        if rng.random() < 0.06:
            # HELLO shows facts of the server; only its effect is compared.
            version = rng.choice([2, 3])
            replies = {crowd.wires[at].call("HELLO", version)[:1] in b"%*" for crowd in crowds}
            tally.check(f"round {round}: HELLO {version}", len(replies) == 1, f"{done[-5:]}")
            continue
        if words == ["CLIENT", "REPLY", "SKIP"]:
            # The next reply is that of a request, not of the mark.
            for crowd in crowds:
                crowd.wires[at].send(request(*words))
            words = rng.choice([["SUBSCRIBE", "a"], ["GET", "k"], ["UNSUBSCRIBE", "a"]])
        done.append((at, words))
        found, expected = (crowd.run(at, words) for crowd in crowds)
        for client, (ours, theirs) in enumerate(zip(found, expected)):
            same = sorted(ours.split(b"\r\n")) == sorted(theirs.split(b"\r\n"))
            tally.check(f"round {round}: {words} of {at} at {client}", same, f"found {ours!r}, expected {theirs!r} after {done[-8:]}")
            if not same:
                return
    for crowd in crowds:
        crowd.close()


def transactions(port, peer_port):
    """Messages of EXEC are sent when it commits, also those of a transaction that fails in part; DISCARD and a dirty transaction send none."""
    for version in (2, 3):
        pairs = [(Wire(port), Wire(port)), (Wire(peer_port), Wire(peer_port))]
        outputs = []
        for subscriber, publisher in pairs:
            subscriber.call("HELLO", version)
            publisher.call("HELLO", version)
            got = [subscriber.call("SUBSCRIBE", "a"), subscriber.call("PSUBSCRIBE", "*")]
            for words in (["MULTI"], ["PUBLISH", "a", "1"], ["SET", "k", "v"], ["INCR", "k"], ["SPUBLISH", "a", "x"], ["PUBLISH", "b", "2"], ["PUBSUB", "NUMSUB", "a"], ["EXEC"]):
                got.append(publisher.call(*words))
            got += [subscriber.reply() for _ in range(3)]
            for words in (["MULTI"], ["PUBLISH", "a", "lost"], ["DISCARD"], ["MULTI"], ["PUBLISH", "a", "lost"], ["PUBLISH", "a"], ["EXEC"], ["WATCH", "k"], ["SET", "k", "w"], ["MULTI"], ["PUBLISH", "a", "lost"], ["EXEC"], ["PUBLISH", "a", "3"],
                          ["MULTI"], ["SUBSCRIBE", "c"], ["UNSUBSCRIBE", "c", "d"], ["PSUBSCRIBE", "d*"]):
                got.append(publisher.call(*words))
            publisher.send(request("EXEC"))
            got += [subscriber.reply() for _ in range(2)] + [publisher.reply() for _ in range(2)]
            got += [publisher.call("PING"), publisher.call("RESET")]
            outputs.append(got)
            subscriber.close(), publisher.close()
        for at, (found, expected) in enumerate(zip(*outputs)):
            tally.equal(f"RESP{version}: output {at} of transactions", found, expected)


KEYS = ["k1", "k2", "k3", "k4", "", "long" * 175, "b\r\n\x00"]
NUMBERS = ["0", "1", "-1", "7", "x"]


def change(rng):
    """A request that changes or reads keys."""
    key, other, number = rng.choice(KEYS), rng.choice(KEYS), rng.choice(NUMBERS)
    value = rng.choice(["", "v", "12", "x" * 2000])
    return rng.choice([
        ["SET", key, value], ["SET", key, value, "EX", "1000"], ["SET", key, value, "NX"], ["SET", key, value, "XX", "GET"], ["SET", key, value, "KEEPTTL"],
        ["SETEX", key, "1000", value], ["PSETEX", key, "100000", value], ["SETNX", key, value], ["GETSET", key, value], ["GETDEL", key], ["GETEX", key], ["GETEX", key, "EX", "1000"], ["GETEX", key, "PXAT", "1"], ["GETEX", key, "PERSIST"],
        ["MSET", key, value, other, value], ["MSETNX", key, value, other, value], ["MGET", key, other], ["GET", key], ["STRLEN", key], ["GETRANGE", key, "0", "1"], ["LCS", key, other],
        ["SETRANGE", key, number, rng.choice(["", "y"])], ["APPEND", key, rng.choice(["", "z"])], ["INCR", key], ["DECRBY", key, number], ["INCRBYFLOAT", key, number],
        ["SETBIT", key, rng.choice(["0", "7", "100"]), rng.choice(["0", "1"])], ["GETBIT", key, "3"], ["BITCOUNT", key], ["BITPOS", key, "1"], ["BITOP", rng.choice(["AND", "NOT"]), key, other], ["BITOP", "OR", key, other, "none"],
        ["BITFIELD", key, "SET", "u8", "0", number], ["BITFIELD", key, "GET", "u8", "0"], ["BITFIELD", key, "OVERFLOW", "FAIL", "INCRBY", "u2", "100", "3"], ["BITFIELD_RO", key, "GET", "u8", "0"],
        ["DEL", key, other], ["UNLINK", key], ["EXISTS", key, other], ["TOUCH", key], ["TYPE", key], ["TTL", "none"], ["PEXPIRETIME", "none"], ["OBJECT", "ENCODING", key],
        ["EXPIRE", key, rng.choice(["1000", "0", "-1", "x"])], ["PEXPIREAT", key, rng.choice(["1", "99999999999999"])], ["EXPIRE", key, "2000", rng.choice(["NX", "XX", "GT", "LT"])], ["PERSIST", key],
        ["RENAME", key, other], ["RENAMENX", key, other], ["COPY", key, other], ["COPY", key, other, "REPLACE"], ["COPY", key, other, "DB", "1"], ["MOVE", key, "1"], ["FLUSHDB"], ["SWAPDB", "0", "1"], ["SELECT", rng.choice(["0", "1"])], ["DBSIZE"],
    ])


def events(round, port, peer_port):
    """Keyspace notifications of random changes, in RESP2 by another client and in RESP3 by the client itself."""
    rng = random.Random(seed * 1000 + round)
    flags = rng.choice(["KEA", "KEAmn", "KEmn", "Kg$", "Ex$n", "KEgn"])
    crowds = [Crowd(port, 2), Crowd(peer_port, 2)]
    done = [flags]
    for crowd in crowds:
        crowd.wires[0].call("FLUSHALL")
        crowd.wires[0].call("CONFIG", "SET", "notify-keyspace-events", flags)
        crowd.wires[1].call("PSUBSCRIBE", "__key*__:*")
        if round % 2:
            crowd.wires[0].call("HELLO", "3")
            crowd.wires[0].call("PSUBSCRIBE", "__keyevent*")
    for _ in range(200):
        words = change(rng)
        found, expected = (crowd.run(0, words) for crowd in crowds)
        done.append(words)
        for client in (0, 1):
            # Where a command replies before it notifies differs from command to command.
            same = sorted(found[0].split(b"\r\n")) == sorted(expected[0].split(b"\r\n")) if client == 0 else found[1] == expected[1]
            tally.check(f"events {round}: {words} at {client}", same, f"found {found[client][:400]!r}, expected {expected[client][:400]!r} after {repr(done[-4:])[:400]} {flags}")
            if not same:
                break
    for crowd in crowds:
        crowd.wires[0].call("CONFIG", "SET", "notify-keyspace-events", "")
        crowd.close()


MONITORED = [["PING"], ["SELECT", "3"], ["SET", "a", b'b"\\\r\n\x00\t\x07\x08\x7f\xe9'], ["GET"], ["NOPE"], ["AUTH", "x"], ["AUTH", "u", "p"], ["HELLO", "2", "AUTH", "default", "x"], ["HELLO", "3", "SETNAME", "x"], ["MULTI"], ["SET", "q", "1"],
             ["INCR", "q"], ["CONFIG", "GET", "maxmemory"], ["EXEC"], ["CONFIG", "GET", "x"], ["CLIENT", "LIST"], ["CLIENT", "ID"], ["ACL", "WHOAMI"], ["SUBSCRIBE", "c"], ["PUBLISH", "other", "x"], ["INFO", "nothing"], ["GET", "a"], ["INCR", "a"], ["MULTI"],
             ["DISCARD"], ["WATCH", "a"], ["UNWATCH"], ["MULTI"], ["GET"], ["EXEC"], ["MULTI"], ["MONITOR"], ["EXEC"], ["RESET"], ["QUIT"]]
OF_MONITORS = [["GET", "a"], ["SET", "a", "1"], ["PUBLISH", "a", "1"], ["DBSIZE"], ["PING"], ["SUBSCRIBE", "x"], ["MULTI"], ["CLIENT", "ID"], ["RESET"], ["GET", "nothing"]]


def monitors(port, peer_port):
    """The lines of MONITOR, without their times, and what a client may do that monitors."""
    outputs = []
    for where in (port, peer_port):
        monitor, client, last = Wire(where), Wire(where), Wire(where)
        got = [monitor.call("MONITOR")]
        monitor.send(request("MONITOR"))
        for words in MONITORED:
            client.send(request(*words))
            client.reply()
        last.call("ECHO", "the end")
        while b'"the end"' not in got[-1]:
            got.append(re.sub(rb"\d+\.\d{6} \[(\d+) 127.0.0.1:\d+", rb"time [\1 client", monitor.line()))
        tally.check(f"{where}: the flag", b"flags=O " in last.call("CLIENT", "LIST"))
        for words in OF_MONITORS:
            reply = monitor.call(*words)
            while reply.startswith(b"+") and b" [0 127" in reply:
                reply = monitor.reply()
            got.append(b":id" if words[-1] == "ID" else reply)
        outputs.append(got)
        for wire in (monitor, client, last):
            wire.close()
    for at, (found, expected) in enumerate(zip(*outputs)):
        tally.equal(f"monitor: {at}", found, expected)
    tally.equal("monitor: lines", len(outputs[0]), len(outputs[1]))


def published(port, channels, publishers, count):
    """Several publishers at once: every subscriber gets the messages of each in their order, and all subscribers of a channel the same order."""
    subscribers = []
    for _ in range(5):
        wire = Wire(port)
        wire.send(request("SUBSCRIBE", *channels))
        for _ in channels:
            wire.reply()
        subscribers.append(wire)

    def publish(number):
        wire = Wire(port)
        for at in range(count):
            if at % 3 == 0:
                # The next message has another durability LSN.
                wire.call("SET", f"key{number}", at)
            wire.call("PUBLISH", channels[at % len(channels)], f"{number} {at}")
        wire.close()

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(publishers)]
    for thread in threads:
        thread.start()
    got = [[tuple(wire.reply().split(b"\r\n")[4::2][:2]) for _ in range(publishers * count)] for wire in subscribers]
    for thread in threads:
        thread.join()
    for at, messages in enumerate(got):
        for channel in channels:
            here = [payload for name, payload in messages if name == channel.encode()]
            tally.equal(f"subscriber {at} has the order of {channel}", here, [payload for name, payload in got[0] if name == channel.encode()])
            for number in range(publishers):
                own = [int(payload.split()[1]) for payload in here if payload.startswith(b"%d " % number)]
                tally.equal(f"publisher {number} at {at} on {channel}", own, sorted(own))
    for wire in subscribers:
        wire.close()


def crowd(port, count):
    """Many subscribers: no thread each, all get the message, and nothing remains of them."""
    threads = threads_of(port)
    wires = [Wire(port) for _ in range(count)]
    for wire in wires:
        wire.send(request("SUBSCRIBE", "crowd", "alone"))
    for wire in wires:
        wire.reply(), wire.reply()
    publisher = Wire(port)
    tally.equal("all are reached", publisher.call("PUBLISH", "crowd", "hello"), b":%d\r\n" % count)
    expected = b"*3\r\n$7\r\nmessage\r\n$5\r\ncrowd\r\n$5\r\nhello\r\n"
    tally.check("all have it", all(wire.reply() == expected for wire in wires))
    tally.check("subscribers hold no thread", threads_of(port) < threads + 20)
    for wire in wires:
        wire.close()
    # A publisher meets what has not ended yet; the number falls to nothing.
    while publisher.call("PUBSUB", "CHANNELS") != b"*0\r\n":
        pass
    tally.equal("nothing remains", publisher.call("PUBSUB", "NUMSUB", "crowd"), b"*2\r\n$5\r\ncrowd\r\n:0\r\n")


def threads_of(port):
    wire = Wire(port)
    text = wire.call("INFO", "server")
    wire.close()
    pid = int(text.split(b"process_id:")[1].split(b"\r\n")[0])
    with open(f"/proc/{pid}/status") as status:
        return int(status.read().split("Threads:")[1].split()[0])


def slow(port):
    """A subscriber that reads nothing is cut at its limit, and the publisher is not delayed by it."""
    publisher = Wire(port)
    before = int(publisher.call("INFO", "stats").split(b"client_output_buffer_limit_disconnections:")[1].split(b"\r\n")[0])
    publisher.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 2mb 0 0")
    reader, lazy = Wire(port), Wire(port, receive_buffer=4096)
    for wire in (reader, lazy):
        wire.call("SUBSCRIBE", "flood")
    payload = "x" * 100_000
    reached = []
    while not reached or reached[-1] == b":2\r\n":
        reached.append(publisher.call("PUBLISH", "flood", payload))
        reader.reply()
        if len(reached) > 1000:
            break
    tally.check("the lazy one is cut", 2_000_000 / 100_000 <= len(reached) < 200 and reached[-1] == b":1\r\n", f"{len(reached)} {reached[-1]}")
    after = int(publisher.call("INFO", "stats").split(b"client_output_buffer_limit_disconnections:")[1].split(b"\r\n")[0])
    tally.equal("it is counted", after - before, 1)
    try:
        while True:
            lazy.more()
            lazy.at = len(lazy.buffer)
    except (EOFError, ConnectionResetError):
        tally.check("its connection is closed", True)
    publisher.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 32mb 8mb 60")


def departures(port):
    """The end of a peer is noticed: of a subscriber, and of a client that WAIT or CLIENT PAUSE has parked."""
    watcher = Wire(port)

    def clients():
        return watcher.call("CLIENT", "LIST").count(b"id=")

    before = clients()
    for setup in (["SUBSCRIBE", "a"], ["WAIT", "1", "100000"]):
        wire = Wire(port)
        wire.send(request(*setup))
        while b"cmd=" + setup[0].lower().encode() not in watcher.call("CLIENT", "LIST"):
            pass
        wire.close()
        while clients() > before:
            pass
        tally.check(f"{setup[0]} ends with its peer", True)
    parked = Wire(port)
    parked.call("PING")
    watcher.call("CLIENT", "PAUSE", "100000", "WRITE")
    parked.send(request("SET", "never", "1"))
    while b"flags=b" not in watcher.call("CLIENT", "LIST"):
        pass
    parked.close()
    while clients() > before:
        pass
    watcher.call("CLIENT", "UNPAUSE")
    tally.equal("the request of a paused client that is gone does not run", watcher.call("EXISTS", "never"), b":0\r\n")


def rights(port, peer_port):
    """Channel rules, with the errors of Redis; a subscriber that loses its right is cut."""
    rules = [["reset", "on", ">p", "+@all", "~*"], ["reset", "on", ">p", "+@all", "~*", "&a*"], ["reset", "on", ">p", "+@all", "~*", "&*"], ["reset", "on", ">p", "+@all", "-publish", "&a*", "(+publish &b*)"]]
    requests = [["PUBLISH", "a", "1"], ["PUBLISH", "b1", "1"], ["SPUBLISH", "c", "1"], ["SPUBLISH", "abc", "1"], ["SUBSCRIBE", "a", "b"], ["SUBSCRIBE", "abc"], ["PSUBSCRIBE", "a*"], ["PSUBSCRIBE", "ab*"], ["PSUBSCRIBE", "*"],
                ["SSUBSCRIBE", "b"], ["UNSUBSCRIBE", "b"], ["PUBSUB", "CHANNELS"], ["RESET"], ["AUTH", "u", "p"], ["MULTI"], ["PUBLISH", "c", "1"], ["EXEC"]]
    admins = [Wire(port), Wire(peer_port)]
    for words in rules:
        for admin in admins:
            admin.call("ACL", "SETUSER", "u", *words)
            admin.call("ACL", "LOG", "RESET")
        for version in (2, 3):
            wires = [Wire(port), Wire(peer_port)]
            for wire in wires:
                wire.call("HELLO", version, "AUTH", "u", "p")
            for words_of_request in requests:
                found, expected = (wire.call(*words_of_request) for wire in wires)
                for wire in wires if words_of_request[0] == "SUBSCRIBE" and len(words_of_request) > 2 and found[:1] != b"-" else []:
                    wire.reply()
                found, expected = (sorted(reply.split(b"\r\n")) for reply in (found, expected))
                tally.equal(f"{words} RESP{version}: {words_of_request}", found, expected)
            for wire in wires:
                wire.close()
        for words_of_request in (["PUBLISH", "c", "1"], ["PSUBSCRIBE", "x*"]):
            found, expected = (admin.call("ACL", "DRYRUN", "u", *words_of_request) for admin in admins)
            tally.equal(f"{words}: DRYRUN {words_of_request}", found, expected)
        found, expected = ([line for line in admin.call("ACL", "LOG").split(b"\r\n") if line in (b"channel", b"command", b"key", b"c", b"b1", b"*")] for admin in admins)
        tally.equal(f"{words}: ACL LOG", found, expected)
    for admin, where in zip(admins, (port, peer_port)):
        admin.call("ACL", "SETUSER", "u", "reset", "on", ">p", "+@all", "&a*", "&b")
        kept, ended = Wire(where), Wire(where)
        for wire, channel in ((kept, "abc"), (ended, "b")):
            wire.call("AUTH", "u", "p")
            wire.call("SUBSCRIBE", channel)
        admin.call("ACL", "SETUSER", "u", "resetchannels", "&a*")
        try:
            ended.more()
            tally.check("a subscriber without its right is cut", False)
        except (EOFError, ConnectionResetError):
            tally.check("a subscriber without its right is cut", True)
        tally.equal("another one is not", kept.call("PING"), b"*2\r\n$4\r\npong\r\n$0\r\n\r\n")


def lists(port, peer_port):
    """CLIENT LIST, INFO and CLIENT KILL."""
    for where in (port, peer_port):
        wires = [Wire(where) for _ in range(3)]
        admin = wires[0]
        wires[1].send(request("SUBSCRIBE", "a", "b"))
        wires[1].reply(), wires[1].reply()
        wires[1].call("PSUBSCRIBE", "p*")
        wires[1].call("SSUBSCRIBE", "s")
        text = admin.call("CLIENT", "LIST", "TYPE", "PUBSUB")
        tally.check(f"{where}: one subscriber", text.count(b"id=") == 1 and b"flags=P db=0 sub=2 psub=1 ssub=1 " in text, repr(text))
        tally.equal(f"{where}: others", admin.call("CLIENT", "LIST", "TYPE", "normal").count(b"flags=N"), 2)
        stats = admin.call("INFO", "stats")
        for field, count in (("pubsub_channels", 2), ("pubsub_patterns", 1), ("pubsubshard_channels", 1)):
            tally.check(f"{where}: {field}", b"%s:%d\r\n" % (field.encode(), count) in stats)
        tally.equal(f"{where}: kill", admin.call("CLIENT", "KILL", "TYPE", "pubsub"), b":1\r\n")
        try:
            wires[1].more()
            tally.check(f"{where}: it is ended", False)
        except (EOFError, ConnectionResetError):
            tally.check(f"{where}: it is ended", True)
        for wire in wires:
            wire.close()


def kept():
    """CONFIG REWRITE keeps the events that are published and the limits of output, which the next start has again."""
    events, limits = "notify-keyspace-events", "client-output-buffer-limit"
    with tempfile.TemporaryDirectory() as home:
        path = os.path.join(home, "config.toml")
        open(path, "w").close()
        with Server("--config", path) as server:
            wire = Wire(server.port)
            for name, text, reason in ((events, "Q", b"Invalid event class character"), (limits, "pubsub 1 2", b"Wrong number of arguments"), (limits, "other 1 2 3", b"Invalid client class")):
                answer = wire.call("CONFIG", "SET", name, text)
                tally.check(f"{name} {text} is refused", answer.startswith(b"-ERR CONFIG SET failed") and reason in answer, repr(answer))
            tally.equal("they are set", wire.call("CONFIG", "SET", events, "Ex", limits, "replica 1mb 0 0"), b"+OK\r\n")
            tally.equal("a class beside", wire.call("CONFIG", "SET", limits, "pubsub 100kb 0 0"), b"+OK\r\n")
            shown = [wire.call("CONFIG", "GET", name) for name in (events, limits)]
            tally.check("classes that are not named keep their limits", b"normal 0 0 0 slave 1048576 0 0 pubsub 102400 0 0" in shown[1], repr(shown[1]))
            tally.equal("the file is written", wire.call("CONFIG", "REWRITE"), b"+OK\r\n")
            wire.close()
            server.terminate()
            server.start()
            wire, subscriber = Wire(server.port), Wire(server.port)
            tally.equal("the next start has them", [wire.call("CONFIG", "GET", name) for name in (events, limits)], shown)
            subscriber.send(request("SUBSCRIBE", "__keyevent@0__:expired"))
            subscriber.reply()
            wire.call("SET", "short", "1", "PX", "1")
            subscriber.reply()
            tally.check("events are published", True)
            wire.close(), subscriber.close()


with Server() as server, Peer() as peer:
    lists(server.port, peer.port)
    for round in range(arguments.rounds):
        plays(round, server.port, peer.port)
    for round in range(arguments.rounds):
        events(round, server.port, peer.port)
    transactions(server.port, peer.port)
    monitors(server.port, peer.port)
    rights(server.port, peer.port)
    published(server.port, ["a", "b", "c"], 4, 200)
    crowd(server.port, 300)
    slow(server.port)
    departures(server.port)
    tally.check("the server lives", server.process.poll() is None)
kept()
tally.close()
