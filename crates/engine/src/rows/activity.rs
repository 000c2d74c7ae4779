//! The state of a running transaction that other sessions may see: its id and the lock that it waits for.
//!
//! The transaction is not stopped for it, so different parts may be of different moments: a wait that is shown may be over.

use std::time::Instant;

use pager::TxnId;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::rows::lock_table::RowLock;

/// The published activity of a session's transactions, one after another (`Transaction::set_activity`).
#[derive(Debug, Default)]
pub struct Activity {
    id: AtomicU64,
    awaited: Mutex<Option<AwaitedLock>>,
}

/// A row lock that a transaction waits for, and since when.
#[derive(Clone, Debug)]
pub struct AwaitedLock {
    pub row: RowLock,
    pub since: Instant,
}

impl Activity {
    /// Returns the transaction's id; `None` if it has changed and locked nothing, or there is none.
    pub fn id(&self) -> Option<TxnId> {
        Some(self.id.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Returns the lock that it waits for.
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
