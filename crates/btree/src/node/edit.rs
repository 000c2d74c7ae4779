//! Changes of one node.
//!
//! Redo runs the same functions on the same words, so each must be a pure function of page and arguments (BT-8).

use crate::node::{
    INNER_HEAD, LEAF_HEAD, Node, PAGE_KIND, PAGE_WORDS, Position, SKIP_MAX, SKIP_MIN, SKIP_SHIFT, SLOTS,
    SPLIT_INCOMPLETE, Slot, WORD_FENCES, WORD_HEAP, WORD_RIGHT, WORD_TREE, Words, WordsMut, words_of,
};

/// A copy of a node's words, to build from while the page itself is rewritten.
pub(crate) struct Snapshot([u64; PAGE_WORDS]);

impl Snapshot {
    pub(crate) fn of(node: Node<impl Words>) -> Snapshot {
        Snapshot(std::array::from_fn(|at| node.0.load(at)))
    }

    pub(crate) fn node(&self) -> Node<&Snapshot> {
        Node(self)
    }
}

impl Words for &Snapshot {
    fn load(self, at: usize) -> u64 {
        self.0[at & (PAGE_WORDS - 1)]
    }
}

/// The header fields and fences of a node.
#[derive(Clone, Copy)]
pub(crate) struct Shape<'a> {
    pub tree: u32,
    pub level: u8,
    pub flags: u16,
    pub end: usize,
    pub low: &'a [u8],
    pub high: Option<&'a [u8]>,
    pub right: u64,
}

impl Shape<'_> {
    /// Returns the number of bytes that all keys between the fences share.
    pub(crate) fn prefix_len(&self) -> usize {
        self.high.map_or(0, |high| common_prefix(self.low, high))
    }

    fn fence_words(&self) -> usize {
        words_of(self.low.len()) + self.high.map_or(0, |high| words_of(high.len()))
    }

    /// Returns the words left for slots and records.
    pub(crate) fn room(&self) -> usize {
        self.end - SLOTS - self.fence_words()
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Returns the shortest key that is greater than `left` and not greater than `right`: the separator of a split (suffix truncation). `None` if the two are
/// not in order.
pub(crate) fn separator<'k>(left: &[u8], right: &'k [u8]) -> Option<&'k [u8]> {
    (left < right).then(|| &right[..common_prefix(left, right) + 1])
}

fn skip_of(shared: usize) -> usize {
    if shared >= SKIP_MIN { shared.min(SKIP_MAX) } else { 0 }
}

/// Writes a node from its shape and records in key order.
pub(crate) struct Builder<W> {
    node: Node<W>,
    prefix: usize,
    heap: usize,
    count: usize,
}

impl<W: WordsMut> Builder<W> {
    pub(crate) fn begin(page: W, shape: &Shape<'_>) -> Builder<W> {
        let boot = page.load(0) & !0xFFFF_FFFF;
        let kind = u64::from(PAGE_KIND) | u64::from(shape.level) << 8 | u64::from(shape.flags) << 16;
        page.store(0, boot | kind);
        page.store(WORD_TREE, u64::from(shape.tree));
        page.store(WORD_RIGHT, shape.right);
        let low = shape.end - words_of(shape.low.len());
        store_bytes(page, low, shape.low);
        let high = shape.high.map_or(0, |high| low - words_of(high.len()));
        if let Some(bytes) = shape.high {
            store_bytes(page, high, bytes);
        }
        let lens = (shape.low.len() as u64) << 16 | (shape.high.map_or(0, <[u8]>::len) as u64) << 48;
        page.store(WORD_FENCES, low as u64 | (high as u64) << 32 | lens);
        let heap = shape.end - shape.fence_words();
        let prefix = shape.prefix_len();
        page.store(WORD_HEAP, heap as u64 | (shape.end as u64) << 16 | (prefix as u64) << 48);
        Builder { node: Node(page), prefix, heap, count: 0 }
    }

