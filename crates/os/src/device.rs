//! The contract between the engine and storage: a handful of operations, so that something other than local files can implement them.

use std::io;
use std::sync::Arc;

use crate::ReadRing;

/// How to open a file of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Makes the file if it does not exist.
    Create,
    Existing,
}

/// A flat file. Offsets, lengths and buffer addresses are multiples of 4,096.
#[allow(clippy::len_without_is_empty)]
pub trait Device: Send + Sync {
    fn name(&self) -> &str;
    /// Returns the size in bytes without a system call.
    fn len(&self) -> u64;
    /// Reads exactly `buf.len()` bytes. Fails with `UnexpectedEof` beyond the end.
    fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;
    /// Writes all of `buf`. The bytes are durable only after `sync`.
    fn write(&self, offset: u64, buf: &[u8]) -> io::Result<()>;
    /// Writes all of `buf`; the bytes are durable on return (OS-1).
    fn write_durable(&self, offset: u64, buf: &[u8]) -> io::Result<()>;
    /// Makes all previous writes durable (OS-1).
    fn sync(&self) -> io::Result<()>;
    /// Makes the file at least `len` bytes long. The new bytes are allocated on disk and read as zero; that is durable on return. An error leaves `len()` as it was (OS-2).
    fn grow(&self, len: u64) -> io::Result<()>;
    /// Does the same as `grow` and writes zeros to the new bytes, so that a later write of them changes no metadata.
    fn prefill(&self, len: u64) -> io::Result<()>;
    /// Submits all reads together and waits once. Returns one result per read.
    fn read_many(&self, ops: &mut [(u64, &mut [u8])]) -> Vec<io::Result<()>>;
    /// Submits all writes together and waits once. The bytes are durable only after `sync`.
    fn write_many(&self, ops: &[(u64, &[u8])]) -> io::Result<()>;
    /// Returns a ring for reads of `unit` bytes that the caller starts and collects itself, up to `depth` at a time. None where the device or the kernel has no rings.
    fn read_ring(&self, unit: usize, depth: usize) -> Option<ReadRing> {
        let _ = (unit, depth);
        None
    }
}

/// The files of one database.
pub trait Folder: Send + Sync {
    fn open(&self, name: &str, mode: Open) -> io::Result<Arc<dyn Device>>;
    /// Returns the names of all files, sorted, without the lock file.
    fn list(&self) -> io::Result<Vec<String>>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes a file without a name. It is gone when it is dropped, and after a crash. It is never synced.
    fn scratch(&self) -> io::Result<Arc<dyn Device>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes previous creations, removals and renames durable.
    fn sync(&self) -> io::Result<()>;
    /// Returns the free space that this user may allocate.
    fn free_bytes(&self) -> io::Result<u64>;
}
