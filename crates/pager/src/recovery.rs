//! Recovery: from the checkpoint to the end of the WAL, every page gets the changes it lacks.
//!
//! Hard part: a page id may have been freed and reused several times between checkpoint and crash. A record of an earlier use may meet the bytes of a later
//! one on disk: a newer LSN (the record is skipped) or a raw unit (unreadable as a page). The WAL explains both, because every new use begins with an image
//! or a whole unit, which is applied regardless of the page's state. So an unreadable page is only noted, and dropped from the list if the WAL starts it
//! anew or frees it (PG-14).
//!
//! A record changes one page, so a batch of the WAL is applied page by page, in the order of the file, by several threads (PG-17, PG-22):
//!
//! ```text
//!   reader:           batch 1 | batch 2 | batch 3 | batch 4 ...     reads, verifies, calls the observer, groups by page
//!   appliers 0..n:              batch 1 | batch 2 | batch 3 ...     take the next few pages, read them in together, apply their records
//!   cleaner:                                                        writes dirty pages when the buffer pool has few clean ones
//! ```
//! A page that the WAL changes often is read and written once in a batch, and not each time its turn comes in WAL order. So the batch should be large
//! compared with the buffer pool; `Options::recovery_bytes` limits it.

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::frame::RAW;
use crate::guard::Exclusive;
use crate::page::{Lsn, PAGE_BYTES, PageId, WORD_LSN};
use crate::pager::Pager;
use crate::redo::RedoTable;
use crate::redo_batch::{RecordsOfPage, RedoBatch};
use crate::space_map;
use crate::wal::log_store::LogStore;
use crate::wal::read::{RecoveryTarget, WalEnd, WalReader};
use crate::wal::record::{Observer, Record, kind, unfold_image};

/// Bytes of WAL between two checks of a batch's size.
const READ_STEP: usize = 256 << 10;
/// Pages that an applier takes and reads in together.
const PAGES_TOGETHER: usize = 64;

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

/// Recovery in progress.
pub(crate) struct Recovery<'a> {
    pub pager: &'a Pager,
    pub redo: &'a RedoTable,
    pub observer: &'a mut dyn Observer,
    pub progress: &'a dyn Fn(&RecoveryReport),
    /// Pages that the storage has up to date are written too: an earlier opening may still write an older version of them (PG-31).
    pub rewrites_redone: bool,
    pub report: RecoveryReport,
}

impl Recovery<'_> {
    /// Redoes the WAL from `from` to its end, or as far as `until` allows. Returns where the WAL ends.
    pub fn run(&mut self, log: &Arc<dyn LogStore>, database: u64, from: Lsn, until: RecoveryTarget) -> Result<WalEnd> {
        self.report.from = from;
        let mut reader = WalReader::open(log, database, from, until)?;
        let pager = self.pager;
        let mut redo = PageRedo::new(pager, self.redo, if pager.is_manual() { 1 } else { threads() });
        redo.rewrites_redone = self.rewrites_redone;
        if pager.is_manual() {
            self.apply_all(&mut reader, &redo)?;
        } else {
            std::thread::scope(|scope| {
                let _cleaner = pager.recovery_cleaner(scope);
                self.apply_all(&mut reader, &redo)
            })?;
        }
        let end = reader.end();
        self.report.to = end.lsn;
        self.report.wall_ms = end.wall_ms;
        self.report.damaged = redo.into_damaged();
        Ok(end)
    }

    /// Reads and applies batch after batch. The next one is read while one is applied.
    fn apply_all(&mut self, reader: &mut WalReader, redo: &PageRedo<'_>) -> Result<()> {
        let (mut batch, mut next) = (RedoBatch::default(), RedoBatch::default());
        self.read(reader, &mut batch)?;
        while batch.read > 0 {
            grow_file_for(self.pager, &batch)?;
            if self.pager.is_manual() {
                redo.apply_batch(&batch)?;
                self.read(reader, &mut next)?;
            } else {
                std::thread::scope(|scope| {
                    let appliers: Vec<_> =
                        (0..redo.threads).map(|_| scope.spawn(|| redo.apply_pages(&batch))).collect();
                    let result = self.read(reader, &mut next);
                    for applier in appliers {
                        applier.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                    }
                    result
                })?;
                redo.end_batch(&batch);
            }
            self.report.records += batch.read;
            self.report.to = batch.to;
            self.report.applied = redo.applied.load(Ordering::Relaxed);
            (self.progress)(&self.report);
            std::mem::swap(&mut batch, &mut next);
        }
        Ok(())
    }

    /// Reads the next batch and shows it to the observer. It is empty at the end of the WAL.
    fn read(&mut self, reader: &mut WalReader, batch: &mut RedoBatch) -> Result<()> {
        batch.clear();
        // Two batches are in memory. Each may exceed its half by a step, by a chunk of the WAL or by one long mini-transaction.
        let memory = (self.pager.options.recovery_bytes / 2).max(1) as usize;
        let mut has_more = true;
        while has_more && batch.memory() < memory {
            let step = READ_STEP.min(memory);
            has_more = reader.next(step, &mut |record| {
                self.observer.observe(record);
                batch.push(record);
                Ok(())
            })?;
        }
        batch.group();
        Ok(())
    }
}

