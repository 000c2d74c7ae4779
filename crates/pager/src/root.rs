//! The root of a database: its id, the checkpoint and the boot number, replaced as a whole.
//!
//! The boot number is the epoch of everything that an opening writes. The opening claims the database by replacing boot number n by n + 1, and every later
//! replacement names the number that the writer believes to be in force. So storage that several openings reach can refuse all but the newest one
//! (docs/decisions/0037-three-seams-to-shared-storage.md).

use crate::error::{Error, Result};
use crate::page::Lsn;

/// The content of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootRecord {
    /// Random id of the database. Its WAL chunks carry it.
    pub database: u64,
    /// Recovery reads the WAL from here.
    pub checkpoint: Lsn,
    /// Number of openings so far; also the epoch of the WAL's chunks.
    pub boot: u64,
    /// Pages may hold changes up to here, so recovery must not stop before it. The end of the backup in a restored folder, otherwise 0.
    pub consistent: Lsn,
    /// A copy into this database has begun and not ended, so pages or WAL are missing (PG-36).
    pub is_incomplete: bool,
}

impl RootRecord {
    /// Refuses a database that holds a part of a copy.
    pub fn check_complete(&self) -> Result<()> {
        if !self.is_incomplete {
            return Ok(());
        }
        Err(Error::Format(
            "a copy, backup or restore into it was interrupted, so it holds a part of a database: run that command again, with --overwrite for copy and restore".into(),
        ))
    }
}

/// Where the root lies.
pub trait Root: Send + Sync {
    /// Returns the root; `None` if there was never one.
    fn get(&self) -> Result<Option<RootRecord>>;
    /// Replaces the root that was read or written last, whose boot number is `boot` (0 if there is none). The new one is durable on return; after an error either is in force.
    fn compare_and_set(&self, boot: u64, next: RootRecord) -> Result<()>;
}
