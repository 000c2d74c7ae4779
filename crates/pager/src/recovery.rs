//! Recovery: from the checkpoint to the end of the WAL, every page gets the changes it lacks.
//!
//! Hard part: a page id may have been freed and reused several times between checkpoint and crash. A record of an earlier use may meet the bytes of a later
//! one on disk: a newer LSN (the record is skipped) or a raw unit (unreadable as a page). The WAL explains both, because every new use begins with an image
//! or a whole unit, which is applied regardless of the page's state. So an unreadable page is only noted, and dropped from the list if the WAL starts it
//! anew or frees it (PG-14).
//!
//! A record changes one page, so the pages are partitioned among threads, and each thread goes through the WAL on its own (PG-17):
//!
//! ```text
//!   reader:           window 1 | window 2 | window 3 | window 4 ...     reads, verifies, calls the observer
//!   fetcher:                     window 1 | window 2 | window 3 ...     has absent pages read in, neighbours of the file together
//!   partition 0..n:                         window 1 | window 2 ...     applies the records of its pages, in WAL order
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
use crate::wal::read::{RecoveryTarget, WalEnd, WalReader};
use crate::wal::record::{Observer, Record, kind, unfold_image};

/// Bytes of WAL whose pages are fetched together.
const WINDOW_BYTES: usize = 4 << 20;

/// Report of recovery, for the log line and for tests.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    pub from: Lsn,
    pub to: Lsn,
    /// Wall time of the last chunk, in milliseconds since 1970; 0 if the WAL was empty.
    pub wall_ms: u64,
    pub records: u64,
    pub applied: u64,
    /// Pages restored from the double-write file.
    pub repaired: Vec<PageId>,
    /// Pages that could not be brought up to date, and why. Requests that need them fail.
    pub damaged: Vec<(PageId, String)>,
}

/// A record whose body was copied out of the reader's buffer, as a range of `RecordWindow::bytes`.
struct OwnedRecord {
    lsn_start: Lsn,
    lsn_end: Lsn,
    kind: u8,
    page: Option<PageId>,
    page_lsn_before: Lsn,
    txn: Option<TxnId>,
    body: std::ops::Range<usize>,
}

/// A piece of the WAL whose records are applied together.
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

    fn record(&self, owned: &OwnedRecord) -> Record<'_> {
        Record {
            lsn_start: owned.lsn_start,
            lsn_end: owned.lsn_end,
            kind: owned.kind,
            page: owned.page,
            page_lsn_before: owned.page_lsn_before,
            txn: owned.txn,
            body: &self.bytes[owned.body.clone()],
        }
    }
}

/// Recovery in progress.
pub(crate) struct Recovery<'a> {
    pub pager: &'a Pager,
    pub redo: &'a RedoTable,
    pub observer: &'a mut dyn Observer,
    pub progress: &'a dyn Fn(&RecoveryReport),
    pub report: RecoveryReport,
}

