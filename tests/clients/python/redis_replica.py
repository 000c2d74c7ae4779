"""REPLICAOF: Beluga follows a redis-server. Values of every type come by a full synchronisation, with and without a file on the other server's disk, and changes of every kind by the stream;
kill -9 in the middle loses nothing and applies nothing twice. Clients read meanwhile, and write after REPLICAOF NO ONE.
"""

import random
import subprocess
import threading
import time

import psycopg

from beluga import Peer, Server, Wire, request, rounds_and_seed
from dump_values import bulk
from replication_life import LIBRARY, change, compare, facts, fill, has_all, is_up, tally
from sql import ask, come

rounds, seed = rounds_and_seed(4)
READ_ONLY = b"-READONLY You can't write against a read only replica.\r\n"


def follows_a_full_life(master, server, scratch, twin):
    rng = random.Random(seed)
    fill(master, rng, 200)
    wire = Wire(master.port)
    wire.call("SET", b"x" * 600, b"v" * 3_000_000)
    wire.call("RPUSH", b"long", *[b"i%d" % at for at in range(30_000)])
    wire.call("FUNCTION", "LOAD", LIBRARY % 42)
    own = Wire(server.port)
    own.call("SET", "old", "value")
    blocked = Wire(server.port)
    blocked.send(request("BLPOP", "nothing", 0))
    tally.until("a blocked client", lambda: facts(server.port, "clients")["blocked_clients"] == "1")
    tally.equal("REPLICAOF", own.call("REPLICAOF", "127.0.0.1", master.port), b"+OK\r\n")
    tally.equal("REPLICAOF again", own.call("SLAVEOF", "127.0.0.1", master.port), b"+OK Already connected to specified master\r\n")
    tally.equal("blocked", blocked.reply(), b"-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n")
    tally.until("the first synchronisation", lambda: has_all(server, master))
    compare(server, master, scratch, "full synchronisation")

    tally.equal("SET", own.call("SET", "a", "b"), READ_ONLY)
    tally.equal("SET with options", own.call("SET", "a", "b", "NX"), READ_ONLY)
    tally.equal("GET", own.call("GET", "old"), b"$-1\r\n")
    tally.equal("EVAL", own.call("EVAL", "return redis.call('DBSIZE')", 0)[:1], b":")
    tally.check("EVAL that writes", own.call("EVAL", "return redis.call('SET', 'a', 'b')", 0).startswith(b"-READONLY You can't write against a read only replica. script: "))
    own.call("MULTI")
    tally.equal("queued", own.call("SET", "a", "b"), READ_ONLY)
    tally.check("EXEC", own.call("EXEC").startswith(b"-EXECABORT"))
    tally.equal("ROLE", own.call("ROLE").split(b"\r\n")[2], b"slave")
    tally.equal("CONFIG GET", own.call("CONFIG", "GET", "replicaof").split(b"\r\n")[4], b"127.0.0.1 %d" % master.port)
    Wire(master.port).call("SET", "waited", "for")
    waiting = Wire(master.port)
    waiting.call("SET", "waited", "for")
    tally.equal("WAIT", waiting.call("WAIT", 1, 30_000), b":1\r\n")
    tally.equal("after WAIT", own.call("GET", "waited"), b"$3\r\nfor\r\n")
    subscriber = Wire(server.port)
    subscriber.call("SUBSCRIBE", "news")
    waiting.call("PUBLISH", "news", "from afar")
    tally.check("a message", subscriber.reply().endswith(b"from afar\r\n"))
    reader = Wire(server.port)
    reader.send(request("XREAD", "BLOCK", 0, "STREAMS", "awaited", "0"))
    tally.until("a blocked reader", lambda: facts(server.port, "clients")["blocked_clients"] == "1")
    waiting.call("XADD", "awaited", "1-1", "f", "v")
    tally.check("a reader is woken", b"1-1" in reader.reply())

    kills(master, server, scratch, twin, rng)
    for words in (["repl-diskless-sync", "no"], ["repl-diskless-sync", "yes"]):
        # It has another history once clients may have written, so all comes anew.
        Wire(master.port).call("CONFIG", "SET", *words)
        own = Wire(server.port)
        tally.equal("NO ONE", own.call("REPLICAOF", "NO", "ONE"), b"+OK\r\n")
        tally.equal("a write", own.call("SET", "mine", "1", "PX", 20), b"+OK\r\n")
        tally.until("expiry", lambda: b"expired_keys:0\r" not in own.call("INFO", "stats") and own.call("DBSIZE") == Wire(master.port).call("DBSIZE"))
        own.call("SET", "mine", "1")
        own.call("REPLICAOF", "127.0.0.1", master.port)
        tally.until("another synchronisation", lambda: has_all(server, master))
        tally.equal("a key of its own", Wire(server.port).call("GET", "mine"), b"$-1\r\n")
        compare(server, master, scratch, " ".join(words))
    goes_on_at(twin, server, master)
    own = Wire(server.port)
    tally.equal("NO ONE", own.call("REPLICAOF", "NO", "ONE"), b"+OK\r\n")
    tally.equal("role", facts(server.port)["role"], "master")
    before = own.call("GET", "counter")
    tally.equal("INCR goes on", own.call("INCR", "counter"), b":%d\r\n" % (int(bulk(before)) + 1))
    server.kill()
    server.start()
    tally.equal("nobody is followed after a restart", facts(server.port)["role"], "master")


