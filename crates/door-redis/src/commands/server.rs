//! Commands for whole databases, and small commands about the server.

use engine::{KeyTransaction, event_class};
use stdx::sync::atomic::Ordering;

use crate::call::{Call, Result};
use crate::errors;
use crate::number::{self, database};
use crate::session::Session;

/// The version that clients expect of the server. INFO shows our own version beside it.
pub const REDIS_VERSION: &str = "7.0.15";

pub fn dbsize(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let count = txn.count(call.db)?;
    call.reply.integer(count as i64);
    Ok(())
}

/// ASYNC and SYNC mean the same here: the keys are gone at once, and their space is reclaimed in the background.
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

pub fn flushdb(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if flush_mode(call) {
        txn.flush(call.db)?;
        txn.notify(call.db, b"", event_class::CONTENTS, "flushdb");
        call.reply.ok();
    }
    Ok(())
}

pub fn flushall(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if flush_mode(call) {
        txn.flush_all()?;
        txn.notify(call.db, b"", event_class::CONTENTS, "flushall");
        call.reply.ok();
    }
    Ok(())
}

pub fn swapdb(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
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
        txn.swap(first, second)?;
        txn.notify(first, b"", event_class::CONTENTS, "swapdb");
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

/// A client that monitors already gets no reply, as in Redis.
pub fn monitor(session: &mut Session, call: &mut Call<'_>) -> Result {
    if session.in_exec() {
        call.reply.error("ERR MONITOR isn't allowed for DENY BLOCKING client");
    } else if !session.client.monitors.load(Ordering::Relaxed) {
        session.shared.monitors.join(&session.client);
        call.reply.ok();
    }
    Ok(())
}

pub fn lolwut(session: &mut Session, call: &mut Call<'_>) -> Result {
    let text = format!("Beluga ver. {}, compatible with Redis {REDIS_VERSION}\n", session.shared.host.version());
    call.reply.verbatim(text.as_bytes());
    Ok(())
}

/// WAIT: until so many followers have acknowledged all that was told so far. The session sleeps without a thread.
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
    if session.shared.replica.is_following() {
        call.reply.error("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.");
        return Ok(());
    }
    let wanted = usize::try_from(replicas).unwrap_or(0);
    session.acknowledgements = Some((session.written_to.load(Ordering::Relaxed), wanted));
    // Nothing blocks inside EXEC, as in Redis.
    if session.are_acknowledged() || session.in_exec() {
        session.acknowledgements = None;
        call.reply.integer(session.after_sleep.take().unwrap_or(0));
        return Ok(());
    }
    session.shared.history.append_command(&[b"REPLCONF", b"GETACK", b"*"], 0);
    let until = if timeout == 0 { u64::MAX / 4 } else { session.now_ms().saturating_add(timeout) };
    session.sleep_until_ms = Some(until);
    Ok(())
}

impl Session {
    /// Returns whether as many followers as WAIT asks for have acknowledged. Its reply becomes their number.
    pub(crate) fn are_acknowledged(&mut self) -> bool {
        let Some((offset, wanted)) = self.acknowledgements else { return false };
        // Registered before it counts, so that an acknowledgement meanwhile wakes it.
        if let Some(handle) = self.client.handle() {
            self.shared.history.wait(handle);
        }
        let count = self.shared.history.lock().count_acknowledged(offset);
        self.after_sleep = Some(count as i64);
        count >= wanted
    }

    /// Returns whether EXEC runs this session's commands.
    pub(crate) fn in_exec(&self) -> bool {
        self.running_queue.load(Ordering::Relaxed)
    }
}
