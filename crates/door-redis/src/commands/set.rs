//! Commands of sets.
//!
//! SINTER, SUNION and SDIFF walk over sets and look each member up in others, so they need no memory. SINTER walks over the smallest one.

use engine::{Entry, KeyTransaction, Kind, event_class};

use crate::call::{Call, Done, Result};
use crate::commands::lookup_as;
use crate::commands::members::{
    RandomMembers, draw_members, notify_removal, remove_members, reply_count, reply_sample, scan_members, store_built,
};
use crate::errors;
use crate::reply::Reply;
use crate::spool::LONG;

const SPOP: (u32, &str) = (event_class::SET, "spop");

pub fn sadd(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if lookup_as(txn, call, call.args[1], Kind::Set)?.is_some() {
        let items: Vec<(&[u8], &[u8])> = call.args[2..].iter().map(|member| (*member, &[][..])).collect();
        let added = txn.put_members(call.db, call.args[1], Kind::Set, &items, call.limits.set_of())?;
        if added > 0 {
            txn.notify(call.db, call.args[1], event_class::SET, "sadd");
        }
        call.reply.integer(added as i64);
    }
    Ok(())
}

pub fn srem(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    remove_members(txn, call, Kind::Set, (event_class::SET, "srem"))
}

pub fn scard(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_count(txn, call, Kind::Set)
}

fn has(txn: &KeyTransaction<'_>, set: Option<&Entry>, member: &[u8]) -> Done<bool> {
    set.map_or(Ok(false), |entry| Ok(txn.member(entry, member)?.is_some()))
}

pub fn sismember(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if let Some(found) = lookup_as(txn, call, call.args[1], Kind::Set)? {
        call.reply.flag(has(txn, found.as_ref(), call.args[2])?);
    }
    Ok(())
}

pub fn smismember(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if let Some(found) = lookup_as(txn, call, call.args[1], Kind::Set)? {
        call.reply.array(call.args.len() - 2);
        for member in &call.args[2..] {
            call.reply.flag(has(txn, found.as_ref(), member)?);
        }
    }
    Ok(())
}

pub fn smembers(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if let Some(found) = lookup_as(txn, call, call.args[1], Kind::Set)? {
        reply_all(txn, call, found.as_ref())?;
    }
    Ok(())
}

fn reply_all(txn: &KeyTransaction<'_>, call: &mut Call<'_>, set: Option<&Entry>) -> Result {
    call.reply.set(set.map_or(Ok(0), Entry::count)? as usize);
    let Some(entry) = set else { return Ok(()) };
    let mut walk = txn.members(entry)?;
    while let Some(item) = walk.next(txn)? {
        call.bulk_item(item.member)?;
    }
    Ok(())
}

pub fn smove(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let (from, to, member) = (call.args[1], call.args[2], call.args[3]);
    // The type of the target matters only if there is a source.
    if txn.peek(call.db, from)?.is_none() {
        call.reply.flag(false);
        return Ok(());
    }
    let Some(Some(source)) = lookup_as(txn, call, from, Kind::Set)? else { return Ok(()) };
    if lookup_as(txn, call, to, Kind::Set)?.is_none() {
        return Ok(());
    }
    let is_there = has(txn, Some(&source), member)?;
    if is_there && from != to {
        txn.remove_members(call.db, from, Kind::Set, &[member])?;
        notify_removal(txn, call.db, from, (event_class::SET, "srem"), (source.count()?, 1));
        if txn.put_members(call.db, to, Kind::Set, &[(member, &[])], call.limits.set_of())? > 0 {
            txn.notify(call.db, to, event_class::SET, "sadd");
        }
    }
    call.reply.flag(is_there);
    Ok(())
}

pub fn spop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let key = call.args[1];
    if call.args.len() > 3 {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    if call.args.len() == 2 {
        let Some(found) = lookup_as(txn, call, key, Kind::Set)? else { return Ok(()) };
        let before = found.as_ref().map_or(Ok(0), Entry::count)?;
        let drawn = found.map(|entry| txn.random_member(&entry)).transpose()?.flatten();
        match drawn {
            None => call.reply.null(),
            Some((member, _)) => {
                txn.remove_members(call.db, key, Kind::Set, &[&member])?;
                notify_removal(txn, call.db, key, SPOP, (before, 1));
                call.reply.bulk(&member);
            }
        }
        return Ok(());
    }
    let Some(count) = call.at_least(2, 0, errors::MUST_BE_POSITIVE) else { return Ok(()) };
    let Some(found) = lookup_as(txn, call, key, Kind::Set)? else { return Ok(()) };
    let Some(entry) = found.filter(|_| count > 0) else {
        call.reply.set(0);
        return Ok(());
    };
    let before = entry.count()?;
    if count as u64 >= before {
        reply_all(txn, call, Some(&entry))?;
        txn.delete(call.db, key)?;
        notify_removal(txn, call.db, key, SPOP, (before, before));
        return Ok(());
    }
    let drawn = draw_members(txn, &entry, count as u64)?;
    let members: Vec<&[u8]> = drawn.iter().map(Vec::as_slice).collect();
    let removed = txn.remove_members(call.db, key, Kind::Set, &members)?;
    notify_removal(txn, call.db, key, SPOP, (before, removed));
    call.reply.set(members.len());
    members.iter().for_each(|member| call.reply.bulk(member));
    Ok(())
}

