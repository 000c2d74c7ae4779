//! Small dense numbers for threads, so that each thread can have an entry of its own in a shared table (SX-4).

use std::sync::Mutex;

/// The greatest number of threads that may have a number at the same time.
pub const MAX: usize = 1024;

/// Numbers that are free, and the first that was never given out.
struct Numbers {
    free: Vec<usize>,
    next: usize,
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { free: Vec::new(), next: 0 });

/// The number of a living thread. Dropped when the thread ends.
struct Number(usize);

impl Number {
    fn take() -> Number {
        let mut numbers = NUMBERS.lock().unwrap_or_else(|poison| poison.into_inner());
        let number = numbers.free.pop().unwrap_or_else(|| {
            numbers.next += 1;
            numbers.next - 1
        });
        assert!(number < MAX, "SX-4: more than {MAX} threads use the engine");
        Number(number)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        crate::memory::settle();
        NUMBERS.lock().unwrap_or_else(|poison| poison.into_inner()).free.push(self.0);
    }
}

thread_local! {
    static NUMBER: Number = Number::take();
}

/// Returns the calling thread's number. Another thread may get it after this one has ended.
#[inline]
pub fn current() -> usize {
    NUMBER.with(|number| number.0)
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
        assert!(highest < 200, "numbers are reused, but reached {highest}");
    }
}
