//! The segments of a local folder: numbered files of one size, filled with zeros ahead of use, recycled after a checkpoint.
//!
//! A file gets its number and is made durable before it is needed; its header is written when the flusher switches to it. Until then it still has the
//! header of its former use, whose number does not match, and recovery ignores it (PG-13).
//!
//! Hard part: a full disk must leave room for writes that cannot be refused: the new segment of a start, undo, the records of a checkpoint. A small spare
//! file is kept for that, and becomes the next segment when no other can be made (PG-16).

use std::collections::VecDeque;
use std::sync::Arc;

use os::{Aligned, Device, Folder, Open};
use stdx::sync::Mutex;

use crate::error::{self, Error, Result};
use crate::wal::log_store::{LogStore, SegmentInfo};
use crate::wal::segment::{BLOCK, SegmentHeader};

/// The spare file, which becomes a segment when the disk has no room for a whole one, and its size.
const SPARE: &str = "log-spare";
const SPARE_BYTES: u64 = 1 << 20;
/// Files kept for the next segments even when the disk is full.
const OLD_MIN: usize = 2;

pub fn file_name(number: u64) -> String {
    format!("log-{number:08}")
}

pub fn file_number(name: &str) -> Option<u64> {
    name.strip_prefix("log-").filter(|digits| digits.len() >= 8)?.parse().ok()
}

/// Returns true for the name of a segment, or of the spare file.
pub fn is_log_file(name: &str) -> bool {
    name == SPARE || file_number(name).is_some()
}

/// Returns the segments of this database in the folder, by number.
pub fn segments(folder: &dyn Folder, database: u64) -> Result<Vec<SegmentInfo>> {
    let names = folder.list().map_err(|error| Error::io("listing the data folder", error))?;
    let mut found = Vec::new();
    for number in names.iter().filter_map(|name| file_number(name)) {
        found.extend(segment_in(open_segment(folder, number)?.as_ref(), number, database)?);
    }
    found.sort_by_key(|segment| segment.number);
    Ok(found)
}

/// Returns the segment in the file of this number, `None` if the file holds none of this database.
pub fn segment_in(device: &dyn Device, number: u64, database: u64) -> Result<Option<SegmentInfo>> {
    if device.len() < BLOCK as u64 {
        return Ok(None);
    }
    let mut block = Aligned::with_capacity(BLOCK);
    device
        .read(0, block.as_mut_slice())
        .map_err(|error| Error::io(format!("reading the header of '{}'", file_name(number)), error))?;
    let header = SegmentHeader::decode(block.as_slice());
    let header = header.filter(|header| header.number == number && header.database == database);
    Ok(header.map(|header| SegmentInfo { number, start: header.start }))
}

fn open_segment(folder: &dyn Folder, number: u64) -> Result<Arc<dyn Device>> {
    let name = file_name(number);
    folder.open(&name, Open::Existing).map_err(|error| Error::io(format!("opening '{name}'"), error))
}

/// The WAL files of a folder.
pub struct LogFiles {
    folder: Arc<dyn Folder>,
    database: u64,
    segment_bytes: u64,
    /// Files kept in all, in use and old. A checkpoint frees many at once; with fewer, new files would have to be zero-filled before the next one.
    files_max: usize,
    unused: Mutex<UnusedFiles>,
}

#[derive(Default)]
struct UnusedFiles {
    has_spare: bool,
    /// Files no longer needed, kept for reuse. The oldest comes first, so that backups can be renewed from the others.
    old: VecDeque<u64>,
}

impl LogFiles {
    /// Files no longer needed are kept while all together hold about `distance` bytes. Nothing is read or written yet.
    pub fn new(folder: Arc<dyn Folder>, database: u64, segment_bytes: u64, distance: u64) -> LogFiles {
        assert!(segment_bytes.is_multiple_of(BLOCK as u64) && segment_bytes >= 4 * BLOCK as u64);
        let files_max = (distance / segment_bytes) as usize + 3;
        LogFiles { folder, database, segment_bytes, files_max, unused: Mutex::default() }
    }

    fn remove_oldest(&self, unused: &mut UnusedFiles, most: usize) -> Result<bool> {
        let has_more = unused.old.len() > most;
        while unused.old.len() > most {
            let number = unused.old.pop_front().expect("there are more");
            self.folder
                .remove(&file_name(number))
                .map_err(|error| Error::io(format!("removing log segment {number}"), error))?;
        }
        Ok(has_more)
    }
}

impl LogStore for LogFiles {
    fn segments(&self) -> Result<Vec<SegmentInfo>> {
        segments(self.folder.as_ref(), self.database)
    }

    fn open(&self, number: u64) -> Result<Arc<dyn Device>> {
        open_segment(self.folder.as_ref(), number)
    }

