#!/usr/bin/env bash
# Runs the client suites: all of them, or those named. `soak` runs crash and differential for SOAK_MINUTES.
set -uo pipefail
cd "$(dirname "$0")/../.."
export SERVER_UNDER_TEST="${SERVER_UNDER_TEST:-$PWD/target/debug/beluga}"
[ -x "$SERVER_UNDER_TEST" ] || { echo "no server at $SERVER_UNDER_TEST; build it, or name one in SERVER_UNDER_TEST" >&2; exit 66; }
# Suites that speak MySQL or PostgreSQL name their port.
export BELUGA_MYSQL_PORT=0 BELUGA_POSTGRES_PORT=0
here=tests/clients
python=target/clients/venv/bin/python
failed=0

# A spoilt reply must be found, and be what fails.
canary() {
    ! "$python" $here/python/differential.py --seconds 5 --seed 1 --rounds 1 --canary >target/clients/canary.log 2>&1 &&
        grep -q '^FAILED round 1 ' target/clients/canary.log
}

mysql_canary() {
    ! "$python" $here/python/mysql_differential.py --seed 1 --rounds 1 --canary >target/clients/mysql_canary.log 2>&1 &&
        grep -q -e '^FAILED round 0 ' -e '^0 passed, 0 failed, 1 skipped' target/clients/mysql_canary.log
}

# TPC-H's queries over few rows: the answers of MariaDB.
tpch() {
    if [ ! -x /usr/sbin/mariadbd ]; then
        echo "skipped: no MariaDB to compare with"
        echo "0 passed, 0 failed, 1 skipped"
        return 0
    fi
    cargo build -q -p bench &&
        target/debug/bench tpch --quick --scale 0.01 --rounds 1 --memory 256 --beluga "$SERVER_UNDER_TEST" >target/clients/tpch.log 2>&1
    local status=$?
    local wrong
    wrong=$(grep -c -e DIFFERENT target/clients/tpch.log)
    grep -e DIFFERENT -e '^bench: ' target/clients/tpch.log
    echo "$(($(grep -c '^tpch: Q' target/clients/tpch.log) - wrong)) passed, $wrong failed"
    return $status
}

# Commands of the bench's table for a moment each, through both of its clients: an error reply fails it.
bench_types() {
    if ! command -v redis-benchmark >/dev/null; then
        echo "skipped: no redis-benchmark"
        echo "0 passed, 0 failed, 1 skipped"
        return 0
    fi
    cargo build -q -p bench &&
        target/debug/bench types --quick --seconds 0.02 --clients -P,one-by-one --only LPOP,LRANGE_100,ZPOPMIN,XREADGROUP,EVAL,PUBLISH,GEOSEARCH \
            --sides beluga,redis-always --beluga "$SERVER_UNDER_TEST" >target/clients/bench_types.log 2>&1
    local status=$?
    grep -e '^bench: ' -e ' x ' target/clients/bench_types.log
    echo "$(grep -c '^types: round' target/clients/bench_types.log) passed, $((status != 0)) failed"
    return $status
}

