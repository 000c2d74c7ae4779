//! Page reads that nobody waits for: a queue, and threads that take what is in it, read it in one submission, and say so. Threads with a lane of their own
//! (`lane`) leave to the queue only what finds no frame or no room there.
//!
//! Whoever serves many requests at once asks here for the pages that are absent, goes on with other requests, and is called when they are in memory. So the disk
//! has as many reads before it as there are requests that need one, and no thread stands behind each of them.

use std::collections::VecDeque;

use stdx::sync::{Condvar, Mutex};

use crate::page::PageId;
use crate::pager::Pager;

/// Threads that read. Each waits for its own submission, so that while one fills frames others keep the disk busy.
pub(crate) const READERS: usize = 4;
/// Pages of one submission.
const BATCH: usize = 64;

/// Called when the page that was asked for is in memory, if it could be read.
pub type ReadCallback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    pages: VecDeque<(PageId, ReadCallback)>,
    stop: bool,
}

/// Pages that are wanted, and those who wait for work.
#[derive(Default)]
pub(crate) struct Fetcher {
    queue: Mutex<Queue>,
    bell: Condvar,
}

impl Pager {
    /// Has pages read in, and for each of them calls what stands beside it, in this thread or another. Does not wait, except where there are no background
    /// threads: then it reads here.
    ///
    /// Best effort: a page that cannot be read now is read, and complained about, when it is used.
    pub fn fetch(&self, pages: impl IntoIterator<Item = (PageId, ReadCallback)>) {
        let (absent, here): (Vec<_>, Vec<_>) =
            pages.into_iter().partition(|(pid, _)| self.is_in_file(*pid) && !self.is_resident(*pid));
        here.into_iter().for_each(|(_, then)| then());
        if self.is_stepped() {
            let mut pids: Vec<PageId> = absent.iter().map(|(pid, _)| *pid).collect();
            pids.sort_unstable();
            pids.dedup();
            self.load_together(&pids, false);
            return absent.into_iter().for_each(|(_, then)| then());
        }
        let absent = self.fetch_in_queue(absent);
        if absent.is_empty() {
            return;
        }
        let mut queue = self.fetcher.queue.lock();
        if queue.stop {
            drop(queue);
            return absent.into_iter().for_each(|(_, then)| then());
        }
        queue.pages.extend(absent);
        drop(queue);
        self.fetcher.bell.notify_one();
    }

    /// A reader's life.
    pub(crate) fn run_reader(&self) {
        let mut batch: Vec<(PageId, ReadCallback)> = Vec::with_capacity(BATCH);
        let mut pids = Vec::with_capacity(BATCH);
        while self.fetcher.take(&mut batch) {
            pids.extend(batch.iter().map(|(pid, _)| *pid));
            pids.sort_unstable();
            pids.dedup();
            self.load_all(&pids);
            for pid in pids.drain(..) {
                self.wait_until_loaded(pid);
            }
            batch.drain(..).for_each(|(_, then)| then());
        }
    }

    /// Reads the pages, in pieces where frames are rare, and waits for the cleaner where there is none.
    fn load_all(&self, mut pids: &[PageId]) {
        while !pids.is_empty() {
            let count = self.load_together(pids, false);
            pids = &pids[count..];
            if count == 0 && self.relieve().is_err() {
                return;
            }
        }
    }

    /// Another thread may have been reading the page already: waits here, lest who asked for it wait inside a request.
    fn wait_until_loaded(&self, pid: PageId) {
        if let Some(frame) = self.pool.find(pid) {
            self.pool.frames[frame].version(&self.pool.lot);
        }
    }

    /// Lets the readers end; who still waits for pages is called.
    pub(crate) fn stop_readers(&self) {
        let left = {
            let mut queue = self.fetcher.queue.lock();
            queue.stop = true;
            std::mem::take(&mut queue.pages)
        };
        self.fetcher.bell.notify_all();
        self.pool.lot.lanes().for_each(|lane| lane.drain());
        left.into_iter().for_each(|(_, then)| then());
    }
}

impl Fetcher {
    /// Waits for pages to read; false: there will be none.
    fn take(&self, batch: &mut Vec<(PageId, ReadCallback)>) -> bool {
        let mut queue = self.queue.lock();
        while queue.pages.is_empty() {
            if queue.stop {
                return false;
            }
            queue = self.bell.wait(queue);
        }
        // A share, not all: the first of a large batch would wait for its last.
        let count = queue.pages.len().div_ceil(READERS).min(BATCH);
        batch.extend(queue.pages.drain(..count));
        if !queue.pages.is_empty() {
            self.bell.notify_one();
        }
        true
    }
}
