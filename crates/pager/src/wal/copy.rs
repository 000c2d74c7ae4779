//! The stream of one database written into segments of another one, with the other's id.
//!
//! Segments are cut anew: those of the target may have another size, and a segment is filled before the next one begins. Each piece keeps the time and the epoch at which it was
//! written, so that the copy can be opened as of any moment that the original could.

use std::sync::Arc;

use os::{Aligned, Device};

use crate::error::{Error, Result};
use crate::page::Lsn;
use crate::wal::log_store::LogStore;
use crate::wal::read::WalReader;
use crate::wal::segment::{BLOCK, CHUNK_HEADER, ChunkHeader, Segments};
use crate::wal::stream::CHUNK_MAX;

/// Bytes of one write.
const WRITE_BYTES: usize = 4 << 20;

/// The part of a stream that was copied.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopiedWal {
    pub end: Lsn,
    /// The greatest epoch in it.
    pub epoch: u64,
    pub bytes: u64,
}

/// Segments that are being filled.
struct SegmentWriter {
    segments: Segments,
    database: u64,
    device: Arc<dyn Device>,
    /// Where the chunks that wait in `staging` go.
    position: u64,
    staging: Aligned,
    staged: usize,
    bytes: u64,
}

impl SegmentWriter {
    fn flush(&mut self) -> Result<()> {
        let chunks = &self.staging.as_slice()[..self.staged];
        if !chunks.is_empty() {
            self.device.write_durable(self.position, chunks).map_err(|error| Error::io("writing the log", error))?;
        }
        self.position += self.staged as u64;
        self.bytes += self.staged as u64;
        self.staged = 0;
        Ok(())
    }

    /// Appends a piece of the stream, in several chunks if it does not fit into the segment.
    fn append(&mut self, mut header: ChunkHeader, mut bytes: &[u8]) -> Result<()> {
        header.database = self.database;
        while !bytes.is_empty() {
            let left = (self.device.len() - self.position) as usize - self.staged;
            if left < 2 * BLOCK {
                self.flush()?;
                self.device = self.segments.switch(header.start)?;
                self.position = BLOCK as u64;
                continue;
            }
            if self.staged + CHUNK_MAX + BLOCK > WRITE_BYTES {
                self.flush()?;
            }
            let len = bytes.len().min(left - CHUNK_HEADER).min(CHUNK_MAX);
            let disk_bytes = ChunkHeader::disk_bytes(len) as usize;
            let chunk = &mut self.staging.as_mut_slice()[self.staged..self.staged + disk_bytes];
            chunk[CHUNK_HEADER..CHUNK_HEADER + len].copy_from_slice(&bytes[..len]);
            chunk[CHUNK_HEADER + len..].fill(0);
            ChunkHeader { len: len as u32, ..header }.seal(chunk);
            self.staged += disk_bytes;
            header.start += len as u64;
            bytes = &bytes[len..];
        }
        Ok(())
    }
}

/// Writes the stream from `from` to its end, or to the end of the piece that has the position `to`, into segments of `store`, which holds none of this database. It is
/// durable on return. `reader` begins at `from`.
pub fn copy(
    reader: &mut WalReader,
    (from, to): (Lsn, Lsn),
    store: Arc<dyn LogStore>,
    database: u64,
) -> Result<CopiedWal> {
    let mut segments = Segments::new(store, database, Vec::new())?;
    let device = segments.switch(from)?;
    let (position, staging) = (BLOCK as u64, Aligned::with_capacity(WRITE_BYTES));
    let mut writer = SegmentWriter { segments, database, device, position, staging, staged: 0, bytes: 0 };
    let mut copied = CopiedWal { end: from, ..CopiedWal::default() };
    while copied.end < to
        && let Some((header, bytes)) = reader.next_chunk()?
    {
        writer.append(header, &bytes)?;
        copied.end = header.start + bytes.len() as u64;
        copied.epoch = copied.epoch.max(header.epoch);
    }
    writer.flush()?;
    copied.bytes = writer.bytes;
    Ok(copied)
}

const _: () = assert!(WRITE_BYTES >= 2 * (CHUNK_MAX + BLOCK));
