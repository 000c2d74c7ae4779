//! Reading sorted sets: a score, a rank, a walk in the order of scores.
//!
//! A sorted set that is not packed has two elements for each member: one by the member's hash with the score (`members`), and one by score. Above some number
//! of members `levels` over the latter make ranks cheap; below it they are counted from the first one.

use std::ops::Bound;

use btree::{Batch, ReadMode, ScanState};

use crate::error::{Error, Result};
use crate::keyspace::build::{Build, BuildState};
use crate::keyspace::key;
use crate::keyspace::key::{SCORE, SCORED_MEMBER, TreeKey};
use crate::keyspace::key_txn::{Entry, KeyTransaction};
use crate::keyspace::levels::{LevelEntries, Levels};
use crate::keyspace::packed;
use crate::keyspace::packed::packed_part;
use crate::keyspace::record::{Body, Kind, Meta};
use crate::keyspace::score;
use crate::keyspace::score::{NamedMember, ScoreBound};
use crate::keyspace::state::Keyspace;

/// The elements of a sorted set.
#[derive(Clone, Copy)]
pub(crate) struct SortedElements {
    pub count: u64,
    pub version: u64,
    /// The highest level.
    pub top: u8,
}

impl SortedElements {
    /// Returns the elements; `None` if the set is packed.
    pub fn of(meta: &Meta<'_>) -> Result<Option<SortedElements>> {
        match (meta.head.kind, meta.body) {
            (Kind::ZSet, Body::Elements { count, version, fields: &[top] }) => {
                Ok(Some(SortedElements { count, version, top }))
            }
            (Kind::ZSet, Body::Inline(_)) => Ok(None),
            _ => Err(Error::Misuse("ranks of a key that is no sorted set")),
        }
    }
}

/// A walk over the members of a sorted set, from the lowest score up or from the highest down.
pub struct SortedWalk {
    source: SortedSource,
    /// The current member, if it is too long for its tree key.
    long: Vec<u8>,
}

enum SortedSource {
    /// Members with their scores, the next one last.
    Packed {
        left: Vec<(f64, Vec<u8>)>,
        current: Vec<u8>,
    },
    Elements {
        version: u64,
        state: Box<ScanState>,
        batch: Batch,
        at: usize,
    },
}

impl SortedWalk {
    /// Returns the next member with its score.
    pub fn next(&mut self, txn: &KeyTransaction<'_>) -> Result<Option<(f64, &[u8])>> {
        match &mut self.source {
            SortedSource::Packed { left, current } => {
                let Some((score, member)) = left.pop() else { return Ok(None) };
                *current = member;
                Ok(Some((score, current)))
            }
            SortedSource::Elements { version, state, batch, at } => {
                if *at == batch.len() {
                    *at = 0;
                    txn.check_for_interrupts()?;
                    if !state.next_batch(&txn.keyspace.store.records, ReadMode::MayRead, batch)? {
                        return Ok(None);
                    }
                }
                let record = batch.get(*at);
                *at += 1;
                let Meta { body: Body::Inline(payload), .. } = Meta::parse(record.value)? else {
                    return Err(Error::corrupt("an element by score with pages"));
                };
                let (score, named) = score::parse(&record.key[key::ELEMENT_PREFIX..], payload)?;
                match named {
                    NamedMember::Short(member) => Ok(Some((score, member))),
                    NamedMember::Long { hash, digest } => {
                        txn.member_by_digest(*version, hash, digest, &mut self.long)?;
                        Ok(Some((score, &self.long)))
                    }
                }
            }
        }
    }
}

impl Keyspace {
    /// Returns the levels of a sorted set.
    pub(crate) fn sorted_levels(&self, elements: SortedElements) -> Levels<'_> {
        let SortedElements { version, top, .. } = elements;
        Levels::new(&self.store.records, version, LevelEntries::Elements(SCORE), self.level_sizes, top)
    }

    /// Returns the score of a member in its own element, by version id and hash.
    pub(crate) fn stored_score(&self, tree_key: &TreeKey) -> Result<Option<f64>> {
        let mut record = Vec::new();
        if !self.store.records.get(tree_key.as_slice(), &mut record)?.present {
            return Ok(None);
        }
        let (meta, mut value) = (Meta::parse(&record)?, Vec::with_capacity(packed::SCORE_BYTES));
        let skip = u64::from(meta.head.key_len);
        self.store.read_payload(&meta.body, skip..meta.body.payload_len(), &mut value)?;
        score::of_value(&value).map(Some)
    }

    /// Returns the score of an element by score, and the one in the element of its member.
    pub(crate) fn score_of_element(&self, version: u64, sub: &[u8], meta: &Meta<'_>) -> Result<(f64, Option<f64>)> {
        let Body::Inline(payload) = meta.body else { return Err(Error::corrupt("an element by score with pages")) };
        let (score, named) = score::parse(sub, payload)?;
        let tree_key = match named {
            NamedMember::Short(member) => {
                let hash = self.member_hash.of(member).unwrap_or_default();
                key::member(version, SCORED_MEMBER, hash, member)
            }
            NamedMember::Long { hash, digest } => key::long_member(version, SCORED_MEMBER, hash, digest),
        };
        Ok((score, self.stored_score(&tree_key)?))
    }
}

impl<'k> KeyTransaction<'k> {
    /// Reads a long member by the names that its element by score has.
    fn member_by_digest(&self, version: u64, hash: u64, digest: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let key = key::long_member(version, SCORED_MEMBER, hash, digest);
        let mut record = Vec::new();
        if !self.keyspace.store.records.get(key.as_slice(), &mut record)?.present {
            return Err(Error::corrupt("EN-72: an element by score has no member"));
        }
        self.long_member(&record, out)
    }

