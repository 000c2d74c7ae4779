//! Histograms of durations with logarithmic buckets: 32 for each doubling, so a quantile is exact within 3.2 % (SX-8).
//!
//! Recording a value is one relaxed addition. Threads are spread over a few shards.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::thread_number;

const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;
/// Covers up to 2^42 ns, which is more than an hour. Longer durations go into the last bucket.
const BUCKETS: usize = (42 - SUB_BITS as usize + 1) * SUB;
const SHARDS: usize = 4;

pub struct Histogram {
    shards: Vec<HistogramShard>,
}

struct HistogramShard {
    buckets: Vec<AtomicU64>,
    sum: AtomicU64,
    max: AtomicU64,
}

/// The contents of a histogram at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    buckets: Vec<u64>,
    pub count: u64,
    pub sum: u64,
    pub max: u64,
}

fn bucket_of(value: u64) -> usize {
    if value < SUB as u64 {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    let bucket = (shift as usize + 1) * SUB + (value >> shift) as usize - SUB;
    bucket.min(BUCKETS - 1)
}

/// Returns the largest value of a bucket.
fn upper_bound(bucket: usize) -> u64 {
    if bucket < SUB {
        return bucket as u64;
    }
    let shift = (bucket / SUB - 1) as u32;
    (((bucket % SUB + SUB + 1) as u64) << shift) - 1
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    pub fn new() -> Histogram {
        let shard = || HistogramShard {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        };
        Histogram { shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    #[inline]
    pub fn record(&self, value: u64) {
        self.record_many(value, 1);
    }

    /// Records the same value `count` times.
    #[inline]
    pub fn record_many(&self, value: u64, count: u64) {
        let shard = &self.shards[thread_number::current() % SHARDS];
        shard.buckets[bucket_of(value)].fetch_add(count, Ordering::Relaxed);
        shard.sum.fetch_add(value.wrapping_mul(count), Ordering::Relaxed);
        if shard.max.load(Ordering::Relaxed) < value {
            shard.max.fetch_max(value, Ordering::Relaxed);
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot { buckets: vec![0; BUCKETS], count: 0, sum: 0, max: 0 };
        for shard in &self.shards {
            for (sum, bucket) in snapshot.buckets.iter_mut().zip(&shard.buckets) {
                *sum += bucket.load(Ordering::Relaxed);
            }
            snapshot.sum = snapshot.sum.wrapping_add(shard.sum.load(Ordering::Relaxed));
            snapshot.max = snapshot.max.max(shard.max.load(Ordering::Relaxed));
        }
        snapshot.count = snapshot.buckets.iter().sum();
        snapshot
    }

    pub fn quantile(&self, q: f64) -> u64 {
        self.snapshot().quantile(q)
    }

    pub fn reset(&self) {
        for shard in &self.shards {
            shard.buckets.iter().for_each(|bucket| bucket.store(0, Ordering::Relaxed));
            shard.sum.store(0, Ordering::Relaxed);
            shard.max.store(0, Ordering::Relaxed);
        }
    }
}

impl Snapshot {
    /// Adds the contents of `other`.
    pub fn merge(&mut self, other: &Snapshot) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, more)| *sum += more);
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Returns the smallest value that a fraction `q` of all values does not exceed, rounded up to its bucket. Returns 0 for an empty histogram.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = ((self.count as f64 * q).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_bound(bucket).min(self.max);
            }
        }
        0
    }

    /// Returns the largest value and the count of each bucket that is not empty, in ascending order.
    pub fn filled(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        all.map(|(bucket, count)| (upper_bound(bucket), *count))
    }

    /// Returns how many values are at most `bound`, to the precision of the buckets.
    pub fn count_up_to(&self, bound: u64) -> u64 {
        self.buckets[..=bucket_of(bound)].iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gap() {
        for value in (0..4096).chain((12..41).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1])) {
            let bucket = bucket_of(value);
            assert!(upper_bound(bucket) >= value, "{value}");
            assert!(bucket == 0 || upper_bound(bucket - 1) < value, "{value}");
        }
    }

    #[test]
    fn quantiles_are_within_the_promised_error() {
        const LAST: u64 = if cfg!(miri) { 1_000 } else { 100_000 };
        let histogram = Histogram::new();
        for value in 1..=LAST {
            histogram.record(value);
        }
        for q in [0.5, 0.99, 0.999, 1.0] {
            let exact = q * LAST as f64;
            let found = histogram.quantile(q) as f64;
            assert!((found - exact).abs() / exact < 0.032, "{q}: {found}");
        }
        let snapshot = histogram.snapshot();
        assert_eq!((snapshot.count, snapshot.max), (LAST, LAST));
        assert_eq!(snapshot.filled().map(|(_, count)| count).sum::<u64>(), LAST);
        assert_eq!(snapshot.filled().next(), Some((1, 1)));
        let mut twice = histogram.snapshot();
        twice.merge(&snapshot);
        assert_eq!((twice.count, twice.max, twice.quantile(0.5)), (2 * LAST, LAST, snapshot.quantile(0.5)));
        histogram.reset();
        assert_eq!(histogram.quantile(0.5), 0);
    }
}
