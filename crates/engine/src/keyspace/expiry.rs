//! Entries of the expiry tree.
//!
//! The expiry time in the meta record alone decides whether a key exists. A second tree, sorted by time, tells the background thread where to look:
//!
//! ```text
//!   expiry tree   time u64 BE, ms since 1970 | tree key of the meta record   ->   nothing
//! ```
//! An entry is added before the record that needs it and removed after the record has changed (EN-55). Entries are not part of a transaction: after a crash or
//! a rollback there may be one too many, never one too few. A stale entry is recognised when its time comes, because the record has another time.

use crate::error::Result;
use crate::keyspace::record::Meta;
use crate::keyspace::state::Keyspace;
use crate::keyspace::{expiry, key};
use crate::store::Store;
use crate::store::wal::Counted;

pub(crate) fn entry(time: u64, tree_key: &[u8]) -> Vec<u8> {
    [&time.to_be_bytes(), tree_key].concat()
}

pub(crate) fn parse_entry(entry: &[u8]) -> Option<(u64, &[u8])> {
    let (time, tree_key) = entry.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*time), tree_key))
}

const ONE: Counted = Counted { keys: 0, expiries: 1 };
const MINUS_ONE: Counted = Counted { keys: 0, expiries: -1 };

impl Keyspace {
    /// Makes sure that the entry exists. Returns true if it did not before. The key's stripe must be held.
    pub(crate) fn add_expiry(&self, db: u8, entry: &[u8]) -> Result<bool> {
        let done = self.store.expiry.modify(entry, None, |old, change| {
            if old.is_none() {
                change.put(&[]);
            }
        })?;
        if let (true, Some((time, tree_key))) = (done.lsn != 0, parse_entry(entry)) {
            if let Some(space) = key::meta_of(tree_key)? {
                self.counts.add(db, space, ONE, done.lsn);
            }
            self.background.due(time);
        }
        Ok(done.lsn != 0)
    }

    /// Counts an entry again that was added under a map of databases that was rolled back.
    pub(crate) fn recount_expiry(&self, entry: &[u8]) {
        let space = parse_entry(entry).and_then(|(_, tree_key)| key::meta_of(tree_key).ok().flatten());
        if let Some(space) = space
            && let Some(db) = self.databases.database_of(space)
        {
            self.counts.add(db, space, ONE, self.store.pager.wal_head());
        }
    }

    /// Removes the entry, if it exists. The key's stripe must be held, unless its keyspace is dead.
    pub(crate) fn remove_expiry(&self, entry: &[u8]) -> Result<()> {
        let done = self.store.expiry.modify(entry, None, |old, change| {
            if old.is_some() {
                change.delete();
            }
        })?;
        if let (true, Some((_, tree_key))) = (done.lsn != 0, parse_entry(entry))
            && let Some(space) = key::meta_of(tree_key)?
            && let Some(db) = self.databases.database_of(space)
        {
            self.counts.add(db, space, MINUS_ONE, done.lsn);
        }
        Ok(())
    }

    pub(crate) fn has_expiry_entry(&self, time: u64, tree_key: &[u8]) -> Result<bool> {
        Ok(self.store.expiry.get(&expiry::entry(time, tree_key), &mut Vec::new())?.present)
    }

    /// Removes the entry if the present record has another time. The key's stripe must be held.
    pub(crate) fn remove_expiry_if_stale(&self, entry: &[u8]) -> Result<()> {
        let Some((time, tree_key)) = parse_entry(entry) else { return Ok(()) };
        if expire_of(&self.store, tree_key)? == Some(time) { Ok(()) } else { self.remove_expiry(entry) }
    }
}

/// Returns the expiry time of the record, if there is a record and it has one.
pub(crate) fn expire_of(store: &Store, tree_key: &[u8]) -> Result<Option<u64>> {
    let mut bytes = Vec::new();
    if !store.records.get(tree_key, &mut bytes)?.present {
        return Ok(None);
    }
    Ok(Meta::parse(&bytes)?.head.expire)
}
