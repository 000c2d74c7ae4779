//! The loop of a worker thread, and what it does before an announced wait.
//!
//! One iteration: park if the group has too many active threads; run queued events and tasks; publish that the thread will wait and look at the queue once more; wait for events;
//! run the connections that are ready. Events that a thread has taken and not yet run are in the group's local run queue. They move to the queue for other threads if the thread begins to wait
//! inside a request, or the watchdog finds it stuck in one (RE-5). Work that the connections leave for the group meanwhile, runs of their session queues and replies to be sent, also goes to the
//! local run queue and is run in the same iteration: without the queue, its clock and its wake-ups (RE-14).

use std::sync::Arc;

use stdx::sync::atomic::Ordering;
use stdx::wait::{Edge, Reason};

use crate::context::{self, begin_rest, begin_work};
use crate::group::{TOKEN_CONNECTION, TOKEN_PORT, TOKEN_SOURCE, TOKEN_TIMER, TOKEN_WAKE};
use crate::progress::Progress;
use crate::round;
use crate::run_state::{END, READ, WRITE};
use crate::scratch::Scratch;
use crate::send_batch;
use crate::state::{Connection, Group, Member, Work};
use crate::sys::Event;
use crate::worker_pool::Replacement;

/// The size of a worker's stack. It is address space until frames touch it. Statements may nest as deep as it allows: the limits of the SQL parser are derived from it.
const STACK_BYTES: usize = 16 << 20;
/// A thread returns the pages of its stack to the kernel after a request that went deeper than this.
const STACK_KEPT: usize = 1 << 20;

/// The wait hook of every worker: the thread hands its batch over, and another thread takes its place. With the hook installed, a debug build asserts that no wait is unannounced (RE-18).
fn on_wait(reason: &'static Reason, edge: Edge) -> bool {
    let may_begin = context::with_group(|group| {
        match edge {
            Edge::Begin => {
                begin_rest();
                let Some(replacement) = group.workers.stall(reason.is_bounded) else {
                    begin_work();
                    group.shared.counters.waits_refused.add(1);
                    return false;
                };
                // From here on the thread enqueues work for other threads.
                context::begin_wait();
                group.give_up_work();
                if replacement == Replacement::Spawn {
                    group.spawn();
                }
            }
            Edge::End => {
                context::end_wait();
                group.workers.resume(reason.is_bounded);
                begin_work();
            }
        }
        true
    });
    may_begin.unwrap_or(true)
}

/// The interrupt hook of every worker: a thread that was found stuck in a computation gives up the work that it has not begun. Returns false if the computation must end (RE-20).
fn on_interrupt_check() -> bool {
    let Some((true, must_end)) = context::with_progress(|progress| (progress.is_stuck(), progress.must_end())) else {
        return true;
    };
    context::with_group(|group| group.give_up_work());
    !must_end
}

/// Returns the stack's pages to the kernel if requests went deeper than `kept` bytes since the last call. The first call, with 0, asks for small pages.
fn release_stack(kept: usize) {
    let Some((used, end)) = stdx::stack::take_high_water() else { return };
    if kept == 0 {
        os::stack::small_pages(end);
    } else if used > kept {
        os::stack::release(end);
    }
}

impl Group {
    /// Spawns a base thread that the worker pool has counted, and adds its slot.
    pub fn spawn_base(self: &Arc<Self>, processor: Option<usize>) {
        self.slots.add(processor);
        self.spawn();
    }

    /// Spawns a thread that the worker pool has counted.
    pub fn spawn(self: &Arc<Self>) {
        let group = self.clone();
        self.shared.counters.threads_added.add(1);
        let body = move || {
            stdx::stack::register(STACK_BYTES);
            release_stack(0);
            group.slots.unbind();
            group.work();
            group.shared.counters.threads_removed.add(1);
        };
        let thread = std::thread::Builder::new().name("worker".into()).stack_size(STACK_BYTES);
        let thread = thread.spawn(body).expect("the system can make a thread");
        self.shared.threads.lock().push(thread);
    }

    fn work(self: &Arc<Self>) {
        let progress = Arc::new(Progress::own());
        self.progress.lock().push(progress.clone());
        context::enter(self.clone(), progress.clone());
        stdx::wait::install(Some(on_wait));
        stdx::wait::install_interrupt_hook(Some(on_interrupt_check));
        let mut scratch = Scratch::new(self.shared.live.receive_bytes());
        self.run_loop(&mut scratch);
        scratch.tally.settle(&self.shared.counters);
        scratch.return_slot(&self.slots);
        begin_rest();
        self.progress.lock().retain(|other| !Arc::ptr_eq(other, &progress));
        stdx::wait::install(None);
        stdx::wait::install_interrupt_hook(None);
        context::leave();
    }