impl Recovery<'_> {
    /// Redoes the WAL from `from` to its end, or as far as `until` allows. Returns where the WAL ends.
    pub fn run(&mut self, folder: &Arc<dyn Folder>, database: u64, from: Lsn, until: RecoveryTarget) -> Result<WalEnd> {
        self.report.from = from;
        let mut reader = WalReader::open(folder, database, from, until)?;
        let count = if self.pager.is_manual() { PARTITIONS_MANUAL } else { threads() };
        let mut parts: Vec<RedoPartition<'_>> =
            (0..count).map(|number| RedoPartition::new(self.pager, self.redo, number, count)).collect();
        let pager = self.pager;
        let mut window = self.read(&mut reader)?;
        window.iter().try_for_each(|window| fetch(pager, window))?;
        let mut next = self.read(&mut reader)?;
        while let Some(current) = window {
            let behind = if pager.is_manual() {
                parts.iter_mut().try_for_each(|part| part.apply_window(&current))?;
                next.iter().try_for_each(|next| fetch(pager, next))?;
                self.read(&mut reader)?
            } else {
                std::thread::scope(|scope| {
                    let mut tasks: Vec<_> =
                        parts.iter_mut().map(|part| scope.spawn(|| part.apply_window(&current))).collect();
                    tasks.extend(next.as_ref().map(|next| scope.spawn(|| fetch(pager, next))));
                    let behind = self.read(&mut reader);
                    for task in tasks {
                        task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                    }
                    behind
                })?
            };
            window = next;
            next = behind;
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

    /// Reads the next window and shows it to the observer. `None` at the end.
    fn read(&mut self, reader: &mut WalReader) -> Result<Option<RecordWindow>> {
        let mut window = RecordWindow::default();
        reader.next(WINDOW_BYTES, &mut |record| {
            self.observer.observe(record);
            window.push(record);
            Ok(())
        })?;
        Ok((!window.records.is_empty()).then_some(window))
    }
}

/// Reads the pages that the window's records change, except those that begin with an image or a unit.
fn fetch(pager: &Pager, window: &RecordWindow) -> Result<()> {
    grow_file_for(pager, window)?;
    let mut wanted: Vec<PageId> = Vec::new();
    let mut started: std::collections::HashSet<PageId> = Default::default();
    for record in &window.records {
        let Some(pid) = record.page else { continue };
        if matches!(record.kind, kind::IMAGE | kind::EXTENT_UNIT) {
            started.insert(pid);
        } else if !started.contains(&pid) && wanted.last() != Some(&pid) {
            wanted.push(pid);
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    wanted.retain(|pid| (pid + 1) * PAGE_BYTES as u64 <= pager.pool.data.len());
    pager.prefetch_many(&wanted);
    Ok(())
}

/// Grows the data file again if the crash took back a growth that the WAL relies on.
fn grow_file_for(pager: &Pager, window: &RecordWindow) -> Result<()> {
    let Some(last) = window.records.iter().filter_map(|record| record.page).max() else { return Ok(()) };
    let needed = (last + 1) * PAGE_BYTES as u64;
    if needed <= pager.pool.data.len() {
        return Ok(());
    }
    let bytes = needed.next_multiple_of(space_map::FIRST_BYTES);
    pager.pool.data.grow(bytes).map_err(|error| Error::io("growing the data file during recovery", error))
}

/// Partitions where there are no threads: applied one after the other, so that simulation covers the partitioning.
const PARTITIONS_MANUAL: usize = 3;

/// Returns the number of threads that apply: one per processor, at most 16.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get()).min(16)
}

/// The pages of one thread, and what it found.
struct RedoPartition<'a> {
    pager: &'a Pager,
    redo: &'a RedoTable,
    number: usize,
    count: usize,
    /// Pages that cannot be brought up to date, and why.
    damaged: HashMap<PageId, String>,
    /// The end of the mini-transaction being applied, and its pages so far.
    mtr: Lsn,
    mtr_pages: Vec<PageId>,
    applied: u64,
}

impl<'a> RedoPartition<'a> {
    fn new(pager: &'a Pager, redo: &'a RedoTable, number: usize, count: usize) -> RedoPartition<'a> {
        RedoPartition { pager, redo, number, count, damaged: HashMap::new(), mtr: 0, mtr_pages: Vec::new(), applied: 0 }
    }

    fn owns(&self, pid: PageId) -> bool {
        // Neighbouring pages are often changed together: the multiplication spreads them.
        let spread = pid.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        ((spread * self.count as u64) >> 32) as usize == self.number
    }

    fn apply_window(&mut self, window: &RecordWindow) -> Result<()> {
        for owned in &window.records {
            let Some(pid) = owned.page else { continue };
            if self.owns(pid) {
                self.apply(pid, &window.record(owned))?;
            }
            if owned.kind == kind::SPACE_CLEAR {
                self.clear_damage(space_map::decode(&window.record(owned)));
            }
        }
        Ok(())
    }

    fn apply(&mut self, pid: PageId, record: &Record<'_>) -> Result<()> {
        match record.kind {
            kind::IMAGE => {
                let image =
                    unfold_image(record.body).ok_or_else(|| corrupt(record, "an image of impossible length"))?;
                self.start_anew(pid, record, &image, false);
            }
            kind::EXTENT_UNIT if record.body.len() == PAGE_BYTES => self.start_anew(pid, record, record.body, true),
            kind::EXTENT_UNIT => return Err(corrupt(record, "a unit of impossible length")),
            kind::SPACE_SET | kind::SPACE_CLEAR => self.change(pid, record, &|page, record| {
                let run = space_map::decode(record).ok_or_else(|| corrupt(record, "a space record of odd length"))?;
                space_map::mark(page, run, record.kind == kind::SPACE_SET);
                Ok(())
            })?,
            other => {
                let owner =
                    self.redo.owner(other).ok_or_else(|| corrupt(record, "a record kind without a redo function"))?;
                self.change(pid, record, &|page, record| owner.apply(page, record))?;
            }
        }
        Ok(())
    }

    /// Applies a record that starts the page anew, regardless of its former state.
    fn start_anew(&mut self, pid: PageId, record: &Record<'_>, bytes: &[u8], raw: bool) {
        self.damaged.remove(&pid);
        let pager = self.pager;
        let page = pager.fresh_frame(pid, raw).expect("a frame is found or made free");
        page.copy_in(bytes);
        self.mark_applied(&page, pid, record, raw);
    }

    fn mark_applied(&mut self, page: &Exclusive<'_>, pid: PageId, record: &Record<'_>, raw: bool) {
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

    /// Applies a change of an existing page, unless the page has it already.
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
        // Page LSN and `page_lsn_before` refer to whole mini-transactions: within one, the first record of a page decides for all of them.
        if self.mtr != record.lsn_end || !self.mtr_pages.contains(&pid) {
            if lsn >= record.lsn_end {
                return Ok(());
            }
            if lsn != record.page_lsn_before {
                let before = record.page_lsn_before;
                let what =
                    format!("the WAL continues from LSN {before}, the page has LSN {lsn}: a write of it was lost");
                self.damaged.insert(pid, what);
                return Ok(());
            }
        }
        apply(&page, record)?;
        self.mark_applied(&page, pid, record, false);
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

    /// Drops freed pages from the list of damaged ones: they need no repair.
    fn clear_damage(&mut self, run: Option<Run>) {
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
