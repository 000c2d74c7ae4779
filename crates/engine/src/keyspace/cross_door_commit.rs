//! Keys that a transaction of rows has changed, put in their places as it commits.
//!
//! Until then they are in the transaction alone, and it claims them (`claims`). Now their stripes are taken, in ascending order as always; the changes are made as changes
//! of that transaction, with images in the log; one COMMIT decides rows and keys; then the stripes are given back. For others this is a unit like any other. If it fails half-way,
//! rows and keys are taken back by one undo and one ABORT.

use pager::TxnId;

use crate::error::Result;
use crate::keyspace::key::KeySet;
use crate::keyspace::key_txn::stripes;
use crate::keyspace::key_txn::{KeyTransaction, Mode};
use crate::keyspace::record_change::Expire;
use crate::keyspace::state::Keyspace;
use crate::rows::key_changes::KeyChanges;
use crate::store::images::Images;
use crate::store::wal::Deltas;
use crate::txn::record_txn::PreparedCommit;
use crate::txn::record_txn::RecordTxn;

pub(crate) struct CrossDoorCommit<'k> {
    unit: KeyTransaction<'k>,
    prepared: Option<PreparedCommit>,
}

impl<'k> CrossDoorCommit<'k> {
    /// Takes the stripes. The transaction claims all these keys, so nobody else is changing them, and may wait for room in the log no more.
    pub fn new(keyspace: &'k Keyspace, id: TxnId, changes: &KeyChanges) -> Result<CrossDoorCommit<'k>> {
        let keys: Vec<(u8, &[u8])> = changes.iter().map(|((db, key), _)| (*db, &**key)).collect();
        let stripes = stripes(KeySet::Keys(&keys))?;
        let mut unit = KeyTransaction::new(keyspace, stripes, Mode::Writing, true, keyspace.clock.wall_ms());
        unit.txn = Some(RecordTxn::join(&keyspace.store, id));
        Ok(CrossDoorCommit { unit, prepared: None })
    }

    /// Changes the records. After an error everything must be taken back.
    pub fn apply(&mut self, changes: &KeyChanges) -> Result<()> {
        for ((db, key), change) in changes.iter() {
            match change {
                Some(new) if !new.is_expired(self.unit.now_ms()) => {
                    let expire = new.expire_at_ms.map_or(Expire::None, Expire::At);
                    self.unit.put_string(*db, key, &new.value, expire)?;
                }
                _ => drop(self.unit.delete(*db, key)?),
            }
        }
        let txn = self.unit.txn.as_mut().expect("joined at the beginning");
        self.prepared = Some(txn.prepare()?);
        Ok(())
    }

    /// What COMMIT has to say of the counts.
    pub fn deltas(&self) -> &Deltas {
        &self.prepared.as_ref().expect("applied").deltas
    }

    /// COMMIT is in the log and ends at `lsn`.
    pub fn committed(mut self, lsn: pager::Lsn) {
        let (txn, prepared) = (self.unit.txn.take(), self.prepared.take());
        let (txn, prepared) = (txn.expect("joined"), prepared.expect("applied"));
        let deltas = txn.committed(prepared);
        self.unit.decided(lsn, deltas);
    }

    /// What was there before, for the rollback of the whole transaction.
    pub fn images(&mut self) -> Images {
        self.unit.txn.as_mut().expect("joined").take_images()
    }

    /// ABORT is in the log.
    pub fn taken_back(mut self) {
        if let Some(txn) = self.unit.txn.take() {
            txn.taken_back();
        }
        self.unit.undone();
    }
}
