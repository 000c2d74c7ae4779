//! Rows for SQL: ordered maps of bytes with transactions, snapshots and locks. The layer above knows tables, columns and indexes; here a row is a key and a value.
//!
//! ```text
//!   record in the tree    writer | ghost? | long? | value        the newest version, committed or not; a long value lies in segments, as those of the keyspace
//!   `slot`                writer -> active, committed at, aborted          `version`  what the record was before, for older snapshots
//!   `snapshot`            who reads as of when                             `lock`     rows and ranges that are only locked
//! ```
//! A record whose writer is open is the exclusive lock on the row. Reads wait for nobody: they take the newest version that their snapshot may see. Changes and locking
//! reads wait for whoever is in the way, and act on the newest committed version.
//!
//! Invariants EN-13 to EN-26 stand in the crate's README.

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
    /// What keys and rows share: statuses, locks, and with them waits.
    pub(super) key_locks: Arc<KeyLocks>,
    pub(super) statuses: Arc<StatusTable>,
    pub(super) lock_queues: Arc<LockQueues>,
    pub(super) snapshots: SnapshotRegistry,
    pub(super) versions: VersionStore,
    pub(super) locks: Arc<LockTable>,
    /// Transactions of former openings that are being rolled back.
    pub(super) losers: LoserList,
    pub(super) keyspace: Weak<Keyspace>,
    /// Committed transactions whose old versions and delete_marked are still there, about in the order of their commits.
    pub(super) ended: Mutex<VecDeque<PurgeItem>>,
    /// Commits up to here were seen by every snapshot when somebody looked last.
    pub(super) kept: AtomicU64,
    /// What open transactions keep in memory of what they may take back.
    pub(super) budget: UndoBudget,
    /// Bytes that old versions may take in memory before they go to files. Without room on disk for them the oldest snapshot is given up
    /// (`Error::SnapshotTooOld`).
    pub(super) versions_max: u64,
    pub(super) spill_file: Mutex<SpillFile>,
    /// Calls the background soon, and now.
    pub(super) ring: Call,
    pub(super) wake: Call,
}

pub(super) type Call = Box<dyn Fn() + Send + Sync>;

impl Rows {
    /// `seed`: that of recovery's runs.
    pub(crate) fn new(keyspace: &Arc<Keyspace>, versions_max: u64, seed: Seed, ring: Call, wake: Call) -> Rows {
        let key_locks = keyspace.key_locks.clone();
        Rows {
            statuses: key_locks.statuses.clone(),
            snapshots: SnapshotRegistry::default(),
            versions: VersionStore::new(seed),
            losers: LoserList::default(),
            locks: key_locks.locks.clone(),
            key_locks,
            lock_queues: Arc::default(),
            keyspace: Arc::downgrade(keyspace),
            ended: Mutex::default(),
            kept: AtomicU64::new(0),
            versions_max,
            spill_file: Mutex::default(),
            budget: UndoBudget::new(versions_max),
            store: keyspace.store.clone(),
            ring,
            wake,
        }
    }

    /// Whoever waits for a lock asks his `Cancel` again.
    pub fn wake_waiters(&self) {
        self.statuses.rouse();
        self.lock_queues.rouse();
    }

    /// All maps that there are, in the order of their numbers, those of open transactions included.
    pub fn maps(&self) -> Vec<MapId> {
        let mut ids: Vec<MapId> = self.store.maps.all().iter().map(|map| map.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Memory that old versions take, about.
    pub fn version_bytes(&self) -> u64 {
        self.versions.bytes()
    }

    /// Bytes of files that old versions of committed transactions take.
    pub fn version_file_bytes(&self) -> u64 {
        self.versions.file_bytes()
    }

    /// Memory that open transactions take for what they may take back, about.
    pub fn undo_bytes(&self) -> u64 {
        self.budget.bytes()
    }

    /// LockTable take about so many bytes; beyond, transactions with many lock whole parts of a map.
    pub fn limit_locks(&self, bytes: u64) {
        self.locks.limit(bytes);
    }

    /// Memory that locks take, about.
    pub fn lock_bytes(&self) -> u64 {
        self.locks.bytes()
    }

    /// The locks of open transactions. Rows that one has changed and never locked are not among them: their records name it.
    pub fn held_locks(&self) -> Vec<(TxnId, HeldLock)> {
        self.locks.list(|txn| self.statuses.is_open(txn))
    }

    /// Who waits for whom.
    pub fn lock_waits(&self) -> Vec<(TxnId, TxnId)> {
        self.statuses.all_waits()
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
