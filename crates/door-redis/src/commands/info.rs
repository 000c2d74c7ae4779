//! INFO: facts about the server, under Redis' names where Redis has them.
//!
//! Fields of Redis without a meaning here (forks, changes since the last RDB file) are left out instead of answered with an invented zero. A zero in the output is counted, or true by
//! design: nothing is loading, no replica is connected.

use std::fmt::Display;

use redis_lua::Purpose;
use stdx::sync::atomic::Ordering;

use crate::call::{Call, Result};
use crate::commands::follow::{facts_of_replica, facts_of_source};
use crate::commands::server::REDIS_VERSION;
use crate::commands::utf8;
use crate::messages::subscriptions::Topic;
use crate::session::Session;
use crate::stats::CommandStats;
use crate::table::COMMANDS;

type Fields = Vec<(String, String)>;
type Written = std::result::Result<(), engine::Error>;

struct Section {
    name: &'static str,
    /// Included in INFO without arguments.
    usual: bool,
    write: fn(&Session, &mut Text) -> Written,
}

const SECTIONS: &[Section] = &[
    Section { name: "Server", usual: true, write: server },
    Section { name: "Clients", usual: true, write: clients },
    Section { name: "Memory", usual: true, write: memory },
    Section { name: "Persistence", usual: true, write: persistence },
    Section { name: "Stats", usual: true, write: stats },
    Section { name: "Replication", usual: true, write: replication },
    Section { name: "CPU", usual: true, write: cpu },
    Section { name: "Modules", usual: true, write: |_, _| Ok(()) },
    Section { name: "Commandstats", usual: false, write: command_stats },
    Section { name: "Errorstats", usual: true, write: error_stats },
    Section { name: "Latencystats", usual: false, write: latency_stats },
    Section { name: "Cluster", usual: true, write: cluster },
    Section { name: "Keyspace", usual: true, write: keyspace },
];

/// The lines of a section.
#[derive(Default)]
struct Text(Fields);

impl Text {
    fn add(&mut self, field: impl Display, value: impl Display) {
        self.0.push((field.to_string(), value.to_string()));
    }
}

pub fn info(session: &mut Session, call: &mut Call<'_>) -> Result {
    let named = |word: &str| call.args[1..].iter().any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    let everything = named("all") || named("everything");
    let usual = call.args.len() == 1 || named("default");
    let mut text = String::new();
    for section in SECTIONS.iter().filter(|section| everything || usual && section.usual || named(section.name)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let mut lines = Text::default();
        (section.write)(session, &mut lines)?;
        lines.0.extend(session.shared.host.facts(&section.name.to_ascii_lowercase()));
        text.push_str(&format!("# {}\r\n", section.name));
        lines.0.iter().for_each(|(field, value)| text.push_str(&format!("{field}:{value}\r\n")));
    }
    call.reply.verbatim(text.as_bytes());
    Ok(())
}

