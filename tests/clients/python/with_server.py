"""Runs a command with a server's port as its last argument: that of the Redis door, or with `--mysql` or `--xrpc` as the first that of the other door."""

import subprocess
import sys

from beluga import Server

words = sys.argv[1:]
mysql, xrpc = words[0] == "--mysql", words[0] == "--xrpc"
# Values of tens of megabytes are among what clients send, and what requests hold is a part of `memory`.
with Server("--memory", "1gb", mysql=mysql, xrpc=xrpc) as server:
    port = server.mysql_port or server.xrpc_port or server.port
    sys.exit(subprocess.run([*words[mysql or xrpc :], str(port)], timeout=300).returncode)
