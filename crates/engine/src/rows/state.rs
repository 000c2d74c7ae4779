//! The shared state of all maps of rows. The other files of this folder build on it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use pager::{Lsn, TxnId};
use stdx::hash::Seed;
use stdx::sync::Mutex;
use stdx::sync::atomic::AtomicU64;

use crate::error::{Error, Result};
use crate::keyspace::key_locks::KeyLocks;
use crate::keyspace::state::Keyspace;
use crate::rows::lock_queue::LockQueues;
use crate::rows::lock_table::{HeldLock, LockTable};
use crate::rows::loser_list::LoserList;
use crate::rows::purge_list::{PurgeItem, SpillFile};
use crate::rows::snapshot::SnapshotRegistry;
use crate::rows::status_table::StatusTable;
use crate::rows::undo::UndoBudget;
use crate::rows::versions::VersionStore;
use crate::store::Store;
use crate::store::maps::RowMap;
use crate::store::trees::MapId;

/// All maps of rows of a database.
pub struct Rows {
    pub(super) store: Arc<Store>,
    /// Shared by keys and rows: the status table and the lock table, and with them waits.
    pub(super) key_locks: Arc<KeyLocks>,
    pub(super) statuses: Arc<StatusTable>,
    pub(super) lock_queues: Arc<LockQueues>,
    pub(super) snapshots: SnapshotRegistry,
    pub(super) versions: VersionStore,
    pub(super) locks: Arc<LockTable>,
    /// The last commit of a transaction that has created maps (EN-82).
    pub(super) newest_maps: AtomicU64,
    /// Held by a serializable transaction from the end of its validation until its COMMIT is written (EN-66).
    pub(super) serial: Mutex<()>,
    /// The approximate memory of all read sets.
    pub(super) read_bytes: AtomicU64,
    /// Transactions of former openings that are being rolled back.
    pub(super) losers: LoserList,
    pub(super) keyspace: Weak<Keyspace>,
    /// The purge list: remains of committed transactions, about in the order of their commits.
    pub(super) ended: Mutex<VecDeque<PurgeItem>>,
    /// Every open snapshot saw commits up to here when purge last checked.
    pub(super) kept: AtomicU64,
    /// The memory that undo steps of open transactions take.
    pub(super) budget: UndoBudget,
    /// The memory that old versions may take before they are written to files. If the disk has no space for them, the oldest snapshot is given up
    /// (`Error::SnapshotTooOld`).
    pub(super) versions_max: u64,
    pub(super) spill_file: Mutex<SpillFile>,
    /// Wake the background thread soon, and now.
    pub(super) wake_soon: Call,
    pub(super) wake: Call,
}

pub(super) type Call = Box<dyn Fn() + Send + Sync>;

impl Rows {
    /// Creates the maps of rows. `seed` is that of the runs that recovery wrote.
    pub(crate) fn new(keyspace: &Arc<Keyspace>, versions_max: u64, seed: Seed, wake_soon: Call, wake: Call) -> Rows {
        let key_locks = keyspace.key_locks.clone();
        Rows {
            statuses: key_locks.statuses.clone(),
            snapshots: SnapshotRegistry::default(),
            versions: VersionStore::new(seed),
            losers: LoserList::default(),
            locks: key_locks.locks.clone(),
            newest_maps: AtomicU64::new(0),
            serial: Mutex::default(),
            read_bytes: AtomicU64::new(0),
            key_locks,
            lock_queues: Arc::default(),
            keyspace: Arc::downgrade(keyspace),
            ended: Mutex::default(),
            kept: AtomicU64::new(0),
            versions_max,
            spill_file: Mutex::default(),
            budget: UndoBudget::new(versions_max),
            store: keyspace.store.clone(),
            wake_soon,
            wake,
        }
    }

    /// Makes every transaction that waits for a lock call its `Cancel` again.
    pub fn wake_waiters(&self) {
        self.statuses.recheck_waiters();
        self.lock_queues.recheck_waiters();
    }

    /// Returns all maps in the order of their numbers, those created by open transactions included.
    pub fn maps(&self) -> Vec<MapId> {
        let mut ids: Vec<MapId> = self.store.maps.all().iter().map(|map| map.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Returns the approximate memory that old versions take.
    pub fn version_bytes(&self) -> u64 {
        self.versions.bytes()
    }

    /// Returns the bytes of files that old versions of committed transactions take.
    pub fn version_file_bytes(&self) -> u64 {
        self.versions.file_bytes()
    }

    /// Returns the approximate memory that undo steps of open transactions take.
    pub fn undo_bytes(&self) -> u64 {
        self.budget.bytes()
    }

    /// Limits the memory for locks to about `bytes`. Beyond it, the locks of transactions with many are escalated to parts of a map.
    pub fn limit_locks(&self, bytes: u64) {
        self.locks.limit(bytes);
    }

    /// Returns the approximate memory that locks take.
    pub fn lock_bytes(&self) -> u64 {
        self.locks.bytes()
    }

    /// Returns the approximate memory of the read sets of open transactions.
    pub fn read_set_bytes(&self) -> u64 {
        self.read_bytes.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Lists the locks of open transactions. Rows that a transaction has changed and never locked are not among them: their records name it.
    pub fn held_locks(&self) -> Vec<(TxnId, HeldLock)> {
        self.locks.list(|txn| self.statuses.is_open(txn))
    }

    /// Returns the edges of the wait-for graph as (waiter, holder).
    pub fn lock_waits(&self) -> Vec<(TxnId, TxnId)> {
        self.statuses.all_waits()
    }

    /// Returns the number of threads that are blocked until a transaction ends. Queued tickets that are not the first do not count.
    pub fn waiting_threads(&self) -> usize {
        self.statuses.waiting_threads()
    }

    pub(super) fn map(&self, map: MapId) -> Result<Arc<RowMap>> {
        self.store.maps.get(map).ok_or(Error::Misuse("a map that does not exist"))
    }

    pub(super) fn head(&self) -> Lsn {
        self.store.pager.wal_head()
    }

    pub(super) fn oldest_snapshot(&self) -> Lsn {
        self.snapshots.oldest(|| self.head())
    }
}
