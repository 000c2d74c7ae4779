//! Files of a real machine: O_DIRECT where the file system supports it, io_uring for batches where the kernel allows it.
//!
//! A single read is a plain `pread`: one system call, cheaper than a ring. The operations of a batch are submitted together and waited for once.
//!
//! Hard part: a length counts only when the bytes below it are allocated and the metadata is durable (OS-2).

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, IoSlice, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock, statvfs};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use crate::{Device, Folder, Open, ReadRing};

/// Permissions of every file in a data folder.
const FILE_MODE: u32 = 0o600;

/// Bytes of the lock file that are read to name its holder.
const PID_BYTES_MAX: u64 = 20;

/// A data folder in the file system.
pub struct RealFolder {
    path: PathBuf,
    lock: Mutex<Option<File>>,
}

impl RealFolder {
    /// Opens a folder. With `create` it and its parents are made if they do not exist, for the user of this process alone (0700).
    pub fn open(path: &Path, create: bool) -> io::Result<Arc<RealFolder>> {
        if create {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        }
        if !std::fs::metadata(path)?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"));
        }
        Ok(Arc::new(RealFolder { path: path.to_owned(), lock: Mutex::new(None) }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the folder for this process until the value is dropped. The text of `Err(WouldBlock)` names the pid of the holder if it is known.
    pub fn lock(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let file = options.open(self.path.join("lock"))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut holder = String::new();
            // The file may hold anything; a pid is short and made of digits.
            let _ = (&file).take(PID_BYTES_MAX).read_to_string(&mut holder);
            let holder = match holder.trim().parse::<u32>() {
                Ok(pid) => format!("process {pid}"),
                Err(_) => "another process".to_owned(),
            };
            return Err(io::Error::new(io::ErrorKind::WouldBlock, format!("in use by {holder}")));
        }
        note_holder(&file);
        *self.lock.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(file);
        Ok(())
    }
}

/// Writes the id of this process into a lock file, for a person who finds the folder locked. On a full disk the file may have no room even for that.
/// It is left empty then, because a stale pid would mislead.
fn note_holder(file: &File) {
    let pid = std::process::id().to_string();
    // Overwritten and truncated afterwards: a file that has a block already needs no new one.
    let noted = file.write_all_at(pid.as_bytes(), 0).and_then(|()| file.set_len(pid.len() as u64));
    if noted.is_err() {
        let _ = file.set_len(0);
    }
}

impl Folder for RealFolder {
    fn open(&self, name: &str, mode: Open) -> io::Result<Arc<dyn Device>> {
        Ok(Arc::new(RealDevice::open(&self.path.join(name), name, mode)?))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            if let Some(name) = name.to_str()
                && name != "lock"
                && !entry.file_type()?.is_dir()
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn scratch(&self) -> io::Result<Arc<dyn Device>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(FILE_MODE);
        let file = match options.clone().custom_flags(OFlags::TMPFILE.bits() as i32).open(&self.path) {
            // A file system without unnamed files: the file has a name for a moment.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
                static NEXT: AtomicU64 = AtomicU64::new(0);
                let path = self.path.join(format!("scratch-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
                let file = options.create(true).truncate(true).open(&path)?;
                std::fs::remove_file(path)?;
                file
            }
            other => other?,
        };
        let (name, len) = ("scratch".to_owned(), AtomicU64::new(0));
        Ok(Arc::new(RealDevice { name, file, len, growing: Mutex::new(()) }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let stat = statvfs(&self.path)?;
        Ok(stat.f_bavail * stat.f_frsize)
    }
}

/// A file with direct I/O, or with buffered I/O where the file system refuses that (tmpfs before Linux 6.6, some network mounts).
struct RealDevice {
    name: String,
    file: File,
    len: AtomicU64,
    growing: Mutex<()>,
}

impl RealDevice {
    fn open(path: &Path, name: &str, mode: Open) -> io::Result<RealDevice> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(matches!(mode, Open::Create)).mode(FILE_MODE);
        let direct = options.clone().custom_flags(OFlags::DIRECT.bits() as i32).open(path);
        let file = match direct {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => options.open(path)?,
            other => other?,
        };
        let metadata = file.metadata()?;
        if metadata.mode() & 0o077 != 0 {
            // The file was made by an earlier version, or copied. The permissions of another user's file cannot be changed; it is used as it is.
            let _ = file.set_permissions(Permissions::from_mode(FILE_MODE));
        }
        let len = metadata.len();
        Ok(RealDevice { name: name.to_owned(), file, len: AtomicU64::new(len), growing: Mutex::new(()) })
    }

    /// Writes all of `buf` with `pwritev2` and `RWF_DSYNC`, so that it is durable on return (OS-1).
    fn write_dsync(&self, mut offset: u64, mut buf: &[u8]) -> io::Result<()> {
        while !buf.is_empty() {
            match pwritev2(&self.file, &[IoSlice::new(buf)], offset, ReadWriteFlags::DSYNC) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    buf = &buf[written..];
                    offset += written as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Raises the length to `end`.
    fn extend(&self, end: u64) {
        self.len.fetch_max(end, Ordering::AcqRel);
    }
}

impl Device for RealDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buf, offset)
    }

    fn write(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.file.write_all_at(buf, offset)?;
        self.extend(offset + buf.len() as u64);
        Ok(())
    }

    fn write_durable(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        match self.write_dsync(offset, buf) {
            // The file system lacks per-write flags.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                self.file.write_all_at(buf, offset)?;
                self.file.sync_data()?;
            }
            other => other?,
        }
        self.extend(offset + buf.len() as u64);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        let _growing = self.growing.lock().unwrap_or_else(|poison| poison.into_inner());
        let old = self.len();
        if len <= old {
            return Ok(());
        }
        match fallocate(&self.file, FallocateFlags::empty(), old, len - old) {
            Err(Errno::OPNOTSUPP) => self.file.set_len(len)?,
            other => other?,
        }
        self.file.sync_all()?;
        self.extend(len);
        Ok(())
    }

