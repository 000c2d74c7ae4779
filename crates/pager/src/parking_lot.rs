//! Where latch waiters sleep.

use std::sync::Arc;
use std::time::Duration;

use stdx::sync::{Condvar, Mutex, RwLock};

/// What a waiter may do with an async read queue. A value given downward, so that frames know no queue.
pub struct ReadQueueHooks {
    /// Submits, and collects what is done (A1).
    pub poll: Box<dyn Fn() + Send + Sync>,
    /// Waits until no read is under way.
    pub drain: Box<dyn Fn() + Send + Sync>,
}

pub struct ParkingLot {
    slots: Vec<(Mutex<()>, Condvar)>,
    read_queues: RwLock<Vec<Arc<ReadQueueHooks>>>,
}

/// A sleeper looks after the lanes so often.
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

    /// The slot of the frame at `address`.
    pub fn slot(&self, address: usize) -> &(Mutex<()>, Condvar) {
        &self.slots[(address >> 6) % self.slots.len()]
    }

    pub fn add_read_queue(&self, hooks: ReadQueueHooks) {
        self.read_queues.write().push(Arc::new(hooks));
    }

    pub fn poll_read_queues(&self) {
        self.read_queues().iter().for_each(|queue| (queue.poll)());
    }

    pub fn drain_read_queues(&self) {
        self.read_queues().iter().for_each(|queue| (queue.drain)());
    }

    /// The queues that exist at this moment; no lock is held while they are polled.
    fn read_queues(&self) -> Vec<Arc<ReadQueueHooks>> {
        self.read_queues.read().clone()
    }
}