def goes_on_at(twin, server, master):
    """Another replica of the master is promoted, and continues its history under a new id."""
    tally.until("an equal replica", lambda: has_all(twin, master) and has_all(server, master))
    theirs, own = Wire(twin.port), Wire(server.port)
    theirs.call("REPLICAOF", "NO", "ONE")
    before = facts(twin.port, "stats")
    own.call("REPLICAOF", "127.0.0.1", twin.port)
    theirs.call("INCR", "at_the_twin")
    tally.until("a link to the twin", lambda: own.call("GET", "at_the_twin") == b"$1\r\n1\r\n")
    stats = facts(twin.port, "stats")
    tally.equal("it continues", [int(stats[name]) - int(before[name]) for name in ("sync_full", "sync_partial_ok")], [0, 1])
    tally.equal("under its id", facts(server.port)["master_replid"], facts(twin.port)["master_replid"])
    server.kill()
    server.start()
    own = Wire(server.port)
    theirs.call("INCR", "at_the_twin")
    tally.until("a link to the twin after a kill", lambda: own.call("GET", "at_the_twin") == b"$1\r\n2\r\n")
    tally.equal("it still continues", facts(twin.port, "stats")["sync_full"], before["sync_full"])


def keeps_sql_off(scratch):
    """Statements read keys of a replica, and do not change them. Other tables are written."""
    with Server(mysql=True, postgres=True) as server, Peer("--repl-diskless-sync-delay", "0") as master:
        mysql, own = come(server), Wire(server.port)
        postgres = psycopg.connect(host="127.0.0.1", port=server.postgres_port, user="postgres", dbname="postgres", autocommit=True)
        ask(mysql, "CREATE DATABASE shop")
        ask(mysql, "CREATE TABLE shop.t (id INT PRIMARY KEY)")
        Wire(master.port).call("SET", "k", "v")
        Wire(master.port).call("HSET", "h", "f", "v")
        ask(mysql, "BEGIN")
        ask(mysql, "INSERT INTO redis.strings (db, `key`, value) VALUES (0, 'open', 'x')")
        ask(mysql, "INSERT INTO shop.t VALUES (1)")
        own.call("REPLICAOF", "127.0.0.1", master.port)
        tally.equal("a COMMIT of before", ask(mysql, "COMMIT"), 1290)
        tally.equal("nothing of it", ask(mysql, "SELECT * FROM shop.t"), [])
        tally.until("a link beside SQL", lambda: has_all(server, master))
        tally.equal("SELECT", ask(mysql, "SELECT value FROM redis.strings WHERE `key` = 'k'"), [[b"v"]])
        for statement in ("INSERT INTO redis.strings (db, `key`, value) VALUES (0, 'a', 'b')", "UPDATE redis.strings SET value = 'x'", "DELETE FROM redis.strings", "UPDATE redis.hashes SET value = 'x'"):
            tally.equal(statement, ask(mysql, statement), 1290)
        try:
            postgres.execute("DELETE FROM redis.strings")
            tally.check("DELETE at the PostgreSQL door", False)
        except psycopg.Error as error:
            tally.equal("DELETE at the PostgreSQL door", error.sqlstate, "25006")
        tally.equal("another table", ask(mysql, "INSERT INTO shop.t VALUES (2)"), [])
        tally.equal("k", own.call("GET", "k"), b"$1\r\nv\r\n")
        own.call("REPLICAOF", "NO", "ONE")
        tally.equal("an end", ask(mysql, "UPDATE redis.strings SET value = 'x'"), [])
        postgres.close()


