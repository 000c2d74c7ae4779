//! Page id to frame, and the frames themselves.
//!
//! A page lives in its preferred frame if that was free when the page came in (one look at the frame's header finds it), else wherever there was room,
//! found through the table ("predictive translation", PrediCache, SIGMOD'26). Frames are never unmapped: a sight of a frame that has meanwhile been
//! given to another page is harmless, because the version moved (P5).

use std::sync::Arc;

use os::memory::Mapping;
use os::{Aligned, Device};
use stdx::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::frame::{CLEAN, Frame, LOADING, PINNED, RAW, REFERENCED, UNVERIFIED};
use crate::page::{self, NO_PAGE, PAGE_BYTES, PageId, PageRef, Words};
use crate::page_table::PageTable;
use crate::parking_lot::ParkingLot;

pub struct BufferPool {
    pub(crate) frames: Vec<Frame>,
    memory: Mapping,
    table: PageTable,
    pub(crate) lot: ParkingLot,
    pub(crate) data: Arc<dyn Device>,
    /// The clock hand: next frame that eviction looks at.
    clock_hand: AtomicUsize,
    /// One above the highest frame that ever held a page: whoever looks at all frames looks no further. Small data in a large pool keeps to the low ones.
    used_count: AtomicUsize,
    zero_page: Box<Words>,
    pub(crate) misses: stdx::counter::Counter,
    pub(crate) evictions: stdx::counter::Counter,
    /// Dirty frames that the hand had to pass since the cleaner last looked.
    pub(crate) dirty_skipped: AtomicU64,
}

/// So many dirty frames passed are worth a call for the cleaner, and it has work at once; a few in passing are not.
pub(crate) const SKIPPED_MANY: u64 = 64;
/// A search passes no more dirty frames than this: looking at a header that is not in the cache costs as much as a tenth of a page's write.
const SKIPPED_MAX: u64 = 1024;

/// Result of a search for a frame to put a page into.
pub(crate) enum Claim {
    /// X-latched, empty, in nobody's table.
    Frame(usize),
    /// What the hand met was dirty or latched: clean something first.
    Exhausted,
}

impl BufferPool {
    pub fn new(frame_count: usize, data: Arc<dyn Device>) -> Result<BufferPool> {
        let memory =
            os::memory::map(frame_count * PAGE_BYTES).map_err(|error| Error::io("mapping the frames", error))?;
        assert!((memory.as_ptr() as usize).is_multiple_of(PAGE_BYTES) && memory.len() >= frame_count * PAGE_BYTES);
        Ok(BufferPool {
            frames: (0..frame_count).map(|_| Frame::default()).collect(),
            memory,
            table: PageTable::new(frame_count),
            lot: ParkingLot::default(),
            data,
            clock_hand: AtomicUsize::new(0),
            used_count: AtomicUsize::new(0),
            zero_page: Box::new(std::array::from_fn(|_| AtomicU64::new(0))),
            misses: Default::default(),
            evictions: Default::default(),
            dirty_skipped: AtomicU64::new(0),
        })
    }

    /// The words of a frame.
    #[inline(always)]
    pub(crate) fn words(&self, frame: usize) -> &Words {
        assert!(frame < self.frames.len());
        // SAFETY: the mapping covers `frames.len()` pages, is page-aligned, lives as long as `self`, started as zeros, and is touched only through
        // these atomics (P4): devices read and write through buffers of their own.
        unsafe { &*self.memory.as_ptr().cast::<Words>().add(frame) }
    }

    /// The frames that may hold pages.
    pub(crate) fn used_frames(&self) -> &[Frame] {
        &self.frames[..self.used_count.load(Ordering::SeqCst)]
    }

    /// Where the clock hand stands.
    pub(crate) fn clock_hand(&self) -> usize {
        self.clock_hand.load(Ordering::Relaxed) % self.frames.len()
    }

