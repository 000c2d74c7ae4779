//! The reader threads' requests.

use std::collections::VecDeque;

use stdx::sync::{Condvar, Mutex};

use crate::page::PageId;

/// Threads that read. Each waits for its own submission, so that while one fills frames others keep the disk busy.
pub(crate) const READERS: usize = 4;
/// Pages of one submission.
pub(crate) const BATCH: usize = 64;

/// Called when the page that was asked for is in memory, if it could be read.
pub type ReadCallback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(crate) struct ReadRequests {
    pub(crate) pages: VecDeque<(PageId, ReadCallback)>,
    pub(crate) stop: bool,
}

/// Pages that are wanted, and those who wait for work.
#[derive(Default)]
pub(crate) struct ReaderPool {
    pub(crate) requests: Mutex<ReadRequests>,
    pub(crate) wake: Condvar,
}

impl ReaderPool {
    /// Waits for pages to read; false: there will be none.
    pub(crate) fn take(&self, batch: &mut Vec<(PageId, ReadCallback)>) -> bool {
        let mut queue = self.requests.lock();
        while queue.pages.is_empty() {
            if queue.stop {
                return false;
            }
            queue = self.wake.wait(queue);
        }
        // A share, not all: the first of a large batch would wait for its last.
        let count = queue.pages.len().div_ceil(READERS).min(BATCH);
        batch.extend(queue.pages.drain(..count));
        if !queue.pages.is_empty() {
            self.wake.notify_one();
        }
        true
    }
}
