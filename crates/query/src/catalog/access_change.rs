//! Changes of owners and privileges, as a part of a change of definitions.

use std::sync::Arc;

use datum::Result;
use engine::rows::Strength;
use engine::{Account, Accounts};

use crate::catalog::Writing;
use crate::catalog::access::{AccessKey, AccessRecord, RoleId};
use crate::catalog::object_id::ObjectId;
use crate::catalog::record::put_pieces;
use crate::engine_fault::engine_fault;

impl Writing<'_> {
    /// Locks the name of an account to the end of the transaction, and returns the account as the last one who had the
    /// lock has left it.
    pub fn account(&mut self, name: &str) -> Result<Option<Arc<Account>>> {
        self.lock(&[&b"L\0a"[..], name.as_bytes()].concat(), Strength::Exclusive)?;
        match self.pending.changes.accounts.get(name) {
            Some(own) => Ok(own.cloned()),
            None => Ok(self.accounts().settled(name)),
        }
    }

    /// Creates an account, or replaces the one that `account` has locked and returned; a new one gets its number. Other
    /// sessions see it from the commit on.
    pub fn put_account(&mut self, mut account: Account, base: Option<Arc<Account>>) -> Result<()> {
        if account.id == 0 {
            account.id = self.accounts().take_number().map_err(engine_fault)?;
        }
        Arc::make_mut(&mut self.changes().accounts).put(account, base);
        self.snapshot.accounts = self.pending.changes.accounts.clone();
        Ok(())
    }

    /// Removes the account that `account` has locked and returned.
    pub fn remove_account(&mut self, name: &str, base: Option<Arc<Account>>) {
        Arc::make_mut(&mut self.changes().accounts).remove(name, base);
        self.snapshot.accounts = self.pending.changes.accounts.clone();
    }

    fn accounts(&self) -> &Accounts {
        self.catalog.engine.accounts()
    }

    /// Locks a role to the end of the transaction: shared before a record refers to it, exclusively before it is dropped.
    /// Returns whether its account is there then.
    pub fn hold_role(&mut self, role: RoleId, strength: Strength) -> Result<bool> {
        self.lock(&[&b"L\0i"[..], &role.to_be_bytes()].concat(), strength)?;
        if let Some(own) = self.pending.changes.accounts.by_id(role) {
            return Ok(own.is_some());
        }
        let name = self.accounts().by_id(role).map(|account| account.name.clone());
        Ok(name.is_some_and(|name| self.accounts().settled(&name).is_some()))
    }

    /// Locks a record to the end of the transaction, and returns it as the last one who had the lock has left it.
    pub fn access(&mut self, key: AccessKey) -> Result<Option<Arc<AccessRecord>>> {
        self.lock(&[&b"L\0"[..], &key.bytes()].concat(), Strength::Exclusive)?;
        match self.pending.changes.access.records.get(&key) {
            Some(own) => Ok(own.clone()),
            None => Ok(self.catalog.published().access.get(key).cloned()),
        }
    }

    /// Stores a record, or removes it. `is_new`: the object is one of this transaction.
    pub fn put_access(&mut self, key: AccessKey, access: Option<AccessRecord>, is_new: bool) -> Result<()> {
        let access = access.filter(|access| *access != AccessRecord::default()).map(Arc::new);
        put_pieces(&mut self.txn, &key.bytes(), access.as_ref().map(|access| access.encode()).as_deref())?;
        self.note_access(key, access, !is_new);
        Ok(())
    }

    /// Removes the records of an object that is dropped.
    pub(super) fn drop_access(&mut self, id: ObjectId) -> Result<()> {
        for key in [AccessKey::object(id), AccessKey::database(id)] {
            if self.snapshot.access.get(key).is_some() {
                put_pieces(&mut self.txn, &key.bytes(), None)?;
                self.note_access(key, None, false);
            }
        }
        Ok(())
    }

    fn note_access(&mut self, key: AccessKey, access: Option<Arc<AccessRecord>>, is_felt: bool) {
        let changes = &mut self.changes().access;
        changes.records.insert(key, access.clone());
        changes.is_felt |= is_felt;
        self.snapshot.access.put(key, access);
        self.snapshot.access.version += u64::from(is_felt);
    }
}
