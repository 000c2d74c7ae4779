//! How many threads a group has, and which of them may look for work.
//!
//! Hard part: enough, not too many. A thread that begins to wait inside a request (it says so through `stdx::wait`) leaves the others short, so another one
//! is woken or made at once; when it comes back there is one too many, and the next thread that has nothing in hand lies down. Active threads are those
//! neither stalled nor parked; the rule is that they are as many as the base, as long as the maximum allows (R4). Waits that clients decide about (locks, SLEEP) could take all
//! threads for ever, and with them the one that the request needs which ends those waits. So they take wait slots: as many as there may be threads beyond the base (R17).

use std::time::Duration;

use stdx::sync::atomic::{AtomicBool, Ordering};
use stdx::sync::{Condvar, Mutex};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Threads that exist.
    pub total: usize,
    /// Nested an announced wait.
    pub stalled: usize,
    /// Those of them in waits that clients decide about.
    pub bounded: usize,
    /// Lying down, and not yet called.
    pub parked: usize,
    /// Called up from parking, not yet awake.
    called: usize,
    /// Busy for so long without a word that the watchdog counts them as stalled. For a moment it may be below zero: a thread may go on before the watchdog has counted it.
    pub stuck: isize,
}

impl Numbers {
    pub fn active(&self) -> usize {
        (self.total - self.parked).saturating_sub(self.stalled).saturating_add_signed(-self.stuck)
    }
}

/// What has to be done about a missing thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Nothing,
    /// Make a thread; it is counted already.
    Spawn,
    /// No thread may be added and none is active: a computation has to end.
    End,
}

pub struct Crew {
    base: usize,
    most: usize,
    numbers: Mutex<Numbers>,
    bed: Condvar,
    /// There may be more active threads than the base: a hint, so that the loop looks at the numbers only then.
    surplus: AtomicBool,
}

impl Crew {
    pub fn new(base: usize, most: usize) -> Crew {
        Crew {
            base,
            most,
            numbers: Mutex::new(Numbers::default()),
            bed: Condvar::new(),
            surplus: AtomicBool::new(false),
        }
    }

    pub fn numbers(&self) -> Numbers {
        *self.numbers.lock()
    }

    /// Counts a base thread about to be made.
    pub fn join(&self) {
        self.numbers.lock().total += 1;
    }

    /// The calling thread waits from now on. None: the wait is bounded and no wait slot is free.
    pub fn stall(&self, is_bounded: bool) -> Option<Need> {
        let mut numbers = self.numbers.lock();
        if is_bounded && numbers.bounded >= self.most - self.base {
            return None;
        }
        numbers.stalled += 1;
        numbers.bounded += usize::from(is_bounded);
        Some(self.fill(&mut numbers))
    }

    /// The calling thread goes on.
    pub fn resume(&self, is_bounded: bool) {
        let mut numbers = self.numbers.lock();
        numbers.stalled -= 1;
        numbers.bounded -= usize::from(is_bounded);
        if numbers.active() > self.base {
            self.surplus.store(true, Ordering::Relaxed);
        }
    }

    /// The watchdog has found a thread in the same piece of work as when it looked before.
    pub fn stuck(&self) -> Need {
        let mut numbers = self.numbers.lock();
        numbers.stuck += 1;
        match self.fill(&mut numbers) {
            Need::Nothing if numbers.active() == 0 && numbers.called == 0 => Need::End,
            need => need,
        }
    }

    /// That thread goes on.
    pub fn unstuck(&self) {
        let mut numbers = self.numbers.lock();
        numbers.stuck -= 1;
        if numbers.active() > self.base {
            self.surplus.store(true, Ordering::Relaxed);
        }
    }

    fn fill(&self, numbers: &mut Numbers) -> Need {
        if numbers.active() >= self.base {
            return Need::Nothing;
        }
        if numbers.parked > 0 {
            numbers.parked -= 1;
            numbers.called += 1;
            self.bed.notify_one();
            return Need::Nothing;
        }
        if numbers.total >= self.most {
            return Need::Nothing;
        }
        numbers.total += 1;
        Need::Spawn
    }

