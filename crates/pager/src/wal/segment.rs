//! WAL segments: numbered files of one size, filled with zeros ahead of use, recycled after a checkpoint.
//!
//! ```text
//!   log-00000007:  [ header 4 KiB ][ chunk ][ chunk ] ...      chunk = header 64 bytes | piece of the stream | padding to 4 KiB
//! ```
//! A file gets its number and is made durable before it is needed; its header is written when the flusher switches to it. Until then it still has the
//! header of its former use, whose number does not match, and recovery ignores it (PG-13).
//!
//! Hard part: a full disk must leave room for writes that cannot be refused: the new segment of a start, undo, the records of a checkpoint. A small spare
//! file is kept for that, and becomes the next segment when no other can be made (PG-16).

use std::collections::VecDeque;
use std::sync::Arc;

use os::{Device, Folder, Open};

use crate::error::{Error, Result};
use crate::page::{Lsn, PAGE_BYTES};

pub const BLOCK: usize = PAGE_BYTES;
pub const CHUNK_HEADER: usize = 64;
const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"BLGSEGM1");
const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"BLCK");

/// The spare file, which becomes a segment when the disk has no room for a whole one, and its size.
pub const SPARE: &str = "log-spare";
const SPARE_BYTES: u64 = 1 << 20;
/// Files kept for the next segments even when the disk is full.
const OLD_MIN: usize = 2;

pub fn file_name(number: u64) -> String {
    format!("log-{number:08}")
}

pub fn file_number(name: &str) -> Option<u64> {
    name.strip_prefix("log-").filter(|digits| digits.len() >= 8)?.parse().ok()
}

/// The first block of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    pub number: u64,
    pub start: Lsn,
    pub database: u64,
}

impl SegmentHeader {
    pub fn encode(self) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        for (at, word) in [SEGMENT_MAGIC, self.number, self.start, self.database].into_iter().enumerate() {
            block[at * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c::crc32c(&block[..32]);
        block[32..36].copy_from_slice(&crc.to_le_bytes());
        block
    }

    pub fn decode(block: &[u8]) -> Option<SegmentHeader> {
        let word = |at: usize| u64::from_le_bytes(block[at * 8..][..8].try_into().expect("eight bytes"));
        let valid = word(0) == SEGMENT_MAGIC && word(4) as u32 == crc32c::crc32c(&block[..32]);
        valid.then(|| SegmentHeader { number: word(1), start: word(2), database: word(3) })
    }
}

/// The header of a chunk, which precedes each piece of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    pub epoch: u64,
    pub start: Lsn,
    pub len: u32,
    pub wall_ms: u64,
    pub database: u64,
}

