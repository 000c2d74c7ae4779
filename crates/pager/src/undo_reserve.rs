//! Pages and WAL bytes reserved for undo, so that rolling a transaction back does not need space that a full disk does not have.
//!
//! A record that grows back to its former size may find its leaf filled by others, and then a page is needed to split it; and whatever undo does is logged.
//! So a transaction reserves pages and WAL bytes before each change that may have to be undone, and is refused if there are none (PG-21, PG-16). Undo runs
//! inside `Pager::enter_undo` and may use them. Reservations are counts in memory: a crash forgets them, and recovery's undo finds the pages free.

use std::sync::Arc;

use crate::error::Result;
use crate::pager::Pager;
use crate::undo_scope::UndoScope;

/// Pages are reserved in steps of this size, since each step takes a mutex.
const STEP: u64 = 16;

/// The reservations of one transaction. Released when dropped.
pub struct UndoReserve {
    pager: Arc<Pager>,
    pages: u64,
    log_bytes: u64,
}

impl Pager {
    pub fn undo_reserve(self: &Arc<Self>) -> UndoReserve {
        UndoReserve { pager: self.clone(), pages: 0, log_bytes: 0 }
    }

    /// Lets the calling thread use the undo reserve until the scope is dropped. Held while a transaction is rolled back.
    pub fn enter_undo(&self) -> UndoScope {
        UndoScope::enter()
    }
}

impl UndoReserve {
    /// Raises the reservation to at least `pages` pages. `Err(DiskFull)` changes nothing.
    pub fn reserve_pages(&mut self, pages: u64) -> Result<()> {
        if pages > self.pages {
            let more = (pages - self.pages).next_multiple_of(STEP);
            self.pager.reserve_for_undo(more)?;
            self.pages += more;
        }
        Ok(())
    }

    /// Sets the reserved WAL bytes. The next `admit` checks whether the segments have room for them.
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
