//! Times to live: EXPIRE and its relatives.

use engine::KeyTransaction;

use crate::call::{Call, Result};
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

/// `scale`: milliseconds of one unit. `relative`: counted from now.
fn set_time(unit: &mut KeyTransaction<'_>, call: &mut Call<'_>, scale: i64, relative: bool) -> Result {
    let Some(conditions) = conditions(call) else { return Ok(()) };
    let Some(value) = call.integer(2) else { return Ok(()) };
    let base = if relative { unit.now_ms() as i64 } else { 0 };
    let Some(at) = value.checked_mul(scale).and_then(|ms| ms.checked_add(base)) else {
        let text = errors::invalid_expire(call.command.name);
        call.reply.error(&text);
        return Ok(());
    };
    let Some(entry) = unit.peek(call.db, call.args[1])? else {
        call.reply.flag(false);
        return Ok(());
    };
    let current = entry.expire_at_ms.map(|ms| ms as i64);
    let refused = conditions.nx && current.is_some()
        || conditions.xx && current.is_none()
        || conditions.gt && current.is_none_or(|current| at <= current)
        || conditions.lt && current.is_some_and(|current| at >= current);
    if !refused {
        if at <= unit.now_ms() as i64 {
            unit.delete(call.db, call.args[1])?;
        } else {
            unit.set_expire(call.db, call.args[1], Some(at as u64))?;
        }
    }
    call.reply.flag(!refused);
    Ok(())
}

pub fn expire(unit: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_time(unit, call, 1000, true)
}

pub fn pexpire(unit: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_time(unit, call, 1, true)
}

pub fn expireat(unit: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_time(unit, call, 1000, false)
}

pub fn pexpireat(unit: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_time(unit, call, 1, false)
}

pub fn persist(unit: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let timed = unit.peek(call.db, call.args[1])?.is_some_and(|entry| entry.expire_at_ms.is_some());
    if timed {
        unit.set_expire(call.db, call.args[1], None)?;
    }
    call.reply.flag(timed);
    Ok(())
}

/// -2: no key, -1: no time; else what `show` makes of time and now.
fn reply_time(unit: &mut KeyTransaction<'_>, call: &mut Call<'_>, show: impl Fn(i64, i64) -> i64) -> Result {
    let found = unit.get(call.db, call.args[1])?;
    let now = unit.now_ms() as i64;
    call.reply.integer(match found.map(|entry| entry.expire_at_ms) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => show(at as i64, now),
    });
    Ok(())
}

pub fn ttl(unit: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_time(unit, call, |at, now| ((at - now).max(0) + 500) / 1000)
}

pub fn pttl(unit: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_time(unit, call, |at, now| (at - now).max(0))
}

pub fn expiretime(unit: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    // The farthest time does not fit an i64 once it is rounded; what Redis shows then is the unsigned quotient.
    reply_time(unit, call, |at, _| ((at as u64 + 500) / 1000) as i64)
}

pub fn pexpiretime(unit: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_time(unit, call, |at, _| at)
}
