"""The setting `memory` is obeyed: what the process takes stays within a tenth of it, whatever clients do.

What is compared is RssAnon of /proc/PID/status, sampled all the time: the memory that the process has made for itself. Pages of the program's file (RssFile) are
left out: they are the kernel's to drop, and a build with debug information has many of them.
"""

import argparse
import random
import socket
import struct
import threading
import time
import zlib

import pymysql

from beluga import Server, Tally, Wire, request
from sql import ask, come

parser = argparse.ArgumentParser()
parser.add_argument("--memory", nargs="*", default=["64mb", "256mb", "1gb"])
parser.add_argument("--greedy", default="128mb", help="the memory of the server that single logins try to outgrow; empty: none")
parser.add_argument("--seed", type=int, default=1)
arguments = parser.parse_args()
print(f"seed {arguments.seed}", flush=True)
rng = random.Random(arguments.seed)
tally = Tally()
UNITS = {"mb": 1 << 20, "gb": 1 << 30}
TOLERANCE = 1.10
# Of frames and replies of many megabytes: docs/operating.md says so.
TOLERANCE_LARGE = 1.25


def status(pid, name):
    with open(f"/proc/{pid}/status") as lines:
        for line in lines:
            if line.startswith(name + ":"):
                return int(line.split()[1]) << 10
    return 0


