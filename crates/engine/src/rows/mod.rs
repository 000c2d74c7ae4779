//! Rows for SQL: ordered maps of bytes with transactions, snapshots and locks. The layer above knows tables, columns and indexes; here a row is a key and a value.
//!
//! ```text
//!   record in the tree    writer u63 | ghost bit | value         the newest version, committed or not
//!   `slot`                writer -> active, committed at, aborted          `version`  what the record was before, for older snapshots
//!   `snapshot`            who reads as of when                             `lock`     rows and ranges that are only locked
//! ```
//! A record whose writer is open is the exclusive lock on the row. Reads wait for nobody: they take the newest version that their snapshot may see. Changes and locking
//! reads wait for whoever is in the way, and act on the newest committed version.
//!
//! Invariants M1 to M8 stand in the crate's README.

mod change;
mod lock;
pub(crate) mod maps;
mod purge;
mod read;
mod slot;
mod snapshot;
mod transaction;
mod version;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pager::{Lsn, Run, TxnId};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::rows::lock::Locks;
use crate::rows::maps::Map;
use crate::rows::purge::Ended;
use crate::rows::slot::Slots;
use crate::rows::snapshot::Snapshots;
use crate::rows::version::Versions;
use crate::txn::{Store, first_id};

pub use lock::Strength;
pub use maps::MapId;
pub use read::{Cursor, RowBatch};
pub use slot::ROW_LOCK;
pub use transaction::{Savepoint, Transaction};

/// The map that every database has from its birth: descriptions of tables and whatever else belongs to the layer above.
pub const CATALOG: MapId = crate::txn::ROW_CATALOG;

/// Longest key and value of a row.
pub const ROW_KEY_MAX: usize = btree::Tree::KEY_MAX;
pub const ROW_VALUE_MAX: usize = btree::Tree::VALUE_MAX - version::HEAD_BYTES;

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
    slots: Slots,
    snapshots: Snapshots,
    versions: Versions,
    locks: Locks,
    /// Committed transactions whose old versions and ghosts are still there, about in the order of their commits.
    ended: Mutex<VecDeque<Ended>>,
    /// Old versions may take so much memory before the oldest snapshot is given up.
    versions_max: AtomicU64,
    /// Wakes the background.
    ring: Box<dyn Fn() + Send + Sync>,
}

impl Rows {
    pub(crate) fn new(store: Arc<Store>, versions_max: u64, ring: Box<dyn Fn() + Send + Sync>) -> Rows {
        Rows {
            slots: Slots::new(first_id(&store.pager)),
            snapshots: Snapshots::default(),
            versions: Versions::default(),
            locks: Locks::default(),
            ended: Mutex::default(),
            versions_max: AtomicU64::new(versions_max),
            store,
            ring,
        }
    }

    /// Begins a transaction. Nothing is written, and no snapshot taken, before it is needed.
    pub fn begin(self: &Arc<Rows>, isolation: Isolation) -> Transaction {
        Transaction::new(self.clone(), isolation)
    }

    /// Memory that old versions take, about.
    pub fn version_bytes(&self) -> u64 {
        self.versions.bytes()
    }

    /// Old versions may take about so many bytes; beyond, the oldest snapshot is given up (`Error::SnapshotTooOld`).
    pub fn limit_versions(&self, bytes: u64) {
        self.versions_max.store(bytes, Ordering::Relaxed);
    }

    fn map(&self, map: MapId) -> Result<Arc<Map>> {
        self.store.maps.get(map).ok_or(Error::Misuse("a map that does not exist"))
    }

    fn head(&self) -> Lsn {
        self.store.pager.log_head()
    }

    fn oldest_snapshot(&self) -> Lsn {
        self.snapshots.oldest(|| self.head())
    }
}

/// Who wrote a record of a map, as stored in the tree, and whether it is a ghost.
pub(crate) fn writer_of(record: &[u8]) -> Result<(TxnId, bool)> {
    let (head, _) = version::Head::parse(record)?;
    Ok((head.writer, head.is_ghost))
}

/// Pages that a record of a map names, as stored in the tree. Rows have none of their own.
pub(crate) fn pages_of(record: &[u8]) -> Result<Vec<Run>> {
    version::Head::parse(record)?;
    Ok(Vec::new())
}
