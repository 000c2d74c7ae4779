//! Commands over ranges of sorted sets: by rank, score or member.
//!
//! Each range becomes a range of ranks, which takes two descents through the levels; then the members are walked, counted or removed. A range by member is
//! meant for members with one score. With several scores Redis' answer depends on its encoding; for a listpack it is followed, otherwise the range goes from
//! the lower bound in the least score to the upper bound in the greatest.

use std::ops::Range;

use engine::{Entry, KeyTransaction, Kind, ScoreBound, event_class};

use crate::call::{Call, Done, Result};
use crate::commands::lookup_as;
use crate::commands::members::{notify_removal, store_built};
use crate::commands::sorted_set::scored_header;
use crate::errors;
use crate::float;

const NOT_SCORES: &str = "ERR min or max is not a float";
const NOT_MEMBERS: &str = "ERR min or max not valid string range item";

/// One end of a range by member.
#[derive(Clone, Copy, PartialEq)]
enum MemberBound<'a> {
    Lowest,
    Highest,
    Included(&'a [u8]),
    Excluded(&'a [u8]),
}

impl<'a> MemberBound<'a> {
    fn parse(text: &'a [u8]) -> Option<MemberBound<'a>> {
        match text {
            b"-" => Some(MemberBound::Lowest),
            b"+" => Some(MemberBound::Highest),
            [b'[', member @ ..] => Some(MemberBound::Included(member)),
            [b'(', member @ ..] => Some(MemberBound::Excluded(member)),
            _ => None,
        }
    }

    /// Returns true if a member may be in a range that begins here.
    fn admits_from(&self, found: &[u8]) -> bool {
        match self {
            MemberBound::Lowest => true,
            MemberBound::Highest => false,
            MemberBound::Included(member) => found >= *member,
            MemberBound::Excluded(member) => found > *member,
        }
    }

    /// Returns true if a member may be in a range that ends here.
    fn admits_to(&self, found: &[u8]) -> bool {
        match self {
            MemberBound::Lowest => false,
            MemberBound::Highest => true,
            MemberBound::Included(member) => found <= *member,
            MemberBound::Excluded(member) => found < *member,
        }
    }

    /// Returns the number of members with this score, and all with lower ones, before the bound as the beginning or the end of a range.
    fn rank(&self, txn: &KeyTransaction<'_>, entry: &Entry, score: f64, is_end: bool) -> Done<u64> {
        match self {
            MemberBound::Lowest => Ok(0),
            MemberBound::Highest => entry.count(),
            MemberBound::Included(member) => txn.rank(entry, &ScoreBound::Member { score, member, is_after: is_end }),
            MemberBound::Excluded(member) => txn.rank(entry, &ScoreBound::Member { score, member, is_after: !is_end }),
        }
    }
}

/// A range of members of a sorted set.
#[derive(Clone, Copy)]
enum SortedRange<'a> {
    /// First and last rank, from the beginning or, below zero, from the end.
    Ranks(i64, i64),
    /// Each bound's score, and whether the bound excludes it.
    Scores((f64, bool), (f64, bool)),
    Members(MemberBound<'a>, MemberBound<'a>),
}

#[derive(Clone, Copy, PartialEq)]
enum RangeBy {
    Rank,
    Score,
    Member,
}

impl<'a> SortedRange<'a> {
    /// Parses the arguments `min` and `max`. Returns None after an error reply.
    fn parse(call: &mut Call<'a>, by: RangeBy, min: usize, max: usize) -> Option<SortedRange<'a>> {
        match by {
            RangeBy::Rank => Some(SortedRange::Ranks(call.integer(min)?, call.integer(max)?)),
            RangeBy::Score => {
                let bound = |text: &[u8]| match text {
                    [b'(', rest @ ..] => Some((float::parse_bound(rest)?, true)),
                    _ => Some((float::parse_bound(text)?, false)),
                };
                let bounds = bound(call.args[min]).zip(bound(call.args[max]));
                if bounds.is_none() {
                    call.reply.error(NOT_SCORES);
                }
                bounds.map(|(min, max)| SortedRange::Scores(min, max))
            }
            RangeBy::Member => {
                let bounds = MemberBound::parse(call.args[min]).zip(MemberBound::parse(call.args[max]));
                if bounds.is_none() {
                    call.reply.error(NOT_MEMBERS);
                }
                bounds.map(|(min, max)| SortedRange::Members(min, max))
            }
        }
    }

    /// Returns the ranks of the range. `is_reverse` is whether it is walked from its end.
    fn ranks(&self, txn: &KeyTransaction<'_>, entry: &Entry, is_reverse: bool) -> Done<Range<u64>> {
        let count = entry.count()?;
        match *self {
            SortedRange::Ranks(first, last) => {
                let count = count as i64;
                let from_end = |rank: i64| if rank < 0 { count.saturating_add(rank) } else { rank };
                let (first, last) = (from_end(first).max(0), from_end(last).min(count - 1));
                if first > last {
                    return Ok(0..0);
                }
                let (first, end) = (first as u64, last as u64 + 1);
                let count = count as u64;
                Ok(if is_reverse { count - end..count - first } else { first..end })
            }
            SortedRange::Scores((min, min_excluded), (max, max_excluded)) => {
                if min > max || min == max && (min_excluded || max_excluded) {
                    return Ok(0..0);
                }
                let start = txn.rank(entry, &ScoreBound::Score { score: min, is_after: min_excluded })?;
                let end = txn.rank(entry, &ScoreBound::Score { score: max, is_after: !max_excluded })?;
                Ok(start..end.max(start))
            }
            SortedRange::Members(min, max) => member_ranks(txn, entry, (min, max), is_reverse),
        }
    }
}

fn member_ranks(
    txn: &KeyTransaction<'_>,
    entry: &Entry,
    (min, max): (MemberBound<'_>, MemberBound<'_>),
    is_reverse: bool,
) -> Done<Range<u64>> {
    let count = entry.count()?;
    if is_empty(min, max) || count == 0 {
        return Ok(0..0);
    }
    let Some(lowest) = txn.sorted(entry, 0, false)?.next(txn)?.map(|(score, _)| score) else { return Ok(0..0) };
    let Some(highest) = txn.sorted(entry, count - 1, true)?.next(txn)?.map(|(score, _)| score) else {
        return Ok(0..0);
    };
    if lowest != highest && !entry.has_elements() {
        return listpack_ranks(txn, entry, (min, max), is_reverse);
    }
    let (start, end) = (min.rank(txn, entry, lowest, false)?, max.rank(txn, entry, highest, true)?);
    Ok(start..end.max(start))
}

/// Returns true if the bounds leave no place for a member.
fn is_empty(min: MemberBound<'_>, max: MemberBound<'_>) -> bool {
    use MemberBound::{Excluded, Highest, Included, Lowest};
    match (min, max) {
        (Highest, Highest) | (Lowest, Lowest) => true,
        (Highest, _) | (_, Lowest) => true,
        (Lowest, _) | (_, Highest) => false,
        (Included(min), Included(max)) => min > max,
        (Included(min) | Excluded(min), Included(max) | Excluded(max)) => min >= max,
    }
}

/// Finds a range by member among members of several scores, as Redis searches a listpack: for the first one of the range, and from it as far as they follow.
fn listpack_ranks(
    txn: &KeyTransaction<'_>,
    entry: &Entry,
    (min, max): (MemberBound<'_>, MemberBound<'_>),
    is_reverse: bool,
) -> Done<Range<u64>> {
    let (mut members, mut walk) = (Vec::new(), txn.sorted(entry, 0, false)?);
    while let Some((_, member)) = walk.next(txn)? {
        members.push(member.to_vec());
    }
    let (from, to) = (|member: &Vec<u8>| min.admits_from(member), |member: &Vec<u8>| max.admits_to(member));
    let is_in_range = members.last().is_some_and(from) && members.first().is_some_and(to);
    if !is_in_range {
        return Ok(0..0);
    }
    if is_reverse {
        let Some(last) = members.iter().rposition(to) else { return Ok(0..0) };
        let found = members[..=last].iter().rev().take_while(|member| from(member)).count();
        return Ok((last + 1 - found) as u64..last as u64 + 1);
    }
    let Some(first) = members.iter().position(from) else { return Ok(0..0) };
    let found = members[first..].iter().take_while(|member| to(member)).count();
    Ok(first as u64..(first + found) as u64)
}

/// The fixed part of a command of ranges, as far as its name says it.
#[derive(Clone, Copy)]
struct RangeForm {
    /// Index of the key; minimum and maximum follow.
    key: usize,
    by: Option<RangeBy>,
    is_reverse: Option<bool>,
    is_stored: bool,
}

/// A parsed command of ranges.
struct RangeQuery<'a> {
    range: SortedRange<'a>,
    is_reverse: bool,
    with_scores: bool,
    /// Members to skip, and the most to show.
    offset: i64,
    limit: i64,
}

impl<'a> RangeQuery<'a> {
    /// Parses the arguments. Returns None after an error reply.
    fn parse(call: &mut Call<'a>, form: RangeForm) -> Option<RangeQuery<'a>> {
        let (mut by, mut is_reverse, mut with_scores) = (form.by, form.is_reverse, false);
        let (mut offset, mut limit) = (0, -1);
        let mut at = form.key + 3;
        while at < call.args.len() {
            if !form.is_stored && call.word(at, "withscores") {
                with_scores = true;
            } else if call.word(at, "limit") && at + 2 < call.args.len() {
                (offset, limit) = (call.integer(at + 1)?, call.integer(at + 2)?);
                at += 2;
            } else if is_reverse.is_none() && call.word(at, "rev") {
                is_reverse = Some(true);
            } else if by.is_none() && call.word(at, "bylex") {
                by = Some(RangeBy::Member);
            } else if by.is_none() && call.word(at, "byscore") {
                by = Some(RangeBy::Score);
            } else {
                call.reply.error(errors::SYNTAX);
                return None;
            }
            at += 1;
        }
        let (by, is_reverse) = (by.unwrap_or(RangeBy::Rank), is_reverse.unwrap_or(false));
        if limit != -1 && by == RangeBy::Rank {
            call.reply.error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
            return None;
        }
        if with_scores && by == RangeBy::Member {
            call.reply.error("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
            return None;
        }
        let (mut min, mut max) = (form.key + 1, form.key + 2);
        if is_reverse && by != RangeBy::Rank {
            std::mem::swap(&mut min, &mut max);
        }
        let range = SortedRange::parse(call, by, min, max)?;
        if by == RangeBy::Rank {
            offset = 0;
        }
        Some(RangeQuery { range, is_reverse, with_scores, offset, limit })
    }

    /// Returns the ranks of the members to show.
    fn ranks(&self, txn: &KeyTransaction<'_>, entry: &Entry) -> Done<Range<u64>> {
        let ranks = self.range.ranks(txn, entry, self.is_reverse)?;
        // A negative offset skips everything, a negative limit is none.
        let skipped = u64::try_from(self.offset).unwrap_or(u64::MAX).min(ranks.end - ranks.start);
        let shown = u64::try_from(self.limit).unwrap_or(u64::MAX).min(ranks.end - ranks.start - skipped);
        Ok(if self.is_reverse {
            let end = ranks.end - skipped;
            end - shown..end
        } else {
            let start = ranks.start + skipped;
            start..start + shown
        })
    }

    /// Calls `f` with the members of some ranks, in the order of the command.
    fn each(
        &self,
        txn: &KeyTransaction<'_>,
        entry: &Entry,
        ranks: Range<u64>,
        mut f: impl FnMut(f64, &[u8]) -> Result,
    ) -> Result {
        if ranks.is_empty() {
            return Ok(());
        }
        let first = if self.is_reverse { ranks.end - 1 } else { ranks.start };
        let mut walk = txn.sorted(entry, first, self.is_reverse)?;
        for _ in ranks {
            let Some((score, member)) = walk.next(txn)? else { break };
            f(score, member)?;
        }
        Ok(())
    }
}

fn reply_range(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, form: RangeForm) -> Result {
    let Some(query) = RangeQuery::parse(call, form) else { return Ok(()) };
    let Some(found) = lookup_as(txn, call, call.args[form.key], Kind::ZSet)? else { return Ok(()) };
    let Some(entry) = found else {
        call.reply.array(0);
        return Ok(());
    };
    let ranks = query.ranks(txn, &entry)?;
    scored_header(&mut call.reply, ranks.end - ranks.start, query.with_scores);
    query.each(txn, &entry, ranks, |score, member| call.scored_item(member, score, query.with_scores))
}

const PLAIN: RangeForm = RangeForm { key: 1, by: None, is_reverse: None, is_stored: false };

pub fn zrange(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_range(txn, call, PLAIN)
}

fn reply_by(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, by: RangeBy, is_reverse: bool) -> Result {
    reply_range(txn, call, RangeForm { by: Some(by), is_reverse: Some(is_reverse), ..PLAIN })
}

pub fn zrevrange(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_by(txn, call, RangeBy::Rank, true)
}

pub fn zrangebyscore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_by(txn, call, RangeBy::Score, false)
}

pub fn zrevrangebyscore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_by(txn, call, RangeBy::Score, true)
}

pub fn zrangebylex(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_by(txn, call, RangeBy::Member, false)
}

pub fn zrevrangebylex(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_by(txn, call, RangeBy::Member, true)
}

pub fn zrangestore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let form = RangeForm { key: 2, is_stored: true, ..PLAIN };
    let Some(query) = RangeQuery::parse(call, form) else { return Ok(()) };
    let Some(found) = lookup_as(txn, call, call.args[2], Kind::ZSet)? else { return Ok(()) };
    let mut build = txn.build(call.db, call.args[1], Kind::ZSet, call.limits.zset())?;
    if let Some(entry) = found {
        let ranks = query.ranks(txn, &entry)?;
        query.each(txn, &entry, ranks, |score, member| build.put(member, &score.to_le_bytes()).map(drop))?;
    }
    store_built(txn, call, call.args[1], build, (event_class::SORTED_SET, call.command.name))
}

