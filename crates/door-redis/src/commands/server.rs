//! The server: INFO, CONFIG, COMMAND, SLOWLOG, LATENCY, DEBUG and small ones.

use engine::Unit;
use stdx::sync::atomic::Ordering;

use crate::command::{COMMANDS, Call, Command, Keys, Result, flag};
use crate::commands::generic::{database, help};
use crate::errors;
use crate::glob;
use crate::host::Refused;
use crate::number;
use crate::reply::Reply;
use crate::session::Session;

/// What clients are told that they speak with; our own version stands beside it.
pub const REDIS_VERSION: &str = "7.0.15";

pub fn dbsize(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    let count = unit.count(call.db)?;
    call.reply.integer(count as i64);
    Ok(())
}

/// ASYNC and SYNC are both what we do anyway: the keys are gone at once, their room comes back in the background.
fn flush_mode(call: &mut Call<'_>) -> bool {
    let known = match call.args.len() {
        1 => true,
        2 => call.word(1, "async") || call.word(1, "sync"),
        _ => false,
    };
    if !known {
        call.reply.error(errors::SYNTAX);
    }
    known
}

pub fn flushdb(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    if flush_mode(call) {
        unit.flush(call.db)?;
        call.reply.ok();
    }
    Ok(())
}

pub fn flushall(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    if flush_mode(call) {
        unit.flush_all()?;
        call.reply.ok();
    }
    Ok(())
}

pub fn swapdb(unit: &mut Unit<'_>, call: &mut Call<'_>) -> Result {
    for (at, which) in [(1, "first"), (2, "second")] {
        if number::parse(call.args[at]).is_none_or(|number| i32::try_from(number).is_err()) {
            let text = format!("ERR invalid {which} DB index");
            call.reply.error(&text);
            return Ok(());
        }
    }
    let (Some(first), Some(second)) = (database(call.args[1]), database(call.args[2])) else {
        call.reply.error(errors::DB_INDEX);
        return Ok(());
    };
    if first != second {
        unit.swap(first, second)?;
    }
    call.reply.ok();
    Ok(())
}

pub fn time(session: &mut Session, call: &mut Call<'_>) -> Result {
    let us = session.shared.clock.wall_us();
    call.reply.array(2);
    call.reply.bulk((us / 1_000_000).to_string().as_bytes());
    call.reply.bulk((us % 1_000_000).to_string().as_bytes());
    Ok(())
}

pub fn role(_: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
    Ok(())
}

pub fn lolwut(session: &mut Session, call: &mut Call<'_>) -> Result {
    let text = format!("Beluga ver. {}, compatible with Redis {REDIS_VERSION}\n", session.shared.host.version());
    call.reply.verbatim(text.as_bytes());
    Ok(())
}

/// There are no replicas: WAIT for some takes its whole timeout, in which the session sleeps without a thread.
pub fn wait(session: &mut Session, call: &mut Call<'_>) -> Result {
    let Some(replicas) = call.integer(1) else { return Ok(()) };
    let timeout = match number::parse(call.args[2]) {
        None => {
            call.reply.error("ERR timeout is not an integer or out of range");
            return Ok(());
        }
        Some(timeout) if timeout < 0 => {
            call.reply.error("ERR timeout is negative");
            return Ok(());
        }
        Some(timeout) => timeout as u64,
    };
    // Inside EXEC nothing blocks, as in Redis.
    if replicas <= 0 || session.in_exec() {
        call.reply.integer(0);
        return Ok(());
    }
    let until = if timeout == 0 { u64::MAX / 4 } else { session.now_ms().saturating_add(timeout) };
    session.sleep_until_ms = Some(until);
    session.after_sleep = Some(0);
    Ok(())
}

fn wrong_sub_arity(call: &mut Call<'_>, sub: &[u8]) {
    let text = errors::wrong_arity(&format!("{}|{}", call.command.name, String::from_utf8_lossy(sub)));
    call.reply.error(&text);
}

