//! Ranges: forward, backward, the neighbour of a key, a random record.
//!
//! A scan holds nothing between batches. It copies what qualifies in one leaf, seen at one moment, and remembers the fence it has come
//! to: forward the high one, backward the low one. The next batch descends to that fence again. So splits, removals and freed pages
//! under a scan need no care: a fence is a key, and every key is covered by exactly one leaf at every moment (T1, T2).

use std::ops::Bound;

use pager::{Lsn, PageRef, Result};
use stdx::prng::Prng;

use crate::node::Node;
use crate::search::Seek;
use crate::tree::Tree;

/// Tries to meet a record at random before the range is searched in order.
const RANDOM_TRIES: usize = 16;

/// Records copied out of one leaf. Reuse it: it keeps its memory.
#[derive(Default, Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    items: Vec<Item>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    key: u32,
    value: u32,
    end: u32,
    word: u64,
}

/// A record of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'b> {
    pub key: &'b [u8],
    pub value: &'b [u8],
    /// Version word.
    pub word: u64,
}

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn get(&self, index: usize) -> Entry<'_> {
        let item = self.items[index];
        Entry {
            key: &self.bytes[item.key as usize..item.value as usize],
            value: &self.bytes[item.value as usize..item.end as usize],
            word: item.word,
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Entry<'_>> + ExactSizeIterator {
        (0..self.len()).map(|index| self.get(index))
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
    }

    fn push(&mut self, leaf: Node<PageRef<'_>>, index: usize) {
        let key = self.bytes.len() as u32;
        leaf.push_key(index, &mut self.bytes);
        let value = self.bytes.len() as u32;
        leaf.push_value(index, &mut self.bytes);
        self.items.push(Item { key, value, end: self.bytes.len() as u32, word: leaf.version(index) });
    }
}

/// A record of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hit {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub word: u64,
}

/// A scan under way.
pub struct Scan<'t> {
    tree: &'t Tree,
    span: Span,
}

/// What is left of a scan, without its tree: for whoever puts it aside and goes on later.
pub struct Span {
    /// `from <= key < to`.
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    is_backward: bool,
    is_done: bool,
    limit: usize,
    gate: Lsn,
}

/// The smallest key that is greater than `key`.
pub(crate) fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

fn lower(bound: Bound<&[u8]>) -> Vec<u8> {
    match bound {
        Bound::Included(key) => key.to_vec(),
        Bound::Excluded(key) => successor(key),
        Bound::Unbounded => Vec::new(),
    }
}

fn upper(bound: Bound<&[u8]>) -> Option<Vec<u8>> {
    match bound {
        Bound::Included(key) => Some(successor(key)),
        Bound::Excluded(key) => Some(key.to_vec()),
        Bound::Unbounded => None,
    }
}

impl Tree {
    /// The records of a range in ascending order.
    pub fn scan(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Scan<'_> {
        Scan { tree: self, span: Span::new(from, to, false) }
    }

    /// The records of a range in descending order.
    pub fn scan_back(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Scan<'_> {
        Scan { tree: self, span: Span::new(from, to, true) }
    }

    /// The record with the least key above `key`.
    pub fn first_after(&self, key: &[u8]) -> Result<Option<Hit>> {
        self.scan(Bound::Excluded(key), Bound::Unbounded).first()
    }

    /// The record with the greatest key below `key`.
    pub fn last_before(&self, key: &[u8]) -> Result<Option<Hit>> {
        self.scan_back(Bound::Unbounded, Bound::Excluded(key)).first()
    }

    /// A record of the range `from <= key < to`, each leaf about as likely as another; None if the range is empty.
    pub fn random(&self, from: &[u8], to: Option<&[u8]>, prng: &mut Prng) -> Result<Option<Hit>> {
        let mut batch = Batch::new();
        for _ in 0..RANDOM_TRIES {
            let draw = prng.next_u64();
            self.read(Seek::Random { from, to, draw }, |leaf| {
                batch.clear();
                let (start, end) = leaf.range(from, to);
                if start < end {
                    batch.push(leaf, start + (draw as usize >> 8) % (end - start));
                }
            })?;
            if !batch.is_empty() {
                return Ok(Some(batch.get(0).into()));
            }
        }
        let to = to.map_or(Bound::Unbounded, Bound::Excluded);
        self.scan(Bound::Included(from), to).first()
    }
}