    /// Appends a record of another node. The caller has checked that it fits.
    pub(crate) fn append(&mut self, from: Node<impl Words>, index: usize) {
        let slot = from.slot(index);
        if from.prefix_len() == self.prefix {
            let words = from.record_words(index);
            self.heap -= words;
            for word in 0..words {
                self.node.0.store(self.heap + word, from.0.load(slot.offset() + word));
            }
            self.push(slot.key_len());
            return;
        }
        let key = from.key(index);
        // A sound record has the prefix; for a damaged one any result that stays in bounds will do.
        let tail = key.get(self.prefix..).unwrap_or_default();
        let head = from.record_head();
        let value = from.record_words(index) - head - words_of(slot.key_len());
        self.heap -= head + words_of(tail.len()) + value;
        for word in 0..head {
            self.node.0.store(self.heap + word, from.0.load(slot.offset() + word));
        }
        store_bytes(self.node.0, self.heap + head, tail);
        let source = slot.offset() + head + words_of(slot.key_len());
        let target = self.heap + head + words_of(tail.len());
        for word in 0..value {
            self.node.0.store(target + word, from.0.load(source + word));
        }
        self.push(tail.len());
    }

    /// Appends a child to an inner node.
    pub(crate) fn child(&mut self, key: &[u8], child: u64) {
        let tail = &key[self.prefix..];
        self.heap -= INNER_HEAD + words_of(tail.len());
        self.node.0.store(self.heap, child);
        store_bytes(self.node.0, self.heap + INNER_HEAD, tail);
        self.push(tail.len());
    }

    /// Adds a slot for the record at the top of the heap; `finish` computes its head.
    fn push(&mut self, key_len: usize) {
        debug_assert!(SLOTS + self.count < self.heap);
        self.node.0.store(SLOTS + self.count, (self.heap as u64) << 16 | key_len as u64);
        self.count += 1;
    }

    /// Computes the heads and completes the header. `run` becomes the insert hint.
    pub(crate) fn finish(self, run: (usize, usize)) {
        let node = self.node;
        for word in SLOTS + self.count..self.heap {
            node.0.store(word, 0);
        }
        node.set_count(self.count, 0);
        node.set_field(WORD_HEAP, 0, self.heap);
        node.set_field(WORD_HEAP, 2, 0);
        node.set_insert_run(run);
        node.set_heads(node.shared_len());
    }
}

fn store_bytes(page: impl WordsMut, at: usize, bytes: &[u8]) {
    let chunks = bytes.chunks_exact(8);
    let rest = chunks.remainder();
    let mut word = at;
    for chunk in chunks {
        page.store(word, u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
        word += 1;
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        page.store(word, u64::from_le_bytes(last));
    }
}

/// Where a changed record has room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    /// Over the record it replaces.
    InPlace,
    /// In the gap.
    Gap,
    /// In the gap after compaction.
    Compacted,
    /// Nowhere: the node must be split.
    None,
}

impl<W: Words> Node<W> {
    /// Returns the skip that the keys allow.
    fn shared_len(self) -> usize {
        let (count, first, head) = (self.count(), self.first(), self.record_head());
        if count <= first {
            return 0;
        }
        let tail = |index: usize| {
            let mut tail = Vec::new();
            self.push_bytes(self.slot(index).offset() + head, self.slot(index).key_len(), &mut tail);
            tail
        };
        // Keys are sorted: bytes shared by the first and the last are shared by all.
        skip_of(common_prefix(&tail(first), &tail(count - 1)))
    }

    /// Returns four bytes of the stored key of `len` bytes at word `at`, from byte `skip` on; missing bytes count as zero.
    fn stored_head(self, at: usize, len: usize, skip: usize) -> u32 {
        let word = |word: usize| if word < words_of(len) { u128::from(self.0.load(at + word).swap_bytes()) } else { 0 };
        let pair = word(skip / 8) << 64 | word(skip / 8 + 1);
        (pair >> (96 - 8 * (skip % 8))) as u32
    }

    /// Returns where a leaf record would have room.
    pub(crate) fn room(self, place: Position, key: &[u8], value_len: usize) -> Room {
        let words = LEAF_HEAD + words_of(key.len() - self.prefix_len()) + words_of(value_len);
        match place {
            Ok(index) => {
                let old = self.record_words(index);
                if words <= old { Room::InPlace } else { self.room_for(words, old) }
            }
            Err(_) => self.room_for(words + 1, 0),
        }
    }

    /// Returns where another child would have room.
    pub(crate) fn room_for_child(self, key: &[u8]) -> Room {
        self.room_for(1 + INNER_HEAD + words_of(key.len() - self.prefix_len()), 0)
    }

    fn room_for(self, words: usize, released: usize) -> Room {
        match self.gap() {
            gap if gap >= words => Room::Gap,
            gap if gap + self.dead() + released >= words => Room::Compacted,
            _ => Room::None,
        }
    }

