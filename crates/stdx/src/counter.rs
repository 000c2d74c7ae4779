//! A counter that many threads add to without sharing a cache line.

use crate::padded::Padded;
use crate::thread_number;
use std::sync::atomic::{AtomicU64, Ordering};

const SHARDS: usize = 16;

/// A counter in shards. `get` sums them and may miss additions that run at the same time.
#[derive(Default)]
pub struct Counter {
    shards: [Padded<AtomicU64>; SHARDS],
}

impl Counter {
    #[inline]
    pub fn add(&self, amount: u64) {
        self.shards[thread_number::current() % SHARDS].0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Returns the sum, which wraps: adding `u64::MAX` subtracts one.
    pub fn get(&self) -> u64 {
        self.shards.iter().fold(0, |sum: u64, shard| sum.wrapping_add(shard.0.load(Ordering::Relaxed)))
    }

    /// Sets the counter to zero. Additions that run at the same time may be lost.
    pub fn reset(&self) {
        for shard in &self.shards {
            shard.0.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_additions_count() {
        let counter = super::Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1000).for_each(|_| counter.add(3)));
            }
        });
        assert_eq!(counter.get(), 24_000);
        counter.add(u64::MAX);
        assert_eq!(counter.get(), 23_999);
        counter.reset();
        assert_eq!(counter.get(), 0);
    }
}
