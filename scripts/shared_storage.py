#!/usr/bin/env python3
"""Compares a database in a Ceph cluster with one in a local folder, on this machine, and writes a page.

    scripts/shared_storage.py --beluga target/release/beluga --out docs/bench/shared.md

The cluster is that of scripts/ceph.sh: a monitor and three OSDs on loopback, three replicas on one disk. Both servers run from the start, one at a time has work, turns alternate, figures are medians.

1. Durable writes: redis-benchmark's SET of 100 bytes by connections, throughput, p50 and p99 of a reply, and the server's CPU time per operation.
2. Reads: GET of one of many keys, at `--memory 96mb`.
3. Transactions: sysbench's oltp_write_only and oltp_read_write.
4. Takeover: a second server waits for the lease; the first is killed under load, or stopped in order. The time from the signal to the second one's first reply, and whether a key acknowledged before the signal is there.

Needs Ceph's programs, redis-benchmark (redis-tools) and sysbench. Standard library only.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")
HERE = os.path.dirname(os.path.abspath(__file__))
CONNECTIONS = [1, 16, 128, 512]
SCRIPTS = [("oltp_write_only", 16), ("oltp_write_only", 64), ("oltp_read_write", 16), ("oltp_read_write", 64)]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server whose data is `data`, with files of its own in `home`."""

    def __init__(self, options, home, data, memory):
        os.makedirs(home, exist_ok=True)
        self.port, self.mysql = free_port(), free_port()
        words = [options.beluga, "--data", data, "--redis-port", str(self.port), "--mysql-port", str(self.mysql), "--postgres-port", "0", "--memory", memory, "--log-level", "info"]
        if data.startswith("rados:"):
            words += ["--ceph-conf", os.path.join(options.cluster, "ceph.conf"), "--scratch", os.path.join(home, "scratch")]
        self.log_path = os.path.join(home, "log")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def await_reply(self, seconds=120):
        """Waits until the Redis door answers PING. Returns the time of the reply."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.process.poll() is not None:
                sys.exit(f"the server ended with {self.process.returncode}; its output is in {self.log_path}")
            try:
                if self.command("PING") == b"+PONG\r\n":
                    return time.monotonic()
            except OSError:
                time.sleep(0.002)
        sys.exit(f"no reply within {seconds} s; the server's output is in {self.log_path}")

    def command(self, *words):
        """The first part of one reply to a command, on a connection of its own."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as wire:
            wire.settimeout(20)
            parts = [word.encode() for word in words]
            wire.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            return wire.recv(65536)

    def cpu(self):
        """User and system time so far, in seconds."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(120)


def redis_benchmark(server, test, connections, requests, keys):
    """(operations a second, p50 and p99 in ms, microseconds of server CPU per operation)"""
    cpu = server.cpu()
    words = ["redis-benchmark", "-p", str(server.port), "-t", test, "-c", str(connections), "-n", str(requests), "-d", "100", "-r", str(keys), "--csv"]
    done = subprocess.run(words, capture_output=True, text=True)
    row = re.search(rf'^"{test.upper()}",(.*)$', done.stdout, re.MULTILINE)
    if not row:
        sys.exit(f"redis-benchmark: {(done.stdout + done.stderr)[:2000]}")
    rate, _, _, p50, _, p99, _ = (float(figure.strip('"')) for figure in row.group(1).split(","))
    return rate, p50, p99, (server.cpu() - cpu) / requests * 1e6


def sysbench(server, script, threads, seconds, command, rows=100_000):
    cpu = server.cpu()
    words = ["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={server.mysql}", "--mysql-user=root", "--mysql-db=sbtest", "--tables=2", f"--table-size={rows}", f"--threads={threads}", f"--time={seconds}", "--percentile=99", "--mysql-ignore-errors=1213,1020,1205", command]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"sysbench {script}: {(done.stdout + done.stderr)[:2000]}")
    if command != "run":
        return None
    count = int(re.search(r"transactions: +(\d+)", done.stdout).group(1))
    average, tail = (float(re.search(rf"{name}: +([\d.]+)", done.stdout).group(1)) for name in ("avg", "99th percentile"))
    return count / seconds, average, tail, (server.cpu() - cpu) / max(count, 1) * 1e6


def medians(sides, turn, rounds):
    """Medians of each figure of `turn(server)`, by side, in alternating order."""
    found = {side: [] for side in sides}
    for at in range(rounds):
        for side in sorted(sides, reverse=at % 2 == 1):
            found[side].append(turn(sides[side]))
    return {side: [statistics.median(figures) for figures in zip(*rows)] for side, rows in found.items()}


def compare(lines, sides, title, loads, rounds):
    lines += ["", f"## {title}", "", "| load | folder: a second | p50 or mean, ms | p99, ms | server CPU, us | cluster: a second | p50 or mean, ms | p99, ms | server CPU, us |", "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for name, turn in loads:
        found = medians(sides, turn, rounds)
        cells = [f"{rate:,.0f} | {middle:.2f} | {tail:.2f} | {cpu:,.0f}" for rate, middle, tail, cpu in (found["folder"], found["cluster"])]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
        print(lines[-1], flush=True)


def takeover(options, at, ending):
    """(seconds to the second server's first reply, whether the last acknowledged key is there)"""
    data = f"rados:beluga/takeover{at}"
    first = Server(options, os.path.join(options.folder, f"takeover-{at}-a"), data, "256mb")
    first.await_reply()
    second = Server(options, os.path.join(options.folder, f"takeover-{at}-b"), data, "256mb")
    load = subprocess.Popen(["redis-benchmark", "-p", str(first.port), "-t", "set", "-c", "32", "-n", "100000000", "-d", "100", "-r", "100000", "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 5
        last = 0
        while time.monotonic() < until:
            if first.command("SET", "last", str(last + 1)) == b"+OK\r\n":
                last += 1
        began = time.monotonic()
        first.process.send_signal(ending)
        done = second.await_reply()
        kept = second.command("GET", "last") == b"$%d\r\n%d\r\n" % (len(str(last)), last)
    finally:
        load.kill()
        load.wait()
        first.close()
        second.close()
    return done - began, kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beluga", default="target/release/beluga")
    parser.add_argument("--out", help="the page to write; printed too")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10, help="of a turn of sysbench; 10")
    parser.add_argument("--keys", type=int, default=500_000, help="keys of the reads; 500,000")
    parser.add_argument("--folder", help="for data and cluster; a temporary one in target otherwise")
    options = parser.parse_args()
    made = options.folder is None
    options.folder = options.folder or tempfile.mkdtemp(prefix="shared-", dir="target")
    options.folder = os.path.abspath(options.folder)
    options.cluster = os.path.join(options.folder, "ceph")
    ceph = os.path.join(HERE, "ceph.sh")
    subprocess.run([ceph, "start", options.cluster], check=True)
    lines = []
    try:
        play(options, lines)
    finally:
        subprocess.run([ceph, "stop", options.cluster], check=True)
        if made:
            shutil.rmtree(options.folder, ignore_errors=True)
    how = (
        f"Made by `scripts/shared_storage.py` on {os.cpu_count()} processors, clients and the cluster's processes included: a monitor and three OSDs, three replicas on one disk. Medians of {options.rounds} alternating rounds; "
        "redis-benchmark with values of 100 bytes, sysbench with 2 tables of 100,000 rows for {options.seconds} s. The folder lies on the same disk. The server's CPU time is per operation or transaction, that of Ceph's client library included and that of the OSDs not."
    )
    page = f"# A database in a Ceph cluster beside one in a folder\n\n{how}\n" + "\n".join(lines) + "\n"
    print(page)
    if options.out:
        with open(options.out, "w") as out:
            out.write(page)


def play(options, lines):
    def pair(name, memory):
        sides = {
            "folder": Server(options, os.path.join(options.folder, name), os.path.join(options.folder, name, "data"), memory),
            "cluster": Server(options, os.path.join(options.folder, f"{name}-cluster"), f"rados:beluga/{name}", memory),
        }
        for server in sides.values():
            server.await_reply()
        return sides

    sides = pair("writes", "1gb")
    loads = []
    for connections in CONNECTIONS:
        requests = {1: 2_000, 16: 20_000}.get(connections, 100_000)
        loads.append((f"SET, {connections} connections", lambda server, c=connections, n=requests: redis_benchmark(server, "set", c, n, 100_000)))
    compare(lines, sides, "Durable writes", loads, options.rounds)
    for server in sides.values():
        create_database(server)
        sysbench(server, "oltp_read_write", 2, 0, "prepare")
    loads = [(f"{script}, {threads} threads", lambda server, s=script, t=threads: sysbench(server, s, t, options.seconds, "run")) for script, threads in SCRIPTS]
    compare(lines, sides, "Transactions", loads, options.rounds)
    for server in sides.values():
        server.close()

    sides = pair("reads", "96mb")
    for server in sides.values():
        redis_benchmark(server, "set", 256, options.keys * 2, options.keys)
    loads = [(f"GET, {connections} connections", lambda server, c=connections: redis_benchmark(server, "get", c, 20_000, options.keys)) for connections in (1, 16, 64)]
    compare(lines, sides, f"Reads of one of {options.keys:,} keys at --memory 96mb", loads, options.rounds)
    for server in sides.values():
        server.close()

    lines += ["", "## Takeover", "", "| the first server | until the second one's first reply, s (median of 3; all) | the last acknowledged key |", "|---|---:|---|"]
    for ending, name in ((signal.SIGKILL, "is killed under load"), (signal.SIGTERM, "is stopped under load")):
        found = [takeover(options, f"{name.split()[1]}{at}", ending) for at in range(3)]
        times = [seconds for seconds, _ in found]
        lines.append(f"| {name} | {statistics.median(times):.2f} ({', '.join(f'{one:.2f}' for one in times)}) | {'was there each time' if all(kept for _, kept in found) else 'WAS LOST'} |")
        print(lines[-1], flush=True)


def create_database(server):
    """sysbench has no way to create its database but a script."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write('function event() end\nfunction prepare() local c = sysbench.sql.driver():connect() c:query("CREATE DATABASE sbtest") end\nsysbench.cmdline.commands = {prepare = {prepare}}\n')
        script.flush()
        words = ["sysbench", script.name, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={server.mysql}", "--mysql-user=root", "--mysql-db=mysql", "prepare"]
        subprocess.run(words, check=True, capture_output=True)


if __name__ == "__main__":
    main()