fn unknown_sub(call: &mut Call<'_>) {
    let text = errors::unknown_subcommand(call.command.name, call.args[1]);
    call.reply.error(&text);
}

pub fn config(session: &mut Session, call: &mut Call<'_>) -> Result {
    let sub = call.args[1].to_ascii_lowercase();
    match (sub.as_slice(), call.args.len()) {
        (b"get", 3..) => {
            let patterns: Vec<Vec<u8>> = call.args[2..].iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
            let mut all = session.shared.host.settings();
            all.extend(session.shared.parameters.others(&all));
            all.retain(|(name, _)| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes(), true)));
            call.reply.map(all.len());
            for (name, value) in all {
                call.reply.bulk(name.as_bytes());
                call.reply.bulk(value.as_bytes());
            }
        }
        (b"set", len) if len >= 4 && len.is_multiple_of(2) => config_set(session, call),
        (b"set", 4..) => call.reply.error(errors::SYNTAX),
        (b"resetstat", 2) => {
            session.shared.stats.reset();
            call.reply.ok();
        }
        (b"rewrite", 2) => match session.shared.host.rewrite() {
            Ok(()) => call.reply.ok(),
            Err(what) => call.reply.error(&format!("ERR {what}")),
        },
        (b"help", 2) => help(
            call,
            &[
                "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                "GET <pattern>",
                "    Return parameters matching the glob-like <pattern> and their values.",
                "SET <directive> <value>",
                "    Set the configuration <directive> to <value>.",
                "RESETSTAT",
                "    Reset statistics reported by the INFO command.",
                "REWRITE",
                "    Rewrite the configuration file.",
                "HELP",
                "    Prints this help.",
            ],
        ),
        (b"get" | b"set" | b"resetstat" | b"rewrite" | b"help", _) => wrong_sub_arity(call, &sub),
        _ => unknown_sub(call),
    }
    Ok(())
}

fn config_set(session: &mut Session, call: &mut Call<'_>) {
    let text: Vec<String> = call.args[2..].iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
    let changes: Vec<(&str, &str)> = text.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
    for (at, (name, _)) in changes.iter().enumerate() {
        if changes[..at].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
            call.reply
                .error(&format!("ERR CONFIG SET failed (possibly related to argument '{name}') - duplicate parameter"));
            return;
        }
    }
    let (host, parameters) = (&session.shared.host, &session.shared.parameters);
    let of_host = host.settings();
    let is_of_host = |name: &str| of_host.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let (to_host, others): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(name, _)| is_of_host(name));
    let changed = parameters.check(&others).and_then(|checked| {
        if !to_host.is_empty() {
            host.change(&to_host)?;
        }
        parameters.apply(checked);
        Ok(())
    });
    match changed {
        Ok(()) => call.reply.ok(),
        Err(Refused::Unknown(name)) => {
            call.reply.error(&format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'"))
        }
        Err(Refused::Fixed(name)) => call.reply.error(&format!(
            "ERR CONFIG SET failed (possibly related to argument '{name}') - can't set immutable config"
        )),
        Err(Refused::Bad(name, expected)) => {
            call.reply.error(&format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {expected}"))
        }
    }
}

fn command_row(reply: &mut Reply<'_>, command: &Command) {
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.integer(i64::from(command.arity));
    let flags: Vec<&str> = flag::NAMES.iter().filter(|(bit, _)| command.is(*bit)).map(|(_, name)| *name).collect();
    reply.set(flags.len());
    flags.iter().for_each(|name| reply.simple(name));
    let (first, last, step) = match command.keys {
        Keys::Range(first, last, step) => (first as i64, i64::from(last), step as i64),
        Keys::Move => (1, 1, 1),
        Keys::Copied => (1, 2, 1),
        Keys::None | Keys::All => (0, 0, 0),
    };
    reply.integer(first);
    reply.integer(last);
    reply.integer(step);
    let categories = command.categories();
    reply.set(categories.len());
    categories.iter().for_each(|name| reply.simple(&format!("@{name}")));
    // Tips, key specifications, subcommands.
    (0..3).for_each(|_| reply.array(0));
}

fn command_docs(reply: &mut Reply<'_>, commands: &[&'static Command]) {
    reply.map(commands.len());
    for command in commands {
        reply.bulk(command.name.as_bytes());
        let facts = [
            ("summary", command.summary),
            ("since", command.since),
            ("group", command.group),
            ("complexity", command.complexity),
        ];
        let known: Vec<_> = facts.iter().filter(|(_, text)| !text.is_empty()).collect();
        reply.map(known.len());
        for (name, text) in known {
            reply.bulk(name.as_bytes());
            reply.bulk(text.as_bytes());
        }
    }
}