    /// Returns the score of a member of a sorted set.
    pub fn score(&self, entry: &Entry, member: &[u8]) -> Result<Option<f64>> {
        let Some(value) = self.member(entry, member)? else { return Ok(None) };
        self.score_of(&value).map(Some)
    }

    /// Returns the score that the entry of a member holds.
    pub fn score_of(&self, value: &Entry) -> Result<f64> {
        let mut bytes = Vec::with_capacity(packed::SCORE_BYTES);
        self.value_part(value, 0..packed::SCORE_BYTES as u64, &mut bytes)?;
        score::of_value(&bytes)
    }

    pub(crate) fn levels(&self, elements: SortedElements) -> Levels<'k> {
        let kept = self.kept_levels.as_ref().filter(|(version, _)| *version == elements.version);
        kept.map_or_else(|| self.keyspace.sorted_levels(elements), |(_, levels)| levels.clone())
    }

    /// Returns the number of members of a sorted set before a place.
    pub fn rank(&self, entry: &Entry, bound: &ScoreBound<'_>) -> Result<u64> {
        let meta = Meta::parse(&entry.record)?;
        match SortedElements::of(&meta)? {
            Some(elements) => self.levels(elements).position(&bound.sub()),
            None => {
                let members = packed_members(&meta)?;
                Ok(members.iter().filter(|(score, member)| bound.is_after(*score, member)).count() as u64)
            }
        }
    }

    /// Begins a walk in the order of scores, with the member that `rank` others precede. Backward, the members before it follow.
    pub fn sorted(&self, entry: &Entry, rank: u64, is_backward: bool) -> Result<SortedWalk> {
        self.sorted_few(entry, rank, is_backward, u64::MAX)
    }

    /// Does the same for a caller that takes at most so many members, which is not 0.
    pub fn sorted_few(&self, entry: &Entry, rank: u64, is_backward: bool, most: u64) -> Result<SortedWalk> {
        let meta = Meta::parse(&entry.record)?;
        let source = match SortedElements::of(&meta)? {
            None => {
                let mut left: Vec<(f64, Vec<u8>)> =
                    packed_members(&meta)?.into_iter().map(|(score, member)| (score, member.to_vec())).collect();
                let rank = usize::try_from(rank).unwrap_or(usize::MAX);
                if is_backward {
                    left.truncate(rank.saturating_add(1));
                } else {
                    left.drain(..rank.min(left.len()));
                    left.reverse();
                }
                SortedSource::Packed { left, current: Vec::new() }
            }
            Some(elements) => {
                let version = elements.version;
                let end = key::element_of(version, SCORE + 1, &[]);
                let at = match rank {
                    0 if !is_backward => Some((Vec::new(), 0)),
                    _ if is_backward && rank + 1 >= elements.count => None,
                    _ => self.levels(elements).find(rank)?,
                };
                let at = at.map_or_else(|| end.clone(), |(sub, _)| key::element_of(version, SCORE, &sub));
                let first = key::element_of(version, SCORE, &[]);
                let state = if is_backward {
                    ScanState::new(Bound::Included(&first), Bound::Included(&at), true)
                } else {
                    ScanState::new(Bound::Included(&at), Bound::Excluded(&end), false)
                };
                let state = state.with_limit(usize::try_from(most).unwrap_or(usize::MAX));
                SortedSource::Elements { version, state: Box::new(state), batch: Batch::new(), at: 0 }
            }
        };
        Ok(SortedWalk { source, long: Vec::new() })
    }
}

impl Build<'_> {
    /// Begins a walk over the sorted set that has been built so far.
    pub fn sorted(&self) -> Result<SortedWalk> {
        let source = match &self.state {
            BuildState::Packed(items) => {
                let mut payload = Vec::with_capacity(items.len());
                items.encode(self.form, &mut payload)?;
                let mut left = Vec::with_capacity(items.count);
                each_packed(&payload, |score, member| left.push((score, member.to_vec())))?;
                left.reverse();
                SortedSource::Packed { left, current: Vec::new() }
            }
            BuildState::Elements { version, .. } => {
                let version = version.version();
                let (from, end) = (key::element_of(version, SCORE, &[]), key::element_of(version, SCORE + 1, &[]));
                let state = ScanState::new(Bound::Included(&from), Bound::Excluded(&end), false);
                SortedSource::Elements { version, state: Box::new(state), batch: Batch::new(), at: 0 }
            }
        };
        Ok(SortedWalk { source, long: Vec::new() })
    }
}

/// Calls `f` with each member of a packed sorted set and its score.
fn each_packed<'a>(packed: &'a [u8], mut f: impl FnMut(f64, &'a [u8])) -> Result<()> {
    let (_, mut rest) = packed::split_plain(packed)?;
    while !rest.is_empty() {
        let (member, value) = packed::take(Kind::ZSet, &mut rest)?;
        f(score::of_value(value)?, member);
    }
    Ok(())
}

fn packed_members<'a>(meta: &Meta<'a>) -> Result<Vec<(f64, &'a [u8])>> {
    let Body::Inline(payload) = meta.body else { return Err(Error::Misuse("a sorted set that is not packed")) };
    let mut members = Vec::new();
    each_packed(packed_part(meta, payload), |score, member| members.push((score, member)))?;
    Ok(members)
}
