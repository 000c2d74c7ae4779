//! Whether a thread makes progress: a number that it raises with each piece of work, which the watchdog compares with the number at its last look.
//!
//! A thread is stuck if it has computed for `COMPUTES_NS` in one piece of work, or has been in it for the watchdog's long interval. The first goes by the thread's own processor time: on a machine that is busy with
//! other programs a thread may sit in a short request for long without running, and another thread would not run sooner.
//!
//! Hard part: a stuck thread is counted as such in the crew, and takes that back itself with its next piece of work. The flag is swapped on both sides, so each count is taken back once.

use std::time::{Duration, Instant};

use os::cpu::ThreadClock;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Processor time after which a piece of work is a long computation.
pub(crate) const COMPUTES_NS: u64 = 4_000_000;

pub(crate) struct Beat {
    /// Odd while the thread runs something.
    work: AtomicU64,
    is_stuck: AtomicBool,
    /// The piece of work under way must end: it has the last thread that the group may have.
    must_end: AtomicBool,
    clock: ThreadClock,
}

/// The watchdog's memory of a thread.
#[derive(Debug)]
pub(crate) struct Seen {
    work: u64,
    /// When that piece of work was seen first, and the processor time of the thread then.
    since: Instant,
    used_ns: u64,
}

impl Seen {
    pub fn new() -> Seen {
        Seen { work: 0, since: Instant::now(), used_ns: 0 }
    }

    /// Did the thread run something at the last look?
    pub fn works(&self) -> bool {
        self.work & 1 == 1
    }
}

impl Beat {
    /// The beat of the calling thread.
    pub fn own() -> Beat {
        Beat {
            work: AtomicU64::new(0),
            is_stuck: AtomicBool::new(false),
            must_end: AtomicBool::new(false),
            clock: ThreadClock::own(),
        }
    }

    /// A piece of work begins. True: the thread was stuck in the one before.
    #[inline]
    pub fn begin(&self) -> bool {
        self.set((self.work.load(Ordering::Relaxed) | 1) + 2)
    }

    /// The thread is about to wait: for events, or inside a request.
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

    /// Must the piece of work under way end, because no other thread can serve the group?
    pub fn must_end(&self) -> bool {
        self.must_end.load(Ordering::Relaxed)
    }

    /// Called by the watchdog for a thread that it has just found stuck.
    pub fn end_work(&self) {
        self.must_end.store(true, Ordering::Relaxed);
    }

    /// The watchdog's look: true if the thread has computed for long in the piece of work that it was in at the look before, or was in it for `long`, and was not found so yet.
    pub fn look(&self, seen: &mut Seen, long: Duration) -> bool {
        let work = self.work.load(Ordering::Relaxed);
        if work != seen.work {
            *seen = Seen { work, since: Instant::now(), used_ns: 0 };
            if seen.works() {
                seen.used_ns = self.clock.used_ns().unwrap_or(0);
            }
            return false;
        }
        if !seen.works() || self.is_stuck() {
            return false;
        }
        let computes = self.clock.used_ns().is_some_and(|used| used >= seen.used_ns + COMPUTES_NS);
        (computes || seen.since.elapsed() >= long) && !self.is_stuck.swap(true, Ordering::AcqRel)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_stays_in_one_piece_of_work_is_found_once_and_says_when_it_goes_on() {
        let (beat, mut seen, long) = (Beat::own(), Seen::new(), Duration::ZERO);
        assert!(!beat.look(&mut seen, long), "it rests");
        assert!(!beat.begin());
        assert!(!beat.look(&mut seen, long), "it has just begun");
        assert!(beat.look(&mut seen, long) && beat.is_stuck());
        assert!(!beat.look(&mut seen, long), "it is known");
        beat.end_work();
        assert!(beat.must_end());
        assert!(beat.begin(), "the next piece of work");
        assert!(!beat.must_end());
        assert!(!beat.look(&mut seen, long));
        assert!(!beat.rest());
        assert!(!beat.look(&mut seen, long) && !beat.look(&mut seen, long), "a thread that rests is never stuck");
    }

    #[test]
    #[cfg(not(miri))]
    fn processor_time_counts_before_the_clock_on_the_wall() {
        let (beat, mut seen, long) = (Beat::own(), Seen::new(), Duration::from_secs(3600));
        beat.begin();
        assert!(!beat.look(&mut seen, long));
        let (clock, begun) = (ThreadClock::own(), ThreadClock::own().used_ns().unwrap());
        assert!(!beat.look(&mut seen, long), "it has not computed");
        while clock.used_ns().unwrap() < begun + 2 * COMPUTES_NS {
            std::hint::spin_loop();
        }
        assert!(beat.look(&mut seen, long));
    }
}