suite() {
    local begin=$SECONDS
    echo "-- $1"
    case "$1" in
    cli) "$python" $here/python/cli.py ;;
    python) "$python" $here/python/redis_py.py ;;
    node) cp $here/node/*.mjs target/clients/node/ && "$python" $here/python/with_server.py node target/clients/node/client.mjs ;;
    bullmq) cp $here/node/*.mjs target/clients/node/ && "$python" $here/python/with_server.py node target/clients/node/bull.mjs ;;
    java)
        mkdir -p target/clients/java/classes &&
            javac -encoding UTF-8 -cp 'target/clients/java/lib/*' -d target/clients/java/classes $here/java/Tally.java $here/java/Client.java &&
            "$python" $here/python/with_server.py java -cp 'target/clients/java/classes:target/clients/java/lib/*' Client
        ;;
    errors) "$python" $here/python/errors.py ;;
    tls) "$python" $here/python/tls.py ;;
    crash) "$python" $here/python/crash.py --rounds "${ROUNDS:-25}" ;;
    differential)
        # A known history here, so that a run says something of the change it tests; soak draws new ones.
        "$python" $here/python/differential.py --seconds "${SECONDS_DIFFERENTIAL:-90}" ${DIFFERENTIAL_ARGS---seed 20261121 --rounds 100} &&
            canary
        ;;
    disk_full) "$python" $here/python/disk_full.py ;;
    descriptors) "$python" $here/python/descriptors.py ;;
    device) "$python" $here/python/device.py ;;
    memory) "$python" $here/python/memory.py ;;
    introspection) "$python" $here/python/introspection.py ;;
    queue_crash) "$python" $here/python/queue_crash.py ;;
    rq) "$python" $here/python/rq_jobs.py ;;
    celery) "$python" $here/python/celery_tasks.py ;;
    tracking) "$python" $here/python/tracking.py --seed 20261126 ;;
    blocking) "$python" $here/python/blocking.py --seed 20261126 ;;
    older_snapshots) "$python" $here/python/older_snapshots.py --seed 20261126 --rounds "${ROUNDS:-60}" && ! "$python" $here/python/older_snapshots.py --seed 1 --rounds 5 --canary >target/clients/older_canary.log 2>&1 && grep -q '^FAILED ' target/clients/older_canary.log ;;
    older_folders) "$python" $here/python/older_folders.py ;;
    dump) "$python" $here/python/dump.py --seed 20261127 ;;
    redis_import) "$python" $here/python/redis_import.py --seed 20261128 ;;
    redis_save) "$python" $here/python/redis_save.py --seed 20261130 ;;
    redis_import_aof) "$python" $here/python/redis_import_aof.py --seed 20261129 ;;
    redis_replica) "$python" $here/python/redis_replica.py --seed 20261130 --rounds "${ROUNDS:-4}" ;;
    messages) "$python" $here/python/messages.py --seed 20261126 ;;
    mysql_logins) "$python" $here/python/mysql_logins.py ;;
    postgres_logins) "$python" $here/python/postgres_logins.py ;;
    postgres_python) "$python" $here/python/postgres_python.py ;;
    postgres_asyncpg) "$python" $here/python/postgres_asyncpg.py ;;
    postgres_sysbench) "$python" $here/python/postgres_sysbench.py ${SYSBENCH_ARGS-} ;;
    # HOSTILE_ARGS=--all plays all of it.
    postgres_hostile) "$python" $here/python/postgres_hostile.py ${HOSTILE_ARGS-} ;;
    postgres_go)
        if [ -e target/clients/go.installed ]; then
            (cd $here/go && go build -o ../../../target/clients/go-postgres ./postgres) &&
                "$python" $here/python/with_server.py --postgres target/clients/go-postgres
        else
            echo "skipped: no Go that the driver takes"
            echo "0 passed, 0 failed, 1 skipped"
        fi
        ;;
    postgres_node) cp $here/node/*.mjs target/clients/node/ && "$python" $here/python/with_server.py --postgres node target/clients/node/postgres.mjs ;;
    postgres_java)
        mkdir -p target/clients/java/classes &&
            javac -encoding UTF-8 -cp 'target/clients/java/lib/*' -d target/clients/java/classes $here/java/Tally.java $here/java/Postgres.java &&
            "$python" $here/python/with_server.py --postgres java -cp 'target/clients/java/classes:target/clients/java/lib/*' Postgres
        ;;
    postgres_cursors) "$python" $here/python/postgres_cursors.py ;;
    postgres_beside) "$python" $here/python/postgres_beside.py ${BESIDE_ARGS---seconds 20} && ! "$python" $here/python/postgres_beside.py --canary >target/clients/postgres_canary.log 2>&1 && grep -q -e '^FAILED ' -e '1 skipped$' target/clients/postgres_canary.log ;;
    postgres_catalogs) "$python" $here/python/postgres_catalogs.py ${CATALOGS_ARGS---seed 20261127} ;;
    postgres_dump) "$python" $here/python/postgres_dump.py ;;
    postgres_definitions)
        # A known history here, as in `differential`.
        "$python" $here/python/postgres_definitions.py --rounds "${ROUNDS:-3}" ${DEFINITIONS_ARGS---seed 20261126 --transactions 300 --seconds 90}
        ;;
    postgres_indexes) "$python" $here/python/postgres_indexes.py --rounds "${ROUNDS:-2}" ;;
    postgres_roles) "$python" $here/python/postgres_roles.py --seconds "${SECONDS_BESIDE:-30}" ;;
    postgres_crash) "$python" $here/python/postgres_crash.py --rounds "${ROUNDS:-2}" ;;
    mysql_rights) "$python" $here/python/mysql_rights.py ;;
    mysql_views) "$python" $here/python/mysql_views.py ;;
    two_doors_types) "$python" $here/python/two_doors_types.py ;;
    cluster) "$python" $here/python/cluster.py ;;
    two_faces) "$python" $here/python/two_faces.py ;;
    postgres_keys) "$python" $here/python/postgres_keys.py --seed 20261127 --rounds "${ROUNDS:-3}" ;;
    two_faces_collections) "$python" $here/python/two_faces_collections.py --rounds "${ROUNDS:-4}" ;;
    two_faces_crash) "$python" $here/python/two_faces_crash.py --rounds "${ROUNDS:-6}" ;;
    mysql_python) "$python" $here/python/mysql_clients.py ;;
    mysql_wire) "$python" $here/python/mysql_wire.py ;;
    mysql_track) "$python" $here/python/mysql_track.py ;;
    mysql_sqllogic) "$python" $here/python/sqllogic.py && ! "$python" $here/python/sqllogic.py --canary >target/clients/sqllogic_canary.log 2>&1 ;;
    mysql_load) "$python" $here/python/mysql_load.py ;;
    mysql_dump) "$python" $here/python/mysql_dump.py ;;
    mysql_sqlalchemy) "$python" $here/python/mysql_sqlalchemy.py ;;
    mysql_django) "$python" $here/python/mysql_django.py ;;
    mysql_go)
        if [ -e target/clients/go.installed ]; then
            (cd $here/go && go build -o ../../../target/clients/go-client .) &&
                "$python" $here/python/with_server.py --mysql target/clients/go-client
        else
            echo "skipped: no Go that the driver takes"
            echo "0 passed, 0 failed, 1 skipped"
        fi
        ;;
    mysql_node) cp $here/node/*.mjs target/clients/node/ && "$python" $here/python/with_server.py --mysql node target/clients/node/mysql.mjs ;;
    mysql_php) "$python" $here/python/with_server.py --mysql php $here/php/mysql.php ;;
    mysql_typeorm) cp $here/node/*.mjs target/clients/node/ && "$python" $here/python/with_server.py --mysql node target/clients/node/orm.mjs ;;
    mysql_beside) "$python" $here/python/mysql_beside.py && ! "$python" $here/python/mysql_beside.py --canary >target/clients/beside_canary.log 2>&1 ;;
    mysql_tools) "$python" $here/python/mysql_tools.py ;;
    mysql_metadata)
        mkdir -p target/clients/java/classes &&
            javac -encoding UTF-8 -cp 'target/clients/java/lib/*' -d target/clients/java/classes $here/java/Tally.java $here/java/Metadata.java &&
            "$python" $here/python/with_server.py --mysql java -cp 'target/clients/java/classes:target/clients/java/lib/*' Metadata
        ;;
    mysql_java)
        mkdir -p target/clients/java/classes &&
            javac -encoding UTF-8 -cp 'target/clients/java/lib/*' -d target/clients/java/classes $here/java/Tally.java $here/java/Mysql.java &&
            "$python" $here/python/with_server.py --mysql java -cp 'target/clients/java/classes:target/clients/java/lib/*' Mysql
        ;;
    mysql_undo) "$python" $here/python/mysql_undo.py ${UNDO_ARGS-} ;;
    mysql_crash) "$python" $here/python/mysql_crash.py --rounds "${ROUNDS:-8}" ;;
    mysql_differential)
        # As above: a known history here, new ones in soak.
        "$python" $here/python/mysql_differential.py --seconds "${SECONDS_DIFFERENTIAL:-60}" ${MYSQL_DIFFERENTIAL_ARGS---seed 20261121 --rounds 40} &&
            mysql_canary
        ;;
    mysql_charsets) "$python" $here/python/mysql_charsets.py && ! "$python" $here/python/mysql_charsets.py --canary >target/clients/charsets_canary.log 2>&1 && grep -q '^FAILED ' target/clients/charsets_canary.log ;;
    mysql_values) "$python" $here/python/mysql_values.py && ! "$python" $here/python/mysql_values.py --canary >target/clients/values_canary.log 2>&1 && grep -q '^FAILED ' target/clients/values_canary.log ;;
    mysql_schemas) "$python" $here/python/mysql_schemas.py ;;
    large) "$python" $here/python/large.py ${LARGE_ARGS-} ;;
    xrpc) "$python" $here/python/xrpc.py ;;
    xrpc_rust)
        cargo build -q -p beluga-xrpc --example suite &&
            "$python" $here/python/with_server.py --xrpc target/debug/examples/suite
        ;;
    xrpc_python) "$python" $here/python/xrpc_python.py ;;
    hostile) "$python" $here/python/hostile.py ${HOSTILE_ARGS-} ;;
    mysql_crowd) "$python" $here/python/mysql_crowd.py ;;
    mysql_waiters) "$python" $here/python/mysql_waiters.py ${WAITERS_ARGS-} ;;
    postgres_waiters) "$python" $here/python/postgres_waiters.py ${WAITERS_ARGS-} ;;
    tpcc) "$python" $here/python/tpcc.py ;;
    mysql_anomalies) "$python" $here/python/mysql_anomalies.py ;;
    postgres_anomalies) "$python" $here/python/postgres_anomalies.py ;;
    postgres_sessions) "$python" $here/python/postgres_sessions.py ;;
    sysbench) "$python" $here/python/sysbench.py ;;
    tpch) tpch ;;
    bench_types) bench_types ;;
    *) echo "no suite '$1'" >&2; return 64 ;;
    esac || failed=1
    echo "$1: $((SECONDS - begin)) s"
}

if [ "${1:-}" = soak ]; then
    minutes="${SOAK_MINUTES:-60}"
    ROUNDS=$((minutes * 6)) suite crash
    ROUNDS=$((minutes * 3)) suite mysql_crash
    ROUNDS=$((minutes * 3)) suite postgres_crash
    ROUNDS=$((minutes * 3)) suite two_faces_crash
    WAITERS_ARGS="--sessions 10000 --memory 1gb" suite mysql_waiters
    WAITERS_ARGS="--sessions 10000 --memory 512mb" suite postgres_waiters
    LARGE_ARGS="--memory 256mb --megabytes 2500 --long 1000" suite large
    TPCC_SECONDS=$((minutes * 3)) TPCC_WAREHOUSES=4 suite tpcc
    DIFFERENTIAL_ARGS= SECONDS_DIFFERENTIAL=$((minutes * 30)) suite differential
    MYSQL_DIFFERENTIAL_ARGS= SECONDS_DIFFERENTIAL=$((minutes * 15)) suite mysql_differential
    suite mysql_values
    CATALOGS_ARGS="--views $((minutes * 60))" suite postgres_catalogs
    BESIDE_ARGS="--seconds $((minutes * 15)) --seed $RANDOM$RANDOM" suite postgres_beside
    SYSBENCH_ARGS="10 1 8 64 256" suite postgres_sysbench
    suite hostile
    HOSTILE_ARGS=--soak suite postgres_hostile
else
    for name in "${@:-cli python node java errors tls introspection messages dump redis_import redis_import_aof redis_save redis_replica older_folders older_snapshots blocking tracking cluster queue_crash celery bullmq postgres_logins postgres_python postgres_cursors postgres_anomalies postgres_sessions postgres_asyncpg postgres_go postgres_node postgres_java mysql_logins mysql_rights mysql_views two_faces two_faces_collections two_faces_crash postgres_keys two_doors_types mysql_python mysql_wire mysql_track mysql_sqllogic mysql_load mysql_dump mysql_sqlalchemy mysql_django mysql_go mysql_node mysql_php mysql_typeorm mysql_java mysql_metadata mysql_tools mysql_beside mysql_anomalies mysql_differential mysql_values mysql_charsets mysql_schemas mysql_crash postgres_crash postgres_definitions postgres_catalogs postgres_beside postgres_dump postgres_indexes mysql_undo mysql_crowd mysql_waiters postgres_waiters xrpc xrpc_rust xrpc_python hostile postgres_hostile large tpcc tpch bench_types sysbench postgres_sysbench disk_full descriptors device memory crash differential}"; do
        for one in $name; do suite "$one"; done
    done
fi
exit $failed
