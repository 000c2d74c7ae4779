//! An external sort by keys that compare as bytes. It is stable.
//!
//! Rows stay in the batches in which they arrived, and keys lie in pieces. Slots are sorted, each with the first bytes
//! of its key. Where the order begins with a text, these bytes are computed without the rest, and the full key is built
//! only if another one has the same first bytes (abbreviated keys, as in PostgreSQL). As much as fits in memory is
//! sorted at a time and written as a run; runs are merged when rows are read. If there are many runs, some are merged
//! into longer ones first, so that not all need a buffer at once.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Deref;

use datum::Result;
use datum::key::{encode_cell, start_of_cell};

use crate::batch::{Batch, Cell, Cells, Row};
use crate::exec::host::host;
use crate::exec::memory;
use crate::exec::progress::{Of, Progress};
use crate::exec::spill::{PIECE as READ_BYTES, Reader, Run, Writer, decode_row, encode_cells, unpack_row};
use crate::nodes::context::EvalContext;
use crate::nodes::node::SortKey;
use crate::value::Value;

/// The most runs that are merged at once.
const WAYS: usize = 64;
/// A merged run holds its next record, the bytes read behind it, and the key.
const MERGED_COPIES: usize = 3;
/// The size of a piece of keys.
const PIECE: usize = 64 << 10;
/// The number of rows in a batch of the sorter.
const BATCH_ROWS: usize = 256;
/// Batches with fewer rows are copied into batches of the sorter.
const ADOPTED_MIN: usize = 32;
/// In place of the length of a key that has not been built.
const UNMADE: u32 = u32::MAX;
/// In a file the length of the key precedes it.
const KEY_LEN_BYTES: usize = size_of::<u32>();
/// The size of a slot.
const PLACE_BYTES: usize = size_of::<Place>();

#[derive(Default)]
pub struct Sorter {
    held: Held,
    counted: memory::Held,
    runs: Vec<Run>,
    /// The number of records in the runs, and the length of the longest.
    written: u64,
    longest: usize,
    writer: Option<Writer>,
    /// A buffer for a record.
    record: Vec<u8>,
}

/// Records in memory.
struct Held {
    keys: Pieces,
    batches: Vec<Batch>,
    /// The last batch belongs to the sorter and takes more rows.
    is_open: bool,
    places: Vec<Place>,
}

/// Keys in pieces.
struct Pieces(Vec<Vec<u8>>);

#[derive(Clone, Copy)]
struct Place {
    /// The first bytes of the key as a number that compares like them.
    head: u64,
    piece: u32,
    /// The offset in the piece; a key starts in the first `PIECE` bytes.
    key_from: u32,
    key_len: u32,
    batch: u32,
    row: u32,
}

/// A row with its key.
pub struct Record<'s> {
    pub key: Key<'s>,
    row: Stored<'s>,
}

/// The sort key of a row.
pub enum Key<'s> {
    Whole(&'s [u8]),
    /// The first bytes, which are unique among the keys and sufficient for their order.
    Start([u8; 8]),
}

enum Stored<'s> {
    Here(Cells<'s>),
    /// A record as read from a file.
    Packed(&'s [u8]),
}

/// Sorted rows.
pub enum Sorted {
    Here { sorter: Sorter, next: usize },
    Merged { merge: MergedRuns, records: u64 },
}

/// A merge of runs: the smallest next key and the number of its run.
pub struct MergedRuns {
    readers: Vec<Reader>,
    heads: Vec<Vec<u8>>,
    heap: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    current: Vec<u8>,
}

/// The buffers of a finished sort.
type Spare = (Vec<Vec<u8>>, Vec<Place>);

/// The number of finished sorts whose buffers a thread keeps, and the most of each.
const KEPT: usize = 2;
const KEPT_MAX: usize = 64 << 10;

thread_local! {
    static SPARE: RefCell<Vec<Spare>> = const { RefCell::new(Vec::new()) };
}

impl Default for Held {
    fn default() -> Held {
        let (pieces, places) = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        Held { keys: Pieces(pieces), batches: Vec::new(), is_open: false, places }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let keys: usize = self.keys.0.iter().map(Vec::capacity).sum();
        if self.places.capacity() == 0 || self.places.capacity() * PLACE_BYTES + keys > KEPT_MAX {
            return;
        }
        let (mut pieces, mut places) = (std::mem::take(&mut self.keys.0), std::mem::take(&mut self.places));
        pieces.truncate(1);
        pieces.iter_mut().for_each(Vec::clear);
        places.clear();
        // The thread may be ending.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push((pieces, places));
            }
        });
    }
}

impl Place {
    fn unmade(head: u64, (batch, row): (u32, u32)) -> Place {
        Place { head, piece: 0, key_from: 0, key_len: UNMADE, batch, row }
    }

