//! Waiting for transactions of SQL that hold a key (`key_locks`). The wait holds neither a stripe nor a key lock (EN-39, EN-40).

use std::time::Duration;

use stdx::sync::atomic::Ordering;

use crate::error::Result;
use crate::keyspace::key::{KeySet, TreeKey};
use crate::keyspace::key_locks::WaitDeadline;
use crate::keyspace::key_txn::{KeyTransaction, Mode, stripes};
use crate::keyspace::state::Keyspace;
use crate::keyspace::stripes::StripeGuard;

impl Keyspace {
    /// Sets how long a change of a key waits for transactions of SQL that hold it.
    pub fn limit_key_wait(&self, wait: Duration) {
        self.key_locks.wait_max_ms.store(wait.as_millis() as u64, Ordering::Relaxed);
    }

    /// Takes the stripe of a key that is about to be changed, once no transaction holds a lock on the key.
    #[inline]
    pub(crate) fn hold_unlocked(&self, db: u8, tree_key: &TreeKey, stripe: u32) -> Result<StripeGuard<'_>> {
        let held = self.stripes.hold(stripe)?;
        if !self.key_locks.any() { Ok(held) } else { self.hold_when_unlocked(db, tree_key, stripe, held) }
    }

    #[cold]
    fn hold_when_unlocked<'k>(
        &'k self,
        db: u8,
        tree_key: &TreeKey,
        stripe: u32,
        mut held: StripeGuard<'k>,
    ) -> Result<StripeGuard<'k>> {
        let mut until = WaitDeadline::default();
        loop {
            let releases = self.key_locks.statuses.releases();
            let Some(holder) = self.key_locks.holder(db, tree_key.suffix()) else { return Ok(held) };
            drop(held);
            self.key_locks.wait(holder, releases, &mut until)?;
            self.store.pager.admit()?;
            held = self.stripes.hold(stripe)?;
        }
    }

    /// Begins a writing transaction over keys on which no transaction holds a lock.
    pub(crate) fn begin_unlocked(&self, locks: KeySet<'_>, several: bool) -> Result<KeyTransaction<'_>> {
        let mut until = WaitDeadline::default();
        loop {
            // Before any lock is taken, since it may wait for WAL space.
            self.store.pager.admit()?;
            let now = self.clock.wall_ms();
            let key_txn = KeyTransaction::new_unless_busy(self, stripes(locks)?, Mode::Writing, several, now)?;
            if !self.key_locks.any() {
                return Ok(key_txn);
            }
            let releases = self.key_locks.statuses.releases();
            let Some(holder) = self.key_locks.holder_of(locks) else { return Ok(key_txn) };
            key_txn.commit()?;
            self.key_locks.wait(holder, releases, &mut until)?;
        }
    }
}
