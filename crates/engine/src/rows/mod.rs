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
//! Invariants M1 to M14 stand in the crate's README.

mod activity;
mod change;
pub(crate) mod keys;
mod line;
pub(crate) mod lock;
pub(crate) mod losers;
pub(crate) mod maps;
#[cfg(all(test, loom))]
mod model;
mod purge;
mod reach;
mod read;
pub(crate) mod run;
mod sample;
pub(crate) mod slot;
mod snapshot;
mod spill;
mod transaction;
pub(crate) mod undo;
pub(crate) mod version;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pager::{Lsn, TxnId};
use stdx::hash::Seed;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::keyspace::Keyspace;
use crate::keyspace::claims::KeyLocks;
use crate::rows::line::LockQueues;
use crate::rows::lock::LockTable;
use crate::rows::losers::LoserList;
use crate::rows::maps::RowMap;
use crate::rows::purge::PurgeItem;
use crate::rows::slot::StatusTable;
use crate::rows::snapshot::SnapshotRegistry;
use crate::rows::spill::SpillFile;
use crate::rows::undo::UndoBudget;
use crate::rows::version::{RowValue, VersionStore};
use crate::txn::Store;

pub use activity::{Activity, AwaitedLock, HeldLock, RowLock};
pub use btree::ReadMode;
pub use keys::{KeyValue, LockedKey};
pub use lock::Strength;
pub use losers::RollingBack;
pub use maps::MapId;
pub use read::{Cursor, IndexOf, RowBatch};
pub use slot::{ROW_LOCK, Wake};
pub use transaction::{Cancel, Savepoint, Transaction};

/// The map that every database has from its birth: descriptions of tables and whatever else belongs to the layer above.
pub const CATALOG: MapId = crate::txn::ROW_CATALOG;

/// Longest key and value of a row.
pub const ROW_KEY_MAX: usize = btree::Tree::KEY_MAX;
pub const ROW_VALUE_MAX: usize = 1 << 30;
/// A longer value lies in segments of its own.
const INLINE_MAX: usize = btree::Tree::VALUE_MAX - version::HEAD_BYTES;

/// What a statement sees of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// As READ COMMITTED: nothing uncommitted is ever shown.
    ReadUncommitted,
    /// Each statement sees what was committed when it began.
    ReadCommitted,
    /// Every statement sees what was committed when the first one began; changes act on the newest.
    RepeatableRead,
    /// As REPEATABLE READ. That plain reads lock is for the layer above to see to, with `lock` and `lock_range`.
    Serializable,
}

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    For(Duration),
    NoWait,
    SkipLocked,
}

/// What `Transaction::lock` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    Present,
    Absent,
    /// Somebody else holds it, and the caller did not want to wait.
    Skipped,
}

/// What became of `Transaction::insert`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    Done,
    Exists,
}

/// All maps of rows of a database.
pub struct Rows {
    store: Arc<Store>,
    /// What keys and rows share: slots, locks, and with them waits.
    claims: Arc<KeyLocks>,
    slots: Arc<StatusTable>,
    lines: Arc<LockQueues>,
    snapshots: SnapshotRegistry,
    versions: VersionStore,
    locks: Arc<LockTable>,
    /// Transactions of former openings that are being rolled back.
    losers: LoserList,
    keyspace: Weak<Keyspace>,
    /// Committed transactions whose old versions and delete_marked are still there, about in the order of their commits.
    ended: Mutex<VecDeque<PurgeItem>>,
    /// Commits up to here were seen by every snapshot when somebody looked last.
    kept: AtomicU64,
    /// What open transactions keep in memory of what they may take back.
    budget: UndoBudget,
    /// Old versions may take so much memory before they go to files.
    versions_max: AtomicU64,
    spill_file: Mutex<SpillFile>,
    /// Calls the background soon, and now.
    ring: Call,
    wake: Call,
}

type Call = Box<dyn Fn() + Send + Sync>;

impl Rows {
    /// `seed`: that of recovery's runs.
    pub(crate) fn new(keyspace: &Arc<Keyspace>, versions_max: u64, seed: Seed, ring: Call, wake: Call) -> Rows {
        let claims = keyspace.claims.clone();
        Rows {
            slots: claims.slots.clone(),
            snapshots: SnapshotRegistry::default(),
            versions: VersionStore::new(seed),
            losers: LoserList::default(),
            locks: claims.locks.clone(),
            claims,
            lines: Arc::default(),
            keyspace: Arc::downgrade(keyspace),
            ended: Mutex::default(),
            kept: AtomicU64::new(0),
            versions_max: AtomicU64::new(versions_max),
            spill_file: Mutex::default(),
            budget: UndoBudget::new(versions_max),
            store: keyspace.store.clone(),
            ring,
            wake,
        }
    }

    /// Begins a transaction. Nothing is written, and no snapshot taken, before it is needed.
    pub fn begin(self: &Arc<Rows>, isolation: Isolation) -> Transaction {
        Transaction::new(self.clone(), isolation)
    }

    /// Whoever waits for a lock asks his `Cancel` again.
    pub fn wake_waiters(&self) {
        self.slots.rouse();
        self.lines.rouse();
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

    /// Old versions may take about so many bytes of memory; beyond, they go to files. Where the disk has no room for them the oldest snapshot is given up (`Error::SnapshotTooOld`).
    pub fn limit_versions(&self, bytes: u64) {
        self.versions_max.store(bytes, Ordering::Relaxed);
    }

    /// Open transactions keep about so many bytes in memory of what they may take back; beyond, it goes to files.
    pub fn limit_undo(&self, bytes: u64) {
        self.budget.limit(bytes);
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

    fn map(&self, map: MapId) -> Result<Arc<RowMap>> {
        self.store.maps.get(map).ok_or(Error::Misuse("a map that does not exist"))
    }

    fn head(&self) -> Lsn {
        self.store.pager.wal_head()
    }

    fn oldest_snapshot(&self) -> Lsn {
        self.snapshots.oldest(|| self.head())
    }
}

/// What `Engine::check` asks of a record of a map.
pub(crate) struct RowSummary {
    pub is_delete_marked: bool,
    pub writer: TxnId,
    /// Version id and length of a value in segments.
    pub segments: Option<(u64, u64)>,
}

pub(crate) fn summarize(record: &[u8]) -> Result<RowSummary> {
    let (head, value) = RowValue::parse(record)?;
    let segments = match value {
        RowValue::Segments { len, version } => Some((version, len)),
        RowValue::Inline(_) => None,
    };
    Ok(RowSummary { is_delete_marked: head.is_delete_marked, writer: head.writer, segments })
}
