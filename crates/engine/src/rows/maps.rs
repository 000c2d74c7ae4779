//! The directory of maps: which trees there are beside those that every database has.
//!
//! ```text
//!   tree 5, MAPS     map u32 BE  ->  root page u64 LE          one record for each map; changed inside transactions like any record
//!   purge queue      3 | map u32 BE  ->  transaction u64 | root page u64      a map that nobody names any more
//! ```
//! A map's root page is allocated by the mini-transaction that names it. A transaction that makes a map and is taken back leaves an entry in the purge queue, written before the
//! directory forgets the map and worked on only when ABORT is in the log; one that drops a map writes the entry as one of its changes (E8).

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use btree::{Batch, Tree, TreeId};
use pager::{NO_PAGE, PageId, Pager, TxnId};
use stdx::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use stdx::sync::{Mutex, RwLock};

use crate::error::{Error, Result};
use crate::keyspace::{MAP_GARBAGE, Queued};
use crate::txn::Store;

/// Names an ordered map of rows. Also the number of its tree.
pub type MapId = TreeId;

/// Smaller numbers are trees that every database has.
pub(crate) const FIRST_MAP: MapId = 16;

/// A map as long as it is open.
pub(crate) struct RowMap {
    pub id: MapId,
    pub tree: Tree,
    /// Entries of the lock table: while there are none, writers do not look there.
    pub row_locks: AtomicU64,
    pub range_locks: AtomicU64,
}

impl RowMap {
    pub fn new(tree: Tree) -> RowMap {
        RowMap { id: tree.id(), tree, row_locks: AtomicU64::new(0), range_locks: AtomicU64::new(0) }
    }
}

#[derive(Default)]
pub(crate) struct OpenMaps {
    open: RwLock<HashMap<MapId, Arc<RowMap>>>,
    next: AtomicU32,
    /// One at a time takes a number and a page for a map.
    making: Mutex<()>,
}

pub(crate) fn key(map: MapId) -> [u8; 4] {
    map.to_be_bytes()
}

pub(crate) fn parse(key: &[u8], value: &[u8]) -> Result<(MapId, PageId)> {
    let bad = || Error::corrupt("a record of no sense in the directory of maps");
    let map = MapId::from_be_bytes(key.try_into().map_err(|_| bad())?);
    Ok((map, PageId::from_le_bytes(value.try_into().map_err(|_| bad())?)))
}

/// Key and value of the purge queue's entry for a map.
pub(crate) fn garbage(map: MapId, root: PageId, txn: TxnId) -> ([u8; 5], [u8; 16]) {
    let (mut key, mut value) = ([MAP_GARBAGE; 5], [0; 16]);
    key[1..].copy_from_slice(&map.to_be_bytes());
    value[..8].copy_from_slice(&txn.to_le_bytes());
    value[8..].copy_from_slice(&root.to_le_bytes());
    (key, value)
}

impl OpenMaps {
    pub fn get(&self, map: MapId) -> Option<Arc<RowMap>> {
        self.open.read().get(&map).cloned()
    }

    pub fn all(&self) -> Vec<Arc<RowMap>> {
        self.open.read().values().cloned().collect()
    }

    pub fn add(&self, tree: Tree) {
        let id = tree.id();
        self.open.write().insert(id, Arc::new(RowMap::new(tree)));
        self.next.fetch_max(id + 1, Ordering::Relaxed);
    }

    pub fn clear(&self) {
        self.open.write().retain(|map, _| *map < FIRST_MAP);
    }

    pub fn forget(&self, map: MapId) {
        self.open.write().remove(&map);
    }

    /// Opens what the directory names. OpenMaps in the purge queue keep their numbers as well.
    pub fn load(&self, store: &Store) -> Result<()> {
        self.next.fetch_max(FIRST_MAP, Ordering::Relaxed);
        let mut batch = Batch::new();
        let mut scan = store.maps_tree.scan(Bound::Unbounded, Bound::Unbounded);
        while scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                let (map, root) = parse(record.key, record.value)?;
                self.add(Tree::open(&store.pager, map, root));
            }
        }
        for tree in store.garbage_maps()? {
            self.next.fetch_max(tree.id() + 1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A new number and an empty tree on a page that is only reserved: `name` writes the record that makes it real.
    pub fn create(&self, pager: &Arc<Pager>, name: impl FnOnce(MapId, PageId) -> Result<()>) -> Result<MapId> {
        let _making = self.making.lock();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let root = pager.reserve(1, NO_PAGE)?;
        let made = Tree::create_at(pager, id, root).map_err(Error::from).and_then(|tree| {
            name(id, root)?;
            Ok(tree)
        });
        match made {
            Ok(tree) => {
                self.add(tree);
                Ok(id)
            }
            Err(error) => {
                pager.unreserve(root, 1);
                Err(error)
            }
        }
    }
}

impl Store {
    /// OpenMaps that nobody names and whose pages are still to be freed.
    pub(crate) fn garbage_maps(&self) -> Result<Vec<Tree>> {
        let mut found = Vec::new();
        let mut batch = Batch::new();
        let mut scan = self.queue.scan(Bound::Included(&[MAP_GARBAGE]), Bound::Excluded(&[MAP_GARBAGE + 1]));
        while scan.next_batch(&mut batch)? {
            for record in batch.iter() {
                if let Queued::Map { map, root, .. } = Queued::parse(record.key, record.value)? {
                    found.push(Tree::open(&self.pager, map, root));
                }
            }
        }
        Ok(found)
    }

    /// Part of taking back `txn`, which has made the map that `key` names: the map becomes garbage. May run again until ABORT is in the log.
    pub(crate) fn discard_map(&self, key: &[u8], txn: TxnId) -> Result<()> {
        let mut value = Vec::new();
        if !self.maps_tree.get(key, &mut value)?.present {
            // Done before a crash, and the entry stands.
            return Ok(());
        }
        let (map, root) = parse(key, &value)?;
        let (key, value) = garbage(map, root, txn);
        self.queue.modify(&key, None, |_, change| change.put(&[&value]))?;
        Ok(())
    }
}