fn named(args: &[&[u8]]) -> Vec<Option<&'static Command>> {
    args.iter().map(|name| crate::command::find(name)).collect()
}

pub fn command(_: &mut Session, call: &mut Call<'_>) -> Result {
    if call.args.len() == 1 {
        call.reply.array(COMMANDS.len());
        COMMANDS.iter().for_each(|command| command_row(&mut call.reply, command));
        return Ok(());
    }
    let sub = call.args[1].to_ascii_lowercase();
    match (sub.as_slice(), call.args.len()) {
        (b"count", 2) => call.reply.integer(COMMANDS.len() as i64),
        (b"info", _) => {
            let rows = if call.args.len() == 2 { COMMANDS.iter().map(Some).collect() } else { named(&call.args[2..]) };
            call.reply.array(rows.len());
            for row in rows {
                match row {
                    Some(command) => command_row(&mut call.reply, command),
                    None => call.reply.null(),
                }
            }
        }
        (b"docs", _) => {
            let rows: Vec<&'static Command> = if call.args.len() == 2 {
                COMMANDS.iter().collect()
            } else {
                named(&call.args[2..]).into_iter().flatten().collect()
            };
            command_docs(&mut call.reply, &rows);
        }
        (b"list", _) => command_list(call),
        (b"getkeys", 3..) => {
            let Some(command) = crate::command::find(call.args[2]) else {
                call.reply.error("ERR Invalid command specified");
                return Ok(());
            };
            if !command.takes(call.args.len() - 2) {
                call.reply.error("ERR Invalid number of arguments specified for command");
                return Ok(());
            }
            let keys = command.keys_of(0, &call.args[2..]).unwrap_or_default();
            if keys.is_empty() {
                call.reply.error("ERR The command has no key arguments");
                return Ok(());
            }
            let keys = if command.keys == Keys::Move { &keys[..1] } else { &keys[..] };
            call.reply.array(keys.len());
            keys.iter().for_each(|(_, key)| call.reply.bulk(key));
        }
        (b"help", 2) => help(
            call,
            &[
                "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                "(no subcommand)",
                "    Return details about all Redis commands.",
                "COUNT",
                "    Return the total number of commands in this Redis server.",
                "LIST",
                "    Return a list of all commands in this Redis server.",
                "INFO [<command-name> ...]",
                "    Return details about multiple Redis commands.",
                "    If no command names are given, documentation details for all",
                "    commands are returned.",
                "DOCS [<command-name> ...]",
                "    Return documentation details about multiple Redis commands.",
                "    If no command names are given, documentation details for all",
                "    commands are returned.",
                "GETKEYS <full-command>",
                "    Return the keys from a full Redis command.",
                "HELP",
                "    Prints this help.",
            ],
        ),
        (b"count" | b"getkeys" | b"help", _) => wrong_sub_arity(call, &sub),
        _ => unknown_sub(call),
    }
    Ok(())
}

fn command_list(call: &mut Call<'_>) {
    let chosen: Vec<&Command> = match call.args.len() {
        2 => COMMANDS.iter().collect(),
        5 if call.word(2, "filterby") && call.word(3, "pattern") => {
            let pattern = call.args[4];
            COMMANDS.iter().filter(|command| glob::matches(pattern, command.name.as_bytes(), true)).collect()
        }
        5 if call.word(2, "filterby") && call.word(3, "aclcat") => {
            let category = String::from_utf8_lossy(call.args[4]).to_ascii_lowercase();
            COMMANDS.iter().filter(|command| command.categories().contains(&category.as_str())).collect()
        }
        _ => {
            call.reply.error(errors::SYNTAX);
            return;
        }
    };
    call.reply.array(chosen.len());
    chosen.iter().for_each(|command| call.reply.bulk(command.name.as_bytes()));
}

