//! The mean time of a session queue's run in a group, by which `Connection::dispatch_sessions` decides what another group should run (RE-22).
//!
//! A run on another processor costs a wake-up there and one back, and both move the session's memory between the caches. That is worth it for runs that together take much longer.

use std::time::Duration;

use stdx::sync::atomic::{AtomicU64, Ordering};

/// Runs that take less than this together are not worth a handover to another group.
const HANDOVER: Duration = Duration::from_micros(50);
/// A round changes the mean by this fraction of the difference.
const WEIGHT: u64 = 8;

#[derive(Default)]
pub(crate) struct RunCost {
    /// Nanoseconds; 0 before the first round.
    mean_ns: AtomicU64,
}

impl RunCost {
    /// Records a round that has run `count` session queues in `elapsed`. Threads may lose each other's rounds.
    pub fn record(&self, elapsed: Duration, count: u32) {
        // A longer run is not worth more, and a rare one would hide the others.
        let run = (elapsed / count.max(1)).min(HANDOVER).as_nanos() as u64;
        let mean = self.mean_ns.load(Ordering::Relaxed);
        self.mean_ns.store((mean * (WEIGHT - 1) + run).div_ceil(WEIGHT), Ordering::Relaxed);
    }

    /// Returns the number of runs that are not worth a handover, at least one.
    pub fn kept_count(&self) -> usize {
        let mean = self.mean_ns.load(Ordering::Relaxed).max(1);
        (HANDOVER.as_nanos() as u64 / mean).max(1) as usize
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn short_runs_are_kept_and_long_ones_are_not() {
        let cost = RunCost::default();
        (0..100).for_each(|_| cost.record(Duration::from_micros(64), 16));
        assert_eq!(cost.kept_count(), 12);
        cost.record(Duration::from_secs(1), 1);
        assert!(cost.kept_count() > 4, "one long run among short ones");
        (0..100).for_each(|_| cost.record(Duration::from_millis(2), 1));
        assert_eq!(cost.kept_count(), 1);
    }
}
