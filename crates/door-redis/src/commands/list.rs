//! Commands of lists that do not wait.

use engine::{End, Entry, ItemValue, KeyTransaction, Kind, event_class};

use crate::call::{Call, Done, Result};
use crate::commands::lookup_as;
use crate::errors;

/// Returns the name of the event for a push at an end.
fn push_event(end: End) -> &'static str {
    if end == End::Head { "lpush" } else { "rpush" }
}

fn pop_event(end: End) -> &'static str {
    if end == End::Head { "lpop" } else { "rpop" }
}

/// Returns the end that LEFT or RIGHT names.
pub(crate) fn end_of(word: &[u8]) -> Option<End> {
    match word.to_ascii_lowercase().as_slice() {
        b"left" => Some(End::Head),
        b"right" => Some(End::Tail),
        _ => None,
    }
}

/// Returns the ends that two arguments name. Replies with a syntax error if one of them names none.
pub(crate) fn two_ends(call: &mut Call<'_>, at: usize) -> Option<(End, End)> {
    let ends = end_of(call.args[at]).zip(end_of(call.args[at + 1]));
    if ends.is_none() {
        call.reply.error(errors::SYNTAX);
    }
    ends
}

pub fn lpush(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    push(txn, call, End::Head, false)
}

pub fn rpush(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    push(txn, call, End::Tail, false)
}

pub fn lpushx(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    push(txn, call, End::Head, true)
}

pub fn rpushx(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    push(txn, call, End::Tail, true)
}

fn push(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, end: End, only_existing: bool) -> Result {
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::List)? else { return Ok(()) };
    if found.is_none() && only_existing {
        call.reply.integer(0);
        return Ok(());
    }
    let count = txn.push_items(call.db, call.args[1], end, &call.args[2..])?;
    txn.notify(call.db, call.args[1], event_class::LIST, push_event(end));
    call.reply.integer(count as i64);
    Ok(())
}

pub fn lpop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    pop(txn, call, End::Head)
}

pub fn rpop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    pop(txn, call, End::Tail)
}

fn pop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, end: End) -> Result {
    if call.args.len() > 3 {
        call.reply.error(&errors::wrong_arity(call.command.name));
        return Ok(());
    }
    let has_count = call.args.len() == 3;
    let mut count = 1;
    if has_count {
        match call.at_least(2, 0, "ERR value is out of range, must be positive") {
            Some(wanted) => count = wanted as u64,
            None => return Ok(()),
        }
    }
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::List)? else { return Ok(()) };
    let Some(entry) = found else {
        if has_count {
            call.reply.null_array();
        } else {
            call.reply.null();
        }
        return Ok(());
    };
    let count = count.min(entry.count()?);
    if has_count {
        call.reply.array(count as usize);
    }
    each_item(txn, &entry, end, count, |txn, item| call.bulk_item_value(txn, item))?;
    remove_popped(txn, call.db, call.args[1], end, count)
}

/// Calls `each` with the first items, counted from an end.
pub(crate) fn each_item(
    txn: &mut KeyTransaction<'_>,
    entry: &Entry,
    end: End,
    count: u64,
    mut each: impl FnMut(&mut KeyTransaction<'_>, &ItemValue<'_>) -> Result,
) -> Result {
    let mut walk = txn.items_from(entry, end, 0)?;
    for _ in 0..count {
        let Some(item) = walk.next(txn)? else { break };
        each(txn, &item)?;
    }
    Ok(())
}

/// Removes the items that a command has popped, with Redis' events.
pub(crate) fn remove_popped(txn: &mut KeyTransaction<'_>, db: u8, key: &[u8], end: End, count: u64) -> Result {
    if count > 0 {
        let left = txn.trim_items(db, key, end, count)?;
        txn.notify(db, key, event_class::LIST, pop_event(end));
        notify_if_empty(txn, db, key, left);
    }
    Ok(())
}

fn notify_if_empty(txn: &mut KeyTransaction<'_>, db: u8, key: &[u8], left: u64) {
    if left == 0 {
        txn.notify(db, key, event_class::GENERIC, "del");
    }
}

