//! The worker pool of a group: how many threads it has, and which of them may look for work.
//!
//! Hard part: enough threads, not too many. A thread that begins to wait inside a request (announced through `stdx::wait`) leaves the others short, so another one
//! is unparked or spawned at once. When the wait ends there is one thread too many, and the next thread without work parks. Active threads are those
//! neither stalled nor parked; there are as many as the base as long as the maximum allows (RE-4). Waits that clients decide about (locks, SLEEP) could occupy all
//! threads for ever, including the one that the request needs which ends those waits. So they take wait slots: as many as there may be threads beyond the base (RE-17).

use std::time::Duration;

use stdx::sync::atomic::{AtomicBool, Ordering};
use stdx::sync::{Condvar, Mutex};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadCounts {
    /// Threads that exist.
    pub total: usize,
    /// Threads in an announced wait.
    pub stalled: usize,
    /// Stalled threads in waits that clients decide about.
    pub bounded: usize,
    /// Threads that are parked and not yet unparked.
    pub parked: usize,
    /// Threads that are unparked and not yet awake.
    unparked: usize,
    /// Threads that the watchdog counts as stalled, because they have been busy for so long. It may be below zero for a moment: a thread may go on before the watchdog has counted it.
    pub stuck: isize,
}

impl ThreadCounts {
    pub fn active(&self) -> usize {
        (self.total - self.parked).saturating_sub(self.stalled).saturating_add_signed(-self.stuck)
    }
}

/// How a thread that stalls is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// No replacement is needed, or a parked thread was unparked.
    None,
    /// The caller spawns a thread, which is counted already.
    Spawn,
    /// No thread may be added and none is active: a computation has to end (RE-20).
    Impossible,
}

pub(crate) struct WorkerPool {
    base: usize,
    most: usize,
    counts: Mutex<ThreadCounts>,
    parked: Condvar,
    /// There may be more active threads than the base. A hint: threads read the counts only if it is set.
    has_surplus: AtomicBool,
}

impl WorkerPool {
    /// Makes a pool of `base` threads that may grow to `most`.
    pub fn new(base: usize, most: usize) -> WorkerPool {
        WorkerPool {
            base,
            most,
            counts: Mutex::new(ThreadCounts::default()),
            parked: Condvar::new(),
            has_surplus: AtomicBool::new(false),
        }
    }

    pub fn counts(&self) -> ThreadCounts {
        *self.counts.lock()
    }

    /// Counts a base thread that is about to be spawned.
    pub fn add_base(&self) {
        self.counts.lock().total += 1;
    }

    /// Counts the calling thread as stalled. Returns None, and does not count it, if the wait is bounded and no wait slot is free.
    pub fn stall(&self, is_bounded: bool) -> Option<Replacement> {
        let mut counts = self.counts.lock();
        if is_bounded && counts.bounded >= self.most - self.base {
            return None;
        }
        counts.stalled += 1;
        counts.bounded += usize::from(is_bounded);
        Some(self.replace(&mut counts))
    }

    /// Counts the calling thread as running again.
    pub fn resume(&self, is_bounded: bool) {
        let mut counts = self.counts.lock();
        counts.stalled -= 1;
        counts.bounded -= usize::from(is_bounded);
        self.note_surplus(&counts);
    }

    /// Counts a thread as stuck. Called by the watchdog.
    pub fn stuck(&self) -> Replacement {
        let mut counts = self.counts.lock();
        counts.stuck += 1;
        match self.replace(&mut counts) {
            Replacement::None if counts.active() == 0 && counts.unparked == 0 => Replacement::Impossible,
            replacement => replacement,
        }
    }

    /// Takes `stuck` back. Called by the thread itself when it goes on.
    pub fn unstuck(&self) {
        let mut counts = self.counts.lock();
        counts.stuck -= 1;
        self.note_surplus(&counts);
    }

    fn note_surplus(&self, counts: &ThreadCounts) {
        if counts.active() > self.base {
            self.has_surplus.store(true, Ordering::Relaxed);
        }
    }

