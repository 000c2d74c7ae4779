//! Accounting of the memory that statements hold, by holder.
//!
//! QU-14: an operator that collects rows counts them in a `Held`, which releases the bytes when it is dropped. So the
//! memory of one execution of a join's right side, or of a subquery, is released with it. A statement starts with a
//! count of its own, which open results of earlier statements do not burden. The sum over all statements is counted
//! besides (QU-15).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::value::Value;

/// The bytes that all statements hold.
pub type Total = Arc<AtomicUsize>;

/// The bytes that one statement holds. It runs in one thread at a time.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    own: Arc<AtomicUsize>,
    all: Total,
}

/// The bytes of one holder.
#[derive(Debug, Default)]
pub struct Held {
    of: Option<Sum>,
    bytes: usize,
}

impl Sum {
    pub fn new(all: &Total) -> Sum {
        Sum { own: Arc::default(), all: all.clone() }
    }

    pub fn bytes(&self) -> usize {
        self.own.load(Ordering::Relaxed)
    }

    /// Returns the bytes that all statements hold.
    pub fn all(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// Returns whether it is a part of `all` that no holder has.
    pub fn is_unused_part_of(&self, all: &Total) -> bool {
        Arc::ptr_eq(&self.all, all) && Arc::strong_count(&self.own) == 1 && self.bytes() == 0
    }

    fn add(&self, bytes: usize) {
        self.own.store(self.bytes() + bytes, Ordering::Relaxed);
        self.all.fetch_add(bytes, Ordering::Relaxed);
    }

    fn sub(&self, bytes: usize) {
        self.own.store(self.bytes() - bytes, Ordering::Relaxed);
        self.all.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Held {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn add(&mut self, bytes: usize, sum: &Sum) {
        self.of.get_or_insert_with(|| sum.clone()).add(bytes);
        self.bytes += bytes;
    }

    /// Releases this number of bytes.
    pub fn release(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        if let Some(sum) = &self.of {
            sum.sub(bytes);
        }
    }

    pub fn clear(&mut self) {
        self.release(self.bytes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns about how many bytes a row takes in memory.
pub fn row_bytes(row: &[Value]) -> usize {
    48 + row.iter().map(|value| size_of::<Value>() + value.heap_bytes()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_off_both_sums() {
        let all = Total::default();
        let (one, other) = (Sum::new(&all), Sum::new(&all));
        let (mut first, mut second) = (Held::default(), Held::default());
        first.add(100, &one);
        first.add(50, &one);
        second.add(7, &other);
        assert_eq!((one.bytes(), other.bytes(), one.all()), (150, 7, 157));
        first.release(30);
        assert_eq!((one.bytes(), one.all()), (120, 127));
        drop(first);
        assert_eq!((one.bytes(), other.all()), (0, 7));
        drop(second);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }
}
