//! The commit of changed definitions: what becomes of them, and of the counters of sequences, when their transaction ends.

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use datum::Result;
use engine::Lsn;
use engine::rows::Transaction;
use stdx::sync::MutexGuard;

use crate::catalog::record::{position_key, put};
use crate::catalog::sequence::{HeldCounter, Sequence};
use crate::catalog::user_type::UserType;
use crate::catalog::{Catalog, Changes, Snapshot};
use crate::engine_fault::engine_fault;

/// The changes of a transaction that has made none. All sessions share them, so that every commit looks at the same memory, which is in the processor's caches.
static NO_CHANGES: LazyLock<Arc<Changes>> = LazyLock::new(Arc::default);

/// The changes of definitions of an open transaction.
#[derive(Debug)]
pub struct Pending {
    pub changes: Arc<Changes>,
    /// The counters of published sequences that it has altered or dropped.
    pub(super) counters: Vec<HeldCounter>,
}

/// A point in a transaction's changes of definitions.
#[derive(Clone, Debug)]
pub struct PendingPoint {
    changes: Arc<Changes>,
    counters: usize,
}

impl Default for Pending {
    fn default() -> Pending {
        Pending { changes: NO_CHANGES.clone(), counters: Vec::new() }
    }
}

impl Default for PendingPoint {
    fn default() -> PendingPoint {
        PendingPoint { changes: NO_CHANGES.clone(), counters: 0 }
    }
}

impl Pending {
    pub fn point(&self) -> PendingPoint {
        PendingPoint { changes: self.changes.clone(), counters: self.counters.len() }
    }

    /// Forgets all changes, whose records have been undone.
    pub fn undo_all(&mut self, catalog: &Catalog) {
        if !self.changes.is_empty() || !self.counters.is_empty() {
            self.undo_to(&PendingPoint::default(), catalog);
        }
    }

    /// Forgets the changes since the point, whose records have been undone (QU-46).
    pub fn undo_to(&mut self, point: &PendingPoint, catalog: &Catalog) {
        if !Arc::ptr_eq(&self.changes, &point.changes) {
            self.changes.undo_to(&point.changes, &catalog.snapshot());
            self.changes = point.changes.clone();
        }
        self.counters.truncate(point.counters);
    }

    /// Commits the transaction and publishes the changes. After an error nothing is committed, and the changes are
    /// forgotten.
    pub fn commit(&mut self, mut txn: Transaction, catalog: &Catalog) -> Result<Lsn> {
        if self.changes.is_empty() {
            return txn.commit().map_err(engine_fault);
        }
        let publishing = catalog.publishing.lock();
        let committed = match self.record_positions(&mut txn) {
            Ok(()) => txn.commit_with_accounts(catalog.engine.accounts(), &self.changes.accounts).map_err(engine_fault),
            Err(fault) => {
                txn.rollback();
                Err(fault)
            }
        };
        match &committed {
            Ok(lsn) => {
                let changes = self.settled(*lsn);
                catalog.publish(&changes, publishing);
            }
            Err(_) => {
                drop(publishing);
                self.changes.undo_to(&Changes::default(), &catalog.snapshot());
            }
        }
        *self = Pending::default();
        committed
    }

    /// Records how far sequences have come that exist in this transaction alone.
    fn record_positions(&self, txn: &mut Transaction) -> Result<()> {
        for sequence in self.changes.sequences.values().flatten().filter(|sequence| sequence.is_pending()) {
            put(txn, &position_key(sequence.id), &sequence.position_record())?;
        }
        Ok(())
    }

    /// Puts the counters of committed sequences in force. Returns the changes with the sequences that count by them.
    fn settled(&mut self, lsn: Lsn) -> Changes {
        let mut changes = Changes::clone(&self.changes);
        for sequence in changes.sequences.values_mut().flatten() {
            let held = self.counters.iter().find(|held| held.is_of(sequence));
            *sequence = Arc::new(Sequence::settled(sequence, held, lsn));
        }
        for ty in changes.types.values_mut().flatten() {
            *ty = UserType::settled(ty);
        }
        for held in self.counters.iter().filter(|held| changes.gone.contains(&held.id())) {
            held.drop_sequence();
        }
        changes
    }
}

impl Catalog {
    /// Lays committed changes over the published definitions.
    fn publish(&self, changes: &Changes, publishing: MutexGuard<'_, ()>) {
        let before = self.snapshot();
        let accounts = Arc::default();
        let next = Snapshot { version: before.version + 1, accounts, ..changes.applied_to(&before) };
        changes.put_in_force();
        for (place, view) in &changes.views {
            let (schema, name) = &**place;
            let replaced =
                before.view(schema, name).filter(|old| view.as_ref().is_none_or(|new| !Arc::ptr_eq(old, new)));
            replaced.into_iter().for_each(|old| old.gone.store(true, Ordering::Release));
        }
        self.version.store(next.version, Ordering::Release);
        *self.current.write() = Arc::new(next);
        drop(publishing);
    }

    /// Returns the published definitions. Those of a transaction whose locks the caller has waited for are among them.
    pub(super) fn published(&self) -> Arc<Snapshot> {
        // A transaction releases its locks while it publishes.
        drop(self.publishing.lock());
        self.snapshot()
    }
}
