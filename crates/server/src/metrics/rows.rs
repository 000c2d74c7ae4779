//! The rows of the metrics page. Names that start with `polarx_rpc_` are those of PolarDB-X's status variables.

use door_mysql::MysqlDoor;
use door_postgres::PostgresDoor;
use door_xrpc::XrpcDoor;
use sql_mysql::Database;

use super::row::CounterKind::{Counter, Gauge, Histogram};
use super::row::{CounterKind, Row, Series, Sources};

const fn row(name: &'static str, kind: CounterKind, read: fn(&Sources, &mut Series<'_>), help: &'static str) -> Row {
    Row { name, kind, help, read }
}

/// Writes the lines of the MySQL door if it is open.
fn mysql(sources: &Sources, series: &mut Series<'_>, write: impl FnOnce(&MysqlDoor, &mut Series<'_>)) {
    if let Some(door) = &sources.mysql {
        write(door, series);
    }
}

/// Writes the lines of the PostgreSQL door if it is open.
fn postgres(sources: &Sources, series: &mut Series<'_>, write: impl FnOnce(&PostgresDoor, &mut Series<'_>)) {
    if let Some(door) = &sources.postgres {
        write(door, series);
    }
}

/// Writes the lines of the XRPC door if it is open.
fn xrpc(sources: &Sources, series: &mut Series<'_>, write: impl FnOnce(&XrpcDoor, &mut Series<'_>)) {
    if let Some(door) = &sources.xrpc {
        write(door, series);
    }
}

/// Writes a figure of the spill files if a door for SQL is open.
fn spilled(sources: &Sources, series: &mut Series<'_>, read: fn(&Database) -> Option<u64>) {
    if let Some(database) = &sources.database {
        series.value(read(database).unwrap_or(0));
    }
}

