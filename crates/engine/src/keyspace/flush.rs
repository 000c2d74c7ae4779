//! FLUSHDB, FLUSHALL, SWAPDB and the end of an import: one record each, whatever the size.

use crate::error::{Error, Result};
use crate::keyspace::databases::{DatabaseMap, MAP_KEY};
use crate::keyspace::effects::KeyEffect;
use crate::keyspace::key::{DATABASES, ELEMENTS, SLOTS, bound};
use crate::keyspace::key_txn::{BeforeRemap, KeyTransaction};
use crate::keyspace::record::Meta;
use crate::keyspace::stripes::TxnStripes;
use crate::keyspace::watch_registry::Touch;
use crate::store::wal::Counted;

impl KeyTransaction<'_> {
    /// Empties a database.
    pub fn flush(&mut self, db: u8) -> Result<()> {
        let slot = self.slot(db)?;
        self.renew(&[slot])?;
        self.effect(db, KeyEffect::FlushDatabase);
        Ok(())
    }

    /// Empties all databases.
    pub fn flush_all(&mut self) -> Result<()> {
        let all: Result<Vec<u8>> = (0..DATABASES).map(|db| self.slot(db)).collect();
        self.renew(&all?)?;
        self.effect(0, KeyEffect::FlushAll);
        Ok(())
    }

    /// Exchanges two databases with all their keys.
    pub fn swap(&mut self, a: u8, b: u8) -> Result<()> {
        let (a, b) = (self.slot(a)?, self.slot(b)?);
        self.must_hold_all()?;
        if a == b {
            return Ok(());
        }
        let mut map = self.keyspace.databases.map();
        let touched = [(a, b), (b, a)].map(|(db, from)| self.watched_in(db, Some(from)));
        map.spaces.swap(usize::from(a), usize::from(b));
        self.remap(&map)?;
        let counts = &self.keyspace.counts;
        let (of_a, of_b) = (counts.get(a), counts.get(b));
        counts.set(a, of_b);
        counts.set(b, of_a);
        self.touch_all(&[a, b], touched.into());
        self.effect(a, KeyEffect::SwapDatabases(a, b));
        Ok(())
    }

    /// Creates the staged databases, all of them empty.
    pub(crate) fn stage(&mut self) -> Result<()> {
        self.must_hold_all()?;
        let mut map = self.keyspace.databases.map();
        (DATABASES..SLOTS).try_for_each(|slot| map.renew(slot))?;
        self.remap(&map)
    }

    /// Replaces databases by the staged ones with their numbers.
    pub(crate) fn publish(&mut self, dbs: &[u8]) -> Result<()> {
        self.must_hold_all()?;
        let mut map = self.keyspace.databases.map();
        let touched = dbs.iter().map(|db| self.watched_in(*db, Some(db + DATABASES))).collect();
        for db in dbs {
            let staged = usize::from(db + DATABASES);
            map.spaces[usize::from(*db)] = std::mem::replace(&mut map.spaces[staged], ELEMENTS);
        }
        self.remap(&map)?;
        let counts = &self.keyspace.counts;
        for db in dbs {
            counts.set(*db, counts.get(db + DATABASES));
            counts.set(db + DATABASES, Counted::default());
        }
        self.touch_all(dbs, touched);
        self.leaves_garbage = true;
        self.lose_effects();
        Ok(())
    }

    fn renew(&mut self, dbs: &[u8]) -> Result<()> {
        self.must_hold_all()?;
        let mut map = self.keyspace.databases.map();
        let mut renewed = Vec::new();
        for db in dbs {
            let first = self.keyspace.store.records.first_after(&bound(map.spaces[usize::from(*db)]))?;
            let is_empty = first.is_none_or(|first| !first.key.starts_with(&bound(map.spaces[usize::from(*db)])));
            if !is_empty {
                map.renew(*db)?;
                renewed.push(*db);
            }
        }
        if renewed.is_empty() {
            return Ok(());
        }
        let touched = renewed.iter().map(|db| self.watched_in(*db, None)).collect();
        self.remap(&map)?;
        for db in &renewed {
            self.keyspace.counts.set(*db, Counted::default());
        }
        self.touch_all(&renewed, touched);
        self.leaves_garbage = true;
        Ok(())
    }

    fn must_hold_all(&self) -> Result<()> {
        self.must_write()?;
        match self.stripes {
            TxnStripes::All(_) => Ok(()),
            TxnStripes::Some(_) => {
                Err(Error::Misuse("FLUSH or SWAPDB in a transaction that does not hold all stripes"))
            }
        }
    }

    fn remap(&mut self, map: &DatabaseMap) -> Result<()> {
        self.before_change()?;
        let catalog = &self.keyspace.store.catalog;
        let bytes = map.encode();
        match &mut self.record_txn {
            Some(txn) => {
                txn.change(catalog, MAP_KEY, |_, pages| pages.change.put(&[&bytes]))?;
                if self.before_remap.is_none() {
                    let counts = (0..SLOTS).map(|db| self.keyspace.counts.get(db)).collect();
                    let entries = self.stale_if_aborted.len();
                    self.before_remap = Some(BeforeRemap { map: self.keyspace.databases.map(), counts, entries });
                }
            }
            None => {
                let done = catalog.modify(MAP_KEY, None, |_, change| change.put(&[&bytes]))?;
                self.changed = true;
                self.last = self.last.max(done.lsn);
                self.keyspace.databases.decided(done.lsn);
            }
        }
        self.keyspace.databases.set(map);
        Ok(())
    }

    /// Returns what happens to each watched key of `db` when its contents are replaced by those of `by`, or removed.
    fn watched_in(&self, db: u8, by: Option<u8>) -> Vec<(Vec<u8>, Touch)> {
        if !self.keyspace.watched.is_watched() {
            return Vec::new();
        }
        let touch = |suffix: Vec<u8>| {
            let before = self.expiry_of(db, &suffix);
            let after = by.and_then(|by| self.expiry_of(by, &suffix));
            let after_expired = after.flatten().is_some_and(|time| self.now > time);
            let touch = Touch::Replaced { before: before.is_some(), after: after.is_some(), after_expired };
            (suffix, touch)
        };
        self.keyspace.watched.names(db).into_iter().map(touch).collect()
    }

    /// Returns the expiry time of a key's record; the outer `None` if there is no record. A record that cannot be read counts as existing, so that the watcher
    /// is rather marked than not.
    fn expiry_of(&self, db: u8, suffix: &[u8]) -> Option<Option<u64>> {
        let tree_key = [&bound(self.keyspace.databases.space(db))[..], suffix].concat();
        let mut value = Vec::new();
        match self.keyspace.store.records.get(&tree_key, &mut value) {
            Ok(found) if !found.present => None,
            _ => Some(Meta::parse(&value).ok().and_then(|meta| meta.head.expire)),
        }
    }

    fn touch_all(&mut self, dbs: &[u8], touched: Vec<Vec<(Vec<u8>, Touch)>>) {
        if self.keyspace.waiters.any() {
            for name in dbs.iter().flat_map(|db| self.keyspace.waiters.names(*db)) {
                self.ready_if_awaited(name);
            }
        }
        for (db, keys) in dbs.iter().zip(touched) {
            for (suffix, touch) in keys {
                self.keyspace.watched.touch(*db, &suffix, touch);
            }
        }
    }
}
