//! Parking of latch waiters.
//!
//! A frame hashes to one of 256 slots, each a mutex and a condition variable. Waking a waiter of another frame in the same slot is harmless: it tests its
//! latch again. Waiters wake up every 2 ms to poll the async read queues, since the latch they wait for may belong to a page that is being read (PG-9).

use std::sync::Arc;
use std::time::Duration;

use stdx::sync::{Condvar, Mutex, RwLock};

/// The operations of an async read queue that a waiter may call. Registered by the queue, so that this layer does not import it.
pub struct ReadQueueHooks {
    /// Submits pending reads and processes completions; does not wait (PG-9).
    pub poll: Box<dyn Fn() + Send + Sync>,
    /// Waits until no read is in flight.
    pub drain: Box<dyn Fn() + Send + Sync>,
}

/// Where threads that wait for a latch sleep, and the async read queues that they poll meanwhile.
pub struct ParkingLot {
    slots: Vec<(Mutex<()>, Condvar)>,
    read_queues: RwLock<Vec<Arc<ReadQueueHooks>>>,
}

/// Interval at which a parked waiter polls the async read queues.
pub const POLL_INTERVAL: Duration = Duration::from_millis(2);

impl Default for ParkingLot {
    fn default() -> Self {
        ParkingLot::new(256)
    }
}

impl ParkingLot {
    pub fn new(slots: usize) -> ParkingLot {
        ParkingLot {
            slots: (0..slots).map(|_| (Mutex::new(()), Condvar::new())).collect(),
            read_queues: RwLock::default(),
        }
    }

    /// Returns the slot for the frame at `address`.
    pub fn slot(&self, address: usize) -> &(Mutex<()>, Condvar) {
        &self.slots[(address >> 6) % self.slots.len()]
    }

    /// Registers a queue for as long as the pager lives.
    pub fn add_read_queue(&self, hooks: ReadQueueHooks) {
        self.read_queues.write().push(Arc::new(hooks));
    }

    /// Polls all queues: called by threads that wait for a latch or a frame (PG-9).
    pub fn poll_read_queues(&self) {
        self.read_queues().iter().for_each(|queue| (queue.poll)());
    }

    /// Waits until no queue has a read in flight: called when the pager stops.
    pub fn drain_read_queues(&self) {
        self.read_queues().iter().for_each(|queue| (queue.drain)());
    }

    /// Returns the queues registered so far; the lock is released before they are polled.
    fn read_queues(&self) -> Vec<Arc<ReadQueueHooks>> {
        self.read_queues.read().clone()
    }
}
