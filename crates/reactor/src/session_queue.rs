//! The queue of a session (a serial executor): the requests of one session run one after another, in the order in which they came. They run beside those of the connection's other
//! sessions, in any free thread.
//!
//! A door that has many sessions on a connection makes a queue for each, pushes requests while it parses, and passes the queues that were idle to
//! [`Connection::dispatch_sessions`]. The hard part is that no session waits for another: a request that waits for a row lock keeps its own thread and nothing else,
//! neither its connection nor other sessions.
//!
//! ```text
//!   push: requests.add(request); is_active? nothing more : is_active = true, the caller schedules a run
//!   run:  loop { requests empty? is_active = false, end : take one, serve it, pass the reply to the connection }
//! ```
//! Both lines run under the queue's mutex, so no request is left behind and two threads never run one session (RE-12).
//!
//! A request that can continue only after something else has come (the client's permission to send more) parks: the queue keeps no thread and runs nothing until `wake`.
//! A wake-up before the park is not lost: the flag stays until the queue is about to park. Two wake-ups before it parks count as one.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use stdx::sync::Mutex;

use crate::mailbox::Task;
use crate::shared::Shared;
use crate::state::{Connection, Handle};

/// Requests that a queue runs before it yields to others of its group.
const RUN_MAX: usize = 32;
/// A thread keeps its buffer for replies up to this capacity.
const REPLY_KEPT: usize = 64 << 10;

thread_local! {
    /// The reply buffer of the thread, empty between runs, so that replies are written into memory that is allocated already.
    static REPLIES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A call of a session.
#[derive(Debug, PartialEq, Eq)]
pub enum Call<R> {
    Request(R),
    /// Continues the request that called [`Reply::pause`] or [`Reply::park`].
    Resume,
}

/// Serves one call of a session. It may wait, announced through `stdx::wait`.
pub type Serve<S, R> = fn(&mut S, Call<R>, &mut Reply<'_>);

/// The outcome of a push.
#[derive(Debug, PartialEq, Eq)]
pub enum Pushed<R> {
    /// The queue was idle. The caller passes it to [`Connection::dispatch_sessions`].
    WasIdle,
    Queued,
    /// The queue has as many requests as it may; this one is returned.
    Full(R),
    /// The session has ended; the request is returned.
    Closed(R),
}

/// The reply that a call writes.
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    durability_lsn: &'a mut u64,
    connection: &'a Handle,
    waker: &'a dyn Fn() -> Waker,
    pending: Pending,
}

/// Wakes a parked session from any thread.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// The event that the current request waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pending {
    /// Nothing: it is done.
    Nothing,
    /// The peer has to take more output.
    OutputRoom,
    /// A call of `SessionQueue::wake`.
    Wake,
}

impl Reply<'_> {
    /// Returns the buffer for the reply, which takes whole messages: those of other sessions may come before and after each `send`, never within it.
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Holds everything that the session writes from now on until the WAL is durable up to `lsn`.
    pub fn hold_until_durable(&mut self, lsn: u64) {
        *self.durability_lsn = lsn.max(*self.durability_lsn);
    }

    /// Passes the output written so far to the connection. Returns false if the peer has not taken enough: the request stops producing and calls `pause`.
    pub fn send(&mut self) -> bool {
        self.connection.reply(self.out, *self.durability_lsn);
        self.out.clear();
        self.connection.has_output_room()
    }

    /// Leaves the request unfinished. It continues with `Call::Resume` when the peer has taken enough (RE-10).
    pub fn pause(&mut self) {
        self.pending = Pending::OutputRoom;
    }

    /// Leaves the request unfinished. It continues with `Call::Resume` after `SessionQueue::wake`. It may also continue without one, so the request checks its condition again.
    pub fn park(&mut self) {
        self.pending = Pending::Wake;
    }

    /// Returns a function that does the same as `SessionQueue::wake`, for code without access to the queue.
    pub fn waker(&self) -> Waker {
        (self.waker)()
    }
}

/// The queue of one of a connection's sessions. Clones are the same queue.
pub struct SessionQueue<S, R>(Arc<Inner<S, R>>);

impl<S, R> Clone for SessionQueue<S, R> {
    fn clone(&self) -> Self {
        SessionQueue(self.0.clone())
    }
}

struct Inner<S, R> {
    connection: Handle,
    shared: Arc<Shared>,
    serve: Serve<S, R>,
    queue_max: usize,
    queue: Mutex<Queue<R>>,
    /// Locked by the thread that runs the session. `Queue::is_active` makes sure that there is one.
    body: Mutex<Body<S>>,
}

struct Queue<R> {
    requests: VecDeque<R>,
    /// Scheduled, running, paused or parked.
    is_active: bool,
    is_closed: bool,
    /// Nothing runs the session before `wake`.
    is_parked: bool,
    /// `wake` was called since the session parked last.
    is_woken: bool,
    /// The timestamp of the request that ended the idle time; 0 if the session has run since, or latencies are off.
    idle_ended: u64,
}

struct Body<S> {
    /// None after the end.
    session: Option<S>,
    /// No reply of the session leaves before the WAL is durable up to this LSN. It never falls, so a later reply never overtakes an earlier one (RE-6).
    durability_lsn: u64,
    /// The event that the request at the front waits for.
    pending: Pending,
}

impl<S: Send + 'static, R: Send + 'static> SessionQueue<S, R> {
    /// Makes the queue of a session on `connection`. At most `queue_max` requests wait in it.
    pub fn new(connection: &Arc<Connection>, session: S, queue_max: usize, serve: Serve<S, R>) -> SessionQueue<S, R> {
        SessionQueue(Arc::new(Inner {
            connection: connection.handle(),
            shared: connection.group().shared.clone(),
            serve,
            queue_max,
            queue: Mutex::new(Queue {
                requests: VecDeque::new(),
                is_active: false,
                is_closed: false,
                is_parked: false,
                is_woken: false,
                idle_ended: 0,
            }),
            body: Mutex::new(Body { session: Some(session), durability_lsn: 0, pending: Pending::Nothing }),
        }))
    }

