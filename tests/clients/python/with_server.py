"""Runs a command with a server's port as its last argument: that of the Redis door, or with `--mysql` as the first that of the MySQL door."""

import subprocess
import sys

from beluga import Server

words = sys.argv[1:]
mysql = words[0] == "--mysql"
with Server(mysql=mysql) as server:
    port = server.mysql_port if mysql else server.port
    sys.exit(subprocess.run([*words[mysql:], str(port)], timeout=300).returncode)
