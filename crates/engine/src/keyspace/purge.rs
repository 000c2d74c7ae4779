//! Purge: removes what no record refers to any more, in the background and after a crash alike.
//!
//! `store/purge_queue` has the entries. An entry whose transaction is still open is skipped, also one that its rollback has put back (EN-12). Records of a dead
//! keyspace need no entry: a keyspace number that is in the tree but not in the map of databases is dead.

use std::ops::Bound;

use btree::{Batch, OwnedEntry, Tree, TreeId};
use pager::PageId;

use crate::error::{Error, Result};
use crate::keyspace::background_signal::Progress;
use crate::keyspace::field_times;
use crate::keyspace::record::Meta;
use crate::keyspace::state::Keyspace;
use crate::keyspace::{expiry, key, stripes};
use crate::rows::row::summarize;
use crate::store::Store;
use crate::store::purge_queue::{Queued, encode_version, version_key};

impl Store {
    /// Removes about `budget` elements of a version id. Returns true if none is left.
    fn purge_version(&self, version: u64, budget: usize) -> Result<bool> {
        let (from, to) = key::elements(version);
        self.purge_elements(&from, &to, budget)
    }

    /// Removes about `budget` elements between two keys. Values in segments of their own go into the queue first. Returns true if none is left.
    fn purge_elements(&self, from: &[u8], to: &[u8], budget: usize) -> Result<bool> {
        let mut scan = self.records.scan(Bound::Included(from), Bound::Excluded(to));
        let (mut batch, mut behind, mut seen) = (Batch::new(), None, 0);
        while seen < budget && scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                if let Some(inner) = Meta::parse(record.value).ok().and_then(|meta| meta.body.version()) {
                    self.queue.modify(&version_key(inner), None, |_, change| change.put(&[&encode_version(0)]))?;
                }
            }
            seen += batch.len();
            behind = Some([batch.get(batch.len() - 1).key, &[0]].concat());
        }
        let Some(behind) = behind else { return Ok(true) };
        self.purge_records(from, &behind, usize::MAX)?;
        Ok(false)
    }

    /// Removes about `budget` records between two keys, together with the pages that they refer to. Returns true if none is left.
    fn purge_records(&self, from: &[u8], to: &[u8], budget: usize) -> Result<bool> {
        let mut purge = self.records.delete_range(from, Some(to));
        let mut is_done = false;
        while !is_done && purge.records < budget as u64 {
            is_done = purge.step(1, |_, value, freed| {
                // A record that cannot be read refers to nothing: its pages are lost, and nothing else is.
                if let Ok(meta) = Meta::parse(value) {
                    for run in meta.body.runs() {
                        freed.free(run.first, run.pages);
                    }
                }
            })?;
        }
        self.metrics.purged_records.add(purge.records);
        Ok(is_done)
    }
}

impl Store {
    /// Removes about `budget` rows of a dropped map, and with the last of them its pages and its entry in the queue.
    fn purge_map(&self, key: &[u8], map: TreeId, root: PageId, budget: usize) -> Result<()> {
        let tree = Tree::open(&self.pager, map, root);
        let mut scan = tree.scan(Bound::Unbounded, Bound::Unbounded);
        let (mut batch, mut behind, mut seen) = (Batch::new(), None, 0);
        while seen < budget && scan.next_batch(&mut batch)? {
            // First the values of the rows, then the rows themselves.
            for record in batch.iter() {
                if let Ok(Some((version, _))) = summarize(record.value).map(|row| row.segments) {
                    self.queue.modify(&version_key(version), None, |_, change| change.put(&[&encode_version(0)]))?;
                }
            }
            seen += batch.len();
            behind = Some([batch.get(batch.len() - 1).key, &[0]].concat());
        }
        let is_last = behind.is_none();
        let mut purge = tree.delete_range(&[], behind.as_deref());
        while !purge.step(16, |_, _, _| ())? {}
        self.metrics.purged_records.add(purge.records);
        if is_last {
            let pages = tree.pages()?;
            self.queue.modify(key, None, |_, change| {
                pages.into_iter().for_each(|page| change.free(page, 1));
                change.delete();
            })?;
        }
        Ok(())
    }
}

