"""`beluga import` of append-only files that redis-server has written: the base and commands of every kind behind it, transactions, scripts and functions; files of earlier versions, which are
one; files that end in the middle, and hostile ones.
"""

import os
import random
import shutil
import subprocess
import tempfile
import time

from beluga import Peer, Server, Tally, Wire, request, rounds_and_seed
from dump_values import KINDS, bulk, content, digest

rounds, seed = rounds_and_seed(60)
tally = Tally()
LIBRARY = "#!lua name=%s\nredis.register_function('%s', function(keys) return redis.call('INCR', 'called') end)"


def run(*words):
    done = subprocess.run([os.environ["SERVER_UNDER_TEST"], *words, "--memory", "256mb"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def log_from_here(wire):
    """Has the peer write an append-only file from here on, whose base has what there is."""
    wire.call("CONFIG", "SET", "appendonly", "yes")
    done = (b"aof_enabled:1", b"aof_rewrite_in_progress:0", b"aof_rewrite_scheduled:0")
    tally.until("the file is begun", lambda: all(fact in wire.call("INFO", "persistence") for fact in done))


def play(wire, rng, at):
    """Commands of many kinds, some of which the server logs in another form."""
    wire.call("SELECT", rng.choice([0, 0, 0, 3, 15]))
    key = b"k%d" % rng.randrange(rounds)
    soon = int(time.time() * 1000) + 10_000_000
    if wire.call("EXISTS", key) == b":0\r\n":
        for command in rng.choice(KINDS)(rng, key):
            wire.call(*command)
    other = b"o%d" % rng.randrange(5)
    for command in rng.sample([
        [("EXPIRE", key, 5_000_000)], [("PEXPIREAT", key, soon)], [("PERSIST", key)], [("SET", other, at, "EX", 5_000_000)], [("SETEX", other, 5_000_000, at)], [("GETEX", other, "PX", 5_000_000_000)],
        [("COPY", key, other, "DB", 7, "REPLACE")], [("MOVE", key, 8)], [("SWAPDB", 3, 9)], [("RENAME", key, other)], [("DEL", other)], [("GETDEL", other)], [("SPOP", key)], [("LPOP", key)], [("ZPOPMIN", key)],
        [("EVAL", "redis.call('SET', KEYS[1], ARGV[1]); return redis.call('INCR', 'scripts')", 1, other, at)], [("FCALL", "kept", 0)], [("APPEND", other, "x")], [("SETRANGE", other, 5000, "y")],
        [("MULTI",), ("INCR", "counter"), ("SELECT", 3), ("INCR", "counter"), ("SELECT", 0), ("RPUSH", "list", at), ("EXEC",)], [("XADD", "s", "*", "a", at)], [("XADD", "s", "MAXLEN", "~", 10, "*", "b", at)],
        [("XREADGROUP", "GROUP", "g", "c", "COUNT", 2, "STREAMS", "s", ">")], [("XACK", "s", "g", "1-1")], [("XAUTOCLAIM", "s", "g", "d", 0, "0", "COUNT", 1)], [("PFADD", "hll", at)], [("PFCOUNT", "hll")],
        [("GEOADD", "geo", 13.361389, 38.115556, at)], [("HINCRBYFLOAT", "h", "f", "0.1")], [("INCRBYFLOAT", "float", "0.1")], [("LMOVE", "list", "list2", "LEFT", "RIGHT")], [("BLPOP", "list", 1)],
        [("SINTERSTORE", "set", "set1", "set2")], [("SADD", "set1", at, "a")], [("SADD", "set2", at, "a")], [("BITFIELD", "bits", "INCRBY", "u8", at, 5)], [("FLUSHDB",)] if rng.random() < 0.05 else [("PING",)],
        [("RESTORE", other, 1_000_000, bulk(wire.call("DUMP", "counter")) or b"", "REPLACE")],
    ], 8):
        for step in command:
            wire.call(*step)


def names(wire):
    found = []
    for db in range(16):
        wire.call("SELECT", db)
        raw = wire.call("KEYS", "*")
        at = raw.index(b"\r\n") + 2
        while at < len(raw):
            end = raw.index(b"\r\n", at)
            length = int(raw[at + 1 : end])
            found.append((db, raw[end + 2 : end + 2 + length]))
            at = end + 4 + length
    return sorted(found)


def compare(server, theirs, what):
    ours = Wire(server.port)
    expected = names(theirs)
    tally.equal(f"{what}: keys", names(ours), expected)
    for db, key in expected:
        for wire in (ours, theirs):
            wire.call("SELECT", db)
        tally.equal(f"{what}: {db} {key[:20]}", digest(content(ours, key)), digest(content(theirs, key)))
        tally.equal(f"{what}: {db} {key[:20]}: time", ours.call("PEXPIRETIME", key), theirs.call("PEXPIRETIME", key))
    lists = [[word for word in wire.call("FUNCTION", "LIST").split(b"\r\n") if word in (b"kept", b"gone", b"based")] for wire in (ours, theirs)]
    tally.equal(f"{what}: functions", *[sorted(found) for found in lists])


def import_new(path, what, expected=""):
    server = Server()
    code, text = run("import", path, "--into", server.folder)
    tally.check(f"{what}: import", code == 0 and expected in text, f"{code} {text}")
    code, text = run("check", server.folder)
    tally.check(f"{what}: check", code == 0, text)
    return server


def refused(home, what, data, says):
    path = os.path.join(home, "bad.aof")
    with open(path, "wb") as file:
        file.write(data)
    code, text = run("import", path, "--into", os.path.join(home, "bad-data"))
    tally.check(what, code == 65 and says in text and text.count("beluga: ") == 1, f"{code} {text}")


def single_files(home):
    path = os.path.join(home, "one.aof")
    past = 1000
    with open(path, "wb") as file:
        file.write(b"#TS:1\r\n" + request("RPUSH", "l", "a") + request("PEXPIREAT", "l", past) + request("RPUSH", "l", "b") + request("SET", "v", 1, "PXAT", past) + request("INCR", "v"))
        file.write(request("SET", "kept", 1) + request("EXPIRE", "kept", 1000) + request("MULTI") + request("SET", "half", 1) + b"*3\r\n$3\r\nSE")
    server = import_new(path, "a file that ends in a transaction", "bytes are no whole command or transaction and were left out")
    with server:
        ours = Wire(server.port)
        tally.equal("what has expired stays so", ours.call("EXISTS", "l", "v", "half"), b":0\r\n")
        tally.check("a time that counts from now", 900 < int(ours.call("TTL", "kept")[1:]) <= 1000)
        tally.until("the background removes what has expired", lambda: ours.call("DBSIZE") == b":1\r\n")
    for what, data, says in [
        ("an argument of 2^62 bytes", b"*1\r\n$4611686018427387904\r\nx", "too long"),
        ("2^40 arguments", b"*1099511627776\r\n", "too long"),
        ("no arguments", b"*0\r\n", "no name"),
        ("a negative number", b"*-1\r\n", "is expected"),
        ("a line without end", b"*" + b"1" * 1000, "too long"),
        ("another sign", request("SET", "a", 1) + b"+OK\r\n", "is expected"),
        ("no end of an argument", b"*1\r\n$4\r\nPINGxx", "does not end"),
        ("an unknown command", request("NOSUCH", "a"), "unknown command"),
        ("arguments", request("SET", "a"), "wrong number of arguments"),
        ("a wrong type", request("SET", "a", 1) + request("RPUSH", "a", 1), "WRONGTYPE"),
        ("a script", request("EVAL", "return 1", 0), "no place in an append-only file"),
        ("a command of the server", request("CONFIG", "SET", "a", "b"), "no place in an append-only file"),
        ("EXEC alone", request("EXEC"), "EXEC without MULTI"),
        ("MULTI in MULTI", request("MULTI") * 2, "MULTI in MULTI"),
        ("database 16", request("SELECT", 16), "no such database"),
        ("a library that is none", request("FUNCTION", "LOAD", "x"), "library metadata"),
    ]:
        refused(home, what, data, says)
    # Nothing of them is there.
    code, text = run("check", os.path.join(home, "bad-data"))
    tally.check("nothing was imported", code == 0 and " 0 keys" in text, text)


with Peer() as peer, tempfile.TemporaryDirectory(prefix="beluga-import-") as home:
    rng = random.Random(seed)
    theirs = Wire(peer.port)
    theirs.call("FUNCTION", "LOAD", LIBRARY % ("based", "based"))
    for at in range(rounds // 2):
        for command in rng.choice(KINDS)(rng, b"k%d" % at):
            theirs.call(*command)
    # In the base its time is not over; behind it, it is.
    theirs.call("RPUSH", "late", "a")
    theirs.call("PEXPIRE", "late", 600_000)
    theirs.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    log_from_here(theirs)
    theirs.call("FUNCTION", "LOAD", LIBRARY % ("kept", "kept"))
    theirs.call("FUNCTION", "LOAD", LIBRARY % ("gone", "gone"))
    theirs.call("FUNCTION", "DELETE", "gone")
    for at in range(rounds * 3):
        play(theirs, rng, at)
    folder = os.path.join(peer.home, "appendonlydir")
    # What Redis itself reads from the file: a stream, for one, is not all in it.
    reader = Peer("--appendonly", "yes")
    shutil.copytree(folder, os.path.join(reader.home, "appendonlydir"))
    reader.__enter__()
    theirs = Wire(reader.port)
    tally.until("Redis reads the file", lambda: b"loading:0" in theirs.call("INFO", "persistence"))
    server = import_new(folder, "a folder")
    with server:
        compare(server, theirs, "a folder")
    # In a running server, by the manifest.
    manifest = [name for name in os.listdir(folder) if name.endswith(".manifest")][0]
    with Server() as server:
        code, text = run("import", os.path.join(folder, manifest), "--into", server.folder)
        tally.check("import into a running server", code == 0, text)
        compare(server, theirs, "running")
        server.kill()
        server.start()
        compare(server, theirs, "after kill -9")
    # One file, as before Redis 7.
    base, incr = (sorted(name for name in os.listdir(folder) if word in name)[-1] for word in (".base.", ".incr."))
    joined = os.path.join(home, "appendonly.aof")
    with open(joined, "wb") as out:
        for name in (base, incr):
            with open(os.path.join(folder, name), "rb") as file:
                shutil.copyfileobj(file, out)
    server = import_new(joined, "one file")
    with server:
        compare(server, theirs, "one file")
    # The end is missing: of the last file it may be, of the base not.
    copied = os.path.join(home, "cut")
    shutil.copytree(folder, copied)
    size = os.path.getsize(os.path.join(copied, incr))
    os.truncate(os.path.join(copied, incr), size - 3)
    import_new(copied, "a last file that was cut off", "left out").close()
    os.truncate(os.path.join(copied, base), os.path.getsize(os.path.join(copied, base)) - 3)
    code, text = run("import", copied, "--into", os.path.join(home, "none"))
    tally.check("a base that was cut off", code == 65 and base in text, text)
    os.remove(os.path.join(copied, incr))
    code, text = run("import", copied, "--into", os.path.join(home, "none"))
    tally.check("a file that is missing", code == 74 and incr in text, f"{code} {text}")
    reader.__exit__()
    single_files(home)
tally.close()
