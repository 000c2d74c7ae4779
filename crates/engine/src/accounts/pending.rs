//! Accounts that an open transaction of rows has changed, and how its commit changes the list.
//!
//! Until the commit they are in the memory of the transaction's owner alone: the list, and so every door, has the accounts from before. The commit locks
//! the list, compares, writes the records under the transaction's id, and publishes them when the one COMMIT is in the WAL (EN-69).

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::sync::MutexGuard;

use crate::accounts::{Account, AccountChange, Accounts, DEFAULT_ACCOUNT, UNNUMBERED, is_unchanged};
use crate::error::{Error, Result};
use crate::txn::record_txn::RecordTxn;

#[derive(Clone, Debug)]
struct PendingAccount {
    /// The account in the list on which the change is based.
    base: Option<Arc<Account>>,
    /// `None`: removed.
    now: Option<Arc<Account>>,
}

/// The new state of each changed account.
#[derive(Clone, Debug, Default)]
pub struct PendingAccounts {
    by_name: BTreeMap<String, PendingAccount>,
    /// The names of changed accounts; `None`: removed.
    names: BTreeMap<u32, Option<String>>,
}

impl PendingAccounts {
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns what has become of the account of that name; `None` if nothing.
    pub fn get(&self, name: &str) -> Option<Option<&Arc<Account>>> {
        self.by_name.get(name).map(|pending| pending.now.as_ref())
    }

    /// Returns what has become of the account of that number; `None` if nothing.
    pub fn by_id(&self, id: u32) -> Option<Option<&Arc<Account>>> {
        let name = self.names.get(&id)?;
        Some(name.as_ref().and_then(|name| self.get(name).flatten()))
    }

    /// Returns the changed accounts that are not removed, in the order of their names.
    pub fn present(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.by_name.values().filter_map(|pending| pending.now.as_ref())
    }

    /// Puts an account, which has a number (`Accounts::take_number`). `base`: the account of that name in the list.
    pub fn put(&mut self, account: Account, base: Option<Arc<Account>>) {
        assert_ne!(account.id, UNNUMBERED);
        self.names.insert(account.id, Some(account.name.clone()));
        let name = account.name.clone();
        self.by_name.entry(name).or_insert(PendingAccount { base, now: None }).now = Some(Arc::new(account));
    }

    /// Removes an account. `base`: the account of that name in the list.
    pub fn remove(&mut self, name: &str, base: Option<Arc<Account>>) {
        let old = self.get(name).map(|now| now.cloned()).unwrap_or_else(|| base.clone());
        if let Some(old) = old {
            let known = self.names.entry(old.id).or_insert(None);
            // Under a new name the account has its number still.
            if known.as_deref() == Some(name) {
                *known = None;
            }
        }
        self.by_name.entry(name.to_owned()).or_insert(PendingAccount { base, now: None }).now = None;
    }
}

/// A change of the list within the commit of a transaction of rows. No other change comes in between.
pub(crate) struct JoinedAccounts<'a> {
    accounts: &'a Accounts,
    _changing: MutexGuard<'a, ()>,
    changes: Vec<AccountChange>,
}

impl Accounts {
    /// Begins to change the list in the commit of a transaction. Fails if an account has been changed since the transaction has based its change on it.
    pub(crate) fn join(&self, pending: &PendingAccounts) -> Result<JoinedAccounts<'_>> {
        let changing = self.changing.lock();
        let (mut removed, mut put) = (Vec::new(), Vec::new());
        {
            let list = self.list.read();
            for (name, PendingAccount { base, now }) in &pending.by_name {
                if !is_unchanged(base.as_ref(), list.by_name.get(name)) {
                    return Err(Error::SerializationFailure { is_deleted: false });
                }
                match now {
                    Some(account) => {
                        account.check()?;
                        put.push(AccountChange::Put(Account::clone(account)));
                    }
                    None if name == DEFAULT_ACCOUNT => {
                        return Err(Error::Misuse("the account `default` is removed"));
                    }
                    None => removed.push(AccountChange::Remove(name.clone())),
                }
            }
        }
        // A renamed account keeps its number.
        removed.append(&mut put);
        Ok(JoinedAccounts { accounts: self, _changing: changing, changes: removed })
    }
}

impl JoinedAccounts<'_> {
    /// Writes the records. After an error the transaction must be rolled back.
    pub fn write(&self, txn: &mut RecordTxn<'_>) -> Result<()> {
        self.accounts.write(txn, &self.changes)
    }

    /// Changes the list. COMMIT is in the WAL.
    pub fn publish(self) {
        self.accounts.publish(self.changes);
    }
}
