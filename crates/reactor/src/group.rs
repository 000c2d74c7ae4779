//! A group: its epoll set, its run queue, and the connections that wait for the watermark or for their peer.
//!
//! Hard part: a thread that goes to wait for events must not miss work that another one enqueues, or a watermark that another one advances. Both sides publish first, issue a SeqCst fence,
//! and then look (RE-3).

use std::collections::VecDeque;
use std::sync::Arc;

use stdx::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use stdx::sync::{Mutex, RwLock};

use crate::context;
use crate::event_source::EventSource;
use crate::run_cost::RunCost;
use crate::run_state::{KILL, RELEASE};
use crate::scratch::Scratch;
use crate::send_batch;
use crate::shared::Shared;
use crate::state::{Connection, Group, Slab, Work};
use crate::sys::{Epoll, Event, EventFd};
use crate::worker_pool::WorkerPool;
use crate::worker_slots::WorkerSlots;

/// Tokens of descriptors that are no connections. Those of connections have bit 63 set.
pub(crate) const TOKEN_WAKE: u64 = 0;
pub(crate) const TOKEN_TIMER: u64 = 1;
pub(crate) const TOKEN_SOURCE: u64 = 2;
/// Port n of the pool has token TOKEN_PORT + n.
pub(crate) const TOKEN_PORT: u64 = 1 << 32;
pub(crate) const TOKEN_CONNECTION: u64 = 1 << 63;
/// The token of a connection that is in no epoll set.
pub(crate) const NO_TOKEN: u64 = u64::MAX;

/// Held connections that one thread releases before it passes others to an idle thread.
const RELEASE_BATCH: usize = 64;

impl Group {
    pub fn new(number: usize, shared: Arc<Shared>, source: Option<EventSource>) -> std::io::Result<Group> {
        let (epoll, wake) = (Epoll::new()?, EventFd::new()?);
        epoll.add(&wake, TOKEN_WAKE, false)?;
        if let Some(source) = &source {
            epoll.add(&source.fd, TOKEN_SOURCE, false)?;
        }
        let settings = &shared.settings;
        Ok(Group {
            number,
            workers: WorkerPool::new(settings.epoll_threads_per_group, settings.epoll_group_threads_max),
            slots: WorkerSlots::new(settings.idle_buffer_bytes, settings.auto_cpu_affinity),
            shared,
            epoll,
            wake,
            source,
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
            local_queue: Mutex::default(),
            population: AtomicUsize::new(0),
            cpu: AtomicUsize::new(usize::MAX),
            waiting: AtomicUsize::new(0),
            run_cost: RunCost::default(),
            slab: RwLock::default(),
            held: Mutex::default(),
            any_held: AtomicBool::new(false),
            must_release: AtomicBool::new(false),
            blocked: Mutex::default(),
            progress: Mutex::default(),
        })
    }

    /// Enqueues work and makes sure that a thread comes for it: a caller that finds the queue empty wakes one thread, and a thread that leaves something in it wakes another.
    pub fn enqueue(&self, work: impl Iterator<Item = Work>) {
        let now = self.shared.counters.latency.now();
        let was_empty = {
            let mut queue = self.queue.lock();
            let was_empty = queue.is_empty();
            queue.extend(work.map(|work| (work, now)));
            self.queued.store(queue.len(), Ordering::SeqCst);
            was_empty
        };
        if was_empty {
            self.wake_one();
        }
    }

    pub fn enqueue_events(&self, connection: Arc<Connection>, bits: u32) {
        self.enqueue(std::iter::once(Work::Events(connection, bits)));
    }

    /// Enqueues work in the local run queue if the calling thread drains that of this group, else in the queue. If other threads of the group are idle, they get all but the first (RE-14).
    pub fn enqueue_locally(&self, work: impl Iterator<Item = Work>) {
        let mut work = work.peekable();
        if context::drains_local_queue_of(self) {
            let is_alone = self.waiting() == 0;
            self.local_queue.lock().extend(work.by_ref().take(if is_alone { usize::MAX } else { 1 }));
        }
        if work.peek().is_some() {
            self.enqueue(work);
        }
    }

