"""Values of some hundred megabytes through the MySQL door: as a literal, as a parameter, in pieces, and back. Packets are cut and read here, so that this process holds a block of them and no more.

What is watched beside the bytes: how much memory the server takes beyond `memory` while it does that, and that it refuses with an error what it has no room for.
"""

import hashlib
import os
import struct
import threading
import time

import pymysql

from beluga import Server
from sql import ask

FRAME = 0xFFFFFF
BLOCK = 1 << 20
ESCAPES = {0: b"\\0", 10: b"\\n", 13: b"\\r", 26: b"\\Z", 34: b'\\"', 39: b"\\'", 92: b"\\\\"}


class Peak(threading.Thread):
    """The most memory the process had since `begin`."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.path, self.most = f"/proc/{server.process.pid}/status", 0

    def now(self):
        with open(self.path) as lines:
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))

    def run(self):
        while True:
            try:
                self.most = max(self.most, self.now())
            except (OSError, ValueError, StopIteration):
                return
            time.sleep(0.01)


class Wire:
    """A connection whose packets are written and read in pieces."""

    def __init__(self, server):
        self.connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", database="longs", connect_timeout=60, ssl_disabled=True, autocommit=True)
        self.socket, self.file = self.connection._sock, self.connection._rfile

    def send(self, pieces):
        """A command whose payload is these pieces."""
        sequence, gathered = 0, bytearray()
        for piece in pieces:
            gathered += piece
            while len(gathered) >= FRAME:
                self.socket.sendall(struct.pack("<I", FRAME | sequence % 256 << 24))
                self.socket.sendall(memoryview(gathered)[:FRAME])
                del gathered[:FRAME]
                sequence += 1
        self.socket.sendall(struct.pack("<I", len(gathered) | sequence % 256 << 24) + gathered)

    def packet(self):
        """The frames of one packet, as they come."""
        while True:
            head = struct.unpack("<I", self.file.read(4))[0]
            left = head & 0xFFFFFF
            last = left < FRAME
            while left:
                piece = self.file.read(min(left, BLOCK))
                left -= len(piece)
                yield piece
            if last:
                return

    def reply(self):
        """0 for OK, or the number of the error."""
        answer = b"".join(self.packet())
        return 0 if answer[0] == 0 else struct.unpack("<H", answer[1:3])[0] if answer[0] == 0xFF else answer

    def prepare(self, text):
        self.send([b"\x16" + text.encode()])
        answer = b"".join(self.packet())
        columns, parameters = struct.unpack("<HH", answer[5:9])
        for count in (parameters, columns):
            for _ in range(count + (count > 0)):
                b"".join(self.packet())
        return struct.unpack("<I", answer[1:5])[0]

    def value(self, command, binary=False):
        """Length and digest of the one value that it answers; or the number of the error."""
        self.send([command])
        first = b"".join(self.packet())
        if first[0] == 0xFF:
            return struct.unpack("<H", first[1:3])[0]
        for _ in range(2):
            b"".join(self.packet())
        digest, length, head = hashlib.sha256(), 0, bytearray()
        wanted = (2 if binary else 0) + 9
        for piece in self.packet():
            if len(head) < wanted:
                head += piece
                if len(head) < wanted:
                    continue
                start = wanted - 9
                if head[start] == 0xFF or head[0] == 0xFF:
                    return struct.unpack("<H", head[1:3])[0]
                size = {0xFC: 3, 0xFD: 4, 0xFE: 9}[head[start]]
                piece = head[start + size:]
            digest.update(piece)
            length += len(piece)
        b"".join(self.packet())
        return length, digest.hexdigest()


class Long:
    """A value that is never whole: a block, again and again."""

    def __init__(self, megabytes):
        self.block, self.count = os.urandom(BLOCK), megabytes
        self.length = BLOCK * megabytes
        digest = hashlib.sha256()
        for _ in range(megabytes):
            digest.update(self.block)
        self.known = (self.length, digest.hexdigest())
        self.escaped = b"".join(ESCAPES.get(byte, bytes((byte,))) for byte in self.block)

    def plain(self):
        return (self.block for _ in range(self.count))

    def literal(self):
        return (self.escaped for _ in range(self.count))


def chain(*parts):
    for part in parts:
        if isinstance(part, bytes):
            yield part
        else:
            yield from part


def play(tally, megabytes, memory):
    """`memory`: the setting, in megabytes."""
    value = Long(megabytes)
    with Server("--memory", f"{memory}mb", mysql=True) as server:
        peak = Peak(server)
        peak.start()
        first = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", ssl_disabled=True, autocommit=True)
        ask(first, "create database longs")
        ask(first, "create table longs.v (id int primary key, v longblob, note varchar(20))")
        ask(first, "set global max_allowed_packet = 1073741824")
        wire = Wire(server)

        def phase(name, most, work):
            # Freed memory of the phase before goes back to the system some milliseconds later.
            deadline = time.monotonic() + 10
            while peak.now() - (memory << 20) > 0.9 * value.length and time.monotonic() < deadline:
                time.sleep(0.02)
            peak.most, began = 0, time.monotonic()
            tally.equal(name, *work())
            share = (peak.most - (memory << 20)) / value.length
            tally.check(f"{name}: memory", share <= most, f"{share:.2f} times the value beyond `memory`")
            print(f"{name}: {share:.2f} times the value beyond `memory`, {time.monotonic() - began:.1f} s", flush=True)

        def literal():
            wire.send(chain(b"\x03insert into v values (1, _binary'", value.literal(), b"', 'literal')"))
            return wire.reply(), 0

        def inline():
            statement = wire.prepare("insert into v values (2, ?, 'inline')")
            head = b"\x17" + struct.pack("<IBI", statement, 0, 1) + b"\x00\x01\xfc\x00" + b"\xfe" + struct.pack("<Q", value.length)
            wire.send(chain(head, value.plain()))
            return wire.reply(), 0

        def pieces():
            statement = wire.prepare("insert into v values (3, ?, 'pieces')")
            for piece in value.plain():
                wire.send([b"\x18" + struct.pack("<IH", statement, 0), piece])
            wire.send([b"\x17" + struct.pack("<IBI", statement, 0, 1) + b"\x00\x01\xfc\x00"])
            return wire.reply(), 0

        def update():
            wire.send(chain(b"\x03update v set v = '", value.literal(), b"' where id = 1"))
            return wire.reply(), 0

        # The packet, which the value is a part of, and the row that is made of it.
        phase("a literal", 2.3, literal)
        phase("a parameter", 2.3, inline)
        phase("a parameter in pieces", 2.3, pieces)
        phase("text", 1.5, lambda: (wire.value(b"\x03select v from v where id = 1"), value.known))
        statement = wire.prepare("select v from v where id = 2")
        execute = b"\x17" + struct.pack("<IBI", statement, 0, 1)
        phase("binary", 1.5, lambda: (wire.value(execute, binary=True), value.known))
        # The rows of one leaf come one by one.
        phase("a walk", 1.6, lambda: (wire.value(b"\x03select v from v where note = 'pieces'"), value.known))
        phase("an update", 3.5, update)
        phase("after it", 1.5, lambda: (wire.value(b"\x03select v from v where id = 1"), value.known))
        tally.equal("as SQL sees it", [list(row) for row in ask(first, "select id, length(v) from longs.v order by id")], [[number, value.length] for number in (1, 2, 3)])
        phase("nothing is left", 0.3, lambda: (time.sleep(1), None))
    refuse(tally, value, memory)


def refuse(tally, value, memory):
    """There is room for less than that."""
    # `memory` has to hold the value that is computed.
    with Server("--memory", f"{max(memory, 2048)}mb", "--mysql-long-values", "64mb", mysql=True) as server:
        first = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", ssl_disabled=True, autocommit=True)
        ask(first, "create database longs")
        ask(first, "create table longs.v (id int primary key, v longblob)")
        ask(first, "set global max_allowed_packet = 1073741824")
        wire = Wire(server)
        wire.send(chain(b"\x03insert into v values (1, _binary'", value.literal(), b"')"))
        tally.equal("no room", wire.reply(), 1041)
        wire.send([b"\x03insert into v values (1, repeat('x', 80000000))"])
        tally.equal("the connection goes on", wire.reply(), 0)
        tally.equal("no room on the way out", wire.value(b"\x03select v from v"), 1041)
        wire.send([b"\x0e"])
        tally.equal("it still goes on", wire.reply(), 0)
