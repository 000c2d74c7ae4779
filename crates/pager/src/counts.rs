//! What the pager has counted, for whoever reports it.

use stdx::histogram::Snapshot;
use stdx::sync::atomic::Ordering;

use crate::pager::Pager;

/// Since the database was opened.
pub struct Counts {
    /// Pages that had to be read because no frame held them.
    pub page_reads: u64,
    /// Pages that gave their frame to another.
    pub evictions: u64,
    /// Pages that the cleaner wrote to the data file.
    pub page_writes: u64,
    pub checkpoints: u64,
    pub log_flushes: u64,
    /// Bytes written to the log's files, headers and padding included.
    pub log_written_bytes: u64,
    /// How long each write of the log took, in nanoseconds.
    pub log_flush_ns: Snapshot,
}

impl Pager {
    pub fn counts(&self) -> Counts {
        let log = self.wal();
        Counts {
            page_reads: self.pool.misses.get(),
            evictions: self.pool.evictions.get(),
            page_writes: self.pages_written.get(),
            checkpoints: self.checkpoints.load(Ordering::Relaxed),
            log_flushes: log.flushes.load(Ordering::Relaxed),
            log_written_bytes: log.flushed_bytes.load(Ordering::Relaxed),
            log_flush_ns: log.flush_ns.snapshot(),
        }
    }
}
