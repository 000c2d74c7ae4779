//! The space map: layout of the map pages, and the bitmap in memory.
//!
//! ```text
//!   0 1        control blocks
//!   2          map of group 0: a header and 32,256 bits, one for each page of the group (bit 0 is the map itself)
//!   3..=10     well-known pages, allocated when the database is created: roots that must be found without a pointer
//!   2+32256    map of group 1 ...
//! ```
//! Map pages are pinned in the buffer pool. They are latched last and in ascending order, inside `Mtr::commit`.

use stdx::sync::Mutex;
use stdx::sync::atomic::AtomicBool;

use crate::guard::Exclusive;
use crate::page::{NO_PAGE, PAGE_WORDS, PageId};
use crate::wal::record::Record;

/// The first page that is not a control block.
pub const FIRST_PAGE: PageId = 2;
pub(crate) const HEADER_WORDS: usize = 8;
/// Pages of a group, the map page included.
pub const GROUP_PAGES: u64 = ((PAGE_WORDS - HEADER_WORDS) * 64) as u64;
/// Number of pages with fixed ids, for roots.
pub const WELL_KNOWN: u64 = 8;
/// Smallest size of the data file: control blocks, a map, the well-known pages and some room.
pub const FIRST_BYTES: u64 = 1 << 20;
pub(crate) const GROW_BYTES_MAX: u64 = 64 << 20;

pub(crate) fn group_of(pid: PageId) -> u64 {
    (pid - FIRST_PAGE) / GROUP_PAGES
}

pub(crate) fn map_page(group: u64) -> PageId {
    FIRST_PAGE + group * GROUP_PAGES
}

/// A run of pages of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: PageId,
    pub pages: u32,
}

/// The bitmap in memory: allocated and reserved pages, and how many of the free ones are reserved for undo.
#[derive(Default)]
pub(crate) struct SpaceBitmap {
    /// Bit i: page FIRST_PAGE + i is allocated or reserved.
    pub(crate) words: Vec<u64>,
    pub(crate) pages: u64,
    pub(crate) free: u64,
    /// Free pages that are reserved for undo (PG-21).
    pub(crate) undo_reserve: u64,
    /// While a page snapshot exists: bit i, page FIRST_PAGE + i was freed meanwhile and counts as used until the snapshot ends (PG-27).
    pub(crate) held: Option<Vec<u64>>,
    pub(crate) page_hint: u64,
    pub(crate) run_hint: u64,
}

