//! The mini-transaction: changes of one or more pages that the WAL holds as a whole or not at all.
//!
//! The caller latches pages exclusively, changes them, describes each change by a record, and commits: one reservation in the WAL, one copy, then every
//! page gets the end of the mini-transaction as its LSN. Every step that can fail comes before the commit; the commit itself cannot.

use std::cell::Cell;

use stdx::sync::atomic::Ordering;

use crate::counts::count;
use crate::error::Result;
use crate::guard::Exclusive;
use crate::page::{Lsn, NO_PAGE, PAGE_BYTES, PageId, TxnId, WORD_LSN};
use crate::pager::Pager;
use crate::space_map::{self, Run};
use crate::wal::record::{self, FLAG_END, kind};

/// Buffers of a mini-transaction, kept by the thread from one to the next.
#[derive(Default)]
struct Scratch {
    bytes: Vec<u8>,
    frames: Vec<usize>,
    allocated: Vec<Run>,
    freed: Vec<Run>,
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// An open mini-transaction. Dropping it without a commit returns its allocated runs; it must have no records then.
pub struct Mtr<'p> {
    pager: &'p Pager,
    scratch: Option<Box<Scratch>>,
    last_flags: usize,
    committed: bool,
}

impl Pager {
    /// Opens a mini-transaction. Its buffers are kept by the thread for reuse.
    pub fn mtr(&self) -> Mtr<'_> {
        let scratch = SCRATCH.take().unwrap_or_default();
        debug_assert!(scratch.bytes.is_empty() && scratch.frames.is_empty());
        Mtr { pager: self, scratch: Some(scratch), last_flags: 0, committed: false }
    }
}

impl<'p> Mtr<'p> {
    fn scratch(&mut self) -> &mut Scratch {
        self.scratch.as_mut().expect("present until drop")
    }

    /// Reserves a run of free pages and adds its space record to this mini-transaction. `Err(DiskFull)` changes nothing. The run is released if this is
    /// dropped without a commit.
    pub fn allocate(&mut self, pages: u32, near: PageId) -> Result<PageId> {
        let first = self.pager.reserve(pages, near)?;
        self.allocated(first, pages);
        Ok(first)
    }

    /// Adds the space record of a run that `Pager::reserve` returned earlier, such as an extent already filled.
    pub fn allocated(&mut self, first: PageId, pages: u32) {
        self.scratch().allocated.push(Run { first, pages });
    }

    /// Frees a run. It can be allocated again as soon as this mini-transaction is in the WAL (PG-20).
    pub fn free(&mut self, first: PageId, pages: u32) {
        self.scratch().freed.push(Run { first, pages });
    }

