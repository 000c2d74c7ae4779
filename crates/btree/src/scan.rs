//! Ranges: forward, backward, the neighbour of a key, a random record.
//!
//! A scan holds nothing between batches. It copies the matching records of one leaf, as of one moment, and keeps the fence it has reached: forward the high
//! one, backward the low one. The next batch descends to that fence again. So splits, removals and freed pages under a scan need no special care: a fence
//! is a key, and every key is covered by exactly one leaf at every moment (BT-1, BT-2).
//!
//! A forward scan mostly avoids the descent: it tries the leaf's right neighbour first, and uses it if it still begins at the fence (BT-10).

use std::ops::{Bound, Range};

use pager::{Lsn, PAGE_BYTES, PageId, PageRef, Result};
use stdx::prng::Prng;

use crate::node::{Image, Node};
use crate::search::Seek;
use crate::tree::{ReadMode, Tree, let_others_run};

/// Attempts to draw a random record before the range is searched in order.
const RANDOM_TRIES: usize = 16;

/// Cache lines of the next leaf that are prefetched while the records of this one are processed.
const NEXT_LINES: usize = 16;
/// Number of records from which on the whole leaf is copied, which is cheaper than copying them one by one.
const WHOLE_FROM: usize = 6;

/// Records copied out of one leaf. Reuse it: it keeps its memory.
#[derive(Default, Debug)]
pub struct Batch {
    keys: Vec<u8>,
    /// The concatenated values, or the whole leaf that contains them.
    bytes: Vec<u8>,
    items: Vec<EntryPlace>,
}

#[derive(Clone, Copy, Debug)]
struct EntryPlace {
    key: u32,
    key_end: u32,
    value: u32,
    value_end: u32,
    word: u64,
}

/// A record of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'b> {
    pub key: &'b [u8],
    pub value: &'b [u8],
    /// The version word.
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

    /// Returns the bytes of memory that it keeps.
    pub fn capacity(&self) -> usize {
        self.keys.capacity() + self.bytes.capacity() + self.items.capacity() * size_of::<EntryPlace>()
    }

    pub fn get(&self, index: usize) -> Entry<'_> {
        let item = self.items[index];
        Entry {
            key: &self.keys[item.key as usize..item.key_end as usize],
            value: &self.bytes[item.value as usize..item.value_end as usize],
            word: item.word,
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Entry<'_>> + ExactSizeIterator {
        (0..self.len()).map(|index| self.get(index))
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.items.clear();
    }

    /// Replaces the content by the records `range` of a leaf, in descending order if `is_backward`. A large range is only copied as a whole leaf, for
    /// `index_copy`. The page may be torn (BT-9).
    pub(crate) fn copy(&mut self, leaf: Node<PageRef<'_>>, range: Range<usize>, is_backward: bool) {
        self.clear();
        if range.len() >= WHOLE_FROM {
            self.bytes.resize(PAGE_BYTES, 0);
            leaf.0.copy_out(&mut self.bytes);
            return;
        }
        self.bytes.clear();
        for nth in 0..range.len() {
            self.push(leaf, if is_backward { range.end - 1 - nth } else { range.start + nth });
        }
    }

    fn push(&mut self, leaf: Node<PageRef<'_>>, index: usize) {
        let (key, value) = (self.keys.len() as u32, self.bytes.len() as u32);
        leaf.push_key(index, &mut self.keys);
        leaf.push_value(index, &mut self.bytes);
        let value_end = self.bytes.len() as u32;
        self.items.push(EntryPlace {
            key,
            key_end: self.keys.len() as u32,
            value,
            value_end,
            word: leaf.version(index),
        });
    }

    /// Finds the records `range` in the leaf copy, if `copy` made one. The copy has been validated.
    pub(crate) fn index_copy(&mut self, range: Range<usize>, is_backward: bool) {
        if range.len() < WHOLE_FROM {
            return;
        }
        let Batch { keys, bytes, items } = self;
        let leaf = Node(Image(bytes));
        let prefix = keys.len();
        leaf.push_prefix(keys);
        let prefix = prefix..keys.len();
        for nth in 0..range.len() {
            let index = if is_backward { range.end - 1 - nth } else { range.start + nth };
            let key = keys.len() as u32;
            keys.extend_from_within(prefix.clone());
            keys.extend_from_slice(&bytes[leaf.key_place(index)]);
            let (key_end, value) = (keys.len() as u32, leaf.value_place(index));
            let (value, value_end) = (value.start as u32, value.end as u32);
            items.push(EntryPlace { key, key_end, value, value_end, word: leaf.version(index) });
        }
    }
}

/// A record with memory of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedEntry {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub word: u64,
}

/// A scan in progress.
pub struct Scan<'t> {
    tree: &'t Tree,
    span: ScanState,
}

