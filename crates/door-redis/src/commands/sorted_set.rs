//! Commands of sorted sets that name members, and those that pop them. `sorted_range` has ranges, `sorted_algebra` unions and the like.

use engine::{Entry, KeyTransaction, Kind, ScoreBound, event_class};

use crate::call::{Call, Done, Result};
use crate::commands::lookup_as;
use crate::commands::members::{
    RandomMembers, notify_removal, remove_members, reply_count, reply_sample, scan_members,
};
use crate::errors;
use crate::float;
use crate::reply::Reply;

const NAN: &str = "ERR resulting score is not a number (NaN)";

impl Call<'_> {
    /// Returns an argument as a double. Replies with this error if it is none.
    pub(crate) fn double(&mut self, at: usize, error: &str) -> Option<f64> {
        let value = float::parse(self.args[at]);
        if value.is_none() {
            self.reply.error(error);
        }
        value
    }

    /// Writes one of many members, with its score if asked for: in RESP3 as a pair, in RESP2 as two elements.
    pub(crate) fn scored_item(&mut self, member: &[u8], score: f64, with_score: bool) -> Result {
        if with_score && self.reply.resp3 {
            self.reply.array(2);
        }
        self.bulk_item(member)?;
        if with_score {
            self.reply.double(score);
        }
        Ok(())
    }
}

/// Writes the header of so many members, for `Call::scored_item`.
pub(crate) fn scored_header(reply: &mut Reply<'_>, count: u64, with_scores: bool) {
    reply.array(count as usize * if with_scores && !reply.resp3 { 2 } else { 1 });
}

/// The options of ZADD.
#[derive(Clone, Copy, Default)]
pub(crate) struct AddOptions {
    pub nx: bool,
    pub xx: bool,
    pub gt: bool,
    pub lt: bool,
    pub ch: bool,
    pub incr: bool,
}

impl AddOptions {
    /// Parses the options from an argument on. Returns them and the index of the first argument that is none.
    pub(crate) fn parse(call: &Call<'_>, mut at: usize) -> (AddOptions, usize) {
        let mut options = AddOptions::default();
        while at < call.args.len() {
            match call.args[at].to_ascii_lowercase().as_slice() {
                b"nx" => options.nx = true,
                b"xx" => options.xx = true,
                b"ch" => options.ch = true,
                b"incr" => options.incr = true,
                b"gt" => options.gt = true,
                b"lt" => options.lt = true,
                _ => break,
            }
            at += 1;
        }
        (options, at)
    }

    /// Returns the score that a member gets, `None` if it stays as it is. An increment that gives no number is `Some(NaN)`.
    fn choose(&self, given: f64, old: Option<f64>) -> Option<f64> {
        let Some(old) = old else { return (!self.xx).then_some(given) };
        let score = if self.incr { old + given } else { given };
        let is_kept = self.nx || self.lt && score >= old || self.gt && score <= old;
        (score.is_nan() || !is_kept).then_some(score).filter(|_| !self.nx)
    }
}

