#!/usr/bin/env python3
"""Counts the server's instructions per request of the XRPC and MySQL doors, by valgrind's callgrind; or its system calls, by strace.

    PYTHONPATH=clients/python target/clients/venv/bin/python scripts/xrpc_instructions.py --server target/quick/beluga [--before OLD/beluga] [--only "point, plan"]
    ... --calls

Requests are those of `bench xrpc`: at every level as many are in flight, over up to 32 connections of XRPC, each in a session of its own; in MySQL's protocol each has a connection. One server
plays all rows of a side. Instructions are those outside the kernel, all threads together: the figure does not depend on what else runs on the machine, and it knows neither the kernel nor the caches.
System calls depend on it, since a thread that finds no work waits. Profiles stay in `--folder` for callgrind_annotate.
Needs valgrind or strace, and protobuf.
"""

import argparse
import collections
import glob
import hashlib
import os
import re
import selectors
import signal
import socket
import struct
import subprocess
import time

import pairs
from beluga_xrpc import plan, values, wire, xrpc_pb2 as pb

DATABASE, TABLE, ROWS, LETTERS = "counted", "item", 10_000, 120
CONNECTIONS_MAX = 32
FIRST_SID = 2
POINT = f"select c from {DATABASE}.{TABLE} where id = ?"
GET = plan.get(plan.Table(TABLE, DATABASE, "PRIMARY"), [plan.key(id=plan.parameter(0))]).columns("c").plan()


class Xrpc:
    """A connection with a session for each of its slots. `request` makes the type and the message of a request for a key; `whole` is sent once, `short` afterwards."""

    def __init__(self, server, request, slots):
        self.request, self.slots, self.has_begun = request, slots, [False] * slots
        self.stream = socket.create_connection(("127.0.0.1", server.xrpc))
        self.stream.sendall(wire.frame(0, pb.ASK_AUTHENTICATE_START, pb.AuthenticateStart(mech_name="MYSQL41")))
        with self.stream.makefile("rb", 0) as answers:
            wire.read_frame(answers)
            self.stream.sendall(wire.frame(0, pb.ASK_AUTHENTICATE_CONTINUE, pb.AuthenticateContinue(auth_data=b"\0root\0")))
            assert wire.read_frame(answers)[1] == pb.ANSWER_AUTHENTICATE_OK

    def ask(self, slot, key):
        kind, message = self.request(key, self.has_begun[slot])
        begin = b"" if self.has_begun[slot] else wire.frame(FIRST_SID + slot, pb.ASK_SESSION_NEW)
        self.has_begun[slot] = True
        return begin + wire.frame(FIRST_SID + slot, kind, message)

    def take(self, received):
        """Slots whose answers are whole, and the rest of the bytes."""
        done, at = [], 0
        while at + wire.HEAD.size <= len(received):
            sid, length, kind = wire.HEAD.unpack_from(received, at)
            if at + wire.HEAD.size - 1 + length > len(received):
                break
            at += wire.HEAD.size - 1 + length
            assert kind != pb.ANSWER_ERROR, wire.server_error(received[at + 1 - length : at])
            if kind in (pb.ANSWER_EXECUTE_OK, pb.ANSWER_CAPABILITIES):
                done.append(sid - FIRST_SID)
        return done, received[at:]


class Mysql:
    """A connection of MySQL's protocol, which has one slot. `text` ends in `?` where it takes a key; it is prepared first, or sent as text."""

    def __init__(self, server, text, is_prepared):
        self.text, self.takes_key = text.rstrip("?"), text.endswith("?")
        self.stream, self.slots = socket.create_connection(("127.0.0.1", server.port)), 1
        with self.stream.makefile("rb", 0) as answers:
            self.packet(answers)
            # PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH; no password.
            self.stream.sendall(self.packed(struct.pack("<IIB23x", 0x0008_8200, 1 << 24, 45) + b"root\0\0caching_sha2_password\0", 1))
            assert self.packet(answers)[0] == 0
            self.number = None
            if is_prepared:
                self.stream.sendall(self.packed(b"\x16" + text.encode()))
                _, self.number, columns, parameters = struct.unpack_from("<BIHH", self.packet(answers))
                for _ in range(sum(count + 1 for count in (columns, parameters) if count)):
                    self.packet(answers)

    @staticmethod
    def packed(body, sequence=0):
        return struct.pack("<I", len(body) | sequence << 24) + body

    @staticmethod
    def packet(answers):
        length = int.from_bytes(answers.read(4)[:3], "little")
        return answers.read(length)

    def ask(self, _, key):
        if self.number is None:
            return self.packed(b"\x03" + self.text.encode() + (str(key).encode() if self.takes_key else b""))
        bound = struct.pack("<BBBBq", 0, 1, 8, 0, key) if self.takes_key else b""
        return self.packed(b"\x17" + struct.pack("<IBI", self.number, 0, 1) + bound)

    def take(self, received):
        """As in `Xrpc`. An answer is whole after its second packet that is an EOF: one ends the columns, one the rows."""
        at, ends = 0, 0
        while at + 4 <= len(received):
            end = at + 4 + int.from_bytes(received[at : at + 3], "little")
            if end > len(received):
                break
            assert received[at + 4] != 0xFF, received[at + 5 :]
            ends += received[at + 4] == 0xFE and end - at < 13
            at = end
            if ends == 2:
                return [0], received[at:]
        return [], received