pub fn slowlog(session: &mut Session, call: &mut Call<'_>) -> Result {
    let sub = call.args[1].to_ascii_lowercase();
    let slow = &session.shared.stats.slow;
    match (sub.as_slice(), call.args.len()) {
        (b"len", 2) => call.reply.integer(slow.lock().len() as i64),
        (b"reset", 2) => {
            slow.lock().clear();
            call.reply.ok();
        }
        (b"get", 2 | 3) => {
            let mut count = 10;
            if call.args.len() == 3 {
                match number::parse(call.args[2]) {
                    n if n.is_none_or(|n| n < -1) => {
                        call.reply.error("ERR count should be greater than or equal to -1");
                        return Ok(());
                    }
                    Some(-1) => count = usize::MAX,
                    n => count = n.unwrap_or(0) as usize,
                }
            }
            let entries: Vec<_> = slow.lock().iter().take(count).cloned().collect();
            call.reply.array(entries.len());
            for entry in entries {
                call.reply.array(6);
                call.reply.integer(entry.id as i64);
                call.reply.integer(entry.unix_seconds as i64);
                call.reply.integer(entry.microseconds as i64);
                call.reply.array(entry.args.len());
                entry.args.iter().for_each(|arg| call.reply.bulk(arg));
                call.reply.bulk(entry.peer.as_bytes());
                call.reply.bulk(entry.name.as_bytes());
            }
        }
        (b"help", 2) => help(
            call,
            &[
                "SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                "GET [<count>]",
                "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
                "    Entries are made of:",
                "    id, timestamp, time in microseconds, arguments array, client IP and port,",
                "    client name",
                "LEN",
                "    Return the length of the slowlog.",
                "RESET",
                "    Reset the slowlog.",
                "HELP",
                "    Prints this help.",
            ],
        ),
        (b"len" | b"reset" | b"get" | b"help", _) => wrong_sub_arity(call, &sub),
        _ => unknown_sub(call),
    }
    Ok(())
}

/// Latency of commands comes from their histogram; there is no monitor of events, so its lists are empty.
pub fn latency(session: &mut Session, call: &mut Call<'_>) -> Result {
    let sub = call.args[1].to_ascii_lowercase();
    match (sub.as_slice(), call.args.len()) {
        (b"latest", 2) | (b"history", 3) => call.reply.array(0),
        (b"reset", _) => call.reply.integer(0),
        (b"doctor", 2) => {
            let snapshot = session.shared.stats.latency.snapshot();
            let text = format!(
                "Requests: {}. Time in the server without the wait for the disk: p50 {} us, p99 {} us, p99.9 {} us, longest {} us.\n",
                snapshot.count,
                snapshot.quantile(0.5) / 1000,
                snapshot.quantile(0.99) / 1000,
                snapshot.quantile(0.999) / 1000,
                snapshot.max / 1000,
            );
            call.reply.verbatim(text.as_bytes());
        }
        (b"help", 2) => help(
            call,
            &[
                "LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                "DOCTOR",
                "    Return a human readable latency analysis report.",
                "HISTORY <event>",
                "    Return time-latency samples for the <event> class.",
                "LATEST",
                "    Return the latest latency samples for all events.",
                "RESET [<event> ...]",
                "    Reset latency data of one or more <event> classes.",
                "HELP",
                "    Prints this help.",
            ],
        ),
        (b"latest" | b"history" | b"doctor" | b"help", _) => wrong_sub_arity(call, &sub),
        _ => unknown_sub(call),
    }
    Ok(())
}

static DEBUG_SLEEP: stdx::wait::Reason = stdx::wait::Reason { name: "debug_sleep" };

