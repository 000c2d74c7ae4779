//! Checkpoints: moving the position where recovery starts, and releasing the WAL before it.
//!
//! A checkpoint writes no pages. It is fuzzy: the position is the minimum of the oldest change that is not on disk, of what is copied into the WAL ring,
//! and of the engine's hook. The cleaner has to write old pages first for it to advance.

use stdx::sync::atomic::Ordering;

use crate::error::Result;
use crate::page::Lsn;
use crate::pager::Pager;
use crate::root::RootRecord;

impl Pager {
    /// Makes a checkpoint at the oldest change that is not on disk, or earlier if the hook asks for it. Returns the position, and recycles WAL segments
    /// before it.
    pub fn checkpoint(&self) -> Result<Lsn> {
        // The order matters: every append below `copied` has marked its pages dirty before the frames are examined (PG-11).
        let hook = match self.checkpoint_hook.get() {
            Some(hook) => hook(),
            None if self.options.checkpoint_needs_hook => return Ok(self.checkpoint_lsn()),
            None => Lsn::MAX,
        };
        let head = self.wal().head();
        let copied = self.wal().copied();
        let oldest = self.pool.used_frames().iter().map(|frame| frame.oldest_change()).min().unwrap_or(Lsn::MAX);
        let lsn = copied.min(hook).min(oldest);
        self.wal().flush_to(head.max(lsn))?;
        let mut control = self.control.lock();
        if lsn > control.checkpoint {
            // The root is replaced first: if that fails, the WAL is still needed from the old position on.
            let next = RootRecord { checkpoint: lsn, ..*control };
            self.root.compare_and_set(control.boot, next)?;
            *control = next;
            self.checkpoint_lsn.store(lsn, Ordering::Relaxed);
            self.checkpoints.fetch_add(1, Ordering::Relaxed);
        }
        let keep = self.pinned_lsn.lock().iter().copied().min().unwrap_or(Lsn::MAX).min(control.checkpoint);
        drop(control);
        self.wal().release(keep)?;
        Ok(lsn)
    }

    /// Writes all dirty pages and makes a checkpoint, so that the next start has next to nothing to redo.
    pub fn checkpoint_all(&self) -> Result<Lsn> {
        for _ in 0..8 {
            let head = self.wal().head();
            self.clean_until(head)?;
            if self.pool.used_frames().iter().all(|frame| frame.oldest_change() >= head) {
                break;
            }
        }
        self.checkpoint()
    }

    /// Lets the cleaner write all dirty pages and make a checkpoint, which it retries until it succeeds. Returns false if such a request is under way.
    pub fn request_checkpoint(&self) -> bool {
        let is_first = !self.checkpoint_requested.swap(true, Ordering::AcqRel);
        if is_first {
            self.wake_cleaner();
        }
        is_first
    }

    pub fn is_checkpoint_requested(&self) -> bool {
        self.checkpoint_requested.load(Ordering::Acquire)
    }

    /// Keeps the WAL from `checkpoint_lsn` on until the pin is dropped.
    pub fn pin_wal(&self) -> WalPin<'_> {
        let control = self.control.lock();
        let lsn = control.checkpoint;
        self.pinned_lsn.lock().push(lsn);
        WalPin { pager: self, lsn }
    }
}

/// Keeps WAL segments from being recycled.
pub struct WalPin<'p> {
    pager: &'p Pager,
    lsn: Lsn,
}

impl WalPin<'_> {
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }
}

impl Drop for WalPin<'_> {
    fn drop(&mut self) {
        let mut pins = self.pager.pinned_lsn.lock();
        let at = pins.iter().position(|lsn| *lsn == self.lsn).expect("pushed by pin_wal");
        pins.swap_remove(at);
    }
}
