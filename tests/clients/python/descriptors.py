"""Few file descriptors: clients that are served go on, more are refused in their door's own words, one line in the log says why, and no processor spins.

Twice: with a limit that the server sees at its start, which lowers `max_connections`, and with one that is lowered below what it has while it runs, so that accept itself fails.
"""

import contextlib
import os
import resource
import socket
import time

from beluga import Server, Tally, Wire

tally = Tally()
LIMIT = 100
TRIES = 150
FLOODS = 30


class Limited(Server):
    """A server whose hard limit on file descriptors is `LIMIT`, and whose soft one is lower still."""

    def command(self):
        return ["prlimit", f"--nofile={LIMIT // 2}:{LIMIT}", *super().command()]


def connect(port):
    """The first words of the door at `port`, and the connection."""
    wire = socket.create_connection(("127.0.0.1", port), 10)
    return wire


def flood(server):
    """Connects to the Redis and the MySQL door until both have refused. Returns the refusals' words."""
    held, refusals = [], {"redis": b"", "mysql": b""}
    for number in range(TRIES):
        door = "redis" if number % 2 else "mysql"
        wire = connect(server.port if door == "redis" else server.mysql_port)
        with contextlib.suppress(ConnectionError):
            if door == "redis":
                wire.sendall(b"PING\r\n")
            words = wire.recv(200)
            if b"Too many connections" in words or b"max number of clients" in words:
                refusals[door] = words
        held.append(wire)
        if all(refusals.values()):
            break
    return held, refusals


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def play(name, server, lower):
    server.start()
    try:
        soft, _ = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        served = [Wire(server.port, 10) for _ in range(5)]
        tally.equal(f"{name}: served at first", [wire.call("PING") for wire in served], [b"+PONG\r\n"] * 5)
        if lower:
            open_now = max(map(int, os.listdir(f"/proc/{server.process.pid}/fd")))
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (open_now + 8, open_now + 8))
        else:
            tally.equal(f"{name}: the soft limit is raised", soft, LIMIT)
        held, refusals = flood(server)
        tally.check(f"{name}: the Redis door refuses in its words", refusals["redis"].startswith(b"-ERR max number of clients reached"), f"{refusals}")
        tally.check(f"{name}: the MySQL door refuses in its words", b"Too many connections" in refusals["mysql"], f"{refusals}")
        # Refusals at two doors at once: an accept of one must not take what the other needs to refuse.
        for number in range(FLOODS if lower else 0):
            for wire in held:
                wire.close()
            held, refusals = flood(server)
            tally.check(f"{name}: flood {number} is refused at both doors", all(refusals.values()), f"{refusals}")
        for wire in served:
            began = time.monotonic()
            tally.equal(f"{name}: those that are served go on", wire.call("PING"), b"+PONG\r\n")
            tally.check(f"{name}: and at once", time.monotonic() - began < 3)
        before, began = processor_seconds(server.process.pid), time.monotonic()
        # Connections that wait in the backlog all the while: a bounded time is the measure here, of the processor's.
        waiting = [connect(server.port) for _ in range(3)]
        while time.monotonic() - began < 2:
            served[0].call("PING")
            time.sleep(0.05)
        used = processor_seconds(server.process.pid) - before
        tally.check(f"{name}: nobody spins", used < 0.7, f"{used} s of a processor in 2 s")
        lines = [line for line in server.output().splitlines() if "descriptors" in line]
        tally.equal(f"{name}: one line in the log", len(lines), 1)
        for wire in held + waiting:
            wire.close()
        until = time.monotonic() + 10
        reply = b""
        while time.monotonic() < until and reply != b"+PONG\r\n":
            with contextlib.suppress(OSError, EOFError):
                reply = Wire(server.port, 5).call("PING")
        tally.equal(f"{name}: others come in when some have left", reply, b"+PONG\r\n")
        for wire in served:
            wire.close()
        tally.equal(f"{name}: stops", server.terminate(), 0)
    finally:
        if tally.failed:
            print(server.output())
        server.close()


play("few from the start", Limited("--log-level", "warn", mysql=True), lower=False)
play("fewer while it runs", Server("--log-level", "warn", mysql=True), lower=True)
tally.close()
