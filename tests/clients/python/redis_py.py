"""redis-py, with both protocols."""

import os
import time

import redis

from beluga import Server, Tally

tally = Tally()


def strings(client):
    tally.equal("set", client.set("a", "1"), True)
    tally.equal("nx", client.set("a", "2", nx=True), None)
    tally.equal("set get", client.set("a", "2", get=True), b"1")
    tally.equal("incr", client.incrby("a", 40), 42)
    tally.equal("float", client.incrbyfloat("a", "0.5"), 42.5)
    tally.equal("append", client.append("a", "!"), 5)
    tally.equal("range", client.getrange("a", -2, -1), b"5!")
    tally.equal("mset", client.mset({"x": "1", "y": "2"}), True)
    tally.equal("mget", client.mget("x", "y", "none"), [b"1", b"2", None])
    binary = bytes(range(256)) * 20
    client.set(b"bin\x00\r\n", binary)
    tally.equal("binary", client.get(b"bin\x00\r\n"), binary)
    tally.equal("bits", (client.setbit("b", 100, 1), client.bitcount("b"), client.bitpos("b", 1)), (0, 1, 100))
    tally.equal("getdel", (client.getdel("x"), client.get("x")), (b"1", None))
    field = client.bitfield("f").set("u8", 0, 200).incrby("u8", 0, 100).execute()
    tally.equal("bitfield", field, [0, 44])


def expiry(client):
    client.set("t", "1", px=60)
    tally.check("pttl", 0 < client.pttl("t") <= 60)
    client.set("u", "1", ex=100)
    tally.equal("ttl", client.ttl("u"), 100)
    tally.equal("persist", (client.persist("u"), client.ttl("u")), (True, -1))
    time.sleep(0.12)
    tally.equal("gone", client.get("t"), None)
    tally.equal("expire nx", (client.expire("u", 100, nx=True), client.expire("u", 200, nx=True)), (True, False))


def field_expiry(client):
    at = 4_000_000_000
    client.hset("h", mapping={"a": "1", "b": "2", "c": "3"})
    tally.equal("hexpireat", client.hexpireat("h", at, "a", "none"), [1, -2])
    tally.equal("hexpireat nx", client.hexpireat("h", at + 1, "a", "b", nx=True), [0, 1])
    tally.equal("hpexpireat gt", client.hpexpireat("h", at * 1000 + 5, "a", "c", gt=True), [1, 0])
    tally.equal("hexpiretime", client.hexpiretime("h", "a", "b", "c"), [at + 1, at + 1, -1])
    tally.equal("hpexpiretime", client.hpexpiretime("h", "a"), [at * 1000 + 5])
    tally.equal("hexpire", client.hexpire("h", 100, "b"), [1])
    tally.check("httl", 98 <= client.httl("h", "b")[0] <= 100)
    tally.check("hpttl", 98_000 <= client.hpttl("h", "b")[0] <= 100_000)
    tally.equal("hpersist", client.hpersist("h", "b", "c", "none"), [1, -1, -2])
    tally.equal("hpexpire", client.hpexpire("h", 0, "c"), [2])
    client.hpexpire("h", 1, "a")
    while client.hexists("h", "a"):
        pass
    tally.equal("a field has expired", client.hgetall("h"), {b"b": b"2"})


def transactions(client, other):
    with client.pipeline(transaction=True) as pipe:
        pipe.set("p", 1).incr("p").get("p")
        tally.equal("exec", pipe.execute(), [True, 2, b"2"])
    with client.pipeline() as pipe:
        pipe.watch("w")
        other.set("w", "other")
        pipe.multi()
        pipe.set("w", "mine")
        try:
            pipe.execute()
            tally.check("watch", False, "a changed key was not noticed")
        except redis.WatchError:
            tally.equal("watch", client.get("w"), b"other")


