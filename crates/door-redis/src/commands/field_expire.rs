//! HEXPIRE and the other commands for expiry times of fields, as in Redis 7.4.

use engine::{FieldChange, KeyTransaction, Kind, event_class};

use crate::call::{Call, Result};
use crate::commands::lookup_as;
use crate::errors;
use crate::number;

/// Greatest expiry time of a field that a command sets, in milliseconds since 1970.
const TIME_MAX: i64 = (1 << 46) - 1;

const NO_FIELDS: &str = "ERR Mandatory argument FIELDS is missing or not at the right position";
const WRONG_COUNT: &str = "ERR The `numfields` parameter must match the number of arguments";

/// Replies for a field.
const ABSENT: i64 = -2;
const NO_TIME: i64 = -1;
const NOT_MET: i64 = 0;
const DONE: i64 = 1;
const DELETED: i64 = 2;

/// Checks FIELDS at a position, and the number of fields behind it. Returns the position of the first field; None after an error reply.
fn first_field(call: &mut Call<'_>, at: usize, no_count: &str) -> Option<usize> {
    if !call.args.get(at).is_some_and(|word| word.eq_ignore_ascii_case(b"fields")) {
        call.reply.error(NO_FIELDS);
        return None;
    }
    let Some(count) = call.args.get(at + 1).and_then(|count| number::parse(count)).filter(|count| *count >= 1) else {
        call.reply.error(no_count);
        return None;
    };
    if count as u64 != (call.args.len() - at - 2) as u64 {
        call.reply.error(WRONG_COUNT);
        return None;
    }
    Some(at + 2)
}

fn reply_each(call: &mut Call<'_>, replies: &[i64]) {
    call.reply.array(replies.len());
    replies.iter().for_each(|reply| call.reply.integer(*reply));
}

/// Sets the expiry time of fields. `scale` is the number of milliseconds per unit; `is_relative` times count from now.
fn set_times(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, scale: i64, is_relative: bool) -> Result {
    let (db, key) = (call.db, call.args[1]);
    if lookup_as(txn, call, key, Kind::Hash)?.is_none() {
        return Ok(());
    }
    let Some(value) = call.integer(2) else { return Ok(()) };
    if value < 0 {
        call.reply.error("ERR invalid expire time, must be >= 0");
        return Ok(());
    }
    let now = txn.now_ms() as i64;
    let base = if is_relative { now } else { 0 };
    let at = value.checked_mul(scale).and_then(|ms| ms.checked_add(base)).filter(|at| *at <= TIME_MAX);
    let Some(at) = at else {
        let text = errors::invalid_expire(call.command.name);
        call.reply.error(&text);
        return Ok(());
    };
    let condition = call.args[3].to_ascii_lowercase();
    let has_condition = matches!(&condition[..], b"nx" | b"xx" | b"gt" | b"lt");
    let Some(first) =
        first_field(call, 3 + usize::from(has_condition), "ERR Parameter `numFields` should be greater than 0")
    else {
        return Ok(());
    };
    let names = &call.args[first..];
    let mut replies = vec![ABSENT; names.len()];
    txn.change_fields(db, key, names, call.limits.hash(), &mut |nth, old| {
        let is_met = match (&condition[..], old.map(|old| old as i64)) {
            (b"nx", old) => old.is_none(),
            (b"xx", old) => old.is_some(),
            (b"gt", old) => old.is_some_and(|old| at > old),
            (b"lt", old) => old.is_none_or(|old| at < old),
            _ => true,
        };
        let (reply, change) = match is_met {
            false => (NOT_MET, FieldChange::Keep),
            true if at <= now => (DELETED, FieldChange::Remove),
            true => (DONE, FieldChange::Until(at as u64)),
        };
        replies[nth] = reply;
        change
    })?;
    if replies.contains(&DELETED) {
        txn.notify(db, key, event_class::HASH, "hdel");
        if txn.peek(db, key)?.is_none() {
            txn.notify(db, key, event_class::GENERIC, "del");
        }
    } else if replies.contains(&DONE) {
        txn.notify(db, key, event_class::HASH, "hexpire");
    }
    reply_each(call, &replies);
    Ok(())
}

pub fn hexpire(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_times(txn, call, 1000, true)
}

pub fn hpexpire(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_times(txn, call, 1, true)
}

pub fn hexpireat(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_times(txn, call, 1000, false)
}

pub fn hpexpireat(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    set_times(txn, call, 1, false)
}

const NOT_POSITIVE: &str = "ERR Number of fields must be a positive integer";

pub fn hpersist(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let (db, key) = (call.db, call.args[1]);
    if lookup_as(txn, call, key, Kind::Hash)?.is_none() {
        return Ok(());
    }
    let Some(first) = first_field(call, 2, NOT_POSITIVE) else { return Ok(()) };
    let names = &call.args[first..];
    let mut replies = vec![ABSENT; names.len()];
    txn.change_fields(db, key, names, call.limits.hash(), &mut |nth, old| {
        let (reply, change) = match old {
            Some(_) => (DONE, FieldChange::Persist),
            None => (NO_TIME, FieldChange::Keep),
        };
        replies[nth] = reply;
        change
    })?;
    if replies.contains(&DONE) {
        txn.notify(db, key, event_class::HASH, "hpersist");
    }
    reply_each(call, &replies);
    Ok(())
}

/// Replies the times of fields: the result of `show` for the expiry time and now.
fn reply_times(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, show: impl Fn(i64, i64) -> i64) -> Result {
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::Hash)? else { return Ok(()) };
    let Some(first) = first_field(call, 2, NOT_POSITIVE) else { return Ok(()) };
    let now = txn.now_ms() as i64;
    let mut replies = Vec::with_capacity(call.args.len() - first);
    for name in &call.args[first..] {
        let field = found.as_ref().map(|entry| txn.member(entry, name)).transpose()?.flatten();
        replies.push(match field.map(|field| field.expire_at_ms) {
            None => ABSENT,
            Some(None) => NO_TIME,
            Some(Some(at)) => show(at as i64, now),
        });
    }
    reply_each(call, &replies);
    Ok(())
}

pub fn httl(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_times(txn, call, |at, now| (at - now + 999) / 1000)
}

pub fn hpttl(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_times(txn, call, |at, now| at - now)
}

pub fn hexpiretime(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_times(txn, call, |at, _| (at + 999) / 1000)
}

pub fn hpexpiretime(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_times(txn, call, |at, _| at)
}
