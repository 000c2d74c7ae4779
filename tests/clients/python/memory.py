"""The setting `memory` is obeyed: what the process takes stays within a tenth of it, whatever clients do.

What is compared is RssAnon of /proc/PID/status, sampled all the time: the memory that the process has made for itself. Pages of the program's file (RssFile) are
left out: they are the kernel's to drop, and a build with debug information has many of them.
"""

import argparse
import random
import socket
import threading
import time

from beluga import Server, Tally, Wire, request
from sql import ask, come

parser = argparse.ArgumentParser()
parser.add_argument("--memory", nargs="+", default=["64mb", "256mb", "1gb"])
parser.add_argument("--seed", type=int, default=1)
arguments = parser.parse_args()
print(f"seed {arguments.seed}", flush=True)
rng = random.Random(arguments.seed)
tally = Tally()
UNITS = {"mb": 1 << 20, "gb": 1 << 30}
TOLERANCE = 1.10


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
    other = Wire(port, 10)
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

    def run(self, name, work):
        self.sampler.most = 0
        began = time.monotonic()
        fine = work()
        share = self.sampler.most / self.limit
        tally.check(f"{self.memory} {name}: answers", fine)
        tally.check(f"{self.memory} {name}: memory", share <= TOLERANCE, f"{share:.2f} of the setting")
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


socket.setdefaulttimeout(60)
for memory in arguments.memory:
    play(memory)
tally.close()