    fn is_unmade(&self) -> bool {
        self.key_len == UNMADE
    }

    fn number(&self) -> (u32, u32) {
        (self.batch, self.row)
    }
}

impl Pieces {
    /// Adds a key and sets the slot to it.
    fn put(&mut self, key: impl FnOnce(&mut Vec<u8>), place: &mut Place) {
        if self.0.last().is_none_or(|piece| piece.len() >= PIECE) {
            self.0.push(Vec::with_capacity(if self.0.is_empty() { 0 } else { PIECE + PIECE / 8 }));
        }
        let piece = self.0.len() - 1;
        let bytes = &mut self.0[piece];
        let from = bytes.len();
        key(bytes);
        let key = &bytes[from..];
        place.head = head(key);
        (place.piece, place.key_from, place.key_len) = (piece as u32, from as u32, key.len() as u32);
    }
}

impl Deref for Key<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Key::Whole(key) => key,
            Key::Start(start) => start,
        }
    }
}

impl Held {
    /// Adds a slot with its key. Returns the memory that they take.
    fn place(&mut self, key: impl FnOnce(&mut Vec<u8>), number: (u32, u32)) -> usize {
        let mut place = Place::unmade(0, number);
        self.keys.put(key, &mut place);
        self.places.push(place);
        place.key_len as usize + PLACE_BYTES
    }

    /// Adds a row. Returns the memory that it takes, and its number.
    fn push_row<'c>(&mut self, row: impl Iterator<Item = Cell<'c>>) -> (usize, (u32, u32)) {
        if !self.is_open || self.batches.last().is_none_or(|batch| batch.len() >= BATCH_ROWS) {
            self.batches.push(Batch::new());
            self.is_open = true;
        }
        let at = self.batches.len() - 1;
        let batch = &mut self.batches[at];
        let bytes: usize = row.map(|cell| batch.push_cell(cell)).sum();
        batch.end_row();
        (bytes, (at as u32, batch.len() as u32 - 1))
    }

    /// Adds a slot with its key in this order. Returns the memory that they take.
    fn place_in(&mut self, order: &[SortKey], cells: Cells<'_>, number: (u32, u32)) -> usize {
        let start = order.first().and_then(|by| start_of_cell(cells.get(by.at), by.ty.shape(), by.order));
        let Some(head) = start else { return self.place(|out| write_key(order, cells, out), number) };
        self.place_unmade(head, order, cells, number)
    }

    /// Adds a slot whose key is not built yet. The full key is accounted for.
    fn place_unmade(&mut self, head: u64, order: &[SortKey], cells: Cells<'_>, number: (u32, u32)) -> usize {
        self.places.push(Place::unmade(head, number));
        PLACE_BYTES + order.iter().map(|by| key_bytes(cells.get(by.at))).sum::<usize>()
    }

    fn adopt(&mut self, batch: Batch, order: &[SortKey]) -> usize {
        let at = self.batches.len() as u32;
        self.is_open = false;
        let mut bytes = batch.held_bytes();
        for (row, cells) in batch.rows().enumerate() {
            bytes += self.place_in(order, cells, (at, row as u32));
        }
        self.batches.push(batch);
        bytes
    }

    /// Returns the key, if it has been built.
    fn key(&self, place: &Place) -> &[u8] {
        &self.keys.0[place.piece as usize][place.key_from as usize..][..place.key_len as usize]
    }

    /// Returns whether two sorted slots have equal keys. A key that has not been built equals no other.
    fn has_key_of(&self, at: usize, other: usize) -> bool {
        let (place, other) = (&self.places[at], &self.places[other]);
        place.head == other.head && self.key(place) == self.key(other)
    }

    fn row(&self, place: &Place) -> Cells<'_> {
        self.batches[place.batch as usize].row(place.row as usize)
    }

    fn sort(&mut self, order: &[SortKey]) {
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable_by_key(|place| (place.head, place.number()));
        for alike in places.chunk_by_mut(|a, b| a.head == b.head).filter(|alike| alike.len() > 1) {
            alike.iter_mut().filter(|place| place.is_unmade()).for_each(|place| self.make_key(order, place));
            alike.sort_unstable_by(|a, b| self.key(a).cmp(self.key(b)).then_with(|| a.number().cmp(&b.number())));
        }
        self.places = places;
    }

    fn make_key(&mut self, order: &[SortKey], place: &mut Place) {
        let (start, row) = (place.head, self.batches[place.batch as usize].row(place.row as usize));
        self.keys.put(|out| write_key(order, row, out), place);
        debug_assert_eq!(place.head, start, "a key begins as was said before it was made");
    }

    /// Copies the first `most` rows into batches of their own.
    fn first(&self, most: usize, order: &[SortKey]) -> (Held, usize) {
        let (mut first, mut bytes) = (Held::default(), 0);
        for place in &self.places[..most] {
            let cells = self.row(place);
            let (row_bytes, number) = first.push_row(cells.iter());
            bytes += row_bytes;
            bytes += match place.is_unmade() {
                true => first.place_unmade(place.head, order, cells, number),
                false => first.place(|out| out.extend_from_slice(self.key(place)), number),
            };
        }
        (first, bytes)
    }
}

