//! The async read queue: page reads that a worker thread starts and completes itself between requests, without another thread and the switch to it and back.
//!
//! ```text
//!   fetch:             claim a frame (X, loading) ──► push                 descriptor readable
//!   submit:            one system call for all that was pushed                   │
//!   poll_completions:  submit; collect ──► fill the frame, release it ──► run the callbacks of the page
//! ```
//! Hard part: a page being read is X-latched, and only a poll of its queue releases it. If all threads that poll the queue waited for that page, none
//! would. So a thread that waits long for a latch polls all queues, and a thread submits before it waits for anything (PG-9). A queue never waits for a
//! frame: a page that finds none goes to the reader threads.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use os::ReadRing;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::buffer_pool::{BufferPool, Claim};
use crate::page::{PAGE_BYTES, PageId};
use crate::pager::Pager;
use crate::parking_lot::ReadQueueHooks;
use crate::reader_pool::ReadCallback;

/// Reads in flight per queue. Further reads go to the reader threads.
const DEPTH: usize = 128;

/// A page being read, and the callbacks to run when it is in memory.
struct PendingRead {
    pid: PageId,
    frame: usize,
    callbacks: Vec<ReadCallback>,
}

struct Reads {
    ring: ReadRing,
    /// Indexed by the slot of the ring.
    pending: Vec<Option<PendingRead>>,
}

/// The async read queue of one worker group.
pub struct ReadQueue {
    pager: Weak<Pager>,
    in_flight: AtomicUsize,
    /// Some reads have been pushed and not submitted.
    has_unsubmitted: AtomicBool,
    reads: Mutex<Reads>,
}

thread_local! {
    static ATTACHED: RefCell<Option<Arc<ReadQueue>>> = const { RefCell::new(None) };
}

impl Pager {
    /// Opens a queue for a group of threads. `None` where the system has no io_uring: then the reader threads read.
    pub fn open_read_queue(self: &Arc<Self>) -> Option<Arc<ReadQueue>> {
        let ring = self.pool.data.read_ring(PAGE_BYTES, DEPTH)?;
        let queue = Arc::new(ReadQueue {
            pager: Arc::downgrade(self),
            in_flight: AtomicUsize::new(0),
            has_unsubmitted: AtomicBool::new(false),
            reads: Mutex::new(Reads { ring, pending: (0..DEPTH).map(|_| None).collect() }),
        });
        let (polled, drained) = (queue.clone(), queue.clone());
        self.pool.lot.add_read_queue(ReadQueueHooks {
            poll: Box::new(move || polled.poll_completions()),
            drain: Box::new(move || drained.drain()),
        });
        Some(queue)
    }

    /// Starts the reads in the calling thread's queue, if it has one. Returns those that the queue does not take.
    pub(crate) fn fetch_in_queue(&self, absent: Vec<(PageId, ReadCallback)>) -> Vec<(PageId, ReadCallback)> {
        ATTACHED.with_borrow(|queue| match queue {
            Some(queue) if std::ptr::eq(queue.pager.as_ptr(), self) => queue.start(self, absent),
            _ => absent,
        })
    }
}

impl ReadQueue {
    /// Returns a descriptor that is readable while there are completions. Fails if the system is out of descriptors.
    pub fn poll_fd(&self) -> std::io::Result<OwnedFd> {
        self.reads.lock().ring.poll_fd()
    }

    /// Attaches the calling thread: pages it fetches are read through this queue. It must poll the queue before it waits for anything else.
    pub fn attach_thread(self: &Arc<Self>) {
        ATTACHED.set(Some(self.clone()));
    }

    fn start(&self, pager: &Pager, absent: Vec<(PageId, ReadCallback)>) -> Vec<(PageId, ReadCallback)> {
        let mut reads = self.reads.lock();
        let mut left = Vec::new();
        for (pid, callback) in absent {
            if let Some((pid, callback)) = reads.start(pager, pid, callback) {
                left.push((pid, callback));
            }
        }
        self.in_flight.store(reads.ring.in_flight(), Ordering::Relaxed);
        self.has_unsubmitted.store(true, Ordering::Relaxed);
        left
    }

    /// Submits the reads that the attached threads have pushed.
    pub fn submit(&self) {
        if self.has_unsubmitted.swap(false, Ordering::Relaxed) {
            self.reads.lock().ring.submit();
        }
    }

    /// Submits, processes completed reads and runs their callbacks. Does not wait.
    pub fn poll_completions(&self) {
        if self.in_flight.load(Ordering::Relaxed) == 0 {
            return;
        }
        let Some(pager) = self.pager.upgrade() else { return };
        let callbacks = {
            let mut reads = self.reads.lock();
            self.has_unsubmitted.store(false, Ordering::Relaxed);
            reads.ring.submit();
            let callbacks = reads.collect(&pager.pool);
            self.in_flight.store(reads.ring.in_flight(), Ordering::Relaxed);
            callbacks
        };
        callbacks.into_iter().for_each(|callback| callback());
    }

    /// Waits until no read is in flight.
    pub(crate) fn drain(&self) {
        while self.in_flight.load(Ordering::Relaxed) > 0 {
            self.reads.lock().ring.wait();
            self.poll_completions();
        }
    }
}

impl Reads {
    /// Starts one read. Returns the request if the queue does not take it.
    fn start(&mut self, pager: &Pager, pid: PageId, callback: ReadCallback) -> Option<(PageId, ReadCallback)> {
        if self.ring.in_flight() == DEPTH {
            return Some((pid, callback));
        }
        if let Some(frame) = pager.pool.find(pid) {
            // Already being read, most likely by this queue.
            let read = self.pending.iter_mut().flatten().find(|read| read.frame == frame && read.pid == pid);
            let Some(read) = read else { return Some((pid, callback)) };
            read.callbacks.push(callback);
            return None;
        }
        let Claim::Frame(frame) = pager.try_claim(pid) else { return Some((pid, callback)) };
        if !pager.pool.assign(frame, pid, BufferPool::load_flags(false)) {
            return Some((pid, callback));
        }
        pager.pool.misses.add(1);
        let slot = self.ring.push(pid * PAGE_BYTES as u64).expect("the depth was checked above");
        self.pending[slot as usize] = Some(PendingRead { pid, frame, callbacks: vec![callback] });
        None
    }

    fn collect(&mut self, pool: &BufferPool) -> Vec<ReadCallback> {
        let mut callbacks = Vec::new();
        let Reads { ring, pending } = self;
        ring.collect(&mut |slot, result| {
            let read = pending[slot as usize].take().expect("a completion of a read started here");
            match result {
                // A damaged page is reported to the request that uses it.
                Ok(bytes) => drop(pool.fill(read.frame, read.pid, bytes, false)),
                Err(_) => pool.unassign(read.frame, read.pid),
            }
            callbacks.extend(read.callbacks);
        });
        callbacks
    }
}