impl From<Entry<'_>> for Hit {
    fn from(entry: Entry<'_>) -> Hit {
        Hit { key: entry.key.to_vec(), value: entry.value.to_vec(), word: entry.word }
    }
}

impl Scan<'_> {
    /// Lets no batch have more than `limit` records.
    pub fn with_limit(mut self, limit: usize) -> Self {
        assert!(limit > 0);
        self.span.limit = limit;
        self
    }

    /// The greatest page LSN seen so far: what was read, and that nothing else was there, holds once the log is durable up to here.
    pub fn gate(&self) -> Lsn {
        self.span.gate
    }

    /// Replaces the batch by the next records of the range; false, and an empty batch, at its end.
    pub fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        self.span.next_batch(self.tree, batch)
    }

    fn first(self) -> Result<Option<Hit>> {
        let mut batch = Batch::new();
        let mut scan = self.with_limit(1);
        Ok(scan.next_batch(&mut batch)?.then(|| batch.get(0).into()))
    }
}

impl Span {
    pub fn new(from: Bound<&[u8]>, to: Bound<&[u8]>, is_backward: bool) -> Span {
        let (from, to) = (lower(from), upper(to));
        let is_done = to.as_ref().is_some_and(|to| *to <= from);
        Span { from, to, is_backward, is_done, limit: usize::MAX, gate: 0 }
    }

    /// True if nothing is left.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Replaces the batch by the next records that `tree` has, those of one leaf; false, and an empty batch, at the end. Always the same tree.
    pub fn next_batch(&mut self, tree: &Tree, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        while !self.is_done && batch.is_empty() {
            if self.is_backward { self.step_back(tree, batch)? } else { self.step(tree, batch)? }
        }
        Ok(!batch.is_empty())
    }

    fn step(&mut self, tree: &Tree, batch: &mut Batch) -> Result<()> {
        let (limit, from, to) = (self.limit, self.from.as_slice(), self.to.as_deref());
        let mut fence = Vec::new();
        let (lsn, is_last, is_cut) = tree.read(Seek::At(from), |leaf| {
            batch.clear();
            fence.clear();
            let (start, end) = leaf.range(from, to);
            let stop = end.min(start.saturating_add(limit));
            for index in start..stop {
                batch.push(leaf, index);
            }
            leaf.push_high(&mut fence);
            (leaf.page_lsn(), leaf.is_last(), stop < end)
        })?;
        self.gate = self.gate.max(lsn);
        if is_cut {
            self.from = successor(batch.get(batch.len() - 1).key);
        } else if is_last || self.to.as_ref().is_some_and(|to| fence >= *to) {
            self.is_done = true;
        } else if fence <= self.from {
            return Err(tree.corrupt(tree.root, "T1: a leaf ends before it begins"));
        } else {
            self.from = fence;
        }
        Ok(())
    }

    fn step_back(&mut self, tree: &Tree, batch: &mut Batch) -> Result<()> {
        let (limit, from, to) = (self.limit, self.from.as_slice(), self.to.as_deref());
        let mut fence = Vec::new();
        let (lsn, is_cut) = tree.read(to.map_or(Seek::Last, Seek::Before), |leaf| {
            batch.clear();
            fence.clear();
            let (start, end) = leaf.range(from, to);
            let stop = start.max(end.saturating_sub(limit));
            for index in (stop..end).rev() {
                batch.push(leaf, index);
            }
            leaf.push_low(&mut fence);
            (leaf.page_lsn(), stop > start)
        })?;
        self.gate = self.gate.max(lsn);
        if is_cut {
            self.to = Some(batch.get(batch.len() - 1).key.to_vec());
        } else if fence <= self.from {
            self.is_done = true;
        } else if self.to.as_ref().is_some_and(|to| fence >= *to) {
            return Err(tree.corrupt(tree.root, "T1: a leaf begins behind its end"));
        } else {
            self.to = Some(fence);
        }
        Ok(())
    }
}