/// Returns the bytes of the first item from an end.
pub(crate) fn outer_item(txn: &mut KeyTransaction<'_>, entry: &Entry, end: End) -> Done<Vec<u8>> {
    let mut bytes = Vec::new();
    each_item(txn, entry, end, 1, |txn, item| append_item(txn, item, &mut bytes))?;
    Ok(bytes)
}

/// Appends an item. Fails if memory has no room for it.
pub(crate) fn append_item(txn: &mut KeyTransaction<'_>, item: &ItemValue<'_>, out: &mut Vec<u8>) -> Result {
    if let Some(bytes) = item.bytes() {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    let entry = item.to_entry()?;
    let _claim = stdx::memory::claim(out.len() + entry.len as usize).map_err(engine::Error::OutOfMemory)?;
    out.reserve_exact(entry.len as usize + 2);
    txn.value(&entry, 0..entry.len, out)
}

/// A move of an item from an end of a list to an end of another one, or of the same.
#[derive(Clone)]
pub(crate) struct ItemMove<'m> {
    pub db: u8,
    pub source: &'m [u8],
    pub target: &'m [u8],
    pub from: End,
    pub to: End,
}

impl ItemMove<'_> {
    /// Moves the item, which the source has.
    pub fn run(&self, txn: &mut KeyTransaction<'_>, source: &Entry, item: &[u8]) -> Result {
        let (db, is_same) = (self.db, self.source == self.target);
        let mut left = source.count()? - 1;
        if is_same && left == 0 {
            // The list keeps its expiry time.
            txn.touch(db, self.source)?;
        } else {
            txn.trim_items(db, self.source, self.from, 1)?;
            txn.push_items(db, self.target, self.to, &[item])?;
        }
        left += u64::from(is_same);
        txn.notify(db, self.target, event_class::LIST, push_event(self.to));
        txn.notify(db, self.source, event_class::LIST, pop_event(self.from));
        notify_if_empty(txn, db, self.source, left);
        Ok(())
    }
}

pub fn lmove(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some((from, to)) = two_ends(call, 3) else { return Ok(()) };
    move_now(txn, call, from, to)
}

pub fn rpoplpush(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    move_now(txn, call, End::Tail, End::Head)
}

fn move_now(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, from: End, to: End) -> Result {
    let Some(source) = lookup_as(txn, call, call.args[1], Kind::List)? else { return Ok(()) };
    match source {
        None => call.reply.null(),
        Some(source) => move_found(txn, call, &source, from, to)?,
    }
    Ok(())
}

/// Moves an item of a source that exists, and replies with it.
pub(crate) fn move_found(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    source: &Entry,
    from: End,
    to: End,
) -> Result {
    if lookup_as(txn, call, call.args[2], Kind::List)?.is_none() {
        return Ok(());
    }
    let item = outer_item(txn, source, from)?;
    let way = ItemMove { db: call.db, source: call.args[1], target: call.args[2], from, to };
    way.run(txn, source, &item)?;
    call.bulk_item(&item)
}

pub fn lmpop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(many) = PopMany::read(call, 1) else { return Ok(()) };
    match first_list(txn, call, &call.args[many.keys.clone()])? {
        FirstList::WrongType => {}
        FirstList::None => call.reply.null_array(),
        FirstList::Found(key, entry) => {
            let count = many.count.min(entry.count()?);
            call.reply.array(2);
            call.reply.bulk(key);
            call.reply.array(count as usize);
            each_item(txn, &entry, many.end, count, |txn, item| call.bulk_item_value(txn, item))?;
            remove_popped(txn, call.db, key, many.end, count)?;
        }
    }
    Ok(())
}

/// The arguments of LMPOP and BLMPOP.
pub(crate) struct PopMany {
    pub keys: std::ops::Range<usize>,
    pub end: End,
    pub count: u64,
}