class Sampler(threading.Thread):
    """The most memory the process had since `begin`."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.stopped = pid, 0, False

    def run(self):
        while not self.stopped:
            try:
                self.most = max(self.most, status(self.pid, "RssAnon"))
            except OSError:
                return
            time.sleep(0.02)


def big(size):
    return rng.randbytes(size)


def sets(wire, names, value):
    """A pipeline of SETs; every reply must be OK."""
    wire.send(b"".join(request("SET", name, value) for name in names))
    return wire.exactly(5 * len(names)) == b"+OK\r\n" * len(names)


def fill(port, total):
    """Values of 100 bytes, 16 KB and 1 MB, more than memory holds."""
    wire = Wire(port, 60)
    small, middle, large = big(100), big(16_384), big(1 << 20)
    done, at, fine = 0, 0, True
    while done < total:
        fine &= sets(wire, [f"m{number}" for number in range(at, at + 32)], middle)
        fine &= sets(wire, [f"s{number}" for number in range(at * 4, at * 4 + 128)], small)
        done += 32 * len(middle) + 128 * len(small)
        at += 32
        if at % 256 == 0:
            fine &= sets(wire, [f"l{at // 256}"], large)
            done += len(large)
    return fine, at


def pipelines(port, count, keys, rounds):
    """GETs and SETs in pipelines, from many connections, whose replies are read only when all have sent."""
    wires = [Wire(port, 60) for _ in range(count)]
    value = big(16_384)
    fine = True
    for number in range(rounds):
        for wire in wires:
            names = [f"m{rng.randrange(keys)}" for _ in range(8)]
            if number % 2:
                wire.send(b"".join(request("GET", name) for name in names))
            else:
                wire.send(b"".join(request("SET", name, value) for name in names))
        for wire in wires:
            for _ in range(8):
                reply = wire.reply()
                fine &= reply == b"+OK\r\n" or len(reply) == len(value) + len(b"$16384\r\n\r\n")
    for wire in wires:
        wire.close()
    return fine


def megabytes(port, count, rounds):
    """SETs and GETs of a megabyte from many connections at once."""
    wires = [Wire(port, 60) for _ in range(count)]
    value = big(1 << 20)
    fine = []

    def one(number, wire):
        for at in range(rounds):
            fine.append(wire.call("SET", f"big{number}:{at}", value) == b"+OK\r\n")
            fine.append(len(wire.call("GET", f"big{number}:{at}")) == len(value) + len(b"$1048576\r\n\r\n"))

    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(wires)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for wire in wires:
        wire.close()
    return all(fine) and len(fine) == count * rounds * 2


def deaf(port, keys):
    """Clients that ask for much and read nothing: first values of 16 KB, then of a megabyte. Others are served; when they read, everything is there."""
    # With small receive buffers, so that the replies wait in the server and not in the kernel.
    middle, large = ([Wire(port, 60, 65_536) for _ in range(count)] for count in (96, 4))
    for wire in middle:
        wire.send(b"".join(request("GET", f"m{rng.randrange(keys)}") for _ in range(400)) + request("PING"))
    for wire in large:
        wire.send(b"".join(request("GET", f"big{number % 8}:0") for number in range(100)) + request("PING"))
    time.sleep(0.5)
    other = Wire(port, 60)
    fine = all(other.call("PING") == b"+PONG\r\n" and len(other.call("GET", "s1")) > 100 for _ in range(20))
    for wire, count, size in ((middle[0], 400, 16_384), (middle[-1], 400, 16_384), (large[0], 100, 1 << 20)):
        fine &= all(len(wire.reply()) == size + len(b"$%d\r\n\r\n" % size) for _ in range(count)) and wire.reply() == b"+PONG\r\n"
    for wire in middle + large:
        wire.close()
    return fine


def crowd(port, count):
    """Many connections that each ask something and then stay."""
    wires = [Wire(port, 60) for _ in range(count)]
    for wire in wires:
        wire.send(request("GET", "s1") + request("PING"))
    fine = all(len(wire.reply()) > 100 and wire.reply() == b"+PONG\r\n" for wire in wires)
    for wire in wires:
        wire.close()
    return fine


def inserts(server, count, statements):
    """INSERTs of half a megabyte each, with thousands of rows, from some connections at once, as sysbench and mysqldump write them; then all rows changed in one transaction."""
    ask(come(server), "create database bulk")
    pad = "-".join(f"{number:011d}" for number in range(10))
    rows = 2600
    fine = []

    def one(number):
        wire = come(server)
        fine.append(ask(wire, f"create table bulk.t{number} (id int primary key auto_increment, k int, c char(120), pad char(60))") == [])
        for at in range(statements):
            lines = ", ".join(f"({at * rows + row}, '{pad}', '{pad[:59]}')" for row in range(rows))
            fine.append(ask(wire, f"insert into bulk.t{number} (k, c, pad) values {lines}") == [])
        fine.append(ask(wire, f"update bulk.t{number} set k = k + 1") == [])
        fine.append(ask(wire, f"select count(*), sum(k) from bulk.t{number}") == [[rows * statements, sum(range(1, rows * statements + 1))]])
        fine.append(ask(wire, f"create index by_k on bulk.t{number} (k)") == [])

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return all(fine) and len(fine) == count * (statements + 4)


def selects(server, count, tables, rounds):
    """Point selects from many connections, each over all tables."""
    fine = []

    def one(wire, own):
        for _ in range(rounds):
            number = own.randrange(2600)
            fine.append(ask(wire, f"select k from bulk.t{own.randrange(tables)} where id = {number + 1}") == [[number + 1]])

    wires = [come(server) for _ in range(count)]
    threads = [threading.Thread(target=one, args=(wire, random.Random(rng.random()))) for wire in wires]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return all(fine) and len(fine) == count * rounds


class Phases:
    """Runs phases on a server and looks at what it takes in each."""

    def __init__(self, server, memory):
        self.memory, self.limit, self.pid = memory, int(memory[:-2]) * UNITS[memory[-2:]], server.process.pid
        self.sampler = Sampler(self.pid)
        self.sampler.start()

    def run(self, name, work, tolerance=TOLERANCE):
        self.sampler.most = 0
        began = time.monotonic()
        fine = work()
        share = self.sampler.most / self.limit
        tally.check(f"{self.memory} {name}: answers", fine)
        tally.check(f"{self.memory} {name}: memory", share <= tolerance, f"{share:.2f} of the setting")
        file = status(self.pid, "RssFile") / (1 << 20)
        print(f"{self.memory} {name}: {share:.2f} of the setting, and {file:.0f} MB of the program's file, in {time.monotonic() - began:.1f} s", flush=True)


def start(memory):
    return Server("--memory", memory, "--log-segment", "16mb", "--checkpoint-distance", "64mb", mysql=True)


def play(memory):
    with start(memory) as server:
        phases, keys = Phases(server, memory), 1

        def filled():
            nonlocal keys
            # Frames take less than the whole, so that this is more than fits.
            fine, keys = fill(server.port, max(phases.limit, 128 << 20))
            return fine

        phases.run("filled beyond memory", filled)
        phases.run("pipelines of 128 connections", lambda: pipelines(server.port, 128, keys, 6))
        phases.run("values of a megabyte", lambda: megabytes(server.port, 8, 6))
        phases.run("replies that nobody reads", lambda: deaf(server.port, keys))
        phases.run("2000 connections", lambda: crowd(server.port, 2000))
        phases.run("INSERTs of 2600 rows from 4 connections", lambda: inserts(server, 4, 12))
        phases.run("SELECTs of 64 connections", lambda: selects(server, 64, 4, 20))


FULL = "beyond what the setting 'memory' leaves"


def refusal(wire, sql):
    """The error of a statement, number and text; None if there was none."""
    try:
        with wire.cursor() as cursor:
            cursor.execute(sql)
        return None
    except pymysql.Error as error:
        return error.args


def is_refused(error):
    return error is not None and error[0] == 1041 and FULL in error[1]


def until_refused(wire, statements):
    """Runs statements until one of them is refused for want of memory. True: one was, and every one before it was right."""
    for sql in statements:
        error = refusal(wire, sql)
        if error is not None:
            return is_refused(error)
    return False


def variables(server):
    wire = come(server)
    fine = until_refused(wire, (f"set @v{number} = repeat('a', 1048576)" for number in range(200)))
    # The session goes on, and lets go of what it has.
    fine &= ask(wire, "select length(@v0), @v199") == [[1048576, None]]
    for number in range(200):
        ask(wire, f"set @v{number} = null")
    fine &= refusal(wire, "set @v0 = repeat('a', 4000000)") is None
    fine &= until_refused(wire, (f"set @x{number} = repeat('b', 2000)" for number in range(50_000)))
    return fine


def computed(server):
    wire = come(server)
    fine = is_refused(refusal(wire, "select " + ", ".join(["repeat('a', 60000000)"] * 20)))
    fine &= is_refused(refusal(wire, "select length(concat(" + ", ".join(["repeat('a', 5000000)"] * 10) + "))"))
    fine &= is_refused(refusal(wire, "select json_length(concat('[', repeat('1,', 3000000), '1]'))"))
    fine &= is_refused(refusal(wire, "select length(regexp_replace(repeat('a', 500000), 'a', repeat('b', 100)))"))
    fine &= ask(wire, "select length(repeat('a', 1000000))") == [[1_000_000]]
    return fine


def compressed(server):
    """A connection that compresses."""
    wire = socket.create_connection(("127.0.0.1", server.mysql_port), 60)
    wire.recv(4096)
    capabilities = 0x1 | 0x20 | 0x200 | 0x8000 | 0x80000
    answer = struct.pack("<IIB23x", capabilities, 1 << 24, 45) + b"root\0" + b"\0" + b"caching_sha2_password\0"
    wire.sendall(struct.pack("<I", len(answer) | 1 << 24) + answer)
    reply = wire.recv(4096)
    if reply[4] == 0xFE:
        wire.sendall(struct.pack("<I", (reply[3] + 1) << 24))
        reply = wire.recv(4096)
    assert reply[4] in (0, 1), reply
    return wire


def packets(server):
    """Packets of 16 KB that say that they hold 16 MB, and do; none of them is whole, so the server has to keep what it opens, or refuse."""
    held = struct.pack("<I", 0xFFFFF0) + b"\x03select 1 -- " + b"a" * (0xFFFFFF - 18)
    frame = zlib.compress(held)
    frame = struct.pack("<I", len(frame))[:3] + b"\0" + struct.pack("<I", len(held))[:3] + frame
    wires = [compressed(server) for _ in range(20)]
    refused = 0
    for wire in wires:
        wire.sendall(frame)
    other = come(server)
    fine = all(ask(other, f"select {number}") == [[number]] for number in range(50))
    for wire in wires:
        wire.settimeout(2 if refused == 0 else 0.01)
        try:
            reply = wire.recv(4096)
            # Behind the head of a frame: compressed, if it says how long it was before.
            reply = zlib.decompress(reply[7:]) if any(reply[4:7]) else reply
            refused += FULL.encode() in reply
        except TimeoutError:
            pass
        wire.close()
    return fine and refused > 0


def long_replies(server):
    """Values that are longer than memory, whole, in parts and several at once."""
    wire = Wire(server.port, 60)
    size = 256 << 20
    fine = wire.call("SETRANGE", "long", size - 3, "end") == b":%d\r\n" % size
    fine &= wire.call("SETRANGE", "long", 0, "beginning") == b":%d\r\n" % size

    def value(count):
        """One bulk string: whether it is framed well, how it begins and how it ends."""
        head = b"$%d\r\n" % count
        good = wire.exactly(len(head)) == head
        begins, left, ends = wire.exactly(9), count - 9, b""
        while left:
            piece = wire.exactly(min(left, 1 << 20))
            left -= len(piece)
            ends = (ends + piece)[-3:]
        return wire.exactly(2) == b"\r\n" and good, begins, ends

    wire.send(request("GETRANGE", "long", 0, -1) + request("PING"))
    fine &= value(size) == (True, b"beginning", b"end") and wire.reply() == b"+PONG\r\n"
    wire.send(request("GET", "long") + request("PING"))
    # Others are served, and may change it, while it is on its way.
    other = Wire(server.port, 60)
    fine &= other.call("SETRANGE", "long", 0, "BEGINNING") == b":%d\r\n" % size
    fine &= value(size)[0] and wire.reply() == b"+PONG\r\n"
    wire.call("SETRANGE", "half", 40_000_000 - 3, "end")
    wire.send(request("MULTI") + request("MGET", *["half"] * 3) + request("GET", "half") + request("EXEC"))
    fine &= [wire.reply() for _ in range(3)] == [b"+OK\r\n", b"+QUEUED\r\n", b"+QUEUED\r\n"]
    fine &= wire.exactly(8) == b"*2\r\n*3\r\n"
    fine &= all(value(40_000_000)[2] == b"end" for _ in range(4))
    fine &= wire.call("BITOP", "NOT", "other", "long").startswith(b"-OOM ")
    return fine and wire.call("PING") == b"+PONG\r\n"


def queued(server):
    """Commands that wait for EXEC."""
    wire = Wire(server.port, 60)
    wire.call("MULTI")
    replies = [wire.call("SET", f"q{number}", b"a" * 1_000_000) for number in range(100)]
    refused = [reply for reply in replies if reply.startswith(b"-OOM ") and FULL.encode() in reply]
    fine = len(refused) > 0 and replies[0] == b"+QUEUED\r\n"
    return fine and wire.call("EXEC").startswith(b"-EXECABORT") and wire.call("EXISTS", "q0") == b":0\r\n"


def long_texts(server):
    """Sorts, groups and DISTINCT over texts of 0.2 to 1 MB."""
    wire = come(server)
    ask(wire, "create database texts")
    ask(wire, "use texts")
    ask(wire, "create table n (i int primary key)")
    ask(wire, "insert into n values " + ", ".join(f"({number})" for number in range(120)))
    fine = ask(wire, "select count(distinct concat(i % 100, repeat('a', 200000))) from n") == [[100]]
    fine &= ask(wire, "select count(distinct concat(i, repeat('a', 1000000))) from n") == [[120]]
    fine &= ask(wire, "select count(*) from (select distinct concat(i % 60, repeat('a', 500000)) from n) t") == [[60]]
    ordered = "select left(x, 3) from (select concat(1000 - i, repeat('a', 400000)) x from n) t order by x limit 2"
    fine &= ask(wire, ordered) == [["100"], ["881"]]
    summed = "select count(*), max(length(x)) from (select concat(i, repeat('a', 300000)) x from n order by x limit 100000) t"
    fine &= ask(wire, summed) == [[120, 300_003]]
    ask(wire, "create table t (i int primary key, x longtext)")
    ask(wire, "insert into t select i, concat(1000 - i, repeat('b', 400000)) from n")
    fine &= ask(wire, "select count(distinct x) from t") == [[120]]
    fine &= ask(wire, "select i from t order by x limit 2") == [[0], [119]]
    fine &= ask(wire, "select count(*), sum(length(x)) from (select x from t order by x limit 100000) u") == [[120, 400_004 + 119 * 400_003]]
    ask(wire, "set group_concat_max_len = 1000000000")
    fine &= refusal(wire, "select length(group_concat(x, x)) from t")[0] in (1037, 1041)
    fine &= refusal(wire, "select length(json_arrayagg(x)) from t")[0] in (1037, 1041)
    return fine


def prepared(server):
    wire = come(server)
    ask(wire, "set @text = concat('select ', repeat('1', 20), ' /*', repeat('a', 500000), '*/')")
    return until_refused(wire, (f"prepare s{number} from @text" for number in range(300)))


def definitions(server):
    wire = come(server)
    ask(wire, "create database definitions")
    ask(wire, "use definitions")
    columns = ", ".join(f"c{number} int comment '{'x' * 1000}'" for number in range(40))
    fine = until_refused(wire, (f"create temporary table t{number} ({columns})" for number in range(2000)))
    return fine and ask(wire, "drop temporary table t0") == [] and ask(wire, "select 1") == [[1]]


def greedy(memory):
    """Single logins that hold, compute or ask for as much as they can. Each is refused with an error that names the setting, or served within it."""
    with start(memory) as server:
        phases = Phases(server, memory)
        # Pages are in all the frames that there are.
        phases.run("filled", lambda: fill(server.port, phases.limit)[0])
        for name, work, *tolerance in (
            ("user variables", variables),
            ("values that are computed", computed),
            ("compressed packets", packets, TOLERANCE_LARGE),
            ("long replies", long_replies, TOLERANCE_LARGE),
            ("commands that wait for EXEC", queued),
            ("sorts and DISTINCT of long texts", long_texts),
            ("prepared statements", prepared),
            ("temporary tables", definitions),
        ):
            phases.run(name, lambda work=work: work(server), *tolerance)


socket.setdefaulttimeout(60)
for memory in arguments.memory:
    play(memory)
if arguments.greedy:
    greedy(arguments.greedy)
tally.close()
