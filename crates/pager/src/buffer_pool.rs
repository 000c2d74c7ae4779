//! The buffer pool: frames, their memory, and the lookup from page id to frame.
//!
//! A page is loaded into its preferred frame if that is empty, so that one load of a frame header finds it; otherwise into any free frame, found through
//! the page table ("predictive translation", PrediCache, SIGMOD'26). Frames are never unmapped. A view of a frame that was given to another page in the
//! meantime is harmless, because its version has changed (PG-5).

use std::sync::Arc;

use os::memory::Mapping;
use os::{Aligned, Device};
use stdx::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::capture::Capture;
use crate::error::{Error, Result};
use crate::frame::{CLEAN, Frame, LOADING, PINNED, RAW, REFERENCED, UNVERIFIED};
use crate::page::{self, Lsn, NO_PAGE, PAGE_BYTES, PageId, PageRef, Words};
use crate::page_table::PageTable;
use crate::parking_lot::ParkingLot;

/// The frames of one database and the memory of their pages.
pub struct BufferPool {
    pub(crate) frames: Vec<Frame>,
    memory: Mapping,
    table: PageTable,
    pub(crate) lot: ParkingLot,
    pub(crate) data: Arc<dyn Device>,
    /// The clock hand: the next frame that eviction examines.
    clock_hand: AtomicUsize,
    /// One above the highest frame that ever held a page; scans of all frames stop there. Small data in a large buffer pool uses the low frames only.
    used_count: AtomicUsize,
    zero_page: Box<Words>,
    /// Keeps the images of pages that change while a page snapshot exists.
    pub(crate) capture: Capture,
    /// The newest page LSN that may be read from the device. It is the instant of a snapshot whose pages these are.
    pub(crate) lsn_max: Lsn,
    pub(crate) misses: stdx::counter::Counter,
    pub(crate) evictions: stdx::counter::Counter,
    /// Dirty frames that the clock hand has skipped since the cleaner last ran.
    pub(crate) dirty_skipped: AtomicU64,
}

/// The cleaner is woken after this many skipped dirty frames: then it has work at once. A few are not worth a wake-up.
pub(crate) const SKIPPED_MANY: u64 = 64;
/// Dirty frames that one search skips at most: reading a header that is not in the CPU cache costs about a tenth of writing a page.
const SKIPPED_MAX: u64 = 1024;

/// Result of the search for a frame to load a page into.
pub(crate) enum Claim {
    /// An X-latched, empty frame that is in no table.
    Frame(usize),
    /// The clock hand found only dirty or latched frames: the cleaner must run first.
    Exhausted,
}

