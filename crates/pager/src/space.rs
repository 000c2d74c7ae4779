//! Which pages are in use.
//!
//! ```text
//!   0 1        control blocks
//!   2          map of group 0: a header and 32,256 bits, one for each page of the group (bit 0 is the map itself)
//!   3..=10     well-known pages, taken at birth: roots that must be found without a pointer
//!   2+32256    map of group 1 ...
//! ```
//! The truth for allocation is a bitmap in memory that also knows reservations not yet logged; the map pages follow in the mini-transaction that makes
//! the allocation real. So a reservation that a crash or an error cuts short leaks nothing (S1), and a freed page is reused only after the record
//! that frees it is in the log (S2). Map pages are latched last and in ascending order, inside `Mtr::commit`.

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::guard::Exclusive;
use crate::page::{NO_PAGE, PAGE_BYTES, PAGE_WORDS, PageId, kind};
use crate::pager::Pager;
use crate::undo_reserve;
use crate::wal::flush::Log;
use crate::wal::record::Record;

/// The first page that is not a control block.
pub const FIRST_PAGE: PageId = 2;
const HEADER_WORDS: usize = 8;
/// Pages of a group, the map page included.
pub const GROUP_PAGES: u64 = ((PAGE_WORDS - HEADER_WORDS) * 64) as u64;
/// Pages with fixed ids, for roots.
pub const WELL_KNOWN: u64 = 8;
/// Smallest file: control blocks, a map, the well-known pages and some room.
pub const FIRST_BYTES: u64 = 1 << 20;
const GROW_BYTES_MAX: u64 = 64 << 20;

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

#[derive(Default)]
struct Bits {
    /// Bit i: page FIRST_PAGE + i is in use or reserved.
    words: Vec<u64>,
    pages: u64,
    free: u64,
    /// So many of the free ones are kept for undo (S3).
    aside: u64,
    page_hint: u64,
    run_hint: u64,
}