fn write_key(order: &[SortKey], row: Cells<'_>, out: &mut Vec<u8>) {
    order.iter().for_each(|by| encode_cell(row.get(by.at), by.ty.shape(), by.order, out));
}

/// Returns about how many bytes a cell adds to a key.
fn key_bytes(cell: Cell<'_>) -> usize {
    match cell {
        Cell::Text(text) => 3 + 2 * text.len(),
        Cell::Bytes(bytes) => 3 + bytes.len(),
        // Two digits a byte, where the coefficient has three.
        Cell::Value(Value::Decimal(decimal)) => 16 + 2 * decimal.heap_bytes(),
        Cell::Value(_) => 16,
    }
}

fn head(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; 8];
    head[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(head)
}

impl Sorter {
    /// Adds a row; `key` appends its key.
    pub fn push<'c>(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>),
        row: impl ExactSizeIterator<Item = Cell<'c>>,
        ctx: &mut EvalContext,
    ) -> Result<()> {
        let (bytes, number) = self.held.push_row(row);
        let bytes = bytes + self.held.place(key, number);
        self.count(bytes, &[], ctx)
    }

    /// Adds all rows of a batch. The order is the same in all calls.
    pub fn push_batch(&mut self, batch: Batch, order: &[SortKey], ctx: &mut EvalContext) -> Result<()> {
        if batch.len() >= ADOPTED_MIN {
            let bytes = self.held.adopt(batch, order);
            return self.count(bytes, order, ctx);
        }
        batch.rows().try_for_each(|cells| {
            let (bytes, number) = self.held.push_row(cells.iter());
            let bytes = bytes + self.held.place_in(order, cells, number);
            self.count(bytes, order, ctx)
        })
    }

    /// Counts new bytes, and writes a run if memory is short.
    fn count(&mut self, bytes: usize, order: &[SortKey], ctx: &mut EvalContext) -> Result<()> {
        let is_short = host(ctx).must_spill(&self.counted, bytes);
        host(ctx).count(&mut self.counted, bytes)?;
        if is_short { self.write_out(order, ctx) } else { Ok(()) }
    }

    pub fn len(&self) -> usize {
        self.held.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.held.places.is_empty()
    }

    /// Drops all but the smallest `most` rows. Only before a run has been written.
    pub fn keep(&mut self, most: usize, order: &[SortKey]) {
        if !self.runs.is_empty() || self.len() <= most {
            return;
        }
        self.held.sort(order);
        let (first, bytes) = self.held.first(most, order);
        self.counted.release(self.counted.bytes().saturating_sub(bytes));
        self.held = first;
    }

    fn write_out(&mut self, order: &[SortKey], ctx: &mut EvalContext) -> Result<()> {
        self.held.sort(order);
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(Writer::new(&host(ctx).spill()?)?),
        };
        let from = writer.position();
        let held = std::mem::take(&mut self.held);
        for (nth, place) in held.places.iter().enumerate() {
            self.record.clear();
            self.record.extend_from_slice(&[0; KEY_LEN_BYTES]);
            if place.is_unmade() {
                write_key(order, held.row(place), &mut self.record);
            } else {
                self.record.extend_from_slice(held.key(place));
            }
            let key_len = (self.record.len() - KEY_LEN_BYTES) as u32;
            self.record[..KEY_LEN_BYTES].copy_from_slice(&key_len.to_le_bytes());
            encode_cells(held.row(place).iter(), &mut self.record);
            writer.put(&self.record)?;
            self.longest = self.longest.max(self.record.len());
            if nth.is_multiple_of(4096) {
                host(ctx).look_up()?;
            }
        }
        self.runs.push(writer.run(from)?);
        self.written += held.places.len() as u64;
        self.counted.clear();
        Ok(())
    }

    /// Ends the input. The order is that of `push_batch`; it is empty if rows came with their keys.
    pub fn finish(mut self, order: &[SortKey], ctx: &mut EvalContext) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.held.sort(order);
            return Ok(Sorted::Here { sorter: self, next: 0 });
        }
        self.write_out(order, ctx)?;
        // Half of the memory limit is for the merge; fewer runs of long records are merged at a time.
        let of_run = MERGED_COPIES * self.longest + READ_BYTES;
        let ways = (host(ctx).memory_max / 2 / of_run).clamp(2, WAYS);
        while self.runs.len() > ways {
            let mut progress = Progress::begin("merging sorted runs", Of::Exactly(self.written));
            // Adjacent runs are merged, so that the sort stays stable.
            let mut longer = Vec::new();
            for runs in self.runs.chunks(ways) {
                let mut writer = Writer::new(&host(ctx).spill()?)?;
                let (mut merge, mut count) = (MergedRuns::new(runs)?, 0u64);
                while merge.advance()? {
                    writer.put(&merge.current)?;
                    count += 1;
                    if count.is_multiple_of(4096) {
                        host(ctx).look_up()?;
                        progress.add(4096, host(ctx));
                    }
                }
                longer.push(writer.run(0)?);
            }
            self.runs = longer;
        }
        Ok(Sorted::Merged { merge: MergedRuns::new(&self.runs)?, records: self.written })
    }
}