impl ChunkHeader {
    /// Writes header and checksum into `chunk`, whose payload is already at `CHUNK_HEADER..CHUNK_HEADER + len`.
    pub fn seal(self, chunk: &mut [u8]) {
        chunk[..CHUNK_HEADER].fill(0);
        chunk[..4].copy_from_slice(&CHUNK_MAGIC.to_le_bytes());
        chunk[4..8].copy_from_slice(&self.len.to_le_bytes());
        for (at, word) in [self.epoch, self.start, self.wall_ms, self.database].into_iter().enumerate() {
            chunk[8 + at * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c::crc32c(&chunk[..CHUNK_HEADER + self.len as usize]);
        chunk[40..44].copy_from_slice(&crc.to_le_bytes());
    }

    /// Decodes a header without verifying the payload.
    pub fn peek(block: &[u8], database: u64) -> Option<ChunkHeader> {
        let half = |at: usize| u32::from_le_bytes(block[at..][..4].try_into().expect("four bytes"));
        let word = |at: usize| u64::from_le_bytes(block[at..][..8].try_into().expect("eight bytes"));
        let header =
            ChunkHeader { epoch: word(8), start: word(16), len: half(4), wall_ms: word(24), database: word(32) };
        (half(0) == CHUNK_MAGIC && header.database == database && header.len > 0).then_some(header)
    }

    /// Verifies the checksum of `chunk`, header and payload.
    pub fn verify(self, chunk: &[u8]) -> bool {
        let end = CHUNK_HEADER + self.len as usize;
        let Some(rest) = chunk.get(44..end) else { return false };
        let stored = u32::from_le_bytes(chunk[40..44].try_into().expect("four bytes"));
        let crc = crc32c::crc32c(&chunk[..40]);
        let crc = crc32c::crc32c_append(crc, &[0; 4]);
        crc32c::crc32c_append(crc, rest) == stored
    }

    pub fn disk_bytes(len: usize) -> u64 {
        (CHUNK_HEADER + len).next_multiple_of(BLOCK) as u64
    }
}

/// A segment that holds part of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    pub number: u64,
    pub start: Lsn,
}

/// The segments in order: those in use, of which the last is current, and those prepared ahead.
pub struct Segments {
    folder: Arc<dyn Folder>,
    database: u64,
    segment_bytes: u64,
    used: VecDeque<SegmentInfo>,
    /// Numbered, filled and durable, but without their header yet.
    ready: VecDeque<(u64, Arc<dyn Device>)>,
    has_spare: bool,
    /// Files no longer needed, kept for reuse. The oldest comes first, so that backups can be renewed from the others.
    old: VecDeque<u64>,
    /// Files kept in all, in use and old. A checkpoint frees many at once; with fewer, new files would have to be zero-filled before the next one.
    files_max: usize,
}

impl Segments {
    /// `used` are the segments that recovery read; every other WAL file of the folder may be reused. Files no longer needed are kept while all together
    /// hold about `distance` bytes.
    pub fn new(
        folder: Arc<dyn Folder>,
        database: u64,
        segment_bytes: u64,
        distance: u64,
        used: Vec<SegmentInfo>,
    ) -> Result<Segments> {
        assert!(segment_bytes.is_multiple_of(BLOCK as u64) && segment_bytes >= 4 * BLOCK as u64);
        let names = folder.list().map_err(|error| Error::io("listing the data folder", error))?;
        let in_use = |number: &u64| used.iter().any(|segment| segment.number == *number);
        let mut old: Vec<u64> =
            names.iter().filter_map(|name| file_number(name)).filter(|number| !in_use(number)).collect();
        old.sort_unstable();
        let last = used.last().map_or(0, |segment| segment.number);
        for number in old.iter().filter(|number| **number > last) {
            erase_header(folder.as_ref(), *number)?;
        }
        let files_max = (distance / segment_bytes) as usize + 3;
        let has_spare = names.iter().any(|name| name == SPARE) && is_usable_spare(folder.as_ref())?;
        let (used, ready, old) = (used.into(), VecDeque::new(), old.into());
        Ok(Segments { folder, database, segment_bytes, used, ready, has_spare, old, files_max })
    }

    /// Returns the number of the next segment to be prepared.
    fn next_number(&self) -> u64 {
        let last = self.ready.back().map(|(number, _)| *number).or(self.used.back().map(|last| last.number));
        last.map_or(1, |last| last + 1)
    }

    /// Returns the room in the prepared segments, in bytes.
    pub fn ready_bytes(&self) -> u64 {
        self.ready.iter().map(|(_, device)| device.len() - BLOCK as u64).sum()
    }

    /// Prepares segments for at least `bytes`, and first the spare file: the next start needs it if the disk is full by then.
    pub fn prepare(&mut self, bytes: u64) -> Result<()> {
        self.ensure_spare()?;
        while self.ready_bytes() < bytes {
            self.prepare_one()?;
        }
        Ok(())
    }

    /// Prepares one segment: renames an old file, or creates one full of zeros.
    fn prepare_one(&mut self) -> Result<()> {
        let number = self.next_number();
        let name = file_name(number);
        let failed = |error| Error::io(format!("preparing log segment '{name}'"), error);
        loop {
            let mut is_old = true;
            if let Some(at) = self.old.iter().position(|old| *old == number) {
                // It has the right name from its former use; no other file may be renamed over it.
                self.old.remove(at);
            } else if let Some(old) = self.old.pop_front() {
                self.folder.rename(&file_name(old), &name).map_err(failed)?;
            } else {
                is_old = false;
            }
            let device = self.folder.open(&name, Open::Create).map_err(failed)?;
            match extend_to(&device, self.segment_bytes) {
                Ok(()) => {
                    self.folder.sync().map_err(failed)?;
                    self.ready.push_back((number, device));
                    return Ok(());
                }
                Err(error) => {
                    // A half-filled file would take room that others could use, such as the next old file, which may be whole.
                    drop(device);
                    let _ = self.folder.remove(&name);
                    if !is_old || !crate::error::is_full(&error) {
                        return Err(failed(error));
                    }
                }
            }
        }
    }

    /// Creates the spare file if there is none.
    fn ensure_spare(&mut self) -> Result<()> {
        if self.has_spare {
            return Ok(());
        }
        let failed = |error| Error::io(format!("preparing '{SPARE}'"), error);
        if let Some(old) = self.old.pop_front() {
            self.folder.rename(&file_name(old), SPARE).map_err(failed)?;
        }
        let device = self.folder.open(SPARE, Open::Create).map_err(failed)?;
        if let Err(error) = extend_to(&device, SPARE_BYTES.min(self.segment_bytes)) {
            drop(device);
            let _ = self.folder.remove(SPARE);
            return Err(failed(error));
        }
        self.folder.sync().map_err(failed)?;
        self.has_spare = true;
        Ok(())
    }

