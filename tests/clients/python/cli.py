"""redis-cli and redis-benchmark."""

import subprocess

from beluga import Server, Tally


def cli(server, *args, stdin=None):
    done = subprocess.run(["redis-cli", "-p", str(server.port), *args], input=stdin, capture_output=True, text=True, timeout=60)
    return done.stdout.rstrip("\n")


tally = Tally()
with Server() as server:
    tally.equal("ping", cli(server, "ping"), "PONG")
    tally.equal("set", cli(server, "set", "greeting", "hello"), "OK")
    tally.equal("get", cli(server, "get", "greeting"), "hello")
    tally.equal("resp3", cli(server, "-3", "get", "greeting"), "hello")
    tally.equal("script", cli(server, stdin="multi\nincr n\nincr n\nexec\n").split("\n")[-2:], ["1", "2"])
    tally.equal("database", cli(server, "-n", "3", "set", "there", "1"), "OK")
    tally.equal("scan", cli(server, "--scan", "--pattern", "greet*"), "greeting")
    tally.check("info", "redis_version:7.0.15" in cli(server, "info", "server"))
    tally.check("unknown", cli(server, "nosuch", "s", "f").startswith("ERR unknown command 'nosuch'"))
    tally.equal("pipe", cli(server, "--pipe", stdin="SET piped 1\r\nSET piped2 2\r\n").split("\n")[-1], "errors: 0, replies: 2")
    benchmark = ["redis-benchmark", "-p", str(server.port), "-q", "-n", "5000", "-r", "1000", "-d", "64"]
    for arguments in (["-t", "ping_inline,ping_mbulk,set,get,incr,mset", "-c", "20"], ["-t", "set,get", "-P", "16", "-c", "10"], ["-t", "set,get", "-3"]):
        done = subprocess.run([*benchmark, *arguments], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        tally.check(f"redis-benchmark {arguments}", done.returncode == 0 and "requests per second" in done.stdout and "Error" not in done.stdout, done.stdout + done.stderr)
tally.close()