    pub(crate) fn zero_page(&self) -> &Words {
        &self.zero_page
    }

    fn preferred(&self, pid: PageId) -> usize {
        // Page numbers are given out from the start of the file, so a small data set touches few frames, and neighbours share a huge page.
        let frames = self.frames.len() as u64;
        (if pid < frames { pid } else { pid % frames }) as usize
    }

    /// The frame that holds `pid` at this moment, if any. Whoever uses it checks the id again under a version or latch.
    #[inline]
    pub(crate) fn find(&self, pid: PageId) -> Option<usize> {
        // No page has these numbers, but empty frames and empty table entries do; damaged pointers may name them.
        if pid == 0 || pid == NO_PAGE {
            return None;
        }
        let preferred = self.preferred(pid);
        if self.frames[preferred].pid.load(Ordering::Acquire) == pid {
            return Some(preferred);
        }
        self.table.find(pid)
    }

    /// Prefetches the header of the preferred frame and the lines of its page that every look begins with.
    #[inline]
    pub(crate) fn prefetch_lines(&self, pid: PageId, lines: usize) {
        let preferred = self.preferred(pid);
        stdx::prefetch(&self.frames[preferred]);
        let words = self.words(preferred);
        for line in 0..lines {
            stdx::prefetch(&words[line * 8]);
        }
    }

    /// Looks for a frame for `pid`: the preferred one if empty, else by second chance.
    pub(crate) fn claim(&self, pid: PageId) -> Claim {
        let preferred = self.preferred(pid);
        if self.try_claim_empty(preferred) {
            return Claim::Frame(preferred);
        }
        let mut dirty = 0;
        for _ in 0..self.frames.len() * 2 + 64 {
            let index = self.clock_hand.fetch_add(1, Ordering::Relaxed) % self.frames.len();
            let frame = &self.frames[index];
            if frame.pid.load(Ordering::Relaxed) == NO_PAGE {
                if self.try_claim_empty(index) {
                    return Claim::Frame(index);
                }
                continue;
            }
            let flags = frame.flags.load(Ordering::Relaxed);
            if flags & (REFERENCED | PINNED) != 0 {
                frame.flags.fetch_and(!REFERENCED, Ordering::Relaxed);
                continue;
            }
            if frame.oldest_change() != CLEAN {
                dirty += 1;
                if dirty == SKIPPED_MAX {
                    break;
                }
                continue;
            }
            if self.evict(index) {
                if dirty > 0 {
                    self.dirty_skipped.fetch_add(dirty, Ordering::Relaxed);
                }
                return Claim::Frame(index);
            }
        }
        self.dirty_skipped.fetch_add(dirty.max(SKIPPED_MANY), Ordering::Relaxed);
        Claim::Exhausted
    }

    /// The hand has passed many dirty frames since the cleaner last looked.
    #[inline]
    pub(crate) fn wants_cleaning(&self) -> bool {
        self.dirty_skipped.load(Ordering::Relaxed) >= SKIPPED_MANY
    }

    fn try_claim_empty(&self, index: usize) -> bool {
        let frame = &self.frames[index];
        if frame.pid.load(Ordering::Relaxed) != NO_PAGE || !frame.try_exclusive() {
            return false;
        }
        if frame.pid.load(Ordering::Relaxed) == NO_PAGE {
            return true;
        }
        frame.unlock_exclusive(&self.lot);
        false
    }

    /// Takes a clean page out of its frame; the frame stays X-latched (P6).
    fn evict(&self, index: usize) -> bool {
        let frame = &self.frames[index];
        if !frame.try_exclusive() {
            return false;
        }
        let pid = frame.pid.load(Ordering::Relaxed);
        if pid == NO_PAGE {
            return true;
        }
        if frame.oldest_change() != CLEAN || frame.flags.load(Ordering::Relaxed) & PINNED != 0 {
            frame.unlock_exclusive(&self.lot);
            return false;
        }
        self.empty(index, pid);
        self.evictions.add(1);
        true
    }

