//! REQUEST.

use std::time::Duration;

use crate::rows::row::HEAD_BYTES;

/// Longest key and value of a row.
pub const ROW_KEY_MAX: usize = btree::Tree::KEY_MAX;

pub const ROW_VALUE_MAX: usize = 1 << 30;

/// A longer value lies in segments of its own.
pub(crate) const ROW_INLINE_MAX: usize = btree::Tree::VALUE_MAX - HEAD_BYTES;

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