pub fn debug(session: &mut Session, call: &mut Call<'_>) -> Result {
    let sub = call.args[1].to_ascii_lowercase();
    match (sub.as_slice(), call.args.len()) {
        (b"sleep", 3) => {
            let text = std::str::from_utf8(call.args[2]).ok().and_then(|text| text.parse::<f64>().ok());
            let Some(seconds) = text.filter(|seconds| seconds.is_finite() && *seconds >= 0.0 && *seconds < 1e6) else {
                call.reply.error(errors::NOT_FLOAT);
                return Ok(());
            };
            let _waiting = stdx::wait::announce(&DEBUG_SLEEP);
            std::thread::sleep(std::time::Duration::from_secs_f64(seconds));
            call.reply.ok();
        }
        (b"jmap", 2) => call.reply.ok(),
        (b"set-active-expire", 3) => match call.args[2] {
            b"0" | b"1" => {
                session.shared.keyspace.set_active_expire(call.args[2] == b"1");
                call.reply.ok();
            }
            _ => call.reply.error(errors::SYNTAX),
        },
        (b"object", 3) => {
            let keys = [(call.db, call.args[2])];
            let found =
                session.shared.keyspace.read(engine::Locks::Keys(&keys), |unit| unit.peek(call.db, call.args[2]));
            match found?.0 {
                None => call.reply.error(errors::NO_SUCH_KEY),
                Some(entry) => {
                    let text = format!(
                        "Value at:{:#x} refcount:1 encoding:{} serializedlength:{} lru:0 lru_seconds_idle:0",
                        entry.word,
                        entry.encoding(),
                        entry.len
                    );
                    call.reply.simple(&text);
                }
            }
        }
        (b"help", 2) => help(
            call,
            &[
                "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                "JMAP",
                "    Does nothing, as in Redis without the JVM.",
                "OBJECT <key>",
                "    Show low level info about `key` and associated value.",
                "SET-ACTIVE-EXPIRE <0|1>",
                "    Setting it to 0 disables expiring keys in background when they are not",
                "    accessed (otherwise the behavior is to expire them).",
                "SLEEP <seconds>",
                "    Stop the session for <seconds>. Decimals allowed.",
                "HELP",
                "    Prints this help.",
            ],
        ),
        _ => unknown_sub(call),
    }
    Ok(())
}

/// Sections of INFO in order, and whether they come without being asked for.
const SECTIONS: [(&str, bool); 9] = [
    ("server", true),
    ("clients", true),
    ("memory", true),
    ("persistence", true),
    ("stats", true),
    ("replication", true),
    ("cpu", true),
    ("commandstats", false),
    ("keyspace", true),
];

