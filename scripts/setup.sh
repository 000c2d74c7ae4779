#!/usr/bin/env bash
# Installs what a target of the Makefile needs and this machine lacks.
#
#   scripts/setup.sh run        a C compiler: the linker, and the few C files among the dependencies
#   scripts/setup.sh test       and redis-server, redis-tools, MariaDB's client and server, sysbench, Ceph, and the Python, Node, PHP, Java and Go clients of tests/clients; PostgreSQL 16 below target/postgres, where it can be had
#   scripts/setup.sh soak       and a MySQL server below target/mysql, where it can be had
#   scripts/setup.sh bench      and redis-server, redis-tools, MariaDB and sysbench to compare with
#   scripts/setup.sh licences   cargo-deny
#   scripts/setup.sh miri       a nightly compiler with Miri
#   scripts/setup.sh fuzz       a nightly compiler and cargo-fuzz, the latter under target/tools
#
# Uses apt-get, as root or through sudo, without asking questions. What is there already is left alone, so that a second run takes no time
# and needs no network. Downloads are tried again when they fail.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }
die() {
    printf 'setup: %s\n' "$*" >&2
    exit 69
}

# Networks fail for a moment. Waits 3, 9 and 27 seconds between the four tries.
retry() {
    local pause=3
    for _ in 1 2 3; do
        if "$@"; then return 0; fi
        say "failed, trying again in ${pause} s: $*"
        sleep "$pause"
        pause=$((pause * 3))
    done
    "$@"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        # In CI nobody can type a password: fail instead of waiting for one.
        if [ "${CI:-}" = true ]; then sudo -n "$@"; else sudo "$@"; fi
    else
        die "installing packages needs root or sudo; run this as root: $*"
    fi
}

apt_packages=()
apt_update() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq update; }
apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
        install -y -qq --no-install-recommends "$@" >target/setup-apt.log 2>&1 || {
        tail -n 20 target/setup-apt.log >&2
        return 1
    }
}

# want PACKAGES... -- COMMAND...   remembers the packages if the command fails
want() {
    local packages=()
    while [ "$1" != -- ]; do
        packages+=("$1")
        shift
    done
    shift
    "$@" >/dev/null 2>&1 || apt_packages+=("${packages[@]}")
}