    /// Moves the local run queue to the queue, for other threads (RE-5).
    pub fn hand_over(&self) {
        let rest = std::mem::take(&mut *self.local_queue.lock());
        if !rest.is_empty() {
            self.shared.counters.handed_over.add(rest.len() as u64);
            self.enqueue(rest.into_iter());
        }
    }

    pub fn pop(&self) -> Option<Work> {
        let (found, left) = {
            let mut queue = self.queue.lock();
            let found = queue.pop_front();
            self.queued.store(queue.len(), Ordering::Release);
            (found, queue.len())
        };
        if left > 0 {
            self.wake_one();
        }
        let (work, since) = found?;
        self.shared.counters.latency.record(&self.shared.counters.latency.work_queue, since);
        Some(work)
    }

    /// Runs the session queues in the run queue after all threads have ended. They are closed, so their sessions end (RE-13). Returns false if there were none.
    pub fn run_remaining_sessions(&self) -> bool {
        let left: VecDeque<_> = std::mem::take(&mut *self.queue.lock());
        let mut any = false;
        for (work, _) in left {
            if let Work::Session(task) = work {
                any = true;
                task();
            }
        }
        any
    }

    /// Submits the requests that sessions have made to the group's event source (RE-11).
    pub fn submit_source(&self) {
        if let Some(source) = &self.source {
            (source.submit)();
        }
    }

