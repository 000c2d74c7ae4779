//! The objects of one database in a pool of a Ceph cluster, through librados.
//!
//! ```text
//!   Guard::Absent       create exclusively          + set epoch + write
//!   Guard::Equal(e)     compare epoch = e           + set epoch + write
//!   Guard::AtMostNew    exists, compare new >= epoch + set epoch + write
//! ```
//! Each is one operation on one object, which RADOS does atomically and answers when all acting replicas have it (OS-7). The epoch is an attribute of 16 hex digits, since
//! attributes are compared as bytes.
//!
//! Hard part: an operation has no time limit. An answer that comes too late would leave it open whether the write was done, so librados waits, and sends it again
//! after a failure of a server, for as long as it takes.

mod librados;

use std::ffi::{CStr, CString, c_int};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;

use crate::objects::{Guard, ObjectError, ObjectStore};
use crate::rados::librados::{Handle, Librados, librados};

const EPOCH: &CStr = c"epoch";
/// Comparisons of `rados_write_op_cmpxattr`: the given value is the left one.
const EQUAL: u8 = 1;
const AT_LEAST: u8 = 4;
/// `LIBRADOS_OPERATION_FULL_TRY`: a full pool answers with an error, instead of leaving the operation under way until there is room.
const FULL_TRY: c_int = 64;
/// Bytes of one read.
const READ_BYTES_MAX: usize = 4 << 20;
/// Seconds until a cluster that does not answer a new client is given up.
const CONNECT_SECONDS: &CStr = c"30";

/// Where a database lies in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadosAddress {
    pub pool: String,
    /// The RADOS namespace that holds the objects of this database and nothing else.
    pub name: String,
    /// The configuration of the cluster; without one, librados looks in its usual places (`CEPH_CONF`, /etc/ceph/ceph.conf).
    pub conf: Option<PathBuf>,
    /// The user that connects, with its type: `client.admin`.
    pub user: String,
}

impl fmt::Display for RadosAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rados:{}/{}", self.pool, self.name)
    }
}

/// A connection to a cluster.
struct Cluster {
    functions: &'static Librados,
    handle: Handle,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // SAFETY: OS-8: the handle is from rados_create2, and every context of it has been destroyed, since a context holds the cluster.
        unsafe { (self.functions.rados_shutdown)(self.handle) }
    }
}

/// The objects of one database.
pub struct RadosObjects {
    cluster: Cluster,
    context: Handle,
}

// SAFETY: OS-8: librados allows any threads to use one cluster and one I/O context at the same time, as long as the namespace stays.
unsafe impl Send for RadosObjects {}
// SAFETY: OS-8: as above.
unsafe impl Sync for RadosObjects {}

impl Drop for RadosObjects {
    fn drop(&mut self) {
        // SAFETY: OS-8: the context is from rados_ioctx_create, and no operation is under way, since each borrows `self`.
        unsafe { (self.cluster.functions.rados_ioctx_destroy)(self.context) }
    }
}

fn text(what: &str, value: &str) -> io::Result<CString> {
    CString::new(value)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, format!("{what} must not contain a zero byte")))
}

/// Turns the result of librados into an error that says what was tried.
fn checked(result: c_int, what: impl FnOnce() -> String) -> io::Result<()> {
    if result >= 0 {
        return Ok(());
    }
    let error = io::Error::from_raw_os_error(-result);
    Err(io::Error::new(error.kind(), format!("{}: {error}", what())))
}

impl RadosObjects {
    /// Connects to the cluster. Fails with a message for a person if the library, the configuration, the cluster or the pool is missing.
    pub fn connect(address: &RadosAddress) -> io::Result<Arc<RadosObjects>> {
        let functions = librados()?;
        let (pool, name) = (text("the pool's name", &address.pool)?, text("the database's name", &address.name)?);
        let user = text("the user's name", &address.user)?;
        let conf = match &address.conf {
            Some(path) => Some(text("the path of the configuration", &path.to_string_lossy())?),
            None => None,
        };
        let mut handle = ptr::null_mut();
        // SAFETY: OS-8: the strings end with a zero byte, and `handle` is written by the call.
        let created = unsafe { (functions.rados_create2)(&mut handle, c"ceph".as_ptr(), user.as_ptr(), 0) };
        checked(created, || format!("preparing a client '{}' of Ceph", address.user))?;
        let cluster = Cluster { functions, handle };
        let path = conf.as_ref().map_or(ptr::null(), |path| path.as_ptr());
        // SAFETY: OS-8: the handle is open; null stands for the usual places.
        let read = unsafe { (functions.rados_conf_read_file)(cluster.handle, path) };
        checked(read, || match &address.conf {
            Some(path) => format!("reading Ceph's configuration '{}'", path.display()),
            None => "reading Ceph's configuration from CEPH_CONF or /etc/ceph/ceph.conf".into(),
        })?;
        // An operation on an object that is given up may still be done (PG-34 of the pager), so none is given up, whatever the file says.
        for (option, value) in [(c"rados_osd_op_timeout", c"0"), (c"client_mount_timeout", CONNECT_SECONDS)] {
            // SAFETY: OS-8: the handle is open, and the strings end with a zero byte.
            let set = unsafe { (functions.rados_conf_set)(cluster.handle, option.as_ptr(), value.as_ptr()) };
            checked(set, || format!("setting {} of Ceph's client", option.to_string_lossy()))?;
        }
        // SAFETY: OS-8: the handle is open.
        let connected = unsafe { (functions.rados_connect)(cluster.handle) };
        checked(connected, || format!("connecting to the Ceph cluster as '{}'", address.user))?;
        let mut context = ptr::null_mut();
        // SAFETY: OS-8: the cluster is connected, and `context` is written by the call.
        let opened = unsafe { (functions.rados_ioctx_create)(cluster.handle, pool.as_ptr(), &mut context) };
        checked(opened, || format!("opening the pool '{}' of the Ceph cluster", address.pool))?;
        // SAFETY: OS-8: the context is open, and no other thread has it yet.
        unsafe { (functions.rados_ioctx_set_namespace)(context, name.as_ptr()) }
        Ok(Arc::new(RadosObjects { cluster, context }))
    }

