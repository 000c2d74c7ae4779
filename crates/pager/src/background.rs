//! The background threads: the WAL flusher, the page cleaner, the page readers; starting and stopping them.
//!
//! The cleaner sleeps until it is signalled: by the flusher when the WAL has grown far beyond the last checkpoint or needs a segment, by a thread that
//! needs a frame, by a write that found no space. One `background_step` then does whatever is due. After a failure it retries every 200 ms.

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
        self.has_cleaner.store(true, Ordering::Release);
        for _ in 0..READERS {
            let reader = self.clone();
            threads.push(spawn("page-reader", Box::new(move || reader.run_reader())));
        }
    }

    fn run_flusher(&self) {
        let watch = |durable: Lsn| {
            let age_max = Self::checkpoint_age_max(self.options.checkpoint_distance);
            if durable.saturating_sub(self.checkpoint_lsn()) > age_max || self.wal().wants_segment() {
                self.wake_cleaner();
            }
        };
        if let Err(error) = self.wal().run(&self.stop, &watch) {
            self.fail(&error);
        }
    }

    /// Returns the WAL length beyond the checkpoint, in bytes, that triggers the next one, which shortens the WAL to about a quarter of the distance.
    /// Five eighths: not often, since a checkpoint reads every frame header, and early enough, since the WAL grows meanwhile.
    fn checkpoint_age_max(distance: u64) -> u64 {
        distance / 8 * 5
    }

    /// Stops the process after a failed WAL write: the content of the device is unknown, so nothing may be acknowledged any more.
    fn fail(&self, error: &Error) -> ! {
        self.fatal("the log cannot be written, stopping so that nothing unwritten is acknowledged", error)
    }

    /// Stops the process: memory cannot be made consistent any more, while recovery from the WAL can be. Calls the failure hook first.
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

    /// Starts the cleaner of recovery: it cleans frames for eviction and does nothing else, since there is no WAL to append to yet. It ends when the guard
    /// is dropped, or with an error of the disk, which the threads that need a frame then meet themselves.
    pub(crate) fn recovery_cleaner<'s>(&'s self, scope: &'s std::thread::Scope<'s, '_>) -> RecoveryCleaner<'s> {
        self.has_cleaner.store(true, Ordering::Release);
        scope.spawn(|| {
            pager::become_cleaner();
            while self.has_cleaner.load(Ordering::Acquire) {
                self.wait_for_signal(None);
                self.cleaner_woken.store(false, Ordering::Relaxed);
                let is_wanted = || self.pool.wants_cleaning() && self.has_cleaner.load(Ordering::Acquire);
                while is_wanted() {
                    match self.clean_ahead() {
                        Ok(0) => break,
                        Ok(_) => {}
                        Err(_) => self.has_cleaner.store(false, Ordering::Release),
                    }
                }
                self.notify_cleaned();
            }
        });
        RecoveryCleaner(self)
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

    /// Does one round of background work: cleans frames for eviction, makes a checkpoint if the WAL is long or one was requested, prepares a WAL segment,
    /// grows the data file ahead of use.
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
        if self.is_checkpoint_requested() {
            self.checkpoint_all()?;
            self.checkpoint_requested.store(false, Ordering::Release);
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

    /// Makes everything durable, writes the dirty pages, makes a checkpoint and stops the background threads.
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

/// Ends the cleaner of recovery when dropped.
pub(crate) struct RecoveryCleaner<'p>(&'p Pager);

impl Drop for RecoveryCleaner<'_> {
    fn drop(&mut self) {
        self.0.has_cleaner.store(false, Ordering::Release);
        self.0.wake_cleaner();
    }
}
