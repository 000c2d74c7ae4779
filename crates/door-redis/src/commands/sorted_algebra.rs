//! ZUNION, ZINTER, ZDIFF and their kin, over sorted sets and sets, whose members have the score 1.
//!
//! Each set is walked, the smallest first, and its members are looked up in the others, so that the inputs need no memory. The result must be sorted: it is
//! gathered in memory up to a limit, and beyond it becomes a sorted set that no key refers to.

use std::cmp::Ordering;

use engine::{Build, Entry, KeyTransaction, Kind, event_class};
use stdx::memory;

use crate::call::{Call, Done, Result};
use crate::command::flag::WRITE;
use crate::commands::members::store_built;
use crate::commands::sorted_set::scored_header;
use crate::errors;

/// Bytes of members that a reply gathers in memory.
const GATHERED_MAX: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq)]
enum SortedAlgebra {
    Inter,
    Union,
    Diff,
}

#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// Returns the combination of two scores. A sum that is no number is 0.
    fn of(self, one: f64, other: f64) -> f64 {
        match self {
            Aggregate::Sum => number(one + other),
            Aggregate::Min => {
                if other < one {
                    other
                } else {
                    one
                }
            }
            Aggregate::Max => {
                if other > one {
                    other
                } else {
                    one
                }
            }
        }
    }
}

fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// An input with its weight. `None`: an absent key.
struct Input {
    entry: Option<Entry>,
    weight: f64,
}

impl Input {
    fn count(&self) -> Done<u64> {
        self.entry.as_ref().map_or(Ok(0), Entry::count)
    }

    /// Returns the score of a member, without the weight.
    fn score(&self, txn: &KeyTransaction<'_>, member: &[u8]) -> Done<Option<f64>> {
        match &self.entry {
            None => Ok(None),
            Some(entry) if entry.kind == Kind::ZSet => txn.score(entry, member),
            Some(entry) => Ok(txn.member(entry, member)?.map(|_| 1.0)),
        }
    }
}

/// A parsed request.
struct AlgebraRequest {
    algebra: SortedAlgebra,
    inputs: Vec<Input>,
    aggregate: Aggregate,
    with_scores: bool,
    /// Most members to count; 0 for all.
    limit: u64,
}

/// The use that a command of this group makes of the members.
#[derive(Clone, Copy, PartialEq)]
enum Purpose {
    Reply,
    Store,
    Count,
}

impl AlgebraRequest {
    /// Parses a request whose number of keys is argument `at`, and looks up its keys. Returns None after an error reply.
    fn parse(
        txn: &mut KeyTransaction<'_>,
        call: &mut Call<'_>,
        (algebra, purpose): (SortedAlgebra, Purpose),
        at: usize,
    ) -> Done<Option<AlgebraRequest>> {
        let Some(keys) = call.integer(at) else { return Ok(None) };
        if keys < 1 {
            call.reply.error(&format!("ERR at least 1 input key is needed for '{}' command", call.command.name));
            return Ok(None);
        }
        if keys as u64 > (call.args.len() - (at + 1)) as u64 {
            call.reply.error(errors::SYNTAX);
            return Ok(None);
        }
        let end = at + 1 + keys as usize;
        let mut inputs = Vec::with_capacity(keys as usize);
        for key in &call.args[at + 1..end] {
            let entry = if call.command.is(WRITE) { txn.peek(call.db, key)? } else { txn.get(call.db, key)? };
            if entry.as_ref().is_some_and(|entry| !matches!(entry.kind, Kind::ZSet | Kind::Set)) {
                call.reply.error(errors::WRONG_TYPE);
                return Ok(None);
            }
            inputs.push(Input { entry, weight: 1.0 });
        }
        let mut request = AlgebraRequest { algebra, inputs, aggregate: Aggregate::Sum, with_scores: false, limit: 0 };
        let done = request.parse_options(call, purpose, end);
        if done.is_none() {
            return Ok(None);
        }
        if algebra != SortedAlgebra::Diff {
            // The order decides how sums round. Equal sizes keep theirs.
            let counts = request.inputs.iter().map(Input::count).collect::<Done<Vec<u64>>>()?;
            let mut numbered: Vec<(u64, Input)> = counts.into_iter().zip(request.inputs).collect();
            numbered.sort_by_key(|(count, _)| *count);
            request.inputs = numbered.into_iter().map(|(_, input)| input).collect();
        }
        Ok(Some(request))
    }

    fn parse_options(&mut self, call: &mut Call<'_>, purpose: Purpose, mut at: usize) -> Option<()> {
        let is_scored = self.algebra != SortedAlgebra::Diff && purpose != Purpose::Count;
        while at < call.args.len() {
            let left = call.args.len() - at;
            if is_scored && left > self.inputs.len() && call.word(at, "weights") {
                for (number, input) in self.inputs.iter_mut().enumerate() {
                    input.weight = call.double(at + 1 + number, "ERR weight value is not a float")?;
                }
                at += 1 + self.inputs.len();
            } else if is_scored && left >= 2 && call.word(at, "aggregate") {
                self.aggregate = match call.args[at + 1].to_ascii_lowercase().as_slice() {
                    b"sum" => Aggregate::Sum,
                    b"min" => Aggregate::Min,
                    b"max" => Aggregate::Max,
                    _ => {
                        call.reply.error(errors::SYNTAX);
                        return None;
                    }
                };
                at += 2;
            } else if purpose == Purpose::Reply && call.word(at, "withscores") {
                self.with_scores = true;
                at += 1;
            } else if purpose == Purpose::Count && left >= 2 && call.word(at, "limit") {
                self.limit = call.at_least(at + 1, 0, "ERR LIMIT can't be negative")? as u64;
                at += 2;
            } else {
                call.reply.error(errors::SYNTAX);
                return None;
            }
        }
        Some(())
    }