def echo(_, __):
    return pb.ASK_CAPABILITIES_GET, None


def statement(text, has_digest):
    """Requests of a text, with a digest or without."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest() if has_digest else None

    def request(key, is_known):
        arguments = [values.any_of(key)] if text.endswith("?") else []
        sent = None if has_digest and is_known else text.encode()
        return pb.ASK_EXECUTE_SQL, pb.StmtExecute(stmt=sent, args=arguments, token=10_240, reset_error=True, stmt_digest=digest)

    return request


def planned(key, is_known):
    tree = None if is_known else GET.tree
    return pb.ASK_EXECUTE_PLAN, pb.ExecPlan(plan=tree, plan_digest=GET.digest, parameters=[values.scalar(key)], token=10_240, reset_error=True)


def on_xrpc(request):
    def connect(server, level):
        count = min(level, CONNECTIONS_MAX)
        return [Xrpc(server, request, level // count + (at < level % count)) for at in range(count)]

    return connect


def on_mysql(text, is_prepared):
    return lambda server, level: [Mysql(server, text, is_prepared) for _ in range(level)]


# Name: makes the connections of a level.
LOADS = {
    "echo of a session": on_xrpc(echo),
    "select 1, XRPC, text": on_xrpc(statement("select 1", False)),
    "select 1, XRPC, digest": on_xrpc(statement("select 1", True)),
    "select 1, MySQL, text": on_mysql("select 1", False),
    "point, XRPC, text": on_xrpc(statement(POINT, False)),
    "point, XRPC, digest": on_xrpc(statement(POINT, True)),
    "point, XRPC, plan": on_xrpc(planned),
    "point, MySQL, text": on_mysql(POINT, False),
    "point, MySQL, prepared": on_mysql(POINT, True),
}


class Load:
    """Connections that keep a request in flight in each of their slots."""

    def __init__(self, connections):
        self.connections, self.key = connections, 0
        self.selector = selectors.DefaultSelector()
        for connection in connections:
            connection.stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(connection.stream, selectors.EVENT_READ, connection)

    def next(self, connection, slot):
        # Distant rows follow each other.
        self.key = (self.key + 7919) % ROWS
        return connection.ask(slot, self.key + 1)

    def play(self, requests):
        """Sends that many in all, and returns when all answers are there."""
        left = requests
        for connection in self.connections:
            slots = range(min(connection.slots, left))
            left -= len(slots)
            connection.rest = b""
            connection.stream.sendall(b"".join(self.next(connection, slot) for slot in slots))
        answered = 0
        while answered < requests:
            for ready, _ in self.selector.select(60) or self.fail():
                connection = ready.data
                done, connection.rest = connection.take(connection.rest + connection.stream.recv(1 << 18))
                answered += len(done)
                again = done[:left]
                left -= len(again)
                connection.stream.sendall(b"".join(self.next(connection, slot) for slot in again))

    @staticmethod
    def fail():
        raise TimeoutError("the server has stopped to answer")

    def close(self):
        for connection in self.connections:
            connection.stream.close()


def start(binary, options, under):
    server = pairs.Server(binary, options.folder, options.memory, under, has_xrpc=True)
    pairs.execute(server, f"create database {DATABASE}", f"create table {DATABASE}.{TABLE} (id bigint primary key, c char({LETTERS}) not null)")
    for first in range(1, ROWS, 500):
        rows = ", ".join(f"({number}, '{number:x<{LETTERS}}')" for number in range(first, first + 500))
        pairs.execute(server, f"insert into {DATABASE}.{TABLE} values {rows}")
    return server


def instructions(server, load, options, profile):
    """Instructions per request. `profile` is the file that callgrind's dump becomes."""
    def control(*words):
        subprocess.run(["callgrind_control", *words, str(server.process.pid)], check=True, capture_output=True)

    control("-z")
    control("-i", "on")
    load.play(options.requests)
    control("-i", "off")
    control("-d")
    dumps = sorted(glob.glob(server.profile + ".*"), key=os.path.getmtime)
    os.replace(dumps[-1], profile)
    with open(profile) as counted:
        return int(re.search(r"^totals: (\d+)", counted.read(), re.MULTILINE).group(1)) / options.requests