impl BufferPool {
    pub fn new(frame_count: usize, data: Arc<dyn Device>) -> Result<BufferPool> {
        let memory =
            os::memory::map(frame_count * PAGE_BYTES).map_err(|error| Error::io("mapping the buffer pool", error))?;
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
            capture: Capture::default(),
            lsn_max: Lsn::MAX,
            misses: Default::default(),
            evictions: Default::default(),
            dirty_skipped: AtomicU64::new(0),
        })
    }

    /// Returns the words of a frame.
    #[inline(always)]
    pub(crate) fn words(&self, frame: usize) -> &Words {
        assert!(frame < self.frames.len());
        // SAFETY: the mapping covers `frames.len()` pages, is page-aligned, lives as long as `self`, is zero-initialised, and is accessed only
        // through these atomics (PG-4): devices read and write through buffers of their own.
        unsafe { &*self.memory.as_ptr().cast::<Words>().add(frame) }
    }

    /// Returns the frames that may hold pages.
    pub(crate) fn used_frames(&self) -> &[Frame] {
        &self.frames[..self.used_count.load(Ordering::SeqCst)]
    }

    /// Returns the position of the clock hand.
    pub(crate) fn clock_hand(&self) -> usize {
        self.clock_hand.load(Ordering::Relaxed) % self.frames.len()
    }

    pub(crate) fn zero_page(&self) -> &Words {
        &self.zero_page
    }

    fn preferred(&self, pid: PageId) -> usize {
        // Page ids are allocated from the start of the file, so a small data set touches few frames and neighbours share a huge page.
        let frames = self.frames.len() as u64;
        (if pid < frames { pid } else { pid % frames }) as usize
    }

    /// Returns the frame that holds `pid` at this moment. The caller checks the id again under a version or a latch.
    #[inline]
    pub(crate) fn find(&self, pid: PageId) -> Option<usize> {
        // No page has these ids, but empty frames and empty table entries do; damaged pointers may contain them.
        if pid == 0 || pid == NO_PAGE {
            return None;
        }
        let preferred = self.preferred(pid);
        if self.frames[preferred].pid.load(Ordering::Acquire) == pid {
            return Some(preferred);
        }
        self.table.find(pid)
    }

    /// Prefetches the header of the preferred frame and the first `lines` cache lines of its page.
    #[inline]
    pub(crate) fn prefetch_lines(&self, pid: PageId, lines: usize) {
        let preferred = self.preferred(pid);
        stdx::prefetch(&self.frames[preferred]);
        let words = self.words(preferred);
        for line in 0..lines {
            stdx::prefetch(&words[line * 8]);
        }
    }

    /// Finds a frame for `pid`: the preferred one if it is empty, else the clock hand's next victim (second chance).
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

    /// Returns true if the clock hand has skipped many dirty frames since the cleaner last ran.
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

    /// Evicts a clean page from its frame; the frame stays X-latched (PG-6).
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

    /// Assigns an X-latched empty frame to `pid`. Returns false, and releases the frame, if the page is in another frame by now.
    pub(crate) fn assign(&self, index: usize, pid: PageId, flags: u32) -> bool {
        let frame = &self.frames[index];
        if self.table.insert(pid, index).is_err() {
            frame.unlock_exclusive(&self.lot);
            return false;
        }
        frame.flags.store(flags | REFERENCED, Ordering::Relaxed);
        frame.pid.store(pid, Ordering::Release);
        // Stored before the page can be changed, so that a checkpoint that follows the append sees the frame (PG-3).
        if index >= self.used_count.load(Ordering::Relaxed) {
            self.used_count.fetch_max(index + 1, Ordering::SeqCst);
        }
        true
    }

    /// Reverts `assign` after a failed read and releases the frame.
    pub(crate) fn unassign(&self, index: usize, pid: PageId) {
        self.empty(index, pid);
        self.frames[index].unlock_exclusive(&self.lot);
    }

    /// Fills an assigned frame with bytes read from disk, checks them unless they are a raw unit, and releases the latch.
    pub(crate) fn fill(&self, index: usize, pid: PageId, bytes: &[u8], raw: bool) -> Result<()> {
        if !raw && let Err(what) = page::verify(bytes, pid) {
            self.unassign(index, pid);
            return Err(Error::corrupt_page(pid, what));
        }
        let (words, frame) = (self.words(index), &self.frames[index]);
        page::copy_in(words, bytes);
        let lsn = if raw { 0 } else { PageRef { words }.lsn() };
        if lsn > self.lsn_max {
            self.unassign(index, pid);
            return Err(Error::corrupt_page(pid, "the snapshot has no image of it (PG-26)"));
        }
        frame.page_lsn.store(lsn, Ordering::Relaxed);
        frame.flags.fetch_and(!LOADING, Ordering::Relaxed);
        frame.unlock_exclusive(&self.lot);
        Ok(())
    }

    pub(crate) fn load_flags(raw: bool) -> u32 {
        LOADING | if raw { RAW | UNVERIFIED } else { 0 }
    }

    /// Returns true if the page is in memory and not still being read.
    #[inline]
    pub(crate) fn has(&self, pid: PageId) -> bool {
        self.find(pid).is_some_and(|frame| self.frames[frame].flags.load(Ordering::Relaxed) & LOADING == 0)
    }

    /// Returns true if every frame has held a page: each further read evicts another page.
    pub(crate) fn is_crowded(&self) -> bool {
        self.used_count.load(Ordering::Relaxed) == self.frames.len()
    }
}

/// Largest read buffer that a thread keeps for its next reads, in bytes.
const READ_BUFFER_KEPT: usize = 64 * PAGE_BYTES;

thread_local! {
    static READ_BUFFER: std::cell::RefCell<Option<Aligned>> = const { std::cell::RefCell::new(None) };
}

/// Runs `f` with an aligned buffer of `pages` pages that belongs to the calling thread.
pub(crate) fn with_read_buffer<R>(pages: usize, f: impl FnOnce(&mut [u8]) -> R) -> R {
    // Taken out of the thread-local in the meantime: a wait inside `f` may run other work on this thread.
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
