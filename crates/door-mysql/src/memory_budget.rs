//! The memory budget for long packets and values: packets of several frames while they are received and served, and long values while they are sent. All
//! connections share it. It is separate from the memory that the setting `memory` bounds.
//!
//! A reservation that does not fit fails before the memory is allocated: the statement gets an error, where the kernel would kill the process.

use std::sync::Arc;

use stdx::memory::Exempt;
use stdx::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub struct MemoryBudget {
    max: u64,
    held: AtomicU64,
}

/// Reserved bytes of the budget. Dropping the reservation releases them.
#[derive(Debug)]
pub struct Reservation {
    memory_budget: Arc<MemoryBudget>,
    bytes: u64,
    /// The budget's own setting bounds these bytes, not `memory`.
    beside: Exempt,
}

impl MemoryBudget {
    pub fn new(max: u64) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget { max, held: AtomicU64::new(0) })
    }

    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Reserves bytes; returns `None` if the budget has fewer left.
    pub fn take(self: &Arc<MemoryBudget>, bytes: u64) -> Option<Reservation> {
        let mut reservation = Reservation { memory_budget: self.clone(), bytes: 0, beside: Exempt::default() };
        reservation.grow(bytes).then_some(reservation)
    }
}

impl Reservation {
    /// Adds to the reservation; returns false if the budget has fewer bytes left.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let before = self.memory_budget.held.fetch_add(bytes, Ordering::Relaxed);
        let fits = before + bytes <= self.memory_budget.max;
        if fits {
            self.bytes += bytes;
            self.beside.set(self.bytes);
        } else {
            self.memory_budget.held.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory_budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_given_than_there_is() {
        let memory_budget = MemoryBudget::new(100);
        let mut one = memory_budget.take(60).expect("there is room");
        assert!(memory_budget.take(41).is_none());
        assert!(!one.grow(41) && one.grow(40));
        assert_eq!(memory_budget.held(), 100);
        drop(one);
        assert_eq!(memory_budget.held(), 0);
    }
}