def kills(master, server, scratch, twin, rng):
    """Kills the server while the master changes, and lets it continue."""
    wire = Wire(master.port)
    Wire(twin.port).call("REPLICAOF", "127.0.0.1", master.port)
    tally.until("a replica of Redis", lambda: is_up(twin))
    before = facts(master.port, "stats")
    benchmark = subprocess.Popen(["redis-benchmark", "-p", str(master.port), "-q", "-n", "10000000", "-r", "2000", "-c", "5", "-t", "set,incr,lpush,sadd,hset,zadd"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stop, done = threading.Event(), []

    def writer():
        own, dice = Wire(master.port), random.Random(seed + 1)
        while not stop.is_set():
            change(own, dice, 3)
            done.append(3)

    thread = threading.Thread(target=writer)
    thread.start()
    try:
        for round in range(rounds):
            at = int(facts(server.port)["slave_repl_offset"])
            tally.until("progress", lambda: int(facts(server.port)["slave_repl_offset"]) > at + rng.randrange(10_000, 400_000))
            if round % 2:
                began = time.monotonic()
                server.terminate()
                tally.check("a stop is quick", time.monotonic() - began < 15, time.monotonic() - began)
            else:
                server.kill()
            server.start()
            tally.until("the link after a restart", lambda: is_up(server))
        # A link that breaks while the server stays.
        Wire(master.port).call("CLIENT", "KILL", "TYPE", "replica")
        tally.until("the link after a break", lambda: is_up(server))
    finally:
        stop.set()
        thread.join()
        benchmark.kill()
        benchmark.wait()
    tally.until("all of the stream", lambda: has_all(server, master), 120)
    stats = facts(master.port, "stats")
    tally.equal("full synchronisations", stats["sync_full"], before["sync_full"])
    tally.check("partial ones", int(stats["sync_partial_ok"]) >= int(before["sync_partial_ok"]) + rounds + 1, stats["sync_partial_ok"])
    tally.until("all of the stream at the replica of Redis", lambda: has_all(twin, master), 120)
    counted = sum(done)
    if compare(server, master, scratch, "after kills", twin):
        print(f"{counted} of each counted, {stats['sync_partial_ok']} continued", flush=True)
    own = Wire(server.port)
    flushed = int(bulk(Wire(master.port).call("GET", "counter")) or 0)
    tally.equal("counter", int(bulk(own.call("GET", "counter")) or 0), flushed)
    tally.equal("pushed", own.call("LLEN", "pushed"), wire.call("LLEN", "pushed"))


def logs_in(scratch):
    with Peer("--requirepass", "secret", "--repl-diskless-sync-delay", "0") as master, Server() as server:
        theirs, own = Wire(master.port), Wire(server.port)
        theirs.call("AUTH", "secret")
        theirs.call("SET", "k", "v")
        own.call("REPLICAOF", "127.0.0.1", master.port)
        tally.until("a refused login", lambda: "NOAUTH" in facts(server.port).get("master_link_error", ""))
        tally.equal("masterauth", own.call("CONFIG", "SET", "masterauth", "secret"), b"+OK\r\n")
        tally.until("a login", lambda: is_up(server))
        tally.equal("GET", own.call("GET", "k"), b"$1\r\nv\r\n")
        theirs.call("ACL", "SETUSER", "follower", "on", ">pass", "+psync", "+replconf", "+ping")
        own.call("CONFIG", "SET", "masteruser", "follower", "masterauth", "pass")
        theirs.call("CLIENT", "KILL", "TYPE", "replica")
        theirs.call("SET", "k", "w")
        tally.until("a login with a name", lambda: own.call("GET", "k") == b"$1\r\nw\r\n")


def refuses(scratch):
    """Servers that cannot be followed, and files and commands that are refused."""
    with Server() as server, Server() as other, Peer("--repl-diskless-sync-delay", "0", "--databases", "32") as master:
        own = Wire(server.port)
        own.call("SET", "kept", "value")
        # Itself, and a replica of nobody that it could reach.
        Wire(other.port).call("REPLICAOF", "127.0.0.1", "1")
        for port in (server.port, other.port):
            own.call("REPLICAOF", "127.0.0.1", port)
            tally.until("no link to go on from", lambda: "NOMASTERLINK" in facts(server.port).get("master_link_error", ""))
            tally.equal("kept", own.call("GET", "kept"), b"$5\r\nvalue\r\n")
        tally.equal("port", own.call("REPLICAOF", "127.0.0.1", "99999"), b"-ERR Invalid master port\r\n")
        theirs = Wire(master.port)
        theirs.call("SELECT", 20)
        theirs.call("SET", "k", "v")
        own.call("REPLICAOF", "127.0.0.1", master.port)
        tally.until("a refused file", lambda: "database 20" in facts(server.port).get("master_link_error", ""))
        tally.equal("still kept", own.call("GET", "kept"), b"$5\r\nvalue\r\n")
        theirs.call("FLUSHALL")
        own.call("REPLICAOF", "127.0.0.1", master.port)
        tally.until("a link", lambda: is_up(server))
        theirs.call("SELECT", 0)
        theirs.call("SET", "before", "1")
        theirs.call("SELECT", 20)
        theirs.call("SET", "k", "v")
        tally.until("a refused command", lambda: "'SELECT'" in facts(server.port).get("master_link_error", ""))
        tally.equal("what came before it", own.call("GET", "before"), b"$1\r\n1\r\n")
        tally.equal("and writes stay refused", own.call("SET", "a", "b"), READ_ONLY)
        own.call("REPLICAOF", "NO", "ONE")
        tally.equal("SET", own.call("SET", "a", "b"), b"+OK\r\n")


with Peer("--repl-diskless-sync-delay", "0", "--repl-backlog-size", "512mb", "--enable-debug-command", "yes") as master, Server() as server, Peer() as scratch, Peer() as twin:
    follows_a_full_life(master, server, scratch, twin)
    logs_in(scratch)
    refuses(scratch)
    keeps_sql_off(scratch)
tally.close()