    fn functions(&self) -> &'static Librados {
        self.cluster.functions
    }
}

/// The attribute of an epoch.
fn epoch_text(epoch: u64) -> [u8; 16] {
    let mut text = [0; 16];
    for (at, digit) in text.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(epoch >> (60 - 4 * at)) as usize & 15];
    }
    text
}

/// Classifies a negative result.
fn object_error(result: c_int) -> ObjectError {
    match -result {
        libc::EEXIST => ObjectError::Exists,
        libc::ENOENT => ObjectError::Missing,
        // The comparison has failed; the client is on the blocklist.
        libc::ECANCELED | libc::ESHUTDOWN => ObjectError::Fenced,
        error => ObjectError::Io(io::Error::from_raw_os_error(error)),
    }
}

fn object_name(name: &str) -> Result<CString, ObjectError> {
    text("an object's name", name).map_err(ObjectError::Io)
}

/// An operation that is being put together.
struct WriteOperation {
    functions: &'static Librados,
    handle: Handle,
}

impl Drop for WriteOperation {
    fn drop(&mut self) {
        // SAFETY: OS-8: the handle is from rados_create_write_op.
        unsafe { (self.functions.rados_release_write_op)(self.handle) }
    }
}

impl WriteOperation {
    fn new(functions: &'static Librados) -> WriteOperation {
        // SAFETY: OS-8: the call needs nothing.
        let handle = unsafe { (functions.rados_create_write_op)() };
        assert!(!handle.is_null(), "librados allocates or aborts");
        WriteOperation { functions, handle }
    }

    fn create(&self) {
        // SAFETY: OS-8: the handle is open; a category is not used any more.
        unsafe { (self.functions.rados_write_op_create)(self.handle, 1, ptr::null()) }
    }

    fn assert_exists(&self) {
        // SAFETY: OS-8: the handle is open.
        unsafe { (self.functions.rados_write_op_assert_exists)(self.handle) }
    }

    /// `epoch` must be in that relation to the stored one.
    fn compare_epoch(&self, comparison: u8, epoch: u64) {
        let text = epoch_text(epoch);
        // SAFETY: OS-8: the handle is open, and librados copies the value.
        unsafe {
            let value = text.as_ptr().cast();
            (self.functions.rados_write_op_cmpxattr)(self.handle, EPOCH.as_ptr(), comparison, value, text.len());
        }
    }

    fn set_epoch(&self, epoch: u64) {
        let text = epoch_text(epoch);
        // SAFETY: OS-8: the handle is open, and librados copies the value.
        unsafe {
            let value = text.as_ptr().cast();
            (self.functions.rados_write_op_setxattr)(self.handle, EPOCH.as_ptr(), value, text.len());
        }
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        // SAFETY: OS-8: the handle is open, and librados copies the bytes.
        unsafe { (self.functions.rados_write_op_write)(self.handle, bytes.as_ptr().cast(), bytes.len(), offset) }
    }
}

/// A read that has been started. It ends before this is dropped, so its buffer may be used afterwards (OS-3).
struct PendingRead<'r> {
    objects: &'r RadosObjects,
    completion: Handle,
    buf: &'r mut [u8],
    /// Name and offset, for the rest of a buffer that one read does not fill.
    name: CString,
    offset: u64,
    is_under_way: bool,
}

impl Drop for PendingRead<'_> {
    fn drop(&mut self) {
        self.wait();
        // SAFETY: OS-8: the completion is from rados_aio_create_completion2, and nothing uses it any more.
        unsafe { (self.objects.functions().rados_aio_release)(self.completion) }
    }
}