    /// Runs until the pool stops or the thread is surplus for long.
    fn run_loop(self: &Arc<Self>, scratch: &mut Scratch) {
        let shared = &self.shared;
        let mut events = Vec::new();
        if let Some(source) = &self.source {
            (source.enter)();
        }
        while !shared.stop.load(Ordering::Relaxed) {
            if let Some(source) = &self.source {
                (source.poll)();
            }
            // The queue comes before parking: this thread may have consumed the only wake-up for it (RE-3).
            self.run_queue(scratch);
            if self.workers.may_have_surplus() {
                scratch.return_slot(&self.slots);
                begin_rest();
                if !self.workers.park_if_surplus(shared.live.shrink_time(), &shared.stop) {
                    break;
                }
            }
            scratch.take_slot(&self.slots);
            begin_rest();
            self.wait(&mut events);
            self.begin_round(scratch);
            shared.wake_watchdog();
            if self.must_release.load(Ordering::Relaxed) {
                self.release_held(scratch);
            }
            self.run_events(&events, scratch);
            scratch.tally.settle(&shared.counters);
            release_stack(STACK_KEPT);
        }
    }

    fn begin_round(&self, scratch: &mut Scratch) {
        begin_work();
        let latency = &self.shared.counters.latency;
        let elapsed = latency.elapsed();
        scratch.round_start = elapsed;
        scratch.now_ms = elapsed.as_millis() as u64;
        scratch.began = latency.timestamp(elapsed);
        if scratch.input.len() != self.shared.live.receive_bytes() {
            scratch.input = vec![0; self.shared.live.receive_bytes()];
        }
        scratch.cpu = os::cpu::current();
        if self.cpu.load(Ordering::Relaxed) != scratch.cpu {
            self.cpu.store(scratch.cpu, Ordering::Relaxed);
        }
    }

    fn run_queue(self: &Arc<Self>, scratch: &mut Scratch) {
        while self.queued.load(Ordering::Acquire) > 0 {
            self.begin_round(scratch);
            context::set_draining(true);
            for _ in 0..self.shared.live.events_per_thread() {
                let Some(work) = self.pop() else { break };
                self.run_work(work, scratch);
            }
            self.drain_local_queue(scratch);
        }
    }

    fn run_work(self: &Arc<Self>, work: Work, scratch: &mut Scratch) {
        begin_work();
        let is_session = matches!(work, Work::Session(_));
        match work {
            Work::Events(connection, bits) => self.bring_events(connection, bits, scratch),
            Work::Fetched(member) => round::rejoin(member),
            Work::Task(task) | Work::Session(task) => {
                // The task may take long, so the round is finished first.
                round::run(self, scratch);
                scratch.session_runs += u32::from(is_session);
                task();
            }
        }
    }

    /// Runs the local run queue until it is empty, with the work that is added to it meanwhile (RE-14).
    fn drain_local_queue(self: &Arc<Self>, scratch: &mut Scratch) {
        context::set_draining(true);
        loop {
            while let Some(work) = self.pop_local() {
                self.run_work(work, scratch);
            }
            round::run(self, scratch);
            if self.local_queue.lock().is_empty() {
                break;
            }
        }
        context::set_draining(false);
        self.record_run_cost(scratch);
    }

    /// Records the time that the session queues of the round have taken, and the rest of the round with them.
    fn record_run_cost(&self, scratch: &mut Scratch) {
        let count = std::mem::take(&mut scratch.session_runs);
        if count > 0 {
            let elapsed = self.shared.counters.latency.elapsed().saturating_sub(scratch.round_start);
            self.run_cost.record(elapsed, count);
        }
    }

    fn pop_local(&self) -> Option<Work> {
        self.local_queue.lock().pop_front()
    }

    /// Brings events to a connection. It joins the round if they announce requests.
    fn bring_events(&self, connection: Arc<Connection>, bits: u32, scratch: &mut Scratch) {
        if let Some(batch) = connection.take_batch(bits, scratch) {
            round::join(Member { connection, batch });
        }
    }

    fn run_events(self: &Arc<Self>, events: &[Event], scratch: &mut Scratch) {
        let mut others = Vec::new();
        {
            let (mut local_queue, slab) = (self.local_queue.lock(), self.slab.read());
            for event in events {
                if event.token & TOKEN_CONNECTION == 0 {
                    others.push(event.token);
                } else if let Some(connection) = slab.get(event.token) {
                    let bit = |on: bool, bit: u32| if on { bit } else { 0 };
                    let bits = bit(event.is_readable, READ) | bit(event.is_writable, WRITE) | bit(event.has_ended, END);
                    local_queue.push_back(Work::Events(connection, bits));
                }
            }
        }
        for token in others {
            match token {
                TOKEN_WAKE | TOKEN_SOURCE => {}
                TOKEN_TIMER => self.run_timers(),
                port => self.shared.on_connections.get().expect("set at start")(self.number, port - TOKEN_PORT),
            }
        }
        self.drain_local_queue(scratch);
    }

    fn run_timers(&self) {
        let latency = &self.shared.counters.latency;
        for action in self.shared.timers.due() {
            let since = latency.now();
            action();
            latency.record(&latency.timer, since);
        }
    }

    /// Sends the replies that are written, and leaves to other threads the work that the calling thread has taken and not begun (RE-5).
    fn give_up_work(&self) {
        send_batch::send(None);
        self.submit_source();
        round::give_back();
        self.hand_over();
    }
}
