//! The contract with storage that several nodes reach: objects with an epoch, on which every write is conditional.
//!
//! One operation on one object is atomic: the guard is compared, the epoch set and the bytes written together, or nothing happens. So a writer whose epoch is no
//! longer the newest is refused by the object itself (OS-7); no clock and no list of members takes part in that.

use std::fmt;
use std::io;

/// The condition of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The object does not exist.
    Absent,
    /// The object has exactly this epoch.
    Equal(u64),
    /// The object exists, and its epoch is at most the new one.
    AtMostNew,
}

/// Why an operation on an object was not done.
#[derive(Debug)]
pub enum ObjectError {
    /// The guard was `Absent`, and the object exists.
    Exists,
    /// There is no such object.
    Missing,
    /// The object has another epoch, or this client is shut out. It is final: nobody may write with this epoch any more.
    Fenced,
    /// Anything else. Whether a write was done is not known.
    Io(io::Error),
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectError::Exists => write!(f, "the object exists already"),
            ObjectError::Missing => write!(f, "there is no such object"),
            ObjectError::Fenced => write!(f, "another node has taken over"),
            ObjectError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ObjectError {}

/// The objects of one database, as one client sees them. Names are flat.
pub trait ObjectStore: Send + Sync {
    /// Compares the guard, sets the epoch and writes all pieces (offset, bytes): one atomic operation, durable on return. Bytes never written read as zero.
    fn write(&self, name: &str, guard: Guard, epoch: u64, pieces: &[(u64, &[u8])]) -> Result<(), ObjectError>;
    /// Reads from `offset` until `buf` is full or the object ends. Returns the number of bytes read. Sees every write that has returned, of any client.
    fn read(&self, name: &str, offset: u64, buf: &mut [u8]) -> Result<usize, ObjectError>;
    /// Does several reads (name, offset, buffer) and waits for all of them, together where the store can. Returns one result for each.
    fn read_many(&self, reads: &mut [(&str, u64, &mut [u8])]) -> Vec<Result<usize, ObjectError>> {
        reads.iter_mut().map(|(name, offset, buf)| self.read(name, *offset, buf)).collect()
    }
    /// Removes an object. Unlike a write, it has no guard: only what nobody needs any more may be removed.
    fn remove(&self, name: &str) -> Result<(), ObjectError>;
}