    /// Calls `f` with each member of the result and its score, until it returns false.
    fn each(&self, txn: &KeyTransaction<'_>, mut f: impl FnMut(&[u8], f64) -> Done<bool>) -> Result {
        let walked = if self.algebra == SortedAlgebra::Union { self.inputs.len() } else { 1 };
        for at in 0..walked {
            let Some(entry) = &self.inputs[at].entry else { continue };
            let mut walk = txn.members(entry)?;
            while let Some(item) = walk.next(txn)? {
                let own = if entry.kind == Kind::ZSet { txn.score_of(&item.value.to_entry()?)? } else { 1.0 };
                if let Some(score) = self.combine(txn, at, item.member, own)?
                    && !f(item.member, score)?
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the score in the result of a member that input `at` has with the score `own`; `None` if another input decides, or the result has no such member.
    fn combine(&self, txn: &KeyTransaction<'_>, at: usize, member: &[u8], own: f64) -> Done<Option<f64>> {
        if self.algebra == SortedAlgebra::Diff {
            for other in &self.inputs[1..] {
                if other.score(txn, member)?.is_some() {
                    return Ok(None);
                }
            }
            return Ok(Some(own));
        }
        for earlier in &self.inputs[..at] {
            if earlier.score(txn, member)?.is_some() {
                return Ok(None);
            }
        }
        let mut sum = number(self.inputs[at].weight * own);
        for later in &self.inputs[at + 1..] {
            match later.score(txn, member)? {
                Some(score) => {
                    let weighted = later.weight * score;
                    let weighted = if self.algebra == SortedAlgebra::Union { number(weighted) } else { weighted };
                    sum = self.aggregate.of(sum, weighted);
                }
                None if self.algebra == SortedAlgebra::Inter => return Ok(None),
                None => {}
            }
        }
        Ok(Some(sum))
    }
}

/// The members of a reply, to be sorted.
enum Gathered<'k> {
    Memory(Vec<(f64, Vec<u8>)>, usize),
    Stored(Build<'k>),
}

fn reply_members(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, algebra: SortedAlgebra) -> Result {
    let Some(request) = AlgebraRequest::parse(txn, call, (algebra, Purpose::Reply), 1)? else { return Ok(()) };
    let mut gathered = Gathered::Memory(Vec::new(), 0);
    request.each(txn, |member, score| {
        if let Gathered::Memory(members, bytes) = &mut gathered {
            members.push((score, member.to_vec()));
            *bytes += member.len() + size_of::<(f64, Vec<u8>)>();
            if *bytes <= GATHERED_MAX || memory::claim(*bytes).is_ok() && *bytes <= 64 * GATHERED_MAX {
                return Ok(true);
            }
            let mut build = txn.build_unnamed(Kind::ZSet);
            for (score, member) in members.drain(..) {
                build.put(&member, &score.to_le_bytes())?;
            }
            gathered = Gathered::Stored(build);
        } else if let Gathered::Stored(build) = &mut gathered {
            build.put(member, &score.to_le_bytes())?;
        }
        Ok(true)
    })?;
    match gathered {
        Gathered::Memory(mut members, _) => {
            // No score is NaN, and both zeros are one.
            members.sort_by(|one, two| one.partial_cmp(two).unwrap_or(Ordering::Equal));
            scored_header(&mut call.reply, members.len() as u64, request.with_scores);
            members.iter().try_for_each(|(score, member)| call.scored_item(member, *score, request.with_scores))
        }
        Gathered::Stored(build) => {
            scored_header(&mut call.reply, build.count(), request.with_scores);
            let mut walk = build.sorted()?;
            while let Some((score, member)) = walk.next(txn)? {
                call.scored_item(member, score, request.with_scores)?;
            }
            Ok(())
        }
    }
}

fn store_members(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>, algebra: SortedAlgebra) -> Result {
    let Some(request) = AlgebraRequest::parse(txn, call, (algebra, Purpose::Store), 2)? else { return Ok(()) };
    let mut build = txn.build(call.db, call.args[1], Kind::ZSet, call.limits.zset())?;
    request.each(txn, |member, score| build.put(member, &score.to_le_bytes()).map(|_| true))?;
    store_built(txn, call, call.args[1], build, (event_class::SORTED_SET, call.command.name))
}

pub fn zunion(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_members(txn, call, SortedAlgebra::Union)
}

pub fn zinter(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_members(txn, call, SortedAlgebra::Inter)
}

pub fn zdiff(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    reply_members(txn, call, SortedAlgebra::Diff)
}

pub fn zunionstore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    store_members(txn, call, SortedAlgebra::Union)
}

pub fn zinterstore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    store_members(txn, call, SortedAlgebra::Inter)
}

pub fn zdiffstore(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    store_members(txn, call, SortedAlgebra::Diff)
}

pub fn zintercard(txn: &mut KeyTransaction<'_>, call: &mut Call<'_>) -> Result {
    let Some(request) = AlgebraRequest::parse(txn, call, (SortedAlgebra::Inter, Purpose::Count), 1)? else {
        return Ok(());
    };
    let mut count = 0;
    request.each(txn, |_, _| {
        count += 1;
        Ok(count != request.limit)
    })?;
    call.reply.integer(count as i64);
    Ok(())
}
