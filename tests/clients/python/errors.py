"""A failed start prints one line that names the remedy. SIGTERM under load loses no acknowledged write."""

import os
import socket
import subprocess
import tempfile
import threading

from beluga import Server, Tally, Wire, free_port

tally = Tally()
binary = os.environ["SERVER_UNDER_TEST"]


def refused(name, arguments, words, environment=None):
    done = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    lines = done.stderr.strip().split("\n")
    tally.check(name, done.returncode not in (0, 101) and len(lines) == 1 and all(word in done.stderr for word in words), f"exit {done.returncode}: {done.stderr!r}")


with tempfile.TemporaryDirectory() as home, Server() as server:
    data = os.path.join(home, "data")
    refused("unknown setting", ["--data", data, "--no-such-thing", "1"], ["no-such-thing"])
    refused("bad value", ["--data", data, "--memory", "plenty"], ["memory"])
    refused("bad value in the environment", ["--data", data], ["BELUGA_MEMORY"], {"BELUGA_MEMORY": "plenty"})
    refused("locked folder", ["--data", server.folder, "--redis-port", str(free_port())], [server.folder, str(server.process.pid)])
    refused("port in use", ["--data", data, "--redis-port", str(server.port), "--memory", "128mb"], ["redis_port", str(server.port)])
    refused("open to others", ["--data", data, "--redis-bind", "0.0.0.0", "--redis-port", str(free_port()), "--memory", "128mb"], ["redis_password"])
    refused("a way that cannot be left", ["--data", data, "--innodb-csn-lockfree", "off"], ["innodb_csn_lockfree"])
    refused("the number of groups given twice", ["--data", data, "--redis-port", str(free_port()), "--thread-pool-size", "4", "--polarx-rpc-epoll-groups", "2"], ["thread_pool_size", "worker_groups"])
    newer = os.path.join(home, "newer")
    with Server(folder=newer) as one:
        one.terminate()
    with open(os.path.join(newer, "data"), "r+b") as file:
        crc32c = [0] * 256
        for n in range(256):
            c = n
            for _ in range(8):
                c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
            crc32c[n] = c
        for block in (0, 4096):
            file.seek(block)
            words = bytearray(file.read(72))
            if words[:8] != b"BELUGADB":
                continue
            words[8:16] = (99).to_bytes(8, "little")
            crc = 0xFFFFFFFF
            for byte in words[:64]:
                crc = crc32c[(crc ^ byte) & 0xFF] ^ (crc >> 8)
            words[64:68] = (crc ^ 0xFFFFFFFF).to_bytes(4, "little")
            file.seek(block)
            file.write(words)
    refused("newer format", ["--data", newer, "--redis-port", str(free_port()), "--memory", "128mb"], ["format 99", "newer"])

done = subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=60)
tally.check("help", done.returncode == 0 and "--memory" in done.stdout and "redis_port" in done.stdout.replace("-", "_"))

with Server() as server:
    acknowledged = {}

    def write(number):
        wire = Wire(server.port)
        try:
            for n in range(100_000):
                key = f"{number}:{n % 500}"
                if wire.call("SET", key, n) == b"+OK\r\n":
                    acknowledged[key] = n
        except (EOFError, OSError):
            pass

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    [thread.start() for thread in threads]
    import time

    time.sleep(1)
    tally.equal("SIGTERM under load", server.terminate(), 0)
    [thread.join() for thread in threads]
    server.start()
    wire = Wire(server.port)
    lost = [key for key, value in acknowledged.items() if int(wire.call("GET", key).split(b"\r\n")[1]) < value]
    tally.check("nothing lost at SIGTERM", len(acknowledged) > 100 and not lost, f"{len(acknowledged)} keys, lost {lost[:5]}")
    tally.equal("SIGTERM when idle", server.terminate(), 0)

    # A damaged page: its request fails by name, the rest serves, and the offline check names it.
    path = os.path.join(server.folder, "data")
    server.start()
    wire = Wire(server.port)
    wire.send(b"".join(b"*3\r\n$3\r\nSET\r\n$7\r\nk%06d\r\n$400\r\n%b\r\n" % (n, b"v" * 400) for n in range(20_000)))
    for _ in range(20_000):
        wire.reply()
    server.terminate()
    server.start()
    server.terminate()
    clean = subprocess.run([binary, "check", server.folder], capture_output=True, text=True, timeout=300)
    tally.check("check of a sound folder", clean.returncode == 0, clean.stdout + clean.stderr)
    with open(path, "r+b") as file:
        content = file.read()
        spot = content.index(b"k010000"[1:]) if b"k010000"[1:] in content else content.index(b"v" * 64, len(content) // 2)
        page = spot // 4096
        file.seek(page * 4096 + 2048)
        byte = file.read(1)
        file.seek(page * 4096 + 2048)
        file.write(bytes([byte[0] ^ 0x40]))
    server.start()
    wire = Wire(server.port)
    replies = [wire.call("GET", f"k{n:06d}") for n in range(0, 20_000, 3)]
    errors = [reply for reply in replies if reply.startswith(b"-")]
    good = sum(reply.startswith(b"$400") for reply in replies)
    tally.check("a damaged page fails by name", errors and all(f"page {page}".encode() in error and b"'data'" in error for error in errors), f"{errors[:2]}, page {page}")
    tally.check("the rest serves", good > len(replies) * 0.95, f"{good} of {len(replies)}")
    tally.equal("writes elsewhere go on", wire.call("SET", "other", "1"), b"+OK\r\n")
    server.kill()
    found = subprocess.run([binary, "check", server.folder], capture_output=True, text=True, timeout=300)
    tally.check("check names it", found.returncode != 0 and f"page {page}" in found.stdout + found.stderr, found.stdout + found.stderr)
tally.close()
