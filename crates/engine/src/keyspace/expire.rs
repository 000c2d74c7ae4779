//! Removal of expired keys in the background.

use btree::OwnedEntry;

use crate::error::{Error, Result};
use crate::keyspace::background_signal::Progress;
use crate::keyspace::expiry::{expire_of, parse_entry};
use crate::keyspace::key;
use crate::keyspace::key::TreeKey;
use crate::keyspace::record_change::Removal;
use crate::keyspace::state::Keyspace;

impl Keyspace {
    /// Removes up to `budget` expired keys. A key that cannot be read is skipped, and its error returned at the end.
    pub(crate) fn expire_step(&self, budget: usize) -> Result<Progress> {
        let (mut behind, mut damage) = (Vec::new(), None);
        let mut progress = Progress::more();
        for _ in 0..budget {
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
            match self.expire(&entry, time, tree_key, now) {
                Err(error @ Error::Corrupt { .. }) => (behind, damage) = (entry, Some(error)),
                other => other?,
            }
        }
        damage.map_or(Ok(progress), Err)
    }

    /// Returns when the next key expires.
    pub(crate) fn expire_due(&self) -> Result<Option<u64>> {
        let first = self.store.expiry.first_after(&[])?;
        Ok(first.and_then(|entry| parse_entry(&entry.key).map(|(time, _)| time)))
    }

    fn expire(&self, entry: &[u8], time: u64, tree_key: &[u8], now: u64) -> Result<()> {
        self.store.pager.admit()?;
        let space = key::meta_of(tree_key)?.unwrap_or(key::ELEMENTS);
        let Some(db) = self.databases.database_of(space) else { return self.remove_expiry(entry) };
        let tree_key = TreeKey::from_bytes(tree_key);
        let mut key_txn = self.lock_one(db, &tree_key, now);
        if self.databases.space(db) == space {
            if expire_of(&self.store, tree_key.as_slice())? == Some(time) {
                // Also removes the entry, once the removal is decided.
                key_txn.remove_record(db, tree_key, Removal::Expired)?;
            } else {
                self.remove_expiry(entry)?;
            }
        }
        key_txn.commit().map(drop)
    }
}
