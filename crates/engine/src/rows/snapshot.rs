//! The snapshot registry: one word for each open snapshot.
//!
//! A reader sets its word to PENDING and then reads the WAL's head; purge reads the head first and then the words. So a snapshot that purge did not see is no
//! older than the head that it read (EN-16).

use pager::Lsn;
use stdx::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use stdx::sync::{Mutex, RwLock, hint};

#[cfg(all(test, not(loom)))]
mod tests;

const FREE: u64 = 0;
const PENDING: u64 = 1;
const CHUNK: usize = if cfg!(loom) { 1 } else { 256 };

/// A word on a cache line of its own.
#[repr(align(64))]
#[derive(Default)]
struct RegistryWord(AtomicU64);

type Chunk = std::sync::Arc<[RegistryWord]>;

#[derive(Default)]
pub(crate) struct SnapshotRegistry {
    chunks: RwLock<Vec<Chunk>>,
    free: Mutex<Vec<usize>>,
    /// Number of words that have ever been used.
    used: AtomicUsize,
    /// Snapshots at or below this position have been given up.
    expired: AtomicU64,
}

/// A word of the registry. Returned by `SnapshotRegistry::leave`.
pub(crate) struct SnapshotRegistration {
    chunk: Chunk,
    number: usize,
}

impl SnapshotRegistration {
    fn word(&self) -> &AtomicU64 {
        &self.chunk[self.number % CHUNK].0
    }
}

impl SnapshotRegistry {
    pub fn enter(&self) -> SnapshotRegistration {
        let number = self.free.lock().pop().unwrap_or_else(|| self.used.fetch_add(1, Ordering::Relaxed));
        let at = number / CHUNK;
        if let Some(chunk) = self.chunks.read().get(at) {
            return SnapshotRegistration { chunk: chunk.clone(), number };
        }
        let mut chunks = self.chunks.write();
        while chunks.len() <= at {
            chunks.push((0..CHUNK).map(|_| RegistryWord::default()).collect());
        }
        SnapshotRegistration { chunk: chunks[at].clone(), number }
    }

    pub fn leave(&self, registration: SnapshotRegistration) {
        registration.word().store(FREE, Ordering::Release);
        self.free.lock().push(registration.number);
    }

    /// Registers a snapshot of the moment that `head` returns, and returns it.
    pub fn take(&self, registration: &SnapshotRegistration, head: impl Fn() -> Lsn) -> Lsn {
        registration.word().store(PENDING, Ordering::SeqCst);
        stdx::sync::atomic::fence(Ordering::SeqCst);
        let lsn = head();
        registration.word().store(lsn, Ordering::SeqCst);
        lsn
    }

    pub fn release(&self, registration: &SnapshotRegistration) {
        registration.word().store(FREE, Ordering::Release);
    }

    /// Returns a position such that no open or future snapshot is older. `head` returns the WAL's head.
    pub fn oldest(&self, head: impl Fn() -> Lsn) -> Lsn {
        let mut oldest = head();
        stdx::sync::atomic::fence(Ordering::SeqCst);
        let used = self.used.load(Ordering::Acquire);
        for (at, chunk) in self.chunks.read().iter().enumerate() {
            for word in chunk.iter().take(used.saturating_sub(at * CHUNK)) {
                let mut lsn = word.0.load(Ordering::SeqCst);
                while lsn == PENDING {
                    hint::spin_loop();
                    lsn = word.0.load(Ordering::SeqCst);
                }
                if lsn != FREE && lsn > self.expired.load(Ordering::Relaxed) {
                    oldest = oldest.min(lsn);
                }
            }
        }
        oldest
    }

    /// Gives up the snapshots at or below `lsn`: what they need is kept no longer.
    pub fn expire(&self, lsn: Lsn) {
        self.expired.fetch_max(lsn, Ordering::SeqCst);
    }

    pub fn is_expired(&self, lsn: Lsn) -> bool {
        lsn <= self.expired.load(Ordering::SeqCst)
    }
}
