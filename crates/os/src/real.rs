//! Files of a real machine: O_DIRECT where the file system has it, io_uring for batches where the kernel lets us.
//!
//! A single read is a plain `pread`: one system call, cheaper than a ring. Batches are submitted together and waited for once.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Device, Folder, Open, ReadRing};

/// Permissions of every file in a data folder.
const FILE_MODE: u32 = 0o600;

const PID_BYTES_MAX: u64 = 20;

/// A data folder of the file system.
pub struct RealFolder {
    path: PathBuf,
    lock: Mutex<Option<File>>,
}

impl RealFolder {
    /// Opens a folder. `create` makes it, with its parents, for the user of this process alone (0700).
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

    /// Takes the folder for this process until the value is dropped. `Err(WouldBlock)` carries the holder's pid in its text, if it is known.
    pub fn lock(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let file = options.open(self.path.join("lock"))?;
        // SAFETY: flock on a descriptor that `file` keeps open.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let mut holder = String::new();
            // Whatever the file holds, a pid is short and made of digits.
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

/// Writes this process' id into a lock file, for a person who finds it taken. On a full disk the file may have no room even for that:
/// it is left empty then, because a stale pid would mislead.
fn note_holder(file: &File) {
    let pid = std::process::id().to_string();
    // In place and cut afterwards: a file that has its block already needs no new one.
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
        let file = match options.clone().custom_flags(libc::O_TMPFILE).open(&self.path) {
            // A file system that knows only files with names: it has one for a moment.
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
        let path = std::ffi::CString::new(self.path.as_os_str().as_encoded_bytes())?;
        // SAFETY: an all-zero statvfs is a valid value, and the path is a C string that outlives the call.
        let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        if unsafe { libc::statvfs(path.as_ptr(), &mut stat) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(stat.f_bavail * stat.f_frsize)
    }
}

/// A file with direct I/O, or buffered where the file system refuses that (tmpfs before Linux 6.6, some network mounts).
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
        let direct = options.clone().custom_flags(libc::O_DIRECT).open(path);
        let file = match direct {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => options.open(path)?,
            other => other?,
        };
        let metadata = file.metadata()?;
        if metadata.mode() & 0o077 != 0 {
            // Made by an earlier version, or copied. A file of another user cannot be changed, and is none the worse for it.
            let _ = file.set_permissions(Permissions::from_mode(FILE_MODE));
        }
        let len = metadata.len();
        Ok(RealDevice { name: name.to_owned(), file, len: AtomicU64::new(len), growing: Mutex::new(()) })
    }

    /// pwritev2 with a flag, complete or an error.
    fn write_with(&self, mut offset: u64, mut buf: &[u8], flags: i32) -> io::Result<()> {
        while !buf.is_empty() {
            let piece = libc::iovec { iov_base: buf.as_ptr().cast_mut().cast(), iov_len: buf.len() };
            // SAFETY: the vector describes `buf`, which outlives the call; the kernel only reads from it.
            let done = unsafe { libc::pwritev2(self.file.as_raw_fd(), &piece, 1, offset as libc::off_t, flags) };
            match done {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                1.. => {
                    buf = &buf[done as usize..];
                    offset += done as u64;
                }
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn wrote(&self, end: u64) {
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
        self.wrote(offset + buf.len() as u64);
        Ok(())
    }

    fn write_durable(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        match self.write_with(offset, buf, libc::RWF_DSYNC) {
            // A file system without per-write flags.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                self.file.write_all_at(buf, offset)?;
                self.file.sync_data()?;
            }
            other => other?,
        }
        self.wrote(offset + buf.len() as u64);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        let _alone = self.growing.lock().unwrap_or_else(|poison| poison.into_inner());
        let old = self.len();
        if len <= old {
            return Ok(());
        }
        // SAFETY: a plain call on a descriptor that `self.file` keeps open.
        let result =
            unsafe { libc::fallocate(self.file.as_raw_fd(), 0, old as libc::off_t, (len - old) as libc::off_t) };
        if result != 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EOPNOTSUPP) {
                return Err(error);
            }
            self.file.set_len(len)?;
        }
        self.file.sync_all()?;
        self.wrote(len);
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
                    // Short or interrupted: the plain call finishes it or names the error.
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
                self.wrote(*offset + buf.len() as u64);
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
    fn a_folder_and_its_files_are_their_users_alone() {
        let at = Temporary::new("modes");
        let folder = RealFolder::open(&at.0, true).unwrap();
        folder.lock().unwrap();
        Folder::open(&*folder, "data", Open::Create).unwrap();
        assert_eq!((at.mode("."), at.mode("data"), at.mode("lock")), (0o700, 0o600, 0o600));
        std::fs::set_permissions(at.0.join("data"), Permissions::from_mode(0o644)).unwrap();
        Folder::open(&*folder, "data", Open::Existing).unwrap();
        assert_eq!(at.mode("data"), 0o600, "permissions of an earlier version are narrowed");
    }

    #[test]
    fn a_lock_without_room_for_a_pid_is_a_lock() {
        let at = Temporary::new("lock");
        std::fs::create_dir_all(&at.0).unwrap();
        // A device that has room for nothing stands in for the file.
        std::os::unix::fs::symlink("/dev/full", at.0.join("lock")).unwrap();
        let folder = RealFolder::open(&at.0, false).unwrap();
        folder.lock().unwrap();
        let other = RealFolder::open(&at.0, false).unwrap();
        let refused = other.lock().unwrap_err();
        assert_eq!((refused.kind(), &*refused.to_string()), (io::ErrorKind::WouldBlock, "in use by another process"));
    }
}
