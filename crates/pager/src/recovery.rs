//! From the checkpoint to the end of the log: every page gets the changes it misses.
//!
//! Hard part: a page number may have had several lives between checkpoint and crash. A record of an early life may meet the bytes of a late one on disk: a
//! newer LSN (skip it) or a value's raw unit (unreadable as a page). The log explains both: whatever begins a new life is an image or a whole unit and is
//! applied without looking. So an unreadable page is only noted, and is forgiven if the log starts it anew or frees it (L5).
//!
//! A record changes one page, so the pages are divided among threads and each thread goes through the log on its own (L8):
//!
//! ```text
//!   reader:    window 1 | window 2 | window 3 ...     reads, checks, shows the observer, has absent pages read in
//!   part 0..n:            window 1 | window 2 ...     applies what concerns its pages, in log order
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use os::Folder;
use stdx::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::frame::RAW;
use crate::guard::Exclusive;
use crate::page::{Lsn, PAGE_BYTES, PageId, TxnId, WORD_LSN};
use crate::pager::Pager;
use crate::redo::RedoTable;
use crate::space_map::{self, Run};
use crate::wal::read::{End, RecoveryTarget, WalReader};
use crate::wal::record::{Observer, Record, kind, unfold_image};

/// Bytes of log whose pages are fetched together.
const WINDOW_BYTES: usize = 4 << 20;

/// What recovery did, for the log line and for tests.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    pub from: Lsn,
    pub to: Lsn,
    /// Wall time of the last chunk, in milliseconds since 1970; 0 if the log was empty.
    pub wall_ms: u64,
    pub records: u64,
    pub applied: u64,
    /// Pages restored from the double-write file.
    pub repaired: Vec<PageId>,
    /// Pages that could not be read although the log has changes for them: requests that need them will fail.
    pub damaged: Vec<(PageId, String)>,
}

/// A record lifted out of the reader's buffer.
struct OwnedRecord {
    lsn_start: Lsn,
    lsn_end: Lsn,
    kind: u8,
    page: Option<PageId>,
    page_lsn_before: Lsn,
    txn: Option<TxnId>,
    body: std::ops::Range<usize>,
}

#[derive(Default)]
struct RecordWindow {
    records: Vec<OwnedRecord>,
    bytes: Vec<u8>,
}

impl RecordWindow {
    fn push(&mut self, record: &Record<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record.body);
        self.records.push(OwnedRecord {
            lsn_start: record.lsn_start,
            lsn_end: record.lsn_end,
            kind: record.kind,
            page: record.page,
            page_lsn_before: record.page_lsn_before,
            txn: record.txn,
            body: start..self.bytes.len(),
        });
    }

    fn record(&self, lifted: &OwnedRecord) -> Record<'_> {
        Record {
            lsn_start: lifted.lsn_start,
            lsn_end: lifted.lsn_end,
            kind: lifted.kind,
            page: lifted.page,
            page_lsn_before: lifted.page_lsn_before,
            txn: lifted.txn,
            body: &self.bytes[lifted.body.clone()],
        }
    }
}

pub(crate) struct Recovery<'a> {
    pub pager: &'a Pager,
    pub redo: &'a RedoTable,
    pub observer: &'a mut dyn Observer,
    pub progress: &'a dyn Fn(&RecoveryReport),
    pub report: RecoveryReport,
}