fn reply_number(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, by: RangeBy) -> Result {
    let Some(range) = SortedRange::parse(call, by, 2, 3) else { return Ok(()) };
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::ZSet)? else { return Ok(()) };
    let ranks = found.map_or(Ok(0..0), |entry| range.ranks(txn, &entry, false))?;
    call.reply.integer((ranks.end - ranks.start) as i64);
    Ok(())
}

pub fn zcount(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_number(txn, call, RangeBy::Score)
}

pub fn zlexcount(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_number(txn, call, RangeBy::Member)
}

fn remove_range(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, by: RangeBy) -> Result {
    let Some(range) = SortedRange::parse(call, by, 2, 3) else { return Ok(()) };
    let Some(found) = lookup_as(txn, call, call.args[1], Kind::ZSet)? else { return Ok(()) };
    let mut removed = 0;
    if let Some(entry) = found {
        let ranks = range.ranks(txn, &entry, false)?;
        if !ranks.is_empty() {
            removed = txn.remove_ranks(call.db, call.args[1], ranks)?;
        }
        notify_removal(
            txn,
            call.db,
            call.args[1],
            (event_class::SORTED_SET, call.command.name),
            (entry.count()?, removed),
        );
    }
    call.reply.integer(removed as i64);
    Ok(())
}

pub fn zremrangebyrank(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    remove_range(txn, call, RangeBy::Rank)
}

pub fn zremrangebyscore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    remove_range(txn, call, RangeBy::Score)
}

pub fn zremrangebylex(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    remove_range(txn, call, RangeBy::Member)
}
