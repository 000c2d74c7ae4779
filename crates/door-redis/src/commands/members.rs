//! Parts of the commands of hashes, sets and sorted sets: counts, removals, random members, scans, replies of any length.

use std::collections::HashSet;

use engine::{Build, Entry, ItemValue, KeyTransaction, Kind, event_class};
use stdx::memory;

use crate::call::{Call, Result};
use crate::commands::lookup_as;
use crate::commands::scan::{key_matches, scan_options};
use crate::errors;
use crate::float;
use crate::number;
use crate::spool::LONG;

/// Greatest number of random members that are drawn one by one. More are chosen in one walk, which needs no memory.
const DRAWN_MAX: u64 = 1000;

impl Call<'_> {
    /// Writes one of many bulk strings. The output so far goes to a file if memory has no room for it to grow (DR-8).
    pub(crate) fn bulk_item(&mut self, bytes: &[u8]) -> Result {
        const HEADER_MAX: usize = 32;
        let out = &self.reply.out;
        let grown = out.len() + bytes.len() + HEADER_MAX;
        if out.len() as u64 >= LONG && grown > out.capacity() && memory::claim(grown).is_err() {
            self.spooling.take(self.reply.out)?;
        }
        self.reply.bulk(bytes);
        Ok(())
    }

    pub(crate) fn bulk_item_value(&mut self, txn: &mut KeyTransaction<'_>, value: &ItemValue<'_>) -> Result {
        if let Some(bytes) = value.bytes() {
            return self.bulk_item(bytes);
        }
        let entry = value.to_entry()?;
        self.bulk_value(txn, &entry, 0..entry.len)
    }

    /// Returns an argument as an integer of a range. Replies with Redis' error if it is none.
    pub(crate) fn range(&mut self, at: usize, least: i64, most: i64) -> Option<i64> {
        let value = self.integer(at)?;
        if (least..=most).contains(&value) {
            return Some(value);
        }
        self.reply.error(&format!("ERR value is out of range, value must between {least} and {most}"));
        None
    }

    /// Returns an argument as an integer of at least `least`. Replies with this error if it is none.
    pub(crate) fn at_least(&mut self, at: usize, least: i64, error: &str) -> Option<i64> {
        let value = number::parse(self.args[at]).filter(|value| *value >= least);
        if value.is_none() {
            self.reply.error(error);
        }
        value
    }
}