    /// Makes the spare file the next segment. Used when there is no other, for bytes that cannot be refused.
    fn prepare_from_spare(&mut self) -> Result<()> {
        let number = self.next_number();
        let name = file_name(number);
        let failed = |error| Error::io(format!("preparing log segment '{name}'"), error);
        self.folder.rename(SPARE, &name).map_err(failed)?;
        self.has_spare = false;
        let device = self.folder.open(&name, Open::Existing).map_err(failed)?;
        self.folder.sync().map_err(failed)?;
        self.ready.push_back((number, device));
        Ok(())
    }

    /// Switches to the first segment of a start, then replaces the spare file, if there is room.
    pub fn switch_first(&mut self, start: Lsn) -> Result<Arc<dyn Device>> {
        let device = self.switch(start)?;
        match self.ensure_spare() {
            Err(Error::DiskFull { .. }) => {}
            other => other?,
        }
        Ok(device)
    }

    /// Switches to the next segment; the stream continues in it at `start`.
    pub fn switch(&mut self, start: Lsn) -> Result<Arc<dyn Device>> {
        if self.ready.is_empty() {
            match self.prepare_one() {
                Err(Error::DiskFull { .. }) if self.has_spare => self.prepare_from_spare()?,
                other => other?,
            }
        }
        let (number, device) = self.ready.front().expect("just prepared").clone();
        let header = SegmentHeader { number, start, database: self.database };
        let mut block = os::Aligned::with_capacity(BLOCK);
        block.as_mut_slice().copy_from_slice(&header.encode());
        device
            .write_durable(0, block.as_slice())
            .map_err(|error| Error::io(format!("writing the header of log segment {number}"), error))?;
        self.ready.pop_front();
        self.used.push_back(SegmentInfo { number, start });
        Ok(device)
    }

    /// Releases the segments that end at or before `keep_from`: keeps them for reuse and deletes those beyond `files_max`.
    pub fn release(&mut self, keep_from: Lsn) -> Result<()> {
        while self.used.len() >= 2 && self.used[1].start <= keep_from {
            let gone = self.used.pop_front().expect("two are there");
            self.old.push_back(gone.number);
        }
        let most = self.files_max.saturating_sub(self.used.len());
        self.trim(most.max(OLD_MIN)).map(drop)
    }

    /// Deletes old files that are kept only for reuse, since the disk is full. Returns true if there were any.
    pub fn trim_old_segments(&mut self) -> Result<bool> {
        self.trim(OLD_MIN)
    }

    fn trim(&mut self, most: usize) -> Result<bool> {
        let has_more = self.old.len() > most;
        while self.old.len() > most {
            let number = self.old.pop_front().expect("there are more");
            self.folder
                .remove(&file_name(number))
                .map_err(|error| Error::io(format!("removing log segment {number}"), error))?;
        }
        Ok(has_more)
    }

    /// Returns the segments in use, oldest first.
    pub fn used(&self) -> impl Iterator<Item = SegmentInfo> + '_ {
        self.used.iter().copied()
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
    device.write_durable(0, os::Aligned::with_capacity(BLOCK).as_slice()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_recognised_only_whole_and_in_its_own_database() {
        let header = ChunkHeader { epoch: 3, start: 8192, len: 100, wall_ms: 5, database: 42 };
        let mut chunk = vec![7; BLOCK];
        header.seal(&mut chunk);
        assert_eq!(ChunkHeader::peek(&chunk, 42), Some(header));
        assert!(header.verify(&chunk));
        assert_eq!(ChunkHeader::peek(&chunk, 43), None);
        for at in 0..CHUNK_HEADER + 100 {
            let mut damaged = chunk.clone();
            damaged[at] ^= 0x10;
            let still = ChunkHeader::peek(&damaged, 42).is_some_and(|header| header.verify(&damaged));
            assert!(!still, "byte {at}");
        }
    }

    #[test]
    fn a_segment_header_is_recognised() {
        let header = SegmentHeader { number: 7, start: 4096, database: 9 };
        let mut block = header.encode();
        assert_eq!(SegmentHeader::decode(&block), Some(header));
        block[9] ^= 1;
        assert_eq!(SegmentHeader::decode(&block), None);
    }

    #[test]
    fn names_sort_and_parse() {
        assert_eq!(file_number(&file_name(123)), Some(123));
        assert_eq!(file_number("log-1"), None);
        assert_eq!(file_number("data"), None);
    }
}
