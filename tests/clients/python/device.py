"""A log that cannot be written any more: the server stops by itself, says why, and everything it acknowledged is there after the next start.

Two faults that the kernel itself makes, on a server that serves: a limit on file sizes, which refuses every further write of the log with EFBIG, and a file
system that is shut down below it, so that every write fails with EIO (`beluga.SmallDisk`; skipped where it cannot be mounted).
"""

import os
import resource
import subprocess
import threading
import time

from beluga import Server, SmallDisk, Tally, Wire, request

tally = Tally()
WRITERS = 8
EXIT_IO = 74
# Writes before the device fails.
ENOUGH = 100


class Writer(threading.Thread):
    """Sets keys of its own, one after another, and remembers what was acknowledged."""

    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.port, self.number, self.acknowledged, self.refused = port, number, 0, None

    def key(self, at):
        return f"w{self.number}:{at}"

    @staticmethod
    def value(at):
        return b"%d:" % at + b"v" * (at % 7 * 400)

    def run(self):
        try:
            wire = Wire(self.port, 30)
            while True:
                reply = wire.call("SET", self.key(self.acknowledged), self.value(self.acknowledged))
                if reply != b"+OK\r\n":
                    # The data file may meet the dead device before the log does, and says so; the log ends the server right after.
                    self.refused = None if b"growing the data file: Input/output error" in reply else reply
                    return
                self.acknowledged += 1
        except (EOFError, OSError):
            return

    def lost(self, wire):
        for first in range(0, self.acknowledged, 200):
            part = range(first, min(first + 200, self.acknowledged))
            wire.send(b"".join(request("GET", self.key(at)) for at in part))
            for at in part:
                value = self.value(at)
                if wire.reply() != b"$%d\r\n%s\r\n" % (len(value), value):
                    yield self.key(at)


def play(name, server, fail, mend):
    server.start()
    writers = [Writer(server.port, number) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    # As long as it takes: a disk that is busy with other things may give a second no more than a few syncs.
    due = time.monotonic() + 30
    time.sleep(1)
    while sum(writer.acknowledged for writer in writers) <= ENOUGH and time.monotonic() < due:
        time.sleep(0.1)
    if not fail(server.process.pid):
        tally.skip(f"{name}: the kernel does not do that")
        return
    try:
        code = server.process.wait(20)
    except subprocess.TimeoutExpired:
        code = "still running"
        server.kill()
    tally.equal(f"{name}: it stops with a code of its own", code, EXIT_IO)
    tally.check(f"{name}: it says why", "log's device failed" in server.output(), server.output())
    for writer in writers:
        writer.join(30)
    tally.equal(f"{name}: no write is refused with other words", [writer.refused for writer in writers if writer.refused], [])
    count = sum(writer.acknowledged for writer in writers)
    tally.check(f"{name}: writes were acknowledged before", count > ENOUGH, f"{count}")
    mend()
    server.start()
    wire = Wire(server.port, 60)
    lost = [key for writer in writers for key in writer.lost(wire)]
    tally.equal(f"{name}: nothing acknowledged is lost", lost[:5], [])
    tally.equal(f"{name}: it writes again", wire.call("SET", "after", "1"), b"+OK\r\n")
    tally.equal(f"{name}: it stops", server.terminate(), 0)
    check = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True, timeout=120)
    tally.equal(f"{name}: check", (check.returncode, check.stderr[-300:] if check.returncode else ""), (0, ""))
    print(f"{name}: {count} acknowledged writes are there", flush=True)


def limit_file_sizes(pid):
    # Below where the log stands, so that the next write of it is refused, and inside of files that are long enough.
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    return True


server = Server()
try:
    play("file size limit", server, limit_file_sizes, lambda: None)
finally:
    server.close()

# Segments that last: a new one that cannot be made would refuse writes before the log is written at all.
with SmallDisk(512 << 20) as disk:
    if disk.path is None:
        tally.skip("no leave to mount a file system here")
    else:
        server = Server(folder=os.path.join(disk.path, "data"))
        try:
            play("file system shut down", server, lambda _: disk.fail(), lambda: (disk.detach(), disk.attach()))
        finally:
            server.close()
tally.close()