/// Notifies that members were removed, and with the last of them the key. `before` is the number of members that there were.
pub(crate) fn notify_removal(
    txn: &mut KeyTransaction<'_>,
    db: u8,
    key: &[u8],
    (class, event): (u32, &'static str),
    (before, removed): (u64, u64),
) {
    if removed > 0 {
        txn.notify(db, key, class, event);
        if removed == before {
            txn.notify(db, key, event_class::GENERIC, "del");
        }
    }
}

/// Stores a collection that a command has built, notifies of that, and replies its size. An empty one deletes the key.
pub(crate) fn store_built<'k>(
    txn: &mut KeyTransaction<'k>,
    call: &mut Call<'_>,
    key: &[u8],
    build: Build<'k>,
    (class, event): (u32, &'static str),
) -> Result {
    let existed = txn.peek(call.db, key)?.is_some();
    let count = txn.put_built(call.db, key, build)?;
    if count > 0 {
        txn.notify(call.db, key, class, event);
    } else if existed {
        txn.notify(call.db, key, event_class::GENERIC, "del");
    }
    call.reply.integer(count as i64);
    Ok(())
}

/// Serves SCARD and ZCARD.
pub(crate) fn reply_count(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, kind: Kind) -> Result {
    if let Some(found) = lookup_as(txn, call, call.args[1], kind)? {
        let count = found.map_or(Ok(0), |entry| entry.count())?;
        call.reply.integer(count as i64);
    }
    Ok(())
}

/// Serves HDEL, SREM and ZREM.
pub(crate) fn remove_members(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    kind: Kind,
    event: (u32, &'static str),
) -> Result {
    if let Some(found) = lookup_as(txn, call, call.args[1], kind)? {
        let before = found.map_or(Ok(0), |entry| txn.live_count(&entry))?;
        let removed = txn.remove_members(call.db, call.args[1], kind, &call.args[2..])?;
        notify_removal(txn, call.db, call.args[1], event, (before, removed));
        call.reply.integer(removed as i64);
    }
    Ok(())
}

/// The members that a command draws at random.
#[derive(Clone, Copy)]
pub(crate) enum RandomMembers {
    One,
    /// `count` different members, or, if it is negative, as many draws, of which some may be the same.
    Many {
        count: i64,
        values: bool,
    },
}

impl RandomMembers {
    /// Parses the arguments of HRANDFIELD and its kin; `option` is the word that asks for values. Returns None after an error reply.
    pub(crate) fn parse(call: &mut Call<'_>, option: &str) -> Option<RandomMembers> {
        if call.args.len() == 2 {
            return Some(RandomMembers::One);
        }
        let count = call.range(2, -i64::MAX, i64::MAX)?;
        let values = call.args.len() == 4 && call.word(3, option);
        if call.args.len() > 3 && !values {
            call.reply.error(errors::SYNTAX);
            return None;
        }
        if values && !(-i64::MAX / 2..=i64::MAX / 2).contains(&count) {
            call.reply.error("ERR value is out of range");
            return None;
        }
        Some(RandomMembers::Many { count, values })
    }
}

/// Writes the value of a member: a field's, or a score.
fn reply_value(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, kind: Kind, value: &ItemValue<'_>) -> Result {
    if kind == Kind::ZSet {
        let score = txn.score_of(&value.to_entry()?)?;
        call.reply.double(score);
        return Ok(());
    }
    call.bulk_item_value(txn, value)
}

pub(crate) fn reply_sample(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    entry: Option<&Entry>,
    sample: RandomMembers,
) -> Result {
    let (RandomMembers::Many { count, values }, Some(entry)) = (sample, entry) else {
        let drawn = entry.map(|entry| txn.random_member(entry)).transpose()?.flatten();
        match (sample, drawn) {
            (RandomMembers::Many { .. }, _) => call.reply.array(0),
            (_, Some((member, _))) => call.reply.bulk(&member),
            (_, None) => call.reply.null(),
        }
        return Ok(());
    };
    let present = txn.live_count(entry)?;
    let shown = if count < 0 { count.unsigned_abs() } else { present.min(count as u64) };
    let pairs = values && call.reply.resp3;
    call.reply.array(shown as usize * if values && !pairs { 2 } else { 1 });
    let each = |txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, member: &[u8], value: &ItemValue<'_>| {
        if pairs {
            call.reply.array(2);
        }
        call.bulk_item(member)?;
        if values { reply_value(txn, call, entry.kind, value) } else { Ok(()) }
    };
    let is_walked = shown > DRAWN_MAX || shown.saturating_mul(3) > present || present < entry.count()? / 4;
    if count >= 0 && is_walked {
        let mut walk = txn.members(entry)?;
        let (mut wanted, mut left) = (shown, present);
        while let Some(item) = walk.next(txn)? {
            if txn.draw(left) < wanted {
                each(txn, call, item.member, &item.value)?;
                wanted -= 1;
            }
            left = left.saturating_sub(1);
        }
        return Ok(());
    }
    let mut seen = HashSet::new();
    let mut wanted = shown;
    while wanted > 0 {
        // A reader that meets a change has no members here, and runs again.
        let Some((member, value)) = txn.random_member(entry)? else { return Ok(()) };
        if count >= 0 && !seen.insert(member.clone()) {
            continue;
        }
        let mut bytes = Vec::new();
        if values && value.len < LONG {
            txn.value(&value, 0..value.len, &mut bytes)?;
            each(txn, call, &member, &ItemValue::Bytes(&bytes))?;
        } else if values {
            if pairs {
                call.reply.array(2);
            }
            call.bulk_item(&member)?;
            call.bulk_value(txn, &value, 0..value.len)?;
        } else {
            call.bulk_item(&member)?;
        }
        wanted -= 1;
    }
    Ok(())
}

/// Draws so many different members, fewer than there are.
pub(crate) fn draw_members(
    txn: &KeyTransaction<'_>,
    entry: &Entry,
    count: u64,
) -> std::result::Result<Vec<Vec<u8>>, engine::Error> {
    let present = entry.count()?;
    let mut drawn = Vec::new();
    if count <= DRAWN_MAX && count.saturating_mul(3) <= present {
        let mut seen = HashSet::new();
        while (drawn.len() as u64) < count
            && let Some((member, _)) = txn.random_member(entry)?
        {
            if seen.insert(member.clone()) {
                drawn.push(member);
            }
        }
        return Ok(drawn);
    }
    let (mut walk, mut left) = (txn.members(entry)?, present);
    while let Some(item) = walk.next(txn)? {
        if txn.draw(left) < count - drawn.len() as u64 {
            drawn.push(item.member.to_vec());
        }
        left = left.saturating_sub(1);
        if drawn.len() as u64 == count {
            break;
        }
    }
    Ok(drawn)
}

/// Runs HSCAN, SSCAN or ZSCAN. A cursor is the hash of the last member plus one. A listpack or an intset is shown as a whole, as in Redis.
pub(crate) fn scan_members(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, kind: Kind) -> Result {
    let Some(cursor) = number::parse_cursor(call.args[2]) else {
        call.reply.error("ERR invalid cursor");
        return Ok(());
    };
    let Some(found) = lookup_as(txn, call, call.args[1], kind)? else { return Ok(()) };
    let Some(entry) = found else {
        call.reply.array(2);
        call.reply.bulk(b"0");
        call.reply.array(0);
        return Ok(());
    };
    let Some(options) = scan_options(call, 3) else { return Ok(()) };
    if options.kind.is_some() {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    let is_whole = !matches!(entry.encoding(), "hashtable" | "skiplist");
    let (mut items, mut shown, mut seen, mut last, mut next) = (Vec::new(), 0, 0, None, 0);
    let mut walk = txn.members_from(&entry, if is_whole { 0 } else { cursor })?;
    while let Some(item) = walk.next(txn)? {
        let hash = item.hash.or_else(|| txn.member_hash(item.member));
        if !is_whole && item.hash.is_some() && seen >= options.count && hash != last {
            next = last.map_or(0, |last| last + 1);
            break;
        }
        if !is_whole && hash.is_some_and(|hash| hash < cursor) {
            continue;
        }
        (seen, last) = (seen + 1, hash);
        if options.pattern.is_none_or(|pattern| key_matches(pattern, item.member)) {
            let mut value = Vec::new();
            match kind {
                Kind::Hash => {
                    let entry = item.value.to_entry()?;
                    txn.value(&entry, 0..entry.len, &mut value)?;
                }
                Kind::ZSet => {
                    let score = txn.score_of(&item.value.to_entry()?)?;
                    if is_whole { float::print_listpack(&mut value, score) } else { float::print(&mut value, score) }
                }
                _ => {}
            }
            items.push((item.member.to_vec(), value));
            shown += if kind == Kind::Set { 1 } else { 2 };
        }
    }
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(shown);
    for (member, value) in &items {
        call.bulk_item(member)?;
        if kind != Kind::Set {
            call.bulk_item(value)?;
        }
    }
    Ok(())
}
