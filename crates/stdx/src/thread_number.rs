//! Small dense numbers for threads, so that each can have a line of its own in a shared table.

use std::sync::Mutex;

/// No more threads than this may ask at the same time.
pub const MAX: usize = 1024;

struct Numbers {
    free: Vec<usize>,
    next: usize,
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { free: Vec::new(), next: 0 });

struct Slot(usize);

impl Slot {
    fn take() -> Slot {
        let mut numbers = NUMBERS.lock().unwrap_or_else(|poison| poison.into_inner());
        let number = numbers.free.pop().unwrap_or_else(|| {
            numbers.next += 1;
            numbers.next - 1
        });
        assert!(number < MAX, "more than {MAX} threads use the engine");
        Slot(number)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        crate::memory::settle();
        NUMBERS.lock().unwrap_or_else(|poison| poison.into_inner()).free.push(self.0);
    }
}

thread_local! {
    static SLOT: Slot = Slot::take();
}

/// The calling thread's number; it goes to another thread after this one has ended.
#[inline]
pub fn current() -> usize {
    SLOT.with(|slot| slot.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Barrier;

    #[test]
    fn threads_alive_together_have_different_numbers_and_numbers_come_back() {
        let mut highest = 0;
        for _ in 0..20 {
            let barrier = Barrier::new(16);
            let numbers: Vec<usize> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..16)
                    .map(|_| {
                        scope.spawn(|| {
                            barrier.wait();
                            let number = current();
                            assert_eq!(number, current());
                            barrier.wait();
                            number
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), 16);
            highest = highest.max(*numbers.iter().max().unwrap());
        }
        assert!(highest < 200, "numbers are used again, but reached {highest}");
    }
}
