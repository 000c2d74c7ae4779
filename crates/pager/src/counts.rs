//! Counters of the pager for metrics.

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