pub fn zadd(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let (options, from) = AddOptions::parse(call, 2);
    let pairs = call.args.len() - from;
    if pairs == 0 || !pairs.is_multiple_of(2) {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    if options.nx && options.xx {
        call.reply.error("ERR XX and NX options at the same time are not compatible");
        return Ok(());
    }
    if [options.gt, options.lt, options.nx].iter().filter(|option| **option).count() > 1 {
        call.reply.error("ERR GT, LT, and/or NX options at the same time are not compatible");
        return Ok(());
    }
    if options.incr && pairs > 2 {
        call.reply.error("ERR INCR option supports a single increment-element pair");
        return Ok(());
    }
    add_pairs(txn, call, options, from)
}

pub fn zincrby(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    add_pairs(txn, call, AddOptions { incr: true, ..AddOptions::default() }, 2)
}

fn add_pairs(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, options: AddOptions, from: usize) -> Result {
    let (mut scores, mut members) = (Vec::new(), Vec::new());
    for at in (from..call.args.len()).step_by(2) {
        let Some(score) = call.double(at, errors::NOT_FLOAT) else { return Ok(()) };
        scores.push(score);
        members.push(call.args[at + 1]);
    }
    add_scores(txn, call, options, &scores, &members)
}

/// Runs ZADD with parsed arguments.
pub(crate) fn add_scores(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    options: AddOptions,
    scores: &[f64],
    members: &[&[u8]],
) -> Result {
    let key = call.args[1];
    let Some(found) = lookup_as(txn, call, key, Kind::ZSet)? else { return Ok(()) };
    if options.incr {
        return increment(txn, call, options, found.as_ref(), (scores[0], members[0]));
    }
    let put =
        txn.put_scores(call.db, key, members, &mut |at, old| options.choose(scores[at], old), call.limits.zset())?;
    if put.added + put.updated > 0 {
        txn.notify(call.db, key, event_class::SORTED_SET, "zadd");
    }
    call.reply.integer((put.added + if options.ch { put.updated } else { 0 }) as i64);
    Ok(())
}

fn increment(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    options: AddOptions,
    found: Option<&Entry>,
    (amount, member): (f64, &[u8]),
) -> Result {
    let old = found.map(|entry| txn.score(entry, member)).transpose()?.flatten();
    match options.choose(amount, old) {
        None => call.reply.null(),
        Some(score) if score.is_nan() => call.reply.error(NAN),
        Some(score) => {
            let put = txn.put_scores(call.db, call.args[1], &[member], &mut |_, _| Some(score), call.limits.zset())?;
            if put.added + put.updated > 0 {
                txn.notify(call.db, call.args[1], event_class::SORTED_SET, "zincr");
            }
            call.reply.double(score);
        }
    }
    Ok(())
}

pub fn zrem(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    remove_members(txn, call, Kind::ZSet, (event_class::SORTED_SET, "zrem"))
}

pub fn zcard(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_count(txn, call, Kind::ZSet)
}

pub fn zscore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::ZSet)? else { return Ok(()) };
    reply_score(txn, call, found.as_ref(), call.args[2])
}

pub fn zmscore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::ZSet)? else { return Ok(()) };
    call.reply.array(call.args.len() - 2);
    for member in &call.args[2..] {
        reply_score(txn, call, found.as_ref(), member)?;
    }
    Ok(())
}

fn reply_score(txn: &KeyTransaction<'_>, call: &mut Call<'_>, found: Option<&Entry>, member: &[u8]) -> Result {
    match found.map(|entry| txn.score(entry, member)).transpose()?.flatten() {
        Some(score) => call.reply.double(score),
        None => call.reply.null(),
    }
    Ok(())
}

pub fn zrank(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_rank(txn, call, false)
}

pub fn zrevrank(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_rank(txn, call, true)
}

fn reply_rank(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, is_reverse: bool) -> Result {
    let member = call.args[2];
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::ZSet)? else { return Ok(()) };
    let score = found.as_ref().map(|entry| txn.score(entry, member)).transpose()?.flatten();
    let (Some(entry), Some(score)) = (found, score) else {
        call.reply.null();
        return Ok(());
    };
    let rank = txn.rank(&entry, &ScoreBound::Member { score, member, is_after: is_reverse })?;
    // A reader that meets a change may find more members than there are, and runs again.
    let rank = if is_reverse { entry.count()?.saturating_sub(rank) } else { rank };
    call.reply.integer(rank as i64);
    Ok(())
}

pub fn zrandmember(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(sample) = RandomMembers::parse(call, "withscores") else { return Ok(()) };
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::ZSet)? else { return Ok(()) };
    reply_sample(txn, call, found.as_ref(), sample)
}

pub fn zscan(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    scan_members(txn, call, Kind::ZSet)
}

/// The end of a sorted set from which members are popped.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum PopEnd {
    Min,
    Max,
}

pub fn zpopmin(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    pop(txn, call, PopEnd::Min)
}

pub fn zpopmax(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    pop(txn, call, PopEnd::Max)
}

