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


def play(memory):
    limit = int(memory[:-2]) * UNITS[memory[-2:]]
    with Server("--memory", memory, "--log-segment", "16mb", "--checkpoint-distance", "64mb") as server:
        pid = server.process.pid
        sampler = Sampler(pid)
        sampler.start()
        keys = 1

        def phase(name, work):
            sampler.most = 0
            began = time.monotonic()
            fine = work()
            share = sampler.most / limit
            tally.check(f"{memory} {name}: answers", fine)
            tally.check(f"{memory} {name}: memory", share <= TOLERANCE, f"{share:.2f} of the setting")
            file = status(pid, "RssFile") / (1 << 20)
            print(f"{memory} {name}: {share:.2f} of the setting, and {file:.0f} MB of the program's file, in {time.monotonic() - began:.1f} s", flush=True)

        def filled():
            nonlocal keys
            # Frames take less than the whole, so that this is more than fits.
            fine, keys = fill(server.port, max(limit, 128 << 20))
            return fine

        phase("filled beyond memory", filled)
        phase("pipelines of 128 connections", lambda: pipelines(server.port, 128, keys, 6))
        phase("values of a megabyte", lambda: megabytes(server.port, 8, 6))
        phase("replies that nobody reads", lambda: deaf(server.port, keys))
        phase("2000 connections", lambda: crowd(server.port, 2000))
        sampler.stopped = True


socket.setdefaulttimeout(60)
for memory in arguments.memory:
    play(memory)
tally.close()