/// Grows the data file again if the crash took back a growth that the WAL relies on.
fn grow_file_for(pager: &Pager, batch: &RedoBatch) -> Result<()> {
    let Some(last) = batch.last_page() else { return Ok(()) };
    let needed = (last + 1) * PAGE_BYTES as u64;
    if needed <= pager.pool.data.len() {
        return Ok(());
    }
    let bytes = needed.next_multiple_of(space_map::FIRST_BYTES);
    pager.pool.data.grow(bytes).map_err(|error| Error::io("growing the data file during recovery", error))
}

/// Returns the number of threads that apply: one more than processors, so that one may wait for reads, at most 16.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get() + 1).min(16)
}

/// Why a page cannot be brought up to date.
struct Damage {
    what: String,
    /// End of the last record that was not applied for it (PG-23).
    lsn: Lsn,
}

/// Applies batches to pages, from several threads.
struct PageRedo<'a> {
    pager: &'a Pager,
    redo: &'a RedoTable,
    /// Number of threads that apply a batch.
    threads: usize,
    rewrites_redone: bool,
    /// Pages that cannot be brought up to date. The entry of a page is used by the thread that has the page in the current batch.
    damaged: Mutex<BTreeMap<PageId, Damage>>,
    /// The first page of the batch that no thread has taken.
    next: AtomicUsize,
    applied: AtomicU64,
}

impl<'a> PageRedo<'a> {
    fn new(pager: &'a Pager, redo: &'a RedoTable, threads: usize) -> PageRedo<'a> {
        let (next, applied) = (AtomicUsize::new(0), AtomicU64::new(0));
        PageRedo { pager, redo, threads, rewrites_redone: false, damaged: Mutex::default(), next, applied }
    }

    /// Applies a batch in this thread.
    fn apply_batch(&self, batch: &RedoBatch) -> Result<()> {
        self.apply_pages(batch)?;
        self.end_batch(batch);
        Ok(())
    }

    /// Takes pages of the batch until none is left, and applies their records. Each thread that applies the batch calls it.
    fn apply_pages(&self, batch: &RedoBatch) -> Result<()> {
        // Frames that are being read are latched: all threads together leave most frames to others.
        let together = (self.pager.pool.frames.len() / 16 / self.threads).clamp(1, PAGES_TOGETHER);
        loop {
            let from = self.next.fetch_add(together, Ordering::Relaxed);
            if from >= batch.page_count() {
                return Ok(());
            }
            let range = from..(from + together).min(batch.page_count());
            let wanted: Vec<PageId> = batch
                .pages(range.clone())
                .filter_map(|page| (!page.starts_anew()).then_some(page.pid()))
                .filter(|pid| self.pager.is_in_file(*pid) && !self.pager.is_resident(*pid))
                .collect();
            self.pager.load_all(&wanted)?;
            let mut applied = 0;
            for page in batch.pages(range) {
                applied += self.apply_page(page)?;
            }
            self.applied.fetch_add(applied, Ordering::Relaxed);
        }
    }

    /// Completes a batch when all threads have returned from `apply_pages`: drops freed pages from the list of damaged ones, which need no repair.
    fn end_batch(&self, batch: &RedoBatch) {
        self.next.store(0, Ordering::Relaxed);
        let mut damaged = self.damaged.lock();
        for (lsn, run) in batch.freed() {
            if damaged.is_empty() {
                return;
            }
            // Damage found in a later use of the page stays (PG-23).
            let pids: Vec<PageId> = damaged
                .range(run.first..run.first + u64::from(run.pages))
                .filter(|(_, damage)| damage.lsn <= *lsn)
                .map(|(pid, _)| *pid)
                .collect();
            for pid in pids {
                damaged.remove(&pid);
            }
        }
    }

    /// Returns the pages that could not be brought up to date.
    fn into_damaged(self) -> Vec<(PageId, String)> {
        std::mem::take(&mut *self.damaged.lock()).into_iter().map(|(pid, damage)| (pid, damage.what)).collect()
    }

    /// Applies the records of a page that it lacks. Returns their number.
    fn apply_page(&self, page: RecordsOfPage<'_>) -> Result<u64> {
        let pid = page.pid();
        let damage = self.damaged.lock().remove(&pid);
        let mut state = PageState { redo: self, pid, page: None, is_verified: false, mtr: 0, damage, applied: 0 };
        for record in page.records() {
            state.apply(&record)?;
        }
        if let Some(damage) = state.damage {
            self.damaged.lock().insert(pid, damage);
        }
        Ok(state.applied)
    }
}

