"""Replies about commands and accounts, compared with those of redis-server.

COMMAND INFO and COMMAND DOCS byte for byte in RESP2 and RESP3. Of a container only the subcommands that are served are compared, in any order, for
Redis keeps them in a hash table. ACL requests byte for byte, but ages and addresses in ACL LOG.
"""

import re
import time

from beluga import Peer, Server, Tally, Wire

tally = Tally()


def parse(raw):
    """A raw reply as Python values, and what is left. Status lines keep their plus sign."""
    line, rest = raw.split(b"\r\n", 1)
    kind, text = line[:1], line[1:]
    if kind in b"$=":
        length = int(text)
        return (None, rest) if length < 0 else (rest[:length].decode(), rest[length + 2:])
    if kind in b"*~%":
        items = []
        for _ in range(max(int(text), 0) * (2 if kind == b"%" else 1)):
            item, rest = parse(rest)
            items.append(item)
        return (kind.decode(), items), rest
    return (int(text) if kind == b":" else line.decode()), rest


def names(wire):
    """All names that the server has, subcommands too."""
    (_, listed), _ = parse(wire.call("COMMAND", "LIST"))
    return [name for name in listed if "|" not in name], [name for name in listed if "|" in name]


def split_info(raw, served):
    """COMMAND INFO of a container without its subcommands, and their names as far as they are served."""
    (_, [(_, row)]), _ = parse(raw)
    return row[:9], sorted(sub[1][0] for sub in row[9][1] if sub[1][0] in served)


def split_docs(raw, served):
    (_, [name, (_, words)]), _ = parse(raw)
    pairs = dict(zip(words[::2], map(repr, words[1::2])))
    below = words[words.index("subcommands") + 1][1]
    subcommands = {name: repr(doc) for name, doc in zip(below[::2], below[1::2]) if name in served}
    pairs.pop("subcommands")
    return name, pairs, subcommands


def commands(ours, peers):
    for version in (2, 3):
        for wire in (ours, peers):
            wire.call("HELLO", version)
        top, below = names(ours)
        tally.check("there are commands", len(top) > 60 and len(below) > 50)
        containers = {name.split("|")[0] for name in below}
        tally.equal("commands of Redis 7.4", [name for name in sorted(NEWER) if name not in top], [])
        for name in (name for name in top + below if name not in NEWER):
            for what, split in (("INFO", split_info), ("DOCS", split_docs)):
                replies = [wire.call("COMMAND", what, name) for wire in (ours, peers)]
                if name in containers:
                    replies = [split(raw, below) for raw in replies]
                tally.equal(f"RESP{version} COMMAND {what} {name}", *replies)
        for request in REQUESTS:
            tally.equal(f"RESP{version} {' '.join(request)}", ours.call(*request), peers.call(*request))
        for category in parse(ours.call("ACL", "CAT"))[0][1]:
            for request in (["ACL", "CAT", category], ["COMMAND", "LIST", "FILTERBY", "ACLCAT", category]):
                found, expected = (sorted(parse(wire.call(*request))[0][1]) for wire in (ours, peers))
                found = [name for name in found if name not in NEWER]
                tally.equal(f"RESP{version} {' '.join(request)}", found, [name for name in expected if name in top + below])


# Commands that are served, but that the redis-server beside does not have: they are those of Redis 7.4.
NEWER = {"hexpire", "hexpireat", "hexpiretime", "hpersist", "hpexpire", "hpexpireat", "hpexpiretime", "hpttl", "httl"}

