//! Keys of the keyspace in a transaction: locked at once, changed in memory, stored at COMMIT (`keyspace/key_locks`, `keyspace/cross_door_commit`).
//!
//! The transaction sees its own change of a key, or what is committed now: keys have no snapshots. A key lock keeps others from changing the key; it does not
//! delay expiry (EN-44).

use std::cell::OnceCell;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::keyspace::key::{DATABASES, VALUE_MAX};
use crate::keyspace::key_locks;
use crate::keyspace::key_txn::KeyTransaction;
use crate::keyspace::record::Kind;
use crate::keyspace::state::Keyspace;
use crate::keyspace::writer_number::EVERYBODY;
use crate::rows::key_changes::{KeyChange, KeyValue};
use crate::rows::lock_table::{Acquired, Blocker, Strength};
use crate::rows::request::Wait;
use crate::rows::state::Rows;
use crate::rows::transaction::Transaction;

/// The outcome of `Transaction::lock_key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockedKey {
    Present(KeyValue),
    Absent,
    /// Another transaction holds the lock, and the caller asked not to wait.
    Skipped,
}

impl Rows {
    pub(crate) fn keyspace(&self) -> Result<Arc<Keyspace>> {
        self.keyspace.upgrade().ok_or(Error::ShuttingDown)
    }
}

impl Transaction {
    /// Locks a key, also an absent one, until the end of the transaction. Returns its state: this transaction's own change, or what is committed.
    pub fn lock_key(&mut self, db: u8, key: &[u8], strength: Strength, wait: Wait) -> Result<LockedKey> {
        Ok(match self.lock_key_and(db, key, (strength, wait), &mut |key_txn, own| read(key_txn, own, db, key))? {
            Some(Some(value)) => LockedKey::Present(value),
            Some(None) => LockedKey::Absent,
            None => LockedKey::Skipped,
        })
    }

    /// Locks a key and reads it in the same moment. `None`: it is locked by another transaction, and the caller asked not to wait.
    pub(crate) fn lock_key_and<T>(
        &mut self,
        db: u8,
        key: &[u8],
        (strength, wait): (Strength, Wait),
        read: ReadLocked<'_, T>,
    ) -> Result<Option<T>> {
        self.alive()?;
        if db >= DATABASES {
            return Err(Error::Misuse("a database number beyond the last one"));
        }
        let (rows, keyspace) = (self.rows.clone(), self.rows.keyspace()?);
        let (name, mut attempt) = (OnceCell::new(), None);
        loop {
            let releases = rows.statuses.releases();
            match self.try_lock_key(&keyspace, (db, key), strength, read)? {
                Ok(found) => return Ok(Some(found)),
                Err(_) if wait == Wait::SkipLocked => return Ok(None),
                Err(holder) => {
                    let attempt = attempt.get_or_insert_with(|| {
                        let name = name.get_or_init(|| key_locks::name(db, key));
                        self.attempt(&rows, rows.key_locks.keys.id, name, strength)
                    });
                    self.wait_for(attempt, holder, wait, releases)?;
                }
            }
        }
    }

    /// Does the same with the timeout that `set_lock_wait` has set.
    pub fn lock_key_patiently(&mut self, db: u8, key: &[u8], strength: Strength) -> Result<LockedKey> {
        self.lock_key(db, key, strength, self.patience())
    }

    /// Tries once. The inner `Err` is an open transaction that holds a conflicting lock.
    fn try_lock_key<T>(
        &mut self,
        keyspace: &Keyspace,
        (db, key): (u8, &[u8]),
        strength: Strength,
        read: ReadLocked<'_, T>,
    ) -> Result<Result<T, Blocker>> {
        let key_locks = self.rows.key_locks.clone();
        self.locked_anew = None;
        let writer = self.writer()?;
        let mut key_txn = keyspace.lock_to_read(db, key)?;
        let name = key_locks::name(db, key_txn.place(db, key)?.key.suffix());
        let taken = match key_locks.take(&name, writer.requester(strength)) {
            Ok(taken) => taken,
            Err(holder) => {
                key_txn.commit()?;
                return Ok(Err(holder));
            }
        };
        writer.note_lock(&key_locks.keys, &name, taken);
        let found = read(&mut key_txn, writer.keys.now.get(&(db, key.into())))?;
        if taken != Acquired::AlreadyHeld {
            self.locked_anew = Some((key_locks.keys.clone(), name, taken));
        }
        self.durability_lsn = self.durability_lsn.max(key_txn.commit()?);
        Ok(Ok(found))
    }