impl<'r> PendingRead<'r> {
    fn start(
        objects: &'r RadosObjects,
        name: &str,
        offset: u64,
        buf: &'r mut [u8],
    ) -> Result<PendingRead<'r>, ObjectError> {
        let (name, functions) = (object_name(name)?, objects.functions());
        let mut completion = ptr::null_mut();
        // SAFETY: OS-8: without a callback the argument is not used, and `completion` is written by the call.
        let created =
            unsafe { (functions.rados_aio_create_completion2)(ptr::null_mut(), ptr::null(), &mut completion) };
        if created < 0 {
            return Err(object_error(created));
        }
        let mut read = PendingRead { objects, completion, buf, name, offset, is_under_way: false };
        let len = read.buf.len().min(READ_BYTES_MAX);
        // RADOS takes a length of zero for all bytes.
        if len == 0 {
            return Ok(read);
        }
        // SAFETY: OS-3, OS-8: context and completion are open, and the buffer is borrowed until `drop` has waited for the end of the read.
        let started = unsafe {
            let bytes = read.buf.as_mut_ptr().cast();
            (functions.rados_aio_read)(objects.context, read.name.as_ptr(), completion, bytes, len, offset)
        };
        if started < 0 {
            return Err(object_error(started));
        }
        read.is_under_way = true;
        Ok(read)
    }

    fn wait(&mut self) {
        if std::mem::take(&mut self.is_under_way) {
            // SAFETY: OS-8: the completion is open, and an operation was started with it.
            unsafe { (self.objects.functions().rados_aio_wait_for_complete)(self.completion) };
        }
    }

    /// Waits for the end. Reads the rest as well if the buffer is longer than one read.
    fn finish(mut self) -> Result<usize, ObjectError> {
        if self.buf.is_empty() {
            return Ok(0);
        }
        self.wait();
        // SAFETY: OS-8: the completion is open, and its operation has ended.
        let result = unsafe { (self.objects.functions().rados_aio_get_return_value)(self.completion) };
        if result < 0 {
            return Err(object_error(result));
        }
        let read = result as usize;
        if read < READ_BYTES_MAX || read == self.buf.len() {
            return Ok(read);
        }
        let name = self.name.to_string_lossy().into_owned();
        Ok(read + self.objects.read(&name, self.offset + read as u64, &mut self.buf[read..])?)
    }
}

impl ObjectStore for RadosObjects {
    fn write(&self, name: &str, guard: Guard, epoch: u64, pieces: &[(u64, &[u8])]) -> Result<(), ObjectError> {
        let name = object_name(name)?;
        let operation = WriteOperation::new(self.functions());
        match guard {
            Guard::Absent => operation.create(),
            Guard::Equal(expected) => operation.compare_epoch(EQUAL, expected),
            Guard::AtMostNew => {
                operation.assert_exists();
                operation.compare_epoch(AT_LEAST, epoch);
            }
        }
        operation.set_epoch(epoch);
        pieces
            .iter()
            .filter(|(_, bytes)| !bytes.is_empty())
            .for_each(|(offset, bytes)| operation.write(*offset, bytes));
        // SAFETY: OS-8: operation and context are open; without a time the server's is taken.
        let result = unsafe {
            let (handle, time) = (operation.handle, ptr::null_mut());
            (self.functions().rados_write_op_operate2)(handle, self.context, name.as_ptr(), time, FULL_TRY)
        };
        if result < 0 { Err(object_error(result)) } else { Ok(()) }
    }

    fn read(&self, name: &str, offset: u64, buf: &mut [u8]) -> Result<usize, ObjectError> {
        let name = object_name(name)?;
        let mut done = 0;
        // RADOS takes a length of zero for all bytes.
        while done < buf.len() {
            let len = (buf.len() - done).min(READ_BYTES_MAX);
            let rest = &mut buf[done..done + len];
            // SAFETY: OS-8: the context is open, and at most `len` bytes are written to `rest`, before the call returns (OS-3).
            let result = unsafe {
                let bytes = rest.as_mut_ptr().cast();
                (self.functions().rados_read)(self.context, name.as_ptr(), bytes, len, offset + done as u64)
            };
            if result < 0 {
                return Err(object_error(result));
            }
            done += result as usize;
            if (result as usize) < len {
                break;
            }
        }
        Ok(done)
    }

    /// Starts all reads, then waits for each.
    fn read_many(&self, reads: &mut [(&str, u64, &mut [u8])]) -> Vec<Result<usize, ObjectError>> {
        if reads.len() < 2 {
            return reads.iter_mut().map(|(name, offset, buf)| self.read(name, *offset, buf)).collect();
        }
        let started: Vec<_> =
            reads.iter_mut().map(|(name, offset, buf)| PendingRead::start(self, name, *offset, buf)).collect();
        started.into_iter().map(|read| read?.finish()).collect()
    }

    fn remove(&self, name: &str) -> Result<(), ObjectError> {
        let name = object_name(name)?;
        // SAFETY: OS-8: the context is open.
        let result = unsafe { (self.functions().rados_remove)(self.context, name.as_ptr()) };
        if result < 0 { Err(object_error(result)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_compare_as_bytes_as_they_do_as_numbers() {
        let numbers = [0, 1, 9, 10, 15, 16, 255, 1 << 32, u64::MAX - 1, u64::MAX];
        assert!(numbers.windows(2).all(|two| epoch_text(two[0]) < epoch_text(two[1])));
        assert_eq!(&epoch_text(0x0123_4567_89ab_cdef), b"0123456789abcdef");
    }
}
