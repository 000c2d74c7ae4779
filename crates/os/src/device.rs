//! What the engine asks of storage: a handful of operations, so that something other than local files can stand behind them.

use std::io;
use std::sync::Arc;

use crate::ReadRing;

/// How to open a file of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Made if absent.
    Create,
    Existing,
}

/// A flat file of its own name. Offsets, lengths and buffer addresses are multiples of 4,096.
#[allow(clippy::len_without_is_empty)]
pub trait Device: Send + Sync {
    fn name(&self) -> &str;
    /// Size in bytes, remembered: no system call.
    fn len(&self) -> u64;
    fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;
    /// Durable only after `sync`.
    fn write(&self, offset: u64, buf: &[u8]) -> io::Result<()>;
    /// Durable when it returns.
    fn write_durable(&self, offset: u64, buf: &[u8]) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
    /// Makes the file at least `len` bytes long; the new bytes are allocated on disk and read as zero. Durable on return. An error leaves `len()` as it was.
    fn grow(&self, len: u64) -> io::Result<()>;
    /// `grow`, and the new bytes are really written, so that a later write of them changes no metadata.
    fn prefill(&self, len: u64) -> io::Result<()>;
    /// Reads submitted together and waited for once; one result each.
    fn read_many(&self, ops: &mut [(u64, &mut [u8])]) -> Vec<io::Result<()>>;
    /// Writes submitted together; durable only after `sync`.
    fn write_many(&self, ops: &[(u64, &[u8])]) -> io::Result<()>;
    /// For reads of `unit` bytes that the caller starts and collects itself, up to `depth` at a time; None where there is no such thing.
    fn read_ring(&self, unit: usize, depth: usize) -> Option<ReadRing> {
        let _ = (unit, depth);
        None
    }
}

/// The files of one database.
pub trait Folder: Send + Sync {
    fn open(&self, name: &str, mode: Open) -> io::Result<Arc<dyn Device>>;
    /// Names of all files, sorted; the lock file is not one of them.
    fn list(&self) -> io::Result<Vec<String>>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// A file without a name: gone when it is dropped, and after a crash. Never synced.
    fn scratch(&self) -> io::Result<Arc<dyn Device>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes creations, removals and renames durable.
    fn sync(&self) -> io::Result<()>;
    /// Room left for this user.
    fn free_bytes(&self) -> io::Result<u64>;
}
