//! The page: 4 KiB with an id, seen by the code as 512 atomic words.
//!
//! Optimistic readers may read a page while its owner changes it, so no `&[u8]` into a frame is ever formed: every access is a relaxed load or store of one
//! word, and the values read count only after validation (PG-4). The byte layout is in docs/formats/page.md.

use stdx::sync::atomic::{AtomicU64, Ordering};

pub const PAGE_BYTES: usize = 4096;
pub const PAGE_WORDS: usize = PAGE_BYTES / 8;

/// Number of a page in the data file; its offset is `id * PAGE_BYTES`. Ids 0 and 1 are the control blocks.
pub type PageId = u64;
/// Position in the WAL, in bytes since the database was created. A record's LSN is the position of its end.
pub type Lsn = u64;
/// Id of a transaction that writes several records.
pub type TxnId = u64;

/// The id that no page has.
pub const NO_PAGE: PageId = u64::MAX;

/// Header words, the same in every page except the raw units of extents.
pub const WORD_KIND: usize = 0; // kind u8 | level u8 | flags u16 | boot u32
pub const WORD_ID: usize = 1;
pub const WORD_LSN: usize = 2;
pub const WORD_CHECKSUM: usize = 3;
pub const WORD_OWNER: usize = 4; // tree id u32 | owner's u32

/// Page kinds: the first byte of a page.
pub mod kind {
    pub const NONE: u8 = 0;
    pub const SPACE_MAP: u8 = 1;
    pub const TREE: u8 = 2;
}

pub(crate) type Words = [AtomicU64; PAGE_WORDS];

/// Word-wise view of a page in a frame. Values may be torn unless a latch is held or the read is validated.
#[derive(Clone, Copy)]
pub struct PageRef<'p> {
    pub(crate) words: &'p Words,
}

impl<'p> PageRef<'p> {
    /// Loads a word. An index out of range wraps, so that a garbage index read before validation stays harmless.
    #[inline(always)]
    pub fn load(self, word: usize) -> u64 {
        self.words[word & (PAGE_WORDS - 1)].load(Ordering::Relaxed)
    }

    /// Prefetches the cache line of a word.
    #[inline(always)]
    pub fn prefetch(self, word: usize) {
        stdx::prefetch(&self.words[word & (PAGE_WORDS - 1)]);
    }

    pub fn kind(self) -> u8 {
        self.load(WORD_KIND) as u8
    }

    pub fn id(self) -> PageId {
        self.load(WORD_ID)
    }

    pub fn lsn(self) -> Lsn {
        self.load(WORD_LSN)
    }

    /// Copies the whole page to `out`, little-endian. The caller holds a latch, or validates afterwards.
    #[inline]
    pub fn copy_out(self, out: &mut [u8]) {
        assert_eq!(out.len(), PAGE_BYTES);
        for (chunk, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(self.words) {
            *chunk = word.load(Ordering::Relaxed).to_le_bytes();
        }
    }
}

/// Overwrites the words of a page with little-endian bytes. The caller holds X on the frame.
pub(crate) fn copy_in(words: &Words, bytes: &[u8]) {
    assert_eq!(bytes.len(), PAGE_BYTES);
    for (word, chunk) in words.iter().zip(bytes.as_chunks::<8>().0) {
        word.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
    }
}

/// Computes the checksum word of a page image: crc32c over the page with this word taken as zero, plus a bit that marks a written page.
pub fn checksum(image: &[u8]) -> u64 {
    assert_eq!(image.len(), PAGE_BYTES);
    let at = WORD_CHECKSUM * 8;
    let crc = crc32c::crc32c(&image[..at]);
    let crc = crc32c::crc32c_append(crc, &[0; 8]);
    let crc = crc32c::crc32c_append(crc, &image[at + 8..]);
    u64::from(crc) | 1 << 32
}

/// Stores the checksum into an image that is about to be written.
pub fn seal(image: &mut [u8]) {
    let sum = checksum(image);
    image[WORD_CHECKSUM * 8..][..8].copy_from_slice(&sum.to_le_bytes());
}

/// Returns the range from the first to the last of these pages that is not all zero, in bytes; an empty one if there is none.
pub(crate) fn written(bytes: &[u8]) -> std::ops::Range<usize> {
    static ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];
    let is_written = |page: &[u8]| page != ZEROS;
    let Some(first) = bytes.chunks_exact(PAGE_BYTES).position(is_written) else { return 0..0 };
    let last = bytes.chunks_exact(PAGE_BYTES).rposition(is_written).unwrap_or(first);
    first * PAGE_BYTES..(last + 1) * PAGE_BYTES
}

/// Checks the checksum and the id of an image that was read as page `id`. `Err` says what is wrong.
pub fn verify(image: &[u8], id: PageId) -> Result<(), String> {
    let word = |at: usize| u64::from_le_bytes(image[at * 8..][..8].try_into().expect("eight bytes"));
    let (found, computed) = (word(WORD_CHECKSUM), checksum(image));
    if found != computed {
        return Err(format!("checksum {found:#x}, computed {computed:#x}"));
    }
    if word(WORD_ID) != id {
        return Err(format!("it says that it is page {}", word(WORD_ID)));
    }
    Ok(())
}

const _: () = assert!(PAGE_WORDS.is_power_of_two());
