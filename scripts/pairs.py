#!/usr/bin/env python3
"""Compares two builds of the server: server CPU per operation, in alternating pairs.

    scripts/pairs.py --before OLD/beluga --after NEW/beluga --out docs/bench/pairs.md

Both servers run from the start, each with a data folder of its own; one at a time has work. A pair is one turn of each, in the order before, after, after, before, ... For each script the page gives the
ratio after / before of the server's CPU time (user and system) per transaction: the geometric mean over the pairs and its 95 % interval (Student's t over the logarithms), and the ratio of throughput.
Needs sysbench, and `bench` (cargo build --release --package bench) for TPC-C. Standard library only.

With `--instructions` it counts instead: instructions outside the kernel per transaction of one connection, by valgrind's callgrind. Other programs on the machine do not change that figure, and one turn of each side is enough;
it knows neither the kernel nor the caches. Profiles of both sides stay in `--folder` for callgrind_annotate.
"""

import argparse
import math
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

SCRIPTS = ["oltp_point_select", "oltp_read_only", "oltp_write_only", "oltp_read_write", "oltp_update_index", "oltp_update_non_index", "oltp_insert", "oltp_delete"]
# Two-sided 95 % quantiles of Student's t by degrees of freedom.
T95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101, 19: 2.093}
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One build with its data in a temporary folder below `folder`."""

    def __init__(self, binary, folder, memory, under=(), has_xrpc=False):
        self.home = tempfile.mkdtemp(prefix="pairs-", dir=folder)
        self.redis, self.port, self.xrpc = free_port(), free_port(), free_port() if has_xrpc else 0
        words = [*under, binary, "--data", os.path.join(self.home, "data"), "--redis-port", str(self.redis), "--mysql-port", str(self.port), "--memory", memory]
        if has_xrpc:
            words += ["--xrpc-port", str(self.xrpc)]
        # Builds of before the door for PostgreSQL do not know its port.
        if b"postgres-port" in subprocess.run([binary, "--help"], capture_output=True).stdout:
            words += ["--postgres-port", "0"]
        self.log = open(os.path.join(self.home, "log"), "wb")
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as probe:
                    if probe.recv(1):
                        return
            except OSError:
                time.sleep(0.05)
        sys.exit(f"{binary} does not answer; its output is in {self.home}/log")

    def cpu(self):
        """User and system time so far, in seconds."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.home, ignore_errors=True)


def sysbench(server, script, *words, database="sbtest"):
    command = ["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={server.port}", "--mysql-user=root", f"--mysql-db={database}", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"sysbench {script}: {(done.stdout + done.stderr)[:2000]}")
    return done.stdout


class Sysbench:
    def __init__(self, script, options):
        self.name, self.tables, self.threads = script, [f"--tables={options.tables}", f"--table-size={options.rows}"], options.threads

    def turn(self, server, seconds):
        said = sysbench(server, self.name, *self.tables, f"--threads={self.threads}", f"--time={seconds}", "--mysql-ignore-errors=1213,1020,1205", "run")
        return int(re.search(r"transactions: +(\d+)", said).group(1))


class BulkInsert:
    """Statements of about 1,000 rows, by sysbench's own script; an operation is a row."""

    name = "bulk_insert"

    def __init__(self, options):
        self.made = set()

    def turn(self, server, seconds):
        def play(*words):
            return sysbench(server, "bulk_insert", "--threads=2", *words, database="bulk")

        if server in self.made:
            play("cleanup")
        play("prepare")
        self.made.add(server)
        said = play(f"--time={seconds}", "run")
        return int(re.search(r"total number of events: +(\d+)", said).group(1))


class Tpcc:
    """The mix of TPC-C; an operation is a New-Order. A turn loads its one small warehouse first, which costs both sides the same."""

    name = "tpcc"

    def __init__(self, options):
        self.bench = options.bench

    def turn(self, server, seconds):
        execute(server, "DROP DATABASE IF EXISTS tpcc")
        words = ["tpcc", "--at", str(server.port), "--warehouses", "1", "--scale", "25", "--threads", "8", "--seconds", str(seconds), "--rounds", "1"]
        done = subprocess.run([self.bench, *words], capture_output=True, text=True)
        found = re.search(r"([\d,.]+) New-Orders a minute", done.stdout)
        if done.returncode or not found:
            sys.exit(f"bench tpcc: {(done.stdout + done.stderr)[:2000]}")
        return float(found.group(1).replace(",", "")) * seconds / 60


def compare(load, sides, pairs, seconds):
    """(ratio of CPU per operation, its interval's ends, ratio of throughput, microseconds per operation of both)"""
    costs, rates = {side: [] for side in sides}, {side: [] for side in sides}
    for pair in range(pairs):
        for side in sorted(sides, reverse=pair % 2 == 0):
            server = sides[side]
            cpu, began = server.cpu(), time.monotonic()
            operations = load.turn(server, seconds)
            costs[side].append((server.cpu() - cpu) / max(operations, 1))
            rates[side].append(operations / (time.monotonic() - began))
    logs = [math.log(after / before) for before, after in zip(costs["before"], costs["after"])]
    mean, half = statistics.mean(logs), T95[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    rate = statistics.median(after / before for before, after in zip(rates["before"], rates["after"]))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half), rate, *(statistics.median(costs[side]) * 1e6 for side in ("before", "after"))