    /// Waits for events. The thread raises `waiting` before its last look at the queue and the release flag; a thread that fills them reads `waiting` afterwards (RE-3).
    pub fn wait(&self, events: &mut Vec<Event>) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let has_work = self.queued.load(Ordering::Relaxed) > 0 || self.must_release.load(Ordering::Relaxed);
        let is_stopping = self.shared.stop.load(Ordering::Relaxed);
        let timeout = (has_work || is_stopping).then_some(std::time::Duration::ZERO);
        let max = self.shared.live.events_per_thread();
        self.epoll.wait(events, max, timeout).expect("epoll_wait on a descriptor of our own");
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.shared.counters.wakeups.add(1);
    }

    /// Returns true if the queue is empty and all active threads wait for events.
    pub fn is_idle(&self) -> bool {
        let active = self.workers.counts().active();
        self.queued.load(Ordering::Relaxed) == 0 && self.waiting.load(Ordering::SeqCst) >= active
    }

    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn wake_one(&self) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake.signal();
        }
    }

    /// Makes one waiting thread and all parked threads look at the stop flag. Called until every thread has ended.
    pub fn wake_to_stop(&self) {
        self.wake.signal();
        self.workers.wake_all();
    }

    /// Registers a connection whose output waits for the watermark, or for the gate. The caller reads the watermark or the gate again afterwards (RE-3).
    pub fn register_held(&self, connection: Arc<Connection>) {
        self.shared.durable.add_async_waiter();
        self.held.lock().push(connection);
        self.any_held.store(true, Ordering::SeqCst);
    }

    /// Called when the watermark has advanced, or the gate may be open again.
    pub fn on_durable(&self) {
        fence(Ordering::SeqCst);
        if self.any_held.load(Ordering::Relaxed) {
            self.must_release.store(true, Ordering::SeqCst);
            self.wake_one();
        }
    }

    /// Notifies the connections that wait, if the watermark has advanced or the gate may be open, and sends their output.
    pub fn release_held(self: &Arc<Self>, scratch: &mut Scratch) {
        if !self.must_release.swap(false, Ordering::SeqCst) {
            return;
        }
        self.any_held.store(false, Ordering::SeqCst);
        let mut all = std::mem::take(&mut *self.held.lock());
        while all.len() > RELEASE_BATCH {
            let rest = all.split_off(all.len() - RELEASE_BATCH);
            if self.waiting() > 0 {
                // An idle thread can help.
                self.enqueue(rest.into_iter().map(|connection| Work::Events(connection, RELEASE)));
            } else {
                rest.into_iter().for_each(|connection| connection.notify(RELEASE, scratch));
            }
        }
        all.into_iter().for_each(|connection| connection.notify(RELEASE, scratch));
        send_batch::send(Some(scratch));
    }

    pub fn population(&self) -> usize {
        self.population.load(Ordering::Relaxed)
    }

    pub fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed)
    }

    /// Adds a connection to the epoll set, which reports what the socket already holds.
    pub fn watch(&self, connection: &Arc<Connection>) -> std::io::Result<()> {
        let token = self.slab.write().insert(connection);
        self.population.fetch_add(1, Ordering::Relaxed);
        connection.token.store(token, Ordering::Relaxed);
        self.epoll.add(&connection.stream, token, true).inspect_err(|_| self.unwatch(connection))
    }

    /// Removes a connection from the epoll set, if it is in it.
    pub fn unwatch(&self, connection: &Connection) {
        self.epoll.remove(&connection.stream);
        if self.slab.write().remove(connection.token.swap(NO_TOKEN, Ordering::Relaxed)) {
            self.population.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Removes a connection that has closed.
    pub fn forget(&self, connection: &Connection) {
        self.unwatch(connection);
        self.shared.counters.closed.add(1);
        self.shared.connection_count.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.slab.read().slots.iter().filter_map(|(_, connection)| connection.clone()).collect()
    }

    /// Watches a connection whose peer has stopped taking output, to disconnect it after the write timeout.
    pub fn watch_blocked(self: &Arc<Self>, connection: &Arc<Connection>) {
        let mut blocked = self.blocked.lock();
        blocked.push(Arc::downgrade(connection));
        if blocked.len() == 1 {
            self.schedule_blocked_check();
        }
    }

    fn schedule_blocked_check(self: &Arc<Self>) {
        let group = Arc::downgrade(self);
        let delay = self.shared.live.write_timeout() / 4;
        self.shared.timers.add(
            delay,
            Box::new(move || {
                if let Some(group) = group.upgrade() {
                    group.check_blocked();
                }
            }),
        );
    }

    fn check_blocked(self: &Arc<Self>) {
        let (now, limit) = (self.shared.now_ms(), self.shared.live.write_timeout().as_millis() as u64);
        let mut expired = Vec::new();
        let mut blocked = self.blocked.lock();
        blocked.retain(|weak| {
            let Some(connection) = weak.upgrade() else { return false };
            let since = connection.blocked_since_ms.load(Ordering::Relaxed);
            if since == 0 || connection.is_closed() {
                return false;
            }
            if now.saturating_sub(since) < limit {
                return true;
            }
            expired.push(connection);
            false
        });
        if !blocked.is_empty() {
            self.schedule_blocked_check();
        }
        drop(blocked);
        for connection in expired {
            self.enqueue_events(connection, KILL);
        }
    }
}

impl Slab {
    /// Inserts a connection and returns its token.
    fn insert(&mut self, connection: &Arc<Connection>) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(connection.clone());
        TOKEN_CONNECTION | u64::from(slot.0) << 32 | u64::from(index)
    }

    /// Returns the connection of a token, unless another connection has its slot now.
    pub fn get(&self, token: u64) -> Option<Arc<Connection>> {
        let (generation, connection) = self.slots.get(token as u32 as usize)?;
        if *generation == generation_of(token) { connection.clone() } else { None }
    }

    /// Removes the connection of a token. Returns false if there is none.
    fn remove(&mut self, token: u64) -> bool {
        let index = token as u32;
        let Some(slot) = self.slots.get_mut(index as usize) else { return false };
        if slot.0 != generation_of(token) || slot.1.is_none() {
            return false;
        }
        slot.1 = None;
        slot.0 = (slot.0 + 1) & 0x7fff_ffff;
        self.free.push(index);
        true
    }
}

fn generation_of(token: u64) -> u32 {
    ((token & !TOKEN_CONNECTION) >> 32) as u32
}
