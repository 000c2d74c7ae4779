//! What nobody names any more, and how it goes: in the background, and after a crash as if there had been none.
//!
//! ```text
//!   queue tree   1 | transaction id u64 BE | part u32 BE   ->   transaction id u64 | runs: first page u64, pages u32      pages free once it is committed
//!                2 | version id u64 BE                     ->   transaction id u64, or 0 while the elements are written   elements to be removed
//!                3 | map u32 BE                            ->   transaction id u64 | root page u64                        a tree to be removed
//! ```
//! Every entry is written by the transaction that makes its content garbage, so it exists if and only if the garbage does (E8). An entry whose
//! transaction is still open is left alone, also one that its rollback has put back (E12).
//!
//! Records of a dead keyspace need no entry: a keyspace number that is in the tree but not in the map of databases is dead.

use std::ops::Bound;

use btree::{Batch, OwnedEntry, Tree, TreeId};
use pager::{PageId, Run, TxnId};

use crate::error::{Error, Result};
use crate::keyspace::key;
use crate::keyspace::record::Meta;
use crate::keyspace::{Keyspace, Progress, expiry};
use crate::rows;
use crate::txn::Store;

const PAGES: u8 = 1;
const VERSION: u8 = 2;
/// A map of rows: see rows/maps.rs.
pub(crate) const MAP_GARBAGE: u8 = 3;
const RUN_BYTES: usize = 12;

/// Runs that fit into one entry.
pub(crate) const QUEUED_RUNS_MAX: usize = 96;
const _: () = assert!(8 + QUEUED_RUNS_MAX * RUN_BYTES <= btree::Tree::VALUE_MAX);

pub(crate) fn queue_key_of_pages(txn: TxnId, part: u32) -> [u8; 13] {
    let mut key = [PAGES; 13];
    key[1..9].copy_from_slice(&txn.to_be_bytes());
    key[9..].copy_from_slice(&part.to_be_bytes());
    key
}

pub(crate) fn encode_queued_pages(txn: TxnId, runs: &[Run]) -> Vec<u8> {
    let mut value = txn.to_le_bytes().to_vec();
    for run in runs {
        value.extend_from_slice(&run.first.to_le_bytes());
        value.extend_from_slice(&run.pages.to_le_bytes());
    }
    value
}

pub(crate) fn version_key(version: u64) -> [u8; 9] {
    let mut key = [VERSION; 9];
    key[1..].copy_from_slice(&version.to_be_bytes());
    key
}

pub(crate) fn is_version_key(key: &[u8]) -> bool {
    key.first() == Some(&VERSION)
}

pub(crate) fn encode_version(txn: TxnId) -> [u8; 8] {
    txn.to_le_bytes()
}

/// An entry of the queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    Pages { txn: TxnId, runs: Vec<Run> },
    Version { txn: TxnId, version: u64 },
    Map { txn: TxnId, map: TreeId, root: PageId },
}

impl Queued {
    pub fn parse(key: &[u8], value: &[u8]) -> Result<Queued> {
        Self::try_parse(key, value)
            .ok_or_else(|| Error::corrupt(format!("entry of unknown form in the purge queue: {key:02x?}")))
    }

    fn try_parse(key: &[u8], value: &[u8]) -> Option<Queued> {
        let (txn, rest) = value.split_first_chunk::<8>()?;
        let txn = u64::from_le_bytes(*txn);
        match *key.first()? {
            PAGES if rest.len().is_multiple_of(RUN_BYTES) => {
                let run = |bytes: &[u8]| Run {
                    first: u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")),
                    pages: u32::from_le_bytes(bytes[8..].try_into().expect("four bytes")),
                };
                Some(Queued::Pages { txn, runs: rest.chunks_exact(RUN_BYTES).map(run).collect() })
            }
            VERSION if rest.is_empty() => {
                Some(Queued::Version { txn, version: u64::from_be_bytes(key[1..].try_into().ok()?) })
            }
            MAP_GARBAGE => Some(Queued::Map {
                txn,
                map: TreeId::from_be_bytes(key[1..].try_into().ok()?),
                root: PageId::from_le_bytes(rest.try_into().ok()?),
            }),
            _ => None,
        }
    }

    fn txn(&self) -> TxnId {
        match self {
            Queued::Pages { txn, .. } | Queued::Version { txn, .. } | Queued::Map { txn, .. } => *txn,
        }
    }
}

impl Store {
    /// Frees the pages of a decided entry and takes it out, both or neither. Whoever comes second finds nothing.
    pub fn free_queued_pages(&self, key: &[u8]) -> Result<()> {
        let done = self.queue.modify(key, None, |old, change| -> Result<()> {
            let Some(old) = old else { return Ok(()) };
            let Queued::Pages { runs, .. } = Queued::parse(key, old.value)? else {
                return Err(Error::corrupt("a purge entry of another kind"));
            };
            for run in runs {
                change.free(run.first, run.pages);
            }
            change.delete();
            Ok(())
        })?;
        done.result
    }