    /// Returns the words, slots included, that the records take with another prefix length.
    pub(crate) fn words_with_prefix(self, prefix: usize) -> usize {
        let record = |index| {
            let len = self.slot(index).key_len();
            1 + self.record_words(index) - words_of(len) + words_of((len + self.prefix_len()).saturating_sub(prefix))
        };
        (0..self.count()).map(record).sum()
    }
}

impl<W: WordsMut> Node<W> {
    fn set_field(self, word: usize, index: u32, value: usize) {
        debug_assert!(value <= 0xFFFF);
        let old = self.0.load(word) & !(0xFFFF << (16 * index));
        self.0.store(word, old | (value as u64) << (16 * index));
    }

    fn set_count(self, count: usize, skip: usize) {
        self.set_field(WORD_TREE, 2, count | skip << SKIP_SHIFT);
    }

    /// Recomputes all heads to begin after `skip` shared bytes.
    fn set_heads(self, skip: usize) {
        let (head_words, count) = (self.record_head(), self.count());
        self.set_count(count, skip);
        for index in 0..count {
            let slot = self.slot(index);
            // The first separator of an inner node may be shorter than the bytes the others share; its head is never read.
            let head = self.stored_head(slot.offset() + head_words, slot.key_len(), skip);
            self.0.store(SLOTS + index, u64::from(head) << 32 | slot.0 & 0xFFFF_FFFF);
        }
    }

    /// Lowers the skip for a key that may not share those bytes. Called before the key gets a slot.
    fn share_with(self, tail: &[u8]) {
        let (count, first) = (self.count(), self.first());
        if count == first {
            // A single key shares all its bytes with itself.
            self.set_count(count, skip_of(tail.len()));
        } else if self.skip() > 0 {
            let mut shared = Vec::new();
            self.push_bytes(self.slot(first).offset() + self.record_head(), self.skip(), &mut shared);
            let common = common_prefix(&shared, tail);
            if common < self.skip() {
                self.set_heads(skip_of(common));
            }
        }
    }

    fn set_insert_run(self, (last, run): (usize, usize)) {
        self.set_field(WORD_TREE, 3, last.min(0x1FF) | run.min(0x7F) << 9);
    }

    pub(crate) fn set_flags(self, flags: u16) {
        self.set_field(0, 1, usize::from(flags));
    }

    pub(crate) fn set_version(self, index: usize, version: u64) {
        self.0.store(self.slot(index).offset(), version);
    }

    /// Inserts or replaces a leaf record. Returns false, with nothing changed, if there is no room.
    pub(crate) fn put(self, place: Position, key: &[u8], value: &[u8], version: u64) -> bool {
        let tail = &key[self.prefix_len()..];
        match (place, self.room(place, key, value.len())) {
            (_, Room::None) => return false,
            (Ok(index), Room::InPlace) => {
                let offset = self.slot(index).offset();
                let freed = words_of(self.value_len(index)) - words_of(value.len());
                self.0.store(offset, version);
                self.0.store(offset + 1, value.len() as u64);
                store_bytes(self.0, offset + LEAF_HEAD + words_of(tail.len()), value);
                self.set_field(WORD_HEAP, 2, self.dead() + freed);
            }
            (Ok(index), room) => {
                if room == Room::Compacted {
                    self.compact(Some(index));
                    self.share_with(tail);
                    self.open_slot(index);
                } else {
                    self.set_field(WORD_HEAP, 2, self.dead() + self.record_words(index));
                }
                self.place(index, tail, &[version, value.len() as u64], value);
            }
            (Err(index), room) => {
                if room == Room::Compacted {
                    self.compact(None);
                }
                let (last, run) = self.insert_run();
                self.set_insert_run((index, if index == last + 1 { run + 1 } else { 0 }));
                self.share_with(tail);
                self.open_slot(index);
                self.place(index, tail, &[version, value.len() as u64], value);
            }
        }
        true
    }

    /// Inserts a child into an inner node. Returns false, with nothing changed, if there is no room.
    pub(crate) fn put_child(self, index: usize, key: &[u8], child: u64) -> bool {
        match self.room_for_child(key) {
            Room::None => return false,
            Room::Compacted => self.compact(None),
            Room::InPlace | Room::Gap => {}
        }
        let (last, run) = self.insert_run();
        self.set_insert_run((index, if index == last + 1 { run + 1 } else { 0 }));
        self.share_with(&key[self.prefix_len()..]);
        self.open_slot(index);
        self.place(index, &key[self.prefix_len()..], &[child], &[]);
        true
    }