impl Recovery<'_> {
    /// Runs the log from `from` to its end, or as far as `until` allows.
    pub fn run(&mut self, folder: &Arc<dyn Folder>, database: u64, from: Lsn, until: RecoveryTarget) -> Result<End> {
        self.report.from = from;
        let mut reader = WalReader::open(folder, database, from, until)?;
        let count = if self.pager.is_manual() { PARTITIONS_MANUAL } else { threads() };
        let mut parts: Vec<RedoPartition<'_>> =
            (0..count).map(|number| RedoPartition::new(self.pager, self.redo, number, count)).collect();
        let mut window = self.read(&mut reader)?;
        while let Some(current) = window {
            window = if self.pager.is_manual() {
                parts.iter_mut().try_for_each(|part| part.apply_window(&current))?;
                self.read(&mut reader)?
            } else {
                std::thread::scope(|scope| {
                    let tasks: Vec<_> =
                        parts.iter_mut().map(|part| scope.spawn(|| part.apply_window(&current))).collect();
                    let next = self.read(&mut reader);
                    for task in tasks {
                        task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                    }
                    next
                })?
            };
            self.report.records += current.records.len() as u64;
            self.report.to = current.records.last().map_or(self.report.to, |last| last.lsn_end);
            self.report.applied = parts.iter().map(|part| part.applied).sum();
            (self.progress)(&self.report);
        }
        let end = reader.end();
        self.report.to = end.lsn;
        self.report.wall_ms = end.wall_ms;
        self.report.damaged = parts.into_iter().flat_map(|part| part.damaged).collect();
        self.report.damaged.sort_unstable();
        Ok(end)
    }

    /// The next piece of the log, seen by the observer, its pages on their way into memory; None at the end.
    fn read(&mut self, reader: &mut WalReader) -> Result<Option<RecordWindow>> {
        let mut window = RecordWindow::default();
        reader.next(WINDOW_BYTES, &mut |record| {
            self.observer.observe(record);
            window.push(record);
            Ok(())
        })?;
        if window.records.is_empty() {
            return Ok(None);
        }
        self.cover(&window)?;
        self.fetch(&window);
        Ok(Some(window))
    }

    /// The crash may have taken back a growth of the file that the log relies on.
    fn cover(&self, window: &RecordWindow) -> Result<()> {
        let Some(last) = window.records.iter().filter_map(|record| record.page).max() else { return Ok(()) };
        let needed = (last + 1) * PAGE_BYTES as u64;
        if needed <= self.pager.pool.data.len() {
            return Ok(());
        }
        let bytes = needed.next_multiple_of(space_map::FIRST_BYTES);
        self.pager.pool.data.grow(bytes).map_err(|error| Error::io("growing the data file during recovery", error))
    }

    /// Reads the pages that the window's records change and that are not begun anew by it.
    fn fetch(&self, window: &RecordWindow) {
        let mut wanted: Vec<PageId> = Vec::new();
        let mut begun: std::collections::HashSet<PageId> = Default::default();
        for record in &window.records {
            let Some(pid) = record.page else { continue };
            if matches!(record.kind, kind::IMAGE | kind::EXTENT_UNIT) {
                begun.insert(pid);
            } else if !begun.contains(&pid) {
                wanted.push(pid);
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|pid| (pid + 1) * PAGE_BYTES as u64 <= self.pager.pool.data.len());
        self.pager.prefetch_many(&wanted);
    }
}

/// Parts where there are no threads: one after the other, so that simulations meet the division.
const PARTITIONS_MANUAL: usize = 3;

/// How many threads apply: as many as there are processors, as far as they are likely to have work.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get()).min(16)
}

/// One thread's share of the pages.
struct RedoPartition<'a> {
    pager: &'a Pager,
    redo: &'a RedoTable,
    number: usize,
    count: usize,
    /// Pages that cannot be brought up to date, and why.
    damaged: HashMap<PageId, String>,
    /// The mini-transaction being applied, by its end, and its pages so far.
    mtr: Lsn,
    mtr_pages: Vec<PageId>,
    applied: u64,
}

