//! Where one background thread sleeps until there is work for it.
//!
//! Hard part: the work shows elsewhere (a counter, a flag), and the thread must not miss what arrives between its last look and its sleep. It publishes its depth first and then looks for
//! work; the other threads leave their work first and then read the depth, with a SeqCst fence in between (or SeqCst on both sides). So at least one of the two sees the other (SX-3).

use std::time::{Duration, Instant};

use crate::sync::atomic::{AtomicU32, Ordering, fence};
use crate::sync::{Condvar, Mutex};

/// How much work it takes to wake the thread. The threads that unpark it define what `Light` and `Deep` mean.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum Depth {
    Awake = 0,
    Light = 1,
    Deep = 2,
}

pub struct Parker {
    depth: AtomicU32,
    /// The thread was unparked and has not consumed that yet.
    is_unparked: Mutex<bool>,
    condvar: Condvar,
}

impl Default for Parker {
    fn default() -> Parker {
        Parker::new()
    }
}

impl Parker {
    pub fn new() -> Parker {
        Parker { depth: AtomicU32::new(Depth::Awake as u32), is_unparked: Mutex::new(false), condvar: Condvar::new() }
    }

    /// Returns how deep the thread sleeps, or is about to. The caller has published its work before (SX-3).
    #[inline]
    pub fn depth(&self) -> Depth {
        match self.depth.load(Ordering::SeqCst) {
            0 => Depth::Awake,
            1 => Depth::Light,
            _ => Depth::Deep,
        }
    }

    /// Wakes the thread. A thread that is awake returns at once from its next `park`.
    pub fn unpark(&self) {
        let mut is_unparked = self.is_unparked.lock();
        // The first call wakes the thread. Until the thread runs, further calls find it asleep and need no system call of their own.
        let was_unparked = std::mem::replace(&mut *is_unparked, true);
        drop(is_unparked);
        if !was_unparked {
            self.condvar.notify_one();
        }
    }

    /// Sleeps until `unpark`, unless `has_work` returns true after the depth has been published.
    pub fn park(&self, depth: Depth, has_work: impl Fn() -> bool) {
        let mut is_unparked = self.is_unparked.lock();
        self.depth.store(depth as u32, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !has_work() {
            while !*is_unparked {
                is_unparked = self.condvar.wait(is_unparked);
            }
        }
        *is_unparked = false;
        self.depth.store(Depth::Awake as u32, Ordering::SeqCst);
    }

    /// Does the same as `park`, for at most `timeout`. Returns true if that time passed without `unpark`.
    pub fn park_timeout(&self, depth: Depth, timeout: Duration, has_work: impl Fn() -> bool) -> bool {
        let deadline = Instant::now() + timeout;
        let mut is_unparked = self.is_unparked.lock();
        self.depth.store(depth as u32, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let mut has_timed_out = false;
        if !has_work() {
            while !*is_unparked && !has_timed_out {
                match deadline.checked_duration_since(Instant::now()) {
                    Some(left) => is_unparked = self.condvar.wait_timeout(is_unparked, left).0,
                    None => has_timed_out = true,
                }
            }
        }
        *is_unparked = false;
        self.depth.store(Depth::Awake as u32, Ordering::SeqCst);
        has_timed_out
    }
}
