"""Starts and stops servers for the tests: one place for the command line, data in a temporary folder, everything killed by pid."""

import argparse
import contextlib
import fcntl
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time


def free_port(also=0):
    """A port that nobody listens at, drawn from below those that the kernel gives to outgoing connections: suites run side by side, and a client of one could take what another has found free.
    The port `also` above it is free too, and drawn from the same range: a redis-server in a cluster listens at 10,000 above its port."""
    while True:
        port = random.SystemRandom().randrange(12000, 32000 - also)
        with socket.socket() as probe, socket.socket() as second, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if also:
                second.bind(("127.0.0.1", port + also))
            return port


def certificate(folder):
    """The paths of a new certificate for this machine, and of its key."""
    chain, key = os.path.join(folder, "chain.pem"), os.path.join(folder, "key.pem")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*words, "-keyout", key, "-out", chain], check=True, capture_output=True)
    return chain, key


def rounds_and_seed(rounds):
    """Options of a test that kills its server repeatedly. A missing seed is drawn, and printed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    return arguments.rounds, seed


class Server:
    """A Beluga with a data folder of its own. Restarts keep the folder. With `mysql` it has a MySQL door too, at `mysql_port`; with `xrpc` an XRPC door, at `xrpc_port`, and with `postgres` a PostgreSQL door, at `postgres_port`."""

    def __init__(self, *settings, folder=None, port=None, mysql=False, xrpc=False, postgres=False):
        self.binary = os.environ["SERVER_UNDER_TEST"]
        self.home = tempfile.mkdtemp(prefix="beluga-test-")
        self.folder = folder or os.path.join(self.home, "data")
        self.port = port or free_port()
        self.mysql_port = free_port() if mysql else 0
        self.xrpc_port = free_port() if xrpc else 0
        self.postgres_port = free_port() if postgres else 0
        ports = {"mysql": self.mysql_port, "xrpc": self.xrpc_port, "postgres": self.postgres_port}
        self.settings = [word for door, number in ports.items() for word in (f"--{door}-port", str(number))] + list(settings)
        self.process = None

    def command(self):
        return [self.binary, "--data", self.folder, "--redis-port", str(self.port), "--memory", "256mb", *self.settings]

    def start(self, timeout=60):
        self.log = open(os.path.join(self.home, "log"), "ab")
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}:\n{self.output()}")
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as probe:
                    probe.sendall(b"PING\r\n")
                    answers = probe.recv(100).startswith((b"+PONG", b"-NOAUTH"))
                # The doors open one after the other.
                if answers and (not self.mysql_port or self.greets()) and (not self.postgres_port or self.listens()):
                    return self
            except OSError:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"the server does not answer:\n{self.output()}")

    def greets(self):
        with socket.create_connection(("127.0.0.1", self.mysql_port), 1) as probe:
            return bool(probe.recv(1))

    def listens(self):
        with socket.create_connection(("127.0.0.1", self.postgres_port), 1):
            return True

    def output(self):
        with open(os.path.join(self.home, "log"), errors="replace") as log:
            return log.read()[-4000:]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self, timeout=60):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()


class SmallDisk:
    """A small ext4 in a file, mounted at `path`; that is None without root and leave to mount."""

    EXT4_IOC_SHUTDOWN = 0x8004587D

    def __init__(self, size):
        self.size = size

    def __enter__(self):
        self.home = tempfile.mkdtemp(prefix="beluga-disk-")
        self.image, self.mount = os.path.join(self.home, "image"), os.path.join(self.home, "mount")
        os.mkdir(self.mount)
        with open(self.image, "wb") as file:
            file.truncate(self.size)
        made = os.geteuid() == 0 and self.run("mkfs.ext4", "-q", "-F", "-m", "0", self.image)
        self.path = self.mount if made and self.attach() else None
        return self

    def __exit__(self, *_):
        if self.path and not self.detach():
            self.run("umount", "--lazy", self.mount)
        shutil.rmtree(self.home, ignore_errors=True)

    @staticmethod
    def run(*command):
        return subprocess.run(command, capture_output=True).returncode == 0

    def attach(self):
        return self.run("mount", "-o", "loop", self.image, self.mount)

    def detach(self):
        return self.run("umount", self.mount)

    def fill(self):
        """Takes every byte that is left, in a file that it names."""
        path = os.path.join(self.mount, "fill")
        with open(path, "ab", buffering=0) as file:
            for piece in (1 << 20, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * piece)
                        os.fsync(file.fileno())
                except OSError:
                    pass
        return path

    def fail(self):
        """From here on every write of the file system fails with EIO, until it is mounted anew. False if the kernel does not do that."""
        folder = os.open(self.mount, os.O_RDONLY)
        try:
            # 2: nothing that is still in memory is written either, as if the cable had been pulled.
            fcntl.ioctl(folder, self.EXT4_IOC_SHUTDOWN, struct.pack("I", 2))
            return True
        except OSError:
            return False
        finally:
            os.close(folder)


class Peer:
    """Debian's redis-server, in memory. More settings override its own."""

    def __init__(self, *settings):
        self.settings = settings
        self.port = free_port()
        self.home = tempfile.mkdtemp(prefix="redis-test-")

    def __enter__(self):
        arguments = ["--port", str(self.port), "--dir", self.home, "--save", "", "--appendonly", "no", *self.settings]
        self.process = subprocess.Popen(["redis-server", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("redis-server does not answer")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


class MariaDB:
    """A server of Debian's package, if it is installed."""

    def __init__(self):
        self.port = free_port()
        self.home = tempfile.mkdtemp(prefix="mariadb-test-")

    def __enter__(self):
        data = os.path.join(self.home, "data")
        install = ["mariadb-install-db", f"--datadir={data}", "--auth-root-authentication-method=normal", "--user=root", "--skip-test-db"]
        subprocess.run(install, check=True, capture_output=True, timeout=120)
        options = [f"--datadir={data}", f"--port={self.port}", f"--socket={self.home}/socket", "--bind-address=127.0.0.1", "--user=root", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0",
                   "--character-set-server=utf8mb4"]
        self.process = subprocess.Popen(["mariadbd", "--no-defaults", *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as probe:
                    if probe.recv(1):
                        return self
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError("mariadbd does not answer")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


class Tally:
    """Counts checks, and closes with the line that the summary adds up."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def skip(self, reason):
        self.skipped += 1
        print(f"skipped: {reason}", flush=True)

    def check(self, name, condition, detail=""):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {name} {detail}", flush=True)

    def equal(self, name, found, expected):
        self.check(name, found == expected, f"found {found!r}, expected {expected!r}")

    def until(self, what, condition, seconds=60, detail=lambda: ""):
        """Checks that a state comes: `until` whose deadline fails a check, with what `detail` then finds. True: it came."""
        try:
            until(what, condition, seconds)
        except TimeoutError as error:
            self.check(error, False, detail())
            return False
        self.passed += 1
        return True

    def close(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{skipped}", flush=True)
        sys.exit(1 if self.failed else 0)


class Wire:
    """RESP over a plain socket: whole raw replies, in order."""

    def __init__(self, port, timeout=30, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.at = 0

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError("the server closed the connection")
        self.buffer = self.buffer[self.at:] + data
        self.at = 0

    def line(self):
        while True:
            end = self.buffer.find(b"\r\n", self.at)
            if end >= 0:
                line = self.buffer[self.at:end + 2]
                self.at = end + 2
                return line
            self.more()

    def exactly(self, count):
        while len(self.buffer) - self.at < count:
            self.more()
        data = self.buffer[self.at:self.at + count]
        self.at += count
        return data

    def reply(self):
        """One raw reply."""
        line = self.line()
        kind = line[:1]
        if kind in b"$=!":
            length = int(line[1:])
            return line if length < 0 else line + self.exactly(length + 2)
        if kind in b"*~>%":
            count = max(int(line[1:]), 0) * (2 if kind == b"%" else 1)
            return line + b"".join(self.reply() for _ in range(count))
        return line

    def call(self, *args):
        self.send(request(*args))
        return self.reply()


def request(*args):
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        arg = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(parts)


def status(server, name):
    with open(f"/proc/{server.process.pid}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def redis_ping(server):
    with socket.create_connection(("127.0.0.1", server.port), 5) as wire:
        wire.settimeout(5)
        begun = time.monotonic()
        wire.sendall(b"PING\r\n")
        answer = wire.recv(100)
        return answer.startswith(b"+PONG"), time.monotonic() - begun


def until(what, condition, seconds=60, pause=0.01):
    """Waits for a state, with a pause between looks. Raises TimeoutError with the state's name if it has not come in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} in {seconds} s")
        time.sleep(pause)
