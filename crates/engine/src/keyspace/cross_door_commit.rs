//! The keys' side of a commit of rows and keys, and that of a commit of rows and accounts.
//!
//! Until the commit, changed keys are in the memory of the transaction alone, which holds key locks on them (`key_locks`); the tree has none of them
//! (EN-38). The commit takes their stripes in ascending order, changes their records under the transaction's id, with images in the WAL, and lets the rows'
//! side write the one COMMIT for both (EN-41). Then the stripes are released. To others this is a key transaction like any other. If it fails half-way, rows
//! and keys are rolled back by one undo and one ABORT.

use pager::TxnId;

use crate::accounts::pending::JoinedAccounts;
use crate::error::Result;
use crate::keyspace::key::KeySet;
use crate::keyspace::key_events::event_class;
use crate::keyspace::key_txn::stripes;
use crate::keyspace::key_txn::{KeyTransaction, Mode};
use crate::keyspace::record_change::Expire;
use crate::keyspace::state::Keyspace;
use crate::rows::key_changes::{KeyChange, KeyChanges};
use crate::store::images::Images;
use crate::store::wal::Deltas;
use crate::txn::record_txn::PreparedCommit;
use crate::txn::record_txn::RecordTxn;

pub(crate) struct CrossDoorCommit<'k> {
    key_txn: KeyTransaction<'k>,
    prepared: Option<PreparedCommit>,
    /// The list of accounts, locked.
    accounts: Option<JoinedAccounts<'k>>,
}

impl<'k> CrossDoorCommit<'k> {
    /// Takes the stripes. The transaction holds key locks on all these keys, so no other transaction is changing them. From here on it must not wait for WAL
    /// space.
    pub fn new(
        keyspace: &'k Keyspace,
        id: TxnId,
        changes: &KeyChanges,
        accounts: Option<JoinedAccounts<'k>>,
    ) -> Result<CrossDoorCommit<'k>> {
        let keys: Vec<(u8, &[u8])> = changes.iter().map(|((db, key), _)| (*db, &**key)).collect();
        let stripes = stripes(KeySet::Keys(&keys))?;
        let mut key_txn = KeyTransaction::new(keyspace, stripes, Mode::Writing, true, keyspace.clock.wall_ms());
        key_txn.record_txn = Some(RecordTxn::join(&keyspace.store, id));
        Ok(CrossDoorCommit { key_txn, prepared: None, accounts })
    }

    /// Changes the records. After an error everything must be rolled back.
    pub fn apply(&mut self, changes: &KeyChanges) -> Result<()> {
        let now = self.key_txn.now_ms();
        for ((db, key), change) in changes.iter() {
            match change {
                KeyChange::String(new) if change.is_present(now) => {
                    let expire = new.expire_at_ms.map_or(Expire::None, Expire::At);
                    self.key_txn.put_string(*db, key, &new.value, expire)?;
                    self.key_txn.notify_set(*db, key, expire);
                }
                KeyChange::Elements(new) if change.is_present(now) => {
                    let limits = &self.key_txn.keyspace.encoding_limits;
                    self.key_txn.apply_elements(*db, key, new, limits)?;
                }
                _ => {
                    if self.key_txn.delete(*db, key)? {
                        self.key_txn.notify(*db, key, event_class::GENERIC, "del");
                    }
                }
            }
        }
        let txn = self.key_txn.record_txn.as_mut().expect("joined at the beginning");
        if let Some(accounts) = &self.accounts {
            accounts.write(txn)?;
        }
        self.prepared = Some(txn.prepare()?);
        Ok(())
    }

    /// Returns the changes of the key counts, for COMMIT.
    pub fn deltas(&self) -> &Deltas {
        &self.prepared.as_ref().expect("applied").deltas
    }

    /// Ends the commit. COMMIT is in the WAL and ends at `lsn`.
    pub fn committed(mut self, lsn: pager::Lsn) {
        let (txn, prepared) = (self.key_txn.record_txn.take(), self.prepared.take());
        let (txn, prepared) = (txn.expect("joined"), prepared.expect("applied"));
        let deltas = txn.committed(prepared);
        self.key_txn.decided(lsn, deltas);
        if let Some(accounts) = self.accounts {
            accounts.publish();
        }
    }

    /// Returns the before-images, for the rollback of the whole transaction.
    pub fn images(&mut self) -> Images {
        self.key_txn.record_txn.as_mut().expect("joined").take_images()
    }

    /// Ends the rollback. ABORT is in the WAL.
    pub fn rolled_back(mut self) {
        if let Some(txn) = self.key_txn.record_txn.take() {
            txn.rolled_back();
        }
        self.key_txn.undone();
    }
}
