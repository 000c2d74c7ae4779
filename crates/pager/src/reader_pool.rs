//! Requests to the reader threads, which read pages that no async read queue takes.

use std::collections::VecDeque;

use stdx::sync::{Condvar, Mutex};

use crate::page::PageId;

/// Number of reader threads. Each waits for its own submission, so that the others keep the disk busy while one fills frames.
pub(crate) const READERS: usize = 4;
/// Pages of one submission.
pub(crate) const BATCH: usize = 64;

/// Called when the requested page is in memory, or could not be read.
pub type ReadCallback = Box<dyn FnOnce() + Send>;

/// The queue of requested pages.
#[derive(Default)]
pub(crate) struct ReadRequests {
    pub(crate) pages: VecDeque<(PageId, ReadCallback)>,
    pub(crate) stop: bool,
}

/// Requested pages, and the condition variable of idle reader threads.
#[derive(Default)]
pub(crate) struct ReaderPool {
    pub(crate) requests: Mutex<ReadRequests>,
    pub(crate) wake: Condvar,
}

impl ReaderPool {
    /// Waits for requests and moves a share of them to `batch`. Returns false when the pager stops.
    pub(crate) fn take(&self, batch: &mut Vec<(PageId, ReadCallback)>) -> bool {
        let mut queue = self.requests.lock();
        while queue.pages.is_empty() {
            if queue.stop {
                return false;
            }
            queue = self.wake.wait(queue);
        }
        // A share, not all: the first page of a large batch would wait for the last.
        let count = queue.pages.len().div_ceil(READERS).min(BATCH);
        batch.extend(queue.pages.drain(..count));
        if !queue.pages.is_empty() {
            self.wake.notify_one();
        }
        true
    }
}
