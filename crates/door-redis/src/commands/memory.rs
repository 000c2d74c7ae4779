//! MEMORY. Data is on disk; memory holds a cache of fixed size.

use engine::{DATABASES, KeyTransaction};
use redis_lua::Purpose;

use crate::call::{Call, Result};
use crate::commands::help as lines;
use crate::errors;
use crate::session::Session;

/// Replies the bytes that a key takes on pages, which are also its bytes in memory while the pages are cached.
pub fn usage(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    const SAMPLES: u64 = 5;
    let mut seen = SAMPLES;
    for at in (3..call.args.len()).step_by(2) {
        if !call.word(at, "samples") || at + 1 == call.args.len() {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
        let Some(samples) = call.integer(at + 1) else { return Ok(()) };
        if samples < 0 {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
        // 0: all of them.
        seen = if samples == 0 { u64::MAX } else { samples as u64 };
    }
    match txn.get(call.db, call.args[2])? {
        Some(entry) => {
            let bytes = txn.memory(&entry, seen)?;
            call.reply.integer(bytes as i64);
        }
        None => call.reply.null(),
    }
    Ok(())
}

/// Returns a field of INFO that the server knows.
fn fact(session: &Session, name: &str) -> Option<u64> {
    let facts = session.shared.host.facts("memory");
    facts.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.parse().ok())
}

fn limit(session: &Session) -> Option<u64> {
    fact(session, "maxmemory")
}

/// Replies the fields of Redis that have a meaning here, and the limit.
pub fn stats(session: &mut Session, call: &mut Call<'_>) -> Result {
    let (keys, _) = session.shared.keyspace.read(engine::KeySet::Keys(&[]), |txn| {
        (0..DATABASES).try_fold(0, |sum, db| Ok::<u64, engine::Error>(sum + txn.count(db)?))
    })?;
    let shared = &session.shared;
    let clients = shared.clients.list().iter().map(|client| client.memory_bytes()).sum();
    let backlog = {
        let history = shared.history.lock();
        history.end - history.start()
    };
    let scripts = shared.runs.state_bytes(Purpose::Scripts) + shared.scripts.counts().1;
    let functions = shared.runs.state_bytes(Purpose::Functions) + shared.libraries.get().bytes();
    let held = os::memory::rss_bytes();
    let peak = fact(session, "used_memory_peak").unwrap_or(held);
    let (overhead, dataset) = (fact(session, "used_memory_overhead"), fact(session, "used_memory_dataset"));
    let numbers = [
        ("peak.allocated", Some(peak)),
        ("total.allocated", Some(held)),
        ("replication.backlog", Some(backlog)),
        ("clients.normal", Some(clients)),
        ("lua.caches", Some(scripts)),
        ("functions.caches", Some(functions)),
        ("overhead.total", overhead),
        ("keys.count", Some(keys)),
        ("dataset.bytes", dataset),
        ("allocator.allocated", Some(stdx::memory::allocated())),
        // Redis has no such field.
        ("memory.limit", limit(session)),
    ];
    let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
    let percentages = [
        ("dataset.percentage", dataset.map(|bytes| percent(bytes, held))),
        ("peak.percentage", Some(percent(held, peak))),
    ];
    let count = numbers.iter().filter(|(_, value)| value.is_some()).count()
        + percentages.iter().filter(|(_, value)| value.is_some()).count();
    call.reply.map(count);
    for (name, value) in numbers.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
        call.reply.bulk(name.as_bytes());
        call.reply.integer(value as i64);
    }
    for (name, value) in percentages.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
        call.reply.bulk(name.as_bytes());
        call.reply.double(value);
    }
    Ok(())
}

/// Replies what is known of the allocator. It is built without its own statistics, which would cost every allocation.
pub fn malloc_stats(session: &mut Session, call: &mut Call<'_>) -> Result {
    let text = format!(
        "{}Allocated: {} bytes\nResident: {} bytes\n",
        session.shared.host.allocator(),
        stdx::memory::allocated(),
        os::memory::rss_bytes(),
    );
    call.reply.verbatim(text.as_bytes());
    Ok(())
}

/// The allocator gives free memory back by itself, so there is nothing to ask it for.
pub fn purge(_: &mut Session, call: &mut Call<'_>) -> Result {
    call.reply.ok();
    Ok(())
}

pub fn doctor(session: &mut Session, call: &mut Call<'_>) -> Result {
    let held = os::memory::rss_bytes();
    let text = match limit(session) {
        Some(limit) if held > limit / 10 * 11 => {
            format!("The process uses {held} bytes, more than the setting 'memory' allows ({limit}).\n")
        }
        Some(limit) => {
            format!("The process uses {held} bytes, within the setting 'memory' ({limit}). No problem was found.\n")
        }
        None => format!("The process uses {held} bytes.\n"),
    };
    call.reply.verbatim(text.as_bytes());
    Ok(())
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    lines(
        call,
        &[
            "DOCTOR",
            "    Return memory problems reports.",
            "MALLOC-STATS",
            "    Return internal statistics report from the memory allocator.",
            "PURGE",
            "    Attempt to purge dirty pages for reclamation by the allocator.",
            "STATS",
            "    Return information about the memory usage of the server.",
            "USAGE <key> [SAMPLES <count>]",
            "    Return memory in bytes used by <key> and its value. Nested values are",
            "    sampled up to <count> times (default: 5, 0 means sample all).",
        ],
    );
    Ok(())
}
