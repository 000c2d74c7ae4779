//! Operations that root, log and pages have in common.

use std::io;
use std::sync::Arc;

use os::{Guard, ObjectError, ObjectStore};
use stdx::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result, is_full};

/// The objects as one opening writes them: nothing any more after a write that was refused, or whose outcome is not known.
///
/// Such a write may still take effect, at any later time. A second attempt, or a newer version of the same page, could then be replaced by the older one, under
/// the same epoch. So the opening ends, and the next one starts from the state that it finds (PG-34).
pub(super) struct OpeningObjects {
    objects: Arc<dyn ObjectStore>,
    end: AtomicU32,
    on_end: Option<EndHook>,
}

/// Called by the thread whose write has ended an opening, with `Error::Fenced` if it was refused.
pub type EndHook = Arc<dyn Fn(&Error) + Send + Sync>;

/// Why an opening has ended: not at all, by a refusal, by a write of unknown outcome.
const OPEN: u32 = 0;
const REFUSED: u32 = 1;
const IN_DOUBT: u32 = 2;

impl OpeningObjects {
    pub fn new(objects: Arc<dyn ObjectStore>, on_end: Option<EndHook>) -> OpeningObjects {
        OpeningObjects { objects, end: AtomicU32::new(OPEN), on_end }
    }
}

impl ObjectStore for OpeningObjects {
    fn write(&self, name: &str, guard: Guard, epoch: u64, pieces: &[(u64, &[u8])]) -> Result<(), ObjectError> {
        match self.end.load(Ordering::Acquire) {
            OPEN => {}
            REFUSED => return Err(ObjectError::Fenced),
            _ => return Err(ObjectError::Io(io::Error::other("the outcome of an earlier write is not known"))),
        }
        let result = self.objects.write(name, guard, epoch, pieces);
        let (end, error) = match result {
            Err(ObjectError::Fenced) => (REFUSED, ObjectError::Fenced),
            Err(ObjectError::Io(error)) if !is_full(&error) => (IN_DOUBT, ObjectError::Io(error)),
            other => return other,
        };
        // The first cause stays: one that is in doubt may meet a refusal in another thread.
        let _ = self.end.compare_exchange(OPEN, end, Ordering::AcqRel, Ordering::Acquire);
        if let Some(on_end) = &self.on_end {
            on_end(&failed(&format!("writing the object '{name}'"), clone_of(&error)));
        }
        Err(error)
    }

    fn read(&self, name: &str, offset: u64, buf: &mut [u8]) -> Result<usize, ObjectError> {
        self.objects.read(name, offset, buf)
    }

    fn read_many(&self, reads: &mut [(&str, u64, &mut [u8])]) -> Vec<Result<usize, ObjectError>> {
        self.objects.read_many(reads)
    }

    fn remove(&self, name: &str) -> Result<(), ObjectError> {
        self.objects.remove(name)
    }
}

/// Returns an error of the same meaning, for the hook.
fn clone_of(error: &ObjectError) -> ObjectError {
    match error {
        ObjectError::Fenced => ObjectError::Fenced,
        error => ObjectError::Io(io::Error::other(error.to_string())),
    }
}

/// Reads an object of `N` numbers; those never written are zero. `None` if it does not exist.
pub(super) fn read_numbers<const N: usize>(objects: &dyn ObjectStore, name: &str) -> Result<Option<[u64; N]>> {
    let mut bytes = vec![0; N * 8];
    match objects.read(name, 0, &mut bytes) {
        Ok(_) => {}
        Err(ObjectError::Missing) => return Ok(None),
        Err(error) => return Err(failed(&format!("reading '{name}'"), error)),
    }
    Ok(Some(std::array::from_fn(|at| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("eight bytes")))))
}

/// Raises the epoch of an object, which is created if it does not exist, and writes to it.
pub(super) fn write_first(
    objects: &dyn ObjectStore,
    name: &str,
    epoch: u64,
    pieces: &[(u64, &[u8])],
) -> Result<(), ObjectError> {
    loop {
        match objects.write(name, Guard::AtMostNew, epoch, pieces) {
            Err(ObjectError::Missing) => {}
            other => return other,
        }
        // An earlier opening may create it at this moment. No opening removes such an object (PG-32), so the loop ends.
        match objects.write(name, Guard::Absent, epoch, pieces) {
            Err(ObjectError::Exists) => {}
            other => return other,
        }
    }
}

pub(super) fn failed(what: &str, error: ObjectError) -> Error {
    match error {
        ObjectError::Fenced => Error::Fenced { what: what.into() },
        error => Error::io(what, io_error(error)),
    }
}

/// The error of a `Device` over objects.
pub(super) fn io_error(error: ObjectError) -> io::Error {
    match error {
        ObjectError::Io(error) => error,
        ObjectError::Missing => io::Error::new(io::ErrorKind::NotFound, error),
        ObjectError::Exists | ObjectError::Fenced => io::Error::new(io::ErrorKind::PermissionDenied, error),
    }
}

/// The error of an operation of `Device` that objects do not have.
pub(super) fn no_such_operation() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "objects are written by guarded operations")
}
