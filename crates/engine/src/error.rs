//! What can go wrong, sorted by what the caller can do about it. Doors turn these into their own words.

use std::fmt;
use std::io;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug)]
pub enum Error {
    /// No room for data or log. Writes fail until space is back, reads go on.
    DiskFull,
    /// Bytes on disk are not what was written. This request fails, the rest serves.
    Corrupt { what: String },
    /// The device refused an operation.
    Io(io::Error),
    /// The folder is not ours or newer than we are.
    Format(String),
    /// A value, key or account text beyond its limit.
    TooLarge { what: &'static str, limit: u64 },
    /// An account or setting that makes no sense; the text says why.
    Invalid(String),
    /// The request would hold more at once than the limit on memory leaves.
    OutOfMemory(stdx::memory::Full),
    /// The engine is closing.
    ShuttingDown,
    /// WaitOutcome as long as allowed for somebody else's lock. Nothing was changed.
    LockTimeout,
    /// The wait for somebody else's lock was cancelled. Nothing was changed.
    Cancelled,
    /// Somebody else holds the lock, and the caller did not want to wait.
    LockNotAvailable,
    /// The transaction and others waited for each other; it has been rolled back.
    Deadlock,
    /// What the snapshot sees has been given up, because too many old versions were kept for it. The transaction can only be rolled back.
    SnapshotTooOld,
    /// A page is not in memory, or a row is locked, and the transaction is not to wait for it with a thread (`Transaction::reach`, `Transaction::suspend_for_rows`). Nothing was changed.
    WouldBlock,
    /// The calling code broke a rule of the API: a key outside the unit's locks, a second change in a unit that announced one.
    Misuse(&'static str),
}

impl Error {
    pub(crate) fn corrupt(what: impl Into<String>) -> Error {
        Error::Corrupt { what: what.into() }
    }
}

impl From<pager::Error> for Error {
    fn from(error: pager::Error) -> Error {
        match error {
            pager::Error::DiskFull { .. } => Error::DiskFull,
            pager::Error::Corrupt { .. } => Error::Corrupt { what: error.to_string() },
            pager::Error::Io { what, error } => Error::Io(io::Error::new(error.kind(), format!("{what}: {error}"))),
            pager::Error::Format(what) => Error::Format(what),
            pager::Error::Closed => Error::ShuttingDown,
            pager::Error::PageMiss(_) => Error::WouldBlock,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::DiskFull => write!(f, "disk full: writes resume when space is free"),
            Error::Corrupt { what } => write!(f, "{what}"),
            Error::Io(error) => write!(f, "{error}"),
            Error::Format(what) | Error::Invalid(what) => write!(f, "{what}"),
            Error::TooLarge { what, limit } => write!(f, "{what} exceeds the limit of {limit} bytes"),
            Error::OutOfMemory(full) => write!(f, "out of memory: {full}"),
            Error::ShuttingDown => write!(f, "the engine is closing"),
            Error::LockTimeout => write!(f, "lock wait timeout exceeded; try the statement again"),
            Error::Cancelled => write!(f, "the wait for a lock was cancelled"),
            Error::LockNotAvailable => write!(f, "the row is locked by another transaction"),
            Error::Deadlock => write!(f, "deadlock; the transaction has been rolled back, try it again"),
            Error::SnapshotTooOld => {
                write!(f, "snapshot too old: the disk has no room for the row versions that it needs; begin again")
            }
            Error::WouldBlock => write!(f, "the transaction would have to wait"),
            Error::Misuse(what) => write!(f, "internal error: {what}"),
        }
    }
}

impl std::error::Error for Error {}