impl SpaceBitmap {
    pub(crate) fn is_used(&self, bit: u64) -> bool {
        self.words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    pub(crate) fn set(&mut self, bit: u64, used: bool) {
        assert_ne!(
            self.is_used(bit),
            used,
            "page {} {}",
            bit + FIRST_PAGE,
            if used { "allocated twice" } else { "freed twice" }
        );
        self.words[(bit / 64) as usize] ^= 1 << (bit % 64);
        if used { self.free -= 1 } else { self.free += 1 }
    }

    /// Keeps freed pages from being allocated until `release_held`. Returns false if nothing is held back now.
    pub(crate) fn hold_back(&mut self, from: u64, to: u64) -> bool {
        let Some(held) = &mut self.held else { return false };
        held.resize(self.words.len(), 0);
        for bit in from..to {
            let (word, mask) = ((bit / 64) as usize, 1 << (bit % 64));
            assert!(self.words[word] & mask != 0, "page {} freed twice", bit + FIRST_PAGE);
            assert!(held[word] & mask == 0, "page {} freed twice", bit + FIRST_PAGE);
            held[word] |= mask;
        }
        true
    }

    /// Frees the pages that were held back, and holds none back from here on.
    pub(crate) fn release_held(&mut self) {
        for (at, held) in self.held.take().into_iter().flatten().enumerate().filter(|(_, held)| *held != 0) {
            debug_assert!(self.words[at] & held == held);
            self.words[at] &= !held;
            self.free += u64::from(held.count_ones());
            self.page_hint = self.page_hint.min(at as u64 * 64);
        }
    }

    /// Returns the first run of `count` free pages that starts in `from..to` and lies in one group.
    fn search(&self, from: u64, to: u64, count: u64) -> Option<u64> {
        let mut bit = from;
        while bit < to && bit + count <= self.pages {
            if bit.is_multiple_of(64) && self.words[(bit / 64) as usize] == u64::MAX {
                bit += 64;
                continue;
            }
            if bit % GROUP_PAGES + count > GROUP_PAGES {
                bit = bit.next_multiple_of(GROUP_PAGES);
                continue;
            }
            match (bit..bit + count).rev().find(|bit| self.is_used(*bit)) {
                None => return Some(bit),
                Some(obstacle) => bit = obstacle + 1,
            }
        }
        None
    }

    pub(crate) fn take(&mut self, count: u64, near: PageId) -> Option<u64> {
        let near = if near == NO_PAGE { None } else { Some(near - FIRST_PAGE + 1) };
        let hint = if count == 1 { self.page_hint } else { self.run_hint };
        let found = near
            .and_then(|near| self.search(near, (near + 256).min(self.pages), count))
            .or_else(|| self.search(hint, self.pages, count))
            .or_else(|| self.search(0, hint, count))?;
        for bit in found..found + count {
            self.set(bit, true);
        }
        if count == 1 {
            self.page_hint = found + 1
        } else {
            self.run_hint = found + count
        }
        Some(found)
    }
}

/// The state of allocation.
#[derive(Default)]
pub(crate) struct Space {
    pub(crate) bits: Mutex<SpaceBitmap>,
    /// Held while growing the file: one thread at a time.
    pub(crate) growing: Mutex<()>,
    /// The maps have been read or created. Until then the bits mean nothing and the cleaner must not grow the file.
    pub(crate) is_open: AtomicBool,
}

/// Changes the bits of a run in its latched map page.
pub(crate) fn mark(map: &Exclusive<'_>, run: Run, used: bool) {
    let base = map.pid();
    for pid in run.first..run.first + u64::from(run.pages) {
        let bit = pid - base;
        let word = HEADER_WORDS + (bit / 64) as usize;
        let old = map.page().load(word);
        let mask = 1 << (bit % 64);
        map.store(word, if used { old | mask } else { old & !mask });
    }
}

/// Encodes the body of a space record.
pub(crate) fn encode(run: Run) -> [u8; 16] {
    let mut body = [0; 16];
    body[..8].copy_from_slice(&run.first.to_le_bytes());
    body[8..].copy_from_slice(&u64::from(run.pages).to_le_bytes());
    body
}

/// Decodes the run that a space record names.
pub fn decode(record: &Record<'_>) -> Option<Run> {
    let body: &[u8; 16] = record.body.try_into().ok()?;
    let first = u64::from_le_bytes(body[..8].try_into().expect("eight bytes"));
    let pages = u64::from_le_bytes(body[8..].try_into().expect("eight bytes"));
    Some(Run { first, pages: u32::try_from(pages).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(pages: u64) -> SpaceBitmap {
        SpaceBitmap { words: vec![0; pages.div_ceil(64) as usize], pages, free: pages, ..SpaceBitmap::default() }
    }

    #[test]
    fn runs_are_contiguous_disjoint_and_stay_in_a_group() {
        let mut bits = bits(GROUP_PAGES * 2);
        let mut taken = vec![false; GROUP_PAGES as usize * 2];
        for round in 0.. {
            let count = [1, 7, 64, 5][round % 4];
            let Some(first) = bits.take(count, NO_PAGE) else { break };
            assert_eq!(first / GROUP_PAGES, (first + count - 1) / GROUP_PAGES);
            for bit in first..first + count {
                assert!(!std::mem::replace(&mut taken[bit as usize], true));
            }
        }
        assert!(bits.free < 64 * 4);
    }

    #[test]
    fn a_returned_run_is_found_again() {
        let mut bits = bits(1000);
        let all: Vec<u64> = std::iter::from_fn(|| bits.take(4, NO_PAGE)).collect();
        assert_eq!(all.len(), 250);
        for bit in 500..504 {
            bits.set(bit, false);
        }
        assert_eq!(bits.take(4, NO_PAGE), Some(500));
        assert_eq!(bits.take(1, NO_PAGE), None);
    }
}
