//! Errors of the storage layer, by what the caller can do about them.

use std::fmt;
use std::io;

use crate::files::DATA_FILE;
use crate::page::{PAGE_BYTES, PageId};

/// An error of the storage layer. Doors translate it; nothing is retried silently here.
#[derive(Debug)]
pub enum Error {
    /// Bytes on disk are not what was written. The request fails; other requests are served.
    Corrupt { what: String, file: String, page: Option<PageId> },
    /// No room for data or WAL. Writes fail until space is free again; reads continue.
    DiskFull { what: &'static str },
    /// The device failed an operation.
    Io { what: String, error: io::Error },
    /// The folder was written by a newer Beluga, or is not a Beluga data folder.
    Format(String),
    /// Another opening of a shared database has taken over: nothing may be written or shown any more.
    Fenced { what: String },
    /// The engine is closing.
    Closed,
    /// A page snapshot cannot be taken, or does not show its instant any more.
    NoSnapshot(String),
    /// The page is not in memory, and the caller asked not to wait for it (`Pager::optimistic_cached`).
    PageMiss(PageId),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn io(what: impl Into<String>, error: io::Error) -> Error {
        if is_full(&error) {
            Error::DiskFull { what: "the file system" }
        } else if is_fenced(&error) {
            Error::Fenced { what: what.into() }
        } else {
            Error::Io { what: what.into(), error }
        }
    }

    pub fn corrupt_page(page: PageId, what: impl Into<String>) -> Error {
        Error::Corrupt { what: what.into(), file: DATA_FILE.into(), page: Some(page) }
    }
}

/// Returns true if the file system or the user's quota is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT)) || error.kind() == io::ErrorKind::StorageFull
}

/// Returns true if storage has refused the operation because another opening has taken over.
fn is_fenced(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(os::ObjectError::Fenced))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Corrupt { what, file, page: Some(page) } => {
                write!(
                    f,
                    "corrupt page {page} of file '{file}' (offset {}): {what}",
                    u128::from(*page) * PAGE_BYTES as u128
                )
            }
            Error::Corrupt { what, file, page: None } => write!(f, "corrupt file '{file}': {what}"),
            Error::DiskFull { what } => write!(f, "disk full: no room for {what}; writes resume when space is free"),
            Error::Io { what, error } => write!(f, "{what}: {error}"),
            Error::Format(what) => write!(f, "{what}"),
            Error::Fenced { what } => write!(f, "{what}: another node has taken over this database"),
            Error::Closed => write!(f, "the engine is closing"),
            Error::NoSnapshot(why) => write!(f, "the snapshot was given up: {why}"),
            Error::PageMiss(page) => write!(f, "page {page} is not in memory"),
        }
    }
}

impl std::error::Error for Error {}