impl<'a> RedoPartition<'a> {
    fn new(pager: &'a Pager, redo: &'a RedoTable, number: usize, count: usize) -> RedoPartition<'a> {
        RedoPartition { pager, redo, number, count, damaged: HashMap::new(), mtr: 0, mtr_pages: Vec::new(), applied: 0 }
    }

    fn owns(&self, pid: PageId) -> bool {
        // Neighbours are often changed together: a multiplication spreads them.
        let spread = pid.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        ((spread * self.count as u64) >> 32) as usize == self.number
    }

    fn apply_window(&mut self, window: &RecordWindow) -> Result<()> {
        for lifted in &window.records {
            let Some(pid) = lifted.page else { continue };
            if self.owns(pid) {
                self.apply(pid, &window.record(lifted))?;
            }
            if lifted.kind == kind::SPACE_CLEAR {
                self.forgive(space_map::decode(&window.record(lifted)));
            }
        }
        Ok(())
    }

    fn apply(&mut self, pid: PageId, record: &Record<'_>) -> Result<()> {
        match record.kind {
            kind::IMAGE => {
                let image =
                    unfold_image(record.body).ok_or_else(|| corrupt(record, "an image of impossible length"))?;
                self.begin(pid, record, &image, false);
            }
            kind::EXTENT_UNIT if record.body.len() == PAGE_BYTES => self.begin(pid, record, record.body, true),
            kind::EXTENT_UNIT => return Err(corrupt(record, "a unit of impossible length")),
            kind::SPACE_SET | kind::SPACE_CLEAR => self.change(pid, record, &|page, record| {
                let run = space_map::decode(record).ok_or_else(|| corrupt(record, "a space record of odd length"))?;
                space_map::mark(page, run, record.kind == kind::SPACE_SET);
                Ok(())
            })?,
            other => {
                let owner = self.redo.owner(other).ok_or_else(|| corrupt(record, "a record kind that nobody owns"))?;
                self.change(pid, record, &|page, record| owner.apply(page, record))?;
            }
        }
        Ok(())
    }

    /// A new life of the page: nothing of the former one matters.
    fn begin(&mut self, pid: PageId, record: &Record<'_>, bytes: &[u8], raw: bool) {
        self.damaged.remove(&pid);
        let pager = self.pager;
        let page = pager.fresh_frame(pid, raw).expect("a frame is found or made free");
        page.copy_in(bytes);
        self.settle(&page, pid, record, raw);
    }

    fn settle(&mut self, page: &Exclusive<'_>, pid: PageId, record: &Record<'_>, raw: bool) {
        if self.mtr != record.lsn_end {
            self.mtr = record.lsn_end;
            self.mtr_pages.clear();
        }
        self.mtr_pages.push(pid);
        if !raw {
            page.store(WORD_LSN, record.lsn_end);
        }
        page.header().mark_dirty(record.lsn_start, record.lsn_end);
        self.applied += 1;
    }

    /// A change of a page that exists: applied if the page does not have it yet.
    fn change(
        &mut self,
        pid: PageId,
        record: &Record<'_>,
        apply: &dyn Fn(&Exclusive<'_>, &Record<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.damaged.contains_key(&pid) {
            return Ok(());
        }
        let page = match Self::page_of(self.pager, pid) {
            Ok(page) => page,
            Err(Error::Corrupt { what, .. }) => {
                self.damaged.insert(pid, what);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let lsn = page.page().lsn();
        // Page LSN and `page_lsn_before` speak of whole mini-transactions: within one, the first record of a page decides for all of them.
        if self.mtr != record.lsn_end || !self.mtr_pages.contains(&pid) {
            if lsn >= record.lsn_end {
                return Ok(());
            }
            if lsn != record.page_lsn_before {
                let before = record.page_lsn_before;
                let what =
                    format!("the log continues from LSN {before}, the page has LSN {lsn}: a write of it was lost");
                self.damaged.insert(pid, what);
                return Ok(());
            }
        }
        apply(&page, record)?;
        self.settle(&page, pid, record, false);
        Ok(())
    }

    fn page_of(pager: &Pager, pid: PageId) -> Result<Exclusive<'_>> {
        if let Some(frame) = pager.pool.find(pid)
            && pager.pool.frames[frame].flags.load(Ordering::Relaxed) & RAW != 0
        {
            return Err(Error::corrupt_page(pid, "a value where a page was expected"));
        }
        pager.exclusive(pid)
    }

    /// Freed pages need no repair.
    fn forgive(&mut self, run: Option<Run>) {
        let Some(run) = run else { return };
        for pid in run.first..run.first + u64::from(run.pages) {
            self.damaged.remove(&pid);
        }
    }
}

fn corrupt(record: &Record<'_>, what: &str) -> Error {
    Error::Corrupt {
        what: format!("{what} (kind {:#x}, LSN {})", record.kind, record.lsn_end),
        file: "log".into(),
        page: record.page,
    }
}
