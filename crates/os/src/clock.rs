//! Time of day and monotonic time, real and simulated.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A source of time.
pub trait Clock: Send + Sync {
    /// Returns microseconds since 1970. They may jump, also backwards.
    fn wall_us(&self) -> u64;

    /// Returns milliseconds since 1970.
    fn wall_ms(&self) -> u64 {
        self.wall_us() / 1000
    }

    /// Returns nanoseconds since an unspecified moment. They never go back.
    fn monotonic_ns(&self) -> u64;
}

fn wall_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    pub fn new() -> RealClock {
        RealClock { start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        RealClock::new()
    }
}

impl Clock for RealClock {
    fn wall_us(&self) -> u64 {
        wall_us()
    }

    fn monotonic_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

/// The machine's clock, whose monotonic time counts on while the machine sleeps (CLOCK_BOOTTIME).
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn wall_us(&self) -> u64 {
        wall_us()
    }

    fn monotonic_ns(&self) -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// A clock that only the test advances.
#[derive(Debug)]
pub struct SimClock {
    us: AtomicU64,
}

impl SimClock {
    pub fn new(wall_ms: u64) -> SimClock {
        SimClock { us: AtomicU64::new(wall_ms * 1000) }
    }

    pub fn advance_ms(&self, ms: u64) {
        self.us.fetch_add(ms * 1000, Ordering::SeqCst);
    }

    pub fn set_ms(&self, wall_ms: u64) {
        self.us.store(wall_ms * 1000, Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn wall_us(&self) -> u64 {
        self.us.load(Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> u64 {
        self.wall_us() * 1000
    }
}
