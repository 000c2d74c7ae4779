//! Asynchronous reads of pages: the caller is called back when its page is in memory.
//!
//! A thread that serves many requests fetches the absent pages of all of them and goes on with other requests. So the device has as many reads in flight as
//! there are requests that need one, and no thread waits for each. A thread attached to a `ReadQueue` reads through it; the reader threads (`reader_pool`)
//! get what the queue does not take: pages without a free frame, and reads beyond its depth.

use crate::error::Result;
use crate::page::PageId;
use crate::pager::Pager;
use crate::reader_pool::{BATCH, ReadCallback};

impl Pager {
    /// Reads the pages and runs the callback of each, in this thread or another, once the page is in memory. Does not wait, except without background
    /// threads: then it reads in this thread.
    ///
    /// Best effort: a page that cannot be read now is read, and its error reported, when it is used.
    pub fn fetch(&self, pages: impl IntoIterator<Item = (PageId, ReadCallback)>) {
        let (absent, here): (Vec<_>, Vec<_>) =
            pages.into_iter().partition(|(pid, _)| self.is_in_file(*pid) && !self.is_resident(*pid));
        here.into_iter().for_each(|(_, callback)| callback());
        if self.is_manual() {
            let mut pids: Vec<PageId> = absent.iter().map(|(pid, _)| *pid).collect();
            pids.sort_unstable();
            pids.dedup();
            self.load_together(&pids, false);
            return absent.into_iter().for_each(|(_, callback)| callback());
        }
        let absent = self.fetch_in_queue(absent);
        if absent.is_empty() {
            return;
        }
        let mut queue = self.readers.requests.lock();
        if queue.stop {
            drop(queue);
            return absent.into_iter().for_each(|(_, callback)| callback());
        }
        queue.pages.extend(absent);
        drop(queue);
        self.readers.wake.notify_one();
    }

    /// The loop of a reader thread.
    pub(crate) fn run_reader(&self) {
        let mut batch: Vec<(PageId, ReadCallback)> = Vec::with_capacity(BATCH);
        let mut pids = Vec::with_capacity(BATCH);
        while self.readers.take(&mut batch) {
            pids.extend(batch.iter().map(|(pid, _)| *pid));
            pids.sort_unstable();
            pids.dedup();
            // The pager stops: each request finds out by itself.
            let _ = self.load_all(&pids);
            for pid in pids.drain(..) {
                self.wait_until_loaded(pid);
            }
            batch.drain(..).for_each(|(_, callback)| callback());
        }
    }

    /// Reads the pages, in several pieces if frames are rare. Waits for the cleaner if there is no frame, and holds none meanwhile (PG-24). A page that
    /// cannot be read is not in memory afterwards.
    pub(crate) fn load_all(&self, mut pids: &[PageId]) -> Result<()> {
        while !pids.is_empty() {
            let count = self.load_together(pids, false);
            pids = &pids[count..];
            if count == 0 {
                self.wait_for_free_frame()?;
            }
        }
        Ok(())
    }

    /// Waits for a page that another thread is reading, so that the request called back does not have to.
    fn wait_until_loaded(&self, pid: PageId) {
        if let Some(frame) = self.pool.find(pid) {
            self.pool.frames[frame].version(&self.pool.lot);
        }
    }

    /// Stops the reader threads and runs the callbacks of all pending reads.
    pub(crate) fn stop_readers(&self) {
        let left = {
            let mut queue = self.readers.requests.lock();
            queue.stop = true;
            std::mem::take(&mut queue.pages)
        };
        self.readers.wake.notify_all();
        self.pool.lot.drain_read_queues();
        left.into_iter().for_each(|(_, callback)| callback());
    }
}
