//! Access to a page: look it up in the buffer pool, read it in if it is absent, latch it or view it optimistically.

use stdx::sync::atomic::Ordering;

use crate::buffer_pool::{BufferPool, Claim, with_read_buffer};
use crate::counts::{self, count_hit};
use crate::error::{Error, Result};
use crate::frame::{FREED, RAW, UNVERIFIED};
use crate::guard::{Exclusive, Optimistic, PageStamp, Shared};
use crate::page::{PAGE_BYTES, PageId, WORD_ID};
use crate::pager::Pager;

pub static PAGE_READ: stdx::wait::Reason = stdx::wait::Reason::new("page_read");

impl Pager {
    /// Returns a view of the page without a latch. Waits while X is held, and reads the page in if it is absent.
    ///
    /// The page may be freed and reused at any time: the caller checks that it is the expected page (owner, level, fences) and validates. An error
    /// about a page that was reached through a pointer counts only if that pointer still validates.
    #[inline]
    pub fn optimistic(&self, pid: PageId) -> Result<Optimistic<'_>> {
        loop {
            if let Some(frame) = self.pool.find(pid) {
                let header = &self.pool.frames[frame];
                let version = header.version(&self.pool.lot);
                if header.pid.load(Ordering::Relaxed) == pid && header.validate(version) {
                    header.mark_referenced();
                    count_hit();
                    return Ok(Optimistic { pool: &self.pool, frame, version, pid });
                }
                continue;
            }
            self.load(pid, false)?;
        }
    }

    /// Like `optimistic`, but returns `Error::PageMiss` instead of reading a page or waiting for a read in progress.
    #[inline]
    pub fn optimistic_cached(&self, pid: PageId) -> Result<Optimistic<'_>> {
        if !self.pool.has(pid) && self.is_in_file(pid) {
            return Err(Error::PageMiss(pid));
        }
        self.optimistic(pid)
    }

    /// Returns the view that `Optimistic::stamp` was taken of, if the page has not changed since.
    #[inline]
    pub fn revalidate(&self, remembered: PageStamp) -> Option<Optimistic<'_>> {
        let PageStamp { pid, version, frame } = remembered;
        let header = self.pool.frames.get(frame)?;
        let same = header.pid.load(Ordering::Relaxed) == pid && header.validate(version);
        same.then(|| {
            count_hit();
            Optimistic { pool: &self.pool, frame, version, pid }
        })
    }

    /// Returns the page under a shared latch.
    pub fn shared(&self, pid: PageId) -> Result<Shared<'_>> {
        self.shared_as(pid, false)
    }

    pub(crate) fn shared_as(&self, pid: PageId, raw: bool) -> Result<Shared<'_>> {
        loop {
            if let Some(frame) = self.pool.find(pid) {
                let header = &self.pool.frames[frame];
                header.lock_shared(&self.pool.lot);
                let guard = Shared { pool: &self.pool, frame };
                if header.pid.load(Ordering::Relaxed) != pid {
                    continue;
                }
                check_unit_kind(header.flags.load(Ordering::Relaxed), raw, pid)?;
                header.mark_referenced();
                count_hit();
                return Ok(guard);
            }
            self.load(pid, raw)?;
        }
    }

    /// Returns the page under the exclusive latch.
    pub fn exclusive(&self, pid: PageId) -> Result<Exclusive<'_>> {
        loop {
            if let Some(frame) = self.pool.find(pid) {
                let header = &self.pool.frames[frame];
                header.lock_exclusive(&self.pool.lot);
                let guard = Exclusive { pool: &self.pool, frame };
                if header.pid.load(Ordering::Relaxed) != pid {
                    continue;
                }
                check_unit_kind(header.flags.load(Ordering::Relaxed), false, pid)?;
                header.mark_referenced();
                count_hit();
                return Ok(guard.before_change());
            }
            self.load(pid, false)?;
        }
    }

    /// Takes the exclusive latch if it is free at once. Reads the page in if it is absent.
    pub fn try_exclusive(&self, pid: PageId) -> Result<Option<Exclusive<'_>>> {
        loop {
            if let Some(frame) = self.pool.find(pid) {
                let header = &self.pool.frames[frame];
                if !header.try_exclusive() {
                    return Ok(None);
                }
                let guard = Exclusive { pool: &self.pool, frame };
                if header.pid.load(Ordering::Relaxed) != pid {
                    continue;
                }
                check_unit_kind(header.flags.load(Ordering::Relaxed), false, pid)?;
                count_hit();
                return Ok(Some(guard.before_change()));
            }
            self.load(pid, false)?;
        }
    }

    /// Prefetches the first `lines` cache lines of the page in its preferred frame, where it most likely is.
    #[inline]
    pub fn prefetch_lines(&self, pid: PageId, lines: usize) {
        self.pool.prefetch_lines(pid, lines);
    }

    /// Returns whether the page lies inside the data file. A pointer read from a damaged page may hold any number.
    pub(crate) fn is_in_file(&self, pid: PageId) -> bool {
        (crate::space_map::FIRST_PAGE..self.pool.data.len() / PAGE_BYTES as u64).contains(&pid)
    }

    /// Returns true if the page is in memory and not still being read.
    pub fn is_resident(&self, pid: PageId) -> bool {
        self.pool.has(pid)
    }

    /// Returns true if every frame is in use. Callers that are about to touch several pages should then prefetch them together.
    pub fn is_crowded(&self) -> bool {
        self.pool.is_crowded()
    }

    /// Reads the absent pages of `pids` together, so that a batch of requests waits once. Best effort: a page that cannot be read now is read, and its
    /// error reported, when it is used.
    pub fn prefetch_many(&self, pids: &[PageId]) {
        self.prefetch_as(pids, false);
    }

    /// Does the same for units of values.
    pub fn prefetch_units(&self, pids: &[PageId]) {
        self.prefetch_as(pids, true);
    }

    fn prefetch_as(&self, pids: &[PageId], raw: bool) {
        let mut absent: Vec<PageId> =
            pids.iter().copied().filter(|pid| self.is_in_file(*pid) && !self.is_resident(*pid)).collect();
        absent.sort_unstable();
        absent.dedup();
        let batch = (self.pool.frames.len() / 16).clamp(1, 128);
        for pids in absent.chunks(batch) {
            self.load_together(pids, raw);
        }
    }

    /// Reads pages into a buffer, neighbours of the file in one piece. Returns for each whether it was read.
    fn read_pages(&self, pids: &[PageId], buffer: &mut [u8]) -> Vec<bool> {
        let runs: Vec<&[PageId]> = pids.chunk_by(|one, next| *next == one + 1).collect();
        let (mut rest, mut reads) = (&mut *buffer, Vec::with_capacity(runs.len()));
        for run in &runs {
            let (piece, behind) = std::mem::take(&mut rest).split_at_mut(run.len() * PAGE_BYTES);
            reads.push((run[0] * PAGE_BYTES as u64, piece));
            rest = behind;
        }
        let results = self.pool.data.read_many(&mut reads);
        let mut read: Vec<bool> = Vec::with_capacity(pids.len());
        for (run, result) in runs.iter().zip(results) {
            read.extend(std::iter::repeat_n(result.is_ok(), run.len()));
        }
        // In a piece that failed, some pages may be readable.
        let pages = buffer.chunks_exact_mut(PAGE_BYTES);
        let mut failed: Vec<(usize, (u64, &mut [u8]))> = pids
            .iter()
            .zip(pages)
            .enumerate()
            .filter(|(at, _)| !read[*at])
            .map(|(at, (pid, page))| (at, (pid * PAGE_BYTES as u64, page)))
            .collect();
        if runs.len() < pids.len() && !failed.is_empty() {
            let places: Vec<usize> = failed.iter().map(|(at, _)| *at).collect();
            let mut reads: Vec<(u64, &mut [u8])> = failed.drain(..).map(|(_, one)| one).collect();
            for (at, result) in places.into_iter().zip(self.pool.data.read_many(&mut reads)) {
                read[at] = result.is_ok();
            }
        }
        read
    }

    /// Reads a prefix of `pids`, as many pages as have a free frame now. Returns the length of the prefix.
    ///
    /// Never waits for a frame: the frames claimed so far are latched, and two threads that do the same could wait for each other.
    pub(crate) fn load_together(&self, pids: &[PageId], raw: bool) -> usize {
        let mut settled = Vec::with_capacity(pids.len());
        let mut count = 0;
        for pid in pids {
            let Claim::Frame(frame) = self.try_claim(*pid) else { break };
            if self.pool.assign(frame, *pid, BufferPool::load_flags(raw)) {
                settled.push((*pid, frame));
            }
            count += 1;
        }
        if settled.is_empty() {
            return count;
        }
        self.pool.misses.add(settled.len() as u64);
        counts::count(|counts| counts.page_reads += settled.len() as u64);
        with_read_buffer(settled.len(), |buffer| {
            let results = {
                let _waiting = stdx::wait::announce(&PAGE_READ);
                self.read_pages(&settled.iter().map(|(pid, _)| *pid).collect::<Vec<_>>(), buffer)
            };
            let pages = buffer.chunks_exact(PAGE_BYTES);
            for (((pid, frame), result), page) in settled.into_iter().zip(results).zip(pages) {
                match result {
                    // A damaged page is reported to the request that uses it.
                    true => drop(self.pool.fill(frame, pid, page, raw)),
                    false => self.pool.unassign(frame, pid),
                }
            }
        });
        count
    }

    /// Reads one page into a frame, unless another thread does.
    #[cold]
    fn load(&self, pid: PageId, raw: bool) -> Result<()> {
        if !self.is_in_file(pid) {
            return Err(Error::corrupt_page(pid, "a pointer leads outside the data file"));
        }
        let frame = self.claim(pid)?;
        if !self.pool.assign(frame, pid, BufferPool::load_flags(raw)) {
            return Ok(());
        }
        self.pool.misses.add(1);
        // The caller finds it in the pool now, which is no hit.
        counts::count(|counts| {
            counts.page_reads += 1;
            counts.page_hits = counts.page_hits.wrapping_sub(1);
        });
        with_read_buffer(1, |buffer| {
            let result = {
                let _waiting = stdx::wait::announce(&PAGE_READ);
                self.pool.data.read(pid * PAGE_BYTES as u64, buffer)
            };
            match result {
                Ok(()) => self.pool.fill(frame, pid, buffer, raw),
                Err(error) => {
                    self.pool.unassign(frame, pid);
                    Err(Error::io(format!("reading page {pid}"), error))
                }
            }
        })
    }

    /// Returns an X-latched empty frame for `pid`. Waits for the cleaner while there is none.
    pub(crate) fn claim(&self, pid: PageId) -> Result<usize> {
        loop {
            match self.try_claim(pid) {
                Claim::Frame(frame) => return Ok(frame),
                Claim::Exhausted => self.wait_for_free_frame()?,
            }
        }
    }

    /// Returns a frame if there is one now, and wakes the cleaner when clean frames become rare.
    pub(crate) fn try_claim(&self, pid: PageId) -> Claim {
        let claim = self.pool.claim(pid);
        if self.pool.wants_cleaning() {
            self.wake_cleaner_once();
        }
        claim
    }

    /// Returns the frame of a page whose former content does not matter: X-latched, all zero except for the id.
    pub(crate) fn fresh_frame(&self, pid: PageId, raw: bool) -> Result<Exclusive<'_>> {
        let guard = loop {
            if let Some(frame) = self.pool.find(pid) {
                let header = &self.pool.frames[frame];
                header.lock_exclusive(&self.pool.lot);
                let guard = Exclusive { pool: &self.pool, frame };
                if header.pid.load(Ordering::Relaxed) == pid {
                    break guard;
                }
                continue;
            }
            let frame = self.claim(pid)?;
            if self.pool.assign(frame, pid, 0) {
                break Exclusive { pool: &self.pool, frame };
            }
        };
        let flags = &guard.header().flags;
        flags.store(
            flags.load(Ordering::Relaxed) & !(RAW | UNVERIFIED | FREED) | if raw { RAW } else { 0 },
            Ordering::Relaxed,
        );
        guard.header().page_lsn.store(0, Ordering::Relaxed);
        if !raw {
            guard.fill_zero();
            guard.store(WORD_ID, pid);
        }
        Ok(guard)
    }
}

/// Checks that the frame holds the kind of unit that the caller expects, a page or a raw unit. They share one id space; a mismatch means a stale or damaged
/// pointer.
fn check_unit_kind(flags: u32, raw: bool, pid: PageId) -> Result<()> {
    if (flags & RAW != 0) == raw {
        return Ok(());
    }
    Err(Error::corrupt_page(
        pid,
        if raw { "a page where a value was expected" } else { "a value where a page was expected" },
    ))
}
