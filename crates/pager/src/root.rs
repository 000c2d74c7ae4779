//! The root of a database: its id, the checkpoint and the boot number, replaced as a whole.
//!
//! The boot number is the epoch of everything that an opening writes. The opening claims the database by replacing boot number n by n + 1, and every later
//! replacement names the number that the writer believes to be in force. So storage that several openings reach can refuse all but the newest one
//! (docs/decisions/0037-three-seams-to-shared-storage.md).

use crate::error::{Error, Result};
use crate::page::{Lsn, PAGE_BYTES};

/// Format version of everything in a database. docs/formats/page.md lists what each version added.
pub const FORMAT: u64 = 3;
const WORDS: usize = 8;

/// The content of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootRecord {
    /// Random id of the database. Its WAL chunks carry it.
    pub database: u64,
    /// Recovery reads the WAL from here.
    pub checkpoint: Lsn,
    /// Number of openings so far; also the epoch of the WAL's chunks.
    pub boot: u64,
    /// Pages may hold changes up to here, so recovery must not stop before it. The end of the backup in a restored folder, otherwise 0.
    pub consistent: Lsn,
    /// A copy into this database has begun and not ended, so pages or WAL are missing (PG-36).
    pub is_incomplete: bool,
}

impl RootRecord {
    /// Refuses a database that holds a part of a copy.
    pub fn check_complete(&self) -> Result<()> {
        if !self.is_incomplete {
            return Ok(());
        }
        Err(Error::Format(
            "a copy, backup or restore into it was interrupted, so it holds a part of a database: run that command again, with --overwrite for copy and restore".into(),
        ))
    }

    /// Bytes of a root with its checksum.
    pub(crate) const BYTES: usize = WORDS * 8 + 8;

    /// Encodes the root with the number of its writing, as words in little-endian order, and their checksum.
    pub(crate) fn encode(self, kind: &RootKind, sequence: u64) -> [u8; RootRecord::BYTES] {
        let RootRecord { database, checkpoint, boot, consistent, is_incomplete } = self;
        let magic = if is_incomplete { kind.incomplete } else { kind.complete };
        let words: [&[u8; 8]; WORDS] = [
            magic,
            &FORMAT.to_le_bytes(),
            &(PAGE_BYTES as u64).to_le_bytes(),
            &sequence.to_le_bytes(),
            &database.to_le_bytes(),
            &checkpoint.to_le_bytes(),
            &boot.to_le_bytes(),
            &consistent.to_le_bytes(),
        ];
        let mut bytes = [0; RootRecord::BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(word);
        }
        let crc = u64::from(crc32c::crc32c(&bytes[..WORDS * 8]));
        bytes[WORDS * 8..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Returns the number of the writing and the root; `None` for bytes that are no whole root of this kind.
    ///
    /// # Errors
    ///
    /// `Format` for a root of a newer version, or of pages of another size.
    pub(crate) fn decode(kind: &RootKind, bytes: &[u8; RootRecord::BYTES]) -> Result<Option<(u64, RootRecord)>> {
        let word = |at: usize| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("eight bytes"));
        let magic = &bytes[..8];
        if ![kind.complete, kind.incomplete].map(|known| &known[..]).contains(&magic)
            || word(WORDS) != u64::from(crc32c::crc32c(&bytes[..WORDS * 8]))
        {
            return Ok(None);
        }
        if word(1) > FORMAT {
            return Err(Error::Format(format!(
                "{} has format {}, this Beluga reads formats up to {FORMAT}: open it with a newer version",
                kind.of,
                word(1)
            )));
        }
        if word(2) != PAGE_BYTES as u64 {
            return Err(Error::Format(format!("{} has pages of {} bytes, this Beluga {PAGE_BYTES}", kind.of, word(2))));
        }
        let root = RootRecord {
            database: word(4),
            checkpoint: word(5),
            boot: word(6),
            consistent: word(7),
            is_incomplete: magic == kind.incomplete,
        };
        Ok(Some((word(3), root)))
    }
}

/// How the roots of one kind of storage are told from other bytes.
pub(crate) struct RootKind {
    /// The kind of storage, as errors name it.
    pub of: &'static str,
    pub complete: &'static [u8; 8],
    /// Instead of `complete` until a copy into the database is complete. Versions that do not know it take the root for damaged.
    pub incomplete: &'static [u8; 8],
}

/// Where the root lies.
pub trait Root: Send + Sync {
    /// Returns the root; `None` if there was never one.
    fn get(&self) -> Result<Option<RootRecord>>;
    /// Replaces the root that was read or written last, whose boot number is `boot` (0 if there is none). The new one is durable on return; after an error either is in force.
    fn compare_and_set(&self, boot: u64, next: RootRecord) -> Result<()>;
}
