//! How the background thread is woken, and what a step of background work reports.

use std::sync::OnceLock;
use std::time::Duration;

use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stdx::sync::{Condvar, Mutex};

use crate::error::Error;

/// The result of a step of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// There may be more work right now.
    pub more: bool,
    /// If there is no more work now: the time until there will be some, in milliseconds.
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

/// Wakes the background thread.
#[derive(Default)]
pub(crate) struct BackgroundSignal {
    is_woken: Mutex<bool>,
    condvar: Condvar,
    /// When the background thread will wake by itself, in ms since 1970. Work that is due later needs no wake-up. 0: it is awake.
    pub wakes_at: AtomicU64,
    pub stop: AtomicBool,
    pub on_error: OnceLock<OnError>,
}

impl BackgroundSignal {
    pub fn wake(&self) {
        *self.is_woken.lock() = true;
        self.condvar.notify_all();
    }

    /// Makes sure that the background thread is awake at `time`, when a key expires.
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

    pub fn sleep(&self, sleep: Option<Duration>) {
        let mut is_woken = self.is_woken.lock();
        while !*is_woken {
            match sleep {
                None => is_woken = self.condvar.wait(is_woken),
                Some(sleep) => {
                    is_woken = self.condvar.wait_timeout(is_woken, sleep).0;
                    break;
                }
            }
        }
        *is_woken = false;
    }
}

/// How long due work waits, so that keys expire in groups.
pub(crate) const BATCHING_DELAY: Duration = Duration::from_millis(20);
