"""A disk that fills up: writes fail with a clear error, reads go on, nothing acknowledged is lost, also not over a `kill -9` while it is full;
when there is room again writes go on by themselves.

The disk is `beluga.SmallDisk`; where it cannot be mounted the suite says that it was skipped.
"""

import argparse
import contextlib
import os
import random
import shutil
import subprocess
import time

from beluga import SmallDisk, Server, Tally, Wire, request

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=None)
parser.add_argument("--rounds", type=int, default=4)
arguments = parser.parse_args()
seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
print(f"seed {seed}", flush=True)
rng = random.Random(seed)
tally = Tally()
MEGABYTE = 1 << 20
BALLAST = 24 * MEGABYTE


def put_ballast(mount):
    path = os.path.join(mount, "ballast")
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, BALLAST)
    return path


class Oracle:
    """The expected content of every key. A value is computed from its key and a number, so only the number is kept."""

    def __init__(self, port):
        self.port, self.known, self.unsure = port, {}, {}
        self.next = 0

    @staticmethod
    def value(number):
        size = [100, 1_000, 4_000, 16_384, 120_000][number % 5]
        return (b"%d:" % number).ljust(size, b"v")

    def write(self, wire, count, keys):
        """A pipeline of SETs. Returns the error replies."""
        batch = []
        for _ in range(count):
            key = f"k{rng.randrange(keys)}"
            batch.append((key, self.next))
            self.next += 1
        wire.send(b"".join(request("SET", key, self.value(number)) for key, number in batch))
        errors = []
        for key, number in batch:
            reply = wire.reply()
            if reply == b"+OK\r\n":
                self.known[key] = number
            else:
                errors.append(reply)
        return errors

    def lost(self, wire, sample=None):
        """Keys that do not hold what was acknowledged last."""
        keys = list(self.known)
        if sample and len(keys) > sample:
            keys = rng.sample(keys, sample)
        wrong = []
        for at in range(0, len(keys), 50):
            part = keys[at:at + 50]
            wire.send(b"".join(request("GET", key) for key in part))
            for key in part:
                reply = wire.reply()
                value = self.value(self.known[key])
                if reply != b"$%d\r\n%s\r\n" % (len(value), value):
                    wrong.append((key, self.known[key], reply[:60]))
        return wrong


