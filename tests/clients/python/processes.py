"""Workers of job queues as processes of their own: each leads a session with what it forks, so that kill -9 ends all of it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

from beluga import Peer, Server, until


def redis_door(*settings):
    """Beluga, or with `--peer` on the command line Debian's redis-server, which confirms what a suite expects."""
    return Peer() if "--peer" in sys.argv else Server(*settings)


def kill_session(leader):
    """Kills the processes of a session. Returns whether there was one that had not ended."""
    found = False
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                state, _, _, session = stat.read().rpartition(")")[2].split()[:4]
            if int(session) == leader and state not in "ZX":
                found = True
                os.kill(int(pid), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            # It has ended meanwhile.
            pass
    return found


class Processes:
    """Worker processes by name, with their logs. All are killed at the end."""

    def __enter__(self):
        # A suite that is stopped ends its workers too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.home, self.running = tempfile.mkdtemp(prefix="beluga-workers-"), {}
        return self

    def __exit__(self, *_):
        for name in list(self.running):
            self.kill(name)
        shutil.rmtree(self.home, ignore_errors=True)

    def start(self, name, *words, folder=None):
        environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__)), "PYTHONDONTWRITEBYTECODE": "1"}
        with open(os.path.join(self.home, name), "ab") as log:
            self.running[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment, cwd=folder or self.home)

    def has_ended(self, name):
        return self.running[name].poll() is not None

    def pause(self, name):
        self.running[name].send_signal(signal.SIGSTOP)

    def go_on(self, name):
        self.running[name].send_signal(signal.SIGCONT)

    def terminate(self, name, timeout=60):
        """The exit code after SIGTERM."""
        process = self.running[name]
        process.terminate()
        code = process.wait(timeout)
        self.kill(name)
        return code

    def kill(self, name):
        """Kills the worker and all that it has forked, also what leads a process group of its own, as the process of an RQ job does."""
        process = self.running.pop(name)
        if process.poll() is None:
            process.kill()
        process.wait()
        until(f"the end of what {name} has forked", lambda: not kill_session(process.pid))

    def log(self, name):
        with open(os.path.join(self.home, name), errors="replace") as log:
            return log.read()[-3000:]

    def until(self, what, condition):
        """Waits for a state; if it does not come, shows the logs of the workers."""
        try:
            until(what, condition)
        except TimeoutError:
            for name in self.running:
                print(f"-- log of {name}\n{self.log(name)}", flush=True)
            raise
