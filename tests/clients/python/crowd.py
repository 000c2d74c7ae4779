"""Crowds of sessions on bare sockets: thousands of them cost the client little. Shared by the suites of waiting statements."""

import argparse
import contextlib
import resource
import selectors
import socket
import struct
import time

from beluga import redis_ping, status


def arguments(sessions):
    """How many sessions, and with which memory; as many files may be open."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=sessions)
    parser.add_argument("--memory", default="128mb")
    found = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = hard if hard != resource.RLIM_INFINITY else 1 << 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return min(found.sessions, limit - 300), found.memory


class Crowd:
    """Sessions of one door. A kind of crowd knows how to `enter`, to `ask` and to read an `answer`."""

    def __init__(self, port, count, first=()):
        self.wires = []
        for _ in range(count):
            wire = socket.create_connection(("127.0.0.1", port), 60)
            wire.settimeout(60)
            self.enter(wire)
            for text in first:
                self.ask(wire, text)
                assert self.is_good(self.answer(wire)), text
            self.wires.append(wire)

    @staticmethod
    def exactly(wire, count):
        got = b""
        while len(got) < count:
            piece = wire.recv(count - len(got))
            if not piece:
                raise ConnectionError("the server has closed the connection")
            got += piece
        return got

    def ask_all(self, text):
        for wire in self.wires:
            self.ask(wire, text)

    def answered(self):
        """Those that have an answer, or were closed."""
        with selectors.DefaultSelector() as selector:
            for wire in self.wires:
                selector.register(wire, selectors.EVENT_READ)
            return [key.fileobj for key, _ in selector.select(0)]

    def good(self):
        """How many have a good answer, now or later."""
        return sum(self.is_good(self.answer(wire)) for wire in self.wires)

    def leave(self, count):
        for wire in self.wires[:count]:
            wire.close()
        del self.wires[:count]

    def close(self):
        self.leave(len(self.wires))


class MySQLCrowd(Crowd):
    COM_QUERY = 3

    def __init__(self, server, count, first=()):
        super().__init__(server.mysql_port, count, first)

    def enter(self, wire):
        self.answer(wire)
        self.send(wire, 1, struct.pack("<IIB23x", 0x0008A205, 1 << 24, 255) + b"root\0" + b"\0" + b"mysql_native_password\0")
        answer = self.answer(wire)
        if answer[0] == 0xFE:
            # Another method of proving a password, which there is not.
            self.send(wire, 3, b"")
            answer = self.answer(wire)
        assert answer[0] == 0, answer

    @staticmethod
    def send(wire, sequence, payload):
        wire.sendall(struct.pack("<I", len(payload) | sequence << 24) + payload)

    def ask(self, wire, text):
        self.send(wire, 0, bytes([self.COM_QUERY]) + text.encode())

    def answer(self, wire):
        """The first packet of an answer."""
        return self.exactly(wire, struct.unpack("<I", self.exactly(wire, 4))[0] & 0xFFFFFF)

    @staticmethod
    def is_good(answer):
        return answer[0] != 0xFF


class PostgresCrowd(Crowd):
    def __init__(self, server, count, first=()):
        super().__init__(server.postgres_port, count, first)

    def enter(self, wire):
        body = struct.pack(">I", 196608) + b"user\0postgres\0database\0postgres\0\0"
        wire.sendall(struct.pack(">I", len(body) + 4) + body)
        self.answer(wire)

    def ask(self, wire, text):
        body = text.encode() + b"\0"
        wire.sendall(b"Q" + struct.pack(">I", len(body) + 4) + body)

    def answer(self, wire):
        """The letters of the messages up to ReadyForQuery."""
        letters = ""
        while not letters.endswith("Z"):
            head = self.exactly(wire, 5)
            letters += chr(head[0])
            self.exactly(wire, struct.unpack(">I", head[1:])[0] - 4)
        return letters

    @staticmethod
    def is_good(answer):
        return "E" not in answer


def doors_answer(tally, server, what, select_one):
    """`select_one` opens a session of the door and gives the answer of SELECT 1."""
    slowest = 0
    for _ in range(20):
        fine, took = redis_ping(server)
        slowest = max(slowest, took if fine else 60)
        begun = time.monotonic()
        assert select_one() == 1
        slowest = max(slowest, time.monotonic() - begun)
    tally.check(f"{what}: all doors answer", slowest < 5, f"{slowest:.2f} s")


def ends(tally, crowd, what, running, interrupts):
    """`interrupts` names acts that each end the wait of one session, which then has an answer. A client that leaves ends its own."""
    before = running()
    for nth, (name, act) in enumerate(interrupts):
        act()
        tally.until(f"{what}: {name}", lambda: len(crowd.answered()) == nth + 1, 1)
    for wire in crowd.answered():
        wire.close()
        crowd.wires.remove(wire)
    crowd.leave(20)
    left = before - len(interrupts) - 20
    tally.until(f"{what}: clients leave", lambda: running() == left, 2, detail=lambda: f"{running()} of {before}")


def keeps_within(tally, server, memory, what):
    share = status(server, "RssAnon") / 1024 / int(memory.removesuffix("mb"))
    tally.check(f"{what}: memory", share <= 1.1, f"{share:.2f} of the setting")


def stops(tally, server, what):
    begun = time.monotonic()
    code = server.terminate()
    took = time.monotonic() - begun
    tally.check(f"{what}: SIGTERM", code == 0 and took < 5, f"{code} after {took:.1f} s")


@contextlib.contextmanager
def measured(server, count, what):
    """Prints what each of `count` sessions takes that the block opens or lets wait."""
    before = status(server, "RssAnon")
    yield
    print(f"{what} takes {(status(server, 'RssAnon') - before) / count:.1f} KiB", flush=True)
