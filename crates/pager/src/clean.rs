//! Writes dirty pages: because frames are needed, or because the log would grow too long.

use stdx::sync::atomic::Ordering;

use crate::double_write::PAGES_MAX;
use crate::error::Result;
use crate::frame::{CLEAN, FREED, Frame, RAW, REFERENCED};
use crate::guard::Shared;
use crate::page::{self, Lsn, NO_PAGE, PageId};
use crate::pager::Pager;
use crate::write_batch::{BATCH_MAX, BatchWriter, CopiedPage};

/// Frames before the hand that are looked at: those it will meet soon.
const LOOK_AHEAD: usize = 8192;
/// Pages written in one go ahead of the hand; who waits for a frame is told after each batch.
const AHEAD_MAX: usize = 4 * PAGES_MAX;

/// What became of a dirty page.
enum CopyOutcome {
    /// It is no longer dirty, is being changed, or runs ahead of the log.
    No,
    /// Nobody can reach it any more: its dirty mark is taken over, and there is nothing to write.
    Dead,
    Taken,
}

impl Pager {
    /// Cleans what eviction will want next. Returns how many pages it wrote.
    pub fn clean_ahead(&self) -> Result<usize> {
        self.pool.dirty_skipped.store(0, Ordering::Relaxed);
        self.write_frames(self.dirty_ahead())
    }

    /// Dirty frames that the hand will meet next: those that nobody has used since it last came by, or else any.
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

    /// Cleans every page with a change older than `target`.
    pub fn clean_until(&self, target: Lsn) -> Result<usize> {
        let is_old = |(index, frame): (usize, &Frame)| (frame.oldest_change() < target).then_some(index);
        self.write_frames(self.pool.used_frames().iter().enumerate().filter_map(is_old).collect())
    }

    /// Writes those of `frames` that are dirty, in the order of their places on disk.
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
            && let Some(log) = self.wal_if_open()
            && log.durable.get() < newest
        {
            log.flush_to(newest)?;
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
        batch_writer.rewrite_unsettled(self.pool.data.as_ref())?;
        let mut copied: Vec<CopiedPage> = Vec::with_capacity(batch.len());
        let mut with_header = 0;
        for (raw, pid, index) in batch {
            match self.copy_for_write(*index, *pid, *raw, batch_writer.page_mut(copied.len())) {
                CopyOutcome::No => {}
                CopyOutcome::Dead => self.pool.frames[*index].end_write(true),
                CopyOutcome::Taken => {
                    copied.push(CopiedPage { pid: *pid, frame: *index });
                    with_header += usize::from(!*raw);
                }
            }
        }
        if copied.is_empty() {
            return Ok(0);
        }
        let result = batch_writer.write(self.pool.data.as_ref(), &copied, with_header);
        for page in &copied {
            self.pool.frames[page.frame].end_write(result.is_ok());
        }
        result?;
        self.pages_written.add(copied.len() as u64);
        Ok(copied.len())
    }

    /// Takes over the dirty mark and copies the page.
    fn copy_for_write(&self, index: usize, pid: PageId, raw: bool, image: &mut [u8]) -> CopyOutcome {
        let frame = &self.pool.frames[index];
        if !frame.try_shared() {
            return CopyOutcome::No;
        }
        let guard = Shared { pool: &self.pool, frame: index };
        let unchanged = guard.pid() == pid && (frame.flags.load(Ordering::Relaxed) & RAW != 0) == raw;
        let durable = self.wal_if_open().map_or(Lsn::MAX, |log| log.durable.get());
        if !unchanged || frame.page_lsn.load(Ordering::Acquire) > durable || !frame.start_write() {
            return CopyOutcome::No;
        }
        if frame.flags.load(Ordering::Relaxed) & FREED != 0 {
            // The record that freed it is durable: looked at above (P8).
            return CopyOutcome::Dead;
        }
        guard.page().copy_out(image);
        if !raw {
            debug_assert_eq!(guard.page().id(), pid);
            page::seal(image);
        }
        CopyOutcome::Taken
    }
}
