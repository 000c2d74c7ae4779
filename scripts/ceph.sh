#!/usr/bin/env bash
# A small Ceph cluster on loopback, for tests of shared storage: one monitor and three OSDs that keep their data in files of a folder. Needs neither systemd nor
# block devices nor root. Debian's packages: ceph-mon, ceph-osd, ceph-common, librados2.
#
#   scripts/ceph.sh start FOLDER    creates a cluster in FOLDER and waits until it serves (about 12 s), or starts the one that is there again
#   scripts/ceph.sh stop FOLDER     ends its processes and removes FOLDER; with KEEP=1 the data stay
#   scripts/ceph.sh test            runs the tests that need a cluster, on one of their own; without Ceph's programs they are skipped, and it says so
#
# The configuration is FOLDER/ceph.conf, the pool `beluga`. CEPH_PORT is the first port of the monitor (13300). A stop kills the processes: the cluster is for tests.
set -euo pipefail
port=${CEPH_PORT:-13300}
pool=beluga
osds=3

say() { printf 'ceph: %s\n' "$*" >&2; }

programs() {
    local program
    for program in ceph-mon ceph-osd ceph ceph-authtool monmaptool rados; do
        PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null 2>&1 || return 1
    done
}

# Repeats a command until it succeeds.
await() {
    local until=$((SECONDS + 120))
    while ! "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$until" ] || { say "not reached in 120 s: $*; logs are in $folder"; exit 1; }
        sleep 0.1
    done
}

client() { timeout 30 ceph -c "$folder/ceph.conf" --connect-timeout 5 "$@"; }
put_object() { timeout 30 rados -c "$folder/ceph.conf" -p "$pool" put ready "$folder/ceph.conf"; }
all_up() { [ "$(client osd stat -f json | grep -o '"num_up_osds":[0-9]*' | cut -d: -f2)" = "$osds" ]; }

configure() {
    cat >"$folder/ceph.conf" <<CONF
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon host = [v2:127.0.0.1:$port,v1:127.0.0.1:$((port + 100))]
mon initial members = a
run dir = $folder
admin socket = $folder/\$cluster-\$name.asok
log file = $folder/\$cluster-\$name.log
pid file = $folder/\$name.pid
keyring = $folder/\$name.keyring
crash dir = $folder/crash
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
ms bind ipv6 = false
public network = 127.0.0.1/32
cluster network = 127.0.0.1/32
osd pool default size = 3
osd pool default min size = 2
osd pool default pg autoscale mode = off
[client]
keyring = $folder/client.admin.keyring
log file =
admin socket =
[mon]
mon data = $folder/mon.\$id
mon cluster log file = $folder/cluster.log
mon allow pool delete = true
mon max pg per osd = 2000
mon data avail crit = 1
mon data avail warn = 1
auth allow insecure global id reclaim = false
mon lease = 2
mon osd min down reporters = 1
mon osd adjust heartbeat grace = false
osd heartbeat grace = 4
[osd]
osd data = $folder/osd.\$id
osd objectstore = bluestore
osd heartbeat interval = 1
osd heartbeat grace = 4
osd crush update on start = true
bluestore block size = $((20 << 30))
bluestore block create = true
bluestore block db create = false
bluestore block wal create = false
bluestore fsck on mount = false
bluestore cache autotune = false
bluestore cache size = $((64 << 20))
osd memory target = 939524096
osd scrub begin hour = 0
osd scrub end hour = 0
osd class load list = *
osd class default list = *
CONF
    local osd
    # Three hosts, so that the stock rule, a replica on each host, holds.
    for osd in $(seq 0 $((osds - 1))); do
        printf '[osd.%s]\ncrush location = root=default host=h%s\n' "$osd" "$osd" >>"$folder/ceph.conf"
    done
}

