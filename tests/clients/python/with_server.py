"""Runs a command with a server's port as its last argument: that of the Redis door, or with `--mysql`, `--xrpc` or `--postgres` as the first that of the other door.

The PostgreSQL door has a certificate, whose file CERTIFICATE names, and a second role: `driver` with the password `driver's`."""

import os
import subprocess
import sys
import tempfile

from beluga import Server, Wire, certificate

words = sys.argv[1:]
door = words.pop(0)[2:] if words[0] in ("--mysql", "--xrpc", "--postgres") else None
with tempfile.TemporaryDirectory() as folder:
    # Values of tens of megabytes are among what clients send, and what requests hold is a part of `memory`.
    settings = ["--memory", "1gb"]
    environment = dict(os.environ)
    if door == "postgres":
        chain, key = certificate(folder)
        settings += ["--postgres-ssl-cert", chain, "--postgres-ssl-key", key]
        environment["CERTIFICATE"] = chain
    with Server(*settings, mysql=door == "mysql", xrpc=door == "xrpc", postgres=door == "postgres") as server:
        if door == "postgres":
            Wire(server.port).call("ACL", "SETUSER", "driver", "on", ">driver's", "~*", "+@all")
        port = server.mysql_port or server.xrpc_port or server.postgres_port or server.port
        sys.exit(subprocess.run([*words, str(port)], env=environment, timeout=300).returncode)
