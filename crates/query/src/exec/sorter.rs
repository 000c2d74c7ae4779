//! Rows by keys of bytes. What is equal stays in the order it came.
//!
//! Rows stay in the batches that they came in, their keys lie one behind the other in pieces; what is sorted are their places, each with the first bytes of its key. As much as
//! memory allows is sorted at a time; what is more becomes a run of a file, and the runs are merged when the rows are asked for. Of many runs some are merged into
//! longer ones first, so that not all of them need a buffer at once.

use std::cell::RefCell;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::batch::{Batch, Cell, Cells};
use crate::error::Result;
use crate::exec::host::host;
use crate::exec::memory;
use crate::exec::spill::{Reader, Run, Writer, decode_row, encode_cells, unpack_row};
use crate::scalar::EvalContext;
use crate::session::Row;

/// Runs that are merged at once.
const WAYS: usize = 64;
/// A piece takes keys until it is so long.
const PIECE: usize = 64 << 10;
/// A batch of ours takes rows until it has so many.
const BATCH_ROWS: usize = 256;
/// Batches with fewer rows are copied into ours.
const ADOPTED_MIN: usize = 32;
/// What the place of a record takes.
const PLACE_BYTES: usize = size_of::<Place>();

#[derive(Default)]
pub struct Sorter {
    held: Held,
    counted: memory::Held,
    runs: Vec<Run>,
    writer: Option<Writer>,
    /// A record on its way to a file.
    record: Vec<u8>,
}

/// Records in memory.
struct Held {
    /// Their keys.
    pieces: Vec<Vec<u8>>,
    batches: Vec<Batch>,
    /// The last batch is ours and takes more rows.
    is_open: bool,
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    /// The key's first bytes as a number that compares like them.
    head: u64,
    piece: u32,
    /// Where in the piece: a key begins in the first `PIECE` bytes.
    key_from: u32,
    key_len: u32,
    batch: u32,
    row: u32,
}

/// A row with its key.
pub struct Record<'s> {
    pub key: &'s [u8],
    row: Stored<'s>,
}

enum Stored<'s> {
    Here(Cells<'s>),
    /// As it stood in a file.
    Packed(&'s [u8]),
}

/// The rows in order.
pub enum Sorted {
    Here { sorter: Sorter, next: usize },
    Merged(Merge),
}

/// Runs side by side: the smallest next key, and of which run it is.
pub struct Merge {
    readers: Vec<Reader>,
    heads: Vec<Vec<u8>>,
    heap: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    current: Vec<u8>,
}

/// The keys' pieces and the places of a sort that is over.
type Spare = (Vec<Vec<u8>>, Vec<Place>);

/// Sorts of a thread whose memory is kept, and how much of each.
const KEPT: usize = 2;
const KEPT_MAX: usize = 64 << 10;

thread_local! {
    static SPARE: RefCell<Vec<Spare>> = const { RefCell::new(Vec::new()) };
}

impl Default for Held {
    fn default() -> Held {
        let (pieces, places) = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        Held { pieces, batches: Vec::new(), is_open: false, places }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let keys: usize = self.pieces.iter().map(Vec::capacity).sum();
        if self.places.capacity() == 0 || self.places.capacity() * PLACE_BYTES + keys > KEPT_MAX {
            return;
        }
        let (mut pieces, mut places) = (std::mem::take(&mut self.pieces), std::mem::take(&mut self.places));
        pieces.truncate(1);
        pieces.iter_mut().for_each(Vec::clear);
        places.clear();
        // At the end of a thread there is nobody to keep it for.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push((pieces, places));
            }
        });
    }
}

impl Held {
    /// Adds the place of a row and its key; returns how much memory they take.
    fn place(&mut self, key: impl FnOnce(&mut Vec<u8>), batch: usize, row: usize) -> usize {
        if self.pieces.last().is_none_or(|piece| piece.len() >= PIECE) {
            self.pieces.push(Vec::with_capacity(if self.pieces.is_empty() { 0 } else { PIECE + PIECE / 8 }));
        }
        let piece = self.pieces.len() - 1;
        let bytes = &mut self.pieces[piece];
        let from = bytes.len();
        key(bytes);
        let key = &bytes[from..];
        let (head, key_len) = (head(key), key.len());
        self.places.push(Place {
            head,
            piece: piece as u32,
            key_from: from as u32,
            key_len: key_len as u32,
            batch: batch as u32,
            row: row as u32,
        });
        key_len + PLACE_BYTES
    }

