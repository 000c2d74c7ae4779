#!/usr/bin/env bash
# Installs and runs a MySQL server that tests compare with. Debian's stable release has none; its unstable distribution does, built against newer
# libraries. The packages are unpacked into target/mysql, with the libraries and the loader that they need, and nothing of the system is touched.
#
#   scripts/mysql.sh install            unpacks the server into target/mysql (about 70 MB of packages); does nothing if it is there
#   scripts/mysql.sh start DATA PORT    initialises the folder DATA if it is empty and serves on 127.0.0.1:PORT, root without a password; prints the process id
#   scripts/mysql.sh stop DATA          stops the server of that folder and waits until it has ended
#   scripts/mysql.sh version            prints the server's version
#
# MYSQL_DIR names another folder than target/mysql. Exit code 69: the packages cannot be had here; whoever wants to compare skips.
set -euo pipefail
cd "$(dirname "$0")/.."
dir="${MYSQL_DIR:-$PWD/target/mysql}"
root="$dir/root"

say() { printf 'mysql: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 69
}

# Lists and packages of unstable live below $dir/apt; apt's own configuration, state and cache stay as they are. An empty status file makes apt
# name every package that the server depends on, installed here or not.
apt() {
    local tool=$1
    shift
    "$tool" -o "Dir::Etc::sourcelist=$dir/apt/sources.list" -o Dir::Etc::sourceparts=/nonexistent -o "Dir::State=$dir/apt/state" \
        -o "Dir::State::status=$dir/apt/state/status" -o "Dir::Cache=$dir/apt/cache" -o Acquire::Retries=3 -o Acquire::Languages=none \
        -o APT::Sandbox::User=root "$@"
}

install() {
    [ -x "$root/usr/sbin/mysqld" ] && [ -e "$dir/installed" ] && return 0
    [ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || die "no packages for this machine"
    command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || die "this machine has no apt-get"
    say "unpacking a MySQL server into $dir"
    rm -rf "$dir"
    mkdir -p "$dir/apt/state/lists/partial" "$dir/apt/cache/archives/partial" "$dir/debs" "$root"
    : >"$dir/apt/state/status"
    local key=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -e $key ] || die "no $key to check packages with"
    # The mirror that this machine's own sources name.
    local mirror
    mirror=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -E '/debian/?$' | head -n 1)
    [ -n "$mirror" ] || die "this machine's apt knows no Debian mirror"
    echo "deb [signed-by=$key] $mirror unstable main" >"$dir/apt/sources.list"
    apt apt-get -qq update >"$dir/apt.log" 2>&1 || die "the list of packages cannot be fetched ($dir/apt.log)"
    # Perl is wanted by the package's scripts, not by the server.
    local packages
    packages=$(apt apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances mysql-server-core 2>>"$dir/apt.log" |
        grep -E '^[a-z]' | grep -v -E '^(perl|libperl|libgdbm)' | sort -u)
    [ -n "$packages" ] || die "unstable has no mysql-server-core ($dir/apt.log)"
    # shellcheck disable=SC2086
    (cd "$dir/debs" && apt apt-get -qq download $packages >>"$dir/apt.log" 2>&1) || die "the packages cannot be fetched ($dir/apt.log)"
    local package
    for package in "$dir"/debs/*.deb; do dpkg-deb -x "$package" "$root"; done
    rm -rf "$dir/debs" "$dir/apt/cache"
    server --version >"$dir/version" 2>>"$dir/apt.log" || die "the server does not run here ($dir/apt.log)"
    touch "$dir/installed"
}

# Becomes the unpacked server, by its own loader and libraries.
become_server() {
    local libraries="$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu:$root/usr/lib/mysql/private"
    local loader="$root/usr/lib64/ld-linux-x86-64.so.2"
    [ -e "$loader" ] || loader=$(find "$root" -name ld-linux-x86-64.so.2 | head -n 1)
    OPENSSL_CONF=/dev/null OPENSSL_MODULES="$root/usr/lib/x86_64-linux-gnu/ossl-modules" \
        exec "$loader" --library-path "$libraries" "$root/usr/sbin/mysqld" --no-defaults "$@"
}

server() { (become_server "$@"); }

options() {
    printf '%s\n' "--basedir=$root/usr" "--lc-messages-dir=$root/usr/share/mysql" "--character-sets-dir=$root/usr/share/mysql/charsets" \
        "--plugin-dir=$root/usr/lib/mysql/plugin" "--datadir=$1/data" "--tmpdir=$1" "--log-error=$1/log.err"
    [ "$(id -u)" != 0 ] || echo --user=root
}

start() {
    local data=$1 port=$2
    [ -e "$dir/installed" ] || die "not installed; scripts/mysql.sh install"
    mkdir -p "$data"
    data=$(cd "$data" && pwd)
    local -a options
    mapfile -t options < <(options "$data")
    if [ ! -e "$data/data/mysql.ibd" ]; then
        rm -rf "$data/data"
        server "${options[@]}" --initialize-insecure >"$data/start.log" 2>&1 || die "cannot initialise $data (its files log.err and start.log say why)"
    fi
    # A server for comparing: nothing that it answers must outlive it.
    become_server "${options[@]}" --bind-address=127.0.0.1 --port="$port" --mysqlx=OFF --socket="$data/socket" --pid-file="$data/pid" --skip-log-bin \
        --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=OFF --innodb-buffer-pool-size=32M --performance-schema=OFF \
        --secure-file-priv= --local-infile=ON >>"$data/start.log" 2>&1 </dev/null &
    local pid=$!
    disown
    local try
    for try in $(seq 600); do
        if grep -q 'ready for connections.*port: '"$port" "$data/log.err" 2>/dev/null && [ -s "$data/pid" ] && [ "$(cat "$data/pid")" = "$pid" ]; then
            echo "$pid"
            return 0
        fi
        kill -0 "$pid" 2>/dev/null || die "the server ended ($data/log.err, start.log)"
        sleep 0.1
    done
    kill "$pid"
    die "no server on port $port after $try tries ($data/log.err)"
}

stop() {
    local pid
    pid=$(cat "$1/pid" 2>/dev/null) || return 0
    kill "$pid" 2>/dev/null || return 0
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}

case "${1:-}" in
install) install ;;
start) start "$2" "$3" ;;
stop) stop "$2" ;;
version) cat "$dir/version" ;;
*)
    sed -n '2,/^set/p' "$0" | sed -e '/^set/d' -e 's/^# \{0,1\}//'
    exit 64
    ;;
esac
