//! WAL segments: their format, and which of them the stream is in.
//!
//! ```text
//!   log-00000007:  [ header 4 KiB ][ chunk ][ chunk ] ...      chunk = header 64 bytes | piece of the stream | padding to 4 KiB
//! ```
//! A segment is created ahead of use; its header is written when the flusher switches to it. The storage of segments is behind `LogStore`.

use std::collections::VecDeque;
use std::sync::Arc;

use os::Device;

use crate::error::{Error, Result};
use crate::page::{Lsn, PAGE_BYTES};
use crate::wal::log_store::{LogStore, SegmentInfo};

pub const BLOCK: usize = PAGE_BYTES;
pub const CHUNK_HEADER: usize = 64;
const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"BLGSEGM1");
const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"BLCK");

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

/// The segments in order: those in use, of which the last is current, and those prepared ahead.
pub struct Segments {
    store: Arc<dyn LogStore>,
    database: u64,
    used: VecDeque<SegmentInfo>,
    /// Created and durable, but without their header yet.
    ready: VecDeque<(u64, Arc<dyn Device>)>,
}

impl Segments {
    /// `used` are the segments that recovery read; the store may reuse all others.
    pub fn new(store: Arc<dyn LogStore>, database: u64, used: Vec<SegmentInfo>) -> Result<Segments> {
        store.seal(&used)?;
        Ok(Segments { store, database, used: used.into(), ready: VecDeque::new() })
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

    /// Prepares segments for at least `bytes`, and first sets space aside: the next start needs it if the disk is full by then.
    pub fn prepare(&mut self, bytes: u64) -> Result<()> {
        self.store.reserve()?;
        while self.ready_bytes() < bytes {
            self.prepare_one()?;
        }
        Ok(())
    }

    fn prepare_one(&mut self) -> Result<()> {
        let number = self.next_number();
        let device = self.store.create(number)?;
        self.ready.push_back((number, device));
        Ok(())
    }

    /// Prepares a segment in the space set aside. Used when there is no other, for bytes that cannot be refused. Returns false if no space is set aside.
    fn prepare_reserved(&mut self) -> Result<bool> {
        let number = self.next_number();
        let Some(device) = self.store.create_reserved(number)? else { return Ok(false) };
        self.ready.push_back((number, device));
        Ok(true)
    }

    /// Switches to the first segment of a start, then sets space aside again, if there is room.
    pub fn switch_first(&mut self, start: Lsn) -> Result<Arc<dyn Device>> {
        let device = self.switch(start)?;
        match self.store.reserve() {
            Err(Error::DiskFull { .. }) => {}
            other => other?,
        }
        Ok(device)
    }

    /// Switches to the next segment; the stream continues in it at `start`.
    pub fn switch(&mut self, start: Lsn) -> Result<Arc<dyn Device>> {
        if self.ready.is_empty() {
            match self.prepare_one() {
                Err(full @ Error::DiskFull { .. }) => {
                    if !self.prepare_reserved()? {
                        return Err(full);
                    }
                }
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

    /// Releases the segments that end at or before `keep_from`.
    pub fn release(&mut self, keep_from: Lsn) -> Result<()> {
        let mut gone = Vec::new();
        while self.used.len() >= 2 && self.used[1].start <= keep_from {
            gone.push(self.used.pop_front().expect("two are there").number);
        }
        self.store.drop_segments(&gone, self.used.len())
    }

    /// Frees space that is kept only for later segments, since the disk is full. Returns true if there was any.
    pub fn trim_old_segments(&mut self) -> Result<bool> {
        self.store.trim()
    }

    /// Returns the segments in use, oldest first.
    pub fn used(&self) -> impl Iterator<Item = SegmentInfo> + '_ {
        self.used.iter().copied()
    }
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
}