impl Keyspace {
    /// Returns the number of entries in the purge queue, at most 1000.
    pub fn purge_backlog(&self) -> Result<u64> {
        let mut scan = self.store.queue.scan(Bound::Unbounded, Bound::Unbounded);
        let (mut batch, mut count) = (Batch::new(), 0);
        while count < 1000 && scan.next_batch(&mut batch)? {
            count += batch.len() as u64;
        }
        Ok(count.min(1000))
    }

    /// Removes up to about `budget` records that are garbage.
    pub(crate) fn purge_step(&self, budget: usize) -> Result<Progress> {
        if self.purge_queue(budget)? || self.purge_dead(budget)? {
            Ok(Progress::more())
        } else {
            Ok(Progress::idle(None))
        }
    }

    /// Works on the first entry that may be removed. Returns false if there is none. A damaged entry is skipped, and its error returned at the end.
    fn purge_queue(&self, budget: usize) -> Result<bool> {
        let (mut behind, mut damage) = (Vec::new(), None);
        loop {
            let Some(OwnedEntry { key, value, .. }) = self.store.queue.first_after(&behind)? else {
                return damage.map_or(Ok(false), Err);
            };
            match self.purge_entry(&key, &value, budget) {
                Ok(true) => return Ok(true),
                Err(error @ Error::Corrupt { .. }) => damage = Some(error),
                other => drop(other?),
            }
            behind = key;
        }
    }

    /// Works on an entry. Returns false if the entry belongs to an open transaction.
    fn purge_entry(&self, key: &[u8], value: &[u8], budget: usize) -> Result<bool> {
        let entry = Queued::parse(key, value)?;
        // The order matters: an entry that is still there after its transaction was decided stays until purge removes it.
        if self.is_open(&entry) || !self.is_still(key, value)? {
            return Ok(false);
        }
        self.store.pager.admit()?;
        match entry {
            Queued::Pages { .. } => self.store.free_queued_pages(key)?,
            Queued::Version { version, .. } => {
                if self.store.purge_version(version, budget)? {
                    self.store.queue.modify(key, None, |_, change| change.delete())?;
                }
            }
            Queued::Range { ref from, ref to, .. } => {
                if self.store.purge_elements(from, to, budget)? {
                    self.store.queue.modify(key, None, |_, change| change.delete())?;
                }
            }
            Queued::Map { map, root, .. } => self.store.purge_map(key, map, root, budget)?,
        }
        Ok(true)
    }

    fn is_still(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let mut now = Vec::new();
        Ok(self.store.queue.get(key, &mut now)?.present && now == value)
    }

    /// Returns true if the entry belongs to an open transaction, or must be kept for a snapshot.
    fn is_open(&self, entry: &Queued) -> bool {
        let creating = match entry {
            Queued::Version { version, .. } => self.store.creating.lock().contains(version),
            Queued::Pages { .. } | Queued::Map { .. } | Queued::Range { .. } => false,
        };
        // A transaction's own entries are held until no snapshot can see what it has replaced.
        creating || self.store.is_active(entry.txn()) || self.store.held.lock().contains(&entry.txn())
    }