REQUESTS = [line.split(" ") for line in """
COMMAND INFO nothing
COMMAND INFO config|nothing get|x
COMMAND DOCS nothing
COMMAND LIST FILTERBY MODULE x
COMMAND LIST FILTERBY ACLCAT nothing
COMMAND LIST FILTERBY PATTERN SETRAN*
COMMAND LIST FILTERBY PATTERN config|g*
COMMAND LIST FILTERBY x y
COMMAND LIST x
COMMAND NOTHING
COMMAND GETKEYS
COMMAND GETKEYS GET
COMMAND GETKEYS GET a
COMMAND GETKEYS get a b
COMMAND GETKEYS PING x
COMMAND GETKEYS NOTHING a
COMMAND GETKEYS CONFIG NOTHING
COMMAND GETKEYS CONFIG GET a
COMMAND GETKEYS MSET a 1 b 2
COMMAND GETKEYS MSET a 1 b
COMMAND GETKEYS OBJECT ENCODING k
COMMAND GETKEYS MEMORY USAGE k
COMMAND GETKEYS COPY a b DB 3
COMMAND GETKEYS MOVE a 3
COMMAND GETKEYS BITOP AND d a b
COMMAND GETKEYS LCS a b
COMMAND GETKEYS RENAME a b
COMMAND GETKEYSANDFLAGS SET a b
COMMAND GETKEYSANDFLAGS SET get get
COMMAND GETKEYSANDFLAGS SET a b GET
COMMAND GETKEYSANDFLAGS BITFIELD a GET u8 0
COMMAND GETKEYSANDFLAGS BITFIELD a GET u8
COMMAND GETKEYSANDFLAGS BITFIELD a OVERFLOW SAT GET u8 0
COMMAND GETKEYSANDFLAGS BITFIELD a SET u8 0 1
COMMAND GETKEYSANDFLAGS BITFIELD a x
COMMAND GETKEYSANDFLAGS MSET a 1 b 2
COMMAND GETKEYSANDFLAGS COPY a b
COMMAND GETKEYSANDFLAGS GETEX a
COMMAND GETKEYSANDFLAGS WATCH a b
COMMAND GETKEYSANDFLAGS
COMMAND HELP
CONFIG HELP
SLOWLOG HELP
OBJECT HELP
LATENCY HELP
ACL HELP
ACL CAT
ACL CAT nothing
ACL CAT a b
ACL GENPASS 0
ACL GENPASS 4097
ACL GENPASS x
ACL GENPASS 1 2
ACL LOG x
ACL LOG 1 2
ACL SAVE
ACL LOAD
ACL NOTHING
ACL
LATENCY HISTORY nothing
LATENCY GRAPH nothing
LATENCY LATEST
LATENCY RESET nothing
LATENCY HISTOGRAM nothing
SLOWLOG GET x
SLOWLOG GET -2
SLOWLOG GET 1 2
MEMORY USAGE nothing
OBJECT FREQ nothing
OBJECT IDLETIME nothing
CLIENT TRACKINGINFO
CLIENT GETREDIR
CLIENT LIST TYPE nothing
CLIENT LIST ID x
CLIENT LIST x
CLIENT LIST ID 99999999
CLIENT LIST TYPE master
CLIENT NO-TOUCH on
CONFIG SET latency-tracking-info-percentiles x
CONFIG SET latency-tracking-info-percentiles 101
CONFIG SET acllog-max-len x
CONFIG GET acllog-max-len
CONFIG GET latency-tracking
""".strip().splitlines()]

