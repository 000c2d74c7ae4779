//! Statements that are suspended instead of blocking their thread: on a page miss, or for a row lock. The caller requests the pages or parks the statement,
//! serves other clients, and restarts the statement.
//!
//! Hard part: a suspended statement must not have changed anything. So only reads are suspended. A change first asks for its pages (`look_ahead`), and then
//! waits for those that are still missing.

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
    /// Sets the read mode. With `ReadMode::CachedOnly`, reads of rows that would wait for the disk fail with `Error::WouldBlock`, having changed nothing. A
    /// transaction begins with `ReadMode::MayRead`.
    pub fn set_read_mode(&mut self, mode: ReadMode) {
        self.wait_mode.read_mode = mode;
    }

    /// Makes waits for row locks fail with `Error::WouldBlock`, having changed nothing, until the next change. The wait goes on without a thread
    /// (`Transaction::park`). `suspend_for_rows(false)` makes waits block again, and ends the present one.
    pub fn suspend_for_rows(&mut self, suspends: bool) {
        self.wait_mode.suspends = suspends.then(|| self.wait_mode.suspends_left.unwrap_or(SUSPENDS_MAX));
    }

    /// Ends the statement, and with it a wait for a row.
    pub fn end_suspension(&mut self) {
        self.wait_mode.suspends = None;
        self.wait_mode.suspends_left = None;
        self.drop_suspended();
    }

    /// Returns when the wait ends for which the statement is suspended, if it is.
    pub fn suspended_until(&self) -> Option<Instant> {
        self.suspended.as_ref().map(|suspended| suspended.until)
    }

    /// Registers `wake`, to be called when the row may be tried again. The statement is restarted then.
    pub fn park(&self, wake: Wake) {
        match &self.suspended {
            Some(suspended) => suspended.park(wake),
            None => wake(),
        }
    }

    /// Returns true if the row may be tried again.
    pub fn is_ready(&self) -> bool {
        self.suspended.as_ref().is_none_or(SuspendedWait::is_ready)
    }

    /// Takes the pages that the last `Error::WouldBlock` was about, for `Rows::fetch`.
    pub fn take_absent(&mut self) -> Vec<PageId> {
        std::mem::take(&mut self.wait_mode.absent)
    }

    /// Returns true if memory cannot hold all pages, so that `look_ahead` is worth its descents.
    pub fn is_crowded(&self) -> bool {
        self.rows.store.pager.is_crowded()
    }

    /// Prefetches the pages that a change of these rows will need, or fails with `Error::WouldBlock`, which names them.
    pub fn look_ahead(&mut self, keys: &[(MapId, &[u8])]) -> Result<()> {
        let mut ahead = Vec::with_capacity(keys.len());
        for (map, key) in keys {
            self.rows.map(*map)?.tree.locate_leaves(&[key], &mut ahead);
        }
        let absent: Vec<PageId> = ahead.into_iter().filter_map(LeafHint::missing_page).collect();
        if absent.is_empty() {
            return Ok(());
        }
        if self.wait_mode.read_mode == ReadMode::CachedOnly {
            self.wait_mode.absent = absent;
            return Err(Error::WouldBlock);
        }
        self.rows.store.pager.prefetch_many(&absent);
        Ok(())
    }
}

impl Rows {
    /// Requests the pages, and calls `then` in this thread or another when all of them are in memory or have failed. Does not block.
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
