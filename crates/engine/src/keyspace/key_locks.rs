//! Keys that transactions of SQL hold: locked, or changed and not committed yet.
//!
//! The tree holds nothing of such a transaction before it commits (`cross_door_commit`), so readers of keys see what is committed and need not look here. A
//! command that changes a key checks, with the key's stripe held, whether an open transaction holds a lock on it. If so, it releases the stripe, waits for the
//! end of that transaction and starts again.
//!
//! ```text
//!   lock      stripe | entry in the lock table of rows, under database and name of the key | the key is read | stripe released
//!   SET       stripe | any key locks at all? one load, no store | lock of an open transaction? then: stripe released, wait for its end
//!   COMMIT    stripes of all changed keys | changes | COMMIT in the WAL | the key locks end with the transaction | stripes released
//! ```
//! So a key lock needs no fence of its own: it is added and checked under the same stripe (EN-37). Key locks are like locks of rows: they belong to a
//! transaction, count while it is open, and its waits are in the same wait graph. A command that waits here holds nothing, so no transaction waits for it
//! (EN-39).

use std::sync::Arc;
use std::time::{Duration, Instant};

use btree::Tree;
use pager::TxnId;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::keyspace::key::{KeySet, TreeKey};
use crate::rows::lock_table::{Acquired, Blocker, LockTable, Requester, Strength};
use crate::rows::status_table::{StatusTable, WaitLimits, WaitOutcome};
use crate::store::maps::RowMap;

/// The default limit of a key change's waits for transactions, in all. It is MySQL's default for rows.
const WAIT_MAX: Duration = Duration::from_secs(50);

pub(crate) struct KeyLocks {
    pub statuses: Arc<StatusTable>,
    pub locks: Arc<LockTable>,
    /// The map under which keys are in the lock table.
    pub keys: Arc<RowMap>,
    pub wait_max_ms: AtomicU64,
}

/// Returns the key's name in the lock table. It does not depend on the keyspace of the database.
pub(crate) fn name(db: u8, suffix: &[u8]) -> Box<[u8]> {
    [&[db], suffix].concat().into()
}

/// The time until which a command may wait, counted from its first wait.
#[derive(Default)]
pub(crate) struct WaitDeadline(Option<Instant>);

impl KeyLocks {
    pub fn new(records: Tree, locks: LockTable, first: TxnId) -> KeyLocks {
        KeyLocks {
            statuses: Arc::new(StatusTable::new(first)),
            locks: Arc::new(locks),
            keys: Arc::new(RowMap::new(records)),
            wait_max_ms: AtomicU64::new(WAIT_MAX.as_millis() as u64),
        }
    }

    /// Returns true if there are any key locks. Exact for keys whose stripe the caller holds.
    #[inline]
    pub fn any(&self) -> bool {
        self.keys.row_locks.load(Ordering::Acquire) != 0
    }

    /// Takes the lock, or returns an open transaction that holds a conflicting one. The key's stripe must be held.
    pub fn take(&self, name: &[u8], requester: Requester) -> Result<Acquired, Blocker> {
        self.locks.take(&self.keys, name, requester, |id| self.statuses.is_open(id))
    }

    /// Returns an open transaction that holds a lock on the key. The key's stripe must be held.
    pub fn holder(&self, db: u8, suffix: &[u8]) -> Option<TxnId> {
        let is_open = |id| self.statuses.is_open(id);
        let holder = self.locks.holder(&self.keys, &name(db, suffix), (0, Strength::Exclusive), None, is_open);
        holder.map(|holder| holder.txn)
    }

    /// Returns an open transaction that holds a lock on one of these keys. Their stripes must be held.
    pub fn holder_of(&self, locks: KeySet<'_>) -> Option<TxnId> {
        let is_open = |id| self.statuses.is_open(id);
        match locks {
            // Escalated locks count only if they hold anything (EN-46). While there are any, databases stay where they are (EN-42).
            KeySet::All => self.locks.any_holder(&self.keys, is_open),
            KeySet::Keys(keys) => keys.iter().find_map(|(db, key)| self.holder(*db, TreeKey::new(0, key).suffix())),
        }
    }

    /// Waits until `holder` is decided or has released a lock. The caller must hold nothing.
    pub fn wait(&self, holder: TxnId, releases: u64, until: &mut WaitDeadline) -> Result<()> {
        let wait = || Instant::now() + Duration::from_millis(self.wait_max_ms.load(Ordering::Relaxed));
        let patience = WaitLimits { until: *until.0.get_or_insert_with(wait), is_cancelled: &|| false, releases };
        match self.statuses.sleep(holder, &patience) {
            WaitOutcome::Over => Ok(()),
            WaitOutcome::TimedOut | WaitOutcome::Deadlock | WaitOutcome::Cancelled | WaitOutcome::Refused => {
                Err(Error::LockTimeout)
            }
        }
    }
}
