//! What others may know of a transaction while it runs: its number, the row that it waits for, its locks.
//!
//! Nobody is stopped for a look, so what is told may be of different moments: a lock that is listed may be gone, and who waits may have got it.

use std::time::Instant;

use pager::TxnId;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::rows::{MapId, Rows, Strength};

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLock {
    pub map: MapId,
    pub key: Box<[u8]>,
    pub strength: Strength,
}

/// What an open transaction has locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldLock {
    Row(RowLock),
    /// So many rows of a map, without their keys. None: all that nobody else has, of a part of the map.
    Rows {
        map: MapId,
        strength: Strength,
        count: Option<u64>,
    },
    /// Nobody else puts a new row in from here on, and before the other end.
    Range {
        map: MapId,
        from: Vec<u8>,
        to: Option<Vec<u8>>,
    },
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

impl Rows {
    /// The locks of open transactions. Rows that one has changed and never locked are not among them: their records name it.
    pub fn held_locks(&self) -> Vec<(TxnId, HeldLock)> {
        self.locks.list(|txn| self.slots.is_open(txn))
    }

    /// Who waits for whom.
    pub fn lock_waits(&self) -> Vec<(TxnId, TxnId)> {
        self.slots.all_waits()
    }
}