# The words of a rule are kept in their order here and made up by Redis, and Redis remembers whether payloads are sanitized after a reset: rules are
# asked for where the two agree.
ACL = [line.split(" ") for line in """
ACL SETUSER bob
ACL GETUSER bob
ACL SETUSER bob on >pw ~app:* %R~shared:* %W~out +get +config|get -config|get &news.*
ACL GETUSER bob
ACL LIST
ACL USERS
ACL WHOAMI
ACL GETUSER nobody
ACL SETUSER bob %R~out %W~shared:*
ACL GETUSER bob
ACL SETUSER bob allkeys allchannels
ACL GETUSER bob
ACL SETUSER bob ~x
ACL SETUSER bob &x
ACL SETUSER bob resetkeys resetchannels ~a ~a
ACL GETUSER bob
ACL SETUSER bob (+get ~a) (+set %W~b &c)
ACL GETUSER bob
ACL LIST
ACL SETUSER bob ( +get ~a ) ()
ACL LIST
ACL SETUSER bob clearselectors
ACL LIST
ACL SETUSER bob (+get
ACL SETUSER bob (+get (+set))
ACL SETUSER bob (+get nopass)
ACL SETUSER bob (~* ~a)
ACL SETUSER bob +nothing
ACL SETUSER bob +@nothing
ACL SETUSER bob -@nothing
ACL SETUSER bob -get|x
ACL SETUSER bob +get|
ACL SETUSER bob +get|x|y
ACL SETUSER bob +config|nothing
ACL SETUSER bob +config|get|x
ACL SETUSER bob %RR~a
ACL SETUSER bob %X~a
ACL SETUSER bob %~a
ACL SETUSER bob %R
ACL SETUSER bob nonsense
ACL SETUSER bob #00
ACL SETUSER bob !00
ACL SETUSER bob #2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824
ACL SETUSER bob <nothing
ACL SETUSER bob #2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
ACL GETUSER bob
ACL SETUSER bob <hello
ACL SETUSER bob <pw nopass
ACL GETUSER bob
ACL SETUSER bob resetpass
ACL GETUSER bob
ACL SETUSER bob +@all -config +config|get
ACL GETUSER bob
ACL SETUSER bob nocommands +select|0
ACL GETUSER bob
ACL SETUSER bob nocommands +@string
ACL GETUSER bob
ACL SETUSER bob +get
ACL GETUSER bob
ACL SETUSER bob reset
ACL SETUSER x\0y
ACL DRYRUN nobody get a
ACL DRYRUN default nothing
ACL DRYRUN default config nothing
ACL DRYRUN default get
ACL DRYRUN default get a
ACL SETUSER bob on >pw +@all -flushall -config|set ~a* %R~r* %W~w* (+get ~s) -@dangerous +acl|dryrun
ACL DRYRUN bob get a
ACL DRYRUN bob get b
ACL DRYRUN bob get s
ACL DRYRUN bob set s 1
ACL DRYRUN bob set r1 1
ACL DRYRUN bob set w1 1
ACL DRYRUN bob set w1 1 get
ACL DRYRUN bob bitfield r1 get u8 0
ACL DRYRUN bob bitfield w1 get u8 0
ACL DRYRUN bob mget a1 a2 b
ACL DRYRUN bob copy r1 w1
ACL DRYRUN bob copy w1 r1
ACL DRYRUN bob flushall
ACL DRYRUN bob config set x y
ACL DRYRUN bob keys *
ACL DRYRUN bob object encoding r1
ACL DRYRUN bob object encoding q
ACL DRYRUN bob exists q
ACL DRYRUN bob exists w1
ACL DRYRUN bob auth x
ACL SETUSER bob reset
ACL DELUSER nobody
ACL DELUSER default
ACL DELUSER bob nobody
ACL LIST
ACL LOG RESET
ACL LOG
""".strip().splitlines()]

# Run as the account bob.
REFUSED = [line.split(" ") for line in """
get x
get a
set a 1
flushall
config get x
config nothing
client setname b
multi
get x
get a
exec
multi
get a
get a
exec
acl whoami
select 1
select 0
nothing
""".strip().splitlines()]


def accounts(ours, peers):
    for version in (2, 3):
        for wire in (ours, peers):
            wire.call("HELLO", version)
        for request in ACL:
            tally.equal(f"RESP{version} {' '.join(request)}", ours.call(*request), peers.call(*request))


# Requests about the connection itself. `-` stands for an empty word.
CONNECTION = [[b"" if word == "-" else word for word in line.split(" ")] for line in """
HELLO x
HELLO 1
HELLO 4
HELLO -1
HELLO 2 AUTH
HELLO 2 AUTH default
HELLO 2 AUTH nobody x
HELLO 2 SETNAME
HELLO 2 SETNAME a\tb
HELLO 2 NONSENSE
HELLO 3 AUTH default
AUTH
AUTH x
AUTH nobody x
AUTH a b c
CLIENT GETNAME
CLIENT SETNAME a\tb
CLIENT SETNAME x
CLIENT GETNAME
CLIENT SETNAME -
CLIENT GETNAME
CLIENT SETNAME
CLIENT ID x
CLIENT
CLIENT NOTHING
CLIENT KILL
CLIENT KILL 1.2.3.4:5
CLIENT KILL ID
CLIENT KILL ID x
CLIENT KILL ID 0
CLIENT KILL ID 123456789
CLIENT KILL TYPE nothing
CLIENT KILL TYPE pubsub
CLIENT KILL USER nobody
CLIENT KILL SKIPME x
CLIENT KILL NONSENSE x
CLIENT KILL ADDR 1.2.3.4:5 LADDR 1.2.3.4:5
CLIENT PAUSE
CLIENT PAUSE x
CLIENT PAUSE -1
CLIENT PAUSE 1 x
CLIENT PAUSE 1 write
CLIENT UNPAUSE
CLIENT UNBLOCK x
CLIENT UNBLOCK 123456
CLIENT UNBLOCK 123456 x
CLIENT NO-EVICT x
CLIENT NO-EVICT on
CLIENT NO-EVICT off
CLIENT REPLY x
CLIENT REPLY on
CLIENT REPLY
SELECT x
SELECT -1
SELECT 16
SELECT 99999999999
SELECT 3
PING a b
PING
ECHO
MULTI
SELECT 2
CLIENT SETNAME inside
CLIENT GETNAME
HELLO x
NOTHING
EXEC
MULTI
MULTI
WATCH a
SELECT 1
PING x
EXEC
EXEC
DISCARD
MULTI
PING
DISCARD
MULTI
RESET
EXEC
CLIENT GETNAME
UNWATCH
WATCH
ROLE
TIME x
DBSIZE x
WAIT x 0
WAIT 0 x
WAIT 0 -1
WAIT 0 0
SWAPDB x 0
SWAPDB 0 x
SWAPDB 0 99
FLUSHALL x
FLUSHDB ASYNC SYNC
CONFIG SET
CONFIG SET a
CONFIG SET nothing x
CONFIG SET hz 10 hz 11
CONFIG SET hz x
CONFIG SET hz 10 maxmemory
CONFIG GET
CONFIG GET nothing
CONFIG RESETSTAT x
CONFIG NOTHING
SLOWLOG LEN x
SLOWLOG NOTHING
LATENCY NOTHING
MEMORY NOTHING
MEMORY USAGE
MEMORY USAGE a SAMPLES
MEMORY USAGE a SAMPLES x
MEMORY USAGE a SAMPLES -1
MEMORY USAGE a SAMPLES 0
MEMORY USAGE a NONSENSE 1
OBJECT NOTHING a
OBJECT ENCODING
OBJECT FREQ a b
SCAN x
SCAN -
SCAN 0 COUNT
SCAN 0 COUNT x
SCAN 0 COUNT 0
SCAN 0 TYPE
SCAN 0 NONSENSE 1
SCAN 0 MATCH
SCAN 18446744073709551616
SCAN 0 TYPE string MATCH nothing* COUNT 1000
QUIT x
""".strip().splitlines()]


