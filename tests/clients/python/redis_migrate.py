"""MIGRATE: keys of every type move to redis-server, back, and to another Beluga; replies are those of redis-server. Peers that are silent, answer half, or something else, cost no key; nobody waits
but those who change a key that moves; kill -9 in the middle leaves each key here, there, or at both.
"""

import random
import socket
import threading

from beluga import Peer, Server, Tally, Wire, free_port, request, rounds_and_seed
from dump_values import KINDS, bulk, content, digest
from sql import ask, come

rounds, seed = rounds_and_seed(3)
tally = Tally()
HOST = "127.0.0.1"
ARRIVED = b"+OK\r\n"
READING = b"-IOERR error or timeout reading to target instance\r\n"


def migrate(wire, port, key, *more, db=0, timeout=30_000):
    return wire.call("MIGRATE", HOST, port, key, db, timeout, *more)


class Silent:
    """A server that answers each connection with the next of some texts after it has heard something, and then nothing; or closes it."""

    def __init__(self, *answers, closes=False):
        self.answers, self.closes, self.held, self.came = answers, closes, [], threading.Semaphore(0)
        self.listener = socket.create_server((HOST, 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()
        [one.close() for one in self.held]

    def accept(self):
        try:
            while True:
                one, _ = self.listener.accept()
                self.held.append(one)
                threading.Thread(target=self.serve, args=(one,), daemon=True).start()
        except OSError:
            pass

    def serve(self, one):
        try:
            for answer in self.answers:
                one.recv(1 << 16)
                one.sendall(answer)
            self.came.release()
            if self.closes:
                one.recv(1 << 16)
                one.close()
            while one.recv(1 << 16):
                pass
        except OSError:
            pass


def moves_all_types(source, target, rng, what):
    ours, theirs = Wire(source.port), Wire(target.port)
    [wire.call("FLUSHALL") for wire in (ours, theirs)]
    for at in range(120):
        key = b"k%d" % at
        for command in rng.choice(KINDS)(rng, key):
            ours.call(*command)
        if rng.random() < 0.3:
            ours.call("PEXPIREAT", key, 4_000_000_000_000)
    ours.call("SET", "huge", b"h" * 6_000_000)
    ours.call("RPUSH", "long", *[b"i%d" % at for at in range(30_000)])
    keys = [b"k%d" % at for at in range(120) if ours.call("EXISTS", b"k%d" % at) == b":1\r\n"] + [b"huge", b"long"]
    before = {key: (digest(content(ours, key)), bulk(ours.call("TYPE", key))) for key in keys}
    tally.equal(f"{what}: COPY", migrate(ours, target.port, keys[0], "COPY"), ARRIVED)
    tally.equal(f"{what}: both have it", [wire.call("EXISTS", keys[0]) for wire in (ours, theirs)], [b":1\r\n"] * 2)
    tally.check(f"{what}: it is there already", migrate(ours, target.port, keys[0]).startswith(b"-ERR Target instance replied with error: BUSYKEY"))
    tally.equal(f"{what}: and stays", ours.call("EXISTS", keys[0]), b":1\r\n")
    tally.equal(f"{what}: REPLACE", migrate(ours, target.port, keys[0], "replace"), ARRIVED)
    for key in keys[1:40]:
        tally.equal(f"{what}: {key}", migrate(ours, target.port, key), ARRIVED)
    tally.equal(f"{what}: KEYS", migrate(ours, target.port, "", "KEYS", "missing", *keys[40:]), ARRIVED)
    tally.equal(f"{what}: nothing is left", ours.call("DBSIZE"), b":0\r\n")
    differ = [key for key in keys if (digest(content(theirs, key)), bulk(theirs.call("TYPE", key))) != before[key]]
    tally.check(f"{what}: values", not differ, differ[:3])
    ours.call("SET", "timed", "v", "PX", 10**7)
    migrate(ours, target.port, "timed", db=3)
    theirs.call("SELECT", 3)
    tally.check(f"{what}: the time, in another database", 9 * 10**6 < int(theirs.call("PTTL", "timed")[1:]) <= 10**7)


def replies_as_redis(server, peer, target):
    """The same requests to both, with the same target."""
    locked = Wire(target.port)
    locked.call("ACL", "SETUSER", "mover", "on", ">pass", "~*", "+restore", "+select", "+auth")
    nobody = free_port()
    for words in (
        ("MIGRATE",), ("MIGRATE", "a", "b", "c", "d"), (HOST, target.port, "k", "0", "x"), (HOST, target.port, "k", "x", "100"), (HOST, target.port, "none", "0", "100"), (HOST, target.port, "k", "0", "100", "KEYS", "a"),
        (HOST, target.port, "k", "0", "100", "AUTH"), (HOST, target.port, "k", "0", "100", "AUTH2", "x"), (HOST, target.port, "k", "0", "100", "COPY", "nonsense"), (HOST, target.port, "", "0", "100", "KEYS"),
        (HOST, target.port, "", "0", "100", "REPLACE", "KEYS", "none", "nor"), (HOST, target.port, "k", "-3", "1000"), (HOST, target.port, "k", "99", "1000"), (HOST, target.port, "k", "99999999999999", "1000"),
        (HOST, target.port, "k", "0", "1000", "AUTH", "wrong"), (HOST, target.port, "k", "0", "1000", "AUTH2", "mover", "wrong"), (HOST, nobody, "k", "0", "1000"), (HOST, "abc", "k", "0", "1000"),
        ("no.such.host.invalid", target.port, "k", "0", "1000"), (HOST, target.port, "k", "0", "-5", "COPY", "REPLACE"), (HOST, target.port, "k", "0", "0", "AUTH2", "mover", "pass", "COPY", "REPLACE"),
        (HOST, target.port, "k", "0", "1000"), (HOST, target.port, "", "0", "1000", "KEYS", "k", "k2", "k2"), (HOST, target.port, "", "0", "1000", "REPLACE", "KEYS", "k", "k2"),
    ):
        words = words if words[0] == "MIGRATE" else ("MIGRATE", *words)
        found = []
        for one in (peer, server):
            wire = Wire(one.port)
            locked.call("MSET", "k", "there", "k2", "there")
            if words[-1] == "k2":
                locked.call("DEL", "k2")
            wire.call("MSET", "k", "v", "k2", "w")
            found.append((wire.call(*words), wire.call("MGET", "k", "k2"), locked.call("MGET", "k", "k2")))
        tally.equal(" ".join(map(str, words)), found[1], found[0])
    for words in (("", 0, 100, "KEYS", "k", "k2"), ("k", 0, 100), ("k", 0, 100, "AUTH2", "keys", "keys", "KEYS", "a"), ("", 0, 100, "AUTH2", "keys", "keys", "KEYS", "a"), ("x", 0, 100, "AUTH", "keys")):
        for command in ("GETKEYS", "GETKEYSANDFLAGS"):
            tally.equal(f"{command} {words}", *[Wire(one.port).call("COMMAND", command, "MIGRATE", HOST, 1, *words) for one in (server, peer)])


def refuses(server, target):
    wire = Wire(server.port)
    wire.call("MSET", "k", "v", "other", "w")
    wire.call("MULTI")
    tally.equal("MULTI", migrate(wire, target.port, "k"), b"-ERR Command not allowed inside a transaction\r\n")
    wire.call("DISCARD")
    script = f"return redis.call('MIGRATE', '{HOST}', '{target.port}', KEYS[1], '0', '1000')"
    tally.check("a script", b"not allowed from script" in wire.call("EVAL", script, 1, "k"))
    wire.call("ACL", "SETUSER", "few", "on", ">few", "~k*", "+migrate", "+auth")
    wire.call("AUTH", "few", "few")
    tally.check("another's key", migrate(wire, target.port, "", "KEYS", "k", "other").startswith(b"-NOPERM"))
    wire.call("AUTH", "default", "")
    wire.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
    migrate(wire, target.port, "none", "AUTH2", "him", "hidden")
    log = wire.call("SLOWLOG", "GET", "3")
    tally.check("secrets", b"hidden" not in log and b"(redacted)" in log, log)
    wire.call("CONFIG", "SET", "slowlog-log-slower-than", "10000")


def loses_nothing_to_bad_peers(server):
    wire, other = Wire(server.port), Wire(server.port)
    big = b"b" * 6_000_000
    for what, answers, closes, expected in (
        ("silence", (), False, READING), ("half an answer", (ARRIVED, b"+O"), True, READING), ("none after SELECT", (ARRIVED,), True, None), ("a line without an end", (b"+" * 5000,), False, READING),
        ("HTTP", (b"HTTP/1.1 400 Bad Request\r\n\r\n",), False, b"-ERR Target instance replied with error: HTTP/1.1 400 Bad Request\r\n"), ("a number", (ARRIVED, b":1\r\n"), False, b"-ERR Target instance replied with error: :1\r\n"),
    ):
        with Silent(*answers, closes=closes) as peer:
            for key, value in (("small", b"v"), ("big", big)):
                wire.call("SET", key, value)
                reply = migrate(wire, peer.port, key, timeout=300)
                tally.check(f"{what}: {key}", reply == expected or reply.startswith(b"-IOERR error or timeout ") and key == "big" or expected is None and reply.startswith(b"-IOERR"), reply)
                tally.equal(f"{what}: {key} is kept", wire.call("STRLEN", key), b":%d\r\n" % len(value))
                tally.equal(f"{what}: and free", wire.call("SET", key, "again"), ARRIVED)
    # Two keys, of which the other server takes one.
    wire.call("MSET", "a", "1", "b", "2")
    with Silent(ARRIVED, ARRIVED) as peer:
        tally.equal("one of two", migrate(wire, peer.port, "", "KEYS", "a", "b", timeout=300), READING)
    tally.equal("the other is kept", wire.call("EXISTS", "a", "b"), b":1\r\n")
    # While a key is on its way, it can be read, those who change it wait, and everything else goes on.
    wire.call("MSET", "slow", "1", "free", "1")
    with Silent(ARRIVED) as peer:
        wire.send(request("MIGRATE", HOST, peer.port, "slow", 0, 600_000))
        tally.check("it is on its way", peer.came.acquire(timeout=30))
        changer = Wire(server.port)
        tally.equal("GET", other.call("GET", "slow"), b"$1\r\n1\r\n")
        tally.equal("another key", other.call("INCR", "free"), b":2\r\n")
        changer.send(request("INCR", "slow"))
        # More of them than run at a time, most with a client that is gone.
        others = [Wire(server.port) for _ in range(40)]
        [one.send(request("MIGRATE", HOST, peer.port, "free", 0, 200)) for one in others]
        [one.close() for one in others[:30]]
        tally.equal("all are answered", [one.reply().startswith(b"-IOERR") for one in others[30:]], [True] * 10)
        tally.equal("another key again", other.call("INCR", "free"), b":3\r\n")
        tally.equal("still", other.call("GET", "slow"), b"$1\r\n1\r\n")
        [one.shutdown(socket.SHUT_RDWR) for one in peer.held]
    tally.check("its end", wire.reply().startswith(b"-IOERR"))
    tally.equal("a changer that waited", changer.reply(), b":2\r\n")


def moves_what_memory_has_no_room_for(server, target):
    """The form in which a value leaves is longer than the memory that is left: a string, and elements of each kind that are long together. DUMP has no room for them."""
    wire, theirs, long = Wire(server.port), Wire(target.port), random.Random(seed).randbytes(60_000_000)
    pieces = [long[at : at + 3_000_000] for at in range(0, len(long), 3_000_000)]
    theirs.call("FLUSHALL")
    wire.call("SET", "string", long)
    for at, piece in enumerate(pieces):
        wire.call("HSET", "hash", b"field %d" % at, piece)
        wire.call("RPUSH", "list", piece, "short")
        wire.call("XADD", "stream", f"{at + 1}-1", "field", piece)
    for key in ("string", "hash", "list", "stream"):
        tally.check(f"DUMP {key}", wire.call("DUMP", key).startswith(b"-OOM"))
        tally.equal(f"{key} leaves", (migrate(wire, target.port, "", "KEYS", "before", key, "behind"), wire.call("EXISTS", key)), (ARRIVED, b":0\r\n"))
    tally.equal("the string", bulk(theirs.call("GET", "string")) == long, True)
    tally.equal("the hash", [bulk(theirs.call("HGET", "hash", b"field %d" % at)) == piece for at, piece in enumerate(pieces)], [True] * len(pieces))
    tally.equal("the list", ([bulk(theirs.call("LINDEX", "list", 2 * at)) == piece for at, piece in enumerate(pieces)], theirs.call("LLEN", "list")), ([True] * len(pieces), b":%d\r\n" % (2 * len(pieces))))
    tally.equal("the stream", [piece in theirs.call("XRANGE", "stream", f"{at + 1}-1", f"{at + 1}-1") for at, piece in enumerate(pieces)], [True] * len(pieces))
    theirs.call("FLUSHALL")


def waits_for_sql(server, target):
    mysql, wire = come(server), Wire(server.port)
    wire.call("SET", "held", "1")
    Wire(target.port).call("DEL", "held")
    ask(mysql, "BEGIN")
    ask(mysql, "UPDATE redis.strings SET value = 'of SQL' WHERE `key` = 'held'")
    wire.send(request("MIGRATE", HOST, target.port, "held", 0, 30_000))
    tally.equal("others go on", Wire(server.port).call("GET", "held"), b"$1\r\n1\r\n")
    ask(mysql, "COMMIT")
    tally.equal("after COMMIT", wire.reply(), ARRIVED)
    tally.equal("the value of SQL", Wire(target.port).call("GET", "held"), b"$6\r\nof SQL\r\n")
    tally.equal("and is gone", ask(mysql, "SELECT * FROM redis.strings WHERE `key` = 'held'"), [])


def survives_kills(server, target):
    """Each key is at one server at least, with its value."""
    rng = random.Random(seed + 5)
    for round in range(rounds):
        wire, theirs = Wire(server.port), Wire(target.port)
        [one.call("FLUSHALL") for one in (wire, theirs)]
        keys = [b"key%d" % at for at in range(400)]
        for at in range(0, 400, 40):
            wire.call("MSET", *[word for key in keys[at : at + 40] for word in (key, key * rng.choice([1, 500]))])
        done = threading.Semaphore(0)

        def move(dice):
            own = Wire(server.port)
            try:
                for _ in range(400):
                    migrate(own, target.port, "", "REPLACE", "KEYS", *dice.sample(keys, 5))
                    done.release()
            except (OSError, EOFError):
                pass

        movers = [threading.Thread(target=move, args=(random.Random(seed + at),)) for at in range(3)]
        [mover.start() for mover in movers]
        [done.acquire(timeout=60) for _ in range(rng.randrange(5, 60))]
        server.kill()
        [mover.join() for mover in movers]
        server.start()
        wire = Wire(server.port)
        lost = [key for key in keys if bulk(wire.call("GET", key)) not in (key, key * 500) and bulk(theirs.call("GET", key)) not in (key, key * 500)]
        tally.equal(f"kill {round}: lost", lost, [])
        tally.equal("it moves again", migrate(wire, target.port, "", "REPLACE", "KEYS", *keys)[:1], b"+")
        tally.equal("all are there", theirs.call("EXISTS", *keys), b":400\r\n")


with Server(mysql=True) as server, Server() as other, Peer() as peer, Peer() as target:
    rng = random.Random(seed)
    moves_all_types(server, target, rng, "to redis-server")
    moves_all_types(target, server, rng, "from redis-server")
    moves_all_types(server, other, rng, "to Beluga")
    [Wire(one.port).call("FLUSHALL") for one in (server, peer, target)]
    replies_as_redis(server, peer, target)
    refuses(server, target)
    loses_nothing_to_bad_peers(server)
    moves_what_memory_has_no_room_for(server, target)
    waits_for_sql(server, target)
    survives_kills(server, target)
tally.close()
