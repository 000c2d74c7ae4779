//! One page of the tree: layout of its words, and reading them.
//!
//! ```text
//! words 0..8   header: 0 kind|level|flags  1 page id  2 page LSN  3 checksum  4 tree id|slot count, skip|insert hint
//!                      5 right sibling  6 heap start|heap end|dead|prefix length  7 low fence off,len|high fence off,len
//! words 8..    slots, in key order, one word each: head (4 bytes of the key after prefix and skip) | record offset | key length
//!              gap
//!              records, growing down; at the very end the two fences
//! record       leaf: version word | value length | key after the prefix, padded | value, padded
//!              inner: child page id | key after the prefix, padded
//! ```
//!
//! Two techniques shorten comparisons. The prefix that both fences share is stored once. Where it is short (at the edges of the tree, where a fence is
//! infinite) the keys may still share bytes: heads then begin after them, at `skip`, and a search compares the shared bytes once. An inner node's first
//! separator is its low fence; it takes part neither in this nor in searches.
//!
//! Hard part: an optimistic reader reads a page while a writer changes it, so every number found here may be garbage until the page's version has been
//! validated. Reads are therefore single words at masked offsets, every loop is bounded by the reader's own input or by the page's size, and nothing here
//! panics on any content (BT-9).

use std::cmp::Ordering;
use std::ops::Range;

pub(crate) mod edit;
#[cfg(test)]
mod tests;

/// A page seen as words: a latched or optimistic page, a copy of it, or a test's memory.
pub(crate) trait Words: Copy {
    /// Returns the word at `at` modulo the page's size.
    fn load(self, at: usize) -> u64;
}

/// A page that may be changed: under an exclusive latch, or not reachable yet.
pub(crate) trait WordsMut: Words {
    fn store(self, at: usize, word: u64);
}

impl Words for pager::PageRef<'_> {
    #[inline(always)]
    fn load(self, at: usize) -> u64 {
        pager::PageRef::load(self, at)
    }
}

impl Words for &pager::Exclusive<'_> {
    #[inline(always)]
    fn load(self, at: usize) -> u64 {
        self.page().load(at)
    }
}

impl WordsMut for &pager::Exclusive<'_> {
    #[inline(always)]
    fn store(self, at: usize, word: u64) {
        pager::Exclusive::store(self, at, word);
    }
}

/// A page copied out as bytes, whose copy was validated.
#[derive(Clone, Copy)]
pub(crate) struct Image<'b>(pub(crate) &'b [u8]);

impl Words for Image<'_> {
    #[inline(always)]
    fn load(self, at: usize) -> u64 {
        let at = (at & (PAGE_WORDS - 1)) * 8;
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }
}

/// First byte of every page of a tree.
pub(crate) const PAGE_KIND: u8 = pager::page::kind::TREE;
pub(crate) const PAGE_WORDS: usize = pager::PAGE_WORDS;
const _: () = assert!(PAGE_WORDS == 512, "offsets are masked with 511 and must fit the slot's 16 bits");

/// The first slot, directly after the header.
pub(crate) const SLOTS: usize = 8;
/// Words of a leaf record before its key: version word, value length.
pub(crate) const LEAF_HEAD: usize = 2;
/// Words of an inner record before its key: the child.
pub(crate) const INNER_HEAD: usize = 1;

/// Flag: the right neighbour's separator is not in the parent yet (BT-5).
pub(crate) const SPLIT_INCOMPLETE: u16 = 1;
/// Flag: the page was removed from the tree. A descent that still arrives here restarts (BT-7).
pub(crate) const DELETED: u16 = 2;

/// Slot count and skip share sixteen bits.
const COUNT_MASK: usize = 0x1FF;
const SKIP_SHIFT: u32 = 9;
/// Shared bytes from which on heads skip them; fewer still leave the heads distinct enough.
const SKIP_MIN: usize = 4;
const SKIP_MAX: usize = 127;

const WORD_TREE: usize = 4;
const WORD_RIGHT: usize = 5;
const WORD_HEAP: usize = 6;
const WORD_FENCES: usize = 7;

/// Returns the words that `bytes` bytes take when padded.
pub(crate) const fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

/// Returns the longest key and value of a tree whose nodes end at word `end`. Both follow from one rule: a node with two longest fences still holds one
/// longest leaf record, or two longest inner records, so that splitting always makes room (README, "Why a split always helps").
pub(crate) const fn limits(end: usize) -> (usize, usize) {
    if end >= PAGE_WORDS {
        return (768, 1300);
    }
    let room = end - SLOTS;
    let key = room / 6;
    let value = room - 3 * key - 1 - LEAF_HEAD;
    (key * 8, value * 8)
}

