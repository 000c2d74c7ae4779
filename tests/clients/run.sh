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

# The suites of a whole run. As many as there are processors, at most four, run at a time, the longest first; each prints its output when it ends.
side_by_side="
    redis_save two_faces_collections redis_source postgres_dump celery sidekiq postgres_temporary tpch postgres_anomalies crash postgres_keys dump redis_import_aof postgres_beside differential
    redis_migrate mysql_differential redis_replica postgres_definitions mysql_anomalies mysql_crash mysql_dump two_faces postgres_crash mysql_undo redis_import redis_shutdown
    cli python node java errors tls introspection messages older_folders older_snapshots blocking tracking cluster queue_crash bullmq ioredis
    postgres_logins postgres_python postgres_cursors postgres_sessions postgres_asyncpg postgres_go postgres_node postgres_java postgres_catalogs postgres_indexes postgres_gin postgres_sqlalchemy
    mysql_logins mysql_rights mysql_views two_faces_crash two_doors_types mysql_python mysql_wire mysql_track mysql_sqllogic mysql_load mysql_sqlalchemy mysql_django mysql_go mysql_node
    mysql_php mysql_typeorm mysql_java mysql_metadata mysql_tools mysql_beside mysql_values mysql_charsets mysql_schemas xrpc xrpc_rust xrpc_python
"
# Those that bound times or the memory of the process, count processor time, fill a device or load every processor, one after the other.
alone="large memory hostile postgres_hostile mysql_crowd mysql_waiters postgres_waiters descriptors device disk_full tpcc bench_types sysbench postgres_sysbench"

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

# Compiles the Java classes of one suite, in a folder of their own because suites run side by side. Prints the class path.
java_classes() {
    local folder="target/clients/java/classes-$1"
    mkdir -p "$folder" && javac -encoding UTF-8 -cp 'target/clients/java/lib/*' -d "$folder" $here/java/Tally.java "$here/java/$1.java" >&2 &&
        echo "$folder:target/clients/java/lib/*"
}

# Puts the Node suites beside their packages, unless they are there: another one may be running.
node_suites() {
    flock target/clients/node.lock cp --update $here/node/*.mjs target/clients/node/
}

suite() {
    local begin=$SECONDS
    echo "-- $1"
    case "$1" in
    cli) "$python" $here/python/cli.py ;;
    python) "$python" $here/python/redis_py.py ;;
    node) node_suites && "$python" $here/python/with_server.py node target/clients/node/client.mjs ;;
    bullmq) node_suites && "$python" $here/python/with_server.py node target/clients/node/bull.mjs ;;
    ioredis)
        node_suites && "$python" $here/python/with_server.py node target/clients/node/ioredis.mjs &&
            BELUGA_REDIS_CLUSTER_ENABLED=on "$python" $here/python/with_server.py node target/clients/node/ioredis.mjs cluster
        ;;
    sidekiq)
        if ruby -rsidekiq -e 'exit' 2>/dev/null; then
            "$python" $here/python/with_server.py ruby $here/ruby/jobs.rb
        else
            echo "skipped: no Sidekiq"
            echo "0 passed, 0 failed, 1 skipped"
        fi
        ;;
    java)
        local classes
        classes=$(java_classes Client) && "$python" $here/python/with_server.py java -cp "$classes" Client
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
    redis_shutdown) "$python" $here/python/redis_shutdown.py ;;
    redis_save) "$python" $here/python/redis_save.py --seed 20261130 ;;
    redis_import_aof) "$python" $here/python/redis_import_aof.py --seed 20261129 ;;
    redis_replica) "$python" $here/python/redis_replica.py --seed 20261130 --rounds "${ROUNDS:-4}" ;;
    redis_source) "$python" $here/python/redis_source.py --seed 20261201 --rounds "${ROUNDS:-2}" ;;
    redis_migrate) "$python" $here/python/redis_migrate.py --seed 20261202 --rounds "${ROUNDS:-3}" ;;
    messages) "$python" $here/python/messages.py --seed 20261126 ;;
    mysql_logins) "$python" $here/python/mysql_logins.py ;;
    postgres_logins) "$python" $here/python/postgres_logins.py ;;
    postgres_python) "$python" $here/python/postgres_python.py ;;
    postgres_sqlalchemy) "$python" $here/python/postgres_sqlalchemy.py ;;
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
    postgres_node) node_suites && "$python" $here/python/with_server.py --postgres node target/clients/node/postgres.mjs ;;
    postgres_java)
        local classes
        classes=$(java_classes Postgres) && "$python" $here/python/with_server.py --postgres java -cp "$classes" Postgres
        ;;
    postgres_cursors) "$python" $here/python/postgres_cursors.py ;;
    postgres_temporary) "$python" $here/python/postgres_temporary.py ;;
    postgres_beside) "$python" $here/python/postgres_beside.py ${BESIDE_ARGS---seconds 20} && ! "$python" $here/python/postgres_beside.py --canary >target/clients/postgres_canary.log 2>&1 && grep -q -e '^FAILED ' -e '1 skipped$' target/clients/postgres_canary.log ;;
    postgres_catalogs) "$python" $here/python/postgres_catalogs.py ${CATALOGS_ARGS---seed 20261127} ;;
    postgres_dump) "$python" $here/python/postgres_dump.py ;;
    postgres_definitions)
        # A known history here, as in `differential`.
        "$python" $here/python/postgres_definitions.py --rounds "${ROUNDS:-3}" ${DEFINITIONS_ARGS---seed 20261126 --transactions 300 --seconds 90}
        ;;
    postgres_indexes) "$python" $here/python/postgres_indexes.py --rounds "${ROUNDS:-2}" ;;
    postgres_gin) "$python" $here/python/postgres_gin.py --rounds "${ROUNDS:-2}" ;;
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
    mysql_node) node_suites && "$python" $here/python/with_server.py --mysql node target/clients/node/mysql.mjs ;;
    mysql_php) "$python" $here/python/with_server.py --mysql php $here/php/mysql.php ;;
    mysql_typeorm) node_suites && "$python" $here/python/with_server.py --mysql node target/clients/node/orm.mjs ;;
    mysql_beside) "$python" $here/python/mysql_beside.py && ! "$python" $here/python/mysql_beside.py --canary >target/clients/beside_canary.log 2>&1 ;;
    mysql_tools) "$python" $here/python/mysql_tools.py ;;
    mysql_metadata)
        local classes
        classes=$(java_classes Metadata) && "$python" $here/python/with_server.py --mysql java -cp "$classes" Metadata
        ;;
    mysql_java)
        local classes
        classes=$(java_classes Mysql) && "$python" $here/python/with_server.py --mysql java -cp "$classes" Mysql
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
    esac || {
        failed=1
        echo "FAILED suite $1"
    }
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
    TEMPORARY_TABLES=10000 suite postgres_temporary
    suite hostile
    HOSTILE_ARGS=--soak suite postgres_hostile
elif [ "${1:-}" = one ]; then
    mkdir -p target/clients/log
    suite "$2" >"target/clients/log/$2.log" 2>&1
    flock target/clients/print.lock cat "target/clients/log/$2.log"
elif [ $# -gt 0 ]; then
    for name in "$@"; do suite "$name"; done
else
    lanes=$(($(nproc) < 4 ? $(nproc) : 4))
    # shellcheck disable=SC2086
    printf '%s\n' $side_by_side | xargs -P "$lanes" -n 1 $here/run.sh one || failed=1
    for name in $alone; do suite "$name"; done
fi
exit $failed
