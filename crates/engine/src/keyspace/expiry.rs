//! Keys that go by themselves.
//!
//! The time stands in the meta record; that alone decides whether a key is there. A second tree, sorted by time, only tells the background where to look:
//!
//! ```text
//!   expiry tree   time u64 BE, ms since 1970 | tree key of the meta record   ->   nothing
//! ```
//! An entry is written before the record that needs it and taken out after the record has changed (X1). Entries are not part of a transaction: after a crash
//! or a rollback there may be one too many, never one too few. One too many is found out when its time comes, because the record says otherwise.

use btree::OwnedEntry;

use crate::error::{Error, Result};
use crate::keyspace::key::{self, TreeKey};
use crate::keyspace::record::Meta;
use crate::keyspace::unit::Removal;
use crate::keyspace::{Keyspace, Progress};
use crate::txn::{Counted, Store};

pub(crate) fn entry(time: u64, tree_key: &[u8]) -> Vec<u8> {
    [&time.to_be_bytes(), tree_key].concat()
}

fn parse(entry: &[u8]) -> Option<(u64, &[u8])> {
    let (time, tree_key) = entry.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*time), tree_key))
}

const ONE: Counted = Counted { keys: 0, expiries: 1 };
const MINUS_ONE: Counted = Counted { keys: 0, expiries: -1 };

impl Keyspace {
    /// Makes sure that the entry exists; true if it did not before. The key's stripe is held.
    pub(crate) fn add_expiry(&self, db: u8, entry: &[u8]) -> Result<bool> {
        let done = self.store.expiry.modify(entry, None, |old, change| {
            if old.is_none() {
                change.put(&[]);
            }
        })?;
        if let (true, Some((time, tree_key))) = (done.lsn != 0, parse(entry)) {
            if let Some(space) = key::meta_of(tree_key)? {
                self.counts.add(db, space, ONE, done.lsn);
            }
            self.background.due(time);
        }
        Ok(done.lsn != 0)
    }

    /// Counts an entry again that was added under a map of databases which did not last.
    pub(crate) fn recount_expiry(&self, entry: &[u8]) {
        let space = parse(entry).and_then(|(_, tree_key)| key::meta_of(tree_key).ok().flatten());
        if let Some(space) = space
            && let Some(db) = self.databases.database_of(space)
        {
            self.counts.add(db, space, ONE, self.store.pager.wal_head());
        }
    }

    /// Takes the entry out, if it is there. The key's stripe is held, unless its keyspace is dead.
    pub(crate) fn remove_expiry(&self, entry: &[u8]) -> Result<()> {
        let done = self.store.expiry.modify(entry, None, |old, change| {
            if old.is_some() {
                change.delete();
            }
        })?;
        if let (true, Some((_, tree_key))) = (done.lsn != 0, parse(entry))
            && let Some(space) = key::meta_of(tree_key)?
            && let Some(db) = self.databases.database_of(space)
        {
            self.counts.add(db, space, MINUS_ONE, done.lsn);
        }
        Ok(())
    }

    /// Takes the entry out if the record, as it stands now, has another time. The key's stripe is held.
    pub(crate) fn remove_expiry_if_stale(&self, entry: &[u8]) -> Result<()> {
        let Some((time, tree_key)) = parse(entry) else { return Ok(()) };
        if expire_of(&self.store, tree_key)? == Some(time) { Ok(()) } else { self.remove_expiry(entry) }
    }

    /// Removes up to `budget` keys whose time has come. A key that cannot be read stops nothing but itself.
    pub(crate) fn expire_step(&self, budget: usize) -> Result<Progress> {
        let (mut behind, mut damage) = (Vec::new(), None);
        let mut progress = Progress::more();
        for _ in 0..budget {
            let now = self.clock.wall_ms();
            let Some(OwnedEntry { key: entry, .. }) = self.store.expiry.first_after(&behind)? else {
                progress = Progress::idle(None);
                break;
            };
            let Some((time, tree_key)) = parse(&entry) else {
                self.store.expiry.modify(&entry, None, |_, change| change.delete())?;
                continue;
            };
            if now <= time {
                progress = Progress::idle(Some((time - now).saturating_add(1)));
                break;
            }
            match self.expire(&entry, time, tree_key, now) {
                Err(error @ Error::Corrupt { .. }) => (behind, damage) = (entry, Some(error)),
                other => other?,
            }
        }
        damage.map_or(Ok(progress), Err)
    }

    /// When the next key expires.
    pub(crate) fn expire_due(&self) -> Result<Option<u64>> {
        let first = self.store.expiry.first_after(&[])?;
        Ok(first.and_then(|entry| parse(&entry.key).map(|(time, _)| time)))
    }

    fn expire(&self, entry: &[u8], time: u64, tree_key: &[u8], now: u64) -> Result<()> {
        self.store.pager.admit()?;
        let space = key::meta_of(tree_key)?.unwrap_or(key::ELEMENTS);
        let Some(db) = self.databases.database_of(space) else { return self.remove_expiry(entry) };
        let tree_key = TreeKey::from_bytes(tree_key);
        let mut unit = self.lock_one(db, &tree_key, now);
        if self.databases.space(db) == space {
            if expire_of(&self.store, tree_key.as_slice())? == Some(time) {
                // Takes the entry out too, once the removal is decided.
                unit.remove_record(db, tree_key, Removal::Expired)?;
            } else {
                self.remove_expiry(entry)?;
            }
        }
        unit.commit().map(drop)
    }
}

/// The time in the record, if there is a record and it has one.
fn expire_of(store: &Store, tree_key: &[u8]) -> Result<Option<u64>> {
    let mut bytes = Vec::new();
    if !store.records.get(tree_key, &mut bytes)?.present {
        return Ok(None);
    }
    Ok(Meta::parse(&bytes)?.head.expire)
}
