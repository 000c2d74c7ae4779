//! XINFO.

use engine::{Group, KeyTransaction, Stream, StreamId};

use super::progress::{Progress, UNKNOWN};
use super::range::{count_entries, reply_entries};
use super::{id_text, load};
use crate::call::{Call, Done, Result};
use crate::commands::{help as reply_help, shown};
use crate::errors;
use crate::session::Session;

/// Reads the stream that must be at the key. Returns None after an error reply.
fn existing<'k>(txn: &mut KeyTransaction<'k>, call: &mut Call<'_>) -> Done<Option<Stream<'k>>> {
    let Some(found) = load(txn, call, call.args[2])? else { return Ok(None) };
    if found.is_none() {
        call.reply.error(errors::NO_SUCH_KEY);
    }
    Ok(found)
}

fn number(call: &mut Call<'_>, name: &str, value: u64) {
    call.reply.bulk(name.as_bytes());
    call.reply.integer(value as i64);
}

fn text(call: &mut Call<'_>, name: &str, value: &[u8]) -> Result {
    call.reply.bulk(name.as_bytes());
    call.bulk_item(value)
}

fn optional(call: &mut Call<'_>, name: &str, value: Option<i64>) {
    call.reply.bulk(name.as_bytes());
    match value {
        Some(value) => call.reply.integer(value),
        None => call.reply.null(),
    }
}

pub fn consumers(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(stream) = existing(txn, call)? else { return Ok(()) };
    let Some(group) = txn.group(&stream, call.args[3])? else {
        let (group, key) = (shown(call.args[3]), shown(call.args[2]));
        call.reply.error(&format!("NOGROUP No such consumer group '{group}' for key name '{key}'"));
        return Ok(());
    };
    call.reply.array(group.consumers as usize);
    let mut walk = txn.consumers(&stream, &group);
    while let Some(consumer) = walk.next_consumer(txn)? {
        call.reply.map(3);
        text(call, "name", &consumer.name)?;
        number(call, "pending", consumer.pending);
        number(call, "idle", txn.now_ms().saturating_sub(consumer.seen_ms));
    }
    Ok(())
}

pub fn groups(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(stream) = existing(txn, call)? else { return Ok(()) };
    let progress = Progress::of(txn, &stream)?;
    call.reply.array(stream.group_count() as usize);
    let mut walk = txn.groups(&stream);
    while let Some(group) = walk.next_group(txn)? {
        call.reply.map(6);
        text(call, "name", &group.name)?;
        number(call, "consumers", group.consumers.into());
        number(call, "pending", group.pending);
        text(call, "last-delivered-id", id_text(group.last_id).as_bytes())?;
        reading(call, &progress, &group);
    }
    Ok(())
}

fn reading(call: &mut Call<'_>, progress: &Progress, group: &Group) {
    optional(call, "entries-read", Some(group.entries_read).filter(|read| *read != UNKNOWN));
    optional(call, "lag", progress.lag(group));
}

pub fn stream(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(stream) = existing(txn, call)? else { return Ok(()) };
    let (mut full, mut count) = (false, 10);
    if call.args.len() > 3 {
        let has_count = call.args.len() == 6 && call.word(4, "count");
        if !call.word(3, "full") || call.args.len() > 4 && !has_count {
            call.subcommand_syntax();
            return Ok(());
        }
        full = true;
        if has_count {
            let Some(number) = call.integer(5) else { return Ok(()) };
            count = if number < 0 { 10 } else { number as u64 };
        }
    }
    call.reply.map(if full { 9 } else { 10 });
    number(call, "length", stream.len());
    number(call, "radix-tree-keys", stream.node_count());
    number(call, "radix-tree-nodes", stream.node_count() + 1);
    text(call, "last-generated-id", id_text(stream.last_id()).as_bytes())?;
    text(call, "max-deleted-entry-id", id_text(stream.max_deleted_id()).as_bytes())?;
    number(call, "entries-added", stream.entries_added());
    let first = txn.edge_id(&stream, false)?;
    text(call, "recorded-first-entry-id", id_text(first.unwrap_or_default()).as_bytes())?;
    let most = (count > 0).then_some(count);
    if full {
        return reply_full(txn, call, &stream, most);
    }
    number(call, "groups", stream.group_count());
    for (name, is_last) in [("first-entry", false), ("last-entry", true)] {
        call.reply.bulk(name.as_bytes());
        let id = txn.edge_id(&stream, is_last)?;
        let shown = id.map(|id| call.entry_of(txn, &stream, id)).transpose()?;
        if shown != Some(true) {
            call.reply.null();
        }
    }
    Ok(())
}