impl PopMany {
    /// Reads the arguments from the number of keys on. Replies with Redis' error if they are wrong.
    pub fn read(call: &mut Call<'_>, at: usize) -> Option<PopMany> {
        let keys = call.at_least(at, 1, "ERR numkeys should be greater than 0")? as usize;
        let place = at.saturating_add(keys).saturating_add(1);
        let Some(end) = call.args.get(place).and_then(|word| end_of(word)) else {
            call.reply.error(errors::SYNTAX);
            return None;
        };
        let count = match call.args.len() - place {
            1 => 1,
            3 if call.word(place + 1, "count") => {
                call.at_least(place + 2, 1, "ERR count should be greater than 0")? as u64
            }
            behind => {
                // Redis reads a count before it complains about further words.
                if behind > 3 && call.word(place + 1, "count") {
                    call.at_least(place + 2, 1, "ERR count should be greater than 0")?;
                }
                call.reply.error(errors::SYNTAX);
                return None;
            }
        };
        Some(PopMany { keys: at + 1..place, end, count })
    }
}

/// The first list among some keys.
pub(crate) enum FirstList<'k> {
    None,
    /// A key before any list is of another type. The error is written.
    WrongType,
    Found(&'k [u8], Entry),
}

pub(crate) fn first_list<'k>(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    keys: &[&'k [u8]],
) -> Done<FirstList<'k>> {
    for key in keys {
        match lookup_as(txn, call, key, Kind::List)? {
            None => return Ok(FirstList::WrongType),
            Some(Some(entry)) => return Ok(FirstList::Found(key, entry)),
            Some(None) => {}
        }
    }
    Ok(FirstList::None)
}

pub fn llen(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    super::members::reply_count(txn, call, Kind::List)
}

/// Returns the index from the head that an argument means; `None` if it is before the head.
fn absolute(index: i64, count: u64) -> Option<u64> {
    if index >= 0 { Some(index as u64) } else { count.checked_sub(index.unsigned_abs()) }
}

pub fn lindex(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::List)? else { return Ok(()) };
    let Some(entry) = found else {
        call.reply.null();
        return Ok(());
    };
    let Some(index) = call.integer(2) else { return Ok(()) };
    let count = entry.count()?;
    let Some(index) = absolute(index, count).filter(|index| *index < count) else {
        call.reply.null();
        return Ok(());
    };
    let mut walk = txn.items_from(&entry, End::Head, index)?;
    match walk.next(txn)? {
        Some(item) => call.bulk_item_value(txn, &item),
        // A reader that meets a change runs again.
        None => {
            call.reply.null();
            Ok(())
        }
    }
}

pub fn lset(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::List)? else { return Ok(()) };
    let Some(entry) = found else {
        call.reply.error(errors::NO_SUCH_KEY);
        return Ok(());
    };
    let Some(index) = call.integer(2) else { return Ok(()) };
    let count = entry.count()?;
    let Some(index) = absolute(index, count).filter(|index| *index < count) else {
        call.reply.error("ERR index out of range");
        return Ok(());
    };
    txn.set_item(call.db, call.args[1], index, call.args[3])?;
    txn.notify(call.db, call.args[1], event_class::LIST, "lset");
    call.reply.ok();
    Ok(())
}

pub fn linsert(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let is_before = call.word(2, "before");
    if !is_before && !call.word(2, "after") {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::List)? else { return Ok(()) };
    if found.is_none() {
        call.reply.integer(0);
        return Ok(());
    }
    let count = txn.insert_item(call.db, call.args[1], call.args[3], is_before, call.args[4])?;
    if count.is_some() {
        txn.notify(call.db, call.args[1], event_class::LIST, "linsert");
    }
    call.reply.integer(count.map_or(-1, |count| count as i64));
    Ok(())
}

/// Returns the indexes that a first and a last one mean, the last one included; an empty range if they mean none.
fn span(first: i64, last: i64, count: u64) -> std::ops::Range<u64> {
    let first = absolute(first, count).unwrap_or(0);
    let end = absolute(last, count).map_or(0, |last| last.saturating_add(1).min(count));
    first..end.max(first)
}

pub fn lrange(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some((first, last)) = call.integer(2).and_then(|first| Some((first, call.integer(3)?))) else { return Ok(()) };
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::List)? else { return Ok(()) };
    let Some(entry) = found else {
        call.reply.array(0);
        return Ok(());
    };
    let range = span(first, last, entry.count()?);
    call.reply.array((range.end - range.start) as usize);
    if range.is_empty() {
        return Ok(());
    }
    let mut walk = txn.items_from(&entry, End::Head, range.start)?;
    for _ in range {
        let Some(item) = walk.next(txn)? else { break };
        call.bulk_item_value(txn, &item)?;
    }
    Ok(())
}