    /// Removes about `budget` records between two keys, together with the pages they name. True if none is left.
    fn purge_records(&self, from: &[u8], to: &[u8], budget: usize) -> Result<bool> {
        let mut purge = self.records.delete_range(from, Some(to));
        let mut is_done = false;
        while !is_done && purge.records < budget as u64 {
            is_done = purge.step(1, |_, value, freed| {
                // What cannot be read names nothing: its pages are lost to use, and nothing else is.
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
    /// Removes about `budget` rows of a map that nobody names; with the last of them its pages and its entry in the queue.
    fn purge_map(&self, key: &[u8], map: TreeId, root: PageId, budget: usize) -> Result<()> {
        let tree = Tree::open(&self.pager, map, root);
        let mut scan = tree.scan(Bound::Unbounded, Bound::Unbounded);
        let (mut batch, mut behind, mut seen) = (Batch::new(), None, 0);
        while seen < budget && scan.next_batch(&mut batch)? {
            // First what hangs on the rows, then they themselves.
            for record in batch.iter() {
                if let Ok(Some((version, _))) = rows::summarize(record.value).map(|row| row.segments) {
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
    /// Entries of the purge queue, up to a thousand; then it says a thousand.
    pub fn purge_backlog(&self) -> Result<u64> {
        let mut scan = self.store.queue.scan(Bound::Unbounded, Bound::Unbounded);
        let (mut batch, mut count) = (Batch::new(), 0);
        while count < 1000 && scan.next_batch(&mut batch)? {
            count += batch.len() as u64;
        }
        Ok(count.min(1000))
    }

    /// Removes up to about `budget` records that nobody names.
    pub(crate) fn purge_step(&self, budget: usize) -> Result<Progress> {
        if self.purge_queue(budget)? || self.purge_dead(budget)? {
            Ok(Progress::more())
        } else {
            Ok(Progress::idle(None))
        }
    }

    /// Works on the first entry that may be worked on. False if there is none. An entry that cannot be worked on stops nothing but itself.
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

    /// False if the entry belongs to a unit that is under way.
    fn purge_entry(&self, key: &[u8], value: &[u8], budget: usize) -> Result<bool> {
        let entry = Queued::parse(key, value)?;
        // Asked first and looked at again: an entry that is there after its unit was decided is there for good.
        if self.is_open(&entry) || !self.is_still(key, value)? {
            return Ok(false);
        }
        self.store.pager.admit()?;
        match entry {
            Queued::Pages { .. } => self.store.free_queued_pages(key)?,
            Queued::Version { version, .. } => {
                let (first, to) = key::elements(version);
                if self.store.purge_records(&first, &to, budget)? {
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

    /// True if the entry belongs to a unit that is still under way.
    fn is_open(&self, entry: &Queued) -> bool {
        let creating = match entry {
            Queued::Version { version, .. } => self.store.creating.lock().contains(version),
            Queued::Pages { .. } | Queued::Map { .. } => false,
        };
        // A transaction's own are held until no snapshot can see what it has replaced.
        creating || self.store.is_active(entry.txn()) || self.store.held.lock().contains(&entry.txn())
    }

    /// Works on the first dead keyspace. False if there is none.
    fn purge_dead(&self, budget: usize) -> Result<bool> {
        let mut space = 0;
        while let Some(first) = self.store.records.first_after(&key::bound(space))? {
            let Some(found) = key::meta_of(&first.key)? else { return Ok(false) };
            if self.databases.database_of(found).is_some() {
                space = found + 1;
                continue;
            }
            // A unit that renews a database holds all stripes until it is decided: behind that, dead is dead for good.
            let (stripe, lsn) = (crate::keyspace::locks::ALL, self.locks.lock(crate::keyspace::locks::ALL));
            let dead = self.databases.database_of(found).is_none();
            self.locks.unlock(stripe, lsn);
            if dead {
                self.store.pager.admit()?;
                self.purge_space(found, budget)?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Removes the first records of a dead keyspace: first what hangs on them, then they themselves.
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

    /// An undo that a full disk has stopped begins again: what it has put back must not have gone meanwhile.
    #[test]
    fn a_rollback_that_begins_again_finds_what_it_has_put_back() {
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
        let done = keyspace.write::<(), Error>(KeySet::Keys(&[(0, b"long")]), true, |unit| {
            unit.put_string(0, b"long", &[1; 600_000], Expire::None)?;
            unit.patch_string(0, b"long", 300_000, &[2; 100_000])?;
            let txn = unit.txn.as_ref().expect("a value in segments needs one");
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
        assert!(due_ms.is_some_and(|due| due <= 500), "it comes again when the pause is over: {due_ms:?}");
        clock.advance_ms(500);
        while keyspace.background_step(64).unwrap().more {}
        assert_eq!(engine.metrics().expired.get(), 1);
        // A pause can be ended sooner.
        keyspace.set(0, b"k", b"v", Expire::At(2100)).unwrap();
        keyspace.pause_expire(1 << 40);
        clock.advance_ms(500);
        while keyspace.background_step(64).unwrap().more {}
        assert_eq!(engine.metrics().expired.get(), 1);
        keyspace.pause_expire(0);
        while keyspace.background_step(64).unwrap().more {}
        assert_eq!(engine.metrics().expired.get(), 2);
    }

    #[test]
    fn entries_come_back_as_they_were_put_in() {
        let runs = vec![Run { first: 7, pages: 64 }, Run { first: 1 << 40, pages: 1 }];
        let value = encode_queued_pages(5, &runs);
        assert_eq!(Queued::parse(&queue_key_of_pages(5, 0), &value).unwrap(), Queued::Pages { txn: 5, runs });
        let parsed = Queued::parse(&version_key(9), &encode_version(3)).unwrap();
        assert_eq!(parsed, Queued::Version { txn: 3, version: 9 });
        assert!(Queued::parse(&[3], &[0; 8]).is_err() && Queued::parse(&version_key(9), &[0; 9]).is_err());
    }
}
