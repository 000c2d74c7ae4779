//! Allocation of pages: reservation in memory, growth of the data file, the maps at start.
//!
//! The bitmap in memory decides what is free; it also contains reservations that are not logged yet. The map pages follow in the mini-transaction that
//! makes an allocation real. So a reservation that a crash or an error cuts short leaks nothing (PG-19), and a freed page is reused only after the record
//! that frees it is in the WAL (PG-20). The bitmap's mutex is innermost: no I/O under it.

use stdx::sync::atomic::Ordering;

use crate::buffer_pool::with_read_buffer;
use crate::error::{self, Error, Result};
use crate::frame::PINNED;
use crate::page::{PAGE_BYTES, PAGE_WORDS, PageId, kind};
use crate::pager::{DISK_IS_FULL, Pager};
use crate::space_map::{FIRST_BYTES, FIRST_PAGE, GROUP_PAGES, GROW_BYTES_MAX, HEADER_WORDS, Run, WELL_KNOWN, map_page};
use crate::undo_scope;
use crate::wal::stream::Wal;

impl Pager {
    /// Returns a page with a fixed id, allocated when the database is created.
    pub fn well_known(index: u64) -> PageId {
        assert!(index < WELL_KNOWN);
        FIRST_PAGE + 1 + index
    }

    /// Returns true if the page has ever been formatted.
    pub fn is_formatted(&self, pid: PageId) -> Result<bool> {
        if !self.is_resident(pid) {
            let zero = with_read_buffer(1, |buffer| {
                self.pool.data.read(pid * PAGE_BYTES as u64, buffer).map(|()| buffer.iter().all(|byte| *byte == 0))
            });
            if zero.map_err(|error| Error::io(format!("reading page {pid}"), error))? {
                return Ok(false);
            }
        }
        Ok(self.shared(pid)?.page().kind() != kind::NONE)
    }

    /// Reserves a run of free pages in memory, near `near` if possible. A mini-transaction makes it real (`Mtr::allocated`), or `unreserve` returns it.
    /// `Err(DiskFull)` if the data file cannot grow.
    pub fn reserve(&self, pages: u32, near: PageId) -> Result<PageId> {
        assert!(pages >= 1 && u64::from(pages) < GROUP_PAGES / 2);
        loop {
            let seen = {
                let mut bits = self.space.bits.lock();
                let reserved = if undo_scope::is_undoing() { 0 } else { bits.undo_reserve };
                if bits.free >= u64::from(pages) + reserved
                    && let Some(bit) = bits.take(u64::from(pages), near)
                {
                    return Ok(bit + FIRST_PAGE);
                }
                bits.pages
            };
            self.grow_or_give_up_snapshot(seen, pages)?;
        }
    }

    /// Reserves that many more free pages for undo (PG-21). `Err(DiskFull)` changes nothing.
    pub(crate) fn reserve_for_undo(&self, pages: u64) -> Result<()> {
        loop {
            let seen = {
                let mut bits = self.space.bits.lock();
                if bits.free >= bits.undo_reserve + pages {
                    bits.undo_reserve += pages;
                    return Ok(());
                }
                bits.pages
            };
            self.grow_or_give_up_snapshot(seen, pages.min(GROUP_PAGES / 2 - 1) as u32)?;
        }
    }

    pub(crate) fn release_undo_pages(&self, pages: u64) {
        self.space.bits.lock().undo_reserve -= pages;
    }

    /// Returns the number of pages allocated or reserved, without maps and well-known pages.
    pub fn allocated_pages(&self) -> u64 {
        let bits = self.space.bits.lock();
        bits.pages - bits.free - bits.pages.div_ceil(GROUP_PAGES) - WELL_KNOWN
    }

    /// Returns a run that was only reserved, or that a mini-transaction has freed, to the free pages.
    pub fn unreserve(&self, first: PageId, pages: u32) {
        let mut bits = self.space.bits.lock();
        for pid in first..first + u64::from(pages) {
            bits.set(pid - FIRST_PAGE, false);
        }
        // First fit keeps the file compact; runs are allocated round robin so that they do not crowd at its start.
        bits.page_hint = bits.page_hint.min(first - FIRST_PAGE);
    }

    /// Keeps a freed run from being allocated while a page snapshot may read it (PG-27). Returns false if there is none by now.
    pub(crate) fn hold_back(&self, run: Run) -> bool {
        let from = run.first - FIRST_PAGE;
        self.space.bits.lock().hold_back(from, from + u64::from(run.pages))
    }

    /// Grows the data file. If the disk is full, a page snapshot is given up instead, which frees the pages that it holds back.
    fn grow_or_give_up_snapshot(&self, seen: u64, wanted: u32) -> Result<()> {
        match self.grow(seen, wanted) {
            Err(Error::DiskFull { .. }) if self.end_snapshot(None, DISK_IS_FULL) => Ok(()),
            other => other,
        }
    }

    /// Returns the number of pages of the file, and how many of them are free.
    pub fn space_use(&self) -> (u64, u64) {
        let bits = self.space.bits.lock();
        (bits.pages + FIRST_PAGE, bits.free)
    }

    /// Returns true if the page is allocated or reserved.
    pub fn is_allocated(&self, pid: PageId) -> bool {
        pid < FIRST_PAGE || {
            let bits = self.space.bits.lock();
            pid - FIRST_PAGE < bits.pages && bits.is_used(pid - FIRST_PAGE)
        }
    }

    /// Grows the data file, unless another thread just did. `seen` is the size that was too small, in pages.
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
            Err(failure) if error::is_full(&failure) => {
                // Deleting old WAL files may make room; a smaller step may still fit.
                let given = self.wal_if_open().map_or(Ok(false), Wal::trim_old_segments)?;
                let step = if given { bytes } else { old_bytes + FIRST_BYTES };
                self.pool.data.grow(step).or_else(|_| self.pool.data.grow(old_bytes + FIRST_BYTES)).map_err(full)?;
            }
            Err(error) => return Err(Error::io("growing the data file", error)),
        }
        self.adopt(self.pool.data.len())
    }

    /// Grows the file ahead of use, so that no writer waits for the file system.
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

    /// Adds the pages up to `bytes` to the bitmap and formats the maps of new groups.
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
        page.header().flags.fetch_or(PINNED, Ordering::Relaxed);
        let mut mtr = self.mtr();
        mtr.image(&page);
        mtr.commit();
        Ok(())
    }

    /// Formats the maps of a new database.
    pub(crate) fn create_space(&self) -> Result<()> {
        self.adopt(self.pool.data.len())?;
        self.space.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// Reads the maps after recovery. A group whose map was never written, because the crash came between growing and formatting, is formatted.
    pub(crate) fn open_space(&self) -> Result<()> {
        let pages = self.pool.data.len() / PAGE_BYTES as u64 - FIRST_PAGE;
        let mut known = 0;
        for group in 0..pages.div_ceil(GROUP_PAGES) {
            if !self.is_formatted(map_page(group))? {
                break;
            }
            let page = self.exclusive(map_page(group))?;
            page.header().flags.fetch_or(PINNED, Ordering::Relaxed);
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