install_wanted() {
    [ ${#apt_packages[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null 2>&1 || die "this machine has no apt-get; install by hand: ${apt_packages[*]}"
    say "installing ${apt_packages[*]}"
    mkdir -p target
    retry apt_update
    retry apt_install "${apt_packages[@]}"
    # These packages start servers of their own; they are wanted here only to compare with.
    local package unit
    for package in redis-server mariadb-server; do
        unit=${package/mariadb-server/mariadb}
        if [[ " ${apt_packages[*]} " == *" $package "* ]] && [ -d /run/systemd/system ]; then
            as_root systemctl disable --quiet --now "$unit" || true
        fi
    done
}

has() { command -v "$1"; }

rust_tools() {
    scripts/cargo.sh fmt --version >/dev/null 2>&1 && scripts/cargo.sh clippy --version >/dev/null 2>&1 && return 0
    PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    command -v rustup >/dev/null 2>&1 || die "rustfmt and clippy are missing; install them with your Rust"
    say "adding rustfmt and clippy"
    retry rustup component add rustfmt clippy
}

# nightly COMPONENTS...
nightly() {
    PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    command -v rustup >/dev/null 2>&1 || die "this needs a nightly compiler, and rustup to install it"
    rustup toolchain list | grep -q '^nightly' || {
        say "installing a nightly compiler"
        retry rustup toolchain install nightly --profile minimal
    }
    for component in "$@"; do
        rustup component list --toolchain nightly --installed | grep -q "^$component" ||
            retry rustup component add --toolchain nightly "$component"
    done
}

# A client is installed again only when its list of dependencies has changed since. fresh LIST MARK tells.
fresh() { [ -e "$2" ] && cmp -s "$1" "$2"; }

# Files that Java writes beside the code go to target/ too, so that the checkout stays clean.
clients=target/clients

python_client() {
    local list=tests/clients/python/requirements.txt mark=$clients/python.installed
    [ -e "$list" ] || return 0
    fresh "$list" "$mark" && return 0
    say "Python clients ($(tr '\n' ' ' <"$list"))"
    mkdir -p "$clients"
    python3 -m venv "$clients/venv"
    retry "$clients/venv/bin/pip" install --quiet --disable-pip-version-check -r "$list"
    cp "$list" "$mark"
}

node_client() {
    local list=tests/clients/node/package.json mark=$clients/node.installed
    [ -e "$list" ] || return 0
    fresh "$list" "$mark" && return 0
    say "Node client"
    mkdir -p "$clients/node"
    cp tests/clients/node/package*.json "$clients/node/"
    (cd "$clients/node" && retry npm install --silent --no-audit --no-fund --no-update-notifier)
    cp "$list" "$mark"
}

java_client() {
    local list=tests/clients/java/pom.xml mark=$clients/java.installed
    [ -e "$list" ] || return 0
    fresh "$list" "$mark" && return 0
    say "Java client"
    mkdir -p "$clients/java"
    retry mvn --batch-mode --quiet --file "$list" dependency:copy-dependencies "-DoutputDirectory=$PWD/$clients/java/lib"
    cp "$list" "$mark"
}

# A MySQL server to compare values with; where it cannot be had its recorded answers are enough.
mysql_server() {
    [ -e target/mysql/installed ] && return 0
    say "MySQL server"
    scripts/mysql.sh install || say "no MySQL server here: only its recorded answers are compared"
}

# psql, pgbench and a PostgreSQL server; where they cannot be had their suites skip what needs them.
postgres_programs() {
    [ -e target/postgres/installed ] && return 0
    say "PostgreSQL 16"
    scripts/postgres.sh install || say "no PostgreSQL here: its programs are not tried"
}

# Schemas of applications whose licences keep them out of this repository, from Debian's packages. Without them their suite skips them.
schemas() {
    local folder=$PWD/$clients/schemas work package
    [ -e $clients/schemas.installed ] && return 0
    command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || return 0
    say "schemas of applications"
    work=$(mktemp -d)
    mkdir -p "$folder"
    for package in pdns-backend-mysql roundcube-core icinga2-ido-mysql phpmyadmin bacula-director-mysql zabbix-server-mysql mediawiki; do
        (cd "$work" && apt-get -o APT::Sandbox::User=root -qq download "$package" >/dev/null 2>&1 && dpkg-deb -x "$package"_*.deb .) || say "no package $package here"
    done
    (
        cd "$work/usr/share" 2>/dev/null || exit 0
        keep() { [ ! -e "$2" ] || cp "$2" "$folder/$1"; }
        keep powerdns.sql pdns-backend-mysql/schema/schema.mysql.sql
        keep roundcube.sql roundcube/SQL/mysql.initial.sql
        keep icinga-ido.sql icinga2-ido-mysql/schema/mysql.sql
        keep phpmyadmin.sql phpmyadmin/sql/create_tables.sql
        keep bacula.sql dbconfig-common/data/bacula-director-mysql/install/mysql
        keep zabbix.sql.gz zabbix-server-mysql/schema.sql.gz
        keep mediawiki.sql mediawiki/maintenance/tables-generated.sql
    )
    rm -rf "$work"
    touch $clients/schemas.installed
}

go_client() {
    local list=tests/clients/go/go.sum mark=$clients/go.installed
    [ -e "$list" ] || return 0
    fresh "$list" "$mark" && return 0
    # The driver wants Go 1.21; where a package manager has an older one, its suite is skipped.
    (cd tests/clients/go && GOTOOLCHAIN=local go list >/dev/null 2>&1) || { say "Go is older than the driver wants: no Go client"; return 0; }
    say "Go client"
    mkdir -p "$clients"
    (cd tests/clients/go && retry go mod download)
    cp "$list" "$mark"
}

for_build() { want build-essential -- has cc; }
for_peers() {
    want redis-server -- has redis-server
    want redis-tools -- has redis-benchmark
}

case "${1:-}" in
run)
    for_build
    install_wanted
    ;;
bench)
    for_build
    for_peers
    want mariadb-client -- has mariadb
    want mariadb-server -- has mariadbd
    want sysbench -- has sysbench
    install_wanted
    ;;
test | soak)
    for_build
    for_peers
    want python3 python3-venv -- python3 -c 'import venv, ensurepip'
    want openssl -- has openssl
    want nodejs npm -- has npm
    want mariadb-client -- has mariadb
    want mariadb-server -- has mariadbd
    want sysbench -- has sysbench
    want golang-go -- has go
    want php-cli php-mysql -- php -r 'exit((int) !(extension_loaded("pdo_mysql") && extension_loaded("mysqli")));'
    want ruby-sidekiq -- ruby -rsidekiq -e exit
    want default-jdk-headless -- has javac
    want maven -- has mvn
    want ceph-mon ceph-osd ceph-common librados2 -- has ceph-osd
    install_wanted
    rust_tools
    python_client
    node_client
    java_client
    go_client
    postgres_programs
    schemas
    [ "$1" = test ] || mysql_server
    ;;
licences)
    for_build
    install_wanted
    scripts/cargo.sh deny --version >/dev/null 2>&1 || {
        say "building cargo-deny"
        retry scripts/cargo.sh install --quiet --locked cargo-deny
    }
    ;;
miri)
    for_build
    install_wanted
    nightly miri rust-src
    ;;
fuzz)
    for_build
    want build-essential -- has c++
    install_wanted
    nightly
    PATH="$PWD/target/tools/bin:$PATH"
    scripts/cargo.sh fuzz --version >/dev/null 2>&1 || {
        say "building cargo-fuzz"
        retry scripts/cargo.sh install --quiet --locked --root target/tools cargo-fuzz
    }
    ;;
*)
    sed -n '2,14s/^# \{0,1\}//p' "$0"
    exit 64
    ;;
esac
