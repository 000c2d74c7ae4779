//! A group: one epoll set, its connections, its queue, its threads.
//!
//! A thread's round: lie down if there are too many; run queued turns and tasks; look at the queue once more after saying that it will wait; wait for events;
//! run the connections that are ready. Events that a thread has taken but not yet run lie in the group's hand: if the thread begins to wait inside a
//! request, or the watchdog finds it stuck in one, they go to the queue for others (R5). What its connections leave for the group while it runs them, requests of their sessions and replies to be sent, it
//! takes into the hand too, and runs it in the same round: without the queue, its clocks and its wake-ups (R14).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use stdx::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use stdx::sync::{Mutex, RwLock};
use stdx::wait::Edge;
use stdx::watermark::Watermark;

use crate::connection::{Connection, END, READ, RELEASE, WRITE};
use crate::mailbox::Task;
use crate::pool::{EventSource, PoolInner};
use crate::progress::{Beat, Seen};
use crate::round::{self, Member};
use crate::scratch::Scratch;
use crate::settings::{Live, Settings};
use crate::sys::{Epoll, Event, EventFd};
use crate::worker_pool::{Crew, Need};
use crate::worker_slots::Seats;
use crate::{Counters, send_batch};

/// Tokens of what is no connection; connections have bit 63 set.
pub(crate) const TOKEN_WAKE: u64 = 0;
pub(crate) const TOKEN_TIMER: u64 = 1;
const TOKEN_SOURCE: u64 = 2;
/// Listener n of the pool has token LISTENER + n.
pub(crate) const TOKEN_LISTENER: u64 = 1 << 32;
const TOKEN_CONNECTION: u64 = 1 << 63;
/// Of a connection that is in no set.
pub(crate) const NO_TOKEN: u64 = u64::MAX;

/// A worker's stack. It is address space alone until frames touch it. Statements nest as deep as it bears, and the caps of `query::parse::limits` are derived from it.
const STACK_BYTES: usize = 16 << 20;
/// A request that went deeper than this gives its pages back.
const STACK_KEPT: usize = 1 << 20;

/// Gated connections that one thread releases before it calls another to help.
const RELEASE_BATCH: usize = 64;

/// Work of the queue.
pub(crate) enum Work {
    Turn(Arc<Connection>, u32),
    /// A connection whose page has come.
    Back(Member),
    Task(Task),
    /// A run of a strand.
    Session(Task),
}

#[derive(Default)]
struct Slab {
    slots: Vec<(u32, Option<Arc<Connection>>)>,
    free: Vec<u32>,
}

pub(crate) struct Group {
    pub settings: Settings,
    pub live: Arc<Live>,
    pub counters: Arc<Counters>,
    pub durable: Arc<Watermark>,
    pub epoll: Epoll,
    wake: EventFd,
    source: Option<EventSource>,
    /// With the moment at which each was put there.
    queue: Mutex<VecDeque<(Work, u64)>>,
    queued: AtomicUsize,
    /// What a thread of the group will run next: connections with events that it has taken from epoll, and what these have left for the group (R14).
    hand: Mutex<VecDeque<Work>>,
    /// Connections that have their home here.
    population: AtomicUsize,
    /// The processor that a thread of the group ran on last.
    cpu: AtomicUsize,
    /// Threads in epoll_wait, or about to be.
    waiting: AtomicUsize,
    pub crew: Crew,
    seats: Seats,
    slab: RwLock<Slab>,
    gated: Mutex<Vec<Arc<Connection>>>,
    /// There are gated connections.
    any_gated: AtomicBool,
    /// The watermark has moved while there were.
    release: AtomicBool,
    /// Connections whose peer does not take its output.
    slow: Mutex<Vec<std::sync::Weak<Connection>>>,
    /// Of each thread, for the watchdog.
    beats: Mutex<Vec<Arc<Beat>>>,
    pub pool: OnceLock<std::sync::Weak<PoolInner>>,
}

