//! Entries of the expiry tree.
//!
//! The expiry time in the meta record alone decides whether a key exists. A second tree, sorted by time, tells the background thread where to look:
//!
//! ```text
//!   expiry tree   time u64 BE, ms since 1970 | tree key of the meta record   ->   nothing
//! ```
//! An entry is added before the record that needs it and removed after the record has changed (EN-55). Entries are not part of a transaction: after a crash or
//! a rollback there may be one too many, never one too few. A stale entry is recognised when its time comes, because the record has another time.
//!
//! A hash of which fields expire has an entry of its own for the least of their times (EN-83), in which the byte of the tree key that says the length of the
//! key has the bit `OF_FIELDS`. It is counted by nobody.

use crate::error::Result;
use crate::keyspace::field_times;
use crate::keyspace::key::SPACE_BYTES;
use crate::keyspace::record::Meta;
use crate::keyspace::state::Keyspace;
use crate::keyspace::{expiry, key};
use crate::store::Store;
use crate::store::wal::Counted;

pub(crate) fn entry(time: u64, tree_key: &[u8]) -> Vec<u8> {
    [&time.to_be_bytes(), tree_key].concat()
}

/// Bit of the byte behind the keyspace number: the entry is for fields of a hash.
const OF_FIELDS: u8 = 2;

/// Returns the entry for the least expiry time of a hash's fields.
pub(crate) fn entry_of_fields(time: u64, tree_key: &[u8]) -> Vec<u8> {
    let mut entry = entry(time, tree_key);
    entry[8 + SPACE_BYTES] |= OF_FIELDS;
    entry
}

/// Returns the tree key of the meta record that an entry names, and whether the entry is for its fields.
pub(crate) fn named_record(of_entry: &[u8]) -> (Vec<u8>, bool) {
    let mut tree_key = of_entry.to_vec();
    let is_of_fields = tree_key.get(SPACE_BYTES).is_some_and(|kind| kind & OF_FIELDS != 0);
    if is_of_fields {
        tree_key[SPACE_BYTES] &= !OF_FIELDS;
    }
    (tree_key, is_of_fields)
}

/// Returns the keyspace in which an entry counts; `None` if it is for fields.
fn counted_space(of_entry: &[u8]) -> Result<Option<u32>> {
    match named_record(of_entry) {
        (_, true) => Ok(None),
        (tree_key, false) => key::meta_of(&tree_key),
    }
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
            if let Some(space) = counted_space(tree_key)? {
                self.counts.add(db, space, ONE, done.lsn);
            }
            self.background.due(time);
        }
        Ok(done.lsn != 0)
    }

    /// Counts an entry again that was added under a map of databases that was rolled back.
    pub(crate) fn recount_expiry(&self, entry: &[u8]) {
        let space = parse_entry(entry).and_then(|(_, tree_key)| counted_space(tree_key).ok().flatten());
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
            && let Some(space) = counted_space(tree_key)?
            && let Some(db) = self.databases.database_of(space)
        {
            self.counts.add(db, space, MINUS_ONE, done.lsn);
        }
        Ok(())
    }

    pub(crate) fn has_entry_of_fields(&self, time: u64, tree_key: &[u8]) -> Result<bool> {
        Ok(self.store.expiry.get(&expiry::entry_of_fields(time, tree_key), &mut Vec::new())?.present)
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

/// Returns the time of the record that an entry names: the key's expiry time, or the least one of its fields. `None` if there is none.
pub(crate) fn expire_of(store: &Store, of_entry: &[u8]) -> Result<Option<u64>> {
    let (tree_key, is_of_fields) = named_record(of_entry);
    let mut bytes = Vec::new();
    if !store.records.get(&tree_key, &mut bytes)?.present {
        return Ok(None);
    }
    let meta = Meta::parse(&bytes)?;
    if is_of_fields { field_times::least(&meta) } else { Ok(meta.head.expire) }
}
