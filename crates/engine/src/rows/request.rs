//! Requests to a transaction, and the answers: isolation levels, how long to wait, outcomes, limits.

use std::time::Duration;

use crate::rows::row::HEAD_BYTES;

/// Longest key of a row.
pub const ROW_KEY_MAX: usize = btree::Tree::KEY_MAX;

pub const ROW_VALUE_MAX: usize = 1 << 30;

/// Longest value in a record. A longer one is stored in segments.
pub(crate) const ROW_INLINE_MAX: usize = btree::Tree::VALUE_MAX - HEAD_BYTES;

/// Which changes of other transactions a statement sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// As READ COMMITTED: uncommitted changes are never visible.
    ReadUncommitted,
    /// Each statement sees what was committed when it began.
    ReadCommitted,
    /// Every statement sees what was committed when the first one began. Changes act on the newest committed version.
    RepeatableRead,
    /// As REPEATABLE READ. The layer above makes plain reads lock, with `lock` and `lock_range`.
    Serializable,
}

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    For(Duration),
    NoWait,
    SkipLocked,
}

/// The outcome of `Transaction::lock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    Present,
    Absent,
    /// Another transaction holds the lock, and the caller asked not to wait.
    Skipped,
}

/// The outcome of `Transaction::lock_seen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockedRow {
    /// The newest version is the one that the snapshot sees.
    Same,
    /// There is a newer one; under this key, if the row's key was changed.
    Newer(Option<Vec<u8>>),
    /// The row has been deleted. It is not locked.
    Gone,
    /// Another transaction holds the lock, and the caller asked not to wait.
    Skipped,
}

/// The outcome of `Transaction::insert`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    Done,
    Exists,
}
