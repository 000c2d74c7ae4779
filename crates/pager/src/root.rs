//! The root of a database: its id, the checkpoint and the boot number, replaced as a whole.
//!
//! The boot number is the epoch of everything that an opening writes. The opening claims the database by replacing boot number n by n + 1, and every later
//! replacement names the number that the writer believes to be in force. So storage that several openings reach can refuse all but the newest one
//! (docs/decisions/0037-three-seams-to-shared-storage.md).

use crate::error::Result;
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
}

/// Where the root lies.
pub trait Root: Send + Sync {
    /// Returns the root; `None` if there was never one.
    fn get(&self) -> Result<Option<RootRecord>>;
    /// Replaces the root, whose boot number is `boot` (0 if there is none). The new one is durable on return; after an error either is in force.
    fn compare_and_set(&self, boot: u64, next: RootRecord) -> Result<()>;
}