    /// Adds a record; returns how much memory it takes.
    fn push<'c>(&mut self, key: impl FnOnce(&mut Vec<u8>), row: impl Iterator<Item = Cell<'c>>) -> usize {
        if !self.is_open || self.batches.last().is_none_or(|batch| batch.len() >= BATCH_ROWS) {
            self.batches.push(Batch::new());
            self.is_open = true;
        }
        let at = self.batches.len() - 1;
        let batch = &mut self.batches[at];
        let bytes: usize = row.map(|cell| batch.push_cell(cell)).sum();
        batch.end_row();
        let row = batch.len() - 1;
        bytes + self.place(key, at, row)
    }

    fn adopt(&mut self, batch: Batch, key: impl Fn(Cells<'_>, &mut Vec<u8>)) -> usize {
        let at = self.batches.len();
        self.is_open = false;
        let mut bytes = batch.held_bytes();
        for (row, cells) in batch.rows().enumerate() {
            bytes += self.place(|out| key(cells, out), at, row);
        }
        self.batches.push(batch);
        bytes
    }

    fn key(&self, place: &Place) -> &[u8] {
        &self.pieces[place.piece as usize][place.key_from as usize..][..place.key_len as usize]
    }

    fn row(&self, place: &Place) -> Cells<'_> {
        self.batches[place.batch as usize].row(place.row as usize)
    }

    fn sort(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable_by(|a, b| self.compare(a, b));
        self.places = places;
    }

    fn compare(&self, a: &Place, b: &Place) -> Ordering {
        let by_key = a.head.cmp(&b.head).then_with(|| self.key(a).cmp(self.key(b)));
        by_key.then_with(|| (a.batch, a.row).cmp(&(b.batch, b.row)))
    }

    /// The first `most` in batches of their own.
    fn first(&self, most: usize) -> (Held, usize) {
        let (mut first, mut bytes) = (Held::default(), 0);
        for place in &self.places[..most] {
            bytes += first.push(|out| out.extend_from_slice(self.key(place)), self.row(place).iter());
        }
        (first, bytes)
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
        let bytes = self.held.push(key, row);
        self.count(bytes, ctx)
    }

    /// Adds all rows of a batch; `key` appends a row's key.
    pub fn push_batch(
        &mut self,
        batch: Batch,
        key: impl Fn(Cells<'_>, &mut Vec<u8>),
        ctx: &mut EvalContext,
    ) -> Result<()> {
        if batch.len() < ADOPTED_MIN {
            return batch.rows().try_for_each(|row| self.push(|out| key(row, out), row.iter(), ctx));
        }
        let bytes = self.held.adopt(batch, key);
        self.count(bytes, ctx)
    }

    /// So much has come.
    fn count(&mut self, bytes: usize, ctx: &mut EvalContext) -> Result<()> {
        let is_short = host(ctx).must_spill(&self.counted, bytes);
        host(ctx).count(&mut self.counted, bytes)?;
        if is_short { self.write_out(ctx) } else { Ok(()) }
    }

    pub fn len(&self) -> usize {
        self.held.places.len()
    }

    /// Forgets all but so many of the smallest. Only while nothing has been written.
    pub fn keep(&mut self, most: usize) {
        if !self.runs.is_empty() || self.len() <= most {
            return;
        }
        self.held.sort();
        let (first, bytes) = self.held.first(most);
        self.counted.release(self.counted.bytes().saturating_sub(bytes));
        self.held = first;
    }

    fn write_out(&mut self, ctx: &mut EvalContext) -> Result<()> {
        self.held.sort();
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(Writer::new(&host(ctx).spill()?)?),
        };
        let from = writer.position();
        let held = std::mem::take(&mut self.held);
        for (nth, place) in held.places.iter().enumerate() {
            self.record.clear();
            self.record.extend_from_slice(&place.key_len.to_le_bytes());
            self.record.extend_from_slice(held.key(place));
            encode_cells(held.row(place).iter(), &mut self.record);
            writer.put(&self.record)?;
            if nth.is_multiple_of(4096) {
                host(ctx).look_up()?;
            }
        }
        self.runs.push(writer.run(from)?);
        self.counted.clear();
        Ok(())
    }

    pub fn finish(mut self, ctx: &mut EvalContext) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.held.sort();
            return Ok(Sorted::Here { sorter: self, next: 0 });
        }
        self.write_out(ctx)?;
        while self.runs.len() > WAYS {
            // Runs that follow one another, so that what is equal stays in order.
            let mut longer = Vec::new();
            for runs in self.runs.chunks(WAYS) {
                let mut writer = Writer::new(&host(ctx).spill()?)?;
                let (mut merge, mut count) = (Merge::new(runs)?, 0u64);
                while merge.advance()? {
                    writer.put(&merge.current)?;
                    count += 1;
                    if count.is_multiple_of(4096) {
                        host(ctx).look_up()?;
                    }
                }
                longer.push(writer.run(0)?);
            }
            self.runs = longer;
        }
        Ok(Sorted::Merged(Merge::new(&self.runs)?))
    }
}

impl Merge {
    fn new(runs: &[Run]) -> Result<Merge> {
        let readers: Vec<Reader> = runs.iter().map(Run::read).collect();
        let heads = readers.iter().map(|_| Vec::new()).collect();
        let mut merge = Merge { readers, heads, heap: BinaryHeap::new(), current: Vec::new() };
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

    /// Makes the next record the current one; false at the end.
    fn advance(&mut self) -> Result<bool> {
        let Some(Reverse((_, at))) = self.heap.pop() else { return Ok(false) };
        std::mem::swap(&mut self.current, &mut self.heads[at]);
        self.read(at)?;
        Ok(true)
    }
}

impl Sorted {
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        match self {
            Sorted::Merged(merge) => {
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
                Ok(Some(Record { key: sorter.held.key(place), row: Stored::Here(sorter.held.row(place)) }))
            }
        }
    }
}

impl<'s> Record<'s> {
    fn parse(bytes: &'s [u8]) -> Result<Record<'s>> {
        let (key, row) = crate::exec::spill::partition::key_and_rest(bytes)?;
        Ok(Record { key, row: Stored::Packed(row) })
    }

    pub fn row(&self) -> Result<Row> {
        match self.row {
            Stored::Here(cells) => Ok(cells.to_row()),
            Stored::Packed(mut bytes) => decode_row(&mut bytes),
        }
    }

    /// Key and row of their own.
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
