//! The frame header: latch, identity and write state of one page in the buffer pool.
//!
//! ```text
//!   free (pid = NO_PAGE) --claim--> loading (X held) --load--> clean --dirty--> dirty --clean--> writing --sync--> clean
//!        ^------------------------------- evict (X held, clean only) ---------------------------'
//! ```
//! The latch is one word: the X bit, a bit for parked waiters, the count of shared holders, and a version that is incremented by every release of X. An
//! optimistic reader keeps the version and compares it after reading (PG-4). The latch is also the pin: eviction takes X first (PG-6).

use stdx::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use stdx::sync::{Condvar, Mutex, hint, thread};

use crate::page::{Lsn, NO_PAGE};
use crate::parking_lot::{POLL_INTERVAL, ParkingLot};

/// `rec_lsn` and `writing` of a page that needs no write.
pub const CLEAN: Lsn = u64::MAX;

const EXCLUSIVE: u64 = 1 << 63;
const WAITERS: u64 = 1 << 62;
const SHARED_ONE: u64 = 1 << 54;
const SHARED_MASK: u64 = 0xff << 54;
const VERSION: u64 = SHARED_ONE - 1;

/// Set by lookups, cleared by the clock hand.
pub const REFERENCED: u32 = 1;
/// The frame holds a unit of an extent: user bytes without a page header.
pub const RAW: u32 = 2;
/// A raw unit was read from disk and its checksum has not been compared yet.
pub const UNVERIFIED: u32 = 4;

/// Never evicted. Set for space-map pages, which a commit must reach without I/O.
pub const PINNED: u32 = 8;

/// The unit was freed by the record that ends at `page_lsn`. Once that record is durable, nothing can reach the bytes and they need no write (PG-8).
pub const FREED: u32 = 16;
/// The page is being read from disk; the frame is X-latched until the read completes.
pub const LOADING: u32 = 32;

pub static LATCH_WAIT: stdx::wait::Reason = stdx::wait::Reason::new("page_latch");

/// The header of one frame; one cache line. The page's bytes are in `BufferPool::words`.
#[repr(align(64))]
pub struct Frame {
    latch: AtomicU64,
    /// Changes only under X (PG-1).
    pub pid: AtomicU64,
    /// Start of the oldest record whose change is not yet being written to disk.
    pub rec_lsn: AtomicU64,
    /// The `rec_lsn` covered by the write in progress. Cleared only after the device has synced (PG-3).
    pub writing: AtomicU64,
    /// End of the newest record of the page. Raw units have no header word for it.
    pub page_lsn: AtomicU64,
    pub flags: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Frame>() == 64);

impl Default for Frame {
    fn default() -> Self {
        Frame {
            latch: AtomicU64::new(0),
            pid: AtomicU64::new(NO_PAGE),
            rec_lsn: AtomicU64::new(CLEAN),
            writing: AtomicU64::new(CLEAN),
            page_lsn: AtomicU64::new(0),
            flags: AtomicU32::new(0),
        }
    }
}

