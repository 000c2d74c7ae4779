//! The control block: database id, boot number and the checkpoint where recovery starts. Two copies, pages 0 and 1 of the data file, are written
//! alternately, so that one is always whole.

use os::{Aligned, Device};

use crate::error::{Error, Result};
use crate::page::{Lsn, PAGE_BYTES};

/// Format version of everything in the data folder. docs/formats/page.md lists what each version added.
pub const FORMAT: u64 = 3;
const MAGIC: u64 = u64::from_le_bytes(*b"BELUGADB");

/// The content of a control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Incremented by each write. The valid copy with the higher number counts.
    pub sequence: u64,
    /// Random id of the database. Its WAL chunks carry it.
    pub database: u64,
    /// Recovery reads the WAL from here.
    pub checkpoint: Lsn,
    /// Number of openings so far; also the epoch of the WAL's chunks.
    pub boot: u64,
    /// Pages may hold changes up to here, so recovery must not stop before it. The end of the backup in a restored folder, otherwise 0.
    pub consistent: Lsn,
}

impl Control {
    fn words(self) -> [u64; 8] {
        [MAGIC, FORMAT, PAGE_BYTES as u64, self.sequence, self.database, self.checkpoint, self.boot, self.consistent]
    }

    /// Writes the next copy. It is durable on return.
    pub fn write(&mut self, data: &dyn Device) -> Result<()> {
        self.sequence += 1;
        let mut block = Aligned::with_capacity(PAGE_BYTES);
        let bytes = &mut block.as_mut_slice()[..PAGE_BYTES];
        bytes.fill(0);
        for (at, word) in self.words().into_iter().enumerate() {
            bytes[at * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes[..64]);
        bytes[64..68].copy_from_slice(&crc.to_le_bytes());
        let offset = self.sequence % 2 * PAGE_BYTES as u64;
        data.write_durable(offset, bytes).map_err(|error| Error::io("writing the control block", error))
    }

    fn decode(bytes: &[u8]) -> Result<Option<Control>> {
        let word = |at: usize| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("eight bytes"));
        if word(0) != MAGIC || word(8) as u32 != crc32c::crc32c(&bytes[..64]) {
            return Ok(None);
        }
        if word(1) > FORMAT {
            return Err(Error::Format(format!(
                "the data folder has format {}, this Beluga reads formats up to {FORMAT}: open it with a newer version",
                word(1)
            )));
        }
        if word(2) != PAGE_BYTES as u64 {
            return Err(Error::Format(format!(
                "the data folder has pages of {} bytes, this Beluga {PAGE_BYTES}",
                word(2)
            )));
        }
        Ok(Some(Control {
            sequence: word(3),
            database: word(4),
            checkpoint: word(5),
            boot: word(6),
            consistent: word(7),
        }))
    }

    /// Reads the newer valid copy. `None` if neither was ever written; an error if both are damaged.
    pub fn read(data: &dyn Device) -> Result<Option<Control>> {
        if data.len() < 2 * PAGE_BYTES as u64 {
            return Ok(None);
        }
        let mut blocks = Aligned::with_capacity(2 * PAGE_BYTES);
        let bytes = &mut blocks.as_mut_slice()[..2 * PAGE_BYTES];
        data.read(0, bytes).map_err(|error| Error::io("reading the control blocks", error))?;
        let (first, second) = bytes.split_at(PAGE_BYTES);
        let found = [Control::decode(first)?, Control::decode(second)?];
        let newest = found.into_iter().flatten().max_by_key(|control| control.sequence);
        if newest.is_none() && bytes.iter().any(|byte| *byte != 0) {
            return Err(Error::Format(
                "both control blocks of the data file are damaged, or it is not Beluga's: restore a backup".into(),
            ));
        }
        Ok(newest)
    }
}
