//! Worker slots: memory for empty buffers and, where threads are bound, a processor. A group has as many slots as base threads.
//!
//! Hard part: the set of active threads changes with each wait. Another thread replaces the one that waits, and the one that parks afterwards may be one of the first.
//! So a slot belongs to no thread: a running worker takes a free slot and returns it before it parks or ends (RE-15).

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct WorkerSlots {
    free: Mutex<Vec<WorkerSlot>>,
    /// The length of `free`. It is nearly always 0, and then no thread takes the lock.
    count: AtomicUsize,
    /// The memory for empty buffers of a thread with a slot.
    pub idle_buffer_bytes: usize,
    /// The processors that an unbound thread may run on. Empty where threads are not bound.
    all: Vec<usize>,
}

pub(crate) struct WorkerSlot {
    /// The thread that has the slot is bound to it.
    processor: Option<usize>,
}

impl WorkerSlots {
    pub fn new(idle_buffer_bytes: usize, is_bound: bool) -> WorkerSlots {
        let all = if is_bound { os::cpu::allowed() } else { Vec::new() };
        WorkerSlots { free: Mutex::default(), count: AtomicUsize::new(0), idle_buffer_bytes, all }
    }

    /// Unbinds the calling thread. A new thread inherits the binding of the thread that spawned it.
    pub fn unbind(&self) {
        if !self.all.is_empty() {
            os::cpu::pin(&self.all);
        }
    }

    /// Adds a slot.
    pub fn add(&self, processor: Option<usize>) {
        self.put(WorkerSlot { processor });
    }

    /// Takes a free slot, if there is one, and binds the calling thread to its processor.
    #[inline]
    pub fn take(&self) -> Option<WorkerSlot> {
        if self.count.load(Ordering::Relaxed) == 0 { None } else { self.take_free() }
    }

    #[cold]
    fn take_free(&self) -> Option<WorkerSlot> {
        let mut free = self.free.lock();
        let slot = free.pop()?;
        self.count.store(free.len(), Ordering::Relaxed);
        drop(free);
        if let Some(processor) = slot.processor {
            os::cpu::pin(&[processor]);
        }
        Some(slot)
    }

    /// Returns a slot and unbinds the calling thread.
    pub fn release(&self, slot: WorkerSlot) {
        self.unbind();
        self.put(slot);
    }

    fn put(&self, slot: WorkerSlot) {
        let mut free = self.free.lock();
        free.push(slot);
        self.count.store(free.len(), Ordering::Relaxed);
    }
}
