//! Work that nobody waits for: keys whose time has come, and what nobody names any more.
//!
//! One thread, asleep while there is nothing to do: until the next key expires, or somebody rings. In single-threaded simulation the caller steps.

use std::sync::Arc;
use std::time::Duration;

use stdx::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::keyspace::background_signal::{NAP, OnError, Progress};
use crate::keyspace::state::Keyspace;

/// Records of one step.
const STEP: usize = 256;
/// The clock may be set: the sleep is never longer than this while keys have a time.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// After an error, such as a full disk.
const PAUSE: Duration = Duration::from_millis(500);

impl Keyspace {
    /// One step of expiry and purge.
    pub fn background_step(&self, budget: usize) -> Result<Progress> {
        let expiry = match self.expire_rests() {
            None => self.expire_step(budget)?,
            Some(left) => Progress::idle(left),
        };
        let purge = self.purge_step(budget)?;
        let others = self.others.get().map_or(Ok(Progress::idle(None)), |others| others(budget))?;
        let due_ms = [expiry.due_ms, others.due_ms].into_iter().flatten().min();
        Ok(Progress { more: expiry.more || purge.more || others.more, due_ms })
    }

    /// Registers a call for each error that a background step meets, from the background's thread; the background goes on after a pause. Later registrations are ignored.
    pub fn on_background_error(&self, call: OnError) {
        let _ = self.background.on_error.set(call);
    }

    pub(crate) fn run_background(&self) {
        while !self.background.stop.load(Ordering::Acquire) {
            self.background.wakes_at.store(0, Ordering::SeqCst);
            match self.background_step(STEP) {
                Ok(Progress { more: true, .. }) => {}
                Ok(Progress { due_ms, .. }) => self.rest(due_ms),
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

    fn rest(&self, due_ms: Option<u64>) {
        let nap = due_ms.map(|due| Duration::from_millis(due).clamp(NAP, SLEEP_MAX));
        let now = self.clock.wall_ms();
        let until = nap.map_or(u64::MAX, |nap| now + nap.as_millis() as u64);
        self.background.wakes_at.store(until, Ordering::SeqCst);
        // A key may have got its time between the step and the store: it either saw the store and rang, or is seen here.
        let seen = if self.expire_rests().is_some() { None } else { self.expire_due().unwrap_or(None) };
        // The same of others' work: it is due at once, if there is some.
        let left = self.others.get().map_or(Ok(Progress::idle(None)), |others| others(0));
        if left.is_ok_and(|left| left.more || left.due_ms.is_some_and(|_| nap.is_none())) {
            return;
        }
        if seen.is_none_or(|time| time >= until || until - time <= NAP.as_millis() as u64) {
            self.background.sleep(nap);
        }
    }

    pub(crate) fn start_background(self: &Arc<Self>) -> std::thread::JoinHandle<()> {
        let keyspace = self.clone();
        let thread = std::thread::Builder::new().name("keyspace".into());
        thread.spawn(move || keyspace.run_background()).expect("a thread at start")
    }
}