/// Replies with the entries and groups of XINFO STREAM FULL, up to a number of each.
fn reply_full(txn: &KeyTransaction<'_>, call: &mut Call<'_>, stream: &Stream<'_>, most: Option<u64>) -> Result {
    call.reply.bulk(b"entries");
    let (count, _) = count_entries(txn, stream, StreamId::MIN, StreamId::MAX, false, most)?;
    reply_entries(txn, call, stream, (StreamId::MIN, StreamId::MAX, false), count)?;
    call.reply.bulk(b"groups");
    call.reply.array(stream.group_count() as usize);
    let progress = Progress::of(txn, stream)?;
    let shown_of = |pending: u64| most.map_or(pending, |most| pending.min(most));
    let mut walk = txn.groups(stream);
    while let Some(group) = walk.next_group(txn)? {
        call.reply.map(7);
        text(call, "name", &group.name)?;
        text(call, "last-delivered-id", id_text(group.last_id).as_bytes())?;
        reading(call, &progress, &group);
        number(call, "pel-count", group.pending);
        call.reply.bulk(b"pending");
        let shown = shown_of(group.pending);
        call.reply.array(shown as usize);
        let mut pending = txn.group_pending(stream, &group, StreamId::MIN)?;
        for _ in 0..shown {
            let Some(item) = pending.next(txn)? else { return Ok(()) };
            let owner = txn.consumer_by_id(stream, &group, item.consumer)?;
            call.reply.array(4);
            call.stream_id(item.id);
            call.bulk_item(&owner.map(|owner| owner.name).unwrap_or_default())?;
            call.reply.integer(item.delivered_ms as i64);
            call.reply.integer(item.deliveries as i64);
        }
        reply_consumers(txn, call, stream, &group, &shown_of)?;
    }
    Ok(())
}

fn reply_consumers(
    txn: &KeyTransaction<'_>,
    call: &mut Call<'_>,
    stream: &Stream<'_>,
    group: &Group,
    shown_of: &dyn Fn(u64) -> u64,
) -> Result {
    call.reply.bulk(b"consumers");
    call.reply.array(group.consumers as usize);
    let mut walk = txn.consumers(stream, group);
    while let Some(consumer) = walk.next_consumer(txn)? {
        call.reply.map(4);
        text(call, "name", &consumer.name)?;
        number(call, "seen-time", consumer.seen_ms);
        number(call, "pel-count", consumer.pending);
        call.reply.bulk(b"pending");
        let shown = shown_of(consumer.pending);
        call.reply.array(shown as usize);
        let mut owned = txn.consumer_pending(stream, group, &consumer, StreamId::MIN)?;
        for _ in 0..shown {
            let Some(item) = owned.next(txn)? else { return Ok(()) };
            let known = txn.pending_entries(stream, group, &[item.id])?.pop().flatten().unwrap_or_default();
            call.reply.array(3);
            call.stream_id(item.id);
            call.reply.integer(known.delivered_ms as i64);
            call.reply.integer(known.deliveries as i64);
        }
    }
    Ok(())
}

pub fn help(_: &mut Session, call: &mut Call<'_>) -> Result {
    reply_help(
        call,
        &[
            "CONSUMERS <key> <groupname>",
            "    Show consumers of <groupname>.",
            "GROUPS <key>",
            "    Show the stream consumer groups.",
            "STREAM <key> [FULL [COUNT <count>]",
            "    Show information about the stream.",
        ],
    );
    Ok(())
}
