"""kill -9 under load, restart, and an oracle that knows every acknowledged write.

Each writer owns its keys, so it knows what they must hold: the last acknowledged value, or one that was under way when the server died. Beside them,
transfers between accounts in MULTI/EXEC keep a constant sum, MSETs write one number to several keys, and readers note what they saw: a value seen by
anybody must still be there, or a later one. DBSIZE must equal what a full SCAN finds. Collectors do the same as writers with hashes, sets and sorted sets that
grow and shrink between one record and many; what they write in MULTI/EXEC to a set and to a hash must be in both or in neither.
Streamers own a stream with a group each: its entries, and the owners of its pending ones, must be those of the last acknowledged command, or of the one under way.
"""

import random
import threading
import time

from beluga import Server, Tally, Wire, request, rounds_and_seed

rounds, seed = rounds_and_seed(25)
tally = Tally()
WRITERS, KEYS, ACCOUNTS, TOTAL, COLLECTORS = 4, 40, 8, 8000, 2


class Writer(threading.Thread):
    """Pipelines of SET, DEL, INCR, APPEND, big values, EXPIRE and PERSIST on its own keys, in database `number % 3`."""

    def __init__(self, port, number, seed, state):
        super().__init__(daemon=True)
        self.port, self.number, self.state = port, number, state
        self.random = random.Random(seed)
        self.acknowledged = 0

    def command(self, key, value):
        """A command and the value of the key after it, None for absent."""
        kind = self.random.randrange(12)
        if kind == 0:
            return request("DEL", key), None
        if kind == 1 and value is not None and value.isdigit() and len(value) < 15:
            return request("INCR", key), str(int(value) + 1).encode()
        if kind == 2 and value is not None and len(value) < 50_000:
            more = b"%d." % self.random.randrange(1000)
            return request("APPEND", key, more), value + more
        if kind == 3:
            size = self.random.choice([2_000, 16_384, 70_000, 300_000])
            new = (b"%d:" % self.random.randrange(10**9)) + bytes([65 + self.random.randrange(26)]) * size
            return request("SET", key, new), new
        if kind == 4 and value is not None:
            return request("EXPIRE", key, 10_000), value
        if kind == 5 and value is not None:
            return request("PERSIST", key), value
        new = b"%d" % self.random.randrange(10**9)
        return request("SET", key, new), new

    def run(self):
        try:
            wire = Wire(self.port)
            wire.call("SELECT", self.number % 3)
            while True:
                batch = []
                for _ in range(self.random.choice([1, 1, 4, 16])):
                    key = f"w{self.number}:{self.random.randrange(KEYS)}"
                    possible = self.state.setdefault(key, [None])
                    command, value = self.command(key, possible[-1])
                    possible.append(value)
                    batch.append((key, command))
                wire.send(b"".join(command for _, command in batch))
                for key, _ in batch:
                    reply = wire.reply()
                    if reply.startswith(b"-"):
                        raise AssertionError(f"{key}: {reply!r}")
                    # Acknowledged: what the key held before is no longer possible.
                    self.state[key].pop(0)
                    self.acknowledged += 1
        except (EOFError, OSError):
            pass


