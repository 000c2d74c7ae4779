//! What the base threads of a group have and the others have not: memory for empty buffers and, where threads are bound, a processor.
//!
//! Hard part: which threads work changes each time that one of them waits: another comes, and the one that lies down afterwards may be one of the first.
//! So a seat is not a thread's own: whoever is up takes a free one, and gives it back before it lies down or leaves (R15).

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct Seats {
    free: Mutex<Vec<Seat>>,
    /// How many: nearly always none, and then nobody takes the lock.
    count: AtomicUsize,
    /// What a thread in a seat may keep of empty buffers.
    pub idle_buffer_bytes: usize,
    /// The processors of a thread that is bound to none; nothing where no thread is bound.
    all: Vec<usize>,
}

pub(crate) struct Seat {
    /// Whoever sits here is bound to it.
    processor: Option<usize>,
}

impl Seats {
    pub fn new(idle_buffer_bytes: usize, binds: bool) -> Seats {
        let all = if binds { os::cpu::allowed() } else { Vec::new() };
        Seats { free: Mutex::default(), count: AtomicUsize::new(0), idle_buffer_bytes, all }
    }

    /// The calling thread is bound no more; a new one is as the thread was that made it.
    pub fn unbind(&self) {
        if !self.all.is_empty() {
            os::cpu::pin(&self.all);
        }
    }

    /// One more.
    pub fn add(&self, processor: Option<usize>) {
        self.put(Seat { processor });
    }

    /// A free one, if there is. Binds the calling thread.
    #[inline]
    pub fn take(&self) -> Option<Seat> {
        if self.count.load(Ordering::Relaxed) == 0 { None } else { self.take_free() }
    }

    #[cold]
    fn take_free(&self) -> Option<Seat> {
        let mut free = self.free.lock();
        let seat = free.pop()?;
        self.count.store(free.len(), Ordering::Relaxed);
        drop(free);
        if let Some(processor) = seat.processor {
            os::cpu::pin(&[processor]);
        }
        Some(seat)
    }

    /// Gives it back. Unbinds the calling thread.
    pub fn give(&self, seat: Seat) {
        self.unbind();
        self.put(seat);
    }

    fn put(&self, seat: Seat) {
        let mut free = self.free.lock();
        free.push(seat);
        self.count.store(free.len(), Ordering::Relaxed);
    }
}