const _: () = {
    let (key, value) = limits(PAGE_WORDS);
    assert!(2 * words_of(key) + 1 + LEAF_HEAD + words_of(key) + words_of(value) <= PAGE_WORDS - SLOTS);
    assert!(2 * words_of(key) + 2 * (1 + INNER_HEAD + words_of(key)) <= PAGE_WORDS - SLOTS);
};

/// Smallest page end of a tree: short keys and values still fit by the rule above.
pub(crate) const END_MIN: usize = 32;
const _: () = {
    let (key, value) = limits(END_MIN);
    assert!(key >= 24 && value >= 64);
    assert!(2 * words_of(key) + 2 * (1 + INNER_HEAD + words_of(key)) <= END_MIN - SLOTS);
};

/// Returns eight bytes of `key` from `at` on as a number that compares like the bytes; missing bytes count as zero.
#[inline(always)]
fn key_word(key: &[u8], at: usize) -> u64 {
    match key.get(at..at + 8) {
        Some(bytes) => u64::from_be_bytes(bytes.try_into().expect("eight bytes")),
        None => {
            let mut bytes = [0; 8];
            let rest = key.get(at..).unwrap_or_default();
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

/// Returns the first four bytes of a key after the prefix.
#[inline(always)]
fn head_of(tail: &[u8]) -> u32 {
    (key_word(tail, 0) >> 32) as u32
}

/// A slot: head, record offset, key length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(u64);

impl Slot {
    fn new(tail: &[u8], skip: usize, offset: usize) -> Slot {
        let head = head_of(tail.get(skip..).unwrap_or_default());
        Slot(u64::from(head) << 32 | (offset as u64) << 16 | tail.len() as u64)
    }

    #[inline(always)]
    fn head(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    pub(crate) fn offset(self) -> usize {
        (self.0 >> 16) as usize & (PAGE_WORDS - 1)
    }

    #[inline(always)]
    pub(crate) fn key_len(self) -> usize {
        self.0 as usize & 0xFFFF
    }
}

/// The result of reading one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub present: bool,
    /// The record's version word; for an absent key the LSN of the leaf, which is at least that of the key's removal.
    pub word: u64,
}

/// A page read as a node. Copying it copies a reference.
#[derive(Clone, Copy)]
pub(crate) struct Node<W>(pub(crate) W);

/// Returns the byte range of `len` bytes from word `at` on, clipped to the page.
fn place(at: usize, len: usize) -> Range<usize> {
    let from = (at * 8).min(PAGE_WORDS * 8);
    from..(from + len).min(PAGE_WORDS * 8)
}

/// Result of a search: `Ok` is the index of the key, `Err` the index where it would be inserted.
pub(crate) type Position = Result<usize, usize>;

impl<W: Words> Node<W> {
    #[inline(always)]
    fn field(self, word: usize, index: u32) -> usize {
        (self.0.load(word) >> (16 * index)) as usize & 0xFFFF
    }

    pub(crate) fn kind(self) -> u8 {
        self.0.load(0) as u8
    }

    #[inline(always)]
    pub(crate) fn level(self) -> u8 {
        (self.0.load(0) >> 8) as u8
    }

    #[inline(always)]
    pub(crate) fn flags(self) -> u16 {
        (self.0.load(0) >> 16) as u16
    }

    #[inline(always)]
    pub(crate) fn is_incomplete(self) -> bool {
        self.flags() & SPLIT_INCOMPLETE != 0
    }

    /// Returns whether this looks like a node in use at `level` of `tree`. Two loads, done at every step of a descent.
    #[inline(always)]
    pub(crate) fn is_of(self, tree: u32, level: u8) -> bool {
        let (mask, wanted) = (0xFFFF | (DELETED as u64) << 16, u64::from(PAGE_KIND) | u64::from(level) << 8);
        self.0.load(0) & mask == wanted && self.tree() == tree
    }

    pub(crate) fn page_lsn(self) -> u64 {
        self.0.load(2)
    }

    pub(crate) fn tree(self) -> u32 {
        self.0.load(WORD_TREE) as u32
    }

    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        (self.field(WORD_TREE, 2) & COUNT_MASK).min(PAGE_WORDS - SLOTS)
    }

    /// Returns the number of bytes after the prefix that all keys share and that heads skip; 0 if they are too few to matter.
    #[inline(always)]
    fn skip(self) -> usize {
        self.field(WORD_TREE, 2) >> SKIP_SHIFT
    }

    /// Returns the index of the last insert, and how many inserts before it each went one index further: distinguishes ascending runs from random inserts.
    pub(crate) fn insert_run(self) -> (usize, usize) {
        let hint = self.field(WORD_TREE, 3);
        (hint & 0x1FF, hint >> 9)
    }

    #[inline(always)]
    pub(crate) fn right(self) -> u64 {
        self.0.load(WORD_RIGHT)
    }

    pub(crate) fn heap_start(self) -> usize {
        self.field(WORD_HEAP, 0)
    }

    pub(crate) fn end(self) -> usize {
        self.field(WORD_HEAP, 1)
    }

    pub(crate) fn dead(self) -> usize {
        self.field(WORD_HEAP, 2)
    }

    #[inline(always)]
    pub(crate) fn prefix_len(self) -> usize {
        self.field(WORD_HEAP, 3)
    }

    #[inline(always)]
    pub(crate) fn slot(self, index: usize) -> Slot {
        Slot(self.0.load(SLOTS + index))
    }

    pub(crate) fn low_len(self) -> usize {
        self.field(WORD_FENCES, 1)
    }

    pub(crate) fn push_low(self, out: &mut Vec<u8>) {
        self.push_bytes(self.field(WORD_FENCES, 0), self.low_len(), out);
    }

    /// Returns whether the node has no high fence. A real fence is never at offset 0.
    pub(crate) fn is_last(self) -> bool {
        self.field(WORD_FENCES, 2) == 0
    }

    /// Appends the high fence, nothing if there is none.
    pub(crate) fn push_high(self, out: &mut Vec<u8>) {
        self.push_bytes(self.field(WORD_FENCES, 2), self.field(WORD_FENCES, 3), out);
    }

    pub(crate) fn high(self) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        (!self.is_last()).then(|| {
            self.push_high(&mut key);
            key
        })
    }

    pub(crate) fn low(self) -> Vec<u8> {
        let mut key = Vec::new();
        self.push_low(&mut key);
        key
    }

    /// Compares the high fence with `key`; no fence is greater than every key.
    pub(crate) fn compare_high(self, key: &[u8]) -> Ordering {
        if self.is_last() {
            return Ordering::Greater;
        }
        self.compare_key(self.field(WORD_FENCES, 2), self.field(WORD_FENCES, 3), key)
    }

    pub(crate) fn compare_low(self, key: &[u8]) -> Ordering {
        self.compare_key(self.field(WORD_FENCES, 0), self.low_len(), key)
    }

    /// Compares the stored bytes at word `at` with `key`: words padded with zeros, then lengths. Bounded by the caller's key.
    #[inline(always)]
    fn compare_key(self, at: usize, len: usize, key: &[u8]) -> Ordering {
        self.compare_key_from(0, at, len, key)
    }

    /// Like `compare_key`; the first `from` words are known to be equal.
    #[inline(always)]
    fn compare_key_from(self, from: usize, at: usize, len: usize, key: &[u8]) -> Ordering {
        for word in from..words_of(len.min(key.len())) {
            let stored = self.0.load(at + word).swap_bytes();
            let wanted = key_word(key, word * 8);
            if stored != wanted {
                return stored.cmp(&wanted);
            }
        }
        len.cmp(&key.len())
    }

    /// Compares the first `len` stored bytes at word `at` with the first `len` bytes of `key`.
    fn compare_start(self, at: usize, len: usize, key: &[u8]) -> Ordering {
        let key = &key[..len.min(key.len())];
        for word in 0..words_of(key.len()) {
            // The bytes after the shared ones in their last word do not count.
            let mask = u64::MAX << (8 * (8 * (word + 1)).saturating_sub(len));
            let stored = self.0.load(at + word).swap_bytes() & mask;
            let wanted = key_word(key, word * 8);
            if stored != wanted {
                return stored.cmp(&wanted);
            }
        }
        len.cmp(&key.len())
    }

    #[inline(always)]
    fn record_head(self) -> usize {
        if self.level() == 0 { LEAF_HEAD } else { INNER_HEAD }
    }

    /// Returns the first slot that takes part in searches: an inner node's slot 0 covers everything from the low fence on.
    #[inline(always)]
    fn first(self) -> usize {
        usize::from(self.level() != 0)
    }

    /// Finds `key`, which lies between the fences and so has the prefix. Never `Ok(0)` or `Err(0)` in an inner node.
    #[inline]
    pub(crate) fn search(self, key: &[u8]) -> Position {
        let (head_words, first) = if self.level() == 0 { (LEAF_HEAD, 0) } else { (INNER_HEAD, 1) };
        let tail = key.get(self.prefix_len()..).unwrap_or_default();
        let (count, skip) = (self.count().max(first), self.skip());
        if skip > 0 {
            match self.compare_start(self.slot(first).offset() + head_words, skip, tail) {
                Ordering::Less => return Err(count),
                Ordering::Greater => return Err(first),
                Ordering::Equal => {}
            }
        }
        // Heads alone decide almost always, without a branch to mispredict.
        let head = head_of(tail.get(skip..).unwrap_or_default());
        let mut low = self.partition(first, count, |slot| slot.head() < head);
        if low == count || self.slot(low).head() != head {
            return Err(low);
        }
        let mut high = low + 1;
        if high < count && self.slot(high).head() == head {
            high = self.partition(high, count, |slot| slot.head() <= head);
        }
        while low < high {
            let middle = (low + high) / 2;
            let slot = self.slot(middle);
            match self.compare_key_from(skip / 8, slot.offset() + head_words, slot.key_len(), tail) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Returns the offset where the record of `key` is if it exists, judged by heads alone: no record is loaded.
    pub(crate) fn probable_offset(self, key: &[u8]) -> usize {
        let head = head_of(key.get(self.prefix_len() + self.skip()..).unwrap_or_default());
        let index = self.partition(self.first(), self.count().max(1), |slot| slot.head() < head);
        self.slot(index).offset()
    }

    /// Returns the first slot in `from..to` for which `before` is false; it is true for all earlier ones.
    #[inline(always)]
    fn partition(self, from: usize, to: usize, before: impl Fn(Slot) -> bool) -> usize {
        let (mut base, mut size) = (from, to - from);
        while size > 0 {
            let half = size.div_ceil(2);
            let go = before(self.slot(base + half - 1));
            base = std::hint::select_unpredictable(go, base + half, base);
            size -= half;
        }
        base
    }

    /// Returns the index of the child that covers `key`: the last whose separator is not greater.
    #[inline(always)]
    pub(crate) fn child_at(self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(index) => index,
            Err(index) => index.saturating_sub(1),
        }
    }

    /// Returns the index of the child that covers the greatest keys below `key`.
    pub(crate) fn child_before(self, key: &[u8]) -> usize {
        let (Ok(index) | Err(index)) = self.search(key);
        index.saturating_sub(1)
    }

    /// Returns the first and the last child that cover a part of `from <= key < to`, if this node has one. On a torn page the last may be below the first.
    pub(crate) fn children_of(self, from: &[u8], to: Option<&[u8]>) -> (usize, usize) {
        let first = if self.compare_low(from) == Ordering::Greater { 0 } else { self.child_at(from) };
        let last = match to {
            Some(to) if self.compare_high(to) != Ordering::Less => self.child_before(to),
            _ => self.count().saturating_sub(1),
        };
        (first, last)
    }

    #[inline(always)]
    pub(crate) fn child(self, index: usize) -> u64 {
        self.0.load(self.slot(index).offset())
    }

    /// Returns the version word of a leaf's record.
    #[inline(always)]
    pub(crate) fn version(self, index: usize) -> u64 {
        self.0.load(self.slot(index).offset())
    }

    #[inline(always)]
    pub(crate) fn value_len(self, index: usize) -> usize {
        self.0.load(self.slot(index).offset() + 1) as usize & 0xFFFF
    }

    #[inline(always)]
    pub(crate) fn push_value(self, index: usize, out: &mut Vec<u8>) {
        let slot = self.slot(index);
        self.push_bytes(slot.offset() + LEAF_HEAD + words_of(slot.key_len()), self.value_len(index), out);
    }

    /// Appends the value of `key`, which the leaf covers.
    #[inline]
    pub(crate) fn get(self, key: &[u8], out: &mut Vec<u8>) -> Found {
        match self.search(key) {
            Ok(index) => {
                self.push_value(index, out);
                Found { present: true, word: self.version(index) }
            }
            Err(_) => Found { present: false, word: self.page_lsn() },
        }
    }

    /// Returns the byte range of the value of a leaf's record.
    pub(crate) fn value_place(self, index: usize) -> Range<usize> {
        let slot = self.slot(index);
        place(slot.offset() + LEAF_HEAD + words_of(slot.key_len()), self.value_len(index))
    }

    /// Returns the byte range of the stored key of a record: the bytes after the prefix.
    pub(crate) fn key_place(self, index: usize) -> Range<usize> {
        let slot = self.slot(index);
        place(slot.offset() + self.record_head(), slot.key_len())
    }

    pub(crate) fn push_prefix(self, out: &mut Vec<u8>) {
        self.push_bytes(self.field(WORD_FENCES, 0), self.prefix_len(), out);
    }

    /// Appends the whole key of a record, prefix included.
    pub(crate) fn push_key(self, index: usize, out: &mut Vec<u8>) {
        let slot = self.slot(index);
        self.push_prefix(out);
        self.push_bytes(slot.offset() + self.record_head(), slot.key_len(), out);
    }

    pub(crate) fn key(self, index: usize) -> Vec<u8> {
        let mut key = Vec::new();
        self.push_key(index, &mut key);
        key
    }

    /// Returns the words of a record, without its slot.
    pub(crate) fn record_words(self, index: usize) -> usize {
        let key = words_of(self.slot(index).key_len());
        if self.level() == 0 { LEAF_HEAD + key + words_of(self.value_len(index)) } else { INNER_HEAD + key }
    }

    /// Returns the free words between slots and heap.
    pub(crate) fn gap(self) -> usize {
        self.heap_start().saturating_sub(SLOTS + self.count())
    }

    #[inline(always)]
    fn push_bytes(self, at: usize, len: usize, out: &mut Vec<u8>) {
        let len = len.min(PAGE_WORDS * 8);
        let start = out.len();
        out.resize(start + len, 0);
        let (chunks, rest) = out[start..].as_chunks_mut::<8>();
        for (nth, chunk) in chunks.iter_mut().enumerate() {
            *chunk = self.0.load(at + nth).to_le_bytes();
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&self.0.load(at + len / 8).to_le_bytes()[..rest.len()]);
        }
    }

    pub(crate) fn covers(self, key: &[u8]) -> bool {
        self.compare_low(key) != Ordering::Greater && self.compare_high(key) == Ordering::Greater
    }

    /// Returns the indexes of the records with `from <= key < to`. Both may lie outside the fences.
    pub(crate) fn range(self, from: &[u8], to: Option<&[u8]>) -> (usize, usize) {
        (self.position(from), to.map_or(self.count(), |to| self.position(to)))
    }

    /// Returns the index of the first record that is not below `key`, which may lie outside the fences.
    pub(crate) fn position(self, key: &[u8]) -> usize {
        if self.compare_low(key) != Ordering::Less {
            return 0;
        }
        if self.compare_high(key) != Ordering::Greater {
            return self.count();
        }
        let (Ok(index) | Err(index)) = self.search(key);
        index
    }

    /// Verifies that this is a sound node of `tree`, as far as one page shows. Called under a latch, never on an optimistic view. `Err` names the problem.
    pub(crate) fn verify(self, tree: u32) -> Result<(), &'static str> {
        let (count, start, end) = (self.count(), self.heap_start(), self.end());
        let fits = |at: usize, bytes: usize| at >= start && at + words_of(bytes) <= end;
        if self.kind() != PAGE_KIND {
            return Err("not a page of a tree");
        }
        if self.tree() != tree {
            return Err("page of another tree");
        }
        if self.flags() & DELETED != 0 {
            return Err("deleted page still linked");
        }
        if !(END_MIN..=PAGE_WORDS).contains(&end)
            || start > end
            || SLOTS + (self.field(WORD_TREE, 2) & COUNT_MASK) > start
        {
            return Err("slots and heap overlap");
        }
        if self.dead() > end - start {
            return Err("more dead words than heap");
        }
        if !fits(self.field(WORD_FENCES, 0), self.low_len())
            || (!self.is_last() && !fits(self.field(WORD_FENCES, 2), self.field(WORD_FENCES, 3)))
            || self.prefix_len() > self.low_len()
        {
            return Err("fence outside the heap");
        }
        if self.is_last() != (self.right() == 0) {
            return Err("right link and high fence disagree");
        }
        if self.level() > 0 && count == 0 {
            return Err("inner node without children");
        }
        Ok(())
    }

    /// Returns whether record `index` lies inside the heap; checked before the record is changed or copied for good.
    pub(crate) fn verify_record(self, index: usize) -> bool {
        let at = (self.slot(index).0 >> 16) as usize & 0xFFFF;
        at >= self.heap_start() && at + self.record_words(index) <= self.end()
    }

    /// Verifies that the words of the records add up, so that the node may be rebuilt from itself.
    pub(crate) fn verify_records(self) -> Result<(), &'static str> {
        let mut words = SLOTS + self.count() + self.gap() + self.dead();
        words += words_of(self.low_len()) + words_of(self.field(WORD_FENCES, 3));
        for index in 0..self.count() {
            if !self.verify_record(index) {
                return Err("record outside the heap");
            }
            words += self.record_words(index);
        }
        if words == self.end() { Ok(()) } else { Err("the words of the records do not add up") }
    }
}