class Collector(threading.Thread):
    """Changes hashes (`ch:`), sets (`cs:`) and sorted sets (`cz:`) of its own in database 0, each a dictionary; a set has empty values."""

    def __init__(self, port, number, seed, state):
        super().__init__(daemon=True)
        self.port, self.number, self.state = port, number, state
        self.random = random.Random(seed)
        self.acknowledged = 0

    def names(self, most):
        return [b"member %d" % self.random.randrange(2500 if self.random.random() < 0.3 else 400) for _ in range(self.random.randrange(1, most))]

    def command(self, key, before):
        """Commands and the collection after them."""
        is_hash, kind = key.startswith("ch"), self.random.randrange(20)
        if kind == 0:
            return [("DEL", key)], {}
        if key.startswith("cz"):
            return self.sorted_command(key, before, kind)
        if kind < 8:
            gone = self.names(300 if kind == 1 else 20)
            return [("HDEL" if is_hash else "SREM", key, *gone)], {name: value for name, value in before.items() if name not in gone}
        names = self.names(200 if kind == 8 else 12)
        size = self.random.choice([0, 5, 30, 3_000, 20_000]) if kind == 9 else 8
        new = {name: (b"%d" % self.random.randrange(10**9)) * (1 + size // 9) if is_hash else b"" for name in names}
        words = [word for pair in new.items() for word in pair] if is_hash else list(new)
        return [("HSET" if is_hash else "SADD", key, *words)], {**before, **new}

    def sorted_command(self, key, before, kind):
        if kind < 5:
            gone = self.names(300 if kind == 1 else 20)
            return [("ZREM", key, *gone)], {name: score for name, score in before.items() if name not in gone}
        if kind < 8:
            start = self.random.randrange(len(before) + 1)
            end = start + self.random.randrange(1, 120)
            gone = [name for name, _ in ranked(before)[start:end]]
            return [("ZREMRANGEBYRANK", key, start, end - 1)], {name: score for name, score in before.items() if name not in gone}
        new = {name: b"%d" % self.random.randrange(-50, 50) for name in self.names(1500 if kind == 8 else 12)}
        return [("ZADD", key, *[word for name, score in new.items() for word in (score, name)])], {**before, **new}

    def mirrored(self):
        """One member more, or less, in a set and in a hash."""
        name = b"%d" % self.random.randrange(300)
        at = self.number
        both = [("SADD", f"ms{at}", name), ("HSET", f"mh{at}", name, "1")] if self.random.random() < 0.6 else [("SREM", f"ms{at}", name), ("HDEL", f"mh{at}", name)]
        return [("MULTI",), *both, ("EXEC",)]

    def run(self):
        try:
            wire = Wire(self.port)
            while True:
                key = f"{self.random.choice(['ch', 'cs', 'cz'])}:{self.number}:{self.random.randrange(6)}"
                possible = self.state.setdefault(key, [{}])
                commands, after = self.command(key, possible[-1])
                possible.append(after)
                commands += self.mirrored()
                wire.send(b"".join(request(*command) for command in commands))
                for at, _ in enumerate(commands):
                    reply = wire.reply()
                    if reply.startswith(b"-"):
                        raise AssertionError(f"{key}: {reply!r}")
                    if at == 0:
                        possible.pop(0)
                        self.acknowledged += 1
        except (EOFError, OSError):
            pass


def items(reply):
    """The bulk strings of an array."""
    found, rest = [], reply.split(b"\r\n", 1)[1]
    while rest:
        head, rest = rest.split(b"\r\n", 1)
        length = int(head[1:])
        found.append(rest[:length])
        rest = rest[length + 2:]
    return found


def ranked(members):
    """The members of a sorted set in its order."""
    return sorted(members.items(), key=lambda pair: (int(pair[1]), pair[0]))


def ranks_agree(wire, key, members):
    """Whether the order, and ranks in the middle and at the ends, are those of the scores."""
    expected = ranked(members)
    words = items(wire.call("ZRANGE", key, 0, -1, "WITHSCORES"))
    sample = [at for at in (0, len(expected) // 3, len(expected) - 1) if expected]
    return list(zip(words[::2], words[1::2])) == expected and all(wire.call("ZRANK", key, expected[at][0]) == b":%d\r\n" % at for at in sample)


def collection(wire, key):
    if key.startswith("cz"):
        words = items(wire.call("ZRANGE", key, 0, -1, "WITHSCORES"))
        return dict(zip(words[::2], words[1::2]))
    if key.startswith("cs"):
        return {name: b"" for name in items(wire.call("SMEMBERS", key))}
    words = items(wire.call("HGETALL", key))
    return dict(zip(words[::2], words[1::2]))


def verify_collections(wire, state, round_number):
    lost = []
    for key, possible in state.items():
        found = collection(wire, key)
        size = int(wire.call({"ch": "HLEN", "cs": "SCARD", "cz": "ZCARD"}[key[:2]], key)[1:])
        if found not in possible or size != len(found) or key.startswith("cz") and not ranks_agree(wire, key, found):
            lost.append((key, size, len(found), [len(each) for each in possible]))
        state[key] = [found]
    tally.check(f"round {round_number}: hashes, sets and sorted sets", not lost, f"{lost[:3]}")
    for number in range(COLLECTORS):
        members, fields = items(wire.call("SMEMBERS", f"ms{number}")), items(wire.call("HKEYS", f"mh{number}"))
        tally.check(f"round {round_number}: a set and a hash changed together", sorted(members) == sorted(fields), f"{len(members)} {len(fields)}")


class Streamer(threading.Thread):
    """Adds to a stream of its own, reads it as a group's consumers, acknowledges, deletes and trims. Its state: ids of entries, and the consumer of each pending one."""

    def __init__(self, port, number, seed, state):
        super().__init__(daemon=True)
        self.port, self.key, self.state = port, f"xs{number}", state
        self.random = random.Random(seed)
        self.acknowledged = 0

    def command(self, entries, pending, last, delivered):
        """Words, and the state after them."""
        kind, pick = self.random.randrange(20), self.random.random
        if kind < 10 or not entries:
            size = self.random.choice([5, 40, 900, 20_000]) if kind == 0 else 8
            return ("XADD", self.key, f"{last + 1}-0", "field", b"v" * size), (entries + [last + 1], pending, last + 1, delivered)
        if kind < 14:
            consumer, most = f"c{self.random.randrange(3)}", 1 if kind < 13 else 200
            got = [at for at in entries if at > delivered][:most]
            after = {**pending, **{at: consumer for at in got}}
            return ("XREADGROUP", "GROUP", "g", consumer, "COUNT", most, "STREAMS", self.key, ">"), (entries, after, last, max([delivered, *got]))
        if kind < 17:
            gone = [at for at in pending if pick() < 0.3][:50] or [1]
            return ("XACK", self.key, "g", *[f"{at}-0" for at in gone]), (entries, {at: owner for at, owner in pending.items() if at not in gone}, last, delivered)
        if kind < 19:
            gone = self.random.sample(entries, min(len(entries), 5))
            return ("XDEL", self.key, *[f"{at}-0" for at in gone]), ([at for at in entries if at not in gone], pending, last, delivered)
        most = self.random.choice([20, 500])
        return ("XTRIM", self.key, "MAXLEN", most), (entries[-most:], pending, last, delivered)

    def run(self):
        try:
            wire = Wire(self.port)
            wire.call("XGROUP", "CREATE", self.key, "g", "0", "MKSTREAM")
            possible = self.state.setdefault(self.key, [([], {}, 0, 0)])
            while True:
                words, after = self.command(*possible[-1])
                possible.append(after)
                reply = wire.call(*words)
                if reply.startswith(b"-"):
                    raise AssertionError(f"{self.key}: {words[:3]} {reply!r}")
                possible.pop(0)
                self.acknowledged += 1
        except (EOFError, OSError):
            pass


def verify_streams(wire, state, round_number):
    for key, possible in state.items():
        ids = [int(word[:-2]) for word in items_of_ids(wire.call("XRANGE", key, "-", "+"))]
        # Without the reply's own header: it reads as a row's where four entries are pending.
        rows = wire.call("XPENDING", key, "g", "-", "+", 1_000_000).split(b"\r\n", 1)[1].split(b"*4\r\n")[1:]
        pending = {int(row.split(b"\r\n")[1][:-2]): row.split(b"\r\n")[3].decode() for row in rows}
        counts = wire.call("XPENDING", key, "g").split(b"\r\n")
        fits = [at for at, (entries, owned, _, _) in enumerate(possible) if entries == ids and owned == pending]
        tally.check(f"round {round_number}: stream {key}", fits and int(counts[1][1:]) == len(pending), f"{len(ids)} entries, {len(pending)} pending, expected one of {[(len(entries), len(owned)) for entries, owned, _, _ in possible]}")
        state[key] = [possible[fits[-1] if fits else -1]]


def items_of_ids(reply):
    """The ids in a reply of XRANGE: each follows the header of an entry."""
    return [part.split(b"\r\n")[1] for part in reply.split(b"*2\r\n$")[1:] if part.split(b"\r\n")[1].endswith(b"-0")]


class Transfers(threading.Thread):
    """Moves amounts between accounts; each EXEC also writes its number to two keys by MSET."""

    def __init__(self, port, seed):
        super().__init__(daemon=True)
        self.port, self.random, self.acknowledged = port, random.Random(seed), 0

    def run(self):
        try:
            wire = Wire(self.port)
            while True:
                a, b = self.random.sample(range(ACCOUNTS), 2)
                amount, number = self.random.randrange(1, 50), self.random.randrange(10**9)
                commands = [("MULTI",), ("DECRBY", f"acc{a}", amount), ("INCRBY", f"acc{b}", amount), ("MSET", "twin1", number, "twin2", number), ("EXEC",)]
                wire.send(b"".join(request(*command) for command in commands))
                replies = [wire.reply() for _ in commands]
                assert replies[-1].startswith(b"*3"), replies
                self.acknowledged += 1
        except (EOFError, OSError):
            pass


class Reader(threading.Thread):
    """Watches counters that only grow: what it saw may not be lost."""

    def __init__(self, port, seen):
        super().__init__(daemon=True)
        self.port, self.seen, self.broken = port, seen, []

    def run(self):
        try:
            wire = Wire(self.port)
            while True:
                reply = wire.call("GET", "grows")
                if not reply.startswith(b"$-1"):
                    self.seen[0] = max(self.seen[0], int(reply.split(b"\r\n")[1]))
                accounts = wire.call("MGET", *[f"acc{n}" for n in range(ACCOUNTS)], "twin1", "twin2").split(b"\r\n")[2::2]
                if sum(map(int, accounts[:ACCOUNTS])) != TOTAL or accounts[-2] != accounts[-1]:
                    self.broken.append(accounts)
        except (EOFError, OSError):
            pass


class Grower(threading.Thread):
    def __init__(self, port, grown):
        super().__init__(daemon=True)
        self.port, self.grown = port, grown

    def run(self):
        try:
            wire = Wire(self.port)
            while True:
                self.grown[0] = int(wire.call("INCR", "grows")[1:])
        except (EOFError, OSError):
            pass


def value_of(reply):
    return None if reply.startswith(b"$-1") else reply.split(b"\r\n", 1)[1][:-2]


def verify(server, state, collections, streams, seen, grown, round_number):
    wire = Wire(server.port, 60)
    lost = []
    for key, possible in state.items():
        wire.call("SELECT", int(key[1:].split(":")[0]) % 3)
        found = value_of(wire.call("GET", key))
        if found not in possible:
            lost.append((key, found and found[:40], [value and value[:40] for value in possible]))
        state[key] = [found]
    tally.check(f"round {round_number}: acknowledged writes", not lost, f"{lost[:3]}")
    wire.call("SELECT", 0)
    verify_collections(wire, collections, round_number)
    verify_streams(wire, streams, round_number)
    accounts = [int(value_of(wire.call("GET", f"acc{n}"))) for n in range(ACCOUNTS)]
    tally.equal(f"round {round_number}: sum of accounts", sum(accounts), TOTAL)
    tally.equal(f"round {round_number}: twins", wire.call("GET", "twin1"), wire.call("GET", "twin2"))
    grows = int(value_of(wire.call("GET", "grows")) or 0)
    tally.check(f"round {round_number}: what was seen is there", grows >= max(seen[0], grown[0]), f"{grows}, seen {seen[0]}, acknowledged {grown[0]}")
    for db in range(3):
        wire.call("SELECT", db)
        cursor, count = b"0", 0
        while True:
            parts = wire.call("SCAN", cursor, "COUNT", 500).split(b"\r\n")
            cursor, count = parts[2], count + int(parts[3][1:])
            if cursor == b"0":
                break
        tally.equal(f"round {round_number}: DBSIZE of {db}", int(wire.call("DBSIZE")[1:]), count)
    wire.close()


def play(server, round_number, state, collections, streams, seen, grown):
    rng = random.Random(seed * 1000 + round_number)
    writers = [Writer(server.port, n, rng.randrange(1 << 32), state) for n in range(WRITERS)]
    writers += [Collector(server.port, n, rng.randrange(1 << 32), collections) for n in range(COLLECTORS)]
    writers += [Streamer(server.port, n, rng.randrange(1 << 32), streams) for n in range(COLLECTORS)]
    others = [Transfers(server.port, rng.randrange(1 << 32)), Transfers(server.port, rng.randrange(1 << 32)), Grower(server.port, grown)]
    reader = Reader(server.port, seen)
    threads = [*writers, *others, reader]
    [thread.start() for thread in threads]
    time.sleep(rng.uniform(0.3, 2.0))
    server.kill()
    [thread.join(30) for thread in threads]
    tally.check(f"round {round_number}: transfers are atomic to readers", not reader.broken, f"{reader.broken[:2]}")
    return sum(thread.acknowledged for thread in [*writers, *others[:2]])


server = Server("--checkpoint-distance", "16mb", "--log-segment", "4mb")
try:
    server.start()
    wire = Wire(server.port)
    for n in range(ACCOUNTS):
        wire.call("SET", f"acc{n}", TOTAL // ACCOUNTS)
    wire.call("MSET", "twin1", 0, "twin2", 0)
    state, collections, streams, seen, grown, total, restarts = {}, {}, {}, [0], [0], 0, []
    for round_number in range(1, rounds + 1):
        total += play(server, round_number, state, collections, streams, seen, grown)
        begin = time.monotonic()
        server.start()
        restarts.append(time.monotonic() - begin)
        verify(server, state, collections, streams, seen, grown, round_number)
    print(f"{rounds} crashes, {total} acknowledged writes, restart {sorted(restarts)[len(restarts) // 2]:.2f} s in the median, {max(restarts):.2f} s at most")
except RuntimeError as error:
    tally.check("the server starts", False, str(error))
finally:
    if tally.failed:
        print(server.output())
    server.close()
tally.close()