    /// Works on the first dead keyspace. Returns false if there is none.
    fn purge_dead(&self, budget: usize) -> Result<bool> {
        let mut space = 0;
        while let Some(first) = self.store.records.first_after(&key::bound(space))? {
            let Some(found) = key::meta_of(&first.key)? else { return Ok(false) };
            if self.databases.database_of(found).is_some() {
                space = found + 1;
                continue;
            }
            // A transaction that flushes a database holds all stripes until it is decided. After passing them, a dead keyspace stays dead.
            let (stripe, lsn) = (stripes::ALL, self.stripes.lock(stripes::ALL));
            let dead = self.databases.database_of(found).is_none();
            self.stripes.unlock(stripe, lsn);
            if dead {
                self.store.pager.admit()?;
                self.purge_space(found, budget)?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Removes the first records of a dead keyspace: first what they refer to, then the records themselves.
    fn purge_space(&self, space: u32, budget: usize) -> Result<()> {
        let (from, to) = (key::bound(space), key::bound(space + 1));
        let mut scan = self.store.records.scan(Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        let mut batch = Batch::new();
        let mut last = None;
        let mut seen = 0;
        while seen < budget && scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                let Ok(meta) = Meta::parse(record.value) else { continue };
                if let Some(time) = meta.head.expire {
                    self.remove_expiry(&expiry::entry(time, record.key))?;
                }
                if let Ok(Some(time)) = field_times::least(&meta) {
                    self.remove_expiry(&expiry::entry_of_fields(time, record.key))?;
                }
                if let Some(version) = meta.body.version() {
                    let value = encode_version(0);
                    self.store.queue.modify(&version_key(version), None, |_, change| change.put(&[&value]))?;
                }
            }
            seen += batch.len();
            last = Some(batch.get(batch.len() - 1).key.to_vec());
        }
        if let Some(mut behind) = last {
            behind.push(0);
            self.store.purge_records(&from, &behind, usize::MAX)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use os::{SimClock, SimFolder};

    use super::*;
    use crate::keyspace::{Expire, KeySet};
    use crate::{Engine, Options};

    /// An undo that a full disk has stopped starts again. Purge must not have removed what it has put back.
    #[test]
    fn a_rollback_that_starts_again_finds_what_it_has_restored() {
        let pager = pager::Options {
            frame_bytes: 512 * 4096,
            ring_bytes: 4 << 20,
            segment_bytes: 8 << 20,
            background: pager::Background::Manual,
            ..pager::Options::default()
        };
        let options = Options { pager, ..Options::default() };
        let engine = Engine::open(options, SimFolder::new(1), Arc::new(SimClock::new(1))).unwrap();
        let keyspace = engine.keyspace();
        let done = keyspace.write::<(), Error>(KeySet::Keys(&[(0, b"long")]), true, |key_txn| {
            key_txn.put_string(0, b"long", &[1; 600_000], Expire::None)?;
            key_txn.patch_string(0, b"long", 300_000, &[2; 100_000])?;
            let txn = key_txn.record_txn.as_ref().expect("a value in segments needs one");
            let (id, images) = (txn.id(), txn.images().clone());
            keyspace.store.put_back(id, &images, &images)?;
            while keyspace.background_step(64)?.more {}
            Err(Error::DiskFull)
        });
        assert!(matches!(done, Err(Error::DiskFull)));
        while keyspace.background_step(64).unwrap().more {}
        let report = engine.check().unwrap();
        assert!(report.problems.is_empty(), "{:#?}", report.problems);
        assert_eq!((keyspace.purge_backlog().unwrap(), report.queued), (0, 0));
    }

    #[test]
    fn nothing_expires_in_the_background_while_it_is_paused() {
        let pager = pager::Options {
            frame_bytes: 512 * 4096,
            ring_bytes: 1 << 20,
            segment_bytes: 4 << 20,
            background: pager::Background::Manual,
            ..pager::Options::default()
        };
        let clock = Arc::new(SimClock::new(1000));
        let options = Options { pager, ..Options::default() };
        let engine = Engine::open(options, SimFolder::new(1), clock.clone()).unwrap();
        let keyspace = engine.keyspace();
        keyspace.set(0, b"k", b"v", Expire::At(1100)).unwrap();
        keyspace.pause_expire(2000);
        clock.advance_ms(500);
        while keyspace.background_step(64).unwrap().more {}
        assert_eq!(engine.metrics().expired.get(), 0);
        let due_ms = keyspace.background_step(64).unwrap().due_ms;
        assert!(due_ms.is_some_and(|due| due <= 500), "the next step is due when the pause is over: {due_ms:?}");
        clock.advance_ms(500);
        while keyspace.background_step(64).unwrap().more {}
        assert_eq!(engine.metrics().expired.get(), 1);
        // A pause can be ended early.
        keyspace.set(0, b"k", b"v", Expire::At(2100)).unwrap();
        keyspace.pause_expire(1 << 40);
        clock.advance_ms(500);
        while keyspace.background_step(64).unwrap().more {}
        assert_eq!(engine.metrics().expired.get(), 1);
        keyspace.pause_expire(0);
        while keyspace.background_step(64).unwrap().more {}
        assert_eq!(engine.metrics().expired.get(), 2);
    }
}
