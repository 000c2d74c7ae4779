//! A batch of WAL records, grouped by the page that they change.
//!
//! ```text
//!   bytes      body | body | body | ...                          in WAL order
//!   records    9 @a | 4 @b | 9 @c | 7 @d | 4 @e | ...            in WAL order, each with the place of its body
//!   order      4: b e | 7: d | 9: a c | ...                      by page, then in WAL order
//! ```
//! Redo takes a page up once in a batch, however its records are spread over the WAL (PG-22), and goes through the file in one direction.

use std::ops::Range;

use crate::page::{Lsn, PageId, TxnId};
use crate::space_map::{self, Run};
use crate::wal::record::{Record, kind};

/// A record whose body was copied out of the reader's buffer.
struct Entry {
    lsn_start: Lsn,
    lsn_end: Lsn,
    page_lsn_before: Lsn,
    txn: Option<TxnId>,
    body: usize,
    body_bytes: u32,
    kind: u8,
}

/// Memory of a record besides its body: itself, and its place in the order of the pages.
const ENTRY_BYTES: usize = size_of::<Entry>() + size_of::<(PageId, u32)>();

/// A batch of records that change pages.
#[derive(Default)]
pub(crate) struct RedoBatch {
    records: Vec<Entry>,
    bytes: Vec<u8>,
    /// Pages and indices of their records.
    order: Vec<(PageId, u32)>,
    /// Ranges of `order`: the records of one page each.
    pages: Vec<Range<u32>>,
    /// Runs that are freed, with the end of the mini-transaction.
    freed: Vec<(Lsn, Run)>,
    /// Number of records read, also those that change no page, and the end of the last one.
    pub read: u64,
    pub to: Lsn,
}

impl RedoBatch {
    /// Empties the batch but keeps its memory.
    pub fn clear(&mut self) {
        self.records.clear();
        self.bytes.clear();
        self.order.clear();
        self.pages.clear();
        self.freed.clear();
        (self.read, self.to) = (0, 0);
    }

    pub fn push(&mut self, record: &Record<'_>) {
        (self.read, self.to) = (self.read + 1, record.lsn_end);
        let Some(pid) = record.page else { return };
        if record.kind == kind::SPACE_CLEAR {
            self.freed.extend(space_map::decode(record).map(|run| (record.lsn_end, run)));
        }
        self.order.push((pid, u32::try_from(self.records.len()).expect("a batch is far below 256 GiB")));
        self.records.push(Entry {
            lsn_start: record.lsn_start,
            lsn_end: record.lsn_end,
            page_lsn_before: record.page_lsn_before,
            txn: record.txn,
            body: self.bytes.len(),
            body_bytes: u32::try_from(record.body.len()).expect("a record is far below 4 GiB"),
            kind: record.kind,
        });
        self.bytes.extend_from_slice(record.body);
    }

    /// Returns the memory that the records take.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.records.len() * ENTRY_BYTES
    }

    /// Groups the records by page; called when all are pushed.
    pub fn group(&mut self) {
        // By page, then by index, which is the order of the WAL (PG-22).
        self.order.sort_unstable();
        let mut from = 0;
        for group in self.order.chunk_by(|one, next| one.0 == next.0) {
            let to = from + group.len() as u32;
            self.pages.push(from..to);
            from = to;
        }
    }

    /// Returns the number of pages that the records change.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Returns the pages at `range` in ascending order.
    pub fn pages(&self, range: Range<usize>) -> impl Iterator<Item = RecordsOfPage<'_>> {
        self.pages[range]
            .iter()
            .map(|places| RecordsOfPage { batch: self, order: &self.order[places.start as usize..places.end as usize] })
    }

    /// Returns the largest id of a page that the records change.
    pub fn last_page(&self) -> Option<PageId> {
        self.order.last().map(|(pid, _)| *pid)
    }

    /// Returns the runs that the records free, in WAL order, with the end of the mini-transaction that frees each.
    pub fn freed(&self) -> &[(Lsn, Run)] {
        &self.freed
    }

    fn record(&self, (pid, index): (PageId, u32)) -> Record<'_> {
        let entry = &self.records[index as usize];
        Record {
            lsn_start: entry.lsn_start,
            lsn_end: entry.lsn_end,
            kind: entry.kind,
            page: Some(pid),
            page_lsn_before: entry.page_lsn_before,
            txn: entry.txn,
            body: &self.bytes[entry.body..][..entry.body_bytes as usize],
        }
    }
}

/// The records of one page.
#[derive(Clone, Copy)]
pub(crate) struct RecordsOfPage<'b> {
    batch: &'b RedoBatch,
    order: &'b [(PageId, u32)],
}

impl<'b> RecordsOfPage<'b> {
    pub fn pid(&self) -> PageId {
        self.order[0].0
    }

    /// Returns whether the first record needs no former state of the page.
    pub fn starts_anew(&self) -> bool {
        matches!(self.batch.records[self.order[0].1 as usize].kind, kind::IMAGE | kind::EXTENT_UNIT)
    }

    /// Returns the records in WAL order.
    pub fn records(&self) -> impl Iterator<Item = Record<'b>> {
        let batch = self.batch;
        self.order.iter().map(move |place| batch.record(*place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_its_records_in_the_order_of_the_log() {
        let mut random = stdx::prng::Prng::new(1);
        let mut batch = RedoBatch::default();
        for _ in 0..3 {
            batch.clear();
            let mut expected: std::collections::BTreeMap<PageId, Vec<(Lsn, Vec<u8>)>> = Default::default();
            for lsn in 1..=500 {
                let (pid, body) = (random.below(40), vec![lsn as u8; random.below(20) as usize]);
                let page = (pid > 0).then_some(pid);
                let record = Record {
                    lsn_start: lsn - 1,
                    lsn_end: lsn,
                    kind: 0x10,
                    page,
                    page_lsn_before: 0,
                    txn: None,
                    body: &body,
                };
                batch.push(&record);
                if page.is_some() {
                    expected.entry(pid).or_default().push((lsn, body));
                }
            }
            batch.group();
            assert_eq!((batch.read, batch.to, batch.page_count()), (500, 500, expected.len()));
            assert_eq!(batch.last_page(), expected.keys().last().copied());
            let found: Vec<_> = batch
                .pages(0..batch.page_count())
                .map(|page| (page.pid(), page.records().map(|r| (r.lsn_end, r.body.to_vec())).collect::<Vec<_>>()))
                .collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
