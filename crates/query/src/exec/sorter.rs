//! Rows by keys of bytes. What is equal stays in the order it came.
//!
//! As much as memory allows is sorted at a time; what is more becomes a run of a file, and the runs are merged when the rows are asked for. Of many runs some are merged into
//! longer ones first, so that not all of them need a buffer at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::Result;
use crate::exec::host::{host, row_bytes};
use crate::exec::spill::partition::key_and_row;
use crate::exec::spill::{Reader, Run, Writer, encode_row};
use crate::scalar::EvalContext;
use crate::session::Row;

/// Runs that are merged at once.
const WAYS: usize = 64;

#[derive(Default)]
pub struct Sorter {
    rows: Vec<(Vec<u8>, Row)>,
    held: usize,
    runs: Vec<Run>,
    writer: Option<Writer>,
}

/// The rows in order, each with its key.
pub enum Sorted {
    Here(std::vec::IntoIter<(Vec<u8>, Row)>),
    Merged(Merge),
}

/// Runs side by side: the smallest next key, and of which run it is.
pub struct Merge {
    readers: Vec<Reader>,
    heads: Vec<Option<Row>>,
    heap: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
}

fn bytes_of(key: &[u8], row: &Row) -> usize {
    key.len() + 24 + row_bytes(row)
}

impl Sorter {
    pub fn push(&mut self, key: Vec<u8>, row: Row, ctx: &mut EvalContext) -> Result<()> {
        let bytes = bytes_of(&key, &row);
        if host(ctx).must_spill(self.held, bytes) {
            self.write_out(ctx)?;
        }
        host(ctx).count(bytes)?;
        self.held += bytes;
        self.rows.push((key, row));
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Forgets all but so many of the smallest. Only while nothing has been written.
    pub fn keep(&mut self, most: usize, ctx: &mut EvalContext) {
        if !self.runs.is_empty() || self.rows.len() <= most {
            return;
        }
        self.rows.sort_by(|a, b| a.0.cmp(&b.0));
        let gone = self.rows.drain(most..).map(|(key, row)| bytes_of(&key, &row)).sum();
        self.held -= gone;
        host(ctx).release(gone);
    }

    fn write_out(&mut self, ctx: &mut EvalContext) -> Result<()> {
        self.rows.sort_by(|a, b| a.0.cmp(&b.0));
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(Writer::new(&host(ctx).spill()?)?),
        };
        let from = writer.position();
        let mut record = Vec::new();
        for (nth, (key, row)) in self.rows.drain(..).enumerate() {
            put(writer, &key, &row, &mut record)?;
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
            self.rows.sort_by(|a, b| a.0.cmp(&b.0));
            return Ok(Sorted::Here(self.rows.into_iter()));
        }
        self.write_out(ctx)?;
        while self.runs.len() > WAYS {
            // Runs that follow one another, so that what is equal stays in order.
            let mut longer = Vec::new();
            for runs in self.runs.chunks(WAYS) {
                let mut writer = Writer::new(&host(ctx).spill()?)?;
                let (mut merge, mut record, mut count) = (Merge::new(runs)?, Vec::new(), 0u64);
                while let Some((key, row)) = merge.next()? {
                    put(&mut writer, &key, &row, &mut record)?;
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

fn put(writer: &mut Writer, key: &[u8], row: &Row, record: &mut Vec<u8>) -> Result<()> {
    record.clear();
    record.extend_from_slice(&(key.len() as u32).to_le_bytes());
    record.extend_from_slice(key);
    encode_row(row, record);
    writer.put(record)
}

impl Merge {
    fn new(runs: &[Run]) -> Result<Merge> {
        let readers: Vec<Reader> = runs.iter().map(Run::read).collect();
        let heads = readers.iter().map(|_| None).collect();
        let mut merge = Merge { readers, heads, heap: BinaryHeap::new() };
        for at in 0..runs.len() {
            merge.advance(at)?;
        }
        Ok(merge)
    }

    fn advance(&mut self, at: usize) -> Result<()> {
        if let Some(mut record) = self.readers[at].next()? {
            let (key, row) = key_and_row(&mut record)?;
            self.heads[at] = Some(row);
            self.heap.push(Reverse((key, at)));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<(Vec<u8>, Row)>> {
        let Some(Reverse((key, at))) = self.heap.pop() else { return Ok(None) };
        let row = self.heads[at].take().unwrap_or_default();
        self.advance(at)?;
        Ok(Some((key, row)))
    }
}

impl Sorted {
    pub fn next(&mut self, ctx: &mut EvalContext) -> Result<Option<(Vec<u8>, Row)>> {
        match self {
            Sorted::Merged(merge) => merge.next(),
            Sorted::Here(rows) => {
                let next = rows.next();
                if let Some((key, row)) = &next {
                    host(ctx).release(bytes_of(key, row));
                }
                Ok(next)
            }
        }
    }
}
