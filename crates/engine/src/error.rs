//! The errors of the engine, sorted by what the caller can do about them. Each door turns them into its own codes and texts.

use std::fmt;
use std::io;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug)]
pub enum Error {
    /// No space for data or WAL. Writes fail until there is space again; reads go on.
    DiskFull,
    /// Bytes on disk are not what was written. This request fails; others are served.
    Corrupt { what: String },
    /// The device refused an operation.
    Io(io::Error),
    /// Another node has taken over this shared database. Nothing may be written or shown any more.
    Fenced(String),
    /// The data folder has an unknown or a newer format.
    Format(String),
    /// A value, key or account text exceeds its limit.
    TooLarge { what: &'static str, limit: u64 },
    /// An account or setting is invalid; the text says why.
    Invalid(String),
    /// The request would need more memory at once than the memory limit leaves.
    OutOfMemory(stdx::memory::Full),
    /// The engine is closing.
    ShuttingDown,
    /// The lock wait timeout has passed. Nothing was changed.
    LockTimeout,
    /// The wait for a lock was cancelled. Nothing was changed.
    Cancelled,
    /// Another transaction holds the lock, and the caller asked not to wait.
    LockNotAvailable,
    /// The wait would have closed a cycle in the wait graph; the transaction has been rolled back.
    Deadlock,
    /// The transaction's snapshot was given up, because it kept too many old versions. The transaction can only be rolled back.
    SnapshotTooOld,
    /// The row was changed after the transaction's snapshot, and the transaction may not write over such rows. Nothing was changed.
    SerializationFailure {
        /// The row has been deleted.
        is_deleted: bool,
    },
    /// Another transaction has changed what this serializable transaction had read. The transaction has been rolled back.
    ReadWriteDependency,
    /// A page is not cached, or a row is locked, and the transaction is set not to block its thread for it (`Transaction::set_read_mode`,
    /// `Transaction::suspend_for_rows`). Nothing was changed.
    WouldBlock,
    /// Another thread holds a lock stripe for long, in a key transaction that said so (`KeyTransaction::declare_busy`), with the number that it gave. Nothing was
    /// changed.
    Busy(u32),
    /// The keyspace follows another server, so only what that server sends is written. Nothing was changed.
    Following,
    /// The computation must end, because long ones occupy all threads (`stdx::wait::check_for_interrupts`). Nothing was changed.
    TooManyComputations,
    /// A growing key transaction needs keys that it could not lock without waiting. It rolls back and runs again with them (EN-79).
    MoreKeys,
    /// The caller broke a rule of the API, for instance used a key outside the transaction's key set, or made a second change where it announced one.
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
            pager::Error::Fenced { .. } => Error::Fenced(error.to_string()),
            pager::Error::Closed => Error::ShuttingDown,
            pager::Error::NoSnapshot(_) => Error::Invalid(error.to_string()),
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
            Error::Format(what) | Error::Invalid(what) | Error::Fenced(what) => write!(f, "{what}"),
            Error::TooLarge { what, limit } => write!(f, "{what} exceeds the limit of {limit} bytes"),
            Error::OutOfMemory(full) => write!(f, "out of memory: {full}"),
            Error::ShuttingDown => write!(f, "the engine is closing"),
            Error::LockTimeout => write!(f, "lock wait timeout exceeded; try the statement again"),
            Error::Cancelled => write!(f, "the wait for a lock was cancelled"),
            Error::LockNotAvailable => write!(f, "the row is locked by another transaction"),
            Error::Deadlock => write!(f, "deadlock; the transaction has been rolled back, try it again"),
            Error::SerializationFailure { .. } => write!(f, "the row was changed after the transaction's snapshot"),
            Error::ReadWriteDependency => {
                write!(f, "another transaction has changed what this one has read; try it again")
            }
            Error::SnapshotTooOld => {
                write!(f, "snapshot too old: the disk has no room for the row versions that it needs; begin again")
            }
            Error::Busy(_) => write!(f, "the key is held by a transaction that takes long"),
            Error::TooManyComputations => {
                write!(f, "too many long commands run at the same time; this one was ended and has changed nothing")
            }
            Error::Following => write!(f, "the keys follow another server; writes to them are refused"),
            Error::MoreKeys => write!(f, "the transaction needs more keys"),
            Error::WouldBlock => write!(f, "the transaction would have to wait"),
            Error::Misuse(what) => write!(f, "internal error: {what}"),
        }
    }
}

impl std::error::Error for Error {}
