//! XADD, XDEL, XTRIM, XLEN and XSETID.

use engine::{KeyTransaction, NODE_BYTES_MAX, NodeLimits, StreamField, StreamId, Trim, TrimTo};

use super::ids::NewId;
use super::{load, notify};
use crate::call::{Call, Result};
use crate::errors;

/// Redis trims so many nodes at once, if no LIMIT says otherwise.
const NODES_MAX: u64 = 100;

/// The options of XADD and XTRIM.
struct EntryOptions {
    id: Option<NewId>,
    /// Where the id is.
    at: usize,
    trim: Option<Trim>,
    makes_stream: bool,
}

/// Reads options, and in XADD the id behind them. Returns None after an error reply.
fn options(call: &mut Call<'_>, is_add: bool, nodes: NodeLimits) -> Option<EntryOptions> {
    let mut found = EntryOptions { id: None, at: 2, trim: None, makes_stream: true };
    let mut limit: Option<i64> = None;
    while found.at < call.args.len() {
        let (at, more) = (found.at, call.args.len() - 1 - found.at);
        if is_add && call.args[at] == b"*" {
            break;
        }
        let by_len = call.word(at, "maxlen");
        if (by_len || call.word(at, "minid")) && more > 0 {
            if found.trim.is_some() {
                call.reply.error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
                return None;
            }
            let mark = if more >= 2 { call.args[at + 1] } else { b"" };
            let skip = usize::from(mark == b"~" || mark == b"=");
            let to = if by_len {
                let most = call.integer(at + 1 + skip)?;
                if most < 0 {
                    call.reply.error("ERR The MAXLEN argument must be >= 0.");
                    return None;
                }
                TrimTo::MaxLen(most as u64)
            } else {
                TrimTo::MinId(call.id(at + 1 + skip)?)
            };
            found.trim = Some(Trim { to, is_approximate: mark == b"~", limit: 0 });
            found.at += 2 + skip;
        } else if call.word(at, "limit") && more > 0 {
            let most = call.integer(at + 1)?;
            if most < 0 {
                call.reply.error("ERR The LIMIT argument must be >= 0.");
                return None;
            }
            limit = Some(most);
            found.at += 2;
        } else if is_add && call.word(at, "nomkstream") {
            found.makes_stream = false;
            found.at += 1;
        } else if is_add {
            found.id = Some(call.new_id(at)?);
            break;
        } else {
            call.reply.error(errors::SYNTAX);
            return None;
        }
    }
    let wrong = match (&mut found.trim, limit) {
        (None, Some(1..)) => Some("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"),
        (None, _) if !is_add => Some("ERR syntax error, XTRIM must be called with a trimming strategy"),
        (trim, Some(_)) if !trim.is_some_and(|trim| trim.is_approximate) => {
            Some("ERR syntax error, LIMIT cannot be used without the special ~ option")
        }
        (Some(trim), Some(limit)) => {
            trim.limit = limit as u64;
            None
        }
        (Some(trim), None) if trim.is_approximate => {
            let most = NODES_MAX.saturating_mul(nodes.entries);
            trim.limit = if most == 0 { 10_000 } else { most.min(1_000_000) };
            None
        }
        _ => None,
    };
    if let Some(error) = wrong {
        call.reply.error(error);
        return None;
    }
    Some(found)
}

/// Returns the id of the next entry, or None after an error reply.
fn next_id(call: &mut Call<'_>, given: Option<NewId>, last: StreamId, now_ms: u64) -> Option<StreamId> {
    let id = match given {
        Some(NewId { id, has_seq: true }) => Some(id),
        Some(NewId { id, has_seq: false }) if id.ms == last.ms => {
            last.seq.checked_add(1).map(|seq| StreamId { seq, ..last })
        }
        Some(NewId { id, has_seq: false }) => Some(id),
        None if now_ms > last.ms => Some(StreamId::new(now_ms, 0)),
        None => last.next(),
    };
    let id = id.filter(|id| *id > last);
    if id.is_none() {
        call.reply.error("ERR The ID specified in XADD is equal or smaller than the target stream top item");
    }
    id
}

