//! Room kept for undo, so that taking a transaction back does not need what a full disk has not got.
//!
//! A record that grows again to what it was may find its leaf filled by others, and then a page is needed to split it; and whatever undo does is logged.
//! So whoever changes something that may have to be undone puts pages and log aside first, and is refused if there are none (S3, L7). Undo itself runs while
//! `spend` lives and may take them. All of it is only counted: a crash forgets the counts, and the pages are as free as before for the undo of recovery.

use std::cell::Cell;
use std::sync::Arc;

use crate::error::Result;
use crate::pager::Pager;

thread_local! {
    static SPENDING: Cell<u32> = const { Cell::new(0) };
}

/// Pages are put aside so many at a time, for it takes a mutex.
const STEP: u64 = 16;

/// What one transaction has put aside. Given back when it is dropped.
pub struct Aside {
    pager: Arc<Pager>,
    pages: u64,
    log_bytes: u64,
}

/// While it lives, its thread may take pages that are put aside, whoever did it.
pub struct Spending(());

impl Pager {
    pub fn aside(self: &Arc<Self>) -> Aside {
        Aside { pager: self.clone(), pages: 0, log_bytes: 0 }
    }

    /// To be held while a transaction is taken back.
    pub fn spend(&self) -> Spending {
        SPENDING.set(SPENDING.get() + 1);
        Spending(())
    }
}

impl Drop for Spending {
    fn drop(&mut self) {
        SPENDING.set(SPENDING.get() - 1);
    }
}

pub(crate) fn is_spending() -> bool {
    SPENDING.get() > 0
}

impl Aside {
    /// Has at least `pages` pages put aside. `Err(DiskFull)` changes nothing.
    pub fn pages(&mut self, pages: u64) -> Result<()> {
        if pages > self.pages {
            let more = (pages - self.pages).next_multiple_of(STEP);
            self.pager.put_aside(more)?;
            self.pages += more;
        }
        Ok(())
    }

    /// Has `bytes` of log put aside. Whether they are there is asked by the next `admit`.
    pub fn log(&mut self, bytes: u64) {
        self.pager.log().owe(bytes, self.log_bytes);
        self.log_bytes = bytes;
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.pager.take_back(self.pages);
        self.pager.log().owe(0, self.log_bytes);
    }
}