/// A place in a range that is walked leaf by leaf.
#[derive(Clone)]
pub(crate) struct LeafPosition {
    /// The walk continues with the leaf that covers this key.
    from: Vec<u8>,
    /// The leaf that began at `from` when the last one was read.
    right: Option<PageId>,
    /// The fence of the leaf that was read last.
    fence: Vec<u8>,
}

impl LeafPosition {
    pub(crate) fn at(from: Vec<u8>) -> LeafPosition {
        LeafPosition { from, right: None, fence: Vec::new() }
    }

    /// Runs `visit` on the leaf that covers the position; it may run several times, as in `Tree::read`. The position stays: `advance` moves it.
    #[inline]
    pub(crate) fn read<R>(
        &mut self,
        tree: &Tree,
        read_mode: ReadMode,
        mut visit: impl FnMut(Node<PageRef<'_>>, &[u8]) -> R,
    ) -> Result<(R, LeafEnd)> {
        let LeafPosition { from, right, fence } = self;
        let from = from.as_slice();
        let mut visit = |leaf: Node<PageRef<'_>>| {
            let result = visit(leaf, from);
            fence.clear();
            leaf.push_high(fence);
            (result, LeafEnd { is_last: leaf.is_last(), right: leaf.right() })
        };
        let beside = right.take().and_then(|right| tree.read_right_neighbour(read_mode, right, from, &mut visit));
        match beside {
            Some(seen) => Ok(seen),
            None => tree.read(read_mode, Seek::At(from), visit),
        }
    }

    /// Moves behind the leaf that was read. Returns false if nothing of the range follows.
    #[inline]
    pub(crate) fn advance(&mut self, tree: &Tree, end: &LeafEnd, to: Option<&[u8]>) -> Result<bool> {
        if end.is_last || to.is_some_and(|to| self.fence.as_slice() >= to) {
            return Ok(false);
        }
        if self.fence <= self.from {
            return Err(tree.corrupt(tree.root, "BT-1: a leaf ends before it begins"));
        }
        std::mem::swap(&mut self.from, &mut self.fence);
        self.right = Some(end.right);
        Ok(true)
    }
}

/// The end of a leaf that was read.
pub(crate) struct LeafEnd {
    is_last: bool,
    right: PageId,
}

/// The rest of a scan without its tree, so that it can be suspended and resumed.
#[derive(Clone)]
pub struct ScanState {
    /// `position.from <= key < to`.
    position: LeafPosition,
    to: Option<Vec<u8>>,
    is_backward: bool,
    is_done: bool,
    limit: usize,
    durability_lsn: Lsn,
}

/// Returns the smallest key that is greater than `key`.
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
    /// Scans the records of a range in ascending order.
    pub fn scan(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Scan<'_> {
        Scan { tree: self, span: ScanState::new(from, to, false) }
    }

    /// Scans the records of a range in descending order.
    pub fn scan_back(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Scan<'_> {
        Scan { tree: self, span: ScanState::new(from, to, true) }
    }

    /// Returns the record with the least key above `key`.
    pub fn first_after(&self, key: &[u8]) -> Result<Option<OwnedEntry>> {
        self.scan(Bound::Excluded(key), Bound::Unbounded).first()
    }

    /// Returns the record with the greatest key below `key`.
    pub fn last_before(&self, key: &[u8]) -> Result<Option<OwnedEntry>> {
        self.scan_back(Bound::Unbounded, Bound::Excluded(key)).first()
    }

    /// Returns a record of the range `from <= key < to`, each leaf about equally likely; `None` if the range is empty.
    pub fn random(&self, from: &[u8], to: Option<&[u8]>, prng: &mut Prng) -> Result<Option<OwnedEntry>> {
        let mut batch = Batch::new();
        for _ in 0..RANDOM_TRIES {
            let draw = prng.next_u64();
            self.read(ReadMode::MayRead, Seek::Random { from, to, draw }, |leaf| {
                let (start, end) = leaf.range(from, to);
                let some = if start < end { start + (draw as usize >> 8) % (end - start) } else { end };
                batch.copy(leaf, some..(some + 1).min(end), false);
            })?;
            if !batch.is_empty() {
                return Ok(Some(batch.get(0).into()));
            }
        }
        let to = to.map_or(Bound::Unbounded, Bound::Excluded);
        self.scan(Bound::Included(from), to).first()
    }
}

impl From<Entry<'_>> for OwnedEntry {
    fn from(entry: Entry<'_>) -> OwnedEntry {
        OwnedEntry { key: entry.key.to_vec(), value: entry.value.to_vec(), word: entry.word }
    }
}