pub(super) const LIST: &[Row] = &[
    row(
        "beluga_info",
        Gauge,
        |_, o| o.labelled("version", env!("CARGO_PKG_VERSION"), 1),
        "Always 1. The label `version` is the version of the server.",
    ),
    row(
        "beluga_start_time_seconds",
        Gauge,
        |s, o| o.value(s.started_ms / 1000),
        "Time at which the server started, in seconds since 1970 (UTC).",
    ),
    row(
        "beluga_cpu_seconds_total",
        Counter,
        |_, o| o.value(os::cpu::process_cpu_ns() as f64 / 1e9),
        "CPU time of the process, user and system, in seconds.",
    ),
    row("beluga_memory_bytes", Gauge, |_, o| o.value(os::memory::rss_bytes()), "Resident memory of the process (RSS)."),
    row("beluga_memory_limit_bytes", Gauge, |s, o| o.value(s.memory_limit_bytes), "Value of the setting `memory`."),
    // The worker pool.
    row(
        "polarx_rpc_tcp_connections",
        Gauge,
        |s, o| o.value(s.pool.connection_count()),
        "Open connections of all doors.",
    ),
    row(
        "beluga_login_failures_total",
        Counter,
        |s, o| o.value(s.engine.accounts().attempts().counts().0),
        "Failed logins at all doors: wrong password or unknown account.",
    ),
    row(
        "beluga_login_delays_total",
        Counter,
        |s, o| o.value(s.engine.accounts().attempts().counts().1),
        "Logins delayed because of earlier failures.",
    ),
    row(
        "beluga_login_refusals_total",
        Counter,
        |s, o| o.value(s.engine.accounts().attempts().counts().2),
        "Logins refused without a password check because too many logins of the same account and address were already delayed.",
    ),
    row("polarx_rpc_threads", Gauge, |s, o| o.value(s.pool.thread_counts().0), "Worker threads."),
    row(
        "beluga_pool_waiting_threads",
        Gauge,
        |s, o| o.value(s.pool.thread_counts().1),
        "Worker threads that wait inside a request for a page or a lock.",
    ),
    row(
        "beluga_pool_accepted_total",
        Counter,
        |s, o| o.value(s.pool.counters().accepted.get()),
        "Accepted connections.",
    ),
    row(
        "beluga_pool_refused_total",
        Counter,
        |s, o| o.value(s.pool.counters().refused.get()),
        "Connections refused because of `max_connections` or by a door.",
    ),
    row("beluga_pool_closed_total", Counter, |s, o| o.value(s.pool.counters().closed.get()), "Closed connections."),
    row(
        "beluga_pool_received_bytes_total",
        Counter,
        |s, o| o.value(s.pool.counters().bytes_in.get()),
        "Bytes received by all doors.",
    ),
    row(
        "beluga_pool_sent_bytes_total",
        Counter,
        |s, o| o.value(s.pool.counters().bytes_out.get()),
        "Bytes sent by all doors.",
    ),
    row(
        "beluga_pool_wakeups_total",
        Counter,
        |s, o| o.value(s.pool.counters().wakeups.get()),
        "Returns from epoll_wait.",
    ),
    row(
        "beluga_pool_batches_total",
        Counter,
        |s, o| o.value(s.pool.counters().batches.get()),
        "Batches of requests. A batch is all requests of one connection that arrived together.",
    ),
    row(
        "beluga_pool_sends_total",
        Counter,
        |s, o| o.value(s.pool.counters().sends.get()),
        "Sends to sockets. One send carries all pending bytes of a connection.",
    ),
    row(
        "beluga_pool_gated_total",
        Counter,
        |s, o| o.value(s.pool.counters().replies_held.get()),
        "Batches whose replies waited for the WAL to become durable.",
    ),
    row(
        "beluga_pool_handed_over_total",
        Counter,
        |s, o| o.value(s.pool.counters().handed_over.get()),
        "Connections handed to another worker because their own began to wait.",
    ),
    row(
        "beluga_pool_moved_total",
        Counter,
        |s, o| o.value(s.pool.counters().migrated.get()),
        "Connections moved to the worker group on whose processor their packets arrive.",
    ),
    row(
        "beluga_pool_unsent_bytes",
        Gauge,
        |s, o| o.value(s.pool.counters().unsent_bytes()),
        "Bytes of replies that clients have not read yet.",
    ),
    row(
        "beluga_pool_waits_refused_total",
        Counter,
        |s, o| o.value(s.pool.counters().waits_refused.get()),
        "Lock waits and SLEEPs that failed because the maximum number of threads was blocked.",
    ),
    row(
        "beluga_pool_computations_ended_total",
        Counter,
        |s, o| o.value(s.pool.counters().computations_ended.get()),
        "Statements that failed because too many long computations ran in their worker group, so that no worker was left for other requests.",
    ),
    row(
        "beluga_pool_threads_added_total",
        Counter,
        |s, o| o.value(s.pool.counters().threads_added.get()),
        "Worker threads started because others waited.",
    ),
    row(
        "beluga_pool_threads_left_total",
        Counter,
        |s, o| o.value(s.pool.counters().threads_removed.get()),
        "Worker threads that exited after `worker_idle_timeout`.",
    ),
    row(
        "beluga_pool_step_seconds",
        Histogram,
        |s, o| {
            for (step, times) in s.pool.counters().latency.named() {
                o.seconds(&format!("step=\"{}\"", step.replace(' ', "_")), &times.snapshot());
            }
        },
        "Duration of the steps of the worker pool, for all doors: from the run queue to a worker (work_queue), from the start of a round to the first and the last bytes of a connection (recv_first, recv_all), from a request to the run of its session (schedule), timers, and closing connections (fin).",
    ),
    row(
        "beluga_pool_panics_total",
        Counter,
        |s, o| o.value(s.pool.counters().panics.get()),
        "Requests that hit a bug of the server. Their connections were closed.",
    ),
    // Requests.
    row(
        "beluga_requests_total",
        Counter,
        |s, o| {
            o.labelled("door", "redis", s.redis.stats().calls());
            mysql(s, o, |door, o| o.labelled("door", "mysql", door.stats().commands.get()));
            postgres(s, o, |door, o| o.labelled("door", "postgres", door.stats().messages.get()));
            xrpc(s, o, |door, o| o.labelled("door", "xrpc", door.stats().requests.get()));
        },
        "Requests run, by door.",
    ),
    row(
        "beluga_request_errors_total",
        Counter,
        |s, o| {
            o.labelled("door", "redis", s.redis.stats().errors.get());
            mysql(s, o, |door, o| o.labelled("door", "mysql", door.stats().errors.get()));
            postgres(s, o, |door, o| o.labelled("door", "postgres", door.stats().errors.get()));
            xrpc(s, o, |door, o| o.labelled("door", "xrpc", door.stats().errors.get()));
        },
        "Error replies, by door.",
    ),
    row(
        "beluga_request_seconds",
        Histogram,
        |s, o| {
            o.seconds("door=\"redis\"", &s.redis.stats().times());
            mysql(s, o, |door, o| o.seconds("door=\"mysql\"", &door.stats().times.snapshot()));
            postgres(s, o, |door, o| o.seconds("door=\"postgres\"", &door.stats().times.snapshot()));
            xrpc(s, o, |door, o| o.seconds("door=\"xrpc\"", &door.stats().times.snapshot()));
        },
        "Execution time of requests, by door, without the wait for the WAL. For the doors for SQL, the time of a statement until its first rows.",
    ),
    row(
        "beluga_mysql_connections",
        Gauge,
        |s, o| mysql(s, o, |door, o| o.value(door.connection_count())),
        "Open connections of the MySQL door.",
    ),
    row(
        "beluga_mysql_long_bytes",
        Gauge,
        |s, o| mysql(s, o, |door, o| o.value(door.long_bytes())),
        "Memory used by long packets and values, of `mysql_long_values`.",
    ),
    row(
        "beluga_mysql_logins_total",
        Counter,
        |s, o| {
            mysql(s, o, |door, o| {
                o.labelled("result", "accepted", door.stats().logins.get());
                o.labelled("result", "denied", door.stats().denied.get());
            });
        },
        "Logins at the MySQL door, including CHANGE_USER, by result.",
    ),
    row(
        "beluga_mysql_tls_connections_total",
        Counter,
        |s, o| mysql(s, o, |door, o| o.value(door.stats().tls.get())),
        "Connections of the MySQL door that use TLS.",
    ),
    row(
        "beluga_mysql_statements_total",
        Counter,
        |s, o| mysql(s, o, |door, o| o.value(door.stats().statements.get())),
        "Statements executed by the MySQL door, including prepared statements.",
    ),
    row(
        "beluga_mysql_rows_sent_total",
        Counter,
        |s, o| mysql(s, o, |door, o| o.value(door.stats().rows.get())),
        "Result rows sent by the MySQL door.",
    ),
    row(
        "beluga_mysql_leaves_total",
        Counter,
        |s, o| mysql(s, o, |door, o| o.value(door.stats().suspensions.get())),
        "Suspensions of a statement of the MySQL door on a page miss. A suspended statement holds no worker until its pages have been read.",
    ),
    row(
        "beluga_sql_spilled_files_total",
        Counter,
        |s, o| spilled(s, o, |database| database.spill().map(|spill| spill.file_count())),
        "Spill files created by statements that exceeded `statement_memory`.",
    ),
    row(
        "beluga_sql_spilled_bytes_total",
        Counter,
        |s, o| spilled(s, o, |database| database.spill().map(|spill| spill.byte_count())),
        "Bytes written to spill files.",
    ),
    row(
        "beluga_mysql_prepared_statements",
        Gauge,
        |s, o| mysql(s, o, |door, o| o.value(door.stats().prepared.get())),
        "Open prepared statements.",
    ),
    row(
        "beluga_postgres_connections",
        Gauge,
        |s, o| postgres(s, o, |door, o| o.value(door.connection_count())),
        "Open connections of the PostgreSQL door.",
    ),
    row(
        "beluga_postgres_logins_total",
        Counter,
        |s, o| {
            postgres(s, o, |door, o| {
                o.labelled("result", "accepted", door.stats().logins.get());
                o.labelled("result", "denied", door.stats().denied.get());
            });
        },
        "Logins at the PostgreSQL door, by result.",
    ),
    row(
        "beluga_postgres_cancel_requests_total",
        Counter,
        |s, o| {
            postgres(s, o, |door, o| {
                o.labelled("result", "accepted", door.stats().cancels.get());
                o.labelled("result", "denied", door.stats().wrong_cancels.get());
            });
        },
        "Cancel requests at the PostgreSQL door. Those with a wrong key are denied.",
    ),
    row(
        "beluga_postgres_tls_connections_total",
        Counter,
        |s, o| postgres(s, o, |door, o| o.value(door.stats().tls.get())),
        "Connections of the PostgreSQL door that use TLS.",
    ),
    row(
        "beluga_postgres_statements_total",
        Counter,
        |s, o| postgres(s, o, |door, o| o.value(door.stats().statements.get())),
        "Statements executed by the PostgreSQL door: those of simple queries, and Execute messages.",
    ),
    row(
        "beluga_postgres_suspensions_total",
        Counter,
        |s, o| postgres(s, o, |door, o| o.value(door.stats().suspensions.get())),
        "Suspensions of a statement of the PostgreSQL door on a page miss or a lock. A suspended statement holds no worker.",
    ),
    row(
        "beluga_xrpc_logins_total",
        Counter,
        |s, o| {
            xrpc(s, o, |door, o| {
                o.labelled("result", "accepted", door.stats().logins.get());
                o.labelled("result", "denied", door.stats().denied.get());
            });
        },
        "Logins at the XRPC door, by result.",
    ),
    row(
        "beluga_xrpc_tls_connections_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().tls.get())),
        "Connections of the XRPC door that use TLS.",
    ),
    row(
        "beluga_xrpc_strangers_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().foreign_connections.get())),
        "Connections to the XRPC door that spoke another protocol.",
    ),
    row(
        "beluga_xrpc_malformed_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().malformed.get())),
        "Connections of the XRPC door that were closed because of a malformed message.",
    ),
    row(
        "beluga_xrpc_statements_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().statements.get())),
        "Statements executed by the XRPC door.",
    ),
    row(
        "beluga_xrpc_rows_sent_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().rows.get())),
        "Result rows sent by the XRPC door.",
    ),
    row(
        "beluga_xrpc_leaves_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().suspensions.get())),
        "Suspensions of a statement of the XRPC door on a page miss. A suspended statement holds no worker until its pages have been read.",
    ),
    row(
        "beluga_xrpc_token_waits_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().token_waits.get())),
        "Times that rows waited because the client's tokens were used up (flow control).",
    ),
    row(
        "polarx_rpc_total_sessions",
        Gauge,
        |s, o| xrpc(s, o, |door, o| o.value(door.session_count())),
        "Sessions of the XRPC door, including those in the session pool.",
    ),
    row(
        "polarx_rpc_worker_sessions",
        Gauge,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().sessions.get())),
        "Sessions of the XRPC door that belong to clients.",
    ),
    row(
        "polarx_rpc_sql_hit_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.texts().hits.get())),
        "Statements found in the cache by their digest.",
    ),
    row(
        "polarx_rpc_sql_miss_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.texts().misses.get())),
        "Statements not found in the cache, which the client had to send.",
    ),
    row(
        "polarx_rpc_sql_evict_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.texts().evicted.get())),
        "Statements evicted from the cache.",
    ),
    row(
        "polarx_rpc_plan_hit_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.plans().hits.get())),
        "Plans found in the cache by their digest.",
    ),
    row(
        "polarx_rpc_plan_miss_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.plans().misses.get())),
        "Plans not found in the cache, which the client had to send.",
    ),
    row(
        "polarx_rpc_plan_evict_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.plans().evicted.get())),
        "Plans evicted from the cache.",
    ),
    row(
        "beluga_command_calls_total",
        Counter,
        commands,
        "Calls of each command of the Redis door. Commands that were never called are left out.",
    ),
    // Keys.
    row(
        "beluga_key_hits_total",
        Counter,
        |s, o| o.value(s.engine.metrics().hits.get()),
        "Key lookups that found a key.",
    ),
    row(
        "beluga_key_misses_total",
        Counter,
        |s, o| o.value(s.engine.metrics().misses.get()),
        "Key lookups that found no key.",
    ),
    row(
        "beluga_keys_expired_total",
        Counter,
        |s, o| o.value(s.engine.metrics().expired.get()),
        "Keys removed because they had expired.",
    ),
    row(
        "beluga_hash_fields_expired_total",
        Counter,
        |s, o| o.value(s.engine.metrics().expired_fields.get()),
        "Fields of hashes removed because they had expired.",
    ),
    row(
        "beluga_units_committed_total",
        Counter,
        |s, o| o.value(s.engine.metrics().txn_commits.get()),
        "Key transactions with several changes that committed.",
    ),
    row(
        "beluga_units_aborted_total",
        Counter,
        |s, o| o.value(s.engine.metrics().txn_aborts.get()),
        "Key transactions with several changes that were rolled back.",
    ),
    row(
        "beluga_read_retries_total",
        Counter,
        |s, o| o.value(s.engine.metrics().read_retries.get()),
        "Reads repeated because a key changed during the read.",
    ),
    row(
        "beluga_key_transaction_reruns_total",
        Counter,
        |s, o| o.value(s.engine.metrics().key_txn_reruns.get()),
        "Scripts and transactions of the Redis door that were rolled back and run again with more keys.",
    ),
    row(
        "beluga_row_versions_bytes",
        Gauge,
        |s, o| o.value(s.engine.rows().version_bytes()),
        "Memory used by old row versions, which open snapshots keep.",
    ),
    row(
        "beluga_row_versions_file_bytes",
        Gauge,
        |s, o| o.value(s.engine.rows().version_file_bytes()),
        "Bytes of files that hold old row versions for which the memory limit left no room.",
    ),
    row(
        "beluga_recovered_transactions",
        Gauge,
        |s, o| o.value(s.engine.rows().rolling_back().len() as u64),
        "Transactions interrupted by a crash whose rollback still runs in the background.",
    ),
    row(
        "beluga_recovered_changes_left",
        Gauge,
        |s, o| o.value(s.engine.rows().rolling_back().iter().map(|loser| loser.changes - loser.done).sum::<u64>()),
        "Changes of these transactions that remain to be rolled back.",
    ),
    row(
        "beluga_purged_records_total",
        Counter,
        |s, o| o.value(s.engine.metrics().purged_records.get()),
        "Records of deleted values removed by purge.",
    ),
    // The WAL and the pages.
    row("beluga_log_head_bytes", Gauge, |s, o| o.value(s.engine.pager().wal_head()), "LSN of the end of the WAL."),
    row(
        "beluga_log_durable_bytes",
        Gauge,
        |s, o| o.value(s.engine.durable().get()),
        "LSN up to which the WAL is on disk.",
    ),
    row(
        "beluga_checkpoint_bytes",
        Gauge,
        |s, o| o.value(s.engine.pager().checkpoint_lsn()),
        "LSN of the last checkpoint, where recovery would start.",
    ),
    row(
        "beluga_disk_full",
        Gauge,
        |s, o| o.value(u8::from(s.engine.pager().is_full())),
        "1 while writes are refused because the disk is full, otherwise 0.",
    ),
    row("beluga_frames", Gauge, frames, "Buffer pool frames, by state: total, used, dirty."),
    row(
        "beluga_allocated_pages",
        Gauge,
        |s, o| o.value(s.engine.pager().allocated_pages()),
        "Allocated pages of the data file, 4096 bytes each.",
    ),
];

fn commands(sources: &Sources, out: &mut Series<'_>) {
    for (command, stats) in door_redis::COMMANDS.iter().zip(&sources.redis.stats().commands) {
        let calls = stats.calls.get();
        if calls > 0 {
            out.labelled("command", command.name, calls);
        }
    }
}

fn frames(sources: &Sources, out: &mut Series<'_>) {
    let (total, used, dirty) = sources.engine.pager().frame_use();
    out.labelled("state", "total", total);
    out.labelled("state", "used", used);
    out.labelled("state", "dirty", dirty);
}
