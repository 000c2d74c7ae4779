"""`beluga import` of RDB files that redis-server has written: values of every type in several databases, with times and functions, into a folder that no server uses and into a running
server. Damaged, shortened and hostile files change nothing, and neither does kill -9 in the middle.
"""

import os
import random
import signal
import subprocess
import tempfile
import time

from beluga import Peer, Server, Tally, Wire, request, rounds_and_seed
from dump_values import KINDS, bulk, content, digest, with_checksum

rounds, seed = rounds_and_seed(60)
tally = Tally()
LIBRARY = b"#!lua name=lib\nredis.register_function('f', function() return 42 end)"


def run(*words):
    done = subprocess.run([os.environ["SERVER_UNDER_TEST"], *words, "--memory", "256mb"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def fill(peer, rng):
    """Random values in some databases. Returns where they are."""
    theirs, names = Wire(peer.port), []
    for at in range(rounds):
        db, kind, key = rng.choice([0, 0, 1, 7, 15]), rng.choice(KINDS), b"k%d" % at
        theirs.call("SELECT", db)
        for command in kind(rng, key):
            theirs.call(*command)
        if rng.random() < 0.3:
            theirs.call("PEXPIREAT", key, rng.choice([int(time.time() * 1000) + 10_000_000, 4_000_000_000_000]))
        if theirs.call("EXISTS", key) == b":1\r\n":
            names.append((db, key))
    theirs.call("SELECT", 0)
    for name in (b"x" * 600, b"\x00\xff"):
        theirs.call("SET", name, b"v" * 700_000)
        theirs.call("RPUSH", name + b"l", *[b"i%d" % at for at in range(30_000)])
        names += [(0, name), (0, name + b"l")]
    theirs.call("FUNCTION", "LOAD", LIBRARY)
    return names


def save(peer):
    """The RDB file of a peer."""
    tally.equal("SAVE", Wire(peer.port).call("SAVE"), b"+OK\r\n")
    return os.path.join(peer.home, "dump.rdb")


def compare(server, peer, names, what):
    ours, theirs = Wire(server.port), Wire(peer.port)
    for db, key in names:
        for wire in (ours, theirs):
            wire.call("SELECT", db)
        name = f"{what}: {db} {key[:20]}"
        tally.equal(name, digest(content(ours, key)), digest(content(theirs, key)))
        tally.equal(f"{name}: encoding", bulk(ours.call("OBJECT", "ENCODING", key)), bulk(theirs.call("OBJECT", "ENCODING", key)))
        tally.equal(f"{name}: time", ours.call("PEXPIRETIME", key), theirs.call("PEXPIRETIME", key))
    for db in range(16):
        for wire in (ours, theirs):
            wire.call("SELECT", db)
        tally.equal(f"{what}: keys of database {db}", ours.call("DBSIZE"), theirs.call("DBSIZE"))
    tally.equal(f"{what}: function", ours.call("FCALL", "f", "0"), b":42\r\n")


def untouched(folder, what):
    code, text = run("check", folder)
    tally.check(f"{what}: check", code == 0 and " 1 keys" in text, text)


def hostile(folder):
    """Files that claim what they have not."""
    head, end = b"REDIS0010\xfe\x00", b"\xff"
    huge = b"\x81" + (2**62).to_bytes(8, "big")
    bomb = b"\xc3\x0a" + b"\x80" + (2**29).to_bytes(4, "big") + b"\x00a" + b"\xe0\xff\x00" * 2 + b"\x00a"
    files = {
        "a string of 2^62 bytes": head + b"\x00\x01k" + huge,
        "a key of 2^62 bytes": head + b"\x00" + huge,
        "a list of 2^62 items": head + b"\x01\x01k" + huge + b"\x01a" * 50,
        "a hash of 2^62 fields": head + b"\x04\x01k" + huge + b"\x01a\x01b",
        "a quicklist of 2^62 nodes": head + b"\x12\x01k" + huge + b"\x01\x01a",
        "a bomb": head + b"\x00\x01k" + bomb,
        "database 16": b"REDIS0010\xfe\x10\x00\x01k\x01v" + end,
        "database 2^62": b"REDIS0010\xfe" + huge + b"\x00\x01k\x01v" + end,
        "a key twice": head + b"\x00\x01k\x01v\x00\x01k\x01w" + end,
        "a list twice": head + b"\x01\x01k\x01\x01a\x01\x01k\x01\x01b" + end,
        "a member twice": head + b"\x02\x01k\x02\x01a\x01a" + end,
        "an empty list": head + b"\x01\x01k\x00" + end,
        "no number": head + b"\x05\x01k\x01\x01a\x00\x00\x00\x00\x00\x00\xf8\x7f" + end,
        "a module": head + b"\x07\x01k" + end,
        "version 99": b"REDIS0099" + end,
        "no RDB": b"hello, world",
        "nothing": b"",
        "a function that is none": b"REDIS0010\xf5\x05hello" + end,
        "a wrong checksum": with_checksum(head + b"\x00\x01k\x01v" + end)[:-1] + b"\x00",
    }
    for what, content in files.items():
        path = os.path.join(folder, "hostile.rdb")
        with open(path, "wb") as file:
            file.write(content if b"checksum" in what.encode() else content + b"\0" * 8 if content.endswith(end) else content)
        yield what, path


with Peer() as peer, Server() as running, tempfile.TemporaryDirectory(prefix="beluga-import-") as home:
    rng = random.Random(seed)
    names = fill(peer, rng)
    theirs = Wire(peer.port)
    theirs.call("SELECT", 3)
    theirs.call("SET", "gone", "v", "PX", 1)
    path = save(peer)
    # A new folder, without a server.
    offline = Server()
    code, text = run("import", path, "--into", offline.folder)
    tally.check("import", code == 0 and f" {len(names)} keys in " in text, text)
    code, text = run("check", offline.folder)
    tally.check("check", code == 0, text)
    with offline:
        compare(offline, peer, names, "offline")
    # A running server, whose databases have keys already.
    ours = Wire(running.port)
    ours.call("SET", "mine", "1")
    ours.call("SELECT", 5)
    ours.call("SET", "other", "1")
    watcher = Wire(running.port)
    watcher.call("WATCH", "mine")
    code, text = run("import", path, "--into", running.folder)
    tally.check("a database with keys", code != 0 and "database 0 has keys" in text and "--replace" in text, text)
    watcher.call("MULTI")
    tally.equal("nothing has changed", watcher.call("EXEC"), b"*0\r\n")
    watcher.call("WATCH", "mine")
    tracker = Wire(running.port)
    tracker.call("HELLO", 3)
    tracker.call("CLIENT", "TRACKING", "ON")
    tracker.call("GET", "mine")
    code, text = run("import", path, "--into", running.folder, "--replace")
    push = b">2\r\n$10\r\ninvalidate\r\n_\r\n"
    tally.equal("a client that keeps what it reads", tracker.exactly(len(push)), push)
    tally.check("import into a running server", code == 0, text)
    watcher.call("MULTI")
    tally.equal("a watched key is replaced", watcher.call("EXEC"), b"*-1\r\n")
    tally.equal("a database that the file has not", ours.call("GET", "other"), b"$1\r\n1\r\n")
    ours.call("DEL", "other")
    compare(running, peer, names, "running")
    running.kill()
    running.start()
    compare(running, peer, names, "after kill -9")
    # Files that are no good.
    folder = os.path.join(home, "data")
    with Server(folder=folder) as server:
        Wire(server.port).call("SET", "mine", "1")
    with open(path, "rb") as file:
        good = file.read()
    bad = os.path.join(home, "bad.rdb")
    for at in range(12):
        body = bytearray(good)
        where = rng.randrange(9, len(good))
        if at % 2 == 0:
            body = body[:where]
        else:
            body[where] ^= 1 << rng.randrange(8)
        with open(bad, "wb") as file:
            file.write(body)
        code, text = run("import", bad, "--into", folder, "--replace")
        tally.check(f"damage at {where} of {len(good)}", code == 65 and "nothing was imported" in text, f"{code} {text}")
    untouched(folder, "after damaged files")
    for what, path_of in hostile(home):
        code, text = run("import", path_of, "--into", folder, "--replace")
        tally.check(what, code in (64, 65) and "nothing was imported" in text, f"{code} {text}")
        tally.check(f"{what}: one line of error", text.count("beluga: ") == 1, text)
    untouched(folder, "after hostile files")
    tally.check("no file", run("import", os.path.join(home, "none"), "--into", folder)[0] == 74)
    # kill -9 in the middle: the next start knows nothing of it.
    theirs.call("SELECT", 0)
    theirs.send(b"".join(request("SET", f"many{at}", "x" * 30) for at in range(100_000)))
    theirs.exactly(len(b"+OK\r\n") * 100_000)
    path = save(peer)
    words = [os.environ["SERVER_UNDER_TEST"], "import", path, "--into", folder, "--replace", "--memory", "256mb"]
    importing = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    tally.check("it runs", "%" in importing.stdout.readline())
    importing.send_signal(signal.SIGKILL)
    importing.wait()
    untouched(folder, "after kill -9")
    # The same in a running server.
    with Server(folder=folder) as server:
        importing = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        tally.check("it runs", "%" in importing.stdout.readline())
        ours = Wire(server.port)
        tally.equal("old keys are served meanwhile", ours.call("GET", "mine"), b"$1\r\n1\r\n")
        tally.equal("and no others", ours.call("DBSIZE"), b":1\r\n")
        server.kill()
        importing.wait()
        server.start()
        tally.equal("after kill -9", Wire(server.port).call("DBSIZE"), b":1\r\n")
        code, text = run(*words[1:-2])
        tally.check("and once more", code == 0, text)
        theirs.call("SELECT", 0)
        tally.equal("all keys", Wire(server.port).call("DBSIZE"), theirs.call("DBSIZE"))
tally.close()
