//! Staged databases: keys that nobody sees until they replace databases, all at once. An import writes into them.
//!
//! ```text
//!   stage ──► sixteen new keyspace numbers, in memory only ──► write, build ... ──► publish: one record of the catalog
//!                                                                        └── dropped, or a crash: the numbers are dead, purge removes their keys
//! ```
//! The hard part is what runs beside it: purge takes a keyspace for dead that no slot of the map has, and the background removes expired keys. The numbers are
//! in the second half of the map, so purge leaves them alone and keys are counted; and nothing expires while they exist (EN-81).

use pager::Lsn;
use stdx::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::keyspace::build::Build;
use crate::keyspace::key::{DATABASES, ELEMENTS, KeySet, SLOTS, check_database};
use crate::keyspace::key_events::event_class;
use crate::keyspace::key_txn::KeyTransaction;
use crate::keyspace::packed::PackLimits;
use crate::keyspace::record::Kind;
use crate::keyspace::state::Keyspace;
use crate::keyspace::stripes;
use crate::keyspace::writer_number::EVERYBODY;
use crate::store::wal::Counted;

/// The databases that `Staging::publish` may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// Those without keys. With others it fails.
    Empty,
    /// Whatever they have.
    All,
}

/// Sixteen databases that no command can select. Dropping it removes their keys.
pub struct Staging<'k> {
    keyspace: &'k Keyspace,
}

impl Keyspace {
    /// Creates staged databases. There is one set of them at a time.
    pub fn stage(&self) -> Result<Staging<'_>> {
        self.stage_as(EVERYBODY)
    }

    pub(crate) fn stage_as(&self, writer: u64) -> Result<Staging<'_>> {
        self.writer.check(writer)?;
        if self.is_staging.swap(true, Ordering::AcqRel) {
            return Err(Error::Invalid("another import is under way".into()));
        }
        let staging = Staging { keyspace: self };
        let stage = |txn: &mut KeyTransaction<'_>| {
            txn.writer = writer;
            txn.stage()
        };
        self.write::<(), Error>(KeySet::All, false, stage)?;
        Ok(staging)
    }
}

impl<'k> Staging<'k> {
    pub(crate) fn keyspace(&self) -> &'k Keyspace {
        self.keyspace
    }

    /// Runs a writing key transaction over keys of the staged databases, as `Keyspace::write` does. No key has expired in it.
    pub fn write<R, E: From<Error>>(
        &self,
        keys: KeySet<'_>,
        several: bool,
        f: impl FnOnce(&mut KeyTransaction<'k>) -> Result<R, E>,
    ) -> Result<R, E> {
        let staged: Vec<(u8, &[u8])> = match keys {
            KeySet::Keys(keys) => keys.iter().map(|(db, key)| (db.saturating_add(DATABASES), *key)).collect(),
            KeySet::All => Vec::new(),
        };
        let locks = if matches!(keys, KeySet::All) { KeySet::All } else { KeySet::Keys(&staged) };
        let mut key_txn = self.keyspace.begin_unlocked(locks, several)?;
        (key_txn.is_staged, key_txn.now) = (true, 0);
        let result = f(&mut key_txn);
        key_txn.end_with(result).map(|(result, _)| result)
    }

    /// Begins to build a collection for a key.
    pub fn build(&self, key: &[u8], kind: Kind, limits: PackLimits) -> Build<'k> {
        self.keyspace.build(key, kind, limits)
    }

    /// Returns the number of keys of a staged database.
    pub fn key_count(&self, db: u8) -> Result<u64> {
        check_database(db)?;
        Ok(self.keyspace.counts.get(db + DATABASES).keys.max(0) as u64)
    }

    /// Replaces databases by the staged ones with the same numbers, all at once. Returns the LSN at which that is durable.
    pub fn publish(self, dbs: &[u8], replace: Replace) -> Result<Lsn> {
        dbs.iter().try_for_each(|db| check_database(*db))?;
        let publish = |txn: &mut KeyTransaction<'_>| {
            for db in dbs.iter().filter(|_| replace == Replace::Empty) {
                if txn.count(*db)? > 0 {
                    return Err(Error::Invalid(format!("database {db} has keys")));
                }
            }
            dbs.iter().for_each(|db| txn.notify(*db, b"", event_class::CONTENTS, "import"));
            txn.publish(dbs)
        };
        Ok(self.keyspace.write::<(), Error>(KeySet::All, false, publish)?.1)
    }
}

impl Drop for Staging<'_> {
    /// Removes the staged databases from the map. Their keys are garbage from here on.
    fn drop(&mut self) {
        let keyspace = self.keyspace;
        // Nobody but the background looks at staged numbers now, and it and the checkpoint take this word first.
        let lsn = keyspace.stripes.lock(stripes::ALL);
        let mut map = keyspace.databases.map();
        map.spaces[usize::from(DATABASES)..].fill(ELEMENTS);
        keyspace.databases.set(&map);
        (DATABASES..SLOTS).for_each(|slot| keyspace.counts.set(slot, Counted::default()));
        keyspace.stripes.unlock(stripes::ALL, lsn);
        keyspace.is_staging.store(false, Ordering::Release);
        keyspace.wake();
    }
}