def calls(server, load, options, profile):
    """System calls per request, by name."""
    strace = subprocess.Popen(["strace", "-f", "-c", "-q", "-U", "calls,name", "-o", profile, "-p", str(server.process.pid)])
    # It attaches to every thread first.
    time.sleep(1)
    load.play(options.requests)
    strace.send_signal(signal.SIGINT)
    strace.wait(60)
    with open(profile) as counted:
        found = re.findall(r"^ *(\d+) +(\w+)$", counted.read(), re.MULTILINE)
    return {name: int(count) / options.requests for count, name in found if name != "total"}


def names_of(options):
    wanted = [name.strip() for name in options.only.split(";") if name.strip()]
    unknown = [name for name in wanted if name not in LOADS]
    if unknown:
        raise SystemExit(f"no such loads: {unknown}; there are {list(LOADS)}")
    return wanted or list(LOADS)


def count(side, binary, options):
    """The figure of each load and level."""
    under, figures = [], collections.OrderedDict()
    if not options.calls:
        under = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={options.folder}/callgrind.{side}"]
    server = start(binary, options, under)
    server.profile = f"{options.folder}/callgrind.{side}"
    try:
        for name in names_of(options):
            for level in map(int, options.levels.split(",")):
                load = Load(LOADS[name](server, level))
                load.play(max(options.requests // 4, 4 * level))
                profile = f"{options.folder}/{'calls' if options.calls else 'callgrind'}.{side}.{re.sub('[ ,]+', '-', name)}.{level}"
                figures[name, level] = (calls if options.calls else instructions)(server, load, options, profile)
                load.close()
    finally:
        server.close()
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the build that is counted")
    parser.add_argument("--before", help="an older build to compare with")
    parser.add_argument("--calls", action="store_true", help="count system calls instead of instructions")
    parser.add_argument("--only", default="", help="names of loads, separated by semicolons: " + "; ".join(LOADS))
    parser.add_argument("--levels", default="1,64", help="requests in flight; 1,64")
    parser.add_argument("--requests", type=int, default=4096, help="requests that are counted; 4,096")
    parser.add_argument("--memory", default="512mb", help="of each server")
    parser.add_argument("--folder", default="target", help="where the data and the profiles lie")
    parser.add_argument("--out", help="the page to write; printed too")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    before = count("before", options.before, options) if options.before else {}
    after = count("after", options.server, options)
    lines = (calls_table if options.calls else instructions_table)(before, after)
    print("\n".join(lines))
    if options.out:
        what = "System calls" if options.calls else "Instructions outside the kernel"
        how = f"{what} of the server per request, {options.requests:,} requests. Made by `scripts/xrpc_instructions.py`, whose head says what is counted."
        with open(options.out, "w") as out:
            out.write(f"# XRPC and MySQL's protocol: {what.lower()} per request\n\n{how}\n\n" + "\n".join(lines) + "\n")


def calls_table(before, after):
    def told(found):
        return ", ".join(f"{call} {per:.2f}" for call, per in sorted(found.items(), key=lambda item: -item[1]) if per >= 0.005)

    lines = ["| Request | in flight | " + "before | " * bool(before) + "after |", "|---|---:|" + "---|" * bool(before) + "---|"]
    for (name, level), found in after.items():
        lines.append(f"| {name} | {level} | " + (f"{told(before[name, level])} | " if before else "") + f"{told(found)} |")
    return lines


def instructions_table(before, after):
    lines = ["| Request | in flight | before | after | after / before |", "|---|---:|---:|---:|---:|"]
    if not before:
        lines = ["| Request | in flight | instructions |", "|---|---:|---:|"]
    for (name, level), found in after.items():
        old = before.get((name, level))
        figures = f"{old:,.0f} | {found:,.0f} | {found / old:.3f}" if old else f"{found:,.0f}"
        lines.append(f"| {name} | {level} | {figures} |")
    return lines


if __name__ == "__main__":
    main()