def scanning(client):
    client.flushdb()
    pipe = client.pipeline(transaction=False)
    for n in range(5000):
        pipe.set(f"key:{n}", n)
    pipe.execute()
    keys = list(client.scan_iter(count=100))
    tally.equal("scan all", sorted(set(keys)), sorted(f"key:{n}".encode() for n in range(5000)))
    tally.equal("scan match", len(set(client.scan_iter(match="key:12*"))), 111)
    tally.equal("dbsize", client.dbsize(), 5000)
    tally.equal("delete", client.delete(*keys[:100]), 100)
    tally.equal("keys", len(client.keys("*")), 4900)
    client.flushdb()
    tally.equal("flushed", client.dbsize(), 0)


def connection(client):
    tally.check("id", client.client_id() > 0)
    client.client_setname("tester")
    tally.equal("name", client.client_getname() in (b"tester", "tester"), True)
    tally.check("list", any(row["name"] == "tester" for row in client.client_list()))
    tally.check("info", client.info()["redis_version"] == "7.0.15")
    tally.check("config", client.config_get("maxmemory*")["maxmemory-policy"] == "noeviction")
    tally.check("commands", "get" in client.command())
    tally.check("slowlog", isinstance(client.slowlog_get(), list))
    tally.check("time", abs(client.time()[0] - time.time()) < 5)
    tally.check("memory", client.memory_usage("a") > 0)


def large(client):
    value = os.urandom(1 << 20) * 100
    client.set("large", value)
    tally.check("100 MB", client.get("large") == value)
    tally.equal("its end", client.getrange("large", len(value) - 3, -1), value[-3:])
    tally.equal("strlen", client.strlen("large"), len(value))
    client.delete("large")


def patient_scan(server):
    """A scan that goes on after 20,000 steps of others, and one whose server was restarted meanwhile."""
    def rest(client, cursor, keys):
        while cursor:
            cursor, found = client.scan(cursor, count=100)
            keys.update(found)
        return keys

    client = redis.Redis(port=server.port)
    client.mset({f"key:{n}": n for n in range(5000)})
    expected = {f"key:{n}".encode() for n in range(5000)}
    cursor, found = client.scan(0, count=10)
    keys, restarted = set(found), set(found)
    for _ in range(4):
        other = 0
        while True:
            other, _found = client.scan(other, count=1)
            if not other:
                break
    tally.check("a slow scan beside a fast one", rest(client, cursor, keys) == expected, f"{len(keys)} keys")
    tally.equal("it did not begin again", client.info("stats")["scan_restarts"], 0)
    server.terminate()
    server.start()
    client = redis.Redis(port=server.port)
    client.scan(0, count=1)
    tally.check("a scan over a restart", rest(client, cursor, restarted) == expected, f"{len(restarted)} keys")
    tally.equal("it began again", client.info("stats")["scan_restarts"], 1)


with Server() as server:
    for protocol in (2, 3):
        client = redis.Redis(port=server.port, protocol=protocol, single_connection_client=True)
        other = redis.Redis(port=server.port, protocol=protocol)
        client.flushall()
        strings(client)
        expiry(client)
        field_expiry(client)
        transactions(client, other)
        scanning(redis.Redis(port=server.port, protocol=protocol, db=5))
        connection(client)
    large(client)
    client.acl_setuser("alice", enabled=True, passwords=["+secret"], keys=["app:*"], commands=["+get", "+set"], reset=True)
    alice = redis.Redis(port=server.port, username="alice", password="secret")
    tally.equal("acl allowed", alice.set("app:1", "1"), True)
    for name, forbidden in (("key", lambda: alice.get("other")), ("command", lambda: alice.flushall())):
        try:
            forbidden()
            tally.check(f"acl {name}", False)
        except redis.exceptions.NoPermissionError:
            tally.check(f"acl {name}", True)
    try:
        redis.Redis(port=server.port, username="alice", password="wrong").ping()
        tally.check("wrong password", False)
    except redis.AuthenticationError:
        tally.check("wrong password", True)

with Server() as server:
    patient_scan(server)

with Server("--redis-password", "pw") as server:
    tally.equal("password", redis.Redis(port=server.port, password="pw").ping(), True)
    tally.equal("user:password in one", redis.Redis(port=server.port, password="default:pw").ping(), True)
    try:
        redis.Redis(port=server.port).get("a")
        tally.check("no password", False)
    except redis.AuthenticationError:
        tally.check("no password", True)
tally.close()
