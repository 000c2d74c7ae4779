//! The rows. Names that XRPC has too begin with `polarx_rpc_`.

use door_mysql::MysqlDoor;
use door_xrpc::XrpcDoor;
use query::Database;

use super::Kind::{Counter, Gauge, Histogram};
use super::{Row, Series, Sources};

const fn row(name: &'static str, kind: super::Kind, read: fn(&Sources, &mut Series<'_>), help: &'static str) -> Row {
    Row { name, kind, help, read }
}

/// The lines of the MySQL door, if it is open.
fn mysql(sources: &Sources, series: &mut Series<'_>, write: impl FnOnce(&MysqlDoor, &mut Series<'_>)) {
    if let Some(door) = &sources.mysql {
        write(door, series);
    }
}

/// The lines of the XRPC door, if it is open.
fn xrpc(sources: &Sources, series: &mut Series<'_>, write: impl FnOnce(&XrpcDoor, &mut Series<'_>)) {
    if let Some(door) = &sources.xrpc {
        write(door, series);
    }
}

/// What statements have written out, if any door has some.
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
        "1, with the version as label.",
    ),
    row(
        "beluga_start_time_seconds",
        Gauge,
        |s, o| o.value(s.started_ms / 1000),
        "When the server started, in seconds since 1970.",
    ),
    row(
        "beluga_cpu_seconds_total",
        Counter,
        |_, o| o.value(os::cpu::process_cpu_ns() as f64 / 1e9),
        "Processor time of the process, user and system.",
    ),
    row(
        "beluga_memory_bytes",
        Gauge,
        |_, o| o.value(os::memory::rss_bytes()),
        "Memory that the process has in use (RSS).",
    ),
    row("beluga_memory_limit_bytes", Gauge, |s, o| o.value(s.memory_limit_bytes), "The setting `memory`."),
    // The pool.
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
        "Logins with a wrong password or an unknown name, at all doors.",
    ),
    row(
        "beluga_login_delays_total",
        Counter,
        |s, o| o.value(s.engine.accounts().attempts().counts().1),
        "Logins that were delayed because earlier ones had failed.",
    ),
    row(
        "beluga_login_refusals_total",
        Counter,
        |s, o| o.value(s.engine.accounts().attempts().counts().2),
        "Logins refused unchecked, because too many of the same account and address were delayed already.",
    ),
    row("polarx_rpc_threads", Gauge, |s, o| o.value(s.pool.thread_counts().0), "Threads of the pool."),
    row(
        "beluga_pool_waiting_threads",
        Gauge,
        |s, o| o.value(s.pool.thread_counts().1),
        "Threads that wait inside a request, for a page or a lock.",
    ),
    row("beluga_pool_accepted_total", Counter, |s, o| o.value(s.pool.counters().accepted.get()), "Connections taken."),
    row(
        "beluga_pool_refused_total",
        Counter,
        |s, o| o.value(s.pool.counters().refused.get()),
        "Connections turned away, for the limit or by a door.",
    ),
    row("beluga_pool_closed_total", Counter, |s, o| o.value(s.pool.counters().closed.get()), "Connections ended."),
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
        "Times a connection was served, once for all requests that had arrived.",
    ),
    row(
        "beluga_pool_sends_total",
        Counter,
        |s, o| o.value(s.pool.counters().sends.get()),
        "Times a connection's socket took bytes, as many as were there for it.",
    ),
    row(
        "beluga_pool_gated_total",
        Counter,
        |s, o| o.value(s.pool.counters().replies_held.get()),
        "Batches whose replies had to wait for the log.",
    ),
    row(
        "beluga_pool_handed_over_total",
        Counter,
        |s, o| o.value(s.pool.counters().handed_over.get()),
        "Connections given to another thread because theirs began to wait.",
    ),
    row(
        "beluga_pool_moved_total",
        Counter,
        |s, o| o.value(s.pool.counters().migrated.get()),
        "Connections moved to the group of threads that runs where their packets come in.",
    ),
    row(
        "beluga_pool_unsent_bytes",
        Gauge,
        |s, o| o.value(s.pool.counters().unsent_bytes()),
        "Bytes of replies that clients have not taken.",
    ),
    row(
        "beluga_pool_waits_refused_total",
        Counter,
        |s, o| o.value(s.pool.counters().waits_refused.get()),
        "Waits for locks and SLEEPs that ended with an error because as many threads were blocked as may be.",
    ),
    row(
        "beluga_pool_computations_ended_total",
        Counter,
        |s, o| o.value(s.pool.counters().computations_ended.get()),
        "Statements that ended with an error because so many computed for long that their group of threads had none left for others.",
    ),
    row(
        "beluga_pool_threads_added_total",
        Counter,
        |s, o| o.value(s.pool.counters().threads_added.get()),
        "Threads started because others waited.",
    ),
    row(
        "beluga_pool_threads_left_total",
        Counter,
        |s, o| o.value(s.pool.counters().threads_removed.get()),
        "Threads that left for want of work.",
    ),
    row(
        "beluga_pool_step_seconds",
        Histogram,
        |s, o| {
            for (step, times) in s.pool.counters().latency.named() {
                o.seconds(&format!("step=\"{}\"", step.replace(' ', "_")), &times.snapshot());
            }
        },
        "How long the pool's own steps take, of all doors: from queueing to a thread (work_queue), from a round's start to the first and the last bytes of a connection (recv_first, recv_all), from a request to its session's run (schedule), timers, and the ends of connections (fin).",
    ),
    row(
        "beluga_pool_panics_total",
        Counter,
        |s, o| o.value(s.pool.counters().panics.get()),
        "Requests that ended in a fault of ours; their connection was closed.",
    ),
    // Requests.
    row(
        "beluga_requests_total",
        Counter,
        |s, o| {
            o.labelled("door", "redis", s.redis.stats().calls());
            mysql(s, o, |door, o| o.labelled("door", "mysql", door.stats().commands.get()));
            xrpc(s, o, |door, o| o.labelled("door", "xrpc", door.stats().requests.get()));
        },
        "Requests that were run, by door.",
    ),
    row(
        "beluga_request_errors_total",
        Counter,
        |s, o| {
            o.labelled("door", "redis", s.redis.stats().errors.get());
            mysql(s, o, |door, o| o.labelled("door", "mysql", door.stats().errors.get()));
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
            xrpc(s, o, |door, o| o.seconds("door=\"xrpc\"", &door.stats().times.snapshot()));
        },
        "How long requests ran, by door, without their wait for the log; of the MySQL and XRPC doors, statements up to their first rows.",
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
        "What long packets and values take, of `mysql_long_values`.",
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
        "Logins at the MySQL door, also by CHANGE_USER.",
    ),
    row(
        "beluga_mysql_tls_connections_total",
        Counter,
        |s, o| mysql(s, o, |door, o| o.value(door.stats().tls.get())),
        "Connections of the MySQL door that began TLS.",
    ),
    row(
        "beluga_mysql_statements_total",
        Counter,
        |s, o| mysql(s, o, |door, o| o.value(door.stats().statements.get())),
        "Statements executed through the MySQL door, prepared ones too.",
    ),
    row(
        "beluga_mysql_rows_sent_total",
        Counter,
        |s, o| mysql(s, o, |door, o| o.value(door.stats().rows.get())),
        "Rows of results written by the MySQL door.",
    ),
    row(
        "beluga_mysql_leaves_total",
        Counter,
        |s, o| mysql(s, o, |door, o| o.value(door.stats().suspensions.get())),
        "Times that a statement of the MySQL door left its thread until pages had been read.",
    ),
    row(
        "beluga_sql_spilled_files_total",
        Counter,
        |s, o| spilled(s, o, |database| database.spill().map(|spill| spill.file_count())),
        "Files that statements began because what they gathered did not fit into `statement_memory`.",
    ),
    row(
        "beluga_sql_spilled_bytes_total",
        Counter,
        |s, o| spilled(s, o, |database| database.spill().map(|spill| spill.byte_count())),
        "Bytes that statements have written to such files.",
    ),
    row(
        "beluga_mysql_prepared_statements",
        Gauge,
        |s, o| mysql(s, o, |door, o| o.value(door.stats().prepared.get())),
        "Prepared statements that exist.",
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
        "Logins at the XRPC door.",
    ),
    row(
        "beluga_xrpc_tls_connections_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().tls.get())),
        "Connections of the XRPC door that began TLS.",
    ),
    row(
        "beluga_xrpc_strangers_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().foreign_connections.get())),
        "Connections to the XRPC door that spoke something else.",
    ),
    row(
        "beluga_xrpc_malformed_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().malformed.get())),
        "Connections of the XRPC door that were closed because what they sent was no message.",
    ),
    row(
        "beluga_xrpc_statements_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().statements.get())),
        "Statements executed through the XRPC door.",
    ),
    row(
        "beluga_xrpc_rows_sent_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().rows.get())),
        "Rows of results written by the XRPC door.",
    ),
    row(
        "beluga_xrpc_leaves_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().suspensions.get())),
        "Times that a statement of the XRPC door left its thread until pages had been read.",
    ),
    row(
        "beluga_xrpc_token_waits_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().token_waits.get())),
        "How often rows waited for their client's leave to send more.",
    ),
    row(
        "polarx_rpc_total_sessions",
        Gauge,
        |s, o| xrpc(s, o, |door, o| o.value(door.session_count())),
        "Sessions of the XRPC door, those that wait for a single statement too.",
    ),
    row(
        "polarx_rpc_worker_sessions",
        Gauge,
        |s, o| xrpc(s, o, |door, o| o.value(door.stats().sessions.get())),
        "Sessions of the XRPC door that clients have.",
    ),
    row(
        "polarx_rpc_sql_hit_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.texts().hits.get())),
        "Statements that were known by their digest.",
    ),
    row(
        "polarx_rpc_sql_miss_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.texts().misses.get())),
        "Statements that were not, and had to be sent.",
    ),
    row(
        "polarx_rpc_sql_evict_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.texts().evicted.get())),
        "Statements that were forgotten for others.",
    ),
    row(
        "polarx_rpc_plan_hit_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.plans().hits.get())),
        "Plans that were known by their digest.",
    ),
    row(
        "polarx_rpc_plan_miss_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.plans().misses.get())),
        "Plans that were not, and had to be sent.",
    ),
    row(
        "polarx_rpc_plan_evict_total",
        Counter,
        |s, o| xrpc(s, o, |door, o| o.value(door.plans().evicted.get())),
        "Plans that were forgotten for others.",
    ),
    row(
        "beluga_command_calls_total",
        Counter,
        commands,
        "Requests that were run, by command of the Redis door; commands never called are left out.",
    ),
    // Keys.
    row(
        "beluga_key_hits_total",
        Counter,
        |s, o| o.value(s.engine.metrics().hits.get()),
        "Lookups that found their key.",
    ),
    row("beluga_key_misses_total", Counter, |s, o| o.value(s.engine.metrics().misses.get()), "Lookups that did not."),
    row(
        "beluga_keys_expired_total",
        Counter,
        |s, o| o.value(s.engine.metrics().expired.get()),
        "Keys removed because their time had come.",
    ),
    row(
        "beluga_units_committed_total",
        Counter,
        |s, o| o.value(s.engine.metrics().txn_commits.get()),
        "Units of several changes that were committed.",
    ),
    row(
        "beluga_units_aborted_total",
        Counter,
        |s, o| o.value(s.engine.metrics().txn_aborts.get()),
        "Units of several changes that were taken back.",
    ),
    row(
        "beluga_read_retries_total",
        Counter,
        |s, o| o.value(s.engine.metrics().read_retries.get()),
        "Reads that ran again because a key changed under them.",
    ),
    row(
        "beluga_row_versions_bytes",
        Gauge,
        |s, o| o.value(s.engine.rows().version_bytes()),
        "Memory that old versions of rows take, kept for open snapshots.",
    ),
    row(
        "beluga_row_versions_file_bytes",
        Gauge,
        |s, o| o.value(s.engine.rows().version_file_bytes()),
        "Bytes of files that old versions of rows take, which open snapshots keep beyond what memory may hold.",
    ),
    row(
        "beluga_recovered_transactions",
        Gauge,
        |s, o| o.value(s.engine.rows().rolling_back().len() as u64),
        "Transactions that a crash has cut off and that are still being rolled back beside the service.",
    ),
    row(
        "beluga_recovered_changes_left",
        Gauge,
        |s, o| o.value(s.engine.rows().rolling_back().iter().map(|loser| loser.changes - loser.done).sum::<u64>()),
        "Changes of these transactions that are not taken back yet.",
    ),
    row(
        "beluga_purged_records_total",
        Counter,
        |s, o| o.value(s.engine.metrics().purged_records.get()),
        "Records of deleted values taken out in the background.",
    ),
    // Log and pages.
    row(
        "beluga_log_head_bytes",
        Gauge,
        |s, o| o.value(s.engine.pager().wal_head()),
        "End of the log: the position behind the newest record.",
    ),
    row("beluga_log_durable_bytes", Gauge, |s, o| o.value(s.engine.durable().get()), "The log is on disk up to here."),
    row(
        "beluga_checkpoint_bytes",
        Gauge,
        |s, o| o.value(s.engine.pager().checkpoint_lsn()),
        "Recovery would begin here.",
    ),
    row(
        "beluga_disk_full",
        Gauge,
        |s, o| o.value(u8::from(s.engine.pager().is_full())),
        "1 while writes are refused for want of disk space.",
    ),
    row("beluga_frames", Gauge, frames, "Page frames, by state: total, used, dirty."),
    row(
        "beluga_allocated_pages",
        Gauge,
        |s, o| o.value(s.engine.pager().allocated_pages()),
        "Pages of the data file in use, 4096 bytes each.",
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