/// A page while its records of a batch are applied.
struct PageState<'a> {
    redo: &'a PageRedo<'a>,
    pid: PageId,
    page: Option<Exclusive<'a>>,
    /// The owner of the page has verified it since the latch was taken.
    is_verified: bool,
    /// End of the mini-transaction of the last record that was applied.
    mtr: Lsn,
    damage: Option<Damage>,
    applied: u64,
}

impl PageState<'_> {
    fn apply(&mut self, record: &Record<'_>) -> Result<()> {
        match record.kind {
            kind::IMAGE => {
                let image =
                    unfold_image(record.body).ok_or_else(|| corrupt(record, "an image of impossible length"))?;
                self.start_anew(record, &image, false)
            }
            kind::EXTENT_UNIT if record.body.len() == PAGE_BYTES => self.start_anew(record, record.body, true),
            kind::EXTENT_UNIT => Err(corrupt(record, "a unit of impossible length")),
            kind::SPACE_SET | kind::SPACE_CLEAR => {
                let Some(page) = self.page_for(record)? else { return Ok(()) };
                let run = space_map::decode(record).ok_or_else(|| corrupt(record, "a space record of odd length"))?;
                space_map::mark(page, run, record.kind == kind::SPACE_SET);
                self.mark_applied(record, false);
                Ok(())
            }
            other => {
                let owner = self
                    .redo
                    .redo
                    .owner(other)
                    .ok_or_else(|| corrupt(record, "a record kind without a redo function"))?;
                let is_verified = self.is_verified;
                let Some(page) = self.page_for(record)? else { return Ok(()) };
                if !is_verified {
                    owner.verify(page, record)?;
                }
                owner.apply(page, record)?;
                self.is_verified = true;
                self.mark_applied(record, false);
                Ok(())
            }
        }
    }

    /// Applies a record that starts the page anew, regardless of its former state.
    fn start_anew(&mut self, record: &Record<'_>, bytes: &[u8], raw: bool) -> Result<()> {
        self.damage = None;
        // Its latch is taken again.
        (self.page, self.is_verified) = (None, false);
        let page = self.redo.pager.fresh_frame(self.pid, raw)?;
        page.copy_in(bytes);
        self.page = Some(page);
        self.mark_applied(record, raw);
        Ok(())
    }

    fn mark_applied(&mut self, record: &Record<'_>, raw: bool) {
        let page = self.page.as_ref().expect("the record was applied to it");
        debug_assert!(record.lsn_end >= self.mtr, "PG-22: the records of a page are applied in WAL order");
        self.mtr = record.lsn_end;
        if !raw {
            page.store(WORD_LSN, record.lsn_end);
        }
        page.header().mark_dirty(record.lsn_start, record.lsn_end);
        self.applied += 1;
    }

    /// Returns the page if it lacks the change of this record; `None` if it has it already, or is damaged.
    fn page_for(&mut self, record: &Record<'_>) -> Result<Option<&Exclusive<'_>>> {
        if let Some(damage) = &mut self.damage {
            damage.lsn = record.lsn_end;
            return Ok(None);
        }
        if self.page.is_none() {
            match self.redo.pager.exclusive(self.pid) {
                Ok(page) => self.page = Some(page),
                Err(Error::Corrupt { what, .. }) => return Ok(self.damaged(record, what)),
                Err(error) => return Err(error),
            }
        }
        let page = self.page.as_ref().expect("latched above");
        if page.header().flags.load(Ordering::Relaxed) & RAW != 0 {
            return Ok(self.damaged(record, "a value where a page was expected".into()));
        }
        // Page LSN and `page_lsn_before` refer to whole mini-transactions: within one, the first record of a page decides for all of them.
        if self.mtr != record.lsn_end {
            let (lsn, before) = (page.page().lsn(), record.page_lsn_before);
            if lsn >= record.lsn_end {
                if self.redo.rewrites_redone {
                    page.header().mark_dirty(record.lsn_start, lsn);
                }
                return Ok(None);
            }
            if lsn != before {
                let what =
                    format!("the WAL continues from LSN {before}, the page has LSN {lsn}: a write of it was lost");
                return Ok(self.damaged(record, what));
            }
        }
        Ok(self.page.as_ref())
    }

    fn damaged(&mut self, record: &Record<'_>, what: String) -> Option<&Exclusive<'_>> {
        (self.page, self.is_verified) = (None, false);
        self.damage = Some(Damage { what, lsn: record.lsn_end });
        None
    }
}

fn corrupt(record: &Record<'_>, what: &str) -> Error {
    Error::Corrupt {
        what: format!("{what} (kind {:#x}, LSN {})", record.kind, record.lsn_end),
        file: "log".into(),
        page: record.page,
    }
}