    fn prefill(&self, len: u64) -> io::Result<()> {
        const PIECE: usize = 1 << 20;
        let old = self.len();
        self.grow(len)?;
        let zeros = crate::Aligned::with_capacity(PIECE);
        let mut at = old / 4096 * 4096;
        while at < len {
            let piece = (PIECE as u64).min(len - at) as usize;
            self.file.write_all_at(&zeros.as_slice()[..piece], at)?;
            at += piece as u64;
        }
        self.file.sync_all()
    }

    fn read_many(&self, ops: &mut [(u64, &mut [u8])]) -> Vec<io::Result<()>> {
        if ops.len() > 1
            && let Some(results) = crate::uring::read_many(self.file.as_raw_fd(), ops)
        {
            return results
                .into_iter()
                .zip(ops.iter_mut())
                .map(|(done, (offset, buf))| match done {
                    // The read was short or interrupted: the plain call completes it or returns the error.
                    Ok(bytes) if bytes == buf.len() => Ok(()),
                    _ => self.file.read_exact_at(buf, *offset),
                })
                .collect();
        }
        ops.iter_mut().map(|(offset, buf)| self.file.read_exact_at(buf, *offset)).collect()
    }

    fn write_many(&self, ops: &[(u64, &[u8])]) -> io::Result<()> {
        if ops.len() > 1
            && let Some(results) = crate::uring::write_many(self.file.as_raw_fd(), ops)
        {
            for (done, (offset, buf)) in results.into_iter().zip(ops) {
                if !matches!(done, Ok(bytes) if bytes == buf.len()) {
                    self.file.write_all_at(buf, *offset)?;
                }
                self.extend(*offset + buf.len() as u64);
            }
            return Ok(());
        }
        ops.iter().try_for_each(|(offset, buf)| self.write(*offset, buf))
    }

    fn read_ring(&self, unit: usize, depth: usize) -> Option<ReadRing> {
        ReadRing::new(self.file.try_clone().ok()?, unit, depth).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Temporary {
            let path = std::env::temp_dir().join(format!("beluga-os-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Temporary(path)
        }

        fn mode(&self, name: &str) -> u32 {
            std::fs::metadata(self.0.join(name)).unwrap().mode() & 0o777
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_folder_and_its_files_belong_to_their_user_alone() {
        let at = Temporary::new("modes");
        let folder = RealFolder::open(&at.0, true).unwrap();
        folder.lock().unwrap();
        Folder::open(&*folder, "data", Open::Create).unwrap();
        assert_eq!((at.mode("."), at.mode("data"), at.mode("lock")), (0o700, 0o600, 0o600));
        std::fs::set_permissions(at.0.join("data"), Permissions::from_mode(0o644)).unwrap();
        Folder::open(&*folder, "data", Open::Existing).unwrap();
        assert_eq!(at.mode("data"), 0o600, "wider permissions are narrowed");
    }

    #[test]
    fn a_folder_is_locked_even_without_room_for_the_pid() {
        let at = Temporary::new("lock");
        std::fs::create_dir_all(&at.0).unwrap();
        // A device without any room takes the place of the file.
        std::os::unix::fs::symlink("/dev/full", at.0.join("lock")).unwrap();
        let folder = RealFolder::open(&at.0, false).unwrap();
        folder.lock().unwrap();
        let other = RealFolder::open(&at.0, false).unwrap();
        let refused = other.lock().unwrap_err();
        assert_eq!((refused.kind(), &*refused.to_string()), (io::ErrorKind::WouldBlock, "in use by another process"));
    }
}
