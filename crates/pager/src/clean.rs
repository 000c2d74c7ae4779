//! The cleaner: writes dirty pages, because clean frames are needed or because the WAL would grow too long.
//!
//! For each batch: move the dirty marks (`rec_lsn` to `writing`) and copy each page under its shared latch, write the copies (`write_batch`), sync, and
//! only then clear the marks. Until then the page can neither be evicted nor passed by a checkpoint (PG-3). A page is written only when the WAL is durable
//! up to its page LSN (PG-2). Latches are only tried: the cleaner waits for no writer.

use stdx::sync::atomic::Ordering;

use crate::double_write::PAGES_MAX;
use crate::error::Result;
use crate::frame::{CLEAN, FREED, Frame, RAW, REFERENCED};
use crate::guard::Shared;
use crate::page::{self, Lsn, NO_PAGE, PageId};
use crate::pager::Pager;
use crate::write_batch::{BATCH_MAX, BatchWriter, CopiedPage};

/// Frames ahead of the clock hand that are examined: eviction will reach them soon.
const LOOK_AHEAD: usize = 8192;
/// Pages written in one call ahead of the clock hand. Threads that wait for a frame are notified after each batch.
const AHEAD_MAX: usize = 4 * PAGES_MAX;

/// Outcome for a page that looked dirty.
enum CopyOutcome {
    /// It is no longer dirty, is being changed, or its page LSN is not durable.
    Skipped,
    /// Nothing can reach it any more: its dirty mark was moved, and there is nothing to write.
    Unreachable,
    /// Its dirty mark was moved, and the copy must be written.
    Copied,
}

impl Pager {
    /// Cleans the frames that eviction will examine next. Returns the number of pages written.
    pub fn clean_ahead(&self) -> Result<usize> {
        self.pool.dirty_skipped.store(0, Ordering::Relaxed);
        self.write_frames(self.dirty_ahead())
    }

    /// Returns the dirty frames ahead of the clock hand: those not referenced since its last round, or referenced ones if there are no others.
    fn dirty_ahead(&self) -> Vec<usize> {
        let count = self.pool.frames.len();
        let hand = self.pool.clock_hand();
        let (mut cold, mut warm) = (Vec::new(), Vec::new());
        for step in 0..count {
            let found = !(cold.is_empty() && warm.is_empty());
            if step >= LOOK_AHEAD && found || cold.len() >= AHEAD_MAX {
                break;
            }
            let index = (hand + step) % count;
            let frame = &self.pool.frames[index];
            if frame.rec_lsn.load(Ordering::Relaxed) != CLEAN {
                let is_warm = frame.flags.load(Ordering::Relaxed) & REFERENCED != 0;
                if is_warm { &mut warm } else { &mut cold }.push(index);
            }
        }
        if cold.is_empty() {
            warm.truncate(AHEAD_MAX);
            return warm;
        }
        cold
    }

    /// Cleans every page with a change older than `target`. Returns the number of pages written.
    pub fn clean_until(&self, target: Lsn) -> Result<usize> {
        let is_old = |(index, frame): (usize, &Frame)| (frame.oldest_change() < target).then_some(index);
        self.write_frames(self.pool.used_frames().iter().enumerate().filter_map(is_old).collect())
    }

    /// Writes the dirty pages among `frames` in the order of their offsets. First waits for the WAL up to the newest of their page LSNs (PG-2).
    fn write_frames(&self, frames: Vec<usize>) -> Result<usize> {
        let mut order: Vec<(bool, PageId, usize)> = frames
            .into_iter()
            .map(|index| {
                let frame = &self.pool.frames[index];
                (frame.flags.load(Ordering::Relaxed) & RAW != 0, frame.pid.load(Ordering::Relaxed), index)
            })
            .filter(|(_, pid, _)| *pid != NO_PAGE)
            .collect();
        order.sort_unstable();
        let newest = order.iter().map(|(_, _, index)| self.pool.frames[*index].page_lsn.load(Ordering::Acquire)).max();
        if let Some(newest) = newest
            && let Some(wal) = self.wal_if_open()
            && wal.durable.get() < newest
        {
            wal.flush_to(newest)?;
        }
        let mut written = 0;
        let mut batch_writer = self.cleaner.lock();
        let (pages, units) = order.split_at(order.partition_point(|(raw, _, _)| !raw));
        for batch in pages.chunks(PAGES_MAX).chain(units.chunks(BATCH_MAX)) {
            written += self.write_batch(&mut batch_writer, batch)?;
            self.notify_cleaned();
        }
        Ok(written)
    }

    fn write_batch(&self, batch_writer: &mut BatchWriter, batch: &[(bool, PageId, usize)]) -> Result<usize> {
        batch_writer.settle()?;
        let mut copied: Vec<CopiedPage> = Vec::with_capacity(batch.len());
        let mut with_header = 0;
        for (raw, pid, index) in batch {
            match self.copy_for_write(*index, *pid, *raw, batch_writer.page_mut(copied.len())) {
                CopyOutcome::Skipped => {}
                CopyOutcome::Unreachable => self.pool.frames[*index].end_write(true),
                CopyOutcome::Copied => {
                    copied.push(CopiedPage { pid: *pid, frame: *index });
                    with_header += usize::from(!*raw);
                }
            }
        }
        if copied.is_empty() {
            return Ok(0);
        }
        let result = batch_writer.write(&copied, with_header);
        for page in &copied {
            self.pool.frames[page.frame].end_write(result.is_ok());
        }
        result?;
        self.pages_written.add(copied.len() as u64);
        Ok(copied.len())
    }

    /// Moves the dirty mark and copies the page.
    fn copy_for_write(&self, index: usize, pid: PageId, raw: bool, image: &mut [u8]) -> CopyOutcome {
        let frame = &self.pool.frames[index];
        if !frame.try_shared() {
            return CopyOutcome::Skipped;
        }
        let guard = Shared { pool: &self.pool, frame: index };
        let unchanged = guard.pid() == pid && (frame.flags.load(Ordering::Relaxed) & RAW != 0) == raw;
        let durable = self.wal_if_open().map_or(Lsn::MAX, |wal| wal.durable.get());
        if !unchanged || frame.page_lsn.load(Ordering::Acquire) > durable || !frame.start_write() {
            return CopyOutcome::Skipped;
        }
        if frame.flags.load(Ordering::Relaxed) & FREED != 0 {
            // The record that freed it is durable: compared above (PG-8).
            return CopyOutcome::Unreachable;
        }
        guard.page().copy_out(image);
        if !raw {
            debug_assert_eq!(guard.page().id(), pid);
            page::seal(image);
        }
        CopyOutcome::Copied
    }
}