def connections(beluga, peer):
    for version in ("2", "3"):
        wires = [Wire(port) for port in (beluga.port, peer.port)]
        for wire in wires:
            wire.call("FLUSHALL")
            wire.call("HELLO", version)
        for at, line in enumerate(CONNECTION):
            tally.equal(f"RESP{version} connection {at}: {line}", *(wire.call(*line) for wire in wires))


def shown(beluga):
    """CLIENT LIST, and INFO's names that Redis has too."""
    wire = Wire(beluga.port)
    own = wire.call("CLIENT", "ID")[1:-2].decode()
    for request in (["CLIENT", "NO-EVICT", "on"], ["CLIENT", "SETNAME", "shown"], ["SELECT", "3"], ["MULTI"], ["SET", "key", "value"]):
        wire.call(*request)
    other = Wire(beluga.port)
    text = parse(other.call("CLIENT", "LIST", "ID", own))[0]
    fields = dict(word.split("=", 1) for word in text.split())
    expected = {"id": own, "name": "shown", "flags": "xe", "db": "3", "multi": "1", "multi-mem": "11", "cmd": "set", "user": "default", "resp": "2"}
    tally.equal("CLIENT LIST", {name: fields.get(name) for name in expected}, expected)
    tally.equal("CLIENT LIST of two", len(parse(other.call("CLIENT", "LIST", "ID", own, "999999", own))[0].splitlines()), 2)


def hide(raw):
    """ACL LOG without what differs from run to run."""
    raw = re.sub(rb"(age-seconds\r\n)(,|\$\d+\r\n)[0-9.e-]+", rb"\1AGE", raw)
    return re.sub(rb"\$\d+\r\nid=\d+ [^\r]*", b"CLIENT", raw)