impl Bits {
    fn is_used(&self, bit: u64) -> bool {
        self.words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    fn set(&mut self, bit: u64, used: bool) {
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

    /// The first run of `count` free pages that starts in `from..to` and stays in one group.
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

    fn take(&mut self, count: u64, near: PageId) -> Option<u64> {
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

#[derive(Default)]
pub(crate) struct Space {
    bits: Mutex<Bits>,
    /// Only one thread grows the file.
    growing: Mutex<()>,
    /// The maps have been read or made. Until then the bits say nothing and the cleaner must not grow the file.
    is_open: AtomicBool,
}

impl Pager {
    /// A page whose id is known without a pointer; in use from the birth of the database.
    pub fn well_known(index: u64) -> PageId {
        assert!(index < WELL_KNOWN);
        FIRST_PAGE + 1 + index
    }

    /// True if the page has ever been formatted.
    pub fn is_formatted(&self, pid: PageId) -> Result<bool> {
        if !self.is_resident(pid) {
            let zero = crate::pool::with_read_buffer(1, |buffer| {
                self.pool.data.read(pid * PAGE_BYTES as u64, buffer).map(|()| buffer.iter().all(|byte| *byte == 0))
            });
            if zero.map_err(|error| Error::io(format!("reading page {pid}"), error))? {
                return Ok(false);
            }
        }
        Ok(self.shared(pid)?.page().kind() != kind::NONE)
    }

    /// Takes a run of pages out of the free ones, in memory only. It becomes real with the mini-transaction that is told of it, or goes back by `unreserve`.
    pub fn reserve(&self, pages: u32, near: PageId) -> Result<PageId> {
        assert!(pages >= 1 && u64::from(pages) < GROUP_PAGES / 2);
        loop {
            let seen = {
                let mut bits = self.space.bits.lock();
                let aside = if undo_reserve::is_undoing() { 0 } else { bits.aside };
                if bits.free >= u64::from(pages) + aside
                    && let Some(bit) = bits.take(u64::from(pages), near)
                {
                    return Ok(bit + FIRST_PAGE);
                }
                bits.pages
            };
            self.grow(seen, pages)?;
        }
    }

    /// Puts so many more free pages aside. `Err(DiskFull)` changes nothing.
    pub(crate) fn reserve_for_undo(&self, pages: u64) -> Result<()> {
        loop {
            let seen = {
                let mut bits = self.space.bits.lock();
                if bits.free >= bits.aside + pages {
                    bits.aside += pages;
                    return Ok(());
                }
                bits.pages
            };
            self.grow(seen, pages.min(GROUP_PAGES / 2 - 1) as u32)?;
        }
    }

    pub(crate) fn release_undo_pages(&self, pages: u64) {
        self.space.bits.lock().aside -= pages;
    }

    /// Pages in use or reserved; maps and well-known pages are not counted.
    pub fn allocated_pages(&self) -> u64 {
        let bits = self.space.bits.lock();
        bits.pages - bits.free - bits.pages.div_ceil(GROUP_PAGES) - WELL_KNOWN
    }

    /// Gives a run back that no mini-transaction was told of, or that one has freed.
    pub fn unreserve(&self, first: PageId, pages: u32) {
        let mut bits = self.space.bits.lock();
        for pid in first..first + u64::from(pages) {
            bits.set(pid - FIRST_PAGE, false);
        }
        // First fit keeps the file compact; runs go round so that they do not crowd at its start.
        bits.page_hint = bits.page_hint.min(first - FIRST_PAGE);
    }

    /// Pages of the file, and how many of them are free.
    pub fn space_use(&self) -> (u64, u64) {
        let bits = self.space.bits.lock();
        (bits.pages + FIRST_PAGE, bits.free)
    }

    /// True if the memory bitmap counts the page as used. For checkers.
    pub fn is_allocated(&self, pid: PageId) -> bool {
        pid < FIRST_PAGE || {
            let bits = self.space.bits.lock();
            pid - FIRST_PAGE < bits.pages && bits.is_used(pid - FIRST_PAGE)
        }
    }

    /// Makes the file longer, unless somebody just did. `seen`: the size that was too small.
    fn grow(&self, seen: u64, wanted: u32) -> Result<()> {
        let _alone = self.space.growing.lock();
        let pages = self.space.bits.lock().pages;
        if pages != seen {
            return Ok(());
        }
        let old_bytes = self.pool.data.len();
        let step =
            (old_bytes / 8).clamp(FIRST_BYTES, GROW_BYTES_MAX).max((u64::from(wanted) + 2) * 2 * PAGE_BYTES as u64);
        let full = |_| Error::DiskFull { what: "the data file" };
        let bytes = (old_bytes + step).next_multiple_of(FIRST_BYTES);
        match self.pool.data.grow(bytes) {
            Ok(()) => {}
            Err(error) if crate::error::is_full(&error) => {
                // Old files of the log may make room; a smaller step may still fit.
                let given = self.log_if_open().map_or(Ok(false), Log::give_back)?;
                let step = if given { bytes } else { old_bytes + FIRST_BYTES };
                self.pool.data.grow(step).or_else(|_| self.pool.data.grow(old_bytes + FIRST_BYTES)).map_err(full)?;
            }
            Err(error) => return Err(Error::io("growing the data file", error)),
        }
        self.adopt(self.pool.data.len())
    }

    /// Grows ahead of use, so that no writer waits for the file system.
    pub(crate) fn grow_ahead(&self) -> Result<()> {
        if !self.space.is_open.load(Ordering::Acquire) {
            return Ok(());
        }
        let (seen, free, bytes) = {
            let bits = self.space.bits.lock();
            (bits.pages, bits.free, self.pool.data.len())
        };
        let step_pages = (bytes / 8).clamp(FIRST_BYTES, GROW_BYTES_MAX) / PAGE_BYTES as u64;
        if free < step_pages / 4 { self.grow(seen, 1) } else { Ok(()) }
    }

    /// Takes the pages up to `bytes` into the bitmap, formatting the maps of new groups.
    fn adopt(&self, bytes: u64) -> Result<()> {
        let pages = bytes / PAGE_BYTES as u64 - FIRST_PAGE;
        let old = self.space.bits.lock().pages;
        let formatted = old.div_ceil(GROUP_PAGES);
        for group in formatted..pages.div_ceil(GROUP_PAGES) {
            self.format_map(group)?;
        }
        let mut bits = self.space.bits.lock();
        bits.words.resize(pages.div_ceil(64) as usize, 0);
        bits.free += pages - old;
        bits.pages = pages;
        for group in formatted..pages.div_ceil(GROUP_PAGES) {
            bits.set(group * GROUP_PAGES, true);
        }
        if formatted == 0 {
            for index in 0..WELL_KNOWN {
                bits.set(Pager::well_known(index) - FIRST_PAGE, true);
            }
        }
        Ok(())
    }

    fn format_map(&self, group: u64) -> Result<()> {
        let page = self.fresh_frame(map_page(group), false)?;
        page.set_kind(kind::SPACE_MAP, 0, 0);
        let born_used = if group == 0 { (1 << (1 + WELL_KNOWN)) - 1 } else { 1 };
        page.store(HEADER_WORDS, born_used);
        page.header().flags.fetch_or(crate::frame::PINNED, Ordering::Relaxed);
        let mut mtr = self.mtr();
        mtr.image(&page);
        mtr.commit();
        Ok(())
    }

    /// First opening of an empty file: formats what is there.
    pub(crate) fn create_space(&self) -> Result<()> {
        self.adopt(self.pool.data.len())?;
        self.space.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// Reads the maps after recovery. A group whose map was never written (the crash came between growing and formatting) is formatted.
    pub(crate) fn open_space(&self) -> Result<()> {
        let pages = self.pool.data.len() / PAGE_BYTES as u64 - FIRST_PAGE;
        let mut known = 0;
        for group in 0..pages.div_ceil(GROUP_PAGES) {
            if !self.is_formatted(map_page(group))? {
                break;
            }
            let page = self.exclusive(map_page(group))?;
            page.header().flags.fetch_or(crate::frame::PINNED, Ordering::Relaxed);
            let mut bits = self.space.bits.lock();
            for word in HEADER_WORDS..PAGE_WORDS {
                bits.words.push(page.page().load(word));
            }
            known = ((group + 1) * GROUP_PAGES).min(pages);
        }
        {
            let mut bits = self.space.bits.lock();
            bits.words.truncate(known.div_ceil(64) as usize);
            bits.pages = known;
            bits.free = (0..known).filter(|bit| !bits.is_used(*bit)).count() as u64;
        }
        if known < pages {
            self.adopt(self.pool.data.len())?;
        }
        self.space.is_open.store(true, Ordering::Release);
        Ok(())
    }
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

/// Body of a space record.
pub(crate) fn encode(run: Run) -> [u8; 16] {
    let mut body = [0; 16];
    body[..8].copy_from_slice(&run.first.to_le_bytes());
    body[8..].copy_from_slice(&u64::from(run.pages).to_le_bytes());
    body
}

/// The run that a space record names.
pub fn decode(record: &Record<'_>) -> Option<Run> {
    let body: &[u8; 16] = record.body.try_into().ok()?;
    let first = u64::from_le_bytes(body[..8].try_into().expect("eight bytes"));
    let pages = u64::from_le_bytes(body[8..].try_into().expect("eight bytes"));
    Some(Run { first, pages: u32::try_from(pages).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(pages: u64) -> Bits {
        Bits { words: vec![0; pages.div_ceil(64) as usize], pages, free: pages, ..Bits::default() }
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
    fn what_is_given_back_is_found_again() {
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