pub fn info(session: &mut Session, call: &mut Call<'_>) -> Result {
    let asked: Vec<String> =
        call.args[1..].iter().map(|arg| String::from_utf8_lossy(arg).to_ascii_lowercase()).collect();
    let everything = asked.iter().any(|name| matches!(name.as_str(), "all" | "everything"));
    let default = asked.is_empty() || asked.iter().any(|name| name == "default");
    let mut text = String::new();
    for (name, usual) in SECTIONS {
        if !(everything || default && usual || asked.iter().any(|asked| asked == name)) {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let title = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        text.push_str(&format!("# {title}\r\n"));
        for (field, value) in section(session, name)? {
            text.push_str(&format!("{field}:{value}\r\n"));
        }
    }
    call.reply.verbatim(text.as_bytes());
    Ok(())
}

type Fields = Vec<(String, String)>;

fn section(session: &Session, name: &str) -> std::result::Result<Fields, engine::Error> {
    let mut fields: Fields = Vec::new();
    let mut add = |field: &str, value: String| fields.push((field.to_owned(), value));
    let shared = &session.shared;
    let pool = shared.pool.get().and_then(std::sync::Weak::upgrade);
    match name {
        "server" => {
            let up = session.now_ms().saturating_sub(shared.started_ms) / 1000;
            add("redis_version", REDIS_VERSION.to_owned());
            add("beluga_version", shared.host.version().to_owned());
            add("redis_mode", "standalone".to_owned());
            add("os", std::env::consts::OS.to_owned());
            add("arch_bits", usize::BITS.to_string());
            add("multiplexing_api", "epoll".to_owned());
            add("process_id", std::process::id().to_string());
            add("run_id", shared.run_id.clone());
            add("tcp_port", shared.port.to_string());
            add("server_time_usec", shared.clock.wall_us().to_string());
            add("uptime_in_seconds", up.to_string());
            add("uptime_in_days", (up / 86_400).to_string());
        }
        "clients" => {
            let clients = shared.clients.list();
            let parked = clients.iter().filter(|client| client.state.lock().parked).count();
            add("connected_clients", clients.len().to_string());
            if let Some(pool) = &pool {
                add("maxclients", pool.settings().max_connections.to_string());
            }
            add("blocked_clients", parked.to_string());
        }
        "memory" => add("used_memory_rss", os::memory::rss_bytes().to_string()),
        "persistence" => {
            let pager = shared.engine.pager();
            add("loading", "0".to_owned());
            add("log_head_lsn", pager.log_head().to_string());
            add("log_durable_lsn", pager.durable().get().to_string());
            add("log_checkpoint_lsn", pager.checkpoint_lsn().to_string());
            add("disk_full", u8::from(pager.is_full()).to_string());
        }
        "stats" => {
            let metrics = shared.engine.metrics();
            if let Some(pool) = &pool {
                let counters = pool.counters();
                add("total_connections_received", counters.accepted.get().to_string());
                add("rejected_connections", counters.refused.get().to_string());
                add("total_net_input_bytes", counters.bytes_in.get().to_string());
                add("total_net_output_bytes", counters.bytes_out.get().to_string());
            }
            add("total_commands_processed", shared.stats.calls().to_string());
            add("total_error_replies", shared.stats.errors.get().to_string());
            add("expired_keys", metrics.expired.get().to_string());
            add("evicted_keys", metrics.evicted().to_string());
            add("keyspace_hits", metrics.hits.get().to_string());
            add("keyspace_misses", metrics.misses.get().to_string());
            add("transactions_committed", metrics.txn_commits.get().to_string());
            add("transactions_rolled_back", metrics.txn_aborts.get().to_string());
        }
        "replication" => {
            add("role", "master".to_owned());
            add("connected_slaves", "0".to_owned());
        }
        "cpu" => add("used_cpu_total", format!("{:.6}", os::cpu::process_cpu_ns() as f64 / 1e9)),
        "commandstats" => {
            for (command, stats) in COMMANDS.iter().zip(&shared.stats.commands) {
                let (calls, rejected, failed) = (stats.calls.get(), stats.rejected.get(), stats.failed.get());
                if calls + rejected > 0 {
                    let usec = stats.nanoseconds.get() / 1000;
                    let per_call = usec as f64 / calls.max(1) as f64;
                    let value = format!(
                        "calls={calls},usec={usec},usec_per_call={per_call:.2},rejected_calls={rejected},failed_calls={failed}"
                    );
                    add(&format!("cmdstat_{}", command.name), value);
                }
            }
        }
        "keyspace" => {
            let (counts, _) = shared.keyspace.read(engine::Locks::Keys(&[]), |unit| {
                (0..engine::DATABASES)
                    .map(|db| Ok((db, unit.count(db)?, unit.expires(db)?)))
                    .collect::<engine::Result<Vec<_>>>()
            })?;
            for (db, keys, expires) in counts.into_iter().filter(|(_, keys, _)| *keys > 0) {
                add(&format!("db{db}"), format!("keys={keys},expires={expires},avg_ttl=0"));
            }
        }
        _ => {}
    }
    fields.extend(shared.host.facts(name));
    Ok(fields)
}

impl Session {
    /// True while EXEC runs this session's commands.
    pub(crate) fn in_exec(&self) -> bool {
        self.running_queue.load(Ordering::Relaxed)
    }
}
