//! Spilling: temporary files without names, in a folder of their own beside the data.
//!
//! A file has no name from the moment it is open, so a crash leaves none behind, and it takes part in no WAL and no
//! checkpoint. Records are appended once and read in runs. QU-16: an operator spills only bytes that it has counted
//! with `Host::hold`, and releases them afterwards. A full disk ends the statement and nothing else.

pub(crate) mod bytes;
pub(crate) mod keys;
pub(crate) mod partition;
pub mod rows;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datum::fault::FileError;
use datum::{Fault, Result};
use stdx::wait::{self, Reason};

pub use bytes::{decode_row, encode_cells, encode_row, unpack_row};

use crate::exec::memory::Total;

static SPILL: Reason = Reason::new("spill");

/// The size of a write or read.
pub const PIECE: usize = 64 << 10;

/// The spill folder, and the number of bytes spilled.
#[derive(Debug)]
pub struct Spill {
    folder: PathBuf,
    /// The memory limit of one statement, and of all together (QU-15).
    pub memory_max: usize,
    /// The memory that statements hold.
    pub held: Total,
    next: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Spill {
    /// Removes files of an earlier server from the folder. A start needs no space: if the disk is full, the first
    /// statement that spills creates a missing folder.
    pub fn open(folder: &Path, memory_max: usize) -> io::Result<Spill> {
        match fs::create_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
            made => {
                made?;
                for entry in fs::read_dir(folder)? {
                    fs::remove_file(entry?.path())?;
                }
            }
        }
        let folder = folder.to_owned();
        let [next, files, bytes] = [0, 0, 0].map(AtomicU64::new);
        Ok(Spill { folder, memory_max, held: Total::default(), next, files, bytes })
    }

    pub fn file_count(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    pub fn byte_count(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn create(&self) -> Result<File> {
        let path = self.folder.join(format!("{}.spill", self.next.fetch_add(1, Ordering::Relaxed)));
        let make = || OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = make().or_else(|error| match error.kind() {
            // The folder could not be created when the server started.
            io::ErrorKind::NotFound => fs::create_dir_all(&self.folder).and_then(|()| make()),
            _ => Err(error),
        });
        let file = file.map_err(|error| self.failed(&error))?;
        fs::remove_file(&path).map_err(|error| self.failed(&error))?;
        self.files.fetch_add(1, Ordering::Relaxed);
        Ok(file)
    }

    fn failed(&self, error: &io::Error) -> Fault {
        let folder = self.folder.display().to_string();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Fault::DiskFull { folder: Some(folder.into()) }
            }
            _ => Fault::FileWrite(file_error(&folder, error)),
        }
    }
}

fn file_error(path: &str, error: &io::Error) -> Box<FileError> {
    let (os_error, cause) = (error.raw_os_error().unwrap_or(0), error.to_string().into());
    Box::new(FileError { path: path.into(), os_error, cause })
}

/// A file that is being written.
pub struct Writer {
    spill: Arc<Spill>,
    file: Arc<File>,
    buffer: Vec<u8>,
    written: u64,
}

/// A part of a file that is read once, from its beginning.
#[derive(Clone)]
pub struct Run {
    file: Arc<File>,
    from: u64,
    to: u64,
}

pub struct Reader {
    run: Run,
    buffer: Vec<u8>,
    at: usize,
}

impl Writer {
    pub fn new(spill: &Arc<Spill>) -> Result<Writer> {
        Ok(Writer { spill: spill.clone(), file: Arc::new(spill.create()?), buffer: Vec::new(), written: 0 })
    }

    /// Returns the offset of the next record.
    pub fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    pub fn put(&mut self, record: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(&(record.len() as u32).to_le_bytes());
        if record.len() >= PIECE {
            // A long record is written directly.
            self.end()?;
            return self.write(record);
        }
        self.buffer.extend_from_slice(record);
        if self.buffer.len() >= PIECE { self.end() } else { Ok(()) }
    }

    /// Appends a record that `record` builds.
    pub fn put_with(&mut self, record: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let from = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        record(&mut self.buffer);
        let length = self.buffer.len() - from - 4;
        self.buffer[from..from + 4].copy_from_slice(&(length as u32).to_le_bytes());
        if self.buffer.len() >= PIECE { self.end() } else { Ok(()) }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let _waiting = wait::announce(&SPILL);
        let done = self.file.write_all_at(bytes, self.written);
        done.map_err(|error| self.spill.failed(&error))?;
        self.spill.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Writes all appended records to the file.
    pub fn end(&mut self) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)?;
        buffer.clear();
        buffer.shrink_to(4 * PIECE);
        self.buffer = buffer;
        Ok(())
    }

    /// Returns the records since that position, to be read after `end`.
    pub fn since(&self, from: u64) -> Run {
        Run { file: self.file.clone(), from, to: self.position() }
    }

    /// Writes all records, and returns those since that position.
    pub fn run(&mut self, from: u64) -> Result<Run> {
        self.end()?;
        Ok(self.since(from))
    }
}

impl Run {
    pub fn read(&self) -> Reader {
        Reader { run: self.clone(), buffer: Vec::new(), at: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }
}

impl Reader {
    /// Returns the next record, or None at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        if !self.fill(4)? {
            return Ok(None);
        }
        let Some(length) = self.buffer[self.at..].first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if !self.fill(4 + length)? {
            return Err(Fault::corrupt("a record in a temporary file"));
        }
        let from = self.at + 4;
        self.at = from + length;
        Ok(Some(&self.buffer[from..self.at]))
    }

    /// Fills the buffer with this number of bytes. Returns false if the run ends before.
    fn fill(&mut self, bytes: usize) -> Result<bool> {
        let left = self.buffer.len() - self.at;
        if left >= bytes {
            return Ok(true);
        }
        let rest = self.run.to - self.run.from;
        if ((bytes - left) as u64) > rest {
            return Ok(false);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let more = ((bytes - left).max(PIECE) as u64).min(rest) as usize;
        self.buffer.resize(left + more, 0);
        let _waiting = wait::announce(&SPILL);
        let done = self.run.file.read_exact_at(&mut self.buffer[left..], self.run.from);
        done.map_err(|error| Fault::FileRead(file_error("spill", &error)))?;
        self.run.from += more as u64;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
