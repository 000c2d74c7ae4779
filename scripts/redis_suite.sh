#!/usr/bin/env bash
# Runs files of Redis' own test suite (7.0.15, from Debian's source package) against a server and compares what fails with the list of
# expected differences, tests/clients/redis_suite/expected.txt. A failure that is not listed, and a file that does not come to its end, fail the run.
#
#   scripts/redis_suite.sh [FILE ...]     FILE is a name of the suite, such as unit/type/string; by default those that the list names
#
# A file that the list names by `own` starts servers itself, with settings that it chooses: tests/clients/redis_suite/redis-server takes the place of its
# redis-server and starts Beluga. All others get a server that is there, as the suite's options --host and --port say.
#
# SERVER_UNDER_TEST names the server's binary (target/debug/beluga). REDIS_SUITE_SECONDS bounds each file (300).
# It needs apt-get with a Debian mirror, dpkg-dev, tclsh, and Debian's redis-server and redis-tools, whose programs some tests run.
# Exit code 69: one of them is missing here.
set -euo pipefail
cd "$(dirname "$0")/.."
server=$(realpath -m "${SERVER_UNDER_TEST:-target/debug/beluga}")
seconds="${REDIS_SUITE_SECONDS:-300}"
expected="$PWD/tests/clients/redis_suite/expected.txt"
starter="$PWD/tests/clients/redis_suite/redis-server"
dir="$PWD/target/redis-suite"
version=7.0.15

say() { printf 'redis-suite: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 69
}

# The lists of source packages live below $dir/apt; apt's own configuration and state stay as they are.
fetch() {
    [ -e "$dir/fetched" ] && return 0
    local key=/usr/share/keyrings/debian-archive-keyring.gpg mirror
    [ -e $key ] || die "no $key to check packages with"
    mirror=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -E '/debian/?$' | head -n 1)
    [ -n "$mirror" ] || die "this machine's apt knows no Debian mirror"
    rm -rf "$dir"
    mkdir -p "$dir/apt/state/lists/partial" "$dir/apt/cache/archives/partial"
    printf 'deb-src [signed-by=%s] %s\n' "$key" "$mirror bookworm main" "$key" "${mirror%/debian*}/debian-security bookworm-security main" >"$dir/apt/sources.list"
    local -a apt=(apt-get -qq -o "Dir::Etc::sourcelist=$dir/apt/sources.list" -o Dir::Etc::sourceparts=/nonexistent
        -o "Dir::State::lists=$dir/apt/state/lists" -o "Dir::Cache=$dir/apt/cache" -o Acquire::Retries=3 -o APT::Sandbox::User=root)
    "${apt[@]}" update >"$dir/apt.log" 2>&1 || die "the list of packages cannot be fetched ($dir/apt.log)"
    (cd "$dir" && "${apt[@]}" source redis >>"$dir/apt.log" 2>&1) || die "the source package cannot be fetched ($dir/apt.log)"
    [ -e "$dir/redis-$version/runtest" ] || die "the source package is not that of Redis $version"
    ln -sf "$(command -v redis-server)" "$(command -v redis-cli)" "$(command -v redis-benchmark)" "$dir/redis-$version/src/"
    touch "$dir/fetched"
}

for tool in apt-get dpkg-source tclsh python3 redis-server redis-cli redis-benchmark; do
    command -v $tool >/dev/null || die "this machine has no $tool"
done
[ -x "$server" ] || { say "no server at $server; build it, or name one in SERVER_UNDER_TEST"; exit 66; }
fetch

data=$(mktemp -d)
pid=
port=
runner=
stop() {
    [ -z "$pid" ] || { kill "$pid" 2>/dev/null && wait "$pid"; } || true
    pid=
}
stop_suite() {
    [ -z "$runner" ] || kill -KILL -- "-$runner" 2>/dev/null || true
    runner=
}
trap 'stop_suite; stop; rm -rf "$data"' EXIT
trap 'exit 130' INT TERM

# A file gets a server of its own: some leave parameters and scripts behind. Some write a hundred thousand times, and nothing here is about a crash, so a reply
# does not wait for the disk.
start() {
    rm -rf "$data/data"
    port=$((20000 + RANDOM % 10000))
    BELUGA_MYSQL_PORT=0 BELUGA_POSTGRES_PORT=0 "$server" --data "$data/data" --memory 512mb --redis-port $port --redis-appendfsync everysec --metrics-listen off >"$data/log" 2>&1 &
    pid=$!
    until redis-cli -p $port ping >/dev/null 2>&1; do
        kill -0 "$pid" 2>/dev/null || { cat "$data/log" >&2; say "the server does not start"; exit 70; }
        sleep 0.1
    done
}

files=("$@")
[ ${#files[@]} != 0 ] || mapfile -t files < <(sed -n 's/^\(file\|own\) //p' "$expected")
status=0 passed=0 known=0 unknown=0
for file in "${files[@]}"; do
    if grep -q -x -F "own $file" "$expected"; then
        ln -sf "$starter" "$dir/redis-$version/src/redis-server"
        mode=(--baseport $((20000 + RANDOM % 9000)) --portcount 1000 --tags '-needs:config-maxmemory')
    else
        ln -sf "$(command -v redis-server)" "$dir/redis-$version/src/redis-server"
        start
        # Tests that set maxmemory are left out: it is the setting memory, which takes effect at the next start, and some leave a MULTI open when it is refused.
        mode=(--host 127.0.0.1 --port $port --tags '-needs:repl -needs:config-maxmemory -slow')
    fi
    log="$dir/${file//\//_}.log"
    skips=()
    while IFS= read -r name; do skips+=(--skiptest "$name"); done < <(sed -n "s|^skip $file: ||p" "$expected")
    # durable: an error in one test does not end the file. The suite leaves processes behind where a test ends early; they are of its group.
    (cd "$dir/redis-$version" && SERVER_UNDER_TEST="$server" exec setsid timeout "$seconds" ./runtest "${mode[@]}" --single "$file" --durable --clients 1 \
        "${skips[@]}" --no-latency >"$log" 2>&1 </dev/null) &
    runner=$!
    wait $runner || true
    stop_suite
    sed -i 's/\x1b\[[0-9;]*m//g' "$log"
    if ! grep -q '^\[1/1 done\]' "$log" || grep -q '^\[exception\]' "$log"; then
        say "FAILED $file: not run to its end ($log)"
        status=1
    fi
    [ -z "$pid" ] || kill -0 "$pid" 2>/dev/null || { say "FAILED $file: the server ended"; status=1; }
    # A configuration that the server refuses is none of a test.
    if grep -q "^\[err\]: Can't start the Redis server" "$log"; then
        say "FAILED $file: a server does not start: $(sed -n 's/^refused: //p' "$log" | head -n 1) ($log)"
        status=1
    fi
    good=$(grep -c '^\[ok\]: ' "$log" || true)
    passed=$((passed + good))
    # The suite skips what it cannot run against a server that it has not started, and calls a file without any test a success.
    [ $((good + $(grep -c '^\[err\]: ' "$log" || true))) != 0 ] || { say "FAILED $file: not one test ran ($log)"; status=1; }
    while IFS= read -r name; do
        if grep -q -x -F -A1 -- "$file: $name" "$expected"; then
            known=$((known + 1))
        else
            unknown=$((unknown + 1)) status=1
            say "FAILED $file: $name ($log)"
        fi
    done < <(sed -n "s|^\[err\]: \(.*\) in tests/$file.tcl\$|\1|p" "$log" | sort -u)
    stop
done
echo "$passed passed, $unknown failed, $known expected differences"
exit $status
