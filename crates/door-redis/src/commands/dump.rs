//! DUMP and RESTORE: a value as bytes in Redis' format.

use std::ops::Range;

use engine::{
    Build, EncodingLimits, End, Entry, Expire, FIELD_TIME_MAX, KeyEffect, KeyTransaction, Kind, PackLimits, event_class,
};
use rdb::{Event, Intset, Listpack, Source, types};

use crate::call;
use crate::call::Call;
use crate::commands::dump::payload::{Dumped, LONG_VALUE, NotRestored, Payload};
use crate::commands::dump::stream::{StreamCheck, store_stream, write_stream};
use crate::errors;
use crate::float;
use crate::number;

pub(crate) mod payload;
pub(crate) mod stream;

pub(crate) const TOO_LONG: &str = "ERR the value is too long for DUMP: it would exceed 512 MB";

pub fn dump(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> call::Result {
    let Some(entry) = txn.get(call.db, call.args[1])? else {
        call.reply.null();
        return Ok(());
    };
    match payload_of(txn, (call.db, call.args[1]), &entry)? {
        Some(payload) => call.bulk_item(&payload),
        None => {
            call.reply.error(TOO_LONG);
            Ok(())
        }
    }
}

/// Returns a value as DUMP writes it; None if it is too long for that.
fn payload_of(txn: &mut KeyTransaction<'_>, key: (u8, &[u8]), entry: &Entry) -> Result<Option<Vec<u8>>, engine::Error> {
    let mut out = Payload::default();
    Ok(match write_value(txn, key, entry, &mut out)? {
        Dumped::Whole => Some(out.end()),
        Dumped::TooLong => None,
    })
}

/// Writes the type and the value of a key in the form that Redis would have it in: packed or not as OBJECT ENCODING says.
pub(crate) fn write_value(
    txn: &mut KeyTransaction<'_>,
    key: (u8, &[u8]),
    entry: &Entry,
    out: &mut Payload<'_>,
) -> Result<Dumped, engine::Error> {
    if entry.kind == Kind::String {
        out.begin(types::STRING)?;
        out.value(txn, entry)?;
        return Ok(if out.is_too_long() { Dumped::TooLong } else { Dumped::Whole });
    }
    match (entry.kind, entry.encoding()) {
        (Kind::List, _) => write_list(txn, entry, out),
        (Kind::Stream, _) => write_stream(txn, key, entry, out),
        (Kind::ZSet, encoding) => write_sorted_set(txn, entry, encoding == "listpack", out),
        (_, "intset") => write_integers(txn, entry, out),
        (_, encoding) => write_members(txn, entry, encoding == "listpack", out),
    }
}

/// Writes a hash or a set that is no intset.
fn write_members(
    txn: &mut KeyTransaction<'_>,
    entry: &Entry,
    is_packed: bool,
    out: &mut Payload<'_>,
) -> Result<Dumped, engine::Error> {
    let is_hash = entry.kind == Kind::Hash;
    let least = txn.least_field_time(entry)?;
    if let Some(least) = least.filter(|_| out.has_field_times) {
        return write_timed_fields(txn, entry, least, out);
    }
    let mut pack = Listpack::default();
    match (is_hash, is_packed) {
        (true, true) => out.begin(types::HASH_LISTPACK)?,
        (true, false) => out.begin(types::HASH)?,
        (false, _) => out.begin(types::SET)?,
    }
    if !is_packed {
        let count = if least.is_some() { txn.live_count(entry)? } else { entry.count()? };
        rdb::write_length(&mut out.bytes, count);
    }
    let (mut walk, mut value) = (txn.members(entry)?, Vec::new());
    while let Some(item) = walk.next(txn)? {
        if is_packed {
            value.clear();
            let of = item.value.to_entry()?;
            txn.value(&of, 0..of.len, &mut value)?;
            pack.push(item.member);
            pack.push(&value);
            continue;
        }
        out.string(item.member)?;
        if is_hash {
            out.value(txn, &item.value.to_entry()?)?;
        }
        if out.is_too_long() {
            return Ok(Dumped::TooLong);
        }
    }
    if is_packed {
        out.string(&pack.end())?;
    }
    Ok(Dumped::Whole)
}

/// Writes a hash of which fields expire, as Redis 7.4 does where it is a hash table. No earlier Redis reads it, so the payload has the version of 7.4.
fn write_timed_fields(
    txn: &mut KeyTransaction<'_>,
    entry: &Entry,
    least: u64,
    out: &mut Payload<'_>,
) -> Result<Dumped, engine::Error> {
    out.version = rdb::VERSION_OF_TIMES;
    out.begin(types::HASH_TIMES)?;
    rdb::write_time(&mut out.bytes, least);
    rdb::write_length(&mut out.bytes, txn.live_count(entry)?);
    let mut walk = txn.members(entry)?;
    while let Some(item) = walk.next(txn)? {
        rdb::write_length(&mut out.bytes, item.expire_at_ms.map_or(0, |time| time - least + 1));
        out.string(item.member)?;
        out.value(txn, &item.value.to_entry()?)?;
        if out.is_too_long() {
            return Ok(Dumped::TooLong);
        }
    }
    Ok(Dumped::Whole)
}

/// A node of a list as Redis would cut it if the items had been pushed one after the other.
enum ListNode {
    Packed(Listpack),
    /// One item, too long to be packed in memory.
    Plain(Entry),
}

/// Calls `f` with the nodes of a list. Long items are nodes of their own if the list is streamed.
fn list_nodes(
    txn: &mut KeyTransaction<'_>,
    entry: &Entry,
    is_streamed: bool,
    f: &mut dyn FnMut(&mut KeyTransaction<'_>, ListNode) -> Result<Dumped, engine::Error>,
) -> Result<Dumped, engine::Error> {
    const NODE_BYTES: usize = 8192;
    const ITEM_OVERHEAD: usize = 8;
    let (mut pack, mut bytes) = (Listpack::default(), Vec::new());
    let mut walk = txn.items_from(entry, End::Head, 0)?;
    while let Some(item) = walk.next(txn)? {
        let mut long = None;
        let item = match item.bytes() {
            Some(item) => item,
            None => {
                let of = item.to_entry()?;
                bytes.clear();
                if is_streamed && of.len >= LONG_VALUE {
                    long = Some(of);
                } else {
                    txn.value(&of, 0..of.len, &mut bytes)?;
                }
                &bytes
            }
        };
        let is_full = long.is_some() || pack.len() + item.len() + ITEM_OVERHEAD > NODE_BYTES;
        if !pack.is_empty()
            && is_full
            && matches!(f(txn, ListNode::Packed(std::mem::take(&mut pack)))?, Dumped::TooLong)
        {
            return Ok(Dumped::TooLong);
        }
        match long {
            Some(of) => {
                f(txn, ListNode::Plain(of))?;
            }
            None => pack.push(item),
        }
    }
    if pack.is_empty() { Ok(Dumped::Whole) } else { f(txn, ListNode::Packed(pack)) }
}

fn write_list(txn: &mut KeyTransaction<'_>, entry: &Entry, out: &mut Payload<'_>) -> Result<Dumped, engine::Error> {
    const PLAIN_NODE: u64 = 1;
    const PACKED_NODE: u64 = 2;
    out.begin(types::LIST_QUICKLIST_2)?;
    let is_streamed = out.is_streamed();
    let mut nodes = 0;
    if is_streamed {
        // The number comes first, and what is handed over cannot be changed.
        list_nodes(txn, entry, true, &mut |_, _| {
            nodes += 1;
            Ok(Dumped::Whole)
        })?;
        rdb::write_length(&mut out.bytes, nodes);
    }
    let mut write = |txn: &mut KeyTransaction<'_>, node: ListNode| {
        match node {
            ListNode::Packed(pack) => {
                rdb::write_length(&mut out.bytes, PACKED_NODE);
                out.string(&pack.end())?;
            }
            ListNode::Plain(of) => {
                rdb::write_length(&mut out.bytes, PLAIN_NODE);
                out.value(txn, &of)?;
            }
        }
        nodes += 1;
        Ok(if out.is_too_long() { Dumped::TooLong } else { Dumped::Whole })
    };
    let dumped = list_nodes(txn, entry, is_streamed, &mut write)?;
    if !is_streamed {
        let mut count = Vec::new();
        rdb::write_length(&mut count, nodes);
        out.bytes.splice(1..1, count);
    }
    Ok(dumped)
}

fn write_integers(txn: &mut KeyTransaction<'_>, entry: &Entry, out: &mut Payload<'_>) -> Result<Dumped, engine::Error> {
    let mut integers = Vec::new();
    let mut walk = txn.members(entry)?;
    while let Some(item) = walk.next(txn)? {
        integers.extend(number::parse(item.member));
    }
    integers.sort_unstable();
    out.begin(types::SET_INTSET)?;
    out.string(&Intset::of(&integers))?;
    Ok(Dumped::Whole)
}

/// Writes a sorted set: packed from the lowest score, otherwise from the highest, as Redis does.
fn write_sorted_set(
    txn: &mut KeyTransaction<'_>,
    entry: &Entry,
    is_packed: bool,
    out: &mut Payload<'_>,
) -> Result<Dumped, engine::Error> {
    let mut pack = Listpack::default();
    out.begin(if is_packed { types::ZSET_LISTPACK } else { types::ZSET_2 })?;
    let count = entry.count()?;
    if !is_packed {
        rdb::write_length(&mut out.bytes, count);
    }
    let (mut walk, mut text) = (txn.sorted(entry, if is_packed { 0 } else { count - 1 }, !is_packed)?, Vec::new());
    while let Some((score, member)) = walk.next(txn)? {
        if is_packed {
            text.clear();
            float::print(&mut text, score);
            pack.push(member);
            pack.push_score(score, &text);
        } else {
            out.string(member)?;
            rdb::write_score(&mut out.bytes, score);
            if out.is_too_long() {
                return Ok(Dumped::TooLong);
            }
        }
    }
    if is_packed {
        out.string(&pack.end())?;
    }
    Ok(Dumped::Whole)
}

/// The options of RESTORE. Idle time and frequency are checked and forgotten, as nothing is evicted here.
#[derive(Default)]
struct RestoreOptions {
    replace: bool,
    is_absolute: bool,
}

impl RestoreOptions {
    /// Parses the arguments behind the payload. Returns None after an error reply.
    fn parse(call: &mut Call<'_>) -> Option<RestoreOptions> {
        let mut options = RestoreOptions::default();
        let (mut has_idle, mut has_frequency, mut at) = (false, false, 4);
        while at < call.args.len() {
            let has_more = at + 1 < call.args.len();
            if call.word(at, "replace") {
                options.replace = true;
            } else if call.word(at, "absttl") {
                options.is_absolute = true;
            } else if call.word(at, "idletime") && has_more && !has_frequency {
                if call.integer(at + 1)? < 0 {
                    call.reply.error("ERR Invalid IDLETIME value, must be >= 0");
                    return None;
                }
                (has_idle, at) = (true, at + 1);
            } else if call.word(at, "freq") && has_more && !has_idle {
                if !(0..=255).contains(&call.integer(at + 1)?) {
                    call.reply.error("ERR Invalid FREQ value, must be >= 0 and <= 255");
                    return None;
                }
                (has_frequency, at) = (true, at + 1);
            } else {
                call.reply.error(errors::SYNTAX);
                return None;
            }
            at += 1;
        }
        Some(options)
    }
}

/// A value that was read to its end.
enum Restored<'k, 'p> {
    String(Vec<u8>),
    /// No key refers to it yet.
    Built(Build<'k>),
    /// Lists and streams, with the type and the value, to be read again: they are written under their keys.
    Checked(rdb::Kind, u8, &'p [u8]),
}

pub fn restore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> call::Result {
    let Some(options) = RestoreOptions::parse(call) else { return Ok(()) };
    let key = call.args[1];
    let exists = txn.peek(call.db, key)?.is_some();
    if exists && !options.replace {
        call.reply.error("BUSYKEY Target key name already exists.");
        return Ok(());
    }
    let Some(ttl) = call.integer(2) else { return Ok(()) };
    if ttl < 0 {
        call.reply.error("ERR Invalid TTL value, must be >= 0");
        return Ok(());
    }
    let Some((number, value)) = rdb::check_payload(call.args[3]) else {
        call.reply.error("ERR DUMP payload version or checksum are wrong");
        return Ok(());
    };
    let restored = read_value(txn, call, number, value);
    let result =
        restored.and_then(|restored| restore_as(txn, call, restored, (ttl as u64, options.is_absolute), exists));
    match result {
        Ok(()) => call.reply.ok(),
        Err(NotRestored::Engine(error)) => return Err(error),
        Err(NotRestored::Format(_)) => call.reply.error("ERR Bad data format"),
    }
    Ok(())
}

/// Stores a value, or removes the old one if the new one's time is over.
fn restore_as<'k>(
    txn: &mut KeyTransaction<'k>,
    call: &Call<'_>,
    restored: Restored<'k, '_>,
    (ttl, is_absolute): (u64, bool),
    exists: bool,
) -> Result<(), NotRestored> {
    let key = call.args[1];
    let expires_at_ms = match (ttl, is_absolute) {
        (0, _) => None,
        (at_ms, true) => Some(at_ms),
        (ttl_ms, false) => Some(txn.now_ms().saturating_add(ttl_ms)),
    };
    if !expires_at_ms.is_some_and(|at_ms| txn.is_over(at_ms)) {
        let payload = call.args[3];
        // What Redis 7.0 restores is told as it is, what it does not by its elements.
        if rdb::payload_version(payload).is_some_and(|version| version <= rdb::VERSION_WRITTEN) {
            let effect = KeyEffect::Restore { key, at_ms: expires_at_ms, payload };
            return txn.as_one_effect(call.db, &effect, |txn| store(txn, call, restored, expires_at_ms));
        }
        return store(txn, call, restored, expires_at_ms);
    }
    if exists {
        txn.delete(call.db, key)?;
        txn.notify(call.db, key, event_class::GENERIC, "del");
    }
    Ok(())
}

fn store<'k>(
    txn: &mut KeyTransaction<'k>,
    call: &Call<'_>,
    restored: Restored<'k, '_>,
    expires_at_ms: Option<u64>,
) -> Result<(), NotRestored> {
    let key = call.args[1];
    let expire = expires_at_ms.map_or(Expire::None, Expire::At);
    match restored {
        Restored::String(bytes) => txn.put_string(call.db, key, &bytes, expire)?,
        Restored::Built(build) => {
            txn.put_built_until(call.db, key, build, expire)?;
        }
        Restored::Checked(kind, number, value) => {
            txn.begin()?;
            txn.delete(call.db, key)?;
            match kind {
                rdb::Kind::Stream => store_stream(txn, call, (number, value), call.limits.stream_node())?,
                _ => store_list(txn, call, number, value)?,
            }
            txn.set_expire(call.db, key, expires_at_ms)?;
        }
    }
    txn.notify(call.db, key, event_class::GENERIC, "restore");
    Ok(())
}

/// Appends the items of a list, some at a time.
fn store_list(txn: &mut KeyTransaction<'_>, call: &Call<'_>, number: u8, value: &[u8]) -> Result<(), NotRestored> {
    const BATCH_BYTES: usize = 64 << 10;
    let (mut batch, mut spans) = (Vec::new(), Vec::new());
    let mut push = |batch: &mut Vec<u8>, spans: &mut Vec<Range<usize>>| {
        let items: Vec<&[u8]> = spans.drain(..).map(|span| &batch[span]).collect();
        let pushed = txn.push_items(call.db, call.args[1], End::Tail, &items);
        batch.clear();
        pushed.map(drop)
    };
    rdb::read_value(&mut Source::of_bytes(value), number, &mut |event| -> Result<(), NotRestored> {
        let Event::Item(item) = event else { return NotRestored::format("no part of a list") };
        spans.push(batch.len()..batch.len() + item.len());
        batch.extend_from_slice(item);
        if batch.len() >= BATCH_BYTES {
            push(&mut batch, &mut spans)?;
        }
        Ok(())
    })?;
    if !spans.is_empty() {
        push(&mut batch, &mut spans)?;
    }
    Ok(())
}

/// Reads all of a value of the type that `number` says. Nothing of it can be seen until it is stored.
fn read_value<'k, 'p>(
    txn: &KeyTransaction<'k>,
    call: &Call<'_>,
    number: u8,
    value: &'p [u8],
) -> Result<Restored<'k, 'p>, NotRestored> {
    let begin = |kind, limits| txn.build(call.db, call.args[1], kind, limits);
    let (mut string, mut build, mut stream) = (Vec::new(), None, StreamCheck::default());
    let mut source = Source::of_bytes(value);
    let kind = rdb::read_value(&mut source, number, &mut |event| -> Result<(), NotRestored> {
        match &event {
            Event::String(bytes) => string.extend_from_slice(bytes),
            Event::Item(_) => {}
            Event::Stream(event) => stream.take(event)?,
            _ => build_element(&mut build, &event, call.limits, begin)?,
        }
        Ok(())
    })?;
    stream.end()?;
    match build {
        Some(build) => Ok(Restored::Built(build)),
        None if kind == rdb::Kind::String => Ok(Restored::String(string)),
        None => Ok(Restored::Checked(kind, number, value)),
    }
}

/// Adds an element of a hash, a set or a sorted set to its collection, which begins with the first of them.
pub(crate) fn build_element<'k>(
    build: &mut Option<Build<'k>>,
    event: &Event<'_>,
    limits: &EncodingLimits,
    begin: impl FnOnce(Kind, PackLimits) -> Result<Build<'k>, engine::Error>,
) -> Result<(), NotRestored> {
    let mut expires_at_ms = None;
    let (kind, limits, member, value): (_, _, _, &[u8]) = match event {
        Event::Field(field, value, time) => {
            expires_at_ms = *time;
            (Kind::Hash, limits.hash(), *field, value)
        }
        Event::Member(member) => (Kind::Set, limits.set_of(), *member, &[]),
        Event::Scored(member, score) => (Kind::ZSet, limits.zset(), *member, &score.to_le_bytes()),
        Event::String(_) | Event::Item(_) | Event::Stream(_) => return NotRestored::format("no part of a collection"),
    };
    let build = match build {
        Some(build) => build,
        none => none.insert(begin(kind, limits)?),
    };
    if expires_at_ms.is_some_and(|time| time > FIELD_TIME_MAX) {
        return NotRestored::format("a field's expiry time is beyond 2^48");
    }
    // A member that stands twice would be one.
    match build.put_until(member, value, expires_at_ms)? {
        true => Ok(()),
        false => NotRestored::format("a collection has a member twice"),
    }
}
