"""A load like TPC-C's by the program `bench`: one small warehouse, eight connections, and after each round the consistency conditions of the specification."""

import os
import subprocess

from beluga import Server, Tally

tally = Tally()
beside = os.path.join(os.path.dirname(os.environ["SERVER_UNDER_TEST"]), "bench")
program = beside if os.access(beside, os.X_OK) else "target/debug/bench"
if not os.access(program, os.X_OK):
    subprocess.run(["cargo", "build", "--package", "bench"], check=True)
SECONDS, ROUNDS, WAREHOUSES = os.environ.get("TPCC_SECONDS", "4"), os.environ.get("TPCC_ROUNDS", "2"), os.environ.get("TPCC_WAREHOUSES", "1")

with Server(mysql=True) as server:
    words = ["tpcc", "--at", str(server.mysql_port), "--warehouses", WAREHOUSES, "--scale", "25", "--threads", "8", "--seconds", SECONDS, "--rounds", ROUNDS]
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=7200)
    print(done.stdout, end="", flush=True)
    tally.check("loaded and consistent", done.returncode == 0, done.stdout[-1000:] + done.stderr[-1000:])
tally.close()
