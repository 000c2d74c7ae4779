//! Page reads that nobody waits for: a queue, and threads that take what is in it, read it in one submission, and say so.
//!
//! Whoever serves many requests at once asks here for the pages that are absent, goes on with other requests, and is called when they are in memory. So the disk
//! has as many reads before it as there are requests that need one, and no thread stands behind each of them.

use std::collections::VecDeque;
use std::sync::Arc;

use stdx::sync::atomic::{AtomicUsize, Ordering};
use stdx::sync::{Condvar, Mutex};

use crate::page::PageId;
use crate::pager::Pager;

/// Threads that read. Each waits for its own submission, so that while one fills frames others keep the disk busy.
pub(crate) const READERS: usize = 4;
/// Pages of one submission.
const BATCH: usize = 64;

/// Called when the pages that were asked for are in memory, as far as they could be read.
pub type Then = Box<dyn FnOnce() + Send>;

/// A request for several pages.
struct Fetch {
    left: AtomicUsize,
    then: Mutex<Option<Then>>,
}

impl Fetch {
    fn done(&self, pages: usize) {
        if self.left.fetch_sub(pages, Ordering::AcqRel) == pages {
            let then = self.then.lock().take().expect("called once, by who settles the last page");
            then();
        }
    }
}

#[derive(Default)]
struct Queue {
    pages: VecDeque<(PageId, Arc<Fetch>)>,
    stop: bool,
}

/// Pages that are wanted, and those who wait for work.
#[derive(Default)]
pub(crate) struct Fetcher {
    queue: Mutex<Queue>,
    bell: Condvar,
}

impl Pager {
    /// Has the pages read in and then calls `then`, in this thread or another. Does not wait, except where there are no background threads: then it reads here.
    ///
    /// Best effort: a page that cannot be read now is read, and complained about, when it is used.
    pub fn fetch(&self, pids: &[PageId], then: Then) {
        let mut absent: Vec<PageId> =
            pids.iter().copied().filter(|pid| self.is_in_file(*pid) && !self.is_resident(*pid)).collect();
        absent.sort_unstable();
        absent.dedup();
        if absent.is_empty() || self.is_stepped() {
            self.load_together(&absent, false);
            return then();
        }
        let fetch = Arc::new(Fetch { left: AtomicUsize::new(absent.len()), then: Mutex::new(Some(then)) });
        let mut queue = self.fetcher.queue.lock();
        if queue.stop {
            drop(queue);
            return fetch.done(absent.len());
        }
        queue.pages.extend(absent.into_iter().map(|pid| (pid, fetch.clone())));
        drop(queue);
        self.fetcher.bell.notify_one();
    }

    /// A reader's life.
    pub(crate) fn run_reader(&self) {
        let mut batch: Vec<(PageId, Arc<Fetch>)> = Vec::with_capacity(BATCH);
        let mut pids = Vec::with_capacity(BATCH);
        while self.fetcher.take(&mut batch) {
            pids.extend(batch.iter().map(|(pid, _)| *pid));
            self.load_together(&pids, false);
            pids.clear();
            batch.drain(..).for_each(|(_, fetch)| fetch.done(1));
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
        left.into_iter().for_each(|(_, fetch)| fetch.done(1));
    }
}

impl Fetcher {
    /// Waits for pages to read; false: there will be none.
    fn take(&self, batch: &mut Vec<(PageId, Arc<Fetch>)>) -> bool {
        let mut queue = self.queue.lock();
        while queue.pages.is_empty() {
            if queue.stop {
                return false;
            }
            queue = self.bell.wait(queue);
        }
        let count = queue.pages.len().min(BATCH);
        batch.extend(queue.pages.drain(..count));
        if !queue.pages.is_empty() {
            self.bell.notify_one();
        }
        true
    }
}
