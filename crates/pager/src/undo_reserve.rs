//! Room kept for undo, so that taking a transaction back does not need what a full disk has not got.
//!
//! A record that grows again to what it was may find its leaf filled by others, and then a page is needed to split it; and whatever undo does is logged.
//! So whoever changes something that may have to be undone puts pages and log aside first, and is refused if there are none (S3, L7). Undo itself runs while
//! `enter_undo` lives and may take them. All of it is only counted: a crash forgets the counts, and the pages are as free as before for the undo of recovery.

use std::sync::Arc;

use crate::error::Result;
use crate::pager::Pager;
use crate::undo_scope::UndoScope;

/// Pages are put aside so many at a time, for it takes a mutex.
const STEP: u64 = 16;

/// What one transaction has put aside. Given back when it is dropped.
pub struct UndoReserve {
    pager: Arc<Pager>,
    pages: u64,
    log_bytes: u64,
}

impl Pager {
    pub fn undo_reserve(self: &Arc<Self>) -> UndoReserve {
        UndoReserve { pager: self.clone(), pages: 0, log_bytes: 0 }
    }

    /// To be held while a transaction is taken back.
    pub fn enter_undo(&self) -> UndoScope {
        UndoScope::enter()
    }
}

impl UndoReserve {
    /// Has at least `pages` pages put aside. `Err(DiskFull)` changes nothing.
    pub fn reserve_pages(&mut self, pages: u64) -> Result<()> {
        if pages > self.pages {
            let more = (pages - self.pages).next_multiple_of(STEP);
            self.pager.reserve_for_undo(more)?;
            self.pages += more;
        }
        Ok(())
    }

    /// Has `bytes` of log put aside. Whether they are there is asked by the next `admit`.
    pub fn reserve_wal(&mut self, bytes: u64) {
        self.pager.wal().reserve_bytes(bytes, self.log_bytes);
        self.log_bytes = bytes;
    }
}

impl Drop for UndoReserve {
    fn drop(&mut self) {
        self.pager.release_undo_pages(self.pages);
        self.pager.wal().reserve_bytes(0, self.log_bytes);
    }
}
