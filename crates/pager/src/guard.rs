//! Three kinds of access to a page: optimistic (no store at all), shared latch, exclusive latch.
//!
//! Latching rules: latches are short and never held across a wait for a lock or a client. Order: child before parent, left before right, space-map pages
//! last (`Mtr::commit` takes them). Only `Exclusive` can change a page.

use stdx::sync::atomic::Ordering;

use crate::buffer_pool::BufferPool;
use crate::frame::{Frame, RAW};
use crate::page::{self, PAGE_WORDS, PageId, PageRef, WORD_KIND};

/// Identity of a page read earlier: its frame and version. Borrows nothing and may be out of date; `Pager::revalidate` checks it.
#[derive(Clone, Copy, Debug)]
pub struct PageStamp {
    pub(crate) pid: PageId,
    pub(crate) version: u64,
    pub(crate) frame: usize,
}

impl PageStamp {
    pub fn pid(&self) -> PageId {
        self.pid
    }
}

/// View of a page without a latch. Loaded values count only after `validate` returned true (PG-4).
#[derive(Clone, Copy)]
pub struct Optimistic<'p> {
    pub(crate) pool: &'p BufferPool,
    pub(crate) frame: usize,
    pub(crate) version: u64,
    pub(crate) pid: PageId,
}

impl<'p> Optimistic<'p> {
    /// Returns the page's words, or an all-zero page if the frame now holds user bytes: the page was freed and reused for a value.
    #[inline(always)]
    pub fn page(&self) -> PageRef<'p> {
        if self.header().flags.load(Ordering::Relaxed) & RAW != 0 {
            return PageRef { words: self.pool.zero_page() };
        }
        PageRef { words: self.pool.words(self.frame) }
    }

    pub fn pid(&self) -> PageId {
        self.pid
    }

    #[inline(always)]
    pub fn validate(&self) -> bool {
        self.header().validate(self.version)
    }

    /// Returns the stamp of this view, for `Pager::revalidate`.
    #[inline]
    pub fn stamp(&self) -> PageStamp {
        PageStamp { pid: self.pid, version: self.version, frame: self.frame }
    }

    /// Takes X without waiting. Succeeds only if nothing has changed since this view was taken.
    pub fn upgrade(self) -> Option<Exclusive<'p>> {
        if !self.header().upgrade(self.version) {
            return None;
        }
        Some(Exclusive { pool: self.pool, frame: self.frame }.before_change())
    }

    #[inline(always)]
    fn header(&self) -> &'p Frame {
        &self.pool.frames[self.frame]
    }
}

/// A page under a shared latch: it does not change while this lives.
pub struct Shared<'p> {
    pub(crate) pool: &'p BufferPool,
    pub(crate) frame: usize,
}

impl<'p> Shared<'p> {
    pub fn page(&self) -> PageRef<'_> {
        PageRef { words: self.pool.words(self.frame) }
    }

    pub fn pid(&self) -> PageId {
        self.pool.frames[self.frame].pid.load(Ordering::Relaxed)
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        self.pool.frames[self.frame].unlock_shared(&self.pool.lot);
    }
}

/// A page under the exclusive latch.
pub struct Exclusive<'p> {
    pub(crate) pool: &'p BufferPool,
    pub(crate) frame: usize,
}

impl<'p> Exclusive<'p> {
    #[inline(always)]
    pub fn page(&self) -> PageRef<'_> {
        PageRef { words: self.pool.words(self.frame) }
    }

    pub fn pid(&self) -> PageId {
        self.header().pid.load(Ordering::Relaxed)
    }

    /// Stores a word. The change must be described by a record of an open `Mtr`.
    #[inline(always)]
    pub fn store(&self, word: usize, value: u64) {
        debug_assert!(self.header().is_exclusive());
        assert!(word < PAGE_WORDS);
        self.pool.words(self.frame)[word].store(value, Ordering::Relaxed);
    }

    /// Sets kind, level and flags of a fresh page; the boot number in the upper half stays.
    pub fn set_kind(&self, kind: u8, level: u8, flags: u16) {
        let boot = self.page().load(WORD_KIND) & !0xffff_ffff;
        self.store(WORD_KIND, boot | u64::from(flags) << 16 | u64::from(level) << 8 | u64::from(kind));
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> &'p Frame {
        &self.pool.frames[self.frame]
    }

    /// Keeps the page's image for a page snapshot, if there is one that has not kept it. Called before the guard is given to anybody (PG-25).
    #[inline(always)]
    pub(crate) fn before_change(self) -> Exclusive<'p> {
        if self.pool.capture.is_on() {
            self.keep_image();
        }
        self
    }

    #[cold]
    fn keep_image(&self) {
        if self.header().flags.load(Ordering::Relaxed) & RAW == 0 {
            self.pool.capture.keep(self.page(), self.pid());
        }
    }

    pub(crate) fn fill_zero(&self) {
        for word in self.pool.words(self.frame) {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Overwrites the page, or the raw unit, with little-endian bytes.
    pub(crate) fn copy_in(&self, bytes: &[u8]) {
        page::copy_in(self.pool.words(self.frame), bytes);
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        self.header().unlock_exclusive(&self.pool.lot);
    }
}