pub fn srandmember(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if call.args.len() > 3 {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    let sample = if call.args.len() == 3 {
        let Some(count) = call.range(2, -i64::MAX, i64::MAX) else { return Ok(()) };
        RandomMembers::Many { count, values: false }
    } else {
        RandomMembers::One
    };
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::Set)? else { return Ok(()) };
    reply_sample(txn, call, found.as_ref(), sample)
}

pub fn sscan(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    scan_members(txn, call, Kind::Set)
}

#[derive(Clone, Copy, PartialEq)]
enum Algebra {
    Inter,
    Union,
    Diff,
}

/// Looks up the sets of a request. Returns None after a WRONGTYPE reply.
fn sets(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, keys: &[&[u8]]) -> Done<Option<Vec<Option<Entry>>>> {
    let mut sets = Vec::with_capacity(keys.len());
    for key in keys {
        let Some(found) = lookup_as(txn, call, key, Kind::Set)? else { return Ok(None) };
        sets.push(found);
    }
    Ok(Some(sets))
}

/// Calls `f` with each member of the result, until it returns false.
fn each(
    txn: &KeyTransaction<'_>,
    algebra: Algebra,
    sets: &[Option<Entry>],
    mut f: impl FnMut(&[u8]) -> Done<bool>,
) -> Result {
    let present = |set: &Option<Entry>| set.as_ref().map_or(Ok(0), Entry::count);
    let walked = match algebra {
        Algebra::Union => 0..sets.len(),
        Algebra::Diff => 0..1,
        Algebra::Inter => {
            let counts = sets.iter().map(present).collect::<Done<Vec<u64>>>()?;
            let least = (0..sets.len()).min_by_key(|at| counts[*at]).unwrap_or(0);
            least..least + 1
        }
    };
    for at in walked {
        let Some(set) = &sets[at] else { continue };
        let mut walk = txn.members(set)?;
        'members: while let Some(item) = walk.next(txn)? {
            let others = match algebra {
                Algebra::Union => 0..at,
                Algebra::Inter | Algebra::Diff => 0..sets.len(),
            };
            for other in others.filter(|other| *other != at) {
                if has(txn, sets[other].as_ref(), item.member)? != (algebra == Algebra::Inter) {
                    continue 'members;
                }
            }
            if !f(item.member)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Replies the members. Their number comes first, so a long result is computed twice.
fn reply_members(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, algebra: Algebra) -> Result {
    let Some(sets) = sets(txn, call, &call.args[1..])? else { return Ok(()) };
    let (mut count, mut bytes) = (0, Vec::new());
    each(txn, algebra, &sets, |member| {
        count += 1;
        if (bytes.len() as u64) < LONG {
            Reply { out: &mut bytes, resp3: false }.bulk(member);
        }
        Ok(true)
    })?;
    call.reply.set(count);
    if (bytes.len() as u64) < LONG {
        call.reply.out.extend_from_slice(&bytes);
        return Ok(());
    }
    drop(bytes);
    each(txn, algebra, &sets, |member| call.bulk_item(member).map(|()| true))
}

fn store_members(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, algebra: Algebra) -> Result {
    let Some(sets) = sets(txn, call, &call.args[2..])? else { return Ok(()) };
    let mut build = txn.build(call.db, call.args[1], Kind::Set, call.limits.set_of())?;
    each(txn, algebra, &sets, |member| build.put(member, &[]).map(|_| true))?;
    store_built(txn, call, call.args[1], build, (event_class::SET, call.command.name))
}

pub fn sinter(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_members(txn, call, Algebra::Inter)
}

pub fn sunion(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_members(txn, call, Algebra::Union)
}

pub fn sdiff(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_members(txn, call, Algebra::Diff)
}

pub fn sinterstore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    store_members(txn, call, Algebra::Inter)
}

pub fn sunionstore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    store_members(txn, call, Algebra::Union)
}

pub fn sdiffstore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    store_members(txn, call, Algebra::Diff)
}

pub fn sintercard(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(keys) = call.at_least(1, 1, "ERR numkeys should be greater than 0") else { return Ok(()) };
    if keys > call.args.len() as i64 - 2 {
        call.reply.error("ERR Number of keys can't be greater than number of args");
        return Ok(());
    }
    let end = 2 + keys as usize;
    let (mut at, mut limit) = (end, 0);
    while at < call.args.len() {
        if !call.word(at, "limit") || at + 1 == call.args.len() {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
        let Some(most) = call.at_least(at + 1, 0, "ERR LIMIT can't be negative") else { return Ok(()) };
        limit = most as u64;
        at += 2;
    }
    let Some(sets) = sets(txn, call, &call.args[2..end])? else { return Ok(()) };
    let mut count = 0;
    each(txn, Algebra::Inter, &sets, |_| {
        count += 1;
        Ok(count != limit)
    })?;
    call.reply.integer(count as i64);
    Ok(())
}
