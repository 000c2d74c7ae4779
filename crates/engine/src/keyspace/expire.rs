//! Removal of expired keys, and of due fields of hashes, in the background.
//!
//! Both are found by the expiry tree. A hash keeps its entry until no due field is left in it, so one with very many of them is worked off in steps, and each
//! step is a transaction of its own.

use btree::OwnedEntry;

use crate::error::{Error, Result};
use crate::keyspace::background_signal::Progress;
use crate::keyspace::expiry::{expire_of, named_record, parse_entry};
use crate::keyspace::key;
use crate::keyspace::key::TreeKey;
use crate::keyspace::record_change::Removal;
use crate::keyspace::state::Keyspace;

impl Keyspace {
    /// Removes up to about `budget` expired keys and due fields. A key that cannot be read is skipped, and its error returned at the end.
    pub(crate) fn expire_step(&self, budget: usize) -> Result<Progress> {
        let (mut behind, mut damage) = (Vec::new(), None);
        let mut progress = Progress::more();
        let mut left = budget;
        while left > 0 {
            let now = self.clock.wall_ms();
            let Some(OwnedEntry { key: entry, .. }) = self.store.expiry.first_after(&behind)? else {
                progress = Progress::idle(None);
                break;
            };
            let Some((time, tree_key)) = parse_entry(&entry) else {
                self.store.expiry.modify(&entry, None, |_, change| change.delete())?;
                continue;
            };
            if now <= time {
                progress = Progress::idle(Some((time - now).saturating_add(1)));
                break;
            }
            match self.expire(&entry, (time, tree_key), now, left) {
                Err(error @ Error::Corrupt { .. }) => {
                    (behind, damage) = (entry, Some(error));
                    left -= 1;
                }
                other => left = left.saturating_sub(other?),
            }
        }
        damage.map_or(Ok(progress), Err)
    }

    /// Returns when the next key expires.
    pub(crate) fn expire_due(&self) -> Result<Option<u64>> {
        let first = self.store.expiry.first_after(&[])?;
        Ok(first.and_then(|entry| parse_entry(&entry.key).map(|(time, _)| time)))
    }

    /// Works on a due entry. Returns about how many records it has changed, at least 1.
    fn expire(&self, entry: &[u8], (time, named): (u64, &[u8]), now: u64, budget: usize) -> Result<usize> {
        self.store.pager.admit()?;
        let (tree_key, is_of_fields) = named_record(named);
        let space = key::meta_of(&tree_key)?.unwrap_or(key::ELEMENTS);
        let Some(db) = self.databases.database_of(space) else { return self.remove_expiry(entry).map(|()| 1) };
        let tree_key = TreeKey::from_bytes(&tree_key);
        let mut key_txn = self.lock_one(db, &tree_key, now);
        let mut changed = 1;
        // Another server says what expires, since it is followed (EN-89).
        if self.databases.space(db) == space && !self.writer.is_following() {
            if expire_of(&self.store, named)? != Some(time) {
                self.remove_expiry(entry)?;
            } else if is_of_fields {
                // Also removes the entry, once it is decided that no field is due at this time any more.
                match key_txn.remove_due_fields_of(db, tree_key, budget) {
                    Ok(removed) => changed = removed,
                    Err(error) => {
                        key_txn.abort();
                        return Err(error);
                    }
                }
            } else {
                // Also removes the entry, once the removal is decided.
                key_txn.remove_record(db, tree_key, Removal::Expired)?;
            }
        }
        key_txn.commit().map(|_| changed)
    }
}
