//! EXPIRE and the other commands for times to live.

use engine::KeyTransaction;

use crate::call::{Call, Result};
use crate::commands::{delete, set_expire};
use crate::errors;

#[derive(Default)]
struct Conditions {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

fn conditions(call: &mut Call<'_>) -> Option<Conditions> {
    let mut given = Conditions::default();
    for at in 3..call.args.len() {
        match call.args[at].to_ascii_lowercase().as_slice() {
            b"nx" => given.nx = true,
            b"xx" => given.xx = true,
            b"gt" => given.gt = true,
            b"lt" => given.lt = true,
            _ => {
                let text = format!("ERR Unsupported option {}", String::from_utf8_lossy(call.args[at]));
                call.reply.error(&text);
                return None;
            }
        }
    }
    if given.nx && (given.xx || given.gt || given.lt) {
        call.reply.error("ERR NX and XX, GT or LT options at the same time are not compatible");
        return None;
    }
    if given.gt && given.lt {
        call.reply.error("ERR GT and LT options at the same time are not compatible");
        return None;
    }
    Some(given)
}

/// Sets an expiry time. `scale` is the number of milliseconds per unit; `relative` times count from now.
fn set_time(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, scale: i64, relative: bool) -> Result {
    let Some(conditions) = conditions(call) else { return Ok(()) };
    let Some(value) = call.integer(2) else { return Ok(()) };
    let base = if relative { txn.now_ms() as i64 } else { 0 };
    let Some(at) = value.checked_mul(scale).and_then(|ms| ms.checked_add(base)) else {
        let text = errors::invalid_expire(call.command.name);
        call.reply.error(&text);
        return Ok(());
    };
    let Some(entry) = txn.peek(call.db, call.args[1])? else {
        call.reply.flag(false);
        return Ok(());
    };
    let current = entry.expire_at_ms.map(|ms| ms as i64);
    let refused = conditions.nx && current.is_some()
        || conditions.xx && current.is_none()
        || conditions.gt && current.is_none_or(|current| at <= current)
        || conditions.lt && current.is_some_and(|current| at >= current);
    if !refused {
        if at <= 0 || txn.is_over(at as u64) {
            delete(txn, call, call.args[1])?;
        } else {
            set_expire(txn, call, call.args[1], Some(at as u64))?;
        }
    }
    call.reply.flag(!refused);
    Ok(())
}

pub fn expire(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_time(txn, call, 1000, true)
}

pub fn pexpire(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_time(txn, call, 1, true)
}

pub fn expireat(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_time(txn, call, 1000, false)
}

pub fn pexpireat(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_time(txn, call, 1, false)
}

pub fn persist(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let timed = txn.peek(call.db, call.args[1])?.is_some_and(|entry| entry.expire_at_ms.is_some());
    if timed {
        set_expire(txn, call, call.args[1], None)?;
    }
    call.reply.flag(timed);
    Ok(())
}

/// Replies -2 if the key does not exist and -1 if it has no expiry time, otherwise the result of `show` for the expiry time and now.
fn reply_time(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, show: impl Fn(i64, i64) -> i64) -> Result {
    let found = txn.get(call.db, call.args[1])?;
    let now = txn.now_ms() as i64;
    call.reply.integer(match found.map(|entry| entry.expire_at_ms) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => show(at as i64, now),
    });
    Ok(())
}

pub fn ttl(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_time(txn, call, |at, now| ((at - now).max(0) + 500) / 1000)
}

pub fn pttl(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_time(txn, call, |at, now| (at - now).max(0))
}

pub fn expiretime(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    // The largest expiry time does not fit into an i64 after rounding. Redis shows the unsigned quotient.
    reply_time(txn, call, |at, _| ((at as u64 + 500) / 1000) as i64)
}

pub fn pexpiretime(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_time(txn, call, |at, _| at)
}
