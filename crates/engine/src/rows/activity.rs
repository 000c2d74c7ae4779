//! What others may know of a transaction while it runs: its number, the row that it waits for, its locks.
//!
//! Nobody is stopped for a look, so what is told may be of different moments: a lock that is listed may be gone, and who waits may have got it.

use std::time::Instant;

use pager::TxnId;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::rows::lock_table::RowLock;

/// Where a transaction leaves word: a session has one for all of its transactions, one after another (`Transaction::set_activity`).
#[derive(Debug, Default)]
pub struct Activity {
    id: AtomicU64,
    awaited: Mutex<Option<AwaitedLock>>,
}

/// A row that somebody waits for, and since when.
#[derive(Clone, Debug)]
pub struct AwaitedLock {
    pub row: RowLock,
    pub since: Instant,
}

impl Activity {
    /// The number of the transaction; None: it has changed and locked nothing, or there is none.
    pub fn id(&self) -> Option<TxnId> {
        Some(self.id.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// What it waits for now.
    pub fn awaited(&self) -> Option<AwaitedLock> {
        self.awaited.lock().clone()
    }

    pub(crate) fn set_id(&self, id: TxnId) {
        self.id.store(id, Ordering::Relaxed);
    }

    pub(crate) fn set_awaited(&self, wanted: Option<AwaitedLock>) {
        *self.awaited.lock() = wanted;
    }
}