impl MergedRuns {
    fn new(runs: &[Run]) -> Result<MergedRuns> {
        let readers: Vec<Reader> = runs.iter().map(Run::read).collect();
        let heads = readers.iter().map(|_| Vec::new()).collect();
        let mut merge = MergedRuns { readers, heads, heap: BinaryHeap::new(), current: Vec::new() };
        for at in 0..runs.len() {
            merge.read(at)?;
        }
        Ok(merge)
    }

    fn read(&mut self, at: usize) -> Result<()> {
        if let Some(bytes) = self.readers[at].next()? {
            self.heap.push(Reverse((Record::parse(bytes)?.key.to_vec(), at)));
            self.heads[at].clear();
            self.heads[at].extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Advances to the next record. Returns false at the end.
    fn advance(&mut self) -> Result<bool> {
        let Some(Reverse((_, at))) = self.heap.pop() else { return Ok(false) };
        std::mem::swap(&mut self.current, &mut self.heads[at]);
        self.read(at)?;
        Ok(true)
    }
}

impl Sorted {
    /// Returns the number of rows. Called before the first is taken.
    pub fn len(&self) -> u64 {
        match self {
            Sorted::Here { sorter, .. } => sorter.len() as u64,
            Sorted::Merged { records, .. } => *records,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all rows if they arrived in one batch and none was taken; with `unique`, the first of each key. Ends the
    /// sort.
    pub fn take_batch(&mut self, unique: bool) -> Option<Batch> {
        let Sorted::Here { sorter: Sorter { held, counted, .. }, next: 0 } = self else { return None };
        if held.batches.len() != 1 {
            return None;
        }
        let mut batch = held.batches.pop()?;
        let is_new = |at: &usize| !unique || *at == 0 || !held.has_key_of(*at, at - 1);
        batch.arrange((0..held.places.len()).filter(is_new).map(|at| held.places[at].row as usize));
        counted.clear();
        *held = Held::default();
        Some(batch)
    }

    /// Returns the next record in order, `None` behind the last.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        match self {
            Sorted::Merged { merge, .. } => {
                if !merge.advance()? {
                    return Ok(None);
                }
                Record::parse(&merge.current).map(Some)
            }
            Sorted::Here { sorter, next } => {
                let Some(place) = sorter.held.places.get(*next) else {
                    sorter.counted.clear();
                    sorter.held = Held::default();
                    return Ok(None);
                };
                *next += 1;
                let key = match place.is_unmade() {
                    true => Key::Start(place.head.to_be_bytes()),
                    false => Key::Whole(sorter.held.key(place)),
                };
                Ok(Some(Record { key, row: Stored::Here(sorter.held.row(place)) }))
            }
        }
    }
}

impl<'s> Record<'s> {
    fn parse(bytes: &'s [u8]) -> Result<Record<'s>> {
        let (key, row) = crate::exec::spill::partition::key_and_rest(bytes)?;
        Ok(Record { key: Key::Whole(key), row: Stored::Packed(row) })
    }

    pub fn row(&self) -> Result<Row> {
        match self.row {
            Stored::Here(cells) => Ok(cells.to_row()),
            Stored::Packed(mut bytes) => decode_row(&mut bytes),
        }
    }

    /// Returns owned copies of key and row.
    pub fn to_owned(&self) -> Result<(Vec<u8>, Row)> {
        Ok((self.key.to_vec(), self.row()?))
    }

    /// Adds the row to a batch.
    pub fn unpack(&self, out: &mut Batch) -> Result<()> {
        match self.row {
            Stored::Here(cells) => out.push_cells(cells),
            Stored::Packed(mut bytes) => unpack_row(&mut bytes, out)?,
        }
        Ok(())
    }
}
