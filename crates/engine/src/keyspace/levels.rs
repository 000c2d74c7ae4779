//! Levels: weights over the ordered entries of a collection, for ranks and positions in O(log n).
//!
//! ```text
//!   level 2       | "" : 9 of 2                    | p : 7 of 2          |        a bucket holds the weight of its entries and their number
//!   level 1       | "" : 4 of 4     | f : 5 of 5   | p : 3 of 3 | s : 4 of 4 |    its entries are the buckets, or entries, from its bound to the next one
//!   entries         a  b  c  e        f  g  h  k  m  p  q  r      s  t  u  x
//! ```
//! The entries of a sorted set are its elements by score, each of weight 1 and counted by the tree. Those of a list are level 0: one record for each chunk, with
//! the number of its items. A position is the sum of the buckets before it on each level, from the top down, and the entries before it in the last bucket;
//! finding the n-th is the reverse.
//!
//! Buckets are records of the collection's version id. They are split above the upper size and joined with a neighbour under the same bucket below an eighth of
//! it (EN-70, EN-71). A level comes when the one below has more entries than a bucket may have, and goes when it has one bucket.
//!
//! Hard part: a command changes many entries, and each bucket once. So `Levels` keeps changed buckets in memory, over those of the tree, until the caller writes
//! them. Readers without locks may meet buckets of two moments; every loop ends at the end of a level, and the result is discarded (EN-48).

use std::collections::BTreeMap;
use std::ops::Bound;

use btree::{Batch, Tree};

use crate::error::{Error, Result};
use crate::keyspace::key;
use crate::keyspace::record::{Body, Kind, Meta};

mod build;
#[cfg(test)]
mod tests;

pub(crate) use build::LevelBuild;

/// Maximum number of levels. Even with four entries in a bucket no collection needs more.
const LEVELS_MAX: u8 = 40;

/// The greatest numbers of entries of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSizes {
    /// Elements in a bucket of level 1.
    pub elements: u64,
    /// Buckets, or records of level 0, in a bucket.
    pub buckets: u64,
}

impl Default for LevelSizes {
    fn default() -> Self {
        LevelSizes { elements: 1024, buckets: 256 }
    }
}

/// The entries below level 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LevelEntries {
    /// Elements of this kind, each of weight 1.
    Elements(u8),
    /// Records of level 0 with weights.
    Weights,
}

/// The value of a level's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Bucket {
    pub weight: u64,
    /// Number of its entries; 0 on level 0.
    pub children: u64,
}

const BUCKET_BYTES: usize = 12;

impl Bucket {
    /// Returns the record: a head without flags, weight and number of entries.
    pub fn encode(&self) -> [u8; BUCKET_BYTES] {
        let mut bytes = [0; BUCKET_BYTES];
        bytes[2..10].copy_from_slice(&self.weight.to_le_bytes());
        bytes[10..].copy_from_slice(&(self.children as u16).to_le_bytes());
        bytes
    }

    pub fn parse(record: &[u8]) -> Result<Bucket> {
        let parse = || {
            let Meta { head, body: Body::Inline(payload) } = Meta::parse(record).ok()? else { return None };
            let (weight, children) = payload.split_first_chunk::<8>()?;
            let children = u16::from_le_bytes(children.try_into().ok()?);
            let weight = u64::from_le_bytes(*weight);
            (head.kind == Kind::String).then_some(Bucket { weight, children: children.into() })
        };
        parse().ok_or_else(|| Error::corrupt("a record of a level has an unknown form"))
    }
}

/// The levels of a collection, with changes that are not written yet.
#[derive(Clone)]
pub(crate) struct Levels<'t> {
    tree: &'t Tree,
    version: u64,
    entries: LevelEntries,
    sizes: LevelSizes,
    /// The highest level; 0 if there is none above the entries.
    top: u8,
    /// Changed and removed buckets, by tree key.
    changed: BTreeMap<Vec<u8>, Option<Bucket>>,
}