    /// Every file beyond `used` may be reused from here on.
    fn seal(&self, used: &[SegmentInfo]) -> Result<()> {
        let names = self.folder.list().map_err(|error| Error::io("listing the data folder", error))?;
        let in_use = |number: &u64| used.iter().any(|segment| segment.number == *number);
        let mut old: Vec<u64> =
            names.iter().filter_map(|name| file_number(name)).filter(|number| !in_use(number)).collect();
        old.sort_unstable();
        let last = used.last().map_or(0, |segment| segment.number);
        for number in old.iter().filter(|number| **number > last) {
            erase_header(self.folder.as_ref(), *number)?;
        }
        let has_spare = names.iter().any(|name| name == SPARE) && is_usable_spare(self.folder.as_ref())?;
        *self.unused.lock() = UnusedFiles { has_spare, old: old.into() };
        Ok(())
    }

    /// Renames an old file, or creates one full of zeros.
    fn create(&self, number: u64) -> Result<Arc<dyn Device>> {
        let mut unused = self.unused.lock();
        let name = file_name(number);
        let failed = |error| Error::io(format!("preparing log segment '{name}'"), error);
        loop {
            let mut is_old = true;
            if let Some(at) = unused.old.iter().position(|old| *old == number) {
                // It has the right name from its former use; no other file may be renamed over it.
                unused.old.remove(at);
            } else if let Some(old) = unused.old.pop_front() {
                self.folder.rename(&file_name(old), &name).map_err(failed)?;
            } else {
                is_old = false;
            }
            let device = self.folder.open(&name, Open::Create).map_err(failed)?;
            match extend_to(&device, self.segment_bytes) {
                Ok(()) => {
                    self.folder.sync().map_err(failed)?;
                    return Ok(device);
                }
                Err(error) => {
                    // A half-filled file would take room that others could use, such as the next old file, which may be whole.
                    drop(device);
                    let _ = self.folder.remove(&name);
                    if !is_old || !error::is_full(&error) {
                        return Err(failed(error));
                    }
                }
            }
        }
    }

    /// Creates the spare file if there is none.
    fn reserve(&self) -> Result<()> {
        let mut unused = self.unused.lock();
        if unused.has_spare {
            return Ok(());
        }
        let failed = |error| Error::io(format!("preparing '{SPARE}'"), error);
        if let Some(old) = unused.old.pop_front() {
            self.folder.rename(&file_name(old), SPARE).map_err(failed)?;
        }
        let device = self.folder.open(SPARE, Open::Create).map_err(failed)?;
        if let Err(error) = extend_to(&device, SPARE_BYTES.min(self.segment_bytes)) {
            drop(device);
            let _ = self.folder.remove(SPARE);
            return Err(failed(error));
        }
        self.folder.sync().map_err(failed)?;
        unused.has_spare = true;
        Ok(())
    }

    /// Makes the spare file the next segment.
    fn create_reserved(&self, number: u64) -> Result<Option<Arc<dyn Device>>> {
        let mut unused = self.unused.lock();
        if !unused.has_spare {
            return Ok(None);
        }
        let name = file_name(number);
        let failed = |error| Error::io(format!("preparing log segment '{name}'"), error);
        self.folder.rename(SPARE, &name).map_err(failed)?;
        unused.has_spare = false;
        let device = self.folder.open(&name, Open::Existing).map_err(failed)?;
        self.folder.sync().map_err(failed)?;
        Ok(Some(device))
    }

    /// Keeps the files for reuse and deletes those beyond `files_max`.
    fn drop_segments(&self, numbers: &[u64], in_use: usize) -> Result<()> {
        let mut unused = self.unused.lock();
        unused.old.extend(numbers);
        let most = self.files_max.saturating_sub(in_use);
        self.remove_oldest(&mut unused, most.max(OLD_MIN)).map(drop)
    }

    fn trim(&self) -> Result<bool> {
        self.remove_oldest(&mut self.unused.lock(), OLD_MIN)
    }
}

/// Returns whether the spare file has content: a crash may have left it without any.
fn is_usable_spare(folder: &dyn Folder) -> Result<bool> {
    let device = folder.open(SPARE, Open::Existing).map_err(|error| Error::io(format!("opening '{SPARE}'"), error))?;
    Ok(device.len() >= 4 * BLOCK as u64)
}

/// Extends the file to at least `bytes`, with zeros.
fn extend_to(device: &Arc<dyn Device>, bytes: u64) -> std::io::Result<()> {
    if device.len() < bytes { device.prefill(bytes) } else { Ok(()) }
}

/// Erases the header of a segment beyond the end of the stream: prepared and never used, or cut off on purpose.
fn erase_header(folder: &dyn Folder, number: u64) -> Result<()> {
    let name = file_name(number);
    let failed = |error| Error::io(format!("voiding log segment '{name}'"), error);
    let device = folder.open(&name, Open::Existing).map_err(failed)?;
    if device.len() < BLOCK as u64 {
        return Ok(());
    }
    device.write_durable(0, Aligned::with_capacity(BLOCK).as_slice()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_and_parse() {
        assert_eq!(file_number(&file_name(123)), Some(123));
        assert_eq!(file_number("log-1"), None);
        assert_eq!(file_number("data"), None);
    }
}
