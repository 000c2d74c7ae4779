//! Rows for SQL: ordered maps of bytes with transactions, snapshots and locks. The layer above knows tables, columns and indexes; here a row is a key and a
//! value.
//!
//! ```text
//!   record in the tree    creator | delete mark | long | value    the newest version, committed or not; a long value is in segments, as those of the keyspace
//!   `status_table`        creator -> active, committed at, aborted         `versions`     the record's older versions, for older snapshots
//!   `snapshot`            who reads as of when                             `lock_table`   rows and ranges that are locked without being changed
//! ```
//! A record whose creator is an open transaction is the exclusive lock on the row. Plain reads never wait for a transaction: they take the newest version that
//! their snapshot sees. Changes and locking reads wait for conflicting locks, and act on the newest committed version.

mod activity;
mod change;
mod elements;
mod ids;
pub(crate) mod key_changes;
pub(crate) mod keys;
mod lock_queue;
pub(crate) mod lock_table;
mod locking;
pub(crate) mod loser_list;
#[cfg(all(test, loom))]
mod model;
mod purge;
mod purge_list;
mod read;
mod read_set;
mod request;
pub(crate) mod row;
pub(crate) mod run;
mod sample;
mod seen_maps;
mod snapshot;
mod spill;
pub(crate) mod state;
pub(crate) mod status_table;
mod suspend;
pub(crate) mod transaction;
pub(crate) mod undo;
mod undo_losers;
mod validation;
pub(crate) mod versions;
mod visibility;
mod wait_mode;

pub use crate::store::trees::{MapId, ROW_CATALOG as CATALOG};
pub use activity::{Activity, AwaitedLock};
pub use btree::{LeafHint, ReadMode};
pub use elements::{ElementPlace, FoundElement, OwnElements};
pub use ids::{SeenIds, TransactionOutcome};
pub use key_changes::{Collection, ElementChanges, KeyValue, item_name, item_number};
pub use keys::LockedKey;
pub use lock_table::{HeldLock, RowLock, Strength};
pub use loser_list::RollingBack;
pub use read::{Cursor, IndexOf, RowBatch};
pub use request::{Inserted, Isolation, Locked, LockedRow, ROW_KEY_MAX, ROW_VALUE_MAX, Wait};
pub use seen_maps::SeenMaps;
pub use state::Rows;
pub use status_table::{ROW_LOCK, Wake};
pub use transaction::{Cancel, Savepoint, SnapshotAside, Transaction};
