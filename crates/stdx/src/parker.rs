//! Where a background thread sleeps until there is something for it to do.
//!
//! Hard part: what it is to do shows elsewhere (a counter, a flag), and must not be overlooked between its last look and its sleep. It says first how deep it is going to sleep
//! and looks then; the others leave their work first and then look at the depth, with a SeqCst fence in between (or SeqCst on both sides). So one of the two sees the other.

use std::time::{Duration, Instant};

use crate::sync::atomic::{AtomicU32, Ordering, fence};
use crate::sync::{Condvar, Mutex};

/// How much it takes to wake the thread; what `Light` and `Deep` mean is for those who ring to say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum Depth {
    Awake = 0,
    Light = 1,
    Deep = 2,
}

pub struct Parker {
    depth: AtomicU32,
    rung: Mutex<bool>,
    bell: Condvar,
}

impl Default for Parker {
    fn default() -> Parker {
        Parker::new()
    }
}

impl Parker {
    pub fn new() -> Parker {
        Parker { depth: AtomicU32::new(Depth::Awake as u32), rung: Mutex::new(false), bell: Condvar::new() }
    }

    /// How deep the thread sleeps, or is just going to. To be looked at after the work was left.
    #[inline]
    pub fn depth(&self) -> Depth {
        match self.depth.load(Ordering::SeqCst) {
            0 => Depth::Awake,
            1 => Depth::Light,
            _ => Depth::Deep,
        }
    }

    /// Wakes the thread; one that is awake will not fall asleep the next time.
    pub fn unpark(&self) {
        let mut rung = self.rung.lock();
        // Whoever has rung already wakes it, and until it is up everybody finds it asleep.
        let was_rung = std::mem::replace(&mut *rung, true);
        drop(rung);
        if !was_rung {
            self.bell.notify_one();
        }
    }

    /// Sleeps until somebody rings, unless `is_needed` says that there is work already.
    pub fn park(&self, depth: Depth, is_needed: impl Fn() -> bool) {
        let mut rung = self.rung.lock();
        self.depth.store(depth as u32, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !is_needed() {
            while !*rung {
                rung = self.bell.wait(rung);
            }
        }
        *rung = false;
        self.depth.store(Depth::Awake as u32, Ordering::SeqCst);
    }

    /// Like `lie`, for `most` at the most; true if that time passed without a ring.
    pub fn park_timeout(&self, depth: Depth, most: Duration, is_needed: impl Fn() -> bool) -> bool {
        let until = Instant::now() + most;
        let mut rung = self.rung.lock();
        self.depth.store(depth as u32, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let mut is_over = false;
        if !is_needed() {
            while !*rung && !is_over {
                match until.checked_duration_since(Instant::now()) {
                    Some(left) => rung = self.bell.wait_timeout(rung, left).0,
                    None => is_over = true,
                }
            }
        }
        *rung = false;
        self.depth.store(Depth::Awake as u32, Ordering::SeqCst);
        is_over
    }
}