    /// Returns the frame of a newly allocated page: X-latched, all zero except for the id, not read from disk.
    pub fn fresh(&mut self, pid: PageId) -> Result<Exclusive<'p>> {
        self.pager.fresh_frame(pid, false)
    }

    /// Records a change of `page`. The parts of `body` are concatenated. The page must stay latched until `commit` has returned.
    pub fn record(&mut self, page: &Exclusive<'_>, kind: u8, txn: Option<TxnId>, body: &[&[u8]]) {
        let (pid, before, frame) = (page.pid(), page.page().lsn(), page.frame);
        debug_assert!(page.header().is_exclusive());
        let scratch = self.scratch();
        let flags = record::encode(&mut scratch.bytes, kind, pid, before, txn, body);
        if scratch.frames.last() != Some(&frame) && !scratch.frames.contains(&frame) {
            scratch.frames.push(frame);
        }
        self.last_flags = flags;
        count(|counts| counts.wal_records += 1);
    }

    /// Records the image of the whole page. Redo applies it regardless of the page's former state.
    pub fn image(&mut self, page: &Exclusive<'_>) {
        let mut image = [0; PAGE_BYTES];
        page.page().copy_out(&mut image);
        let hole = record::longest_hole(&image);
        let head = record::image_head(&hole);
        count(|counts| counts.wal_images += 1);
        self.record(page, kind::IMAGE, None, &[&head, &image[..hole.start], &image[hole.end..]]);
    }

    /// Adds a record that changes no page.
    pub fn logical(&mut self, kind: u8, txn: Option<TxnId>, body: &[&[u8]]) {
        let scratch = self.scratch();
        self.last_flags = record::encode(&mut scratch.bytes, kind, NO_PAGE, 0, txn, body);
        count(|counts| counts.wal_records += 1);
    }

    /// Returns true if nothing has been recorded so far.
    pub fn is_empty(&self) -> bool {
        self.scratch
            .as_ref()
            .is_some_and(|scratch| scratch.bytes.is_empty() && scratch.allocated.is_empty() && scratch.freed.is_empty())
    }

    /// Appends the mini-transaction to the WAL and returns its end, 0 if it was empty.
    pub fn commit(mut self) -> Lsn {
        self.committed = true;
        if self.is_empty() {
            return 0;
        }
        let maps = self.mark_space();
        let last = self.last_flags;
        let pool = &self.pager.pool;
        let scratch = self.scratch.as_mut().expect("present until drop");
        scratch.bytes[last] |= FLAG_END;
        count(|counts| counts.wal_bytes += scratch.bytes.len() as u64);
        let end = self.pager.wal().append(&[&scratch.bytes], |start, end| {
            for frame in &scratch.frames {
                debug_assert!(pool.frames[*frame].is_exclusive());
                pool.words(*frame)[WORD_LSN].store(end, Ordering::Relaxed);
                pool.frames[*frame].mark_dirty(start, end);
            }
        });
        drop(maps);
        for run in &scratch.freed {
            if pool.capture.is_on() && self.pager.hold_back(*run) {
                continue;
            }
            // In this order: the frames of the run belong to it until the run can be allocated again.
            self.pager.discard_freed_units(*run, end);
            self.pager.unreserve(run.first, run.pages);
        }
        self.pager.run_interleave_hook();
        end
    }

    /// Latches the map pages of all runs in ascending order, changes and records them. They are pinned: no I/O, no failure.
    fn mark_space(&mut self) -> Vec<Exclusive<'p>> {
        let scratch = self.scratch.as_ref().expect("present until drop");
        let mut runs: Vec<(Run, bool)> = scratch.allocated.iter().map(|run| (*run, true)).collect();
        runs.extend(scratch.freed.iter().map(|run| (*run, false)));
        let mut groups: Vec<u64> = runs.iter().map(|(run, _)| space_map::group_of(run.first)).collect();
        groups.sort_unstable();
        groups.dedup();
        let latch = |group: &u64| self.pager.exclusive(space_map::map_page(*group)).expect("maps are pinned in memory");
        let maps: Vec<Exclusive<'p>> = groups.iter().map(latch).collect();
        for (run, used) in runs {
            let at = groups.binary_search(&space_map::group_of(run.first)).expect("collected above");
            space_map::mark(&maps[at], run, used);
            let kind = if used { kind::SPACE_SET } else { kind::SPACE_CLEAR };
            self.record(&maps[at], kind, None, &[&space_map::encode(run)]);
        }
        maps
    }
}

impl Drop for Mtr<'_> {
    fn drop(&mut self) {
        let mut scratch = self.scratch.take().expect("present until drop");
        if !self.committed {
            debug_assert!(
                scratch.bytes.is_empty() || std::thread::panicking(),
                "a mini-transaction with records was dropped"
            );
            for run in &scratch.allocated {
                self.pager.unreserve(run.first, run.pages);
            }
        }
        scratch.bytes.clear();
        scratch.frames.clear();
        scratch.allocated.clear();
        scratch.freed.clear();
        if scratch.bytes.capacity() <= 1 << 20 {
            SCRATCH.set(Some(scratch));
        }
    }
}