    /// Appends a request.
    pub fn push(&self, request: R) -> Pushed<R> {
        let mut queue = self.0.queue.lock();
        if queue.is_closed {
            return Pushed::Closed(request);
        }
        if queue.requests.len() >= self.0.queue_max {
            return Pushed::Full(request);
        }
        queue.requests.push_back(request);
        if std::mem::replace(&mut queue.is_active, true) {
            return Pushed::Queued;
        }
        queue.idle_ended = self.0.shared.counters.latency.now();
        self.0.connection.session_started();
        Pushed::WasIdle
    }

    /// Appends a request from any thread and schedules a run if the queue was idle.
    pub fn post(&self, request: R) -> Pushed<R> {
        let pushed = self.push(request);
        if matches!(pushed, Pushed::WasIdle) {
            self.0.connection.schedule(self.task());
        }
        pushed
    }

    /// Continues a parked request. A request that is about to park does not park then.
    pub fn wake(&self) {
        let mut queue = self.0.queue.lock();
        let was_parked = std::mem::take(&mut queue.is_parked);
        queue.is_woken = !was_parked;
        drop(queue);
        if was_parked {
            self.0.connection.schedule(self.task());
        }
    }

    /// Returns the number of requests that wait.
    pub fn queued(&self) -> usize {
        self.0.queue.lock().requests.len()
    }

    /// Ends the session: waiting requests are dropped, the current request is the last one, and the session is dropped after it, in a thread of the pool. May be called
    /// more than once.
    pub fn close(&self) {
        let (was_idle, was_parked) = {
            let mut queue = self.0.queue.lock();
            queue.requests.clear();
            queue.is_closed = true;
            (!std::mem::replace(&mut queue.is_active, true), std::mem::take(&mut queue.is_parked))
        };
        if was_idle {
            self.0.connection.session_started();
        }
        if was_idle || was_parked {
            self.0.connection.schedule(self.task());
        } else {
            // It may be paused, and its peer may never take any output again.
            self.0.connection.resume_sessions();
        }
    }

    /// Returns one run of the queue, for `Connection::dispatch_sessions`. Called after `push` has returned `WasIdle`.
    pub fn task(&self) -> Task {
        let queue = self.clone();
        Box::new(move || queue.run())
    }

    fn run(&self) {
        let mut out = REPLIES.take();
        self.run_with(&mut out);
        if out.capacity() <= REPLY_KEPT {
            REPLIES.set(out);
        }
    }

    /// Runs up to `RUN_MAX` requests. `out` is empty before and after.
    fn run_with(&self, out: &mut Vec<u8>) {
        let inner = &*self.0;
        // The previous run may not have released the body yet.
        let mut body = inner.body.lock();
        for _ in 0..RUN_MAX {
            if body.pending != Pending::Nothing && !inner.queue.lock().is_closed {
                // Once woken, it may still have to wait until the peer takes more.
                let is_parking = std::mem::replace(&mut body.pending, Pending::OutputRoom) == Pending::Wake;
                drop(body);
                if is_parking && self.park() || !inner.connection.wait_for_output_room(|| self.task()) {
                    return;
                }
                body = inner.body.lock();
            }
            let Some(call) = self.next_call(&mut body) else { return };
            self.serve(call, &mut body, out);
            if out.capacity() > REPLY_KEPT {
                *out = Vec::new();
            }
        }
        drop(body);
        inner.connection.schedule(self.task());
    }

    /// Parks the session. Returns false if it was woken or closed before.
    fn park(&self) -> bool {
        let mut queue = self.0.queue.lock();
        queue.is_parked = !std::mem::take(&mut queue.is_woken) && !queue.is_closed;
        queue.is_parked
    }

    /// Returns the next call. None if there is none: the queue is idle, or the session has ended.
    fn next_call(&self, body: &mut Body<S>) -> Option<Call<R>> {
        let mut queue = self.0.queue.lock();
        if std::mem::replace(&mut body.pending, Pending::Nothing) != Pending::Nothing && !queue.is_closed {
            return Some(Call::Resume);
        }
        if let Some(request) = queue.requests.pop_front() {
            let since = std::mem::take(&mut queue.idle_ended);
            drop(queue);
            let latency = &self.0.shared.counters.latency;
            latency.record(&latency.schedule, since);
            return Some(Call::Request(request));
        }
        // A closed queue stays active, so that nothing schedules it again.
        queue.is_active = queue.is_closed;
        let ended = if queue.is_closed { body.session.take() } else { None };
        drop(queue);
        drop(ended);
        self.0.connection.session_rested();
        None
    }

    /// Serves one call and passes its reply to the connection. A panic closes the connection.
    fn serve(&self, call: Call<R>, body: &mut Body<S>, out: &mut Vec<u8>) {
        let Body { session: Some(session), durability_lsn, pending } = body else { return };
        let connection = &self.0.connection;
        let waker = || -> Waker {
            let queue = self.clone();
            Arc::new(move || queue.wake())
        };
        let mut reply = Reply { out, durability_lsn, connection, waker: &waker, pending: Pending::Nothing };
        let result = catch_unwind(AssertUnwindSafe(|| (self.0.serve)(session, call, &mut reply)));
        *pending = reply.pending;
        connection.reply(out, *durability_lsn);
        out.clear();
        if result.is_err() {
            *pending = Pending::Nothing;
            connection.report_panic();
            self.close();
        }
    }
}
