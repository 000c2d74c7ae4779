//! Commands of hashes. `field_expire` has those for the expiry times of fields.

use engine::{Entry, KeyTransaction, Kind, event_class};

use crate::call::{Call, Result};
use crate::commands::lookup_as;
use crate::commands::members::{RandomMembers, remove_members, reply_sample, scan_members};
use crate::errors;
use crate::extended::Extended;
use crate::number;

fn put(
    txn: &mut KeyTransaction<'_>,
    call: &Call<'_>,
    items: &[(&[u8], &[u8])],
    event: &'static str,
) -> std::result::Result<u64, engine::Error> {
    let added = txn.put_members(call.db, call.args[1], Kind::Hash, items, call.limits.hash())?;
    txn.notify(call.db, call.args[1], event_class::HASH, event);
    Ok(added)
}

pub fn hset(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if let Some(added) = set_pairs(txn, call)? {
        call.reply.integer(added as i64);
    }
    Ok(())
}

pub fn hmset(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if set_pairs(txn, call)?.is_some() {
        call.reply.ok();
    }
    Ok(())
}

/// Returns the number of new fields. Returns None after an error reply.
fn set_pairs(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> std::result::Result<Option<u64>, engine::Error> {
    if !call.args.len().is_multiple_of(2) {
        call.reply.error(&errors::wrong_arity(call.command.name));
        return Ok(None);
    }
    if lookup_as(txn, call, call.args[1], Kind::Hash)?.is_none() {
        return Ok(None);
    }
    let items: Vec<(&[u8], &[u8])> = call.args[2..].chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    put(txn, call, &items, "hset").map(Some)
}

pub fn hsetnx(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::Hash)? else { return Ok(()) };
    let is_free = match &found {
        Some(entry) => txn.member(entry, call.args[2])?.is_none(),
        None => true,
    };
    if is_free {
        put(txn, call, &[(call.args[2], call.args[3])], "hset")?;
    }
    call.reply.flag(is_free);
    Ok(())
}

/// Gives a field another value. It keeps its expiry time.
fn put_value(
    txn: &mut KeyTransaction<'_>,
    call: &Call<'_>,
    value: &[u8],
    event: &'static str,
) -> std::result::Result<(), engine::Error> {
    txn.put_value(call.db, call.args[1], (call.args[2], value), call.limits.hash())?;
    txn.notify(call.db, call.args[1], event_class::HASH, event);
    Ok(())
}

/// Looks up one field. Returns None after a WRONGTYPE reply.
fn field(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
) -> std::result::Result<Option<Option<Entry>>, engine::Error> {
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::Hash)? else { return Ok(None) };
    let value = found.map(|entry| txn.member(&entry, call.args[2])).transpose()?;
    Ok(Some(value.flatten()))
}

pub fn hget(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    match field(txn, call)? {
        None => {}
        Some(None) => call.reply.null(),
        Some(Some(value)) => call.bulk_value(txn, &value, 0..value.len)?,
    }
    Ok(())
}

pub fn hmget(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::Hash)? else { return Ok(()) };
    call.reply.array(call.args.len() - 2);
    for name in &call.args[2..] {
        let value = found.as_ref().map(|entry| txn.member(entry, name)).transpose()?;
        match value.flatten() {
            Some(value) => call.bulk_value(txn, &value, 0..value.len)?,
            None => call.reply.null(),
        }
    }
    Ok(())
}

pub fn hexists(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if let Some(value) = field(txn, call)? {
        call.reply.flag(value.is_some());
    }
    Ok(())
}

pub fn hstrlen(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if let Some(value) = field(txn, call)? {
        call.reply.integer(value.map_or(0, |value| value.len as i64));
    }
    Ok(())
}

pub fn hlen(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if let Some(found) = lookup_as(txn, call, call.args[1], Kind::Hash)? {
        let count = found.map_or(Ok(0), |entry| txn.live_count(&entry))?;
        call.reply.integer(count as i64);
    }
    Ok(())
}

pub fn hdel(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    remove_members(txn, call, Kind::Hash, (event_class::HASH, "hdel"))
}

pub fn hgetall(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_all(txn, call, true, true)
}

pub fn hkeys(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_all(txn, call, true, false)
}

pub fn hvals(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_all(txn, call, false, true)
}

fn reply_all(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, fields: bool, values: bool) -> Result {
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::Hash)? else { return Ok(()) };
    let count = found.as_ref().map_or(Ok(0), |entry| txn.live_count(entry))? as usize;
    if fields && values {
        call.reply.map(count)
    } else {
        call.reply.array(count)
    }
    let Some(entry) = found else { return Ok(()) };
    let mut walk = txn.members(&entry)?;
    while let Some(item) = walk.next(txn)? {
        if fields {
            call.bulk_item(item.member)?;
        }
        if values {
            call.bulk_item_value(txn, &item.value)?;
        }
    }
    Ok(())
}

pub fn hincrby(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(amount) = call.integer(3) else { return Ok(()) };
    let Some(old) = field(txn, call)? else { return Ok(()) };
    let old = match &old {
        None => Some(0),
        Some(value) => number::parse(&short(txn, value)?),
    };
    let Some(old) = old else {
        call.reply.error("ERR hash value is not an integer");
        return Ok(());
    };
    let Some(sum) = old.checked_add(amount) else {
        call.reply.error(errors::OVERFLOW);
        return Ok(());
    };
    put_value(txn, call, sum.to_string().as_bytes(), "hincrby")?;
    call.reply.integer(sum);
    Ok(())
}

pub fn hincrbyfloat(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(amount) = Extended::parse(call.args[3]) else {
        call.reply.error(errors::NOT_FLOAT);
        return Ok(());
    };
    if amount.is_infinite() {
        call.reply.error("ERR value is NaN or Infinity");
        return Ok(());
    }
    let Some(old) = field(txn, call)? else { return Ok(()) };
    let old = match &old {
        None => Extended::parse(b"0"),
        Some(value) => Extended::parse(&short(txn, value)?),
    };
    let Some(old) = old else {
        call.reply.error("ERR hash value is not a float");
        return Ok(());
    };
    let sum = old.plus(amount);
    if old.is_infinite() || sum.is_infinite() {
        call.reply.error("ERR increment would produce NaN or Infinity");
        return Ok(());
    }
    let mut text = Vec::new();
    sum.print(&mut text);
    put_value(txn, call, &text, "hincrbyfloat")?;
    call.reply.bulk(&text);
    Ok(())
}

/// Returns a value that may be a number; of a longer one its beginning, which is none.
fn short(txn: &mut KeyTransaction<'_>, value: &Entry) -> std::result::Result<Vec<u8>, engine::Error> {
    const NUMBER_MAX: u64 = 6000;
    let mut bytes = Vec::new();
    txn.value(value, 0..value.len.min(NUMBER_MAX), &mut bytes)?;
    if value.len > NUMBER_MAX {
        bytes.push(b'x');
    }
    Ok(bytes)
}

pub fn hrandfield(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(sample) = RandomMembers::parse(call, "withvalues") else { return Ok(()) };
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::Hash)? else { return Ok(()) };
    reply_sample(txn, call, found.as_ref(), sample)
}

pub fn hscan(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    scan_members(txn, call, Kind::Hash)
}