create_monitor() {
    local conf=$folder/ceph.conf fsid
    fsid=$(sed -n 's/^fsid = //p' "$conf")
    ceph-authtool --create-keyring "$folder/mon.a.keyring" --gen-key -n mon. --cap mon 'allow *' >/dev/null
    ceph-authtool --create-keyring "$folder/client.admin.keyring" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *' >/dev/null
    ceph-authtool "$folder/mon.a.keyring" --import-keyring "$folder/client.admin.keyring" >/dev/null
    monmaptool --create --fsid "$fsid" --addv a "[v2:127.0.0.1:$port,v1:127.0.0.1:$((port + 100))]" \
        --enable-all-features --set-min-mon-release pacific "$folder/monmap" >/dev/null
    ceph-mon -c "$conf" --mkfs -i a --monmap "$folder/monmap" --keyring "$folder/mon.a.keyring" >/dev/null 2>&1
    ceph-mon -c "$conf" -i a
    await client quorum_status
}

create_osd() {
    local osd=$1 id secret
    mkdir -p "$folder/osd.$osd"
    id=$(cat /proc/sys/kernel/random/uuid)
    secret=$(ceph-authtool --gen-print-key)
    client osd new "$id" "$osd" -i - <<<"{\"cephx_secret\": \"$secret\"}" >/dev/null
    printf '[osd.%s]\n\tkey = %s\n' "$osd" "$secret" >"$folder/osd.$osd.keyring"
    ceph-osd -c "$folder/ceph.conf" -i "$osd" --mkfs --osd-uuid "$id" >"$folder/osd.$osd.mkfs.log" 2>&1
    ceph-osd -c "$folder/ceph.conf" -i "$osd" >/dev/null 2>&1
}

start() {
    local osd
    if [ -e "$folder/ceph.conf" ]; then
        ceph-mon -c "$folder/ceph.conf" -i a >/dev/null 2>&1
        for osd in $(seq 0 $((osds - 1))); do ceph-osd -c "$folder/ceph.conf" -i "$osd" >/dev/null 2>&1; done
    else
        mkdir -p "$folder"
        configure
        create_monitor
        for osd in $(seq 0 $((osds - 1))); do create_osd "$osd" & done
        wait
        await all_up
        client osd pool create "$pool" 16 16 replicated >/dev/null 2>&1
        client osd pool application enable "$pool" beluga >/dev/null 2>&1
    fi
    await put_object
}

# Waits for the end of processes that are not children of this shell.
stop() {
    local file pid
    for file in "$folder"/*.pid; do
        [ -s "$file" ] || continue
        pid=$(cat "$file")
        if grep -q ceph "/proc/$pid/comm" 2>/dev/null; then
            kill -9 "$pid" || true
            while [ -e "/proc/$pid" ]; do sleep 0.05; done
        fi
        rm -f "$file"
    done
    [ -n "${KEEP:-}" ] || [ ! -e "$folder/ceph.conf" ] || rm -rf "$folder"
}

PATH="$PATH:/usr/sbin:/sbin"
case "${1:-}" in
start | stop)
    [ -n "${2:-}" ] || { sed -n '2,9p' "$0"; exit 64; }
    programs || { say "Ceph's programs are not installed (ceph-mon, ceph-osd, ceph-common)"; exit 69; }
    folder=$(realpath -m "$2")
    "$1"
    ;;
test)
    cd "$(dirname "$0")/.."
    if ! programs; then
        say "skipped: Ceph's programs are not installed (ceph-mon, ceph-osd, ceph-common)"
        exit 0
    fi
    folder=$PWD/target/ceph
    stop
    trap stop EXIT
    start
    # Of the whole workspace, as it is built by then: of these crates alone, cargo would build the server again with fewer features of its libraries.
    CEPH_CONF=$folder/ceph.conf BELUGA_RADOS_POOL=$pool \
        scripts/cargo.sh test --workspace --test it -- objects:: shared:: lease:: copies:: --nocapture
    ;;
*)
    sed -n '2,9p' "$0"
    exit 64
    ;;
esac
