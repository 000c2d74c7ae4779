//! Page reads that a thread of the pool starts and collects itself, between requests: no other thread, no switch to it and back.
//!
//! ```text
//!   fetch:  claim a frame (X, loading) ──► push                     descriptor readable
//!   hand in: submit all that was pushed, for the price of one call
//!   tend:    hand in; collect ──► fill the frame, release it ──► call those who wait for the page
//! ```
//! Hard part: a page under way is X-latched, and only who tends the lane releases it. If all threads that tend it waited for that page, nobody would.
//! So whoever waits for a latch for long tends all lanes meanwhile, and who begins to wait for anything hands in first (A1). A lane never waits for a frame: what finds none is left to the readers.

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

/// Reads under way in a lane. More go to the readers.
const DEPTH: usize = 128;

/// A page under way and who waits for it.
struct PendingRead {
    pid: PageId,
    frame: usize,
    thens: Vec<ReadCallback>,
}

struct Reads {
    ring: ReadRing,
    /// By slot of the ring.
    jobs: Vec<Option<PendingRead>>,
}

/// Reads under way of one group of threads.
pub struct ReadQueue {
    pager: Weak<Pager>,
    under_way: AtomicUsize,
    /// Some of them have not been handed in.
    is_pushed: AtomicBool,
    reads: Mutex<Reads>,
}

thread_local! {
    static ATTACHED: RefCell<Option<Arc<ReadQueue>>> = const { RefCell::new(None) };
}

impl Pager {
    /// A lane for a group of threads; None where the system has none: then other threads read.
    pub fn open_read_queue(self: &Arc<Self>) -> Option<Arc<ReadQueue>> {
        let ring = self.pool.data.read_ring(PAGE_BYTES, DEPTH)?;
        let queue = Arc::new(ReadQueue {
            pager: Arc::downgrade(self),
            under_way: AtomicUsize::new(0),
            is_pushed: AtomicBool::new(false),
            reads: Mutex::new(Reads { ring, jobs: (0..DEPTH).map(|_| None).collect() }),
        });
        let (polled, drained) = (queue.clone(), queue.clone());
        self.pool.lot.add_read_queue(ReadQueueHooks {
            poll: Box::new(move || polled.poll_completions()),
            drain: Box::new(move || drained.drain()),
        });
        Some(queue)
    }

    /// Starts the reads in the calling thread's lane, if it has one; returns what the lane does not take.
    pub(crate) fn fetch_in_queue(&self, absent: Vec<(PageId, ReadCallback)>) -> Vec<(PageId, ReadCallback)> {
        ATTACHED.with_borrow(|queue| match queue {
            Some(queue) if std::ptr::eq(queue.pager.as_ptr(), self) => queue.start(self, absent),
            _ => absent,
        })
    }
}

impl ReadQueue {
    /// Readable while there is something to collect.
    pub fn poll_fd(&self) -> std::io::Result<OwnedFd> {
        self.reads.lock().ring.poll_fd()
    }

    /// From here on, what the calling thread fetches is read in this lane. It tends the lane before it waits for anything else.
    pub fn attach_thread(self: &Arc<Self>) {
        ATTACHED.set(Some(self.clone()));
    }

    fn start(&self, pager: &Pager, absent: Vec<(PageId, ReadCallback)>) -> Vec<(PageId, ReadCallback)> {
        let mut reads = self.reads.lock();
        let mut left = Vec::new();
        for (pid, then) in absent {
            if let Some((pid, then)) = reads.start(pager, pid, then) {
                left.push((pid, then));
            }
        }
        self.under_way.store(reads.ring.in_flight(), Ordering::Relaxed);
        self.is_pushed.store(true, Ordering::Relaxed);
        left
    }

    /// Hands to the kernel what threads of the lane have asked for.
    pub fn submit(&self) {
        if self.is_pushed.swap(false, Ordering::Relaxed) {
            self.reads.lock().ring.submit();
        }
    }

    /// Hands in, collects what is done, and calls those who wait for it. Does not wait.
    pub fn poll_completions(&self) {
        if self.under_way.load(Ordering::Relaxed) == 0 {
            return;
        }
        let Some(pager) = self.pager.upgrade() else { return };
        let thens = {
            let mut reads = self.reads.lock();
            self.is_pushed.store(false, Ordering::Relaxed);
            reads.ring.submit();
            let thens = reads.collect(&pager.pool);
            self.under_way.store(reads.ring.in_flight(), Ordering::Relaxed);
            thens
        };
        thens.into_iter().for_each(|then| then());
    }

    /// Waits until nothing is under way.
    pub(crate) fn drain(&self) {
        while self.under_way.load(Ordering::Relaxed) > 0 {
            self.reads.lock().ring.wait();
            self.poll_completions();
        }
    }
}

impl Reads {
    /// Some: not taken.
    fn start(&mut self, pager: &Pager, pid: PageId, then: ReadCallback) -> Option<(PageId, ReadCallback)> {
        if self.ring.in_flight() == DEPTH {
            return Some((pid, then));
        }
        if let Some(frame) = pager.pool.find(pid) {
            // On its way, most likely here.
            let job = self.jobs.iter_mut().flatten().find(|job| job.frame == frame && job.pid == pid);
            let Some(job) = job else { return Some((pid, then)) };
            job.thens.push(then);
            return None;
        }
        let Claim::Frame(frame) = pager.try_claim(pid) else { return Some((pid, then)) };
        if !pager.pool.assign(frame, pid, BufferPool::load_flags(false)) {
            return Some((pid, then));
        }
        pager.pool.misses.add(1);
        let slot = self.ring.push(pid * PAGE_BYTES as u64).expect("there is room, looked at above");
        self.jobs[slot as usize] = Some(PendingRead { pid, frame, thens: vec![then] });
        None
    }

    fn collect(&mut self, pool: &BufferPool) -> Vec<ReadCallback> {
        let mut thens = Vec::new();
        let Reads { ring, jobs } = self;
        ring.collect(&mut |slot, result| {
            let job = jobs[slot as usize].take().expect("started here");
            match result {
                // A damaged page is reported to whoever uses it.
                Ok(bytes) => drop(pool.fill(job.frame, job.pid, bytes, false)),
                Err(_) => pool.unassign(job.frame, job.pid),
            }
            thens.extend(job.thens);
        });
        thens
    }
}