    /// Moves the slots from `index` on up by one.
    fn open_slot(self, index: usize) {
        let count = self.count();
        for at in (index..count).rev() {
            self.0.store(SLOTS + at + 1, self.slot(at).0);
        }
        self.set_count(count + 1, self.skip());
    }

    /// Writes a record at the top of the heap and points slot `index` to it.
    fn place(self, index: usize, tail: &[u8], head: &[u64], value: &[u8]) {
        let offset = self.heap_start() - head.len() - words_of(tail.len()) - words_of(value.len());
        debug_assert!(offset >= SLOTS + self.count());
        for (at, word) in head.iter().enumerate() {
            self.0.store(offset + at, *word);
        }
        store_bytes(self.0, offset + head.len(), tail);
        store_bytes(self.0, offset + head.len() + words_of(tail.len()), value);
        self.set_field(WORD_HEAP, 0, offset);
        self.0.store(SLOTS + index, Slot::new(tail, self.skip(), offset).0);
    }

    /// Removes a record.
    pub(crate) fn remove(self, index: usize) {
        self.remove_range(index, index + 1);
    }

    /// Removes the records `from..to`.
    pub(crate) fn remove_range(self, from: usize, to: usize) {
        let count = self.count();
        for index in from..to {
            let words = self.record_words(index);
            if self.slot(index).offset() == self.heap_start() {
                self.set_field(WORD_HEAP, 0, self.heap_start() + words);
            } else {
                self.set_field(WORD_HEAP, 2, self.dead() + words);
            }
        }
        for at in to..count {
            self.0.store(SLOTS + at - (to - from), self.slot(at).0);
        }
        for at in count - (to - from)..count {
            self.0.store(SLOTS + at, 0);
        }
        let left = count - (to - from);
        self.set_count(left, if left <= self.first() { 0 } else { self.skip() });
    }

    /// Gathers the dead words in the gap, omitting record `skip`. The fences stay at the very end.
    fn compact(self, skip: Option<usize>) {
        let old = Snapshot::of(self);
        let old = old.node();
        let fences = words_of(old.low_len()) + words_of(old.field(WORD_FENCES, 3));
        let mut builder = Builder { node: self, prefix: old.prefix_len(), heap: old.end() - fences, count: 0 };
        for index in (0..old.count()).filter(|index| Some(*index) != skip) {
            builder.append(old, index);
        }
        builder.finish(old.insert_run());
    }

    /// Makes this node the left half of a split: keeps the records below `separator`, which becomes the high fence, and links to the new right node.
    pub(crate) fn truncate(self, separator: &[u8], right: u64) {
        let old = Snapshot::of(self);
        let old = old.node();
        let (Ok(kept) | Err(kept)) = old.search(separator);
        let low = old.low();
        let shape =
            Shape { flags: old.flags() | SPLIT_INCOMPLETE, high: Some(separator), right, ..old.shape(&low, None) };
        let mut builder = Builder::begin(self.0, &shape);
        for index in 0..kept {
            builder.append(old, index);
        }
        builder.finish((kept.saturating_sub(1), old.insert_run().1));
    }

    /// Takes over the range of an empty right neighbour: its high fence and right link.
    pub(crate) fn extend(self, high: Option<&[u8]>, right: u64) {
        let old = Snapshot::of(self);
        let old = old.node();
        let low = old.low();
        let mut builder = Builder::begin(self.0, &Shape { high, right, ..old.shape(&low, None) });
        for index in 0..old.count() {
            builder.append(old, index);
        }
        builder.finish(old.insert_run());
    }
}

impl<W: Words> Node<W> {
    /// Returns whether all records fit under another high fence, which may shorten the prefix.
    pub(crate) fn can_extend(self, high: Option<&[u8]>) -> bool {
        let low = self.low();
        let shape = self.shape(&low, high);
        self.words_with_prefix(shape.prefix_len()) <= shape.room()
    }

    /// Returns the shape of this node with the fences given.
    pub(crate) fn shape<'a>(self, low: &'a [u8], high: Option<&'a [u8]>) -> Shape<'a> {
        Shape {
            tree: self.tree(),
            level: self.level(),
            flags: self.flags(),
            end: self.end(),
            low,
            high,
            right: self.right(),
        }
    }
}
