//! How a page is reached: look it up, read it in if it is absent, look at it one of three ways.

use stdx::sync::atomic::Ordering;

use crate::buffer_pool::{BufferPool, Claim, with_read_buffer};
use crate::error::{Error, Result};
use crate::frame::{FREED, RAW, UNVERIFIED};
use crate::guard::{Exclusive, Optimistic, PageStamp, Shared};
use crate::page::{PAGE_BYTES, PageId, WORD_ID};
use crate::pager::Pager;

pub static PAGE_READ: stdx::wait::Reason = stdx::wait::Reason::new("page_read");

impl Pager {
    /// A sight of the page without a latch. Waits while somebody holds X, reads the page in if it is absent.
    ///
    /// The page may be freed and used anew at any time: the caller checks that what it sees is what it looks for (owner, level, fences) and validates.
    /// An error about a page that was reached through a pointer counts only if that pointer still validates.
    #[inline]
    pub fn optimistic(&self, pid: PageId) -> Result<Optimistic<'_>> {
        loop {
            if let Some(frame) = self.pool.find(pid) {
                let header = &self.pool.frames[frame];
                let version = header.version(&self.pool.lot);
                if header.pid.load(Ordering::Relaxed) == pid && header.validate(version) {
                    header.mark_referenced();
                    return Ok(Optimistic { pool: &self.pool, frame, version, pid });
                }
                continue;
            }
            self.load(pid, false)?;
        }
    }

    /// The same of a page that is in memory; `Error::PageMiss` of one that would have to be read, or is being read.
    #[inline]
    pub fn optimistic_cached(&self, pid: PageId) -> Result<Optimistic<'_>> {
        if !self.pool.has(pid) && self.is_in_file(pid) {
            return Err(Error::PageMiss(pid));
        }
        self.optimistic(pid)
    }

    /// The sight that was remembered, if nothing has changed since.
    #[inline]
    pub fn revalidate(&self, remembered: PageStamp) -> Option<Optimistic<'_>> {
        let PageStamp { pid, version, frame } = remembered;
        let header = self.pool.frames.get(frame)?;
        let same = header.pid.load(Ordering::Relaxed) == pid && header.validate(version);
        same.then_some(Optimistic { pool: &self.pool, frame, version, pid })
    }

    /// The page under a shared latch.
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
                return Ok(guard);
            }
            self.load(pid, raw)?;
        }
    }

    /// The page under the exclusive latch.
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
                return Ok(guard);
            }
            self.load(pid, false)?;
        }
    }

    /// The exclusive latch if it is free at once; the page is read in if it is absent.
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
                return Ok(Some(guard));
            }
            self.load(pid, false)?;
        }
    }

    /// Asks for the cache lines that a look at the page begins with, where it most likely is.
    #[inline]
    pub fn prefetch_lines(&self, pid: PageId, lines: usize) {
        self.pool.prefetch_lines(pid, lines);
    }

    /// A pointer from a damaged page may name any number.
    pub(crate) fn is_in_file(&self, pid: PageId) -> bool {
        (crate::space_map::FIRST_PAGE..self.pool.data.len() / PAGE_BYTES as u64).contains(&pid)
    }

    /// True if the page is in memory now, and not only on its way there.
    pub fn is_resident(&self, pid: PageId) -> bool {
        self.pool.has(pid)
    }

    /// True if memory holds as many pages as it can: whoever is going to touch several pages does well to have them read together.
    pub fn is_crowded(&self) -> bool {
        self.pool.is_crowded()
    }

    /// Reads the absent ones of `pids` together, so that a batch of requests waits once. Best effort: what cannot be read now is read, and complained
    /// about, when it is used.
    pub fn prefetch_many(&self, pids: &[PageId]) {
        let mut absent: Vec<PageId> =
            pids.iter().copied().filter(|pid| self.is_in_file(*pid) && !self.is_resident(*pid)).collect();
        absent.sort_unstable();
        absent.dedup();
        let batch = (self.pool.frames.len() / 16).clamp(1, 128);
        for pids in absent.chunks(batch) {
            self.load_together(pids, false);
        }
    }

    /// Reads as many of the pages, from the first on, as there are frames for at once; returns how many that were.
    ///
    /// Never waits for a frame: it holds latches, and another in the same place could wait for those.
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
        with_read_buffer(settled.len(), |buffer| {
            let results = {
                let _waiting = stdx::wait::announce(&PAGE_READ);
                let pages = buffer.chunks_exact_mut(PAGE_BYTES);
                let mut reads: Vec<(u64, &mut [u8])> =
                    settled.iter().zip(pages).map(|((pid, _), page)| (pid * PAGE_BYTES as u64, page)).collect();
                self.pool.data.read_many(&mut reads)
            };
            let pages = buffer.chunks_exact(PAGE_BYTES);
            for (((pid, frame), result), page) in settled.into_iter().zip(results).zip(pages) {
                match result {
                    // A damaged page is reported to whoever uses it.
                    Ok(()) => drop(self.pool.fill(frame, pid, page, raw)),
                    Err(_) => self.pool.unassign(frame, pid),
                }
            }
        });
        count
    }

    /// Reads one page into a frame, unless somebody else does.
    #[cold]
    fn load(&self, pid: PageId, raw: bool) -> Result<()> {
        if !self.is_in_file(pid) {
            return Err(Error::corrupt_page(pid, "a pointer leads outside the file"));
        }
        let frame = self.claim(pid)?;
        if !self.pool.assign(frame, pid, BufferPool::load_flags(raw)) {
            return Ok(());
        }
        self.pool.misses.add(1);
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

    /// A frame for `pid`, X-latched and empty; has pages cleaned while there is none.
    pub(crate) fn claim(&self, pid: PageId) -> Result<usize> {
        loop {
            match self.try_claim(pid) {
                Claim::Frame(frame) => return Ok(frame),
                Claim::Exhausted => self.wait_for_free_frame()?,
            }
        }
    }

    /// A frame if there is one now; calls the cleaner when frames that could be given away begin to be rare.
    pub(crate) fn try_claim(&self, pid: PageId) -> Claim {
        let claim = self.pool.claim(pid);
        if self.pool.wants_cleaning() {
            self.wake_cleaner_once();
        }
        claim
    }

    /// The frame of a page whose former content does not matter: X-latched, all zero but for the id.
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

/// A page and a raw unit are different things under one number; whoever mixes them up followed a stale or damaged pointer.
fn check_unit_kind(flags: u32, raw: bool, pid: PageId) -> Result<()> {
    if (flags & RAW != 0) == raw {
        return Ok(());
    }
    Err(Error::corrupt_page(
        pid,
        if raw { "a page where a value was expected" } else { "a value where a page was expected" },
    ))
}
