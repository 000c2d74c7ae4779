//! The double-write file, which repairs torn pages: a batch of pages is made durable here before it is written in place.
//!
//! ```text
//!   [ header 4 KiB: magic, count, page ids, checksum ][ page ][ page ] ... up to 480
//! ```
//! The file holds one batch and is overwritten only after the data file has been synced, so a torn page is always in the last batch. If the batch itself is
//! torn, none of its pages has been written in place yet. A page of the batch may be freed and reused for a value. Before that raw unit is written, the
//! batch is voided, so that a repair cannot overwrite the unit with the old page (PG-7).

use std::sync::Arc;

use os::{Aligned, Device, Folder, Open};

use crate::error::{Error, Result};
use crate::files::DOUBLE_WRITE_FILE;
use crate::page::{self, PAGE_BYTES, PageId};

/// Pages of a batch: nearly as many as one block of page ids holds, since a batch costs two syncs however large it is.
pub const PAGES_MAX: usize = 480;
/// Bytes of one write call.
const PIECE: usize = 128 << 10;
const MAGIC: u64 = u64::from_le_bytes(*b"BLGDBLW1");

/// The double-write file of one database.
pub struct DoubleWrite {
    device: Arc<dyn Device>,
    database: u64,
    /// The pages that the batch in the file may contain.
    last: Vec<PageId>,
}

impl DoubleWrite {
    /// Opens the double-write file, or creates it at its full size.
    pub fn open_device(folder: &dyn Folder) -> Result<Arc<dyn Device>> {
        let name = DOUBLE_WRITE_FILE;
        let device = folder.open(name, Open::Create).map_err(|error| Error::io(format!("opening '{name}'"), error))?;
        let bytes = ((1 + PAGES_MAX) * PAGE_BYTES) as u64;
        if device.len() < bytes {
            device.prefill(bytes).map_err(|error| Error::io(format!("filling '{name}'"), error))?;
        }
        Ok(device)
    }

    pub fn new(device: Arc<dyn Device>, database: u64) -> DoubleWrite {
        DoubleWrite { device, database, last: Vec::new() }
    }

    /// Writes a batch. The first page of `buffer` is free for the header; the sealed pages of `pids` follow. `raw` are the units about to be written
    /// without a copy here.
    pub fn write(&mut self, buffer: &mut [u8], pids: &[PageId], mut raw: impl Iterator<Item = PageId>) -> Result<()> {
        if pids.is_empty() && !raw.any(|pid| self.last.contains(&pid)) {
            return Ok(());
        }
        assert!(pids.len() <= PAGES_MAX);
        let header = &mut buffer[..PAGE_BYTES];
        header.fill(0);
        let words = [MAGIC, self.database, pids.len() as u64];
        for (at, word) in words.iter().chain(pids).enumerate() {
            header[16 + at * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c::crc32c(&header[8..]);
        header[..4].copy_from_slice(&crc.to_le_bytes());
        // If the write fails, the file may hold either batch.
        self.last.extend(pids);
        let batch = &buffer[..(1 + pids.len()) * PAGE_BYTES];
        self.write_durable(batch).map_err(|error| Error::io("writing the double-write file", error))?;
        self.last = pids.to_vec();
        Ok(())
    }

    /// Writes in pieces, so that a concurrent WAL write queues behind one piece and not behind the whole batch.
    fn write_durable(&self, batch: &[u8]) -> std::io::Result<()> {
        if batch.len() <= PIECE {
            return self.device.write_durable(0, batch);
        }
        for (nth, piece) in batch.chunks(PIECE).enumerate() {
            self.device.write((nth * PIECE) as u64, piece)?;
        }
        self.device.sync()
    }

    /// Voids the batch.
    pub fn clear(&mut self) -> Result<()> {
        self.last = vec![0];
        self.write(Aligned::with_capacity(PAGE_BYTES).as_mut_slice(), &[], std::iter::once(0))
    }

    /// Restores damaged pages of `data` from the last batch. Returns the ids of the repaired pages.
    pub fn repair(&self, data: &dyn Device) -> Result<Vec<PageId>> {
        let failed = |error| Error::io("reading the double-write file", error);
        let mut header = Aligned::with_capacity(PAGE_BYTES);
        self.device.read(0, header.as_mut_slice()).map_err(failed)?;
        let mut repaired = Vec::new();
        for (at, pid) in self.batch(header.as_slice()).into_iter().enumerate() {
            let mut copy = Aligned::with_capacity(PAGE_BYTES);
            self.device.read((1 + at as u64) * PAGE_BYTES as u64, copy.as_mut_slice()).map_err(failed)?;
            if page::verify(copy.as_slice(), pid).is_err() || (pid + 1) * PAGE_BYTES as u64 > data.len() {
                continue;
            }
            let mut home = Aligned::with_capacity(PAGE_BYTES);
            let readable = data.read(pid * PAGE_BYTES as u64, home.as_mut_slice()).is_ok();
            if !readable || page::verify(home.as_slice(), pid).is_err() {
                data.write_durable(pid * PAGE_BYTES as u64, copy.as_slice())
                    .map_err(|error| Error::io(format!("repairing page {pid}"), error))?;
                repaired.push(pid);
            }
        }
        Ok(repaired)
    }

    fn batch(&self, header: &[u8]) -> Vec<PageId> {
        let word = |at: usize| u64::from_le_bytes(header[16 + at * 8..][..8].try_into().expect("eight bytes"));
        let crc = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
        let count = word(2) as usize;
        let ours = word(0) == MAGIC && word(1) == self.database && crc32c::crc32c(&header[8..]) == crc;
        if !ours || count > PAGES_MAX {
            return Vec::new();
        }
        (0..count).map(|at| word(3 + at)).collect()
    }
}

const _: () = assert!(16 + (3 + PAGES_MAX) * 8 <= PAGE_BYTES);