    /// May there be more active threads than the base? Asked by a thread with nothing in hand.
    #[inline]
    pub fn may_lie_down(&self) -> bool {
        self.surplus.load(Ordering::Relaxed)
    }

    /// Called by a thread with nothing in hand. Lies down if there are more active threads than the base. False: leave for good.
    #[cold]
    pub fn stay(&self, shrink_after: Duration, stop: &AtomicBool) -> bool {
        let _idle = stdx::wait::idle();
        let mut numbers = self.numbers.lock();
        if numbers.active() <= self.base {
            self.surplus.store(false, Ordering::Relaxed);
            return true;
        }
        numbers.parked += 1;
        loop {
            let (guard, timed_out) = self.bed.wait_timeout(numbers, shrink_after);
            numbers = guard;
            if numbers.called > 0 {
                numbers.called -= 1;
                return true;
            }
            if timed_out || stop.load(Ordering::Relaxed) {
                numbers.parked -= 1;
                numbers.total -= 1;
                return false;
            }
        }
    }

    /// Wakes all parked threads, to see the stop flag.
    pub fn rouse(&self) {
        drop(self.numbers.lock());
        self.bed.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_wait_brings_a_thread_and_its_end_lets_one_go() {
        let crew = Crew::new(2, 4);
        crew.join();
        crew.join();
        assert_eq!(crew.stall(false), Some(Need::Spawn));
        assert_eq!(crew.stall(false), Some(Need::Spawn));
        assert_eq!(crew.stall(false), Some(Need::Nothing), "four is the most");
        assert_eq!(crew.numbers().active(), 1);
        crew.resume(false);
        crew.resume(false);
        crew.resume(false);
        let stop = AtomicBool::new(false);
        assert!(!crew.stay(Duration::from_millis(1), &stop), "one leaves");
        assert!(!crew.stay(Duration::from_millis(1), &stop), "another one");
        assert!(crew.stay(Duration::from_millis(1), &stop), "the base stays");
        assert_eq!(crew.numbers(), Numbers { total: 2, ..Numbers::default() });
    }

    #[test]
    fn bounded_waits_leave_the_base_threads_to_others() {
        let crew = Crew::new(2, 4);
        crew.join();
        crew.join();
        assert_eq!(crew.stall(true), Some(Need::Spawn));
        assert_eq!(crew.stall(true), Some(Need::Spawn));
        assert_eq!(crew.stall(true), None, "the base threads are for those who end these waits");
        assert_eq!(crew.numbers().active(), 2);
        assert_eq!(crew.stall(false), Some(Need::Nothing), "this one comes back by itself");
        crew.resume(false);
        crew.resume(true);
        assert_eq!(crew.stall(true), Some(Need::Nothing));
        assert_eq!(crew.stall(true), None);
        crew.resume(true);
        crew.resume(true);
        let numbers = crew.numbers();
        assert_eq!((numbers.total, numbers.stalled, numbers.bounded), (4, 0, 0));
    }

    #[test]
    fn a_parked_thread_is_called_before_a_new_one_is_made() {
        let crew = std::sync::Arc::new(Crew::new(1, 8));
        crew.join();
        assert_eq!(crew.stall(false), Some(Need::Spawn));
        crew.resume(false);
        let sleeper = {
            let crew = crew.clone();
            std::thread::spawn(move || crew.stay(Duration::from_secs(20), &AtomicBool::new(false)))
        };
        while crew.numbers().parked == 0 {
            std::thread::yield_now();
        }
        assert_eq!(crew.stall(false), Some(Need::Nothing));
        assert!(sleeper.join().unwrap(), "called up");
        assert_eq!(crew.numbers().active(), 1);
    }
}
