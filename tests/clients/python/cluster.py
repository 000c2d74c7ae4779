"""The server as the one node of a cluster: its replies beside those of a redis-server with cluster-enabled, and RedisCluster of redis-py."""

import re
import shutil
import subprocess
import tempfile
import time

import redis
from redis.cluster import RedisCluster

from beluga import Server, Tally, Wire, free_port

tally = Tally()

SAME = """
cluster keyslot abc
cluster keyslot {user1000}.following
cluster keyslot foo{}{bar}
cluster keyslot foo{{bar}}zap
cluster keyslot
cluster info
cluster slots
cluster shards
cluster nodes
cluster links
cluster myid
cluster help
cluster countkeysinslot 99999
cluster countkeysinslot x
cluster getkeysinslot 1 -1
cluster getkeysinslot 1 x
cluster count-failure-reports x
cluster replicas x
cluster slaves x
cluster failover
cluster saveconfig
cluster meet
cluster none
readonly
readwrite
asking
set {a}1 1
mset {a}1 1 {a}2 2
mset a 1 b 2
mget a b
del a b
rename a b
eval return{redis.call('get',KEYS[1])} 1 {a}1
eval return{redis.call('get',KEYS[1])} 2 a b
eval return{redis.call('mset','a',1,'b',2)} 0
select 0
select 1
select x
swapdb 0 1
move a 1
copy {a}1 {a}3 db 1
copy {a}1 {a}3 db 0
copy a b db 1
rpush {a}l 2 1
sort {a}l by w_*
sort {a}l get #
sort {a}l by nosort
watch a b
ssubscribe a b
multi
set a 1
set b 2
exec
multi
mset a 1 b 2
set {a}1 1
exec
multi
select 1
exec
multi
set {a}1 3
incr {a}1
exec
cluster countkeysinslot 15495
cluster getkeysinslot 15495 10
info cluster
module list
"""


def plain(raw):
    """A reply without ids, addresses and hashes of scripts; keys in any order."""
    text = re.sub(rb"[0-9a-f]{40}", b"<id>", raw)
    text = re.sub(rb"(:|\b)[0-9]{4,5}@[0-9]{4,5}", b"<port>", text)
    text = re.sub(rb"\$\d+\r\n(127\.0\.0\.1)?\r\n", b"<address>", text)
    text = re.sub(rb"127\.0\.0\.1", b"", text)
    text = re.sub(rb":[0-9]{4,5}\r\n", b"<number>", text)
    return re.sub(rb"([$=])\d+\r\n", rb"\1", text)


def beside(server):
    port, home = free_port(also=10_000), tempfile.mkdtemp(prefix="beluga-test-")
    words = ["redis-server", "--port", str(port), "--cluster-enabled", "yes", "--save", "", "--dir", home]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while True:
            try:
                keys = redis.Redis(port=port)
                keys.ping()
                break
            except redis.exceptions.ConnectionError:
                assert process.poll() is None, f"redis-server ended with {process.returncode} at port {port}"
                assert time.monotonic() < until
        waiting = Wire(port)
        waiting.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        while b"cluster_state:ok" not in waiting.call("CLUSTER", "INFO"):
            assert time.monotonic() < until
        for version in (2, 3):
            ours, theirs = Wire(server.port), Wire(port)
            for wire in (ours, theirs):
                wire.call("HELLO", str(version))
            for line in SAME.strip().split("\n"):
                words = line.split(" ")
                found, expected = plain(ours.call(*words)), plain(theirs.call(*words))
                if line in ("cluster slots", "cluster shards", "cluster getkeysinslot 15495 10", "cluster info"):
                    found, expected = sorted(found.split(b"\r\n")), sorted(expected.split(b"\r\n"))
                tally.equal(f"RESP{version}: {line}", found, expected)
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(home, ignore_errors=True)


def client(server):
    keys = RedisCluster(host="127.0.0.1", port=server.port)
    tally.equal("one node", len(keys.get_nodes()), 1)
    for at in range(200):
        keys.set(f"key{at}", at)
    tally.equal("reads", [keys.get(f"key{at}") for at in range(200)], [str(at).encode() for at in range(200)])
    pipe = keys.pipeline()
    for at in range(200):
        pipe.get(f"key{at}")
    tally.equal("a pipeline", pipe.execute(), [str(at).encode() for at in range(200)])
    tally.equal("over nodes", keys.mget_nonatomic(*(f"key{at}" for at in range(200))), [str(at).encode() for at in range(200)])
    tally.equal("SCAN", len(set(keys.scan_iter(count=50))), 200)
    slots = {keys.keyslot(f"key{at}") for at in range(200)}
    tally.equal("keys of slots", sum(keys.cluster_countkeysinslot(slot) for slot in slots), 200)
    tally.equal("a slot", keys.cluster_get_keys_in_slot(keys.keyslot("key7"), 1), ["key7"])
    for name in ("CLUSTER RESET", "CLUSTER FLUSHSLOTS", "CLUSTER BUMPEPOCH"):
        try:
            redis.Redis(port=server.port).execute_command(name)
            tally.check(name, False, "it succeeded")
        except redis.exceptions.ResponseError as error:
            tally.check(name, "cannot be changed" in str(error), str(error))
    keys.close()


def without_cluster(server):
    try:
        RedisCluster(host="127.0.0.1", port=server.port)
        tally.check("no cluster", False, "it has begun")
    except redis.exceptions.RedisClusterException as error:
        tally.check("no cluster", "Cluster mode is not enabled on this node" in str(error), str(error))


def announced(server):
    keys = redis.Redis(port=server.port)
    for name, value in (("cluster-announce-ip", "192.0.2.7"), ("cluster-announce-port", "7000"), ("cluster-announce-hostname", "node.example")):
        keys.config_set(name, value)
    line = Wire(server.port).call("CLUSTER", "NODES")
    tally.check("CLUSTER NODES", b"192.0.2.7:7000@17000,node.example myself,master" in line, line)
    wire = Wire(server.port)
    tally.check("CLUSTER SLOTS", b"$9\r\n192.0.2.7\r\n:7000\r\n" in wire.call("CLUSTER", "SLOTS"), wire.call("CLUSTER", "SLOTS"))
    keys.config_set("cluster-preferred-endpoint-type", "hostname")
    tally.check("by name", b"$12\r\nnode.example\r\n:7000\r\n" in wire.call("CLUSTER", "SLOTS"), wire.call("CLUSTER", "SLOTS"))


def main():
    with Server("--redis-cluster-enabled", "on") as server:
        beside(server)
        redis.Redis(port=server.port).flushall()
        client(server)
        known = redis.Redis(port=server.port).execute_command("CLUSTER MYID")
        server.kill()
        server.start()
        tally.equal("the id after a kill", redis.Redis(port=server.port).execute_command("CLUSTER MYID"), known)
        announced(server)
    with Server() as server:
        without_cluster(server)
    tally.close()


if __name__ == "__main__":
    main()