fn server(session: &Session, text: &mut Text) -> Written {
    let shared = &session.shared;
    let up = session.now_ms().saturating_sub(shared.started_ms) / 1000;
    text.add("redis_version", REDIS_VERSION);
    text.add("beluga_version", shared.host.version());
    text.add("redis_mode", if session.shared.is_cluster { "cluster" } else { "standalone" });
    text.add("os", format_args!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    text.add("arch_bits", usize::BITS);
    text.add("multiplexing_api", "epoll");
    text.add("process_id", std::process::id());
    text.add("run_id", &shared.run_id);
    text.add("tcp_port", shared.port);
    text.add("server_time_usec", shared.clock.wall_us());
    text.add("uptime_in_seconds", up);
    text.add("uptime_in_days", up / 86_400);
    // Remembered parameters; nothing here runs at this frequency.
    text.add("hz", shared.parameters.number("hz"));
    text.add("configured_hz", shared.parameters.number("hz"));
    text.add("lru_clock", (session.now_ms() / 1000) & 0xff_ffff);
    if let Some(until_ms) = shared.shutdown.waits_until_ms() {
        text.add("shutdown_in_milliseconds", until_ms.saturating_sub(session.now_ms()));
    }
    if let Ok(path) = std::env::current_exe() {
        text.add("executable", path.display());
    }
    Ok(())
}

fn clients(session: &Session, text: &mut Text) -> Written {
    let clients = session.shared.clients.list();
    text.add("connected_clients", clients.len());
    text.add("cluster_connections", 0);
    if let Some(pool) = session.shared.pool() {
        text.add("maxclients", pool.settings().max_connections);
    }
    text.add("blocked_clients", clients.iter().filter(|client| client.state.lock().parked).count());
    text.add("tracking_clients", session.shared.tracking.client_count());
    Ok(())
}

fn memory(session: &Session, text: &mut Text) -> Written {
    let clients: u64 = session.shared.clients.list().iter().map(|client| client.memory_bytes()).sum();
    text.add("mem_clients_normal", clients);
    let shared = &session.shared;
    let (scripts, script_bytes) = shared.scripts.counts();
    let (eval, functions) = (shared.runs.state_bytes(Purpose::Scripts), shared.runs.state_bytes(Purpose::Functions));
    text.add("used_memory_lua", eval);
    text.add("used_memory_vm_eval", eval);
    text.add("used_memory_scripts_eval", script_bytes);
    text.add("number_of_cached_scripts", scripts);
    let libraries = shared.libraries.get();
    text.add("number_of_functions", libraries.function_count());
    text.add("number_of_libraries", libraries.by_name.len());
    text.add("used_memory_vm_functions", functions);
    text.add("used_memory_vm_total", eval + functions);
    text.add("used_memory_functions", libraries.bytes());
    text.add("used_memory_scripts", script_bytes + libraries.bytes());
    Ok(())
}

fn persistence(session: &Session, text: &mut Text) -> Written {
    let pager = session.shared.engine.pager();
    text.add("loading", 0);
    text.add("async_loading", 0);
    let facts = session.shared.saves.facts(session.shared.started_ms, session.now_ms());
    facts.into_iter().for_each(|(name, value)| text.add(name, value));
    text.add("aof_rewrite_in_progress", u8::from(pager.is_checkpoint_requested()));
    text.add("aof_rewrite_scheduled", 0);
    // A checkpoint is retried until it succeeds.
    text.add("aof_last_bgrewrite_status", "ok");
    text.add("aof_last_write_status", if pager.is_full() { "err" } else { "ok" });
    text.add("log_head_lsn", pager.wal_head());
    text.add("log_durable_lsn", pager.durable().get());
    text.add("log_checkpoint_lsn", pager.checkpoint_lsn());
    text.add("disk_full", u8::from(pager.is_full()));
    Ok(())
}

fn stats(session: &Session, text: &mut Text) -> Written {
    let shared = &session.shared;
    let metrics = shared.engine.metrics();
    let calls = shared.stats.calls();
    text.add("total_commands_processed", calls);
    if let Some(pool) = shared.pool() {
        let counters = pool.counters();
        let (bytes_in, bytes_out) = (counters.bytes_in.get(), counters.bytes_out.get());
        let [commands, received, sent] = shared.rates.look(shared.clock.monotonic_ns(), [calls, bytes_in, bytes_out]);
        text.add("instantaneous_ops_per_sec", format_args!("{commands:.0}"));
        text.add("instantaneous_input_kbps", format_args!("{:.2}", received / 1024.0));
        text.add("instantaneous_output_kbps", format_args!("{:.2}", sent / 1024.0));
        text.add("total_connections_received", counters.accepted.get());
        text.add("rejected_connections", counters.refused.get());
        text.add("total_reads_processed", counters.batches.get());
        text.add("total_writes_processed", counters.sends.get());
        text.add("total_net_input_bytes", bytes_in);
        text.add("total_net_output_bytes", bytes_out);
    }
    text.add("total_error_replies", shared.stats.errors.get());
    text.add("expired_keys", metrics.expired.get());
    text.add("expired_subkeys", metrics.expired_fields.get());
    text.add("evicted_keys", metrics.evicted());
    text.add("evicted_clients", 0);
    text.add("keyspace_hits", metrics.hits.get());
    text.add("keyspace_misses", metrics.misses.get());
    text.add("pubsub_channels", shared.hub.count_active(Topic::Channel));
    text.add("pubsub_patterns", shared.hub.count_patterns());
    text.add("pubsubshard_channels", shared.hub.count_active(Topic::Shard));
    let tracked = shared.tracking.counts();
    text.add("tracking_total_keys", tracked.keys);
    text.add("tracking_total_items", tracked.items);
    text.add("tracking_total_prefixes", tracked.prefixes);
    text.add("client_output_buffer_limit_disconnections", shared.stats.output_limit_disconnections.get());
    text.add("sync_full", shared.stats.full_syncs.get());
    text.add("sync_partial_ok", shared.stats.partial_syncs.get());
    text.add("sync_partial_err", shared.stats.refused_partial_syncs.get());
    text.add("scan_restarts", metrics.scan_restarts.get());
    text.add("transactions_committed", metrics.txn_commits.get());
    text.add("transactions_rolled_back", metrics.txn_aborts.get());
    Ok(())
}

fn replication(session: &Session, text: &mut Text) -> Written {
    if let Some(following) = session.shared.replica.present() {
        facts_of_replica(session, &following).into_iter().for_each(|(field, value)| text.add(field, value));
    } else {
        text.add("role", "master");
    }
    facts_of_source(session).into_iter().for_each(|(field, value)| text.add(&field, value));
    Ok(())
}

fn cpu(_: &Session, text: &mut Text) -> Written {
    let seconds = |ns: u64| format!("{:.6}", ns as f64 / 1e9);
    let (own, children) = (os::cpu::process_time(), os::cpu::children_time());
    text.add("used_cpu_sys", seconds(own.system_ns));
    text.add("used_cpu_user", seconds(own.user_ns));
    text.add("used_cpu_sys_children", seconds(children.system_ns));
    text.add("used_cpu_user_children", seconds(children.user_ns));
    text.add("used_cpu_total", format_args!("{:.6}", os::cpu::process_cpu_ns() as f64 / 1e9));
    Ok(())
}

fn command_stats(session: &Session, text: &mut Text) -> Written {
    for (command, stats) in COMMANDS.iter().zip(&session.shared.stats.commands) {
        let (calls, rejected, failed) = (stats.calls.get(), stats.rejected.get(), stats.failed.get());
        if calls + rejected > 0 {
            let usec = stats.nanoseconds.get() as f64 / 1000.0;
            let per_call = usec / calls.max(1) as f64;
            let value = format_args!(
                "calls={calls},usec={usec:.0},usec_per_call={per_call:.2},rejected_calls={rejected},failed_calls={failed}"
            )
            .to_string();
            text.add(format_args!("cmdstat_{}", command.name), value);
        }
    }
    Ok(())
}

fn error_stats(session: &Session, text: &mut Text) -> Written {
    for (code, count) in session.shared.stats.errors_by_code() {
        text.add(format_args!("errorstat_{}", utf8(&code)), format_args!("count={count}"));
    }
    Ok(())
}

fn latency_stats(session: &Session, text: &mut Text) -> Written {
    if !session.shared.stats.tracks_times.load(Ordering::Relaxed) {
        return Ok(());
    }
    let percentiles = session.shared.parameters.text("latency-tracking-info-percentiles");
    let percentiles: Vec<f64> = percentiles.split(' ').filter_map(|text| text.parse().ok()).collect();
    let timed = |stats: &CommandStats| Some(stats.times()?.snapshot()).filter(|times| times.count > 0);
    for (command, stats) in COMMANDS.iter().zip(&session.shared.stats.commands) {
        let Some(times) = timed(stats) else { continue };
        let value = |p: &f64| format!("p{p}={:.3}", times.quantile(p / 100.0) as f64 / 1000.0);
        let values: Vec<String> = percentiles.iter().map(value).collect();
        text.add(format_args!("latency_percentiles_usec_{}", command.name), values.join(","));
    }
    Ok(())
}

fn cluster(session: &Session, text: &mut Text) -> Written {
    text.add("cluster_enabled", u8::from(session.shared.is_cluster));
    Ok(())
}

fn keyspace(session: &Session, text: &mut Text) -> Written {
    let (counts, _) = session.shared.keyspace.read(engine::KeySet::Keys(&[]), |txn| {
        (0..engine::DATABASES).map(|db| Ok((db, txn.count(db)?, txn.expires(db)?))).collect::<engine::Result<Vec<_>>>()
    })?;
    for (db, keys, expires) in counts.into_iter().filter(|(_, keys, _)| *keys > 0) {
        // The average time to live is not sampled. Redis reports zero in that case.
        text.add(format_args!("db{db}"), format_args!("keys={keys},expires={expires},avg_ttl=0"));
    }
    Ok(())
}
