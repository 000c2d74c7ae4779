//! Whether a thread makes progress: a number that it raises with each piece of work, and that the watchdog compares with the number of its last check.
//!
//! A thread is stuck if it has computed for `COMPUTES_NS` in one piece of work, or has been in it for the watchdog's long interval. The first limit is processor time: on a machine that is busy with
//! other programs a thread may be in a short request for long without running, and another thread would not run sooner.
//!
//! Hard part: the worker pool counts a stuck thread, and the thread takes that count back with its next piece of work. Both sides swap the flag, so each count is taken back once.

use std::time::{Duration, Instant};

use os::cpu::ThreadClock;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The processor time after which a piece of work counts as a long computation.
pub(crate) const COMPUTES_NS: u64 = 4_000_000;

pub(crate) struct Progress {
    /// The number of the piece of work; odd while the thread runs it, even while it waits.
    work: AtomicU64,
    is_stuck: AtomicBool,
    /// The present piece of work must end: it occupies the last thread that the group may have (RE-20).
    must_end: AtomicBool,
    clock: ThreadClock,
}

/// The watchdog's last observation of a thread.
#[derive(Debug)]
pub(crate) struct Observation {
    work: u64,
    /// When that piece of work was first observed, and the processor time of the thread then.
    since: Instant,
    used_ns: u64,
}

impl Observation {
    pub fn new() -> Observation {
        Observation { work: 0, since: Instant::now(), used_ns: 0 }
    }

    /// Returns true if the thread was running a piece of work.
    pub fn works(&self) -> bool {
        self.work & 1 == 1
    }
}

impl Progress {
    /// Makes the progress of the calling thread.
    pub fn own() -> Progress {
        Progress {
            work: AtomicU64::new(0),
            is_stuck: AtomicBool::new(false),
            must_end: AtomicBool::new(false),
            clock: ThreadClock::own(),
        }
    }

    /// Begins a piece of work. Returns true if the thread was stuck in the one before.
    #[inline]
    pub fn begin(&self) -> bool {
        self.set((self.work.load(Ordering::Relaxed) | 1) + 2)
    }

    /// Ends a piece of work: the thread is about to wait, for events or inside a request. Returns true if it was stuck.
    #[inline]
    pub fn rest(&self) -> bool {
        self.set((self.work.load(Ordering::Relaxed) | 1) + 1)
    }

    fn set(&self, work: u64) -> bool {
        // Only this thread writes it.
        self.work.store(work, Ordering::Relaxed);
        let was_stuck = self.is_stuck.load(Ordering::Relaxed) && self.is_stuck.swap(false, Ordering::AcqRel);
        if was_stuck {
            self.must_end.store(false, Ordering::Relaxed);
        }
        was_stuck
    }

    pub fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }

    /// Returns true if the present piece of work must end, because no other thread can serve the group.
    pub fn must_end(&self) -> bool {
        self.must_end.load(Ordering::Relaxed)
    }

    /// Makes the present piece of work end. Called by the watchdog for a thread that it has just found stuck.
    pub fn end_work(&self) {
        self.must_end.store(true, Ordering::Relaxed);
    }

    /// The watchdog's check. Returns true if the thread has become stuck: it is in the same piece of work as at the last check, has computed in it for `COMPUTES_NS` or been in it for `long`, and was
    /// not found stuck before.
    pub fn check(&self, last: &mut Observation, long: Duration) -> bool {
        let work = self.work.load(Ordering::Relaxed);
        if work != last.work {
            *last = Observation { work, since: Instant::now(), used_ns: 0 };
            if last.works() {
                last.used_ns = self.clock.used_ns().unwrap_or(0);
            }
            return false;
        }
        if !last.works() || self.is_stuck() {
            return false;
        }
        let computes = self.clock.used_ns().is_some_and(|used| used >= last.used_ns + COMPUTES_NS);
        (computes || last.since.elapsed() >= long) && !self.is_stuck.swap(true, Ordering::AcqRel)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_stays_in_one_piece_of_work_is_found_stuck_once_and_reports_its_progress() {
        let (progress, mut last, long) = (Progress::own(), Observation::new(), Duration::ZERO);
        assert!(!progress.check(&mut last, long), "it rests");
        assert!(!progress.begin());
        assert!(!progress.check(&mut last, long), "it has just begun");
        assert!(progress.check(&mut last, long) && progress.is_stuck());
        assert!(!progress.check(&mut last, long), "it was found before");
        progress.end_work();
        assert!(progress.must_end());
        assert!(progress.begin(), "the next piece of work");
        assert!(!progress.must_end());
        assert!(!progress.check(&mut last, long));
        assert!(!progress.rest());
        assert!(
            !progress.check(&mut last, long) && !progress.check(&mut last, long),
            "a thread that rests is never stuck"
        );
    }

    #[test]
    #[cfg(not(miri))]
    fn processor_time_counts_before_elapsed_time() {
        let (progress, mut last, long) = (Progress::own(), Observation::new(), Duration::from_secs(3600));
        progress.begin();
        assert!(!progress.check(&mut last, long));
        let (clock, begun) = (ThreadClock::own(), ThreadClock::own().used_ns().unwrap());
        assert!(!progress.check(&mut last, long), "it has not computed");
        while clock.used_ns().unwrap() < begun + 2 * COMPUTES_NS {
            std::hint::spin_loop();
        }
        assert!(progress.check(&mut last, long));
    }
}
