//! The state that all parts of the engine share: the trees that every database has, transaction ids, open transactions and WAL records.
//!
//! A checkpoint must not pass the first record of an undecided transaction (EN-9), so every transaction is enlisted here with the WAL position before its first
//! record.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use btree::{Tree, TreeId};
use pager::{Lsn, Pager, TxnId};
use stdx::sync::atomic::{AtomicU64, Ordering};
use stdx::sync::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::store::maps::OpenMaps;
use crate::store::trees::{CATALOG, EXPIRY, MAPS, QUEUE, RECORDS, ROW_CATALOG};
use crate::store::wal::{encode_deltas, kind};

pub mod images;
pub mod map_directory;
pub mod maps;
pub mod purge_queue;
pub mod trees;
pub mod wal;

/// Returns the smallest id that this opening gives out.
pub(crate) fn first_id(pager: &Pager) -> u64 {
    pager.boot() << 40 | 1
}

/// Wait reason of a rollback that needs space on a full disk.
pub static DISK_ROOM: stdx::wait::Reason = stdx::wait::Reason::new("disk_room");

/// The shared durable state.
pub(crate) struct Store {
    pub pager: Arc<Pager>,
    pub catalog: Tree,
    pub records: Tree,
    pub expiry: Tree,
    pub queue: Tree,
    pub maps_tree: Tree,
    pub maps: OpenMaps,
    pub metrics: Arc<Metrics>,
    /// The next transaction or version id: boot number << 40 | counter, so an id is never given out twice.
    next_id: AtomicU64,
    /// Transactions that are neither committed nor aborted, each with the WAL position before its first record.
    active: Mutex<HashMap<TxnId, Lsn>>,
    /// Version ids whose elements are being written.
    pub creating: Mutex<HashSet<u64>>,
    /// Committed transactions whose purge queue entries a snapshot may still need.
    pub held: Mutex<HashSet<TxnId>>,
    /// The number of open transactions that have removed a key, and the number of rollbacks so far. A scan over keys compares them to learn whether a gap that
    /// it saw may have been filled again (EN-56).
    pub removing: AtomicU64,
    pub undone: AtomicU64,
    /// Never notified: a rollback that finds the disk full waits on it with a timeout and retries.
    room: Condvar,
    pub is_threaded: bool,
}

impl Store {
    /// Opens the trees that every database has, and creates those that do not exist yet.
    pub fn open(pager: Arc<Pager>, metrics: Arc<Metrics>, is_threaded: bool) -> Result<Store> {
        let store = Store::existing(pager, metrics, is_threaded);
        let create = |id: TreeId| -> Result<()> {
            let root = Pager::well_known(u64::from(id) - 1);
            if !store.pager.is_formatted(root)? {
                Tree::create_at(&store.pager, id, root)?;
            }
            Ok(())
        };
        [CATALOG, RECORDS, EXPIRY, QUEUE, MAPS, ROW_CATALOG].into_iter().try_for_each(create)?;
        store.maps.add(Tree::open(&store.pager, ROW_CATALOG, Pager::well_known(u64::from(ROW_CATALOG) - 1)));
        Ok(store)
    }

    /// Opens the trees on a pager that has them all, without a look at them.
    pub fn existing(pager: Arc<Pager>, metrics: Arc<Metrics>, is_threaded: bool) -> Store {
        let tree = |id: TreeId| Tree::open(&pager, id, Pager::well_known(u64::from(id) - 1));
        Store {
            catalog: tree(CATALOG),
            records: tree(RECORDS),
            expiry: tree(EXPIRY),
            queue: tree(QUEUE),
            maps_tree: tree(MAPS),
            maps: OpenMaps::default(),
            metrics,
            next_id: AtomicU64::new(first_id(&pager)),
            active: Mutex::new(HashMap::new()),
            creating: Mutex::new(HashSet::new()),
            held: Mutex::new(HashSet::new()),
            removing: AtomicU64::new(0),
            undone: AtomicU64::new(0),
            room: Condvar::new(),
            is_threaded,
            pager,
        }
    }

    /// Returns an id that was never given out before, not even before a crash.
    pub fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub fn tree(&self, id: TreeId) -> Option<Tree> {
        match id {
            CATALOG => Some(self.catalog.clone()),
            RECORDS => Some(self.records.clone()),
            EXPIRY => Some(self.expiry.clone()),
            QUEUE => Some(self.queue.clone()),
            MAPS => Some(self.maps_tree.clone()),
            map => self.maps.get(map).map(|map| map.tree.clone()),
        }
    }

    /// Registers a transaction before its first WAL record.
    pub fn enlist(&self, id: TxnId) {
        self.active.lock().insert(id, self.pager.wal_head());
    }

    /// Removes a decided transaction.
    pub fn delist(&self, id: TxnId) {
        self.active.lock().remove(&id);
    }

    /// Registers undecided transactions of former openings, each with the position before its first record.
    pub fn enlist_recovered(&self, transactions: impl Iterator<Item = (TxnId, Lsn)>) {
        self.active.lock().extend(transactions);
    }

    pub fn is_active(&self, txn: TxnId) -> bool {
        self.active.lock().contains_key(&txn)
    }

    /// Returns a position below which no undecided transaction has a record.
    pub fn oldest_active(&self) -> Lsn {
        self.active.lock().values().copied().min().unwrap_or(Lsn::MAX)
    }

    pub fn wait_for_disk(&self) {
        let _waiting = stdx::wait::announce(&DISK_ROOM);
        let guard = self.creating.lock();
        drop(self.room.wait_timeout(guard, Duration::from_millis(100)));
    }

    /// Stops the process. Memory can no longer be made consistent; recovery can do it from the WAL.
    pub fn fail(&self, error: &Error) -> ! {
        let error = pager::Error::Io { what: "undo".into(), error: std::io::Error::other(error.to_string()) };
        self.pager.fatal("a rollback failed, stopping so that recovery repeats it", &error)
    }

    pub fn logical(&self, kind: u8, txn: Option<TxnId>, body: &[u8]) -> Lsn {
        let mut mtr = self.pager.mtr();
        mtr.logical(kind, txn, &[body]);
        mtr.commit()
    }

    pub fn log_mark(&self) -> Lsn {
        self.logical(kind::MARK, None, &[])
    }

    pub fn log_counts(&self, mark: Lsn, counts: &[(u32, i64, i64)]) -> Lsn {
        let mut body = mark.to_le_bytes().to_vec();
        encode_deltas(counts, &mut body);
        self.logical(kind::COUNTS, None, &body)
    }

    pub fn log_abort(&self, txn: TxnId) -> Lsn {
        let lsn = self.logical(kind::ABORT, Some(txn), &[]);
        self.metrics.txn_aborts.add(1);
        lsn
    }
}