    /// Brings the active threads back to the base if one is missing.
    fn replace(&self, counts: &mut ThreadCounts) -> Replacement {
        if counts.active() >= self.base {
            return Replacement::None;
        }
        if counts.parked > 0 {
            counts.parked -= 1;
            counts.unparked += 1;
            self.parked.notify_one();
            return Replacement::None;
        }
        if counts.total >= self.most {
            return Replacement::None;
        }
        counts.total += 1;
        Replacement::Spawn
    }

    /// Returns true if there may be more active threads than the base.
    #[inline]
    pub fn may_have_surplus(&self) -> bool {
        self.has_surplus.load(Ordering::Relaxed)
    }

    /// Parks the calling thread, which has no work, if there are more active threads than the base. Returns false if the thread has to end: nothing has unparked it for `shrink_after`,
    /// or `stop` is set.
    #[cold]
    pub fn park_if_surplus(&self, shrink_after: Duration, stop: &AtomicBool) -> bool {
        let _idle = stdx::wait::idle();
        let mut counts = self.counts.lock();
        if counts.active() <= self.base {
            self.has_surplus.store(false, Ordering::Relaxed);
            return true;
        }
        counts.parked += 1;
        loop {
            let (guard, timed_out) = self.parked.wait_timeout(counts, shrink_after);
            counts = guard;
            if counts.unparked > 0 {
                counts.unparked -= 1;
                return true;
            }
            if timed_out || stop.load(Ordering::Relaxed) {
                counts.parked -= 1;
                counts.total -= 1;
                return false;
            }
        }
    }

    /// Wakes all parked threads, to look at the stop flag.
    pub fn wake_all(&self) {
        drop(self.counts.lock());
        self.parked.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_wait_adds_a_thread_and_its_end_removes_one() {
        let pool = WorkerPool::new(2, 4);
        pool.add_base();
        pool.add_base();
        assert_eq!(pool.stall(false), Some(Replacement::Spawn));
        assert_eq!(pool.stall(false), Some(Replacement::Spawn));
        assert_eq!(pool.stall(false), Some(Replacement::None), "four is the maximum");
        assert_eq!(pool.counts().active(), 1);
        pool.resume(false);
        pool.resume(false);
        pool.resume(false);
        let stop = AtomicBool::new(false);
        assert!(!pool.park_if_surplus(Duration::from_millis(1), &stop), "one thread ends");
        assert!(!pool.park_if_surplus(Duration::from_millis(1), &stop), "another one ends");
        assert!(pool.park_if_surplus(Duration::from_millis(1), &stop), "the base threads stay");
        assert_eq!(pool.counts(), ThreadCounts { total: 2, ..ThreadCounts::default() });
    }

    #[test]
    fn bounded_waits_leave_the_base_threads_to_others() {
        let pool = WorkerPool::new(2, 4);
        pool.add_base();
        pool.add_base();
        assert_eq!(pool.stall(true), Some(Replacement::Spawn));
        assert_eq!(pool.stall(true), Some(Replacement::Spawn));
        assert_eq!(pool.stall(true), None, "RE-17: the base threads serve the requests that end these waits");
        assert_eq!(pool.counts().active(), 2);
        assert_eq!(pool.stall(false), Some(Replacement::None), "a transient wait ends by itself");
        pool.resume(false);
        pool.resume(true);
        assert_eq!(pool.stall(true), Some(Replacement::None));
        assert_eq!(pool.stall(true), None);
        pool.resume(true);
        pool.resume(true);
        let counts = pool.counts();
        assert_eq!((counts.total, counts.stalled, counts.bounded), (4, 0, 0));
    }

    #[test]
    fn a_parked_thread_is_unparked_before_a_new_one_is_spawned() {
        let pool = std::sync::Arc::new(WorkerPool::new(1, 8));
        pool.add_base();
        assert_eq!(pool.stall(false), Some(Replacement::Spawn));
        pool.resume(false);
        let sleeper = {
            let pool = pool.clone();
            std::thread::spawn(move || pool.park_if_surplus(Duration::from_secs(20), &AtomicBool::new(false)))
        };
        while pool.counts().parked == 0 {
            std::thread::yield_now();
        }
        assert_eq!(pool.stall(false), Some(Replacement::None));
        assert!(sleeper.join().unwrap(), "it was unparked");
        assert_eq!(pool.counts().active(), 1);
    }
}
