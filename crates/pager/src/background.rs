//! The background threads.

use std::sync::Arc;
use std::time::Duration;

use stdx::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::page::Lsn;
use crate::pager::{self, Pager};
use crate::reader_pool::READERS;

impl Pager {
    pub(crate) fn start_threads(self: &Arc<Self>) {
        let mut threads = self.threads.lock();
        let flusher = self.clone();
        let cleaner = self.clone();
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(body).expect("a thread at start")
        };
        threads.push(spawn("log-flusher", Box::new(move || flusher.run_flusher())));
        threads.push(spawn("page-cleaner", Box::new(move || cleaner.run_cleaner())));
        for _ in 0..READERS {
            let reader = self.clone();
            threads.push(spawn("page-reader", Box::new(move || reader.run_reader())));
        }
    }

    fn run_flusher(&self) {
        let watch = |durable: Lsn| {
            let far = Self::checkpoint_age_max(self.options.checkpoint_distance);
            if durable.saturating_sub(self.checkpoint_lsn()) > far || self.wal().wants_segment() {
                self.wake_cleaner();
            }
        };
        if let Err(error) = self.wal().run(&self.stop, &watch) {
            self.fail(&error);
        }
    }

    /// A log of this length is made shorter, to about a quarter of the distance: rarely enough, for it means a look at every frame, and soon enough, for
    /// the log grows on meanwhile.
    fn checkpoint_age_max(distance: u64) -> u64 {
        distance / 8 * 5
    }

    /// The log device failed: what it holds is unknown, so nothing may be acknowledged any more.
    fn fail(&self, error: &Error) -> ! {
        self.fatal("the log cannot be written, stopping so that nothing unwritten is acknowledged", error)
    }

    /// Stops the process, because what is in memory can no longer be made right while what is in the log can.
    pub fn fatal(&self, what: &str, error: &Error) -> ! {
        if let Some(hook) = self.failure_hook.get() {
            hook(error);
        }
        eprintln!("beluga: {what}: {error}");
        std::process::abort();
    }

    fn run_cleaner(&self) {
        pager::become_cleaner();
        let mut retry = None;
        while !self.stop.load(Ordering::Acquire) {
            self.wait_for_signal(retry);
            retry = match self.background_step() {
                Ok(()) => None,
                Err(error) => {
                    self.full.store(matches!(error, Error::DiskFull { .. }), Ordering::Relaxed);
                    Some(Duration::from_millis(200))
                }
            };
        }
    }

    fn wait_for_signal(&self, timeout: Option<Duration>) {
        let mut signalled = self.cleaner_signal.0.lock();
        while !*signalled {
            match timeout {
                None => signalled = self.cleaner_signal.1.wait(signalled),
                Some(timeout) => {
                    signalled = self.cleaner_signal.1.wait_timeout(signalled, timeout).0;
                    break;
                }
            }
        }
        *signalled = false;
    }

    /// One round of background work: a segment ahead, room ahead, frames for eviction, a shorter log.
    pub fn background_step(&self) -> Result<()> {
        self.cleaner_woken.store(false, Ordering::Relaxed);
        while self.pool.wants_cleaning() && !self.stop.load(Ordering::Relaxed) {
            let cleaned = self.clean_ahead()?;
            self.notify_cleaned();
            if cleaned == 0 {
                break;
            }
        }
        let distance = self.options.checkpoint_distance;
        let durable = self.durable().get();
        if durable.saturating_sub(self.checkpoint_lsn()) > Self::checkpoint_age_max(distance) {
            self.clean_until(durable.saturating_sub(distance / 4))?;
            self.checkpoint()?;
        }
        let segment = self.wal().prepare();
        if segment.is_err() {
            // A checkpoint may free old segments for reuse.
            self.checkpoint_all()?;
            self.wal().prepare()?;
        }
        self.grow_ahead()?;
        self.full.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Makes everything durable, writes the dirty pages, makes a checkpoint and ends the background threads.
    pub fn close(&self) -> Result<()> {
        let result = self.checkpoint_all().map(drop);
        self.stop_threads();
        result
    }

    fn stop_threads(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wal().wake_flusher();
        self.wake_cleaner();
        self.stop_readers();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}