    fn empty(&self, index: usize, pid: PageId) {
        let frame = &self.frames[index];
        debug_assert!(frame.is_exclusive());
        self.table.remove(pid, index);
        frame.pid.store(NO_PAGE, Ordering::Release);
        frame.flags.store(0, Ordering::Relaxed);
        frame.page_lsn.store(0, Ordering::Relaxed);
    }

    /// Gives an X-latched empty frame to `pid`; false if another frame has it by now (then the claimed one is released).
    pub(crate) fn assign(&self, index: usize, pid: PageId, flags: u32) -> bool {
        let frame = &self.frames[index];
        if self.table.insert(pid, index).is_err() {
            frame.unlock_exclusive(&self.lot);
            return false;
        }
        frame.flags.store(flags | REFERENCED, Ordering::Relaxed);
        frame.pid.store(pid, Ordering::Release);
        // Before the page can be changed, so whoever looks for changed pages after the log has them sees the frame (P3).
        if index >= self.used_count.load(Ordering::Relaxed) {
            self.used_count.fetch_max(index + 1, Ordering::SeqCst);
        }
        true
    }

    /// Takes back `assign` after a failed read, and releases the frame.
    pub(crate) fn unassign(&self, index: usize, pid: PageId) {
        self.empty(index, pid);
        self.frames[index].unlock_exclusive(&self.lot);
    }

    /// Fills a settled frame from bytes that came from disk and releases it.
    pub(crate) fn fill(&self, index: usize, pid: PageId, bytes: &[u8], raw: bool) -> Result<()> {
        if !raw && let Err(what) = page::verify(bytes, pid) {
            self.unassign(index, pid);
            return Err(Error::corrupt_page(pid, what));
        }
        let (words, frame) = (self.words(index), &self.frames[index]);
        page::copy_in(words, bytes);
        let lsn = if raw { 0 } else { PageRef { words }.lsn() };
        frame.page_lsn.store(lsn, Ordering::Relaxed);
        frame.flags.fetch_and(!LOADING, Ordering::Relaxed);
        frame.unlock_exclusive(&self.lot);
        Ok(())
    }

    pub(crate) fn load_flags(raw: bool) -> u32 {
        LOADING | if raw { RAW | UNVERIFIED } else { 0 }
    }

    /// True if the page is in memory: neither absent nor on its way.
    #[inline]
    pub(crate) fn has(&self, pid: PageId) -> bool {
        self.find(pid).is_some_and(|frame| self.frames[frame].flags.load(Ordering::Relaxed) & LOADING == 0)
    }

    /// Every frame has held a page by now: what is read in takes the place of something else.
    pub(crate) fn is_crowded(&self) -> bool {
        self.used_count.load(Ordering::Relaxed) == self.frames.len()
    }
}

/// A thread keeps a buffer of up to so many bytes for its next reads.
const READ_BUFFER_KEPT: usize = 64 * PAGE_BYTES;

thread_local! {
    static READ_BUFFER: std::cell::RefCell<Option<Aligned>> = const { std::cell::RefCell::new(None) };
}

/// Lends an aligned buffer of the calling thread, of `pages` pages.
pub(crate) fn with_read_buffer<R>(pages: usize, f: impl FnOnce(&mut [u8]) -> R) -> R {
    // Taken out meanwhile: who waits inside `f` may run other things.
    let mut buffer = READ_BUFFER
        .take()
        .filter(|buffer| buffer.len() >= pages * PAGE_BYTES)
        .unwrap_or_else(|| Aligned::with_capacity(pages * PAGE_BYTES));
    let result = f(&mut buffer.as_mut_slice()[..pages * PAGE_BYTES]);
    if buffer.len() <= READ_BUFFER_KEPT {
        READ_BUFFER.set(Some(buffer));
    }
    result
}