def fill(oracle, wire, limit):
    """Writes until the disk is full: to so many keys that all of them never fit. Returns the first errors."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        errors = oracle.write(wire, 16, 12_000)
        if errors:
            return errors
    return []


def resumes(oracle, wire, limit=30):
    """Seconds until a write succeeds again, None if none does."""
    begin = time.monotonic()
    while time.monotonic() - begin < limit:
        if wire.call("SET", "resumed", "1") == b"+OK\r\n":
            return time.monotonic() - begin
        time.sleep(0.1)
    return None


def play_without_a_byte(disk):
    """After `kill -9` others take every byte that was left: a start and a check need none, and writes come back with the room."""
    server = Server("--checkpoint-distance", "16mb", "--log-segment", "4mb", folder=os.path.join(disk.path, "data"), mysql=True)
    filled = None
    try:
        server.start()
        oracle, wire = Oracle(server.port), Wire(server.port, 60)
        for _ in range(40):
            oracle.write(wire, 16, 300)
        server.kill()
        # The folder is made by the start, and gone in the worst case.
        shutil.rmtree(os.path.join(server.folder, "spill"), ignore_errors=True)
        filled = disk.fill()
        check = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True, timeout=120)
        tally.equal("no byte left: check", (check.returncode, check.stderr[-300:]), (0, ""))
        server.start()
        wire = Wire(server.port, 60)
        tally.equal("no byte left: nothing lost", oracle.lost(wire)[:3], [])
        os.remove(filled)
        tally.check("no byte left: writes resume", resumes(oracle, wire) is not None, server.output())
        tally.equal("no byte left: nothing lost afterwards", oracle.lost(wire)[:3], [])
        tally.equal("no byte left: stops", server.terminate(), 0)
    except RuntimeError as error:
        tally.check("no byte left: starts", False, str(error))
    finally:
        server.close()
        shutil.rmtree(server.folder, ignore_errors=True)
        if filled:
            with contextlib.suppress(FileNotFoundError):
                os.remove(filled)


def play(mount, round_number):
    name = f"round {round_number}:"
    ballast = put_ballast(mount)
    server = Server("--checkpoint-distance", "16mb", "--log-segment", "4mb", folder=os.path.join(mount, f"data{round_number}"))
    try:
        server.start()
        wire = Wire(server.port, 60)
        oracle = Oracle(server.port)
        errors = fill(oracle, wire, 90)
        acknowledged = len(oracle.known)
        tally.check(f"{name} the disk fills", errors and acknowledged > 100, f"{acknowledged} keys, {errors[:1]}")
        tally.check(f"{name} the error is clear", errors and all(b"disk full" in error for error in errors), f"{errors[:1]}")
        # Sizes differ, so that some may still fit: what counts is that errors say why and acknowledgements are true.
        for _ in range(20):
            errors = oracle.write(wire, 8, 12_000)
            tally.check(f"{name} only this error", all(b"disk full" in error for error in errors), f"{errors[:1]}")
        tally.equal(f"{name} reads go on", oracle.lost(wire)[:3], [])
        tally.equal(f"{name} ping", wire.call("PING"), b"+PONG\r\n")
        wire.send(b"".join(request(*command) for command in (("MULTI",), ("SET", "one", Oracle.value(4)), ("SET", "two", Oracle.value(9)), ("EXEC",))))
        replies = [wire.reply() for _ in range(4)]
        pair = [wire.call("EXISTS", "one"), wire.call("EXISTS", "two")]
        tally.check(f"{name} EXEC is all or nothing", pair[0] == pair[1] and (pair[0] == b":1\r\n") == replies[3].startswith(b"*2\r\n+OK"), f"{replies}, {pair}")

        if round_number % 2:
            server.kill()
        else:
            began = time.monotonic()
            tally.equal(f"{name} SIGTERM while full", server.terminate(), 0)
            tally.check(f"{name} SIGTERM while full takes its time", time.monotonic() - began < 30)
        try:
            server.start()
        except RuntimeError as error:
            tally.check(f"{name} starts while full", False, str(error))
            os.remove(ballast)
            server.start()
        wire = Wire(server.port, 60)
        tally.equal(f"{name} nothing lost over a restart while full", oracle.lost(wire)[:3], [])

        with contextlib.suppress(FileNotFoundError):
            os.remove(ballast)
        took = resumes(oracle, wire)
        tally.check(f"{name} writes resume by themselves", took is not None, server.output())
        errors = [error for _ in range(40) for error in oracle.write(wire, 4, 12_000)]
        tally.check(f"{name} and go on", not errors, f"{errors[:1]}")
        tally.equal(f"{name} nothing lost when resumed", oracle.lost(wire)[:3], [])

        # Full once more, without a restart in between.
        errors = fill(oracle, wire, 90)
        tally.check(f"{name} fills again", bool(errors), f"{len(oracle.known)} keys")
        tally.equal(f"{name} reads go on again", oracle.lost(wire, 500)[:3], [])
        server.kill()
        server.start()
        wire = Wire(server.port, 60)
        tally.equal(f"{name} nothing lost at the end", oracle.lost(wire)[:3], [])
        tally.equal(f"{name} stops", server.terminate(), 0)
        check = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True, timeout=120)
        tally.equal(f"{name} check", (check.returncode, check.stderr[-300:] if check.returncode else ""), (0, ""))
        print(f"{name} {acknowledged} keys when full, resumed after {took or -1:.2f} s", flush=True)
    finally:
        if tally.failed:
            print(server.output())
        server.close()
        shutil.rmtree(server.folder, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.remove(ballast)


with SmallDisk(128 * MEGABYTE) as disk:
    if disk.path is None:
        tally.skip("no leave to mount a file system here")
    else:
        play_without_a_byte(disk)
        for round_number in range(1, arguments.rounds + 1):
            play(disk.path, round_number)
tally.close()
