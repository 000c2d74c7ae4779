"""A MySQL server to compare with: one that runs, or one of our own where scripts/mysql.sh has installed it. `port` is None where there is none."""

import os
import shutil
import subprocess
import tempfile

from beluga import free_port

INSTALLER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts", "mysql.sh")


class MySQL:
    def __init__(self, port=None):
        self.port, self.home = port, None

    def __enter__(self):
        if not self.port:
            self.home, port = tempfile.mkdtemp(prefix="mysql-test-"), free_port()
            started = subprocess.run([INSTALLER, "start", self.home, str(port)], capture_output=True, text=True, timeout=180)
            self.port = port if started.returncode == 0 else None
        return self

    def __exit__(self, *_):
        if self.home:
            subprocess.run([INSTALLER, "stop", self.home], capture_output=True, timeout=60)
            shutil.rmtree(self.home, ignore_errors=True)
