//! Rows by keys of bytes. What is equal stays in the order it came.
//!
//! Keys and rows lie packed in pieces of memory, as they would in a file; what is sorted are their places, each with the first bytes of its key. As much as memory allows is sorted
//! at a time; what is more becomes a run of a file, and the runs are merged when the rows are asked for. Of many runs some are merged into
//! longer ones first, so that not all of them need a buffer at once.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::batch::{Batch, Cell};
use crate::error::Result;
use crate::exec::host::host;
use crate::exec::spill::{Reader, Run, Writer, decode_row, encode_cells, unpack_row};
use crate::scalar::EvalContext;
use crate::session::Row;

/// Runs that are merged at once.
const WAYS: usize = 64;
/// A piece takes records until it is so long.
const PIECE: usize = 64 << 10;
/// What the place of a record takes.
const PLACE_BYTES: usize = size_of::<Place>();

#[derive(Default)]
pub struct Sorter {
    packed: Packed,
    held: usize,
    runs: Vec<Run>,
    writer: Option<Writer>,
}

/// Records in memory: length of the key, the key, the row.
#[derive(Default)]
struct Packed {
    pieces: Vec<Vec<u8>>,
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    /// The key's first bytes as a number that compares like them.
    head: u64,
    piece: u32,
    key_len: u32,
    from: usize,
    to: usize,
}

/// A row with its key.
pub struct Record<'s> {
    pub key: &'s [u8],
    row: &'s [u8],
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

impl Packed {
    /// Adds a record; returns how much memory it takes.
    fn push(&mut self, key: impl FnOnce(&mut Vec<u8>), row: impl FnOnce(&mut Vec<u8>)) -> usize {
        if self.pieces.last().is_none_or(|piece| piece.len() >= PIECE) {
            self.pieces.push(Vec::with_capacity(if self.pieces.is_empty() { 0 } else { PIECE + PIECE / 8 }));
        }
        let piece = self.pieces.len() - 1;
        let bytes = &mut self.pieces[piece];
        let from = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        key(bytes);
        let key_len = bytes.len() - from - 4;
        bytes[from..from + 4].copy_from_slice(&(key_len as u32).to_le_bytes());
        row(bytes);
        let head = head(&bytes[from + 4..from + 4 + key_len]);
        let to = bytes.len();
        self.places.push(Place { head, piece: piece as u32, key_len: key_len as u32, from, to });
        to - from + PLACE_BYTES
    }

    fn bytes(&self, place: &Place) -> &[u8] {
        &self.pieces[place.piece as usize][place.from..place.to]
    }

    fn record(&self, place: &Place) -> Record<'_> {
        let (key, row) = self.bytes(place)[4..].split_at(place.key_len as usize);
        Record { key, row }
    }

    fn sort(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable_by(|a, b| self.compare(a, b));
        self.places = places;
    }

    fn compare(&self, a: &Place, b: &Place) -> Ordering {
        let by_key = a.head.cmp(&b.head).then_with(|| self.record(a).key.cmp(self.record(b).key));
        by_key.then_with(|| (a.piece, a.from).cmp(&(b.piece, b.from)))
    }

    /// The first `most` in pieces of their own.
    fn first(&self, most: usize) -> (Packed, usize) {
        let (mut first, mut held) = (Packed::default(), 0);
        for place in &self.places[..most] {
            let record = self.record(place);
            held += first.push(|out| out.extend_from_slice(record.key), |out| out.extend_from_slice(record.row));
        }
        (first, held)
    }
}

fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = key.len().min(8);
    head[..len].copy_from_slice(&key[..len]);
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
        let bytes = self.packed.push(key, |out| encode_cells(row, out));
        let is_short = host(ctx).must_spill(self.held, bytes);
        host(ctx).count(bytes)?;
        self.held += bytes;
        if is_short { self.write_out(ctx) } else { Ok(()) }
    }

    pub fn len(&self) -> usize {
        self.packed.places.len()
    }

    /// Forgets all but so many of the smallest. Only while nothing has been written.
    pub fn keep(&mut self, most: usize, ctx: &mut EvalContext) {
        if !self.runs.is_empty() || self.len() <= most {
            return;
        }
        self.packed.sort();
        let (first, held) = self.packed.first(most);
        host(ctx).release(self.held.saturating_sub(held));
        self.packed = first;
        self.held = held;
    }

    fn write_out(&mut self, ctx: &mut EvalContext) -> Result<()> {
        self.packed.sort();
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(Writer::new(&host(ctx).spill()?)?),
        };
        let from = writer.position();
        let packed = std::mem::take(&mut self.packed);
        for (nth, place) in packed.places.iter().enumerate() {
            writer.put(packed.bytes(place))?;
            if nth.is_multiple_of(4096) {
                host(ctx).look_up()?;
            }
        }
        self.runs.push(writer.run(from)?);
        host(ctx).release(std::mem::take(&mut self.held));
        Ok(())
    }

    pub fn finish(mut self, ctx: &mut EvalContext) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.packed.sort();
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
    pub fn next(&mut self, ctx: &mut EvalContext) -> Result<Option<Record<'_>>> {
        match self {
            Sorted::Merged(merge) => {
                if !merge.advance()? {
                    return Ok(None);
                }
                Record::parse(&merge.current).map(Some)
            }
            Sorted::Here { sorter, next } => {
                let Some(place) = sorter.packed.places.get(*next) else {
                    host(ctx).release(std::mem::take(&mut sorter.held));
                    sorter.packed = Packed::default();
                    return Ok(None);
                };
                *next += 1;
                Ok(Some(sorter.packed.record(place)))
            }
        }
    }
}

impl<'s> Record<'s> {
    fn parse(bytes: &'s [u8]) -> Result<Record<'s>> {
        let (key, row) = crate::exec::spill::partition::key_and_rest(bytes)?;
        Ok(Record { key, row })
    }

    pub fn row(&self) -> Result<Row> {
        decode_row(&mut &*self.row)
    }

    /// Key and row of their own.
    pub fn to_owned(&self) -> Result<(Vec<u8>, Row)> {
        Ok((self.key.to_vec(), self.row()?))
    }

    /// Adds the row to a batch.
    pub fn unpack(&self, out: &mut Batch) -> Result<()> {
        unpack_row(&mut &*self.row, out)
    }
}
