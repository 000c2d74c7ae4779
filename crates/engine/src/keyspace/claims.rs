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
//! So a claim needs no fence of its own: it is put in and looked for under the same stripe (J1). KeyLocks are locks as those of rows are: they belong to a transaction, count
//! while it is open, and its waits are in the same search for deadlocks. Who waits here holds nothing, so nobody ever waits for him.

use std::sync::Arc;
use std::time::{Duration, Instant};

use btree::Tree;
use pager::TxnId;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::keyspace::key::TreeKey;
use crate::keyspace::locks::StripeGuard;
use crate::keyspace::unit::{KeyTransaction, Mode};
use crate::keyspace::{KeySet, Keyspace};
use crate::rows::lock::{self, Acquired, Requester};
use crate::rows::maps::RowMap;
use crate::rows::slot::{StatusTable, WaitLimits, WaitOutcome};

/// How long a change of a key waits for the transaction that claims it, in all. MySQL's default for rows.
const PATIENCE: Duration = Duration::from_secs(50);

pub(crate) struct KeyLocks {
    pub slots: Arc<StatusTable>,
    pub locks: Arc<lock::LockTable>,
    /// What the lock table calls the keys.
    pub keys: Arc<RowMap>,
    patience_ms: AtomicU64,
}

/// The key's name in the lock table: the same whatever keyspace its database is.
pub(crate) fn name(db: u8, suffix: &[u8]) -> Box<[u8]> {
    [&[db], suffix].concat().into()
}

/// For how long somebody may be made to wait, counted from his first wait.
#[derive(Default)]
struct Until(Option<Instant>);

impl KeyLocks {
    pub fn new(records: Tree, locks: lock::LockTable, first: TxnId) -> KeyLocks {
        KeyLocks {
            slots: Arc::new(StatusTable::new(first)),
            locks: Arc::new(locks),
            keys: Arc::new(RowMap::new(records)),
            patience_ms: AtomicU64::new(PATIENCE.as_millis() as u64),
        }
    }

    /// Are there any? The truth for keys whose stripe the caller holds.
    #[inline]
    fn any(&self) -> bool {
        self.keys.row_locks.load(Ordering::Acquire) != 0
    }

    /// Takes the claim, or names an open transaction that is in the way. The key's stripe is held.
    pub fn take(&self, name: &[u8], requester: Requester) -> Result<Acquired, TxnId> {
        self.locks.take(&self.keys, name, requester, |id| self.slots.is_open(id))
    }

    /// An open transaction that claims the key. The key's stripe is held.
    fn holder(&self, db: u8, suffix: &[u8]) -> Option<TxnId> {
        self.locks
            .holder(&self.keys, &name(db, suffix), (0, lock::Strength::Exclusive), false, |id| self.slots.is_open(id))
    }

    /// An open transaction that claims one of these keys. Their stripes are held.
    fn holder_of(&self, locks: KeySet<'_>) -> Option<TxnId> {
        let is_open = |id| self.slots.is_open(id);
        match locks {
            KeySet::All => self.locks.any_holder(&self.keys, is_open),
            KeySet::Keys(keys) => keys.iter().find_map(|(db, key)| self.holder(*db, TreeKey::new(0, key).suffix())),
        }
    }

    /// Waits until `holder` is decided or has given something back; the caller holds nothing.
    fn wait(&self, holder: TxnId, releases: u64, until: &mut Until) -> Result<()> {
        let wait = || Instant::now() + Duration::from_millis(self.patience_ms.load(Ordering::Relaxed));
        let patience = WaitLimits { until: *until.0.get_or_insert_with(wait), is_cancelled: &|| false, releases };
        match self.slots.sleep(holder, &patience) {
            WaitOutcome::Over => Ok(()),
            WaitOutcome::TimedOut | WaitOutcome::Deadlock | WaitOutcome::Cancelled | WaitOutcome::Refused => {
                Err(Error::LockTimeout)
            }
        }
    }
}

impl Keyspace {
    /// A change of a key that a transaction of SQL holds waits no longer than this.
    pub fn limit_key_wait(&self, wait: Duration) {
        self.claims.patience_ms.store(wait.as_millis() as u64, Ordering::Relaxed);
    }

    /// Takes the stripe of a key that is to be changed, when no transaction claims the key.
    #[inline]
    pub(crate) fn hold_unclaimed(&self, db: u8, tree_key: &TreeKey, stripe: u32) -> Result<StripeGuard<'_>> {
        let held = self.locks.hold(stripe);
        if !self.claims.any() { Ok(held) } else { self.hold_when_unclaimed(db, tree_key, stripe, held) }
    }

    #[cold]
    fn hold_when_unclaimed<'k>(
        &'k self,
        db: u8,
        tree_key: &TreeKey,
        stripe: u32,
        mut held: StripeGuard<'k>,
    ) -> Result<StripeGuard<'k>> {
        let mut until = Until::default();
        loop {
            let releases = self.claims.slots.releases();
            let Some(holder) = self.claims.holder(db, tree_key.suffix()) else { return Ok(held) };
            drop(held);
            self.claims.wait(holder, releases, &mut until)?;
            self.store.pager.admit()?;
            held = self.locks.hold(stripe);
        }
    }

    /// A writing unit over keys that no transaction claims.
    pub(crate) fn unclaimed_unit(&self, locks: KeySet<'_>, several: bool) -> Result<KeyTransaction<'_>> {
        let mut until = Until::default();
        loop {
            // Before any lock: it may wait for room in the log.
            self.store.pager.admit()?;
            let unit = KeyTransaction::new(self, Self::stripes(locks)?, Mode::Writing, several, self.clock.wall_ms());
            if !self.claims.any() {
                return Ok(unit);
            }
            let releases = self.claims.slots.releases();
            let Some(holder) = self.claims.holder_of(locks) else { return Ok(unit) };
            unit.commit()?;
            self.claims.wait(holder, releases, &mut until)?;
        }
    }
}