impl<'t> Levels<'t> {
    pub fn new(tree: &'t Tree, version: u64, entries: LevelEntries, sizes: LevelSizes, top: u8) -> Levels<'t> {
        Levels { tree, version, entries, sizes, top, changed: BTreeMap::new() }
    }

    /// Returns the highest level, which belongs into the collection's record.
    pub fn top(&self) -> u8 {
        self.top
    }

    /// Returns whether there are changes that are not written yet.
    pub fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Takes the changes: the tree key of each record, and its value, `None` if it is to be removed.
    pub fn take_changes(&mut self) -> impl Iterator<Item = (Vec<u8>, Option<[u8; BUCKET_BYTES]>)> + use<> {
        std::mem::take(&mut self.changed).into_iter().map(|(key, bucket)| (key, bucket.map(|bucket| bucket.encode())))
    }

    /// Returns the sum of the weights of all entries before `sub`, which need not be an entry.
    pub fn position(&self, sub: &[u8]) -> Result<u64> {
        let (mut sum, mut from) = (0, Vec::new());
        for level in (1..=self.top).rev() {
            let (mut walk, mut last) = (self.walk(level, &from), None);
            while let Some((bound, bucket)) = walk.next()? {
                if bound.as_slice() > sub {
                    break;
                }
                sum += last.replace(bucket.weight).unwrap_or(0);
                from = bound;
            }
        }
        match self.entries {
            LevelEntries::Elements(_) => {
                let (start, end) = (self.key(0, &from), self.key(0, sub));
                sum += self.tree.count(&start, Some(&end), u64::MAX)?;
            }
            LevelEntries::Weights => {
                let mut walk = self.walk(0, &from);
                while let Some((bound, bucket)) = walk.next()?
                    && bound.as_slice() < sub
                {
                    sum += bucket.weight;
                }
            }
        }
        Ok(sum)
    }

    /// Returns the entry that the unit of weight number `index` belongs to, and how many units of the entry come before; `None` if there are not so many.
    pub fn find(&self, index: u64) -> Result<Option<(Vec<u8>, u64)>> {
        let (mut left, mut from) = (index, Vec::new());
        for level in (1..=self.top).rev() {
            let mut walk = self.walk(level, &from);
            loop {
                let Some((bound, bucket)) = walk.next()? else { return Ok(None) };
                if left < bucket.weight {
                    from = bound;
                    break;
                }
                left -= bucket.weight;
            }
        }
        match self.entries {
            LevelEntries::Elements(_) => {
                let found = self.tree.skip(&self.key(0, &from), Some(&self.end(0)), left)?;
                Ok(found.map(|key| (self.sub_of(0, &key), 0)))
            }
            LevelEntries::Weights => {
                let mut walk = self.walk(0, &from);
                while let Some((bound, bucket)) = walk.next()? {
                    if left < bucket.weight {
                        return Ok(Some((bound, left)));
                    }
                    left -= bucket.weight;
                }
                Ok(None)
            }
        }
    }

    /// Takes note of an element that was added. The tree must have it already.
    pub fn added(&mut self, sub: &[u8]) -> Result<()> {
        debug_assert!(matches!(self.entries, LevelEntries::Elements(_)));
        self.adjust(sub, 1, 1)
    }

    /// Takes note of an element that was removed. The tree must not have it any more.
    pub fn removed(&mut self, sub: &[u8]) -> Result<()> {
        debug_assert!(matches!(self.entries, LevelEntries::Elements(_)));
        self.adjust(sub, -1, -1)
    }

    /// Returns the weight of an entry of level 0.
    pub fn weight(&self, sub: &[u8]) -> Result<Option<u64>> {
        Ok(self.bucket(0, sub)?.map(|bucket| bucket.weight))
    }

    /// Sets the weight of an entry of level 0, or removes the entry.
    pub fn set_weight(&mut self, sub: &[u8], weight: Option<u64>) -> Result<()> {
        debug_assert!(self.entries == LevelEntries::Weights);
        let old = self.weight(sub)?;
        self.put(0, sub, weight.map(|weight| Bucket { weight, children: 0 }));
        let entries = i64::from(weight.is_some()) - i64::from(old.is_some());
        self.adjust(sub, weight.unwrap_or(0) as i64 - old.unwrap_or(0) as i64, entries)
    }

    /// Adds to the weights of the buckets that cover an entry, and to the number of entries of the lowest one.
    fn adjust(&mut self, sub: &[u8], weight: i64, entries: i64) -> Result<()> {
        for level in 1..=self.top {
            let (bound, mut bucket) = self.covering(level, sub)?;
            bucket.weight = bucket.weight.checked_add_signed(weight).ok_or_else(damaged)?;
            if level == 1 {
                bucket.children = bucket.children.checked_add_signed(entries).ok_or_else(damaged)?;
            }
            self.put(level, &bound, Some(bucket));
        }
        match entries {
            0 => Ok(()),
            _ if self.top > 0 => {
                let (bound, bucket) = self.covering(1, sub)?;
                self.balance(1, bound, bucket)
            }
            1.. => self.grow(),
            _ => Ok(()),
        }
    }

    fn balance(&mut self, level: u8, bound: Vec<u8>, bucket: Bucket) -> Result<()> {
        if bucket.children > self.max(level) {
            self.split(level, bound, bucket)
        } else if bucket.children < self.min(level) {
            self.join(level, bound, bucket)
        } else {
            Ok(())
        }
    }

    /// Splits a bucket in the middle of its entries.
    fn split(&mut self, level: u8, bound: Vec<u8>, bucket: Bucket) -> Result<()> {
        let half = bucket.children / 2;
        let (middle, weight) = self.nth_entry(level - 1, &bound, half)?;
        let left = Bucket { weight, children: half };
        let right = bucket.weight.checked_sub(weight).ok_or_else(damaged)?;
        self.put(level, &bound, Some(left));
        self.put(level, &middle, Some(Bucket { weight: right, children: bucket.children - half }));
        if level == self.top {
            return self.grow();
        }
        let (above, mut parent) = self.covering(level + 1, &bound)?;
        parent.children += 1;
        self.put(level + 1, &above, Some(parent));
        self.balance(level + 1, above, parent)
    }

    /// Adds a level if the top has more entries than one bucket may have.
    fn grow(&mut self) -> Result<()> {
        let most = self.max(self.top + 1);
        let all = self.total(self.top, most + 1)?;
        if all.children <= most {
            return Ok(());
        }
        if self.top == LEVELS_MAX {
            return Err(damaged());
        }
        self.top += 1;
        self.put(self.top, &[], Some(all));
        self.split(self.top, Vec::new(), all)
    }

    /// Joins a bucket with a neighbour under the same bucket of the level above.
    fn join(&mut self, level: u8, bound: Vec<u8>, bucket: Bucket) -> Result<()> {
        let (above, parent) = if level < self.top {
            let (above, parent) = self.covering(level + 1, &bound)?;
            (above, Some(parent))
        } else {
            (Vec::new(), None)
        };
        let (left, right) = if bound > above {
            (self.before(level, &bound)?, (bound, bucket))
        } else {
            let mut walk = self.walk(level, &bound);
            walk.next()?;
            match walk.next()? {
                Some(right) => ((bound, bucket), right),
                None => return self.shrink(),
            }
        };
        let joined = Bucket { weight: left.1.weight + right.1.weight, children: left.1.children + right.1.children };
        self.put(level, &left.0, Some(joined));
        self.put(level, &right.0, None);
        match parent {
            None => self.shrink()?,
            Some(mut parent) => {
                parent.children = parent.children.checked_sub(1).ok_or_else(damaged)?;
                self.put(level + 1, &above, Some(parent));
                if joined.children <= self.max(level) {
                    return self.balance(level + 1, above, parent);
                }
            }
        }
        if joined.children > self.max(level) && level <= self.top {
            self.split(level, left.0, joined)?;
        }
        Ok(())
    }

    /// Removes the top level while it has one bucket, which says nothing.
    fn shrink(&mut self) -> Result<()> {
        while self.top > 0 {
            let mut walk = self.walk(self.top, &[]);
            let (first, second) = (walk.next()?, walk.next()?);
            if second.is_some() {
                break;
            }
            if let Some((bound, bucket)) = first {
                if bucket.children > self.max(self.top) {
                    break;
                }
                self.put(self.top, &bound, None);
            }
            self.top -= 1;
        }
        Ok(())
    }

    fn max(&self, level: u8) -> u64 {
        match self.entries {
            LevelEntries::Elements(_) if level == 1 => self.sizes.elements,
            _ => self.sizes.buckets,
        }
    }

    /// Returns the least number of entries of a bucket that has a neighbour. Above level 1 it is at least 2, so every bucket but those of the top has one.
    fn min(&self, level: u8) -> u64 {
        (self.max(level) / 8).max(if level == 1 { 1 } else { 2 })
    }

    /// Returns the entry that `n` others precede from `bound` on, on level `level`, and the weight of those.
    fn nth_entry(&self, level: u8, bound: &[u8], n: u64) -> Result<(Vec<u8>, u64)> {
        if let (LevelEntries::Elements(_), 0) = (self.entries, level) {
            let key = self.tree.skip(&self.key(0, bound), Some(&self.end(0)), n)?.ok_or_else(damaged)?;
            return Ok((self.sub_of(0, &key), n));
        }
        let (mut walk, mut weight) = (self.walk(level, bound), 0);
        for _ in 0..n {
            weight += walk.next()?.ok_or_else(damaged)?.1.weight;
        }
        Ok((walk.next()?.ok_or_else(damaged)?.0, weight))
    }

    /// Returns a bucket over the first `limit` entries of a level.
    fn total(&self, level: u8, limit: u64) -> Result<Bucket> {
        if let (LevelEntries::Elements(_), 0) = (self.entries, level) {
            let children = self.tree.count(&self.key(0, &[]), Some(&self.end(0)), limit)?;
            return Ok(Bucket { weight: children, children });
        }
        let (mut walk, mut all) = (self.walk(level, &[]), Bucket::default());
        while all.children < limit
            && let Some((_, bucket)) = walk.next()?
        {
            all.weight += bucket.weight;
            all.children += 1;
        }
        Ok(all)
    }

    /// Returns the bucket whose range an entry lies in.
    fn covering(&self, level: u8, sub: &[u8]) -> Result<(Vec<u8>, Bucket)> {
        self.last_to(level, Bound::Included(&self.key(level, sub)))?.ok_or_else(damaged)
    }

    fn before(&self, level: u8, bound: &[u8]) -> Result<(Vec<u8>, Bucket)> {
        self.last_to(level, Bound::Excluded(&self.key(level, bound)))?.ok_or_else(damaged)
    }

    fn last_to(&self, level: u8, to: Bound<&[u8]>) -> Result<Option<(Vec<u8>, Bucket)>> {
        let from = self.key(level, &[]);
        let changed = self.changed.range::<[u8], _>((Bound::Included(&from[..]), to));
        let own = changed.rev().find_map(|(key, bucket)| Some((key, (*bucket)?)));
        // A bucket of the tree counts if it comes after the changed one and was not changed itself.
        let from = own.map_or(Bound::Included(&from), |(key, _)| Bound::Excluded(key));
        let (mut scan, mut batch) = (self.tree.scan_back(from.map(Vec::as_slice), to).with_limit(2), Batch::new());
        while scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                if !self.changed.contains_key(record.key) {
                    return Ok(Some((self.sub_of(level, record.key), Bucket::parse(record.value)?)));
                }
            }
        }
        Ok(own.map(|(key, bucket)| (self.sub_of(level, key), bucket)))
    }

    fn bucket(&self, level: u8, bound: &[u8]) -> Result<Option<Bucket>> {
        let key = self.key(level, bound);
        if let Some(changed) = self.changed.get(&key) {
            return Ok(*changed);
        }
        let mut record = Vec::new();
        if self.tree.get(&key, &mut record)?.present { Bucket::parse(&record).map(Some) } else { Ok(None) }
    }

    fn put(&mut self, level: u8, bound: &[u8], bucket: Option<Bucket>) {
        self.changed.insert(self.key(level, bound), bucket);
    }

    /// Walks over the buckets of a level from a bound on.
    fn walk(&self, level: u8, from: &[u8]) -> LevelWalk<'_> {
        let (from, end) = (self.key(level, from), self.end(level));
        let scan = self.tree.scan(Bound::Included(&from), Bound::Excluded(&end));
        let changed = self.changed.range(from..end);
        LevelWalk { levels: self, level, scan, batch: Batch::new(), at: 0, changed: changed.peekable() }
    }

    fn key(&self, level: u8, sub: &[u8]) -> Vec<u8> {
        match (self.entries, level) {
            (LevelEntries::Elements(kind), 0) => key::element_of(self.version, kind, sub),
            _ => key::level(self.version, level, sub),
        }
    }

    /// Returns the key that follows all of a level.
    fn end(&self, level: u8) -> Vec<u8> {
        match (self.entries, level) {
            (LevelEntries::Elements(kind), 0) => key::element_of(self.version, kind + 1, &[]),
            _ => key::level(self.version, level + 1, &[]),
        }
    }

    fn sub_of(&self, level: u8, key: &[u8]) -> Vec<u8> {
        let has_level = level > 0 || self.entries == LevelEntries::Weights;
        key[key::ELEMENT_PREFIX + usize::from(has_level)..].to_vec()
    }

    /// Checks the levels against their entries: sums, sizes, bounds (EN-70, EN-71). Returns one line for each violation.
    pub fn check(&self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        for level in 1..=self.top {
            let what = |what: &str| format!("version {}, level {level}: {what}", self.version);
            let (mut buckets, mut count) = (self.walk(level, &[]), 0);
            let mut next = buckets.next()?;
            if next.as_ref().is_none_or(|(bound, _)| !bound.is_empty()) {
                problems.push(what("EN-70: the first bucket does not begin with the first entry"));
            }
            while let Some((bound, bucket)) = next {
                next = buckets.next()?;
                count += 1;
                let (found, is_aligned) = self.sum(level - 1, &bound, next.as_ref().map(|next| next.0.as_slice()))?;
                if found != bucket {
                    problems.push(what(&format!("EN-70: a bucket says {bucket:?}, its entries are {found:?}")));
                }
                if level > 1 && !is_aligned {
                    problems.push(what("EN-70: a bucket does not begin with a bucket of the level below"));
                }
                if found.children > self.max(level) {
                    problems.push(what(&format!("EN-71: a bucket has {} entries", found.children)));
                }
                if level > 1 && found.children < 2 {
                    problems.push(what("EN-71: a bucket of buckets has fewer than two"));
                }
            }
            if level == self.top && (count < 2 || count > self.max(level + 1)) {
                problems.push(what(&format!("EN-71: the top has {count} buckets")));
            }
        }
        if self.top == 0 && self.total(0, u64::MAX)?.children > self.max(1) {
            problems.push(format!("EN-71: version {} has no levels over its entries", self.version));
        }
        if let Some((bound, _)) =
            self.last_to(self.top + 1, Bound::Excluded(&key::level(self.version, u8::MAX, &[])))?
        {
            problems.push(format!("EN-70: version {} has a bucket above its top, at {bound:02x?}", self.version));
        }
        Ok(problems)
    }

    /// Sums up the entries between two bounds, and returns whether the first one is at the bound.
    fn sum(&self, level: u8, from: &[u8], to: Option<&[u8]>) -> Result<(Bucket, bool)> {
        if let (LevelEntries::Elements(_), 0) = (self.entries, level) {
            let to = to.map_or_else(|| self.end(0), |to| self.key(0, to));
            let children = self.tree.count(&self.key(0, from), Some(&to), u64::MAX)?;
            return Ok((Bucket { weight: children, children }, true));
        }
        let (mut walk, mut sum, mut is_aligned) = (self.walk(level, from), Bucket::default(), false);
        while let Some((bound, bucket)) = walk.next()?
            && to.is_none_or(|to| bound.as_slice() < to)
        {
            is_aligned |= bound == from;
            sum.weight += bucket.weight;
            sum.children += 1;
        }
        Ok((sum, is_aligned))
    }
}

