//! MEMORY. Data is on disk; memory holds a cache of fixed size.

use engine::{DATABASES, KeyTransaction};

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

fn limit(session: &Session) -> Option<u64> {
    let facts = session.shared.host.facts("memory");
    facts.iter().find(|(name, _)| name == "maxmemory").and_then(|(_, value)| value.parse().ok())
}

/// Replies the fields of Redis that have a meaning here, and the limit.
pub fn stats(session: &mut Session, call: &mut Call<'_>) -> Result {
    let (keys, _) = session.shared.keyspace.read(engine::KeySet::Keys(&[]), |txn| {
        (0..DATABASES).try_fold(0, |sum, db| Ok::<u64, engine::Error>(sum + txn.count(db)?))
    })?;
    let clients = session.shared.clients.list();
    let buffers = clients.iter().map(|client| client.memory_bytes()).sum();
    let mut numbers =
        vec![("total.allocated", os::memory::rss_bytes()), ("clients.normal", buffers), ("keys.count", keys)];
    numbers.extend(limit(session).map(|limit| ("memory.limit", limit)));
    call.reply.map(numbers.len());
    for (name, value) in numbers {
        call.reply.bulk(name.as_bytes());
        call.reply.integer(value as i64);
    }
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
            "STATS",
            "    Return information about the memory usage of the server.",
            "USAGE <key> [SAMPLES <count>]",
            "    Return memory in bytes used by <key> and its value. Nested values are",
            "    sampled up to <count> times (default: 5, 0 means sample all).",
        ],
    );
    Ok(())
}
