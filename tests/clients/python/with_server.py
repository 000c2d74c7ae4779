"""Runs a command with a server's port as its last argument."""

import subprocess
import sys

from beluga import Server

with Server() as server:
    sys.exit(subprocess.run([*sys.argv[1:], str(server.port)], timeout=300).returncode)
