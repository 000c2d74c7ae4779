//! Keys of the keyspace in a transaction: claimed at once, changed in memory, put in their places at COMMIT (`keyspace/key_locks`, `keyspace/joint`).
//!
//! What a transaction sees of a key is its own change of it, or what is committed now: keys have no snapshots. A claim keeps everybody from changing the key; that its time
//! comes it does not keep off.

use std::cell::OnceCell;
use std::sync::Arc;

use pager::TxnId;

use crate::error::{Error, Result};
use crate::keyspace::key::{DATABASES, VALUE_MAX};
use crate::keyspace::key_locks;
use crate::keyspace::key_txn::KeyTransaction;
use crate::keyspace::record::Kind;
use crate::keyspace::state::Keyspace;
use crate::rows::key_changes::KeyValue;
use crate::rows::lock_table::{Acquired, Strength};
use crate::rows::request::Wait;
use crate::rows::state::Rows;
use crate::rows::transaction::Transaction;

/// What `Transaction::lock_key` found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockedKey {
    Present(KeyValue),
    Absent,
    /// Somebody else holds it, and the caller did not want to wait.
    Skipped,
}

impl Rows {
    pub(crate) fn keyspace(&self) -> Result<Arc<Keyspace>> {
        self.keyspace.upgrade().ok_or(Error::ShuttingDown)
    }
}

impl Transaction {
    /// KeyLocks a key until the end of the transaction, also an absent one, and says what it is: this transaction's own change, or what is committed.
    pub fn lock_key(&mut self, db: u8, key: &[u8], strength: Strength, wait: Wait) -> Result<LockedKey> {
        self.alive()?;
        let (rows, keyspace) = (self.rows.clone(), self.rows.keyspace()?);
        let (name, mut turn) = (OnceCell::new(), None);
        loop {
            let releases = rows.statuses.releases();
            match self.try_lock_key(&keyspace, (db, key), strength)? {
                Ok(Some(value)) => return Ok(LockedKey::Present(value)),
                Ok(None) => return Ok(LockedKey::Absent),
                Err(_) if wait == Wait::SkipLocked => return Ok(LockedKey::Skipped),
                Err(holder) => {
                    let turn = turn.get_or_insert_with(|| {
                        let name = name.get_or_init(|| key_locks::name(db, key));
                        self.turn(&rows, rows.key_locks.keys.id, name, strength)
                    });
                    self.wait_for(turn, holder, wait, releases)?;
                }
            }
        }
    }

    /// The same with the wait that `set_lock_wait` has set.
    pub fn lock_key_patiently(&mut self, db: u8, key: &[u8], strength: Strength) -> Result<LockedKey> {
        self.lock_key(db, key, strength, self.patience())
    }

    /// The inner Err names who is in the way.
    fn try_lock_key(
        &mut self,
        keyspace: &Keyspace,
        (db, key): (u8, &[u8]),
        strength: Strength,
    ) -> Result<Result<Option<KeyValue>, TxnId>> {
        let key_locks = self.rows.key_locks.clone();
        self.locked_anew = None;
        let writer = self.writer()?;
        let mut unit = keyspace.lock_to_read(db, key)?;
        let name = key_locks::name(db, unit.place(db, key)?.key.suffix());
        let taken = match key_locks.take(&name, writer.requester(strength)) {
            Ok(taken) => taken,
            Err(holder) => {
                unit.commit()?;
                return Ok(Err(holder));
            }
        };
        writer.note_lock(&key_locks.keys, &name, taken);
        let own = writer.keys.now.get(&(db, key.into())).cloned();
        let found = match own {
            Some(own) => own.filter(|own| !own.is_expired(unit.now_ms())),
            None => read(&mut unit, db, key)?,
        };
        if taken != Acquired::AlreadyHeld {
            self.locked_anew = Some((key_locks.keys.clone(), name, taken));
        }
        self.gate = self.gate.max(unit.commit()?);
        Ok(Ok(found))
    }

    /// What this transaction has made of a key: a value, or nothing (also if its time has come). The outer None: it has not changed it.
    pub fn own_key(&self, db: u8, key: &[u8]) -> Option<Option<&KeyValue>> {
        let changes = self.writer.as_ref().map(|writer| &writer.keys).filter(|keys| !keys.is_empty())?;
        let own = changes.now.get(&(db, key.into()))?;
        let now = self.rows.keyspace().map_or(0, |keyspace| keyspace.clock.wall_ms());
        Some(own.as_ref().filter(|own| !own.is_expired(now)))
    }

    /// Keys of a database that this transaction has changed, those that it has removed included.
    pub fn own_keys(&self, db: u8) -> impl Iterator<Item = &[u8]> {
        let changes = self.writer.iter().flat_map(|writer| writer.keys.iter());
        changes.filter(move |((of, _), _)| *of == db).map(|((_, key), _)| &**key)
    }

    /// Gives a key a value and a time, whatever it was. Others see it after COMMIT.
    pub fn put_key(&mut self, db: u8, key: &[u8], new: KeyValue) -> Result<()> {
        if new.value.len() as u64 > VALUE_MAX {
            return Err(Error::TooLarge { what: "value", limit: VALUE_MAX });
        }
        self.change_key(db, key, Some(new)).map(drop)
    }

    /// Removes a key. False: there is none.
    pub fn delete_key(&mut self, db: u8, key: &[u8]) -> Result<bool> {
        self.change_key(db, key, None)
    }

    /// True if there was a key.
    fn change_key(&mut self, db: u8, key: &[u8], to: Option<KeyValue>) -> Result<bool> {
        self.near.begin_change();
        if db >= DATABASES {
            return Err(Error::Misuse("a database number beyond the last one"));
        }
        let existed = matches!(self.lock_key_patiently(db, key, Strength::Exclusive)?, LockedKey::Present(_));
        if existed || to.is_some() {
            self.writer()?.keys.change((db, key.into()), to);
        }
        Ok(existed)
    }
}

/// What is committed.
fn read(unit: &mut KeyTransaction<'_>, db: u8, key: &[u8]) -> Result<Option<KeyValue>> {
    let Some(entry) = unit.peek(db, key)? else { return Ok(None) };
    if entry.kind != Kind::String {
        return Err(Error::Invalid("the key holds no string".into()));
    }
    let mut value = Vec::with_capacity(entry.len as usize);
    unit.value(&entry, 0..entry.len, &mut value)?;
    Ok(Some(KeyValue { value: value.into(), expire_at_ms: entry.expire_at_ms }))
}