fn damaged() -> Error {
    Error::corrupt("EN-70: the levels of a collection do not fit its entries")
}

type ChangedBuckets<'l> = std::collections::btree_map::Range<'l, Vec<u8>, Option<Bucket>>;

/// A walk over the buckets of a level, those of the tree and the changed ones.
struct LevelWalk<'l> {
    levels: &'l Levels<'l>,
    level: u8,
    scan: btree::Scan<'l>,
    batch: Batch,
    at: usize,
    changed: std::iter::Peekable<ChangedBuckets<'l>>,
}

impl LevelWalk<'_> {
    fn next(&mut self) -> Result<Option<(Vec<u8>, Bucket)>> {
        loop {
            if self.at == self.batch.len() {
                self.at = 0;
                self.scan.next_batch(&mut self.batch)?;
            }
            let stored = (self.at < self.batch.len()).then(|| self.batch.get(self.at));
            let is_own = match (&stored, self.changed.peek()) {
                (None, None) => return Ok(None),
                (Some(_), None) => false,
                (None, Some(_)) => true,
                (Some(stored), Some((key, _))) => key.as_slice() <= stored.key,
            };
            if !is_own {
                let stored = stored.expect("compared above");
                let found = (self.levels.sub_of(self.level, stored.key), Bucket::parse(stored.value)?);
                self.at += 1;
                return Ok(Some(found));
            }
            let (key, bucket) = self.changed.next().expect("peeked above");
            if stored.is_some_and(|stored| stored.key == key.as_slice()) {
                self.at += 1;
            }
            if let Some(bucket) = bucket {
                return Ok(Some((self.levels.sub_of(self.level, key), *bucket)));
            }
        }
    }
}
