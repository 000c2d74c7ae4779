//! The open maps of rows, in memory. `store/map_directory` says which maps exist.

use std::collections::HashMap;
use std::sync::Arc;

use btree::Tree;
use pager::{Lsn, NO_PAGE, PageId, Pager, TxnId};
use stdx::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use stdx::sync::{Mutex, RwLock};

use crate::error::{Error, Result};
use crate::store::trees::{FIRST_MAP, MapId};

/// An open map of rows. The keys of the keyspace have one too, for the lock table.
pub(crate) struct RowMap {
    pub id: MapId,
    pub tree: Tree,
    /// Entries in the lock table. While there are none, writers skip the lookup.
    pub row_locks: AtomicU64,
    pub range_locks: AtomicU64,
    /// Commits of serializable transactions that have changed it (EN-67).
    pub serial_commits: AtomicU64,
    /// The transaction that created it, and a position after all commits before that; 0 for maps from before the start.
    pub creator: TxnId,
    pub created: Lsn,
    /// The position of its creator's COMMIT: 0 for maps from before the start, `Lsn::MAX` while the creator is open.
    pub committed: AtomicU64,
    /// The creator, if every snapshot sees the rows that it has written (EN-82).
    pub shown: AtomicU64,
}

impl RowMap {
    pub fn new(tree: Tree) -> RowMap {
        RowMap {
            id: tree.id(),
            tree,
            row_locks: AtomicU64::new(0),
            range_locks: AtomicU64::new(0),
            serial_commits: AtomicU64::new(0),
            creator: 0,
            created: 0,
            committed: AtomicU64::new(0),
            shown: AtomicU64::new(0),
        }
    }

    fn created_by(tree: Tree, (creator, created): (TxnId, Lsn)) -> RowMap {
        RowMap { creator, created, committed: AtomicU64::new(Lsn::MAX), ..RowMap::new(tree) }
    }
}

#[derive(Default)]
pub(crate) struct OpenMaps {
    open: RwLock<HashMap<MapId, Arc<RowMap>>>,
    next: AtomicU32,
    /// Serializes the allocation of a number and a root page for a new map.
    making: Mutex<()>,
}

impl OpenMaps {
    /// Makes sure that numbers below `next` are not given out.
    pub fn keep_numbers_below(&self, next: MapId) {
        self.next.fetch_max(next, Ordering::Relaxed);
    }

    pub fn get(&self, map: MapId) -> Option<Arc<RowMap>> {
        self.open.read().get(&map).cloned()
    }

    pub fn all(&self) -> Vec<Arc<RowMap>> {
        self.open.read().values().cloned().collect()
    }

    pub fn add(&self, tree: Tree) {
        self.insert(RowMap::new(tree));
    }

    fn insert(&self, map: RowMap) {
        let id = map.id;
        self.open.write().insert(id, Arc::new(map));
        self.next.fetch_max(id + 1, Ordering::Relaxed);
    }

    pub fn clear(&self) {
        self.open.write().retain(|map, _| *map < FIRST_MAP);
    }

    pub fn forget(&self, map: MapId) {
        self.open.write().remove(&map);
    }

    /// Creates a map with a new number and an empty tree, by a transaction and at a position of the WAL. Its root page is only reserved when `name` is called; `name` writes the directory record, whose
    /// mini-transaction allocates the page.
    pub fn create(
        &self,
        pager: &Arc<Pager>,
        by: (TxnId, Lsn),
        name: impl FnOnce(MapId, PageId) -> Result<()>,
    ) -> Result<MapId> {
        let _making = self.making.lock();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let root = pager.reserve(1, NO_PAGE)?;
        let made = Tree::create_at(pager, id, root).map_err(Error::from).and_then(|tree| {
            name(id, root)?;
            Ok(tree)
        });
        match made {
            Ok(tree) => {
                self.insert(RowMap::created_by(tree, by));
                Ok(id)
            }
            Err(error) => {
                pager.unreserve(root, 1);
                Err(error)
            }
        }
    }
}
