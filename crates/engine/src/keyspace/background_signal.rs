//! SIGNAL.

use std::sync::OnceLock;
use std::time::Duration;

use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stdx::sync::{Condvar, Mutex};

use crate::error::Error;

/// What a step of background work found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// There may be more to do at once.
    pub more: bool,
    /// Otherwise: there is something to do in so many milliseconds.
    pub due_ms: Option<u64>,
}

impl Progress {
    pub(crate) fn more() -> Progress {
        Progress { more: true, due_ms: None }
    }

    pub(crate) fn idle(due_ms: Option<u64>) -> Progress {
        Progress { more: false, due_ms }
    }
}

/// Called with each error of a background step.
pub type OnError = Box<dyn Fn(&Error) + Send + Sync>;

/// Wakes the background.
#[derive(Default)]
pub(crate) struct BackgroundSignal {
    rung: Mutex<bool>,
    condvar: Condvar,
    /// When the background will wake by itself, ms since 1970; nobody needs to ring for anything later. 0: it is awake.
    pub wakes_at: AtomicU64,
    pub stop: AtomicBool,
    pub on_error: OnceLock<OnError>,
}

impl BackgroundSignal {
    pub fn wake(&self) {
        *self.rung.lock() = true;
        self.condvar.notify_all();
    }

    /// A key will expire at `time`.
    #[inline]
    pub fn due(&self, time: u64) {
        if time < self.wakes_at.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
    }

    pub fn sleep(&self, nap: Option<Duration>) {
        let mut rung = self.rung.lock();
        while !*rung {
            match nap {
                None => rung = self.condvar.wait(rung),
                Some(nap) => {
                    rung = self.condvar.wait_timeout(rung, nap).0;
                    break;
                }
            }
        }
        *rung = false;
    }
}

/// Expiry in groups rather than one by one.
pub(crate) const NAP: Duration = Duration::from_millis(20);
