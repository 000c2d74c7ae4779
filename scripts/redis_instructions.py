#!/usr/bin/env python3
"""Counts the server's instructions per command of the Redis door, by valgrind's callgrind.

    scripts/redis_instructions.py --server target/quick/beluga [--before OLD/beluga] [--only LPUSH,ZADD]

One connection of redis-benchmark sends pipelines of 32 commands, those of `bench types`. Each load has a server of its own, which has run some of the commands before the count begins. The figure is of
instructions outside the kernel, all threads together: it does not depend on what else runs on the machine, and it knows neither the kernel nor the caches. Profiles stay in `--folder` for callgrind_annotate.
Needs valgrind and redis-benchmark.
"""

import argparse
import os
import re
import subprocess

import pairs

ELEMENT = "element:__rand_int__"
WIDE = "element:__rand_int__:__rand_int__"
# Name: (command, what fills the key before, fills for each command).
LOADS = {
    "PING": (["PING"], None, 0),
    "SET": (["SET", "key:__rand_int__", "xxx"], ["SET", "key:__rand_int__", "xxx"], 1),
    "GET": (["GET", "key:__rand_int__"], ["SET", "key:__rand_int__", "xxx"], 1),
    "INCR": (["INCR", "counter:__rand_int__"], None, 0),
    "LPUSH": (["LPUSH", "mylist", "xxx"], None, 0),
    "RPUSH": (["RPUSH", "mylist", "xxx"], None, 0),
    "LPOP": (["LPOP", "mylist"], ["RPUSH", "mylist", "xxx"], 1),
    "RPOP": (["RPOP", "mylist"], ["RPUSH", "mylist", "xxx"], 1),
    "SADD": (["SADD", "myset", ELEMENT], None, 0),
    "SPOP": (["SPOP", "popped_set"], ["SADD", "popped_set", WIDE], 1),
    "HSET": (["HSET", "myhash", ELEMENT, "xxx"], None, 0),
    "HGET": (["HGET", "myhash", ELEMENT], ["HSET", "myhash", ELEMENT, "xxx"], 1),
    "ZADD": (["ZADD", "myzset", "__rand_int__", ELEMENT], None, 0),
    "ZPOPMIN": (["ZPOPMIN", "popped_zset"], ["ZADD", "popped_zset", "__rand_int__", WIDE], 1),
    "XADD": (["XADD", "mystream", "*", "field", "xxx"], None, 0),
    "PFADD": (["PFADD", "hll", ELEMENT], None, 0),
    "MSET": (["MSET"] + ["key:__rand_int__", "xxx"] * 10, None, 0),
    "EVAL": (["EVAL", "return redis.call('GET', KEYS[1])", "1", "key:__rand_int__"], ["SET", "key:__rand_int__", "xxx"], 1),
    "LRANGE_100": (["LRANGE", "bench:list", "0", "99"], ["RPUSH", "bench:list", "xxx"], 1),
    "HGETALL": (["HGETALL", "bench:hash"], ["HSET", "bench:hash"] + [word for nth in range(100) for word in (f"field:{nth:012}", "xxx")], 1),
    "SMEMBERS": (["SMEMBERS", "bench:set"], ["SADD", "bench:set"] + [f"member:{nth:012}" for nth in range(100)], 1),
    "ZRANGE": (["ZRANGE", "bench:zset", "0", "99"], ["ZADD", "bench:zset"] + [word for nth in range(1000) for word in (f"{nth}", f"member:{nth:012}")], 1),
}


def count(binary, side, name, options):
    """Instructions per command."""
    command, fill, fills = LOADS[name]
    profile = os.path.join(options.folder, f"callgrind.{side}.{name}")
    server = pairs.Server(binary, options.folder, options.memory, ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={profile}"])

    def play(commands, words):
        limits = ["-p", str(server.redis), "-c", "1", "-P", "32", "-r", "100000", "-n", str(commands)]
        subprocess.run(["redis-benchmark", *limits, "-q", *words], check=True, capture_output=True, timeout=600)

    try:
        warm = options.commands // 2
        if fill:
            play((warm + options.commands) * fills, fill)
        play(warm, command)
        pairs.Counted.control(server, "on")
        play(options.commands, command)
        pairs.Counted.control(server, "off")
    finally:
        server.close()
    with open(profile) as counted:
        return int(re.search(r"^totals: (\d+)", counted.read(), re.MULTILINE).group(1)) / options.commands


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the build that is counted")
    parser.add_argument("--before", help="an older build to compare with")
    parser.add_argument("--only", default="", help="names of loads, separated by commas: " + ", ".join(LOADS))
    parser.add_argument("--commands", type=int, default=4096, help="commands that are counted; 4,096")
    parser.add_argument("--memory", default="512mb", help="of each server")
    parser.add_argument("--folder", default="target", help="where the data and the profiles lie")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    for name in options.only.split(",") if options.only else LOADS:
        after = count(options.server, "after", name, options)
        if options.before:
            before = count(options.before, "before", name, options)
            print(f"| {name} | {before:,.0f} | {after:,.0f} | {after / before:.3f} |", flush=True)
        else:
            print(f"| {name} | {after:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
