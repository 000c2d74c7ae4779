//! Page reads that nobody waits for.

use crate::page::PageId;
use crate::pager::Pager;
use crate::reader_pool::{BATCH, ReadCallback};

impl Pager {
    /// Has pages read in, and for each of them calls what stands beside it, in this thread or another. Does not wait, except where there are no background
    /// threads: then it reads here.
    ///
    /// Best effort: a page that cannot be read now is read, and complained about, when it is used.
    pub fn fetch(&self, pages: impl IntoIterator<Item = (PageId, ReadCallback)>) {
        let (absent, here): (Vec<_>, Vec<_>) =
            pages.into_iter().partition(|(pid, _)| self.is_in_file(*pid) && !self.is_resident(*pid));
        here.into_iter().for_each(|(_, then)| then());
        if self.is_manual() {
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
        let mut queue = self.readers.requests.lock();
        if queue.stop {
            drop(queue);
            return absent.into_iter().for_each(|(_, then)| then());
        }
        queue.pages.extend(absent);
        drop(queue);
        self.readers.wake.notify_one();
    }

    /// A reader's life.
    pub(crate) fn run_reader(&self) {
        let mut batch: Vec<(PageId, ReadCallback)> = Vec::with_capacity(BATCH);
        let mut pids = Vec::with_capacity(BATCH);
        while self.readers.take(&mut batch) {
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
            if count == 0 && self.wait_for_free_frame().is_err() {
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
            let mut queue = self.readers.requests.lock();
            queue.stop = true;
            std::mem::take(&mut queue.pages)
        };
        self.readers.wake.notify_all();
        self.pool.lot.drain_read_queues();
        left.into_iter().for_each(|(_, then)| then());
    }
}
