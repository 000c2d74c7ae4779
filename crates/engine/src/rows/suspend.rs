//! Reads that leave rather than wait for the disk: who serves many clients with one thread has the pages brought, serves others, and begins again.
//!
//! Hard part: whoever leaves must have changed nothing. So only reads leave; a change asks about its pages first (`look_ahead`), and then waits for what is still missing.

use std::sync::Arc;
use std::time::Instant;

use btree::{LeafHint, ReadMode};
use pager::{PageId, ReadCallback};
use stdx::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::rows::lock_queue::SuspendedWait;
use crate::rows::state::Rows;
use crate::rows::status_table::Wake;
use crate::rows::transaction::Transaction;
use crate::rows::wait_mode::SUSPENDS_MAX;
use crate::store::trees::MapId;

impl Transaction {
    /// With `ReadMode::CachedOnly`, reads of rows that would wait for the disk fail with `Error::WouldBlock` from here on, having changed nothing. A transaction begins with `ReadMode::MayRead`.
    pub fn set_read_mode(&mut self, mode: ReadMode) {
        self.near.read_mode = mode;
    }

    /// From here on a wait for a row's lock fails with `Error::WouldBlock`, having changed nothing, and goes on without a thread (`Transaction::park`); until the next change, or
    /// `suspend_for_rows(false)`, which also ends the wait.
    pub fn suspend_for_rows(&mut self, suspends: bool) {
        self.near.suspends = suspends.then(|| self.near.suspends_left.unwrap_or(SUSPENDS_MAX));
    }

    /// The statement is over, and with it a wait for a row.
    pub fn end_suspension(&mut self) {
        self.near.suspends = None;
        self.near.suspends_left = None;
        self.drop_suspended();
    }

    /// The end of the wait for a row for which the statement is suspended, if it is.
    pub fn suspended_until(&self) -> Option<Instant> {
        self.suspended.as_ref().map(|suspended| suspended.until)
    }

    /// `wake` is called when the row may be tried again: the statement is restarted then.
    pub fn park(&self, wake: Wake) {
        match &self.suspended {
            Some(suspended) => suspended.park(wake),
            None => wake(),
        }
    }

    /// May the row be tried again?
    pub fn is_ready(&self) -> bool {
        self.suspended.as_ref().is_none_or(SuspendedWait::is_ready)
    }

    /// The pages that the last `Error::WouldBlock` was about, for `Rows::fetch`.
    pub fn take_absent(&mut self) -> Vec<PageId> {
        std::mem::take(&mut self.near.absent)
    }

    /// True if memory cannot hold all pages: `look_ahead` is worth its descents then.
    pub fn is_crowded(&self) -> bool {
        self.rows.store.pager.is_crowded()
    }

    /// Before a change of these rows: the pages that it will need are brought together, or named by `Error::WouldBlock`.
    pub fn look_ahead(&mut self, keys: &[(MapId, &[u8])]) -> Result<()> {
        let mut ahead = Vec::with_capacity(keys.len());
        for (map, key) in keys {
            self.rows.map(*map)?.tree.locate_leaves(&[key], &mut ahead);
        }
        let absent: Vec<PageId> = ahead.into_iter().filter_map(LeafHint::missing_page).collect();
        if absent.is_empty() {
            return Ok(());
        }
        if self.near.read_mode == ReadMode::CachedOnly {
            self.near.absent = absent;
            return Err(Error::WouldBlock);
        }
        self.rows.store.pager.prefetch_many(&absent);
        Ok(())
    }
}

impl Rows {
    /// Has the pages read, and calls `then` when all of them are in memory, or cannot be read; in this thread or another. Does not wait.
    pub fn fetch(&self, pages: &[PageId], then: ReadCallback) {
        let (left, then) =
            (Arc::new(AtomicUsize::new(pages.len().max(1))), Arc::new(stdx::sync::Mutex::new(Some(then))));
        let one = || -> ReadCallback {
            let (left, then) = (left.clone(), then.clone());
            Box::new(move || {
                if left.fetch_sub(1, Ordering::AcqRel) == 1
                    && let Some(then) = then.lock().take()
                {
                    then();
                }
            })
        };
        match pages {
            [] => one()(),
            pages => self.store.pager.fetch(pages.iter().map(|page| (*page, one()))),
        }
    }
}
