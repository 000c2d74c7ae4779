//! KLWAIT.

use std::time::Duration;

use stdx::sync::atomic::Ordering;

use crate::error::Result;
use crate::keyspace::key::{KeySet, TreeKey};
use crate::keyspace::key_locks::Until;
use crate::keyspace::key_txn::{KeyTransaction, Mode, stripes};
use crate::keyspace::state::Keyspace;
use crate::keyspace::stripes::StripeGuard;

impl Keyspace {
    /// A change of a key that a transaction of SQL holds waits no longer than this.
    pub fn limit_key_wait(&self, wait: Duration) {
        self.key_locks.patience_ms.store(wait.as_millis() as u64, Ordering::Relaxed);
    }

    /// Takes the stripe of a key that is to be changed, when no transaction claims the key.
    #[inline]
    pub(crate) fn hold_unclaimed(&self, db: u8, tree_key: &TreeKey, stripe: u32) -> Result<StripeGuard<'_>> {
        let held = self.stripes.hold(stripe);
        if !self.key_locks.any() { Ok(held) } else { self.hold_when_unclaimed(db, tree_key, stripe, held) }
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
            let releases = self.key_locks.statuses.releases();
            let Some(holder) = self.key_locks.holder(db, tree_key.suffix()) else { return Ok(held) };
            drop(held);
            self.key_locks.wait(holder, releases, &mut until)?;
            self.store.pager.admit()?;
            held = self.stripes.hold(stripe);
        }
    }

    /// A writing unit over keys that no transaction claims.
    pub(crate) fn unclaimed_unit(&self, locks: KeySet<'_>, several: bool) -> Result<KeyTransaction<'_>> {
        let mut until = Until::default();
        loop {
            // Before any lock: it may wait for room in the log.
            self.store.pager.admit()?;
            let unit = KeyTransaction::new(self, stripes(locks)?, Mode::Writing, several, self.clock.wall_ms());
            if !self.key_locks.any() {
                return Ok(unit);
            }
            let releases = self.key_locks.statuses.releases();
            let Some(holder) = self.key_locks.holder_of(locks) else { return Ok(unit) };
            unit.commit()?;
            self.key_locks.wait(holder, releases, &mut until)?;
        }
    }
}
