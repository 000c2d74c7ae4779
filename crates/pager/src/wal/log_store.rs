//! The seam between the WAL and the storage of its segments (docs/decisions/0037-three-seams-to-shared-storage.md).
//!
//! A segment is a flat piece of storage with a capacity. The WAL reads it anywhere, and appends at the end that it knows, one write at a time. Everything above
//! counts segments by number; how one comes about, and what becomes of it afterwards, is the store's.

use std::sync::Arc;

use os::Device;

use crate::error::Result;
use crate::page::Lsn;

/// A segment that holds part of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    pub number: u64,
    pub start: Lsn,
}

/// The segments of one database.
pub trait LogStore: Send + Sync {
    /// Returns the segments that hold part of the stream, by number: those with a header of their own number and this database (PG-13).
    fn segments(&self) -> Result<Vec<SegmentInfo>>;
    /// Opens a segment for reading.
    fn open(&self, number: u64) -> Result<Arc<dyn Device>>;
    /// Ends the log behind `used`, the segments that recovery has read: later ones, prepared ahead or cut off on purpose, hold none of the stream any more.
    /// Called once, before the first `create`.
    fn seal(&self, used: &[SegmentInfo]) -> Result<()>;
    /// Creates the segment of this number, which is the next one, with all its space; durable on return. It has no header of this number. `Err(DiskFull)` leaves nothing.
    fn create(&self, number: u64) -> Result<Arc<dyn Device>>;
    /// Sets space aside for one more segment, unless that has been done: for bytes that cannot be refused (PG-16).
    fn reserve(&self) -> Result<()>;
    /// Creates the segment in the space set aside. `None` if there is none.
    fn create_reserved(&self, number: u64) -> Result<Option<Arc<dyn Device>>>;
    /// Drops segments that are no longer needed; `in_use` are left. The store may keep their space for `create`.
    fn drop_segments(&self, numbers: &[u64], in_use: usize) -> Result<()>;
    /// Frees space that is kept only for `create`. Returns true if there was any.
    fn trim(&self) -> Result<bool>;
}
