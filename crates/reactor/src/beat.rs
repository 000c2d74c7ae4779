//! Whether a thread makes progress: a number that it raises with each piece of work, which the watchdog compares with what it was at its last look.
//!
//! Hard part: whoever is found stuck is counted as such in the crew, and takes that back itself with its next piece of work. The flag is swapped on both sides, so each count is taken back once.

use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Default)]
pub(crate) struct Beat {
    /// Odd while the thread runs something.
    work: AtomicU64,
    is_stuck: AtomicBool,
}

impl Beat {
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
        self.is_stuck.load(Ordering::Relaxed) && self.is_stuck.swap(false, Ordering::AcqRel)
    }

    pub fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }

    /// The watchdog's look: true if the thread is in the same piece of work as at `before`, the look before, and was not found so yet.
    pub fn look(&self, before: &mut u64) -> bool {
        let now = self.work.load(Ordering::Relaxed);
        let is_same = std::mem::replace(before, now) == now;
        is_same && now & 1 == 1 && !self.is_stuck.swap(true, Ordering::AcqRel)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_stays_in_one_piece_of_work_is_found_once_and_says_when_it_goes_on() {
        let (beat, mut before) = (Beat::default(), 0);
        assert!(!beat.look(&mut before), "it rests");
        assert!(!beat.begin());
        assert!(!beat.look(&mut before), "it has just begun");
        assert!(beat.look(&mut before) && beat.is_stuck());
        assert!(!beat.look(&mut before), "it is known");
        assert!(beat.begin(), "the next piece of work");
        assert!(!beat.look(&mut before));
        assert!(!beat.rest());
        assert!(!beat.look(&mut before) && !beat.look(&mut before), "who rests is never stuck");
    }
}