thread_local! {
    static HOME: RefCell<Option<Arc<Group>>> = const { RefCell::new(None) };
    static BEAT: RefCell<Option<Arc<Beat>>> = const { RefCell::new(None) };
    /// It runs its group's hand down, and will look there again.
    static KEEPS: Cell<bool> = const { Cell::new(false) };
    /// Announced waits that it is in.
    static WAITS: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread begins a piece of work.
pub(crate) fn begin_work() {
    beat(Beat::begin);
}

/// It is about to wait.
fn rest() {
    beat(Beat::rest);
}

fn beat(step: fn(&Beat) -> bool) {
    let was_stuck = BEAT.with_borrow(|beat| beat.as_ref().is_some_and(|beat| step(beat)));
    if was_stuck {
        HOME.with_borrow(|home| home.iter().for_each(|group| group.crew.unstuck()));
    }
}

/// Installed in every worker: one that has been found stuck in a computation gives away what it has not begun. False: the computation must end (R20).
fn on_breath() -> bool {
    let Some((true, must_end)) = BEAT.with_borrow(|beat| beat.as_ref().map(|beat| (beat.is_stuck(), beat.must_end())))
    else {
        return true;
    };
    HOME.with_borrow(|home| home.iter().for_each(|group| group.give_away()));
    !must_end
}

/// Returns the stack's pages to the kernel if requests went deeper than `kept` bytes since the last call. The stack is kept in small pages.
fn give_back_stack(kept: usize) {
    let Some((used, end)) = stdx::stack::take_high_water() else { return };
    if kept == 0 {
        os::stack::small_pages(end);
    } else if used > kept {
        os::stack::release(end);
    }
}

/// Installed in every worker: a thread that waits gives its batch away and another thread takes its place.
fn on_wait(reason: &'static stdx::wait::Reason, edge: Edge) -> bool {
    HOME.with_borrow(|home| {
        let Some(group) = home else { return true };
        match edge {
            Edge::Begin => {
                rest();
                let Some(need) = group.crew.stall(reason.is_bounded) else {
                    begin_work();
                    group.counters.waits_refused.add(1);
                    return false;
                };
                // What is left for the group from here on is for others.
                WAITS.set(WAITS.get() + 1);
                group.give_away();
                if need == Need::Spawn {
                    group.spawn();
                }
            }
            Edge::End => {
                WAITS.set(WAITS.get() - 1);
                group.crew.resume(reason.is_bounded);
                begin_work();
            }
        }
        true
    })
}

impl Group {
    pub fn new(
        settings: Settings,
        (counters, live): (Arc<Counters>, Arc<Live>),
        durable: Arc<Watermark>,
        source: Option<EventSource>,
    ) -> std::io::Result<Group> {
        let (epoll, wake) = (Epoll::new()?, EventFd::new()?);
        epoll.add(&wake, TOKEN_WAKE, false)?;
        if let Some(source) = &source {
            epoll.add(&source.fd, TOKEN_SOURCE, false)?;
        }
        Ok(Group {
            crew: Crew::new(settings.epoll_threads_per_group, settings.epoll_group_threads_max),
            seats: Seats::new(settings.idle_buffer_bytes, settings.auto_cpu_affinity),
            settings,
            live,
            counters,
            durable,
            epoll,
            wake,
            source,
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
            hand: Mutex::default(),
            population: AtomicUsize::new(0),
            cpu: AtomicUsize::new(usize::MAX),
            waiting: AtomicUsize::new(0),
            slab: RwLock::default(),
            gated: Mutex::default(),
            any_gated: AtomicBool::new(false),
            release: AtomicBool::new(false),
            slow: Mutex::default(),
            beats: Mutex::default(),
            pool: OnceLock::new(),
        })
    }

    /// Milliseconds since the pool was made.
    pub fn now_ms(&self) -> u64 {
        self.counters.latency.elapsed().as_millis() as u64
    }

    fn pool(&self) -> Option<Arc<PoolInner>> {
        self.pool.get()?.upgrade()
    }

    /// Makes a base thread that the crew has counted, and its seat.
    pub fn spawn_base(self: &Arc<Self>, processor: Option<usize>) {
        self.seats.add(processor);
        self.spawn();
    }

    /// Makes a thread that the crew has counted.
    pub fn spawn(self: &Arc<Self>) {
        let group = self.clone();
        self.counters.threads_added.add(1);
        let body = move || {
            stdx::stack::register(STACK_BYTES);
            give_back_stack(0);
            group.seats.unbind();
            group.work();
            group.counters.threads_removed.add(1);
        };
        let thread = std::thread::Builder::new().name("worker".into()).stack_size(STACK_BYTES);
        let thread = thread.spawn(body).expect("the system gives a thread");
        if let Some(pool) = self.pool() {
            pool.threads.lock().push(thread);
        }
    }

    fn work(self: &Arc<Self>) {
        let Some(pool) = self.pool() else { return };
        HOME.set(Some(self.clone()));
        stdx::wait::install(Some(on_wait));
        stdx::wait::install_interrupt_hook(Some(on_breath));
        let own = Arc::new(Beat::own());
        self.beats.lock().push(own.clone());
        BEAT.set(Some(own.clone()));
        let mut scratch = Scratch::new(self.live.receive_bytes());
        let mut events = Vec::new();
        if let Some(source) = &self.source {
            (source.enter)();
        }
        while !pool.stop.load(Ordering::Relaxed) {
            if let Some(source) = &self.source {
                (source.poll)();
            }
            // The queue comes first: this thread may hold the only wake-up for it, and would take that along when it lies down (R3).
            self.run_queue(&mut scratch);
            if self.crew.may_lie_down() {
                scratch.stand_up(&self.seats);
                rest();
                if !self.crew.stay(self.live.shrink_time(), &pool.stop) {
                    break;
                }
            }
            scratch.sit(&self.seats);
            rest();
            self.wait(&mut events);
            self.begin_round(&mut scratch);
            pool.watchdog.stir();
            if self.release.load(Ordering::Relaxed) {
                self.release_gated(&mut scratch);
            }
            self.run_events(&pool, &events, &mut scratch);
            scratch.tally.settle(&self.counters);
            give_back_stack(STACK_KEPT);
        }
        scratch.tally.settle(&self.counters);
        scratch.stand_up(&self.seats);
        rest();
        self.beats.lock().retain(|beat| !Arc::ptr_eq(beat, &own));
        stdx::wait::install(None);
        stdx::wait::install_interrupt_hook(None);
        BEAT.set(None);
        HOME.set(None);
    }

    fn begin_round(&self, scratch: &mut Scratch) {
        begin_work();
        let elapsed = self.counters.latency.elapsed();
        scratch.now_ms = elapsed.as_millis() as u64;
        scratch.began = self.counters.latency.moment(elapsed);
        if scratch.input.len() != self.live.receive_bytes() {
            scratch.input = vec![0; self.live.receive_bytes()];
        }
        scratch.cpu = os::cpu::current();
        if self.cpu.load(Ordering::Relaxed) != scratch.cpu {
            self.cpu.store(scratch.cpu, Ordering::Relaxed);
        }
    }

    fn run_queue(self: &Arc<Self>, scratch: &mut Scratch) {
        while self.queued.load(Ordering::Acquire) > 0 {
            self.begin_round(scratch);
            KEEPS.set(true);
            for _ in 0..self.live.events_per_thread() {
                let Some(work) = self.pop() else { break };
                self.run_work(work, scratch);
            }
            self.run_hand(scratch);
        }
    }

    fn run_work(self: &Arc<Self>, work: Work, scratch: &mut Scratch) {
        begin_work();
        match work {
            Work::Turn(connection, bits) => self.bring(connection, bits, scratch),
            Work::Back(member) => round::come_back(member),
            Work::Task(task) | Work::Session(task) => {
                // It may take long.
                round::play(self, scratch);
                task();
            }
        }
    }

    /// Runs what is in the hand, and what comes into it meanwhile (R14).
    fn run_hand(self: &Arc<Self>, scratch: &mut Scratch) {
        KEEPS.set(true);
        loop {
            while let Some(work) = self.next_in_hand() {
                self.run_work(work, scratch);
            }
            round::play(self, scratch);
            if self.hand.lock().is_empty() {
                break;
            }
        }
        KEEPS.set(false);
    }

    /// Does the calling thread run this group's hand down, so that what it takes into it is run?
    fn is_kept_here(&self) -> bool {
        KEEPS.get()
            && WAITS.get() == 0
            && HOME.with_borrow(|home| home.as_ref().is_some_and(|home| std::ptr::eq(&**home, self)))
    }

    /// Takes work on: the calling thread itself, if it is at the group's hand, else through the queue. Others that have nothing to do get all but the first.
    pub fn take_on(&self, work: impl Iterator<Item = Work>) {
        let mut work = work.peekable();
        if self.is_kept_here() {
            let alone = self.waiting() == 0;
            self.hand.lock().extend(work.by_ref().take(if alone { usize::MAX } else { 1 }));
        }
        if work.peek().is_some() {
            self.enqueue(work);
        }
    }

    /// After all threads have gone: runs the strands in the queue, which are closed, so that their sessions end (R13). False: there were none.
    pub fn finish(&self) -> bool {
        let left = std::mem::take(&mut *self.queue.lock());
        let mut any = false;
        for (work, _) in left {
            if let Work::Session(task) = work {
                any = true;
                task();
            }
        }
        any
    }

    /// What sessions have asked of the group's source begins now.
    pub fn hand_in(&self) {
        if let Some(source) = &self.source {
            (source.submit)();
        }
    }

    /// Gives events to a connection, which joins the round if they are requests.
    fn bring(&self, connection: Arc<Connection>, bits: u32, scratch: &mut Scratch) {
        if let Some(waiting) = connection.arrive(bits, scratch) {
            round::join(Member { connection, waiting });
        }
    }

    fn pop(&self) -> Option<Work> {
        let (found, left) = {
            let mut queue = self.queue.lock();
            let found = queue.pop_front();
            self.queued.store(queue.len(), Ordering::Release);
            (found, queue.len())
        };
        if left > 0 {
            self.call_one();
        }
        let (work, since) = found?;
        self.counters.latency.record(&self.counters.latency.work_queue, since);
        Some(work)
    }

    /// Waits for events. `waiting` is raised before the last look at queue and release flag; who fills them looks at `waiting` afterwards (R3).
    fn wait(&self, events: &mut Vec<Event>) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let work = self.queued.load(Ordering::Relaxed) > 0 || self.release.load(Ordering::Relaxed);
        let stopping = self.pool().is_none_or(|pool| pool.stop.load(Ordering::Relaxed));
        let timeout = (work || stopping).then_some(Duration::ZERO);
        let max = self.live.events_per_thread();
        self.epoll.wait(events, max, timeout).expect("epoll_wait on our own descriptor");
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.counters.wakeups.add(1);
    }

    /// True if all threads that could take an event are waiting for one.
    pub fn is_idle(&self) -> bool {
        self.queued.load(Ordering::Relaxed) == 0 && self.waiting.load(Ordering::Relaxed) >= self.crew.numbers().active()
    }

    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn run_events(self: &Arc<Self>, pool: &Arc<PoolInner>, events: &[Event], scratch: &mut Scratch) {
        let mut others = Vec::new();
        {
            let (mut hand, slab) = (self.hand.lock(), self.slab.read());
            for event in events {
                if event.token & TOKEN_CONNECTION == 0 {
                    others.push(event.token);
                } else if let Some(connection) = slab.get(event.token) {
                    let bit = |on: bool, bit: u32| if on { bit } else { 0 };
                    let bits = bit(event.is_readable, READ) | bit(event.is_writable, WRITE) | bit(event.has_ended, END);
                    hand.push_back(Work::Turn(connection, bits));
                }
            }
        }
        for token in others {
            match token {
                TOKEN_WAKE | TOKEN_SOURCE => {}
                TOKEN_TIMER => self.run_timers(pool),
                listener => pool.accept(self, listener - TOKEN_LISTENER),
            }
        }
        self.run_hand(scratch);
    }

    fn run_timers(&self, pool: &PoolInner) {
        let times = &self.counters.latency;
        for action in pool.timers.due() {
            let since = times.now();
            action();
            times.record(&times.timer, since);
        }
    }

    fn next_in_hand(&self) -> Option<Work> {
        self.hand.lock().pop_front()
    }

    /// What the calling thread has taken and not begun is for others from here on, and what it has answered is sent.
    fn give_away(&self) {
        send_batch::send(None);
        self.hand_in();
        round::give_back();
        self.hand_over();
    }

    /// Counts threads that have been in one piece of work since the last look, and has others take their places. `before`: what was seen then. False: no thread works.
    pub fn look_for_stuck(self: &Arc<Self>, before: &mut Vec<(Weak<Beat>, Seen)>, long: Duration) -> bool {
        let beats = self.beats.lock().clone();
        before.retain(|(known, _)| known.strong_count() > 0);
        for beat in &beats {
            if !before.iter().any(|(known, _)| known.as_ptr() == Arc::as_ptr(beat)) {
                before.push((Arc::downgrade(beat), Seen::new()));
            }
        }
        let mut works = false;
        for (beat, seen) in before {
            let Some(beat) = beat.upgrade() else { continue };
            if beat.look(seen, long) {
                match self.crew.stuck() {
                    Need::Spawn => self.spawn(),
                    Need::Nothing => {}
                    Need::End => {
                        self.counters.computations_ended.add(1);
                        beat.end_work();
                    }
                }
                self.hand_over();
            }
            works |= seen.works();
        }
        works
    }

    /// Gives what the group has in hand to whoever comes for the queue.
    pub fn hand_over(&self) {
        let rest = std::mem::take(&mut *self.hand.lock());
        if !rest.is_empty() {
            self.counters.handed_over.add(rest.len() as u64);
            self.enqueue(rest.into_iter());
        }
    }

    /// Puts work into the queue and makes sure that somebody comes for it: whoever finds it empty calls one thread, whoever leaves something in it calls another.
    pub fn enqueue(&self, work: impl Iterator<Item = Work>) {
        let now = self.counters.latency.now();
        let was_empty = {
            let mut queue = self.queue.lock();
            let was_empty = queue.is_empty();
            queue.extend(work.map(|work| (work, now)));
            self.queued.store(queue.len(), Ordering::SeqCst);
            was_empty
        };
        if was_empty {
            self.call_one();
        }
    }

    pub fn enqueue_turn(&self, connection: Arc<Connection>, bits: u32) {
        self.enqueue(std::iter::once(Work::Turn(connection, bits)));
    }

    fn call_one(&self) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake.signal();
        }
    }

    /// Makes a waiting thread look at the stop flag; the next one is woken by that one.
    pub fn rouse(&self) {
        self.wake.signal();
        self.crew.rouse();
    }

    pub fn register_gated(&self, connection: Arc<Connection>) {
        self.durable.add_async_waiter();
        self.gated.lock().push(connection);
        self.any_gated.store(true, Ordering::SeqCst);
    }

    /// The watermark has moved.
    pub fn on_durable(&self) {
        fence(Ordering::SeqCst);
        if self.any_gated.load(Ordering::Relaxed) {
            self.release.store(true, Ordering::SeqCst);
            self.call_one();
        }
    }

    fn release_gated(self: &Arc<Self>, scratch: &mut Scratch) {
        if !self.release.swap(false, Ordering::SeqCst) {
            return;
        }
        self.any_gated.store(false, Ordering::SeqCst);
        let mut all = std::mem::take(&mut *self.gated.lock());
        while all.len() > RELEASE_BATCH {
            let rest = all.split_off(all.len() - RELEASE_BATCH);
            if self.waiting() > 0 {
                // Somebody is free to help.
                self.enqueue(rest.into_iter().map(|connection| Work::Turn(connection, RELEASE)));
            } else {
                rest.into_iter().for_each(|connection| connection.notify(RELEASE, scratch));
            }
        }
        all.into_iter().for_each(|connection| connection.notify(RELEASE, scratch));
        send_batch::send(Some(scratch));
    }

    /// Connections that have their home here.
    pub fn population(&self) -> usize {
        self.population.load(Ordering::Relaxed)
    }

    /// The processor that a thread of the group ran on last.
    pub fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed)
    }

    /// Takes a connection into the set. What its socket already holds is reported.
    pub fn adopt(&self, connection: &Arc<Connection>) -> std::io::Result<()> {
        let token = self.slab.write().insert(connection);
        self.population.fetch_add(1, Ordering::Relaxed);
        connection.token.store(token, Ordering::Relaxed);
        self.epoll.add(connection.stream(), token, true).inspect_err(|_| self.part(connection))
    }

    /// Takes a connection out of the set, if it is in it.
    pub fn part(&self, connection: &Connection) {
        self.epoll.remove(connection.stream());
        if self.slab.write().remove(connection.token.swap(NO_TOKEN, Ordering::Relaxed)) {
            self.population.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A connection has closed.
    pub fn forget(&self, connection: &Connection) {
        self.part(connection);
        self.counters.closed.add(1);
        if let Some(pool) = self.pool() {
            pool.connections.fetch_sub(1, Ordering::SeqCst);
        }
    }

    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.slab.read().slots.iter().filter_map(|(_, connection)| connection.clone()).collect()
    }

    /// A peer has stopped taking output; if it goes on like that, it is disconnected.
    pub fn watch_slow(self: &Arc<Self>, connection: &Arc<Connection>) {
        let mut slow = self.slow.lock();
        slow.push(Arc::downgrade(connection));
        if slow.len() == 1 {
            self.arm_slow();
        }
    }

    fn arm_slow(self: &Arc<Self>) {
        let Some(pool) = self.pool() else { return };
        let group = Arc::downgrade(self);
        let delay = self.live.write_timeout() / 4;
        pool.timers.add(
            delay,
            Box::new(move || {
                if let Some(group) = group.upgrade() {
                    group.check_slow();
                }
            }),
        );
    }

    fn check_slow(self: &Arc<Self>) {
        let (now, limit) = (self.now_ms(), self.live.write_timeout().as_millis() as u64);
        let mut dead = Vec::new();
        let mut slow = self.slow.lock();
        slow.retain(|weak| {
            let Some(connection) = weak.upgrade() else { return false };
            let since = connection.blocked_since_ms.load(Ordering::Relaxed);
            if since == 0 || connection.is_closed() {
                return false;
            }
            if now.saturating_sub(since) < limit {
                return true;
            }
            dead.push(connection);
            false
        });
        if !slow.is_empty() {
            self.arm_slow();
        }
        drop(slow);
        for connection in dead {
            self.enqueue_turn(connection, crate::connection::KILL);
        }
    }
}

impl Slab {
    fn insert(&mut self, connection: &Arc<Connection>) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(connection.clone());
        TOKEN_CONNECTION | u64::from(slot.0) << 32 | u64::from(index)
    }

    /// The connection that a token names, unless its place has gone to another one.
    fn get(&self, token: u64) -> Option<Arc<Connection>> {
        let (generation, connection) = self.slots.get(token as u32 as usize)?;
        if *generation == generation_of(token) { connection.clone() } else { None }
    }

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
