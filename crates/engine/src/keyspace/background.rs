//! The background thread: removes expired keys and garbage.
//!
//! It sleeps while there is nothing to do, until the next key expires or another thread wakes it. In single-threaded simulation the caller runs the steps.

use std::sync::Arc;
use std::time::Duration;

use stdx::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::keyspace::background_signal::{BATCHING_DELAY, OnError, Progress};
use crate::keyspace::state::Keyspace;

/// Records per step.
const STEP: usize = 256;
/// Longest sleep while keys have an expiry time, since the clock may be set.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// Pause after an error, such as a full disk.
const PAUSE: Duration = Duration::from_millis(500);

impl Keyspace {
    /// Runs one step of expiry and purge.
    pub fn background_step(&self, budget: usize) -> Result<Progress> {
        let expiry = match self.expire_pause() {
            None => self.expire_step(budget)?,
            Some(left) => Progress::idle(left),
        };
        let purge = self.purge_step(budget)?;
        let others = self.others.get().map_or(Ok(Progress::idle(None)), |others| others(budget))?;
        let due_ms = [expiry.due_ms, others.due_ms].into_iter().flatten().min();
        Ok(Progress { more: expiry.more || purge.more || others.more, due_ms })
    }

    /// Registers a call for each error of a background step, made from the background thread, which goes on after a pause. Later registrations are ignored.
    pub fn on_background_error(&self, call: OnError) {
        let _ = self.background.on_error.set(call);
    }

    pub(crate) fn run_background(&self) {
        while !self.background.stop.load(Ordering::Acquire) {
            self.background.wakes_at.store(0, Ordering::SeqCst);
            match self.background_step(STEP) {
                Ok(Progress { more: true, .. }) => {}
                Ok(Progress { due_ms, .. }) => self.sleep_until_due(due_ms),
                Err(Error::ShuttingDown) => return,
                Err(error) => {
                    self.store.metrics.background_errors.add(1);
                    if let Some(call) = self.background.on_error.get() {
                        call(&error);
                    }
                    self.background.sleep(Some(PAUSE));
                }
            }
        }
    }

    fn sleep_until_due(&self, due_ms: Option<u64>) {
        let sleep = due_ms.map(|due| Duration::from_millis(due).clamp(BATCHING_DELAY, SLEEP_MAX));
        let now = self.clock.wall_ms();
        let until = sleep.map_or(u64::MAX, |sleep| now + sleep.as_millis() as u64);
        self.background.wakes_at.store(until, Ordering::SeqCst);
        // A key may have got its expiry time between the step and the store. Its writer either saw the store and woke us, or we see the entry here.
        let seen = if self.expire_pause().is_some() { None } else { self.expire_due().unwrap_or(None) };
        // The same holds for the other parts' work: if there is some, it is due at once.
        let left = self.others.get().map_or(Ok(Progress::idle(None)), |others| others(0));
        if left.is_ok_and(|left| left.more || left.due_ms.is_some_and(|_| sleep.is_none())) {
            return;
        }
        if seen.is_none_or(|time| time >= until || until - time <= BATCHING_DELAY.as_millis() as u64) {
            self.background.sleep(sleep);
        }
    }

    pub(crate) fn start_background(self: &Arc<Self>) -> std::thread::JoinHandle<()> {
        let keyspace = self.clone();
        let thread = std::thread::Builder::new().name("keyspace".into());
        thread.spawn(move || keyspace.run_background()).expect("a thread at start")
    }
}