impl Frame {
    fn slot<'l>(&self, lot: &'l ParkingLot) -> &'l (Mutex<()>, Condvar) {
        lot.slot(std::ptr::from_ref(self) as usize)
    }

    /// Waits until the latch word is no longer `blocked`. Spins first, since a latch is usually held for about a microsecond.
    #[cold]
    fn wait_while(&self, lot: &ParkingLot, blocked: impl Fn(u64) -> bool) {
        for spin in 0..120 {
            if !blocked(self.latch.load(Ordering::Relaxed)) {
                return;
            }
            if spin < 100 { hint::spin_loop() } else { thread::yield_now() }
        }
        let _waiting = stdx::wait::announce(&LATCH_WAIT);
        let (mutex, condvar) = self.slot(lot);
        let mut guard = mutex.lock();
        loop {
            let word = self.latch.load(Ordering::Relaxed);
            if !blocked(word) {
                return;
            }
            // The bit is set while the slot's mutex is held, and the waker takes that mutex before it notifies, so no wake-up is lost.
            let marked = self.latch.compare_exchange(word, word | WAITERS, Ordering::Relaxed, Ordering::Relaxed);
            if marked.is_ok() {
                let (woken, timed_out) = condvar.wait_timeout(guard, POLL_INTERVAL);
                guard = woken;
                if timed_out {
                    // The awaited page may be one that is being read in, and every thread that could poll its completion may be waiting as well (PG-9).
                    drop(guard);
                    lot.poll_read_queues();
                    guard = mutex.lock();
                }
            }
        }
    }

    #[cold]
    fn wake(&self, lot: &ParkingLot) {
        let (mutex, condvar) = self.slot(lot);
        drop(mutex.lock());
        condvar.notify_all();
    }

    /// Returns the version to read under. Waits while X is held.
    #[inline]
    pub fn version(&self, lot: &ParkingLot) -> u64 {
        loop {
            let word = self.latch.load(Ordering::Acquire);
            if word & EXCLUSIVE == 0 {
                return word & VERSION;
            }
            self.wait_while(lot, |word| word & EXCLUSIVE != 0);
        }
    }

    /// Returns true if nothing has changed since `version` was taken: the values read in between may then be used (PG-4).
    #[inline]
    pub fn validate(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        self.latch.load(Ordering::Relaxed) & (EXCLUSIVE | VERSION) == version
    }

    pub fn try_shared(&self) -> bool {
        let word = self.latch.load(Ordering::Relaxed);
        word & EXCLUSIVE == 0
            && word & SHARED_MASK != SHARED_MASK
            && self.latch.compare_exchange(word, word + SHARED_ONE, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    pub fn lock_shared(&self, lot: &ParkingLot) {
        while !self.try_shared() {
            self.wait_while(lot, |word| word & EXCLUSIVE != 0 || word & SHARED_MASK == SHARED_MASK);
        }
    }

    pub fn unlock_shared(&self, lot: &ParkingLot) {
        let old = self.latch.fetch_sub(SHARED_ONE, Ordering::Release);
        debug_assert!(old & SHARED_MASK != 0);
        if old & WAITERS != 0 && old & SHARED_MASK == SHARED_ONE {
            self.latch.fetch_and(!WAITERS, Ordering::Relaxed);
            self.wake(lot);
        }
    }

    pub fn try_exclusive(&self) -> bool {
        let word = self.latch.load(Ordering::Relaxed);
        if word & (EXCLUSIVE | SHARED_MASK) != 0 {
            return false;
        }
        self.take(word)
    }

    /// Takes X if the latch word is still the observed version; fails if anything has changed.
    pub fn upgrade(&self, version: u64) -> bool {
        let word = self.latch.load(Ordering::Relaxed);
        word & !WAITERS == version && self.take(word)
    }

    fn take(&self, word: u64) -> bool {
        let taken = self.latch.compare_exchange(word, word | EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // A reader that sees a store made under X must also see the X bit.
        fence(Ordering::Release);
        taken
    }

    pub fn lock_exclusive(&self, lot: &ParkingLot) {
        while !self.try_exclusive() {
            self.wait_while(lot, |word| word & (EXCLUSIVE | SHARED_MASK) != 0);
        }
    }

    pub fn unlock_exclusive(&self, lot: &ParkingLot) {
        let word = self.latch.load(Ordering::Relaxed);
        debug_assert!(word & EXCLUSIVE != 0 && word & SHARED_MASK == 0);
        let old = self.latch.swap((word & VERSION).wrapping_add(1) & VERSION, Ordering::Release);
        if old & WAITERS != 0 {
            self.wake(lot);
        }
    }

    /// Waits until the thread that holds X at the call, if any, has released it.
    ///
    /// It reads the latch with a read-modify-write, so a thread that takes X afterwards sees what the caller stored before.
    pub fn pass_exclusive(&self, lot: &ParkingLot) {
        let seen = self.latch.fetch_or(0, Ordering::AcqRel);
        if seen & EXCLUSIVE != 0 {
            let version = seen & VERSION;
            self.wait_while(lot, |now| now & EXCLUSIVE != 0 && now & VERSION == version);
            fence(Ordering::Acquire);
        }
    }

    pub fn is_exclusive(&self) -> bool {
        self.latch.load(Ordering::Relaxed) & EXCLUSIVE != 0
    }

    /// Marks the page dirty with the record at `start..end`. X is held, and the WAL still counts the record as being copied (PG-11).
    pub fn mark_dirty(&self, start: Lsn, end: Lsn) {
        debug_assert!(self.is_exclusive());
        self.page_lsn.store(end, Ordering::Release);
        self.rec_lsn.fetch_min(start, Ordering::AcqRel);
    }

    /// Returns the start of the oldest change that is not surely on disk, `CLEAN` if there is none.
    ///
    /// The cleaner moves the value from `rec_lsn` to `writing`, and back if the write fails, and always stores the new place first. Reading `rec_lsn`,
    /// `writing` and `rec_lsn` again therefore finds it in one of the two.
    pub fn oldest_change(&self) -> Lsn {
        let first = self.rec_lsn.load(Ordering::Acquire);
        let second = self.writing.load(Ordering::Acquire);
        first.min(second).min(self.rec_lsn.load(Ordering::Acquire))
    }

    /// Moves `rec_lsn` to `writing` for the cleaner, which holds a shared latch. Returns false if the page is clean or already being written.
    pub fn start_write(&self) -> bool {
        let rec = self.rec_lsn.load(Ordering::Acquire);
        if rec == CLEAN || self.writing.load(Ordering::Acquire) != CLEAN {
            return false;
        }
        self.writing.store(rec, Ordering::Release);
        self.rec_lsn.store(CLEAN, Ordering::Release);
        true
    }

    /// Ends a write: it is on disk and synced, or it failed and the page is dirty again.
    pub fn end_write(&self, succeeded: bool) {
        if !succeeded {
            self.rec_lsn.fetch_min(self.writing.load(Ordering::Acquire), Ordering::AcqRel);
        }
        self.writing.store(CLEAN, Ordering::Release);
    }

    #[inline]
    pub fn mark_referenced(&self) {
        let flags = self.flags.load(Ordering::Relaxed);
        if flags & REFERENCED == 0 {
            self.flags.fetch_or(REFERENCED, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use stdx::sync::Arc;

    struct Cell {
        frame: Frame,
        lot: ParkingLot,
        words: [AtomicU64; 2],
    }

    fn cell() -> Arc<Cell> {
        Arc::new(Cell {
            frame: Frame::default(),
            lot: ParkingLot::new(1),
            words: [AtomicU64::new(0), AtomicU64::new(0)],
        })
    }

    /// PG-4: two words that a writer changes together are never seen apart by a reader that validates.
    #[test]
    fn loom_a_validated_read_is_whole() {
        loom::model(|| {
            let cell = cell();
            let writer = {
                let cell = cell.clone();
                thread::spawn(move || {
                    assert!(cell.frame.try_exclusive());
                    cell.words[0].store(1, Ordering::Relaxed);
                    cell.words[1].store(1, Ordering::Relaxed);
                    cell.frame.unlock_exclusive(&cell.lot);
                })
            };
            let word = cell.frame.latch.load(Ordering::Acquire);
            if word & EXCLUSIVE == 0 {
                let seen = (cell.words[0].load(Ordering::Relaxed), cell.words[1].load(Ordering::Relaxed));
                if cell.frame.validate(word & VERSION) {
                    assert_eq!(seen.0, seen.1);
                }
            }
            writer.join().unwrap();
        });
    }

    /// An upgrade succeeds only on the observed state, so of two writers that read the same version only one succeeds.
    #[test]
    fn loom_upgrades_from_one_version_exclude_each_other() {
        loom::model(|| {
            let cell = cell();
            let tasks: Vec<_> = (0..2)
                .map(|_| {
                    let cell = cell.clone();
                    thread::spawn(move || {
                        let word = cell.frame.latch.load(Ordering::Acquire);
                        if word & EXCLUSIVE != 0 {
                            return;
                        }
                        let seen = cell.words[0].load(Ordering::Relaxed);
                        if cell.frame.upgrade(word & VERSION) {
                            assert_eq!(cell.words[0].load(Ordering::Relaxed), seen);
                            cell.words[0].store(seen + 1, Ordering::Relaxed);
                            cell.frame.unlock_exclusive(&cell.lot);
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.join().unwrap();
            }
        });
    }

    /// PG-25: a writer has released X when the pass returns, or sees what was stored before the pass.
    #[test]
    fn loom_a_writer_is_passed_or_sees_the_store_before_the_pass() {
        loom::model(|| {
            let cell = cell();
            let writer = {
                let cell = cell.clone();
                thread::spawn(move || {
                    cell.frame.lock_exclusive(&cell.lot);
                    let sees = cell.words[0].load(Ordering::Relaxed);
                    cell.words[1].store(1, Ordering::Relaxed);
                    cell.frame.unlock_exclusive(&cell.lot);
                    sees
                })
            };
            cell.words[0].store(1, Ordering::Relaxed);
            cell.frame.pass_exclusive(&cell.lot);
            let changed = cell.words[1].load(Ordering::Relaxed);
            assert!(writer.join().unwrap() == 1 || changed == 1);
        });
    }

    /// PG-3: `oldest_change` finds the oldest change in one of its two places at any moment until the write has ended.
    #[test]
    fn loom_the_oldest_change_is_never_overlooked() {
        loom::model(|| {
            let cell = cell();
            cell.frame.rec_lsn.store(100, Ordering::Relaxed);
            let cleaner = {
                let cell = cell.clone();
                thread::spawn(move || {
                    assert!(cell.frame.start_write());
                    cell.frame.end_write(false);
                })
            };
            assert_eq!(cell.frame.oldest_change(), 100);
            cleaner.join().unwrap();
            assert_eq!(cell.frame.oldest_change(), 100);
        });
    }
}