fn pop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, end: PopEnd) -> Result {
    if call.args.len() > 3 {
        call.reply.error(errors::SYNTAX);
        return Ok(());
    }
    let mut count = None;
    if call.args.len() == 3 {
        let Some(given) = call.at_least(2, 0, errors::MUST_BE_POSITIVE) else { return Ok(()) };
        count = Some(given as u64);
    }
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::ZSet)? else { return Ok(()) };
    let Some(entry) = found.filter(|_| count != Some(0)) else {
        call.reply.array(0);
        return Ok(());
    };
    let popped = entry.count()?.min(count.unwrap_or(1));
    let is_nested = call.reply.resp3 && count.is_some();
    call.reply.array(popped as usize * if is_nested { 1 } else { 2 });
    reply_popped(txn, call, call.args[1], (&entry, end), (popped, is_nested))
}

/// Replies so many members of one end with their scores, and removes them.
pub(crate) fn reply_popped(
    txn: &mut KeyTransaction<'_>,
    call: &mut Call<'_>,
    key: &[u8],
    (entry, end): (&Entry, PopEnd),
    (popped, is_nested): (u64, bool),
) -> Result {
    let count = entry.count()?;
    let (mut walk, ranks, event) = match end {
        PopEnd::Min => (txn.sorted_few(entry, 0, false, popped.max(1))?, 0..popped, "zpopmin"),
        PopEnd::Max => (txn.sorted_few(entry, count - 1, true, popped.max(1))?, count - popped..count, "zpopmax"),
    };
    for _ in 0..popped {
        let Some((score, member)) = walk.next(txn)? else { break };
        if is_nested {
            call.reply.array(2);
        }
        call.bulk_item(member)?;
        call.reply.double(score);
    }
    let removed = txn.remove_ranks(call.db, key, ranks)?;
    notify_removal(txn, call.db, key, (event_class::SORTED_SET, event), (count, removed));
    Ok(())
}

/// The arguments of ZMPOP and BZMPOP behind the number of keys, or those of BZPOPMIN and BZPOPMAX.
pub(crate) struct ManyPop {
    pub keys: std::ops::Range<usize>,
    pub end: PopEnd,
    pub count: u64,
    /// The reply names key, member and score side by side.
    pub is_flat: bool,
}

impl ManyPop {
    /// Parses the arguments. `at` is the index of the number of keys. Returns None after an error reply.
    pub(crate) fn parse(call: &mut Call<'_>, at: usize) -> Option<ManyPop> {
        let keys = call.at_least(at, 1, "ERR numkeys should be greater than 0")? as usize;
        let end_at = at.saturating_add(keys).saturating_add(1);
        let end = match call.args.get(end_at).map(|word| word.to_ascii_lowercase()) {
            Some(word) if word == b"min" => PopEnd::Min,
            Some(word) if word == b"max" => PopEnd::Max,
            _ => {
                call.reply.error(errors::SYNTAX);
                return None;
            }
        };
        let mut count = None;
        let mut option = end_at + 1;
        while option < call.args.len() {
            if count.is_some() || !call.word(option, "count") || option + 1 == call.args.len() {
                call.reply.error(errors::SYNTAX);
                return None;
            }
            count = Some(call.at_least(option + 1, 1, "ERR count should be greater than 0")? as u64);
            option += 2;
        }
        Some(ManyPop { keys: at + 1..end_at, end, count: count.unwrap_or(1), is_flat: false })
    }

    /// Pops from the first key that has members. Returns false if none has; nothing is replied then.
    pub(crate) fn run(&self, txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Done<bool> {
        for at in self.keys.clone() {
            let key = call.args[at];
            let Some(found) = lookup_as(txn, call, key, Kind::ZSet)? else { return Ok(true) };
            let Some(entry) = found else { continue };
            let popped = entry.count()?.min(self.count);
            ManyPop::reply_header(&mut call.reply, key, popped, self.is_flat);
            reply_popped(txn, call, key, (&entry, self.end), (popped, !self.is_flat))?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Replies with everything that precedes the members.
    pub(crate) fn reply_header(reply: &mut Reply<'_>, key: &[u8], popped: u64, is_flat: bool) {
        reply.array(if is_flat { 3 } else { 2 });
        reply.bulk(key);
        if !is_flat {
            reply.array(popped as usize);
        }
    }
}

pub fn zmpop(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(pop) = ManyPop::parse(call, 1) else { return Ok(()) };
    if !pop.run(txn, call)? {
        call.reply.null_array();
    }
    Ok(())
}