pub fn xadd(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let nodes = call.limits.stream_node();
    let Some(options) = options(call, true, nodes) else { return Ok(()) };
    let words = call.args.get(options.at + 1..).unwrap_or_default();
    if words.len() < 2 || !words.len().is_multiple_of(2) {
        call.reply.error(&errors::wrong_arity(call.command.name));
        return Ok(());
    }
    if options.id.is_some_and(|new| new.has_seq && new.id == StreamId::MIN) {
        call.reply.error("ERR The ID specified in XADD must be greater than 0-0");
        return Ok(());
    }
    let key = call.args[1];
    let Some(found) = load(txn, call, key)? else { return Ok(()) };
    let mut stream = match found {
        Some(stream) => stream,
        None if options.makes_stream => txn.new_stream(call.db, key)?,
        None => {
            call.reply.null();
            return Ok(());
        }
    };
    if stream.last_id() == StreamId::MAX {
        call.reply.error("ERR The stream has exhausted the last possible ID, unable to add more items");
        return Ok(());
    }
    let Some(id) = next_id(call, options.id, stream.last_id(), txn.now_ms()) else { return Ok(()) };
    let fields: Vec<StreamField<'_>> = words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    if words.iter().map(|word| word.len() as u64).sum::<u64>() > NODE_BYTES_MAX {
        call.reply.error("ERR Elements are too large to be stored");
        return Ok(());
    }
    txn.append_entry(&mut stream, id, &fields, nodes)?;
    let trimmed = match options.trim {
        Some(trim) => txn.trim_stream(&mut stream, trim)?,
        None => 0,
    };
    txn.store_stream(stream)?;
    call.stream_id(id);
    notify(txn, call, key, "xadd");
    if trimmed > 0 {
        notify(txn, call, key, "xtrim");
    }
    Ok(())
}

pub fn xtrim(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(options) = options(call, false, call.limits.stream_node()) else { return Ok(()) };
    let Some(found) = load(txn, call, call.args[1])? else { return Ok(()) };
    let mut trimmed = 0;
    if let (Some(mut stream), Some(trim)) = (found, options.trim) {
        trimmed = txn.trim_stream(&mut stream, trim)?;
        if trimmed > 0 {
            txn.store_stream(stream)?;
            notify(txn, call, call.args[1], "xtrim");
        }
    }
    call.reply.integer(trimmed as i64);
    Ok(())
}

pub fn xdel(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(found) = load(txn, call, call.args[1])? else { return Ok(()) };
    let Some(mut stream) = found else {
        call.reply.integer(0);
        return Ok(());
    };
    let Some(mut ids) = call.ids(2) else { return Ok(()) };
    ids.sort_unstable();
    ids.dedup();
    let (deleted, greatest) = txn.delete_entries(&mut stream, &ids)?;
    if let Some(greatest) = greatest {
        stream.set_max_deleted_id(greatest.max(stream.max_deleted_id()));
        txn.store_stream(stream)?;
        notify(txn, call, call.args[1], "xdel");
    }
    call.reply.integer(deleted as i64);
    Ok(())
}

pub fn xlen(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    if let Some(found) = load(txn, call, call.args[1])? {
        call.reply.integer(found.map_or(0, |stream| stream.len() as i64));
    }
    Ok(())
}

pub fn xsetid(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(id) = call.id(2) else { return Ok(()) };
    let (mut added, mut max_deleted, mut at) = (None, StreamId::MIN, 3);
    while at < call.args.len() {
        let has_more = at + 1 < call.args.len();
        if call.word(at, "entriesadded") && has_more {
            let Some(number) = call.integer(at + 1) else { return Ok(()) };
            if number < 0 {
                call.reply.error("ERR entries_added must be positive");
                return Ok(());
            }
            added = Some(number as u64);
        } else if call.word(at, "maxdeletedid") && has_more {
            let Some(deleted) = call.id(at + 1) else { return Ok(()) };
            if id < deleted {
                call.reply.error("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
                return Ok(());
            }
            max_deleted = deleted;
        } else {
            call.reply.error(errors::SYNTAX);
            return Ok(());
        }
        at += 2;
    }
    let Some(found) = load(txn, call, call.args[1])? else { return Ok(()) };
    let Some(mut stream) = found else {
        call.reply.error(errors::NO_SUCH_KEY);
        return Ok(());
    };
    let wrong = if txn.edge_id(&stream, true)?.is_some_and(|top| id < top) {
        Some("ERR The ID specified in XSETID is smaller than the target stream top item")
    } else if !stream.is_empty() && added.is_some_and(|added| stream.len() > added) {
        Some("ERR The entries_added specified in XSETID is smaller than the target stream length")
    } else {
        None
    };
    if let Some(error) = wrong {
        call.reply.error(error);
        return Ok(());
    }
    stream.set_last_id(id);
    if let Some(added) = added {
        stream.set_entries_added(added);
    }
    if max_deleted != StreamId::MIN {
        stream.set_max_deleted_id(max_deleted);
    }
    txn.store_stream(stream)?;
    notify(txn, call, call.args[1], "xsetid");
    call.reply.ok();
    Ok(())
}
