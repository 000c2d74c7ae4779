"""SAVE, BGSAVE, LASTSAVE and redis-cli --rdb: redis-server loads the file, and `beluga import` does, with values of every type as of one instant while clients write. A stopped server and kill -9 in the middle
leave the file of before.
"""

import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from beluga import Peer, Server, Tally, Wire, request, rounds_and_seed
from dump_values import KINDS, bulk, content, digest

rounds, seed = rounds_and_seed(120)
tally = Tally()
LIBRARY = b"#!lua name=lib\nredis.register_function('f', function() return 42 end)"


def run(*words):
    done = subprocess.run([os.environ["SERVER_UNDER_TEST"], *words, "--memory", "256mb"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def fill(server, rng):
    """Random values in some databases, and large ones. Returns where they are."""
    wire, names = Wire(server.port), []
    for at in range(rounds):
        db, kind, key = rng.choice([0, 0, 1, 7, 15]), rng.choice(KINDS), b"k%d" % at
        wire.call("SELECT", db)
        for command in kind(rng, key):
            wire.call(*command)
        if rng.random() < 0.3:
            wire.call("PEXPIREAT", key, rng.choice([int(time.time() * 1000) + 10_000_000, 4_000_000_000_000]))
        if wire.call("EXISTS", key) == b":1\r\n":
            names.append((db, key))
    wire.call("SELECT", 0)
    for name in (b"x" * 600, b"\x00\xff"):
        # Longer than what is streamed in one piece.
        wire.call("SET", name, rng.randbytes(3_000_000))
        wire.call("RPUSH", name + b"l", *[b"i%d" % at for at in range(30_000)], rng.randbytes(2_000_000), b"last")
        wire.call("HSET", name + b"h", b"long", rng.randbytes(1_500_000), *[word for at in range(9_000) for word in (b"f%d" % at, b"v%d" % at)])
        wire.call("ZADD", name + b"z", *[word for at in range(9_000) for word in (at / 8, b"m%d" % at)])
        for at in range(2_000):
            wire.call("XADD", name + b"s", b"%d-1" % (at + 1), "field", b"value %d" % at)
        names += [(0, name + end) for end in (b"", b"l", b"h", b"z", b"s")]
    wire.call("FUNCTION", "LOAD", LIBRARY)
    wire.call("SET", "gone", "v", "PX", 1)
    return names


def picture(port, names):
    """What a server holds of the keys."""
    wire, found = Wire(port), {}
    for db, key in names:
        wire.call("SELECT", db)
        found[db, key] = (digest(content(wire, key)), bulk(wire.call("OBJECT", "ENCODING", key)), wire.call("PEXPIRETIME", key))
    for db in range(16):
        wire.call("SELECT", db)
        found[db] = wire.call("DBSIZE")
    found["function"] = wire.call("FCALL", "f", "0")
    return found


def compare(what, found, expected):
    for name in expected:
        tally.equal(f"{what}: {str(name)[:40]}", found.get(name), expected[name])


def idle(wire):
    """Waits until no file is being written, and returns INFO's section."""
    while True:
        text = wire.call("INFO", "persistence").decode()
        if "rdb_bgsave_in_progress:0" in text:
            return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def loaded_by_redis(path):
    peer = Peer()
    shutil.copy(path, os.path.join(peer.home, "dump.rdb"))
    return peer


def is_loaded(peer):
    return tally.until("the file is loaded", lambda: b"\nloading:0" in Wire(peer.port).call("INFO", "persistence"))


def names_of(path, what, names, expected):
    """Loads a file with redis-server and with `beluga import`."""
    with loaded_by_redis(path) as peer:
        is_loaded(peer)
        compare(f"{what}: redis-server", picture(peer.port, names), expected)
    other = Server()
    code, text = run("import", path, "--into", other.folder)
    tally.check(f"{what}: import", code == 0, text)
    with other:
        compare(f"{what}: import", picture(other.port, names), expected)


def under_writers(server):
    """Each writer sets its two keys to the same number, in EXEC; so a file of one instant has them equal."""
    stop, writers = threading.Event(), 4

    def write(at):
        wire, number = Wire(server.port), 0
        while not stop.is_set():
            number += 1
            wire.call("MULTI")
            wire.call("SET", f"a{at}", number)
            wire.call("RPUSH", f"l{at}", number)
            wire.call("SET", f"b{at}", str(number) + "x" * (number % 3 * 2000))
            wire.call("EXEC")

    threads = [threading.Thread(target=write, args=(at,)) for at in range(writers)]
    for thread in threads:
        thread.start()
    wire, path, last = Wire(server.port), os.path.join(server.folder, "dump.rdb"), 0
    for save in ("SAVE", "BGSAVE", "SAVE", "BGSAVE"):
        while int(bulk(wire.call("GET", "a0")) or 0) < last + 50:
            pass
        last = int(bulk(wire.call("GET", "a0")))
        tally.equal(save, wire.call(save), b"+OK\r\n" if save == "SAVE" else b"+Background saving started\r\n")
        after = int(bulk(wire.call("GET", "a0")))
        idle(wire)
        with loaded_by_redis(path) as peer:
            theirs = Wire(peer.port)
            while b"loading:1" in theirs.call("INFO", "persistence"):
                pass
            for at in range(writers):
                a = bulk(theirs.call("GET", f"a{at}"))
                b = bulk(theirs.call("GET", f"b{at}")).rstrip(b"x")
                tally.equal(f"{save}: the two keys of a writer", (a, theirs.call("LLEN", f"l{at}")[1:-2]), (b, a))
            shown = int(bulk(theirs.call("GET", "a0")))
            tally.check(f"{save}: the instant is not before the request", shown >= last, f"{shown} {last}")
            if save == "BGSAVE":
                tally.check("BGSAVE: the instant is not behind the reply", shown <= after, f"{shown} {after}")
    stop.set()
    for thread in threads:
        thread.join()
    wire.call("DEL", *[f"{kind}{at}" for kind in "abl" for at in range(writers)])


def whole_file(name, data, mark):
    """A file between its head and its mark, and nothing behind it."""
    if mark:
        tally.check(f"{name}: ends with the mark", data.endswith(mark), repr(data[-60:]))
        return data[: -len(mark)]
    return data


def synchronise(server, home, names):
    """redis-cli --rdb and --functions-rdb, and SYNC and PSYNC by hand, in both forms."""
    wire = Wire(server.port)
    fill(server, random.Random(seed))
    expected = picture(server.port, names)
    path = os.path.join(home, "cli.rdb")
    done = subprocess.run(["redis-cli", "-p", str(server.port), "--rdb", path], capture_output=True, text=True, timeout=120)
    tally.check("redis-cli --rdb", done.returncode == 0, done.stdout + done.stderr)
    names_of(path, "redis-cli --rdb", names, expected)
    functions = os.path.join(home, "functions.rdb")
    done = subprocess.run(["redis-cli", "-p", str(server.port), "--functions-rdb", functions], capture_output=True, text=True, timeout=120)
    tally.check("redis-cli --functions-rdb", done.returncode == 0, done.stdout + done.stderr)
    with loaded_by_redis(functions) as peer:
        is_loaded(peer)
        theirs = Wire(peer.port)
        tally.equal("it has the functions", theirs.call("FCALL", "f", "0"), b":42\r\n")
        tally.equal("and no keys", theirs.call("DBSIZE"), b":0\r\n")
    for name, capa, command in (("SYNC", (), ("SYNC",)), ("PSYNC", (), ("PSYNC", "?", "-1")), ("PSYNC with a mark", ("capa", "eof", "capa", "psync2"), ("PSYNC", "?", "-1"))):
        peer = socket.create_connection(("127.0.0.1", server.port), 60)
        peer.sendall(request("REPLCONF", "listening-port", "1", *capa, "rdb-only", "1") + request("PING") + request(*command))
        data = b""
        while piece := peer.recv(1 << 20):
            data += piece
        tally.check(f"{name}: what precedes it", data.startswith(b"+OK\r\n+PONG\r\n"), repr(data[:60]))
        data = data[len(b"+OK\r\n+PONG\r\n") :]
        if command[0] == "PSYNC":
            line, data = data.split(b"\r\n", 1)
            tally.check(f"{name}: the first line", line.startswith(b"+FULLRESYNC ") and len(line.split()[1]) == 40 and line.endswith(b" 0"), repr(line))
        line, data = data.split(b"\r\n", 1)
        if capa:
            tally.check(f"{name}: the form", line.startswith(b"$EOF:") and len(line) == 45, repr(line))
            data = whole_file(name, data, line[5:])
        else:
            tally.equal(f"{name}: the length", line, b"$%d" % len(data))
        path = os.path.join(home, "sync.rdb")
        with open(path, "wb") as file:
            file.write(data)
        other = Server()
        code, text = run("import", path, "--into", other.folder)
        tally.check(f"{name}: import", code == 0, text)
        with other:
            tally.equal(f"{name}: its keys", Wire(other.port).call("DBSIZE"), wire.call("DBSIZE"))
    # A client that leaves in the middle does not stand in the way of the next one.
    peer = socket.create_connection(("127.0.0.1", server.port), 60)
    peer.sendall(request("REPLCONF", "rdb-only", "1") + request("SYNC"))
    peer.close()
    idle(wire)
    tally.equal("an option", wire.call("REPLCONF", "x", "y"), b"-ERR Unrecognized REPLCONF option: x\r\n")
    tally.equal("half an option", wire.call("REPLCONF", "capa"), b"-ERR syntax error\r\n")
    tally.equal("rdb-only 2", wire.call("REPLCONF", "rdb-only", "2"), b"-ERR value is out of range, value must between 0 and 1\r\n")
    tally.equal("a filter", wire.call("REPLCONF", "rdb-filter-only", "keys"), b"-ERR Unsupported rdb-filter-only option: keys\r\n")
    wire.call("FLUSHALL")
    wire.call("FUNCTION", "FLUSH")


with Server() as server, tempfile.TemporaryDirectory(prefix="beluga-save-") as home:
    rng, wire = random.Random(seed), Wire(server.port)
    path = os.path.join(server.folder, "dump.rdb")
    tally.equal("CONFIG GET", wire.call("CONFIG", "GET", "dbfilename"), b"*2\r\n$10\r\ndbfilename\r\n$8\r\ndump.rdb\r\n")
    began = int(wire.call("LASTSAVE")[1:-2])
    tally.check("LASTSAVE is the start", abs(began - time.time()) < 60, str(began))
    tally.check("there is no file yet", not os.path.exists(path))
    under_writers(server)
    names = fill(server, rng)
    expected = picture(server.port, names)
    tally.equal("SAVE", wire.call("SAVE"), b"+OK\r\n")
    facts = idle(wire)
    tally.equal("its status", (facts["rdb_last_bgsave_status"], facts["rdb_last_save_time"]), ("ok", wire.call("LASTSAVE")[1:-2].decode()))
    with open(path, "rb") as file:
        tally.equal("its version", file.read(9), b"REDIS0010")
    tally.equal("its permissions", os.stat(path).st_mode & 0o777, 0o600)
    names_of(path, "SAVE", names, expected)
    tally.equal("BGSAVE", wire.call("BGSAVE", "SCHEDULE"), b"+Background saving started\r\n")
    # Behind the instant: the file has the keys of before.
    wire.call("FLUSHALL")
    wire.call("SET", "new", "1")
    wire.call("FUNCTION", "FLUSH")
    idle(wire)
    names_of(path, "BGSAVE", names, expected)
    synchronise(server, home, names)
    # What must be refused.
    tally.equal("a word", wire.call("BGSAVE", "NOW"), b"-ERR syntax error\r\n")
    wire.call("MULTI")
    tally.equal("SAVE in MULTI", wire.call("SAVE"), b"-ERR Command not allowed inside a transaction\r\n")
    wire.call("DISCARD")
    wire.call("MULTI")
    wire.call("SET", "in", "exec")
    tally.equal("BGSAVE in MULTI", wire.call("BGSAVE"), b"+QUEUED\r\n")
    tally.equal("EXEC", wire.call("EXEC"), b"*2\r\n+OK\r\n+Background saving scheduled\r\n")
    idle(wire)
    with loaded_by_redis(path) as peer:
        is_loaded(peer)
        tally.equal("it has what EXEC wrote", Wire(peer.port).call("GET", "in"), b"$4\r\nexec\r\n")
    tally.check("SAVE in a script", b"not allowed from script" in wire.call("EVAL", "return redis.call('save')", 0))
    # A hash of which fields expire has no form in Redis 7.0; the file has the version of 7.4.
    wire.call("HSET", "timed", "f", "v", "g", "w")
    wire.call("HPEXPIREAT", "timed", 4_000_000_000_000, "FIELDS", 1, "f")
    tally.equal("SAVE of expiring fields", wire.call("SAVE"), b"+OK\r\n")
    with open(path, "rb") as file:
        tally.equal("its version", file.read(9), b"REDIS0012")
    other = Server()
    code, text = run("import", path, "--into", other.folder)
    tally.check("import of expiring fields", code == 0, text)
    with other:
        there = Wire(other.port)
        tally.equal("the field's time", there.call("HPEXPIRETIME", "timed", "FIELDS", 2, "f", "g"), b"*2\r\n:4000000000000\r\n:-1\r\n")
    wire.call("DEL", "timed")
    # Many keys, so that a file takes a while: a second one is refused, a stop gives it up, and so does kill -9.
    for part in range(20):
        wire.call("MSET", *[word for at in range(10_000) for word in (f"many{part}:{at}", "x" * 30)])
    tally.equal("SAVE", wire.call("SAVE"), b"+OK\r\n")
    with open(path, "rb") as file:
        before = file.read()
    wire.call("SET", "later", "1")
    other = Wire(server.port)
    tally.equal("BGSAVE", wire.call("BGSAVE"), b"+Background saving started\r\n")
    tally.equal("a second BGSAVE", other.call("BGSAVE"), b"-ERR Background save already in progress\r\n")
    tally.equal("SAVE beside BGSAVE", other.call("SAVE"), b"-ERR Background save already in progress\r\n")
    tally.equal("others are served", other.call("GET", "later"), b"$1\r\n1\r\n")
    server.kill()
    with open(path, "rb") as file:
        tally.check("kill -9 leaves the file of before", file.read() == before)
    server.start()
    wire = Wire(server.port)
    tally.equal("BGSAVE", wire.call("BGSAVE"), b"+Background saving started\r\n")
    tally.equal("it stops", server.terminate(), 0)
    with open(path, "rb") as file:
        tally.check("a stop leaves the file of before", file.read() == before)
    tally.check("and nothing else", not os.path.exists(os.path.join(server.folder, "temp-dump.rdb")))
    code, text = run("check", server.folder)
    tally.check("check", code == 0, text)
    server.start()
    wire = Wire(server.port)
    tally.equal("SAVE", wire.call("SAVE"), b"+OK\r\n")
    with loaded_by_redis(path) as peer:
        theirs = Wire(peer.port)
        while b"loading:1" in theirs.call("INFO", "persistence"):
            pass
        tally.equal("all keys", theirs.call("DBSIZE"), wire.call("DBSIZE"))
        tally.equal("also the later one", theirs.call("GET", "later"), b"$1\r\n1\r\n")
tally.close()
