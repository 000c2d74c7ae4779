//! Counters of the pager for metrics, and those of a thread for one statement.

use std::cell::Cell;

use stdx::histogram::Snapshot;
use stdx::sync::atomic::Ordering;

use crate::pager::Pager;

/// Counts since the database was opened.
pub struct Counts {
    /// Pages read because no frame held them.
    pub page_reads: u64,
    /// Pages evicted from their frame.
    pub evictions: u64,
    /// Pages that the cleaner wrote to the data file.
    pub page_writes: u64,
    pub checkpoints: u64,
    pub log_flushes: u64,
    /// Bytes written to the WAL files, headers and padding included.
    pub log_written_bytes: u64,
    /// Duration of each WAL write, in nanoseconds.
    pub log_flush_ns: Snapshot,
}

/// Counts of one thread since it began. Two readings measure the work that a thread does between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Views and latches of pages that were in the buffer pool.
    pub page_hits: u64,
    /// Pages that the thread has read because no frame held them.
    pub page_reads: u64,
    /// Records that it has appended to the WAL.
    pub wal_records: u64,
    /// Those of them that hold a whole page or unit.
    pub wal_images: u64,
    /// Bytes of these records.
    pub wal_bytes: u64,
}

impl ThreadCounts {
    /// Returns the counts of the calling thread.
    pub fn now() -> ThreadCounts {
        COUNTS.with(Cell::get)
    }

    /// Returns what was counted since an earlier reading on the same thread.
    pub fn since(self, earlier: ThreadCounts) -> ThreadCounts {
        ThreadCounts {
            page_hits: self.page_hits.wrapping_sub(earlier.page_hits),
            page_reads: self.page_reads.wrapping_sub(earlier.page_reads),
            wal_records: self.wal_records.wrapping_sub(earlier.wal_records),
            wal_images: self.wal_images.wrapping_sub(earlier.wal_images),
            wal_bytes: self.wal_bytes.wrapping_sub(earlier.wal_bytes),
        }
    }

    pub fn add(&mut self, other: ThreadCounts) {
        self.page_hits += other.page_hits;
        self.page_reads += other.page_reads;
        self.wal_records += other.wal_records;
        self.wal_images += other.wal_images;
        self.wal_bytes += other.wal_bytes;
    }
}

thread_local! {
    static COUNTS: Cell<ThreadCounts> = const {
        Cell::new(ThreadCounts { page_hits: 0, page_reads: 0, wal_records: 0, wal_images: 0, wal_bytes: 0 })
    };
}

/// Changes the counts of the calling thread.
#[inline]
pub(crate) fn count(change: impl FnOnce(&mut ThreadCounts)) {
    COUNTS.with(|counts| {
        let mut new = counts.get();
        change(&mut new);
        counts.set(new);
    });
}

/// Counts a page that was found in the buffer pool.
#[inline]
pub(crate) fn count_hit() {
    count(|counts| counts.page_hits = counts.page_hits.wrapping_add(1));
}

impl Pager {
    pub fn counts(&self) -> Counts {
        let wal = self.wal();
        Counts {
            page_reads: self.pool.misses.get(),
            evictions: self.pool.evictions.get(),
            page_writes: self.pages_written.get(),
            checkpoints: self.checkpoints.load(Ordering::Relaxed),
            log_flushes: wal.flushes.load(Ordering::Relaxed),
            log_written_bytes: wal.flushed_bytes.load(Ordering::Relaxed),
            log_flush_ns: wal.flush_ns.snapshot(),
        }
    }
}
