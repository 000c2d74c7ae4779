//! The map of databases: which keyspace a database number refers to.
//!
//! One catalog record maps all databases. FLUSHDB gives the database a new keyspace number, and SWAPDB exchanges two: one record each, whatever the size.
//! Records under a number that no database refers to are dead; purge removes them (`purge.rs`). The map changes only while all stripes are held, so it is
//! constant for a thread that holds or has validated one stripe.
//!
//! In memory the map has a second half: staged databases, whose keys are written before anybody can see them (`staging.rs`).

use pager::Lsn;
use stdx::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::keyspace::key::{DATABASES, ELEMENTS, SLOTS};
use crate::store::Store;

pub(crate) const MAP_KEY: &[u8] = b"databases";

/// The keyspace of each database and of each staged one, and the next number to be given out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DatabaseMap {
    /// A staged database that does not exist has the number of elements.
    pub spaces: [u32; SLOTS as usize],
    pub next: u32,
}

impl DatabaseMap {
    fn new() -> DatabaseMap {
        let space = |slot| if slot < usize::from(DATABASES) { slot as u32 } else { ELEMENTS };
        DatabaseMap { spaces: std::array::from_fn(space), next: u32::from(DATABASES) }
    }

    /// Returns the catalog's record, which has no staged databases: after a crash their keyspaces are dead (EN-81).
    pub fn encode(&self) -> Vec<u8> {
        let stored = &self.spaces[..usize::from(DATABASES)];
        stored.iter().chain([&self.next]).flat_map(|number| number.to_le_bytes()).collect()
    }

    pub fn decode(bytes: &[u8]) -> Result<DatabaseMap> {
        let numbers: Vec<u32> =
            bytes.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes"))).collect();
        let broken = || Error::corrupt("the catalog's map of databases has the wrong length");
        let (next, spaces) = numbers.split_last().ok_or_else(broken)?;
        let mut map = DatabaseMap { next: *next, ..DatabaseMap::new() };
        let stored = map.spaces.first_chunk_mut::<{ DATABASES as usize }>().expect("half of the slots");
        *stored = spaces.try_into().map_err(|_| broken())?;
        Ok(map)
    }

    /// Gives the slot a keyspace number that was never used.
    pub fn renew(&mut self, db: u8) -> Result<()> {
        if self.next == ELEMENTS {
            return Err(Error::Invalid("all keyspace numbers are used up".into()));
        }
        self.spaces[usize::from(db)] = self.next;
        self.next += 1;
        Ok(())
    }
}

pub(crate) struct Databases {
    spaces: [AtomicU32; SLOTS as usize],
    next: AtomicU32,
    /// End of the last decided change of the map. A database's contents depend on it.
    mapped: AtomicU64,
}

impl Default for Databases {
    fn default() -> Databases {
        let databases = Databases {
            spaces: std::array::from_fn(|_| AtomicU32::default()),
            next: AtomicU32::default(),
            mapped: AtomicU64::default(),
        };
        databases.set(&DatabaseMap::new());
        databases
    }
}

impl Databases {
    /// Reads the map. A new database has no record until the first change.
    pub fn load(&self, store: &Store) -> Result<()> {
        let mut bytes = Vec::new();
        let map = if store.catalog.get(MAP_KEY, &mut bytes)?.present {
            DatabaseMap::decode(&bytes)?
        } else {
            DatabaseMap::new()
        };
        self.set(&map);
        Ok(())
    }

    #[inline]
    pub fn space(&self, db: u8) -> u32 {
        self.spaces[usize::from(db)].load(Ordering::Relaxed)
    }

    /// Returns the slot that has a keyspace. None: it is dead.
    pub fn database_of(&self, space: u32) -> Option<u8> {
        (0..SLOTS).find(|slot| space != ELEMENTS && self.space(*slot) == space)
    }

    pub fn map(&self) -> DatabaseMap {
        DatabaseMap { spaces: std::array::from_fn(|db| self.space(db as u8)), next: self.next.load(Ordering::Relaxed) }
    }

    /// Returns the LSN up to which the WAL must be durable for the present map.
    #[inline]
    pub fn mapped(&self) -> Lsn {
        self.mapped.load(Ordering::Relaxed)
    }

    /// Notes that a change of the map was decided at `lsn`. All stripes are still held, so a thread that observes one of them afterwards sees it.
    pub fn decided(&self, lsn: Lsn) {
        self.mapped.fetch_max(lsn, Ordering::Relaxed);
    }

    /// Makes sure that numbers below `next` are not given out again, also those of transactions that a crash interrupted: entries of the expiry tree may still
    /// have them.
    pub fn skip_to(&self, next: u32, store: &Store) -> Result<()> {
        let map = self.map();
        if next > map.next {
            let map = DatabaseMap { next, ..map };
            let bytes = map.encode();
            store.catalog.modify(MAP_KEY, None, |_, change| change.put(&[&bytes]))?;
            self.set(&map);
        }
        Ok(())
    }

    /// Replaces the map. All stripes must be held; a reader that sees a new number finds that out when it validates.
    pub fn set(&self, map: &DatabaseMap) {
        for (word, space) in self.spaces.iter().zip(map.spaces) {
            word.store(space, Ordering::Release);
        }
        self.next.store(map.next, Ordering::Relaxed);
    }
}