pub fn ltrim(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some((first, last)) = call.integer(2).and_then(|first| Some((first, call.integer(3)?))) else { return Ok(()) };
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::List)? else { return Ok(()) };
    if let Some(entry) = found {
        let (db, key, count) = (call.db, call.args[1], entry.count()?);
        let kept = span(first, last, count);
        if kept.is_empty() {
            txn.delete(db, key)?;
        } else if kept == (0..count) {
            txn.touch(db, key)?;
        } else {
            txn.keep_items(db, key, kept.clone())?;
        }
        txn.notify(db, key, event_class::LIST, "ltrim");
        notify_if_empty(txn, db, key, kept.end - kept.start);
    }
    call.reply.ok();
    Ok(())
}

pub fn lrem(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(count) = call.integer(2) else { return Ok(()) };
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::List)? else { return Ok(()) };
    if found.is_none() {
        call.reply.integer(0);
        return Ok(());
    }
    let (from, most) = (if count < 0 { End::Tail } else { End::Head }, count.unsigned_abs());
    let most = if most == 0 { u64::MAX } else { most };
    let (removed, left) = txn.remove_items(call.db, call.args[1], from, most, call.args[3])?;
    if removed > 0 {
        txn.notify(call.db, call.args[1], event_class::LIST, "lrem");
        notify_if_empty(txn, call.db, call.args[1], left);
    }
    call.reply.integer(removed as i64);
    Ok(())
}

/// The options of LPOS.
struct ItemSearch {
    from: End,
    /// The first match that counts.
    rank: u64,
    /// The most matches to return; `None` without COUNT.
    count: Option<u64>,
    /// The most items to compare.
    most: u64,
}

fn search(call: &mut Call<'_>) -> Option<ItemSearch> {
    let mut search = ItemSearch { from: End::Head, rank: 1, count: None, most: u64::MAX };
    let unlimited = |number: i64| if number == 0 { u64::MAX } else { number as u64 };
    let mut at = 3;
    while at < call.args.len() {
        let has_value = at + 1 < call.args.len();
        match call.args[at].to_ascii_lowercase().as_slice() {
            b"rank" if has_value => {
                let rank = call.integer(at + 1)?;
                if rank == 0 {
                    call.reply.error("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list");
                    return None;
                }
                search.from = if rank < 0 { End::Tail } else { End::Head };
                // The least number has no opposite in C.
                search.rank = if rank == i64::MIN { 1 } else { rank.unsigned_abs() };
            }
            b"count" if has_value => {
                search.count = Some(unlimited(call.at_least(at + 1, 0, "ERR COUNT can't be negative")?));
            }
            b"maxlen" if has_value => {
                search.most = unlimited(call.at_least(at + 1, 0, "ERR MAXLEN can't be negative")?);
            }
            _ => {
                call.reply.error(errors::SYNTAX);
                return None;
            }
        }
        at += 2;
    }
    Some(search)
}

pub fn lpos(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(search) = search(call) else { return Ok(()) };
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::List)? else { return Ok(()) };
    let mut matches = Vec::new();
    if let Some(entry) = found {
        let (count, wanted) = (entry.count()?, search.count.unwrap_or(1));
        let mut walk = txn.items_from(&entry, search.from, 0)?;
        let (mut at, mut rank) = (0, 0);
        while at < search.most
            && (matches.len() as u64) < wanted
            && let Some(item) = walk.next(txn)?
        {
            if txn.item_equals(&item, call.args[2])? {
                rank += 1;
                if rank >= search.rank {
                    matches.push(if search.from == End::Head { at } else { count.saturating_sub(at + 1) });
                }
            }
            at += 1;
        }
    }
    match (search.count, matches.first()) {
        (None, None) => call.reply.null(),
        (None, Some(index)) => call.reply.integer(*index as i64),
        (Some(_), _) => {
            call.reply.array(matches.len());
            matches.iter().for_each(|index| call.reply.integer(*index as i64));
        }
    }
    Ok(())
}