class Counted:
    """A load of one connection whose instructions are counted."""

    def __init__(self, script, options):
        self.name, self.options = script, options

    def count(self, side, binary):
        """Instructions per transaction."""
        profile = os.path.join(self.options.folder, f"callgrind.{side}.{self.name}")
        # As a user starts it, but for the counting, which begins and ends by callgrind_control.
        server = Server(binary, self.options.folder, self.options.memory, ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={profile}"])
        try:
            execute(server, "CREATE DATABASE sbtest")
            tables = [f"--tables={self.options.tables}", f"--table-size={self.options.rows}"]
            sysbench(server, "oltp_read_write", *tables, "prepare")

            def play(events):
                said = sysbench(server, self.name, *tables, "--threads=1", "--time=0", f"--events={events}", "run")
                return int(re.search(r"transactions: +(\d+)", said).group(1))

            play(self.options.events // 10)
            self.control(server, "on")
            played = play(self.options.events)
            self.control(server, "off")
        finally:
            server.close()
        with open(profile) as counted:
            return int(re.search(r"^totals: (\d+)", counted.read(), re.MULTILINE).group(1)) / played

    @staticmethod
    def control(server, state):
        subprocess.run(["callgrind_control", "-i", state, str(server.process.pid)], check=True, capture_output=True)


def count_instructions(options):
    scripts = [script for script in SCRIPTS if not options.only or script in options.only.split(",")]
    lines = ["| Load | instructions before | instructions after | after / before |", "|---|---|---|---|"]
    for script in scripts:
        before, after = (Counted(script, options).count(side, getattr(options, side)) for side in ("before", "after"))
        lines.append(f"| {script} | {before:,.0f} | {after:,.0f} | {after / before:.3f} |")
        print(lines[-1], flush=True)
    write_page(options, f"Instructions outside the kernel per transaction of one connection, {options.events:,} transactions, {options.tables} tables of {options.rows:,} rows. Made by `scripts/pairs.py --instructions`.", lines)


def write_page(options, how, lines):
    page = f"# Two builds of the server\n\n{how}\n\n" + "\n".join(lines) + "\n"
    print(page)
    if options.out:
        with open(options.out, "w") as out:
            out.write(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="the older build's binary")
    parser.add_argument("--after", required=True, help="the newer build's binary")
    parser.add_argument("--pairs", type=int, default=10, help="3 to 20; 10")
    parser.add_argument("--seconds", type=int, default=10, help="of a turn; 10")
    parser.add_argument("--threads", type=int, default=16, help="sysbench's connections; 16")
    parser.add_argument("--tables", type=int, default=2)
    parser.add_argument("--rows", type=int, default=100_000, help="of a table")
    parser.add_argument("--memory", default="1gb", help="of each server")
    parser.add_argument("--only", default="", help="names of loads, separated by commas: sysbench's scripts, bulk_insert, tpcc")
    parser.add_argument("--bench", default="target/release/bench", help="the program that plays TPC-C")
    parser.add_argument("--folder", default="target", help="where the data lies")
    parser.add_argument("--out", help="the page to write; printed too")
    parser.add_argument("--instructions", action="store_true", help="count instructions instead of measuring CPU time")
    parser.add_argument("--events", type=int, default=2_000, help="transactions that are counted; 2,000")
    options = parser.parse_args()
    if options.instructions:
        os.makedirs(options.folder, exist_ok=True)
        count_instructions(options)
        return
    if not 3 <= options.pairs <= 20:
        parser.error("--pairs is 3 to 20")
    loads = [Sysbench(script, options) for script in SCRIPTS] + [BulkInsert(options), Tpcc(options)]
    if options.only:
        loads = [load for load in loads if load.name in options.only.split(",")]
    os.makedirs(options.folder, exist_ok=True)
    sides = {"before": Server(options.before, options.folder, options.memory), "after": Server(options.after, options.folder, options.memory)}
    lines = ["| Load | CPU before, us | CPU after, us | after / before | 95 % interval | throughput after / before |", "|---|---|---|---|---|---|"]
    try:
        for server in sides.values():
            execute(server, "CREATE DATABASE sbtest", "CREATE DATABASE bulk")
            if any(isinstance(load, Sysbench) for load in loads):
                sysbench(server, "oltp_read_write", f"--tables={options.tables}", f"--table-size={options.rows}", "prepare")
        for load in loads:
            ratio, low, high, rate, before, after = compare(load, sides, options.pairs, options.seconds)
            lines.append(f"| {load.name} | {before:.2f} | {after:.2f} | {ratio:.3f} | {low:.3f} to {high:.3f} | {rate:.2f} |")
            print(lines[-1], flush=True)
    finally:
        for server in sides.values():
            server.close()
    how = f"Server CPU per operation, {options.pairs} alternating pairs of {options.seconds} s, {options.threads} connections, {options.tables} tables of {options.rows:,} rows, {os.cpu_count()} processors. Made by `scripts/pairs.py`."
    write_page(options, how, lines)


def execute(server, *statements):
    """Runs statements on sysbench's own connection."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        queries = " ".join(f'c:query("{statement}")' for statement in statements)
        script.write(f"function event() end\nfunction prepare() local c = sysbench.sql.driver():connect() {queries} end\nsysbench.cmdline.commands = {{prepare = {{prepare}}}}\n")
        script.flush()
        sysbench(server, script.name, "prepare", database="mysql")


if __name__ == "__main__":
    main()