def refusals(beluga, peer):
    replies = []
    for port in (beluga.port, peer.port):
        admin, bob = Wire(port), Wire(port)
        admin.call("FLUSHALL")
        admin.call("ACL", "LOG", "RESET")
        found = [admin.call("ACL", "SETUSER", "bob", "reset", "on", ">pw", "+get", "+multi", "+exec", "+acl|whoami", "+select|0", "~a")]
        found += [bob.call("AUTH", "bob", "wrong"), bob.call("AUTH", "nobody", "x"), bob.call("AUTH", "bob", "pw")]
        found += [bob.call(*request) for request in REFUSED]
        # Rules that change between a queued command and its EXEC.
        found += [bob.call("MULTI"), bob.call("GET", "a"), bob.call("GET", "a")]
        found += [admin.call("ACL", "SETUSER", "bob", "resetkeys"), bob.call("EXEC")]
        found += [admin.call("ACL", "SETUSER", "bob", "~a"), bob.call("MULTI"), bob.call("GET", "a")]
        found += [admin.call("ACL", "SETUSER", "bob", "-get"), bob.call("EXEC")]
        found += [hide(admin.call("ACL", "LOG", "100")), hide(admin.call("ACL", "LOG", "2"))]
        found += [admin.call("CONFIG", "SET", "acllog-max-len", "1"), bob.call("GET", "other"), bob.call("SET", "a", "1")]
        found += [hide(admin.call("ACL", "LOG", "5")), admin.call("CONFIG", "SET", "acllog-max-len", "128")]
        # A user that is gone takes its connections along.
        found.append(admin.call("ACL", "DELUSER", "bob"))
        try:
            found.append(bob.call("PING"))
        except OSError:
            found.append("closed")
        except EOFError:
            found.append("closed")
        replies.append(found)
    tally.equal("as many replies", *map(len, replies))
    for at, (found, expected) in enumerate(zip(*replies)):
        tally.equal(f"reply {at} of an account with few rights", found, expected)


def errors_and_times(beluga):
    wire = Wire(beluga.port)
    wire.call("CONFIG", "RESETSTAT")
    for request in (["INCR"], ["SET", "s", "x"], ["INCR", "s"], ["GET", "s"], ["GET", "s"], ["CONFIG", "GET", "hz"]):
        wire.call(*request)
    info = parse(wire.call("INFO", "everything"))[0]
    tally.check("errorstats", "errorstat_ERR:count=2\r\n" in info, info)
    incr = re.search(r"cmdstat_incr:calls=(\d+),.*,rejected_calls=(\d+),failed_calls=(\d+)\r\n", info)
    tally.equal("commandstats", incr and incr.groups(), ("1", "1", "1"))
    tally.check("a subcommand has counts of its own", "cmdstat_config|get:calls=1," in info)
    tally.check("latencystats", re.search(r"latency_percentiles_usec_get:p50=[\d.]+,p99=[\d.]+,p99.9=[\d.]+\r\n", info), info)
    (_, found), _ = parse(wire.call("LATENCY", "HISTOGRAM", "get", "config", "nothing"))
    tally.equal("histograms of what has run", sorted(found[::2]), ["config|get", "config|resetstat", "get"])
    times = found[found.index("get") + 1][1]
    calls = dict(zip(times[::2], times[1::2]))
    tally.equal("calls of a histogram", calls["calls"], 2)
    tally.equal("the last step has all calls", calls["histogram_usec"][1][-1], 2)


def spikes(beluga):
    wire = Wire(beluga.port)
    wire.call("CONFIG", "SET", "latency-monitor-threshold", "20")
    for seconds in ("0.05", "0.12"):
        wire.call("DEBUG", "SLEEP", seconds)
        time.sleep(1)
    wire.call("GET", "x")
    (_, [(_, latest)]), _ = parse(wire.call("LATENCY", "LATEST"))
    tally.check("the latest spike", latest[0] == "command" and 120 <= latest[2] < 1000 and latest[3] >= latest[2], latest)
    (_, history), _ = parse(wire.call("LATENCY", "HISTORY", "command"))
    tally.equal("spikes seen", len(history), 2)
    graph = parse(wire.call("LATENCY", "GRAPH", "command"))[0]
    tally.check("a graph", graph.startswith("command - high ") and graph.splitlines()[2] == " #" and graph.splitlines()[5] == "_|", graph)
    tally.check("the doctor names the event", "1. command: 2 latency spikes" in parse(wire.call("LATENCY", "DOCTOR"))[0])
    tally.equal("events forgotten", [wire.call("LATENCY", "RESET", "command"), wire.call("LATENCY", "LATEST")], [b":1\r\n", b"*0\r\n"])
    wire.call("CONFIG", "SET", "latency-monitor-threshold", "0")
    wire.call("DEBUG", "SLEEP", "0.03")
    tally.equal("off again", wire.call("LATENCY", "LATEST"), b"*0\r\n")


with Server() as beluga, Peer() as peer:
    ours, peers = Wire(beluga.port), Wire(peer.port)
    commands(ours, peers)
    accounts(ours, peers)
    refusals(beluga, peer)
    connections(beluga, peer)
    shown(beluga)
    errors_and_times(beluga)
    spikes(beluga)
tally.close()
