//! Writes dirty pages: because frames are needed, or because the log would grow too long.
//!
//! A batch: take over the dirty marks and copy each page under its shared latch, write the copies to the double-write file, write them to their places,
//! sync, and only then settle the marks. If that fails, the batch is written again before the next one, for a torn page may need its copy in the double
//! write. Until the marks are settled the page can neither be evicted nor passed by a checkpoint (P3). A page goes to disk only when the
//! log is durable past its LSN (P2).

use std::sync::Arc;

use os::{Aligned, Device};
use stdx::sync::atomic::Ordering;

use crate::doublewrite::{DoubleWrite, PAGES_MAX};
use crate::error::{Error, Result};
use crate::frame::{CLEAN, FREED, Frame, RAW, REFERENCED};
use crate::page::{self, Lsn, NO_PAGE, PAGE_BYTES, PageId};
use crate::pager::Pager;

/// Frames before the hand that are looked at: those it will meet soon.
const LOOK_AHEAD: usize = 8192;
/// Pages written in one go ahead of the hand; who waits for a frame is told after each batch.
const AHEAD_MAX: usize = 4 * PAGES_MAX;

/// Units of values written with one sync: they need no double write, so its size does not bound them.
const BATCH_MAX: usize = 1024;
const _: () = assert!(BATCH_MAX >= PAGES_MAX);

/// State of the one who cleans; there is one at a time.
pub(crate) struct Cleaner {
    double_write: DoubleWrite,
    /// Block 0 is the double write's header, then the pages, those with headers first.
    buffer: Aligned,
    /// The pages with headers of a batch that is in the double write but not surely at home: it is written again before another takes its place there.
    unsettled: Vec<Copied>,
}

/// What became of a dirty page.
enum Copy {
    /// It is no longer dirty, is being changed, or runs ahead of the log.
    No,
    /// Nobody can reach it any more: its dirty mark is taken over, and there is nothing to write.
    Dead,
    Taken,
}

/// A page copied out and waiting to be written.
#[derive(Clone)]
struct Copied {
    pid: PageId,
    frame: usize,
}

impl Cleaner {
    pub fn new(double_write: DoubleWrite) -> Cleaner {
        let buffer = Aligned::with_capacity((1 + BATCH_MAX) * PAGE_BYTES);
        Cleaner { double_write, buffer, unsettled: Vec::new() }
    }
}

impl Pager {
    /// Cleans what eviction will want next. Returns how many pages it wrote.
    pub fn clean_ahead(&self) -> Result<usize> {
        self.pool.passed_dirty.store(0, Ordering::Relaxed);
        self.write_frames(self.dirty_ahead())
    }

    /// Dirty frames that the hand will meet next: those that nobody has used since it last came by, or else any.
    fn dirty_ahead(&self) -> Vec<usize> {
        let count = self.pool.frames.len();
        let hand = self.pool.hand();
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
            && let Some(log) = self.log_if_open()
            && log.durable.get() < newest
        {
            log.flush_to(newest)?;
        }
        let mut written = 0;
        let mut cleaner = self.cleaner.lock();
        let (pages, units) = order.split_at(order.partition_point(|(raw, _, _)| !raw));
        for batch in pages.chunks(PAGES_MAX).chain(units.chunks(BATCH_MAX)) {
            written += self.write_batch(&mut cleaner, batch)?;
            self.tell_cleaned();
        }
        Ok(written)
    }

    fn write_batch(&self, cleaner: &mut Cleaner, batch: &[(bool, PageId, usize)]) -> Result<usize> {
        let Cleaner { double_write, buffer, unsettled } = cleaner;
        if !unsettled.is_empty() {
            self.write_home(buffer, unsettled)?;
            unsettled.clear();
        }
        let mut copied: Vec<Copied> = Vec::with_capacity(batch.len());
        let mut with_header = 0;
        for (raw, pid, index) in batch {
            let image = &mut buffer.as_mut_slice()[(1 + copied.len()) * PAGE_BYTES..][..PAGE_BYTES];
            match self.copy_for_write(*index, *pid, *raw, image) {
                Copy::No => {}
                Copy::Dead => self.pool.frames[*index].end_write(true),
                Copy::Taken => {
                    copied.push(Copied { pid: *pid, frame: *index });
                    with_header += usize::from(!*raw);
                }
            }
        }
        if copied.is_empty() {
            return Ok(0);
        }
        let pids: Vec<PageId> = copied[..with_header].iter().map(|page| page.pid).collect();
        let raw = copied[with_header..].iter().map(|page| page.pid);
        let result = double_write.write(buffer.as_mut_slice(), &pids, raw).and_then(|()| {
            self.write_home(buffer, &copied).inspect_err(|_| unsettled.extend(copied[..with_header].iter().cloned()))
        });
        for page in &copied {
            self.pool.frames[page.frame].end_write(result.is_ok());
        }
        result?;
        self.pages_written.add(copied.len() as u64);
        Ok(copied.len())
    }

    /// Takes over the dirty mark and copies the page.
    fn copy_for_write(&self, index: usize, pid: PageId, raw: bool, image: &mut [u8]) -> Copy {
        let frame = &self.pool.frames[index];
        if !frame.try_shared() {
            return Copy::No;
        }
        let guard = crate::guard::Shared { pool: &self.pool, frame: index };
        let unchanged = guard.pid() == pid && (frame.flags.load(Ordering::Relaxed) & RAW != 0) == raw;
        let durable = self.log_if_open().map_or(Lsn::MAX, |log| log.durable.get());
        if !unchanged || frame.page_lsn.load(Ordering::Acquire) > durable || !frame.start_write() {
            return Copy::No;
        }
        if frame.flags.load(Ordering::Relaxed) & FREED != 0 {
            // The record that freed it is durable: looked at above (P8).
            return Copy::Dead;
        }
        guard.page().copy_out(image);
        if !raw {
            debug_assert_eq!(guard.page().id(), pid);
            page::seal(image);
        }
        Copy::Taken
    }

    /// Writes the copies to their places, neighbours in one write, and syncs.
    fn write_home(&self, buffer: &Aligned, copied: &[Copied]) -> Result<()> {
        let pages = &buffer.as_slice()[PAGE_BYTES..];
        let mut writes: Vec<(u64, &[u8])> = Vec::new();
        let mut start = 0;
        for at in 1..=copied.len() {
            if at == copied.len() || copied[at].pid != copied[at - 1].pid + 1 {
                writes.push((copied[start].pid * PAGE_BYTES as u64, &pages[start * PAGE_BYTES..at * PAGE_BYTES]));
                start = at;
            }
        }
        self.pool.data.write_many(&writes).map_err(|error| Error::io("writing pages", error))?;
        self.pool.data.sync().map_err(|error| Error::io("syncing the data file", error))
    }
}

/// The device of the double write, opened or made.
pub(crate) fn open_double_write(folder: &dyn os::Folder) -> Result<Arc<dyn Device>> {
    let name = crate::DOUBLE_WRITE_FILE;
    let device = folder.open(name, os::Open::Create).map_err(|error| Error::io(format!("opening '{name}'"), error))?;
    let bytes = ((1 + PAGES_MAX) * PAGE_BYTES) as u64;
    if device.len() < bytes {
        device.prefill(bytes).map_err(|error| Error::io(format!("filling '{name}'"), error))?;
    }
    Ok(device)
}