    /// Returns this transaction's own change of a key: a value, or nothing if it is no string any more or has expired. The outer `None`: the transaction has not changed
    /// it.
    pub fn own_key(&self, db: u8, key: &[u8]) -> Option<Option<&KeyValue>> {
        let changes = self.writer.as_ref().map(|writer| &writer.keys).filter(|keys| !keys.is_empty())?;
        let own = changes.now.get(&(db, key.into()))?;
        let now = self.rows.keyspace().map_or(0, |keyspace| keyspace.clock.wall_ms());
        Some(match own {
            KeyChange::String(value) if own.is_present(now) => Some(value),
            _ => None,
        })
    }

    /// Returns the keys of a database that this transaction has changed, deleted ones included.
    pub fn own_keys(&self, db: u8) -> impl Iterator<Item = &[u8]> {
        let changes = self.writer.iter().flat_map(|writer| writer.keys.iter());
        changes.filter(move |((of, _), _)| *of == db).map(|((_, key), _)| &**key)
    }

    /// Stores a string with its expiry time, whatever the key held. Others see it after COMMIT.
    pub fn put_key(&mut self, db: u8, key: &[u8], new: KeyValue) -> Result<()> {
        if new.value.len() as u64 > VALUE_MAX {
            return Err(Error::TooLarge { what: "value", limit: VALUE_MAX });
        }
        self.change_key(db, key, KeyChange::String(new)).map(drop)
    }

    /// Deletes a key. Returns false if there is none.
    pub fn delete_key(&mut self, db: u8, key: &[u8]) -> Result<bool> {
        self.change_key(db, key, KeyChange::Deleted)
    }

    /// Locks a key of any type exclusively, also an absent one, until the end of the transaction. Returns whether it exists.
    pub fn lock_any_key(&mut self, db: u8, key: &[u8]) -> Result<bool> {
        let how = (Strength::Exclusive, self.patience());
        let exists = self.lock_key_and(db, key, how, &mut |key_txn, own| match own {
            Some(own) => Ok(own.is_present(key_txn.now_ms())),
            None => Ok(key_txn.peek(db, key)?.is_some()),
        })?;
        Ok(exists.unwrap_or(false))
    }

    /// Deletes a key of any type. Returns false if there is none.
    pub fn delete_any_key(&mut self, db: u8, key: &[u8]) -> Result<bool> {
        self.rows.keyspace()?.writer.check(EVERYBODY)?;
        self.wait_mode.begin_change();
        let existed = self.lock_any_key(db, key)?;
        if existed {
            self.writer()?.keys.change((db, key.into()), KeyChange::Deleted);
        }
        Ok(existed)
    }

    /// Changes a key. Returns true if it existed.
    fn change_key(&mut self, db: u8, key: &[u8], to: KeyChange) -> Result<bool> {
        self.rows.keyspace()?.writer.check(EVERYBODY)?;
        self.wait_mode.begin_change();
        let existed = matches!(self.lock_key_patiently(db, key, Strength::Exclusive)?, LockedKey::Present(_));
        if existed || !matches!(to, KeyChange::Deleted) {
            self.writer()?.keys.change((db, key.into()), to);
        }
        Ok(existed)
    }
}

/// Reads a key that has been locked: gets its reading transaction, and the transaction's own change of it.
pub(crate) type ReadLocked<'r, T> = &'r mut dyn FnMut(&mut KeyTransaction<'_>, Option<&KeyChange>) -> Result<T>;

/// Reads a string: the transaction's own, or what is committed.
fn read(key_txn: &mut KeyTransaction<'_>, own: Option<&KeyChange>, db: u8, key: &[u8]) -> Result<Option<KeyValue>> {
    let other = || Err(Error::Invalid("the key does not hold a string".into()));
    match own.map(|own| (own, own.is_present(key_txn.now_ms()))) {
        Some((_, false)) => return Ok(None),
        Some((KeyChange::String(value), true)) => return Ok(Some(value.clone())),
        Some(_) => return other(),
        None => {}
    }
    let Some(entry) = key_txn.peek(db, key)? else { return Ok(None) };
    if entry.kind != Kind::String {
        return other();
    }
    let mut value = Vec::with_capacity(entry.len as usize);
    key_txn.value(&entry, 0..entry.len, &mut value)?;
    Ok(Some(KeyValue { value: value.into(), expire_at_ms: entry.expire_at_ms }))
}