impl Scan<'_> {
    /// Limits each batch to `limit` records.
    pub fn with_limit(mut self, limit: usize) -> Self {
        assert!(limit > 0);
        self.span.limit = limit;
        self
    }

    /// Returns the greatest page LSN seen so far. The records read, and the absence of others, are durable once the WAL is durable up to it.
    pub fn durability_lsn(&self) -> Lsn {
        self.span.durability_lsn
    }

    /// Replaces the batch by the next records of the range. Returns false, with an empty batch, at its end.
    pub fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        self.span.next_batch(self.tree, ReadMode::MayRead, batch)
    }

    fn first(self) -> Result<Option<OwnedEntry>> {
        let mut batch = Batch::new();
        let mut scan = self.with_limit(1);
        Ok(scan.next_batch(&mut batch)?.then(|| batch.get(0).into()))
    }
}

impl ScanState {
    pub fn new(from: Bound<&[u8]>, to: Bound<&[u8]>, is_backward: bool) -> ScanState {
        let (from, to) = (lower(from), upper(to));
        let is_done = to.as_ref().is_some_and(|to| *to <= from);
        let position = LeafPosition::at(from);
        ScanState { position, to, is_backward, is_done, limit: usize::MAX, durability_lsn: 0 }
    }

    /// Limits each batch to `limit` records.
    pub fn with_limit(mut self, limit: usize) -> ScanState {
        assert!(limit > 0);
        self.limit = limit;
        self
    }

    /// Returns the bounds `from <= key < to`.
    pub fn bounds(self) -> (Vec<u8>, Option<Vec<u8>>) {
        (self.position.from, self.to)
    }

    /// Continues after this key, in the order of the scan. For records of a batch that the caller has not processed.
    pub fn resume_after(&mut self, key: &[u8]) {
        if self.is_backward {
            self.to = Some(key.to_vec());
        } else {
            self.position.from = successor(key);
        }
        self.position.right = None;
        self.is_done = false;
    }

    /// Returns the pages that the next batch needs and that are not in memory (`Tree::missing_pages`).
    pub fn missing_pages(&self, tree: &Tree) -> Vec<PageId> {
        tree.missing_pages(&self.position.from, self.to.as_deref(), self.is_backward)
    }

    /// Returns true if nothing is left.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Replaces the batch by the next records of one leaf of `tree`. Returns false, with an empty batch, at the end. The tree must be the same in every call.
    ///
    /// After `Error::PageMiss` the state is unchanged, and the call can be repeated.
    pub fn next_batch(&mut self, tree: &Tree, read_mode: ReadMode, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        while !self.is_done && batch.is_empty() {
            let_others_run();
            if self.is_backward { self.step_back(tree, read_mode, batch)? } else { self.step(tree, read_mode, batch)? }
        }
        Ok(!batch.is_empty())
    }

    fn step(&mut self, tree: &Tree, read_mode: ReadMode, batch: &mut Batch) -> Result<()> {
        let ScanState { position, to, limit, .. } = self;
        let to = to.as_deref();
        let visit = |leaf: Node<PageRef<'_>>, from: &[u8]| {
            let (start, end) = leaf.range(from, to);
            let stop = end.min(start.saturating_add(*limit));
            batch.copy(leaf, start..stop, false);
            (leaf.page_lsn(), start..stop, stop < end)
        };
        let ((lsn, range, is_cut), end) = position.read(tree, read_mode, visit)?;
        batch.index_copy(range, false);
        self.durability_lsn = self.durability_lsn.max(lsn);
        if is_cut {
            position.from = successor(batch.get(batch.len() - 1).key);
        } else if position.advance(tree, &end, to)? {
            tree.pager.prefetch_lines(end.right, NEXT_LINES);
        } else {
            self.is_done = true;
        }
        Ok(())
    }

    fn step_back(&mut self, tree: &Tree, read_mode: ReadMode, batch: &mut Batch) -> Result<()> {
        let ScanState { position: LeafPosition { from, fence, .. }, to, limit, .. } = self;
        let (from, to) = (from.as_slice(), to.as_deref());
        let (lsn, range, is_cut) = tree.read(read_mode, to.map_or(Seek::Last, Seek::Before), |leaf| {
            let (start, end) = leaf.range(from, to);
            let stop = start.max(end.saturating_sub(*limit));
            batch.copy(leaf, stop..end, true);
            fence.clear();
            leaf.push_low(fence);
            (leaf.page_lsn(), stop..end, stop > start)
        })?;
        batch.index_copy(range, true);
        self.durability_lsn = self.durability_lsn.max(lsn);
        if is_cut {
            self.to = Some(batch.get(batch.len() - 1).key.to_vec());
        } else if self.position.fence <= self.position.from {
            self.is_done = true;
        } else if self.to.as_ref().is_some_and(|to| self.position.fence >= *to) {
            return Err(tree.corrupt(tree.root, "BT-1: a leaf begins behind its end"));
        } else {
            self.to = Some(std::mem::take(&mut self.position.fence));
        }
        Ok(())
    }
}
