//! A snapshot of keys: all databases as of one instant, to be read slowly while others write.
//!
//! Keys have no older versions, so the snapshot is one of pages (`pager::PageSnapshot`) of the tree of records, and on it a keyspace of its own that only
//! reads: every reading function of a key transaction works on it. Hard part: the instant. All stripes are held while it is fixed, so no key transaction has
//! undecided changes in the tree (EN-38), and the map of databases and the counts are those of the same moment (EN-85).

use std::sync::Arc;

use pager::{Lsn, PageSnapshot, Pager};

use crate::error::Result;
use crate::keyspace::key::{DATABASES, ELEMENTS, KeySet};
use crate::keyspace::key_txn::{KeyTransaction, Mode};
use crate::keyspace::state::Keyspace;
use crate::keyspace::stripes::TxnStripes;
use crate::store::Store;
use crate::store::trees::RECORDS;

/// Memory for pages of a snapshot.
const FRAME_BYTES: u64 = 8 << 20;

/// All keys as of one instant. There is one at a time. If the disk becomes full it is given up, and reading from it fails.
pub struct KeySnapshot {
    keyspace: Keyspace,
    live: Arc<Pager>,
    instant: Lsn,
    time_ms: u64,
    pages: PageSnapshot,
}

impl Keyspace {
    /// Takes a snapshot of all keys, for which it holds all stripes a moment. Fails if there is one (EN-87), and with `Error::Busy` while a transaction that takes long
    /// holds keys. `also` is called at the instant, with all keys.
    pub fn snapshot(&self, mut also: impl FnMut(&mut KeyTransaction<'_>)) -> Result<KeySnapshot> {
        let live = &self.store.pager;
        let pages = PageSnapshot::prepare(live, RECORDS)?;
        let fix = |txn: &mut KeyTransaction<'_>| -> Result<_> {
            also(txn);
            let counts: Vec<_> = (0..DATABASES).map(|db| self.counts.get(db)).collect();
            Ok((pages.fix()?, self.databases.map(), counts, txn.now_ms()))
        };
        let ((instant, mut map, counts, time_ms), _) = self.read_locked(KeySet::All, fix)?;
        let store = Arc::new(Store::existing(pages.open(instant, FRAME_BYTES)?, Arc::default(), false));
        let keyspace = self.on(store);
        // Keys of an import that is under way are nobody's (EN-81).
        map.spaces[usize::from(DATABASES)..].fill(ELEMENTS);
        keyspace.databases.set(&map);
        (0..DATABASES).zip(counts).for_each(|(db, counted)| keyspace.counts.set(db, counted));
        Ok(KeySnapshot { keyspace, live: live.clone(), instant, time_ms, pages })
    }
}

impl KeySnapshot {
    /// Begins a transaction that reads the snapshot's keys. Its time is the instant's, so a key expires in it neither earlier nor later.
    pub fn read(&self) -> KeyTransaction<'_> {
        KeyTransaction::new(&self.keyspace, TxnStripes::All(Vec::new()), Mode::Locked, false, self.time_ms)
    }

    /// Returns the number of keys of a database, and of those with an expiry time.
    pub fn key_counts(&self, db: u8) -> (u64, u64) {
        let counted = self.keyspace.counts.get(db);
        (counted.keys.max(0) as u64, counted.expiries.max(0) as u64)
    }

    /// Returns the time of the instant, in milliseconds since 1970.
    pub fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// Returns the LSN at which everything that the snapshot shows is durable (EN-2).
    pub fn durability_lsn(&self) -> Lsn {
        self.instant
    }

    /// Waits until a crash could take back nothing that the snapshot shows (EN-86).
    pub fn flush(&self) -> Result<()> {
        Ok(self.live.flush_to(self.instant)?)
    }

    /// Checks that the snapshot has not been given up.
    pub fn check(&self) -> Result<()> {
        Ok(self.pages.check()?)
    }
}
