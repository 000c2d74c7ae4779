//! Keys that transactions of SQL hold: locked, or changed and not committed yet.
//!
//! Nothing of such a transaction stands in the tree before it commits (`joint`), so whoever reads keys sees what is committed and looks at nothing here. Whoever changes
//! a key, its stripe in hand, asks whether anybody claims it; if so he gives the stripe back, waits for the end of that transaction and begins again.
//!
//! ```text
//!   claim     stripe | entry in the lock table of rows, under database and name of the key | the key is read | stripe given back
//!   SET       stripe | any claims at all? one load, no store | entry of an open transaction? then: stripe given back, wait for its end
//!   COMMIT    stripes of all changed keys | changes | COMMIT in the log | the claims end with the transaction | stripes given back
//! ```
//! So a claim needs no fence of its own: it is put in and looked for under the same stripe (EN-37). KeyLocks are locks as those of rows are: they belong to a transaction, count
//! while it is open, and its waits are in the same search for deadlocks. Who waits here holds nothing, so nobody ever waits for him.

use std::sync::Arc;
use std::time::{Duration, Instant};

use btree::Tree;
use pager::TxnId;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::keyspace::key::{KeySet, TreeKey};
use crate::rows::lock_table::{Acquired, LockTable, Requester, Strength};
use crate::rows::status_table::{StatusTable, WaitLimits, WaitOutcome};
use crate::store::maps::RowMap;

/// How long a change of a key waits for the transaction that claims it, in all. MySQL's default for rows.
const PATIENCE: Duration = Duration::from_secs(50);

pub(crate) struct KeyLocks {
    pub statuses: Arc<StatusTable>,
    pub locks: Arc<LockTable>,
    /// What the lock table calls the keys.
    pub keys: Arc<RowMap>,
    pub patience_ms: AtomicU64,
}

/// The key's name in the lock table: the same whatever keyspace its database is.
pub(crate) fn name(db: u8, suffix: &[u8]) -> Box<[u8]> {
    [&[db], suffix].concat().into()
}

/// For how long somebody may be made to wait, counted from his first wait.
#[derive(Default)]
pub(crate) struct Until(Option<Instant>);

impl KeyLocks {
    pub fn new(records: Tree, locks: LockTable, first: TxnId) -> KeyLocks {
        KeyLocks {
            statuses: Arc::new(StatusTable::new(first)),
            locks: Arc::new(locks),
            keys: Arc::new(RowMap::new(records)),
            patience_ms: AtomicU64::new(PATIENCE.as_millis() as u64),
        }
    }

    /// Are there any? The truth for keys whose stripe the caller holds.
    #[inline]
    pub fn any(&self) -> bool {
        self.keys.row_locks.load(Ordering::Acquire) != 0
    }

    /// Takes the claim, or names an open transaction that is in the way. The key's stripe is held.
    pub fn take(&self, name: &[u8], requester: Requester) -> Result<Acquired, TxnId> {
        self.locks.take(&self.keys, name, requester, |id| self.statuses.is_open(id))
    }

    /// An open transaction that claims the key. The key's stripe is held.
    pub fn holder(&self, db: u8, suffix: &[u8]) -> Option<TxnId> {
        self.locks
            .holder(&self.keys, &name(db, suffix), (0, Strength::Exclusive), false, |id| self.statuses.is_open(id))
    }

    /// An open transaction that claims one of these keys. Their stripes are held.
    pub fn holder_of(&self, locks: KeySet<'_>) -> Option<TxnId> {
        let is_open = |id| self.statuses.is_open(id);
        match locks {
            KeySet::All => self.locks.any_holder(&self.keys, is_open),
            KeySet::Keys(keys) => keys.iter().find_map(|(db, key)| self.holder(*db, TreeKey::new(0, key).suffix())),
        }
    }

    /// Waits until `holder` is decided or has given something back; the caller holds nothing.
    pub fn wait(&self, holder: TxnId, releases: u64, until: &mut Until) -> Result<()> {
        let wait = || Instant::now() + Duration::from_millis(self.patience_ms.load(Ordering::Relaxed));
        let patience = WaitLimits { until: *until.0.get_or_insert_with(wait), is_cancelled: &|| false, releases };
        match self.statuses.sleep(holder, &patience) {
            WaitOutcome::Over => Ok(()),
            WaitOutcome::TimedOut | WaitOutcome::Deadlock | WaitOutcome::Cancelled | WaitOutcome::Refused => {
                Err(Error::LockTimeout)
            }
        }
    }
}
