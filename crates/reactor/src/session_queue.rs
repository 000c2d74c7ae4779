//! A session apart from the connection that carries it: its requests run one after another in the order they came, beside those of the connection's other
//! sessions, in whatever thread is free.
//!
//! A door that has many sessions on a connection makes a strand for each, pushes requests while it reads, and gives those strands that were idle to
//! [`Connection::dispatch_sessions`]. The hard thing is that nobody waits for anybody: a strand whose request waits for a row lock keeps its own thread and nothing else,
//! neither its connection's turn nor other strands.
//!
//! ```text
//!   push: queue.add(request); running? nothing more : running = true, the caller schedules the strand
//!   run:  loop { queue empty? running = false, end : take one, serve it, hand the reply to the connection }
//! ```
//! Both lines are under the queue's mutex, so a request is never left behind and two threads are never in one strand (R12).
//!
//! A request that can go on only after something else has come (a client's leave to send more) parks: the strand keeps no thread and runs nothing until somebody wakes it.
//! Who wakes it too early is heard all the same: the word stays with the queue until the strand is about to park. Two words before it parks are one.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use stdx::sync::Mutex;

use crate::Counters;
use crate::connection::{Connection, Handle};
use crate::mailbox::Task;

/// Requests that a strand runs before others of its group have their turn.
const RUN_MAX: usize = 32;
/// A thread's buffer for replies is kept for the next request up to this capacity.
const REPLY_KEPT: usize = 64 << 10;

thread_local! {
    /// Empty, between runs: replies are written into memory that is there already.
    static REPLIES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What a strand is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Call<R> {
    Request(R),
    /// Go on with the request that said [`Reply::pause`].
    Resume,
}

/// Serves one call of a session. May wait, announced by `stdx::wait`.
pub type Serve<S, R> = fn(&mut S, Call<R>, &mut Reply<'_>);

/// What became of a pushed request.
#[derive(Debug, PartialEq, Eq)]
pub enum Pushed<R> {
    /// The strand was idle: whoever pushed gives it to [`Connection::dispatch_sessions`].
    WasIdle,
    Queued,
    /// As many requests wait as may; this one is given back.
    Full(R),
    /// The session has ended.
    Closed(R),
}

/// A reply under way.
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    gate: &'a mut u64,
    connection: &'a Handle,
    waker: &'a dyn Fn() -> Waker,
    rest: Rest,
}

/// Wakes the request that has parked, from anywhere.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// How a request under way is left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Done.
    No,
    /// Until the peer has taken enough.
    Room,
    /// Until it is woken.
    Woken,
}

impl Reply<'_> {
    /// Replies go here, whole messages: those of other sessions come before and after, never within what is sent at once.
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Everything that the session writes from here on leaves after the watermark has reached `position`.
    pub fn hold_until_durable(&mut self, position: u64) {
        *self.gate = position.max(*self.gate);
    }

    /// Hands over what is written so far. False if the peer has not taken what it was sent: the request stops producing and says `pause`.
    pub fn send(&mut self) -> bool {
        self.connection.reply(self.out, *self.gate);
        self.out.clear();
        self.connection.has_room()
    }

    /// The request is not done: it goes on (`Call::Resume`) when the peer has taken enough (R10).
    pub fn pause(&mut self) {
        self.rest = Rest::Room;
    }

    /// The request is not done: it goes on (`Call::Resume`) after `SessionQueue::wake`. It may also go on without: whoever parks looks at what it waits for.
    pub fn park(&mut self) {
        self.rest = Rest::Woken;
    }

    /// `SessionQueue::wake` of this session, for who has no strand at hand.
    pub fn waker(&self) -> Waker {
        (self.waker)()
    }
}

/// One session of a connection that has many. Clones are the same session.
pub struct SessionQueue<S, R>(Arc<Inner<S, R>>);

impl<S, R> Clone for SessionQueue<S, R> {
    fn clone(&self) -> Self {
        SessionQueue(self.0.clone())
    }
}

struct Inner<S, R> {
    connection: Handle,
    counters: Arc<Counters>,
    serve: Serve<S, R>,
    queue_max: usize,
    queue: Mutex<Queue<R>>,
    /// Locked by the thread that runs the strand, which is one because of `Queue::running`.
    body: Mutex<Body<S>>,
}

struct Queue<R> {
    requests: VecDeque<R>,
    /// Scheduled, running, paused or parked.
    running: bool,
    closed: bool,
    /// Nobody will run it before it is woken.
    parked: bool,
    /// It was woken since it parked last.
    woken: bool,
    /// When the request came that ended its rest; 0: it has been run since, or times are not measured.
    rest_ended: u64,
}

struct Body<S> {
    /// None after the end.
    session: Option<S>,
    /// No reply of the session leaves before this position: a later one never overtakes an earlier one.
    gate: u64,
    /// How the request at the front was left.
    rest: Rest,
}

impl<S: Send + 'static, R: Send + 'static> SessionQueue<S, R> {
    /// A session on `connection`. At most `queue_max` requests wait in it.
    pub fn new(connection: &Arc<Connection>, session: S, queue_max: usize, serve: Serve<S, R>) -> SessionQueue<S, R> {
        SessionQueue(Arc::new(Inner {
            connection: connection.handle(),
            counters: connection.group().counters.clone(),
            serve,
            queue_max,
            queue: Mutex::new(Queue {
                requests: VecDeque::new(),
                running: false,
                closed: false,
                parked: false,
                woken: false,
                rest_ended: 0,
            }),
            body: Mutex::new(Body { session: Some(session), gate: 0, rest: Rest::No }),
        }))
    }

    /// Appends a request.
    pub fn push(&self, request: R) -> Pushed<R> {
        let mut queue = self.0.queue.lock();
        if queue.closed {
            return Pushed::Closed(request);
        }
        if queue.requests.len() >= self.0.queue_max {
            return Pushed::Full(request);
        }
        queue.requests.push_back(request);
        if std::mem::replace(&mut queue.running, true) {
            return Pushed::Queued;
        }
        queue.rest_ended = self.0.counters.latency.now();
        self.0.connection.strand_starts();
        Pushed::WasIdle
    }

    /// The same from anywhere: if the strand was idle it is scheduled here.
    pub fn post(&self, request: R) -> Pushed<R> {
        let pushed = self.push(request);
        if matches!(pushed, Pushed::WasIdle) {
            self.0.connection.schedule(self.task());
        }
        pushed
    }

    /// A request that has parked goes on; one that is about to does not park.
    pub fn wake(&self) {
        let mut queue = self.0.queue.lock();
        let is_parked = std::mem::take(&mut queue.parked);
        queue.woken = !is_parked;
        drop(queue);
        if is_parked {
            self.0.connection.schedule(self.task());
        }
    }

    /// Requests that wait.
    pub fn queued(&self) -> usize {
        self.0.queue.lock().requests.len()
    }

    /// Ends the session: what waits is forgotten, the request under way is the last, and the session is dropped behind it, in a thread of the pool. May be called
    /// twice.
    pub fn close(&self) {
        let (is_idle, is_parked) = {
            let mut queue = self.0.queue.lock();
            queue.requests.clear();
            queue.closed = true;
            (!std::mem::replace(&mut queue.running, true), std::mem::take(&mut queue.parked))
        };
        if is_idle {
            self.0.connection.strand_starts();
        }
        if is_idle || is_parked {
            self.0.connection.schedule(self.task());
        } else {
            // It may be paused, and its peer may never take anything again.
            self.0.connection.resume_strands();
        }
    }

    /// One run of a strand that `push` has called the first; for `Connection::dispatch_sessions`.
    pub fn task(&self) -> Task {
        let strand = self.clone();
        Box::new(move || strand.run())
    }

    fn run(&self) {
        let mut out = REPLIES.take();
        self.run_with(&mut out);
        if out.capacity() <= REPLY_KEPT {
            REPLIES.set(out);
        }
    }

    /// `out`: empty, before and after.
    fn run_with(&self, out: &mut Vec<u8>) {
        let inner = &*self.0;
        // A run before this one may still be about to let go.
        let mut body = inner.body.lock();
        for _ in 0..RUN_MAX {
            if body.rest != Rest::No && !inner.queue.lock().closed {
                // Woken, it may still have to wait for room.
                let is_parking = std::mem::replace(&mut body.rest, Rest::Room) == Rest::Woken;
                drop(body);
                if is_parking && self.parks() || !inner.connection.wait_for_room(|| self.task()) {
                    return;
                }
                body = inner.body.lock();
            }
            let Some(call) = self.next(&mut body) else { return };
            self.serve(call, &mut body, out);
            if out.capacity() > REPLY_KEPT {
                *out = Vec::new();
            }
        }
        drop(body);
        inner.connection.schedule(self.task());
    }

    /// False: it was woken, or closed, before.
    fn parks(&self) -> bool {
        let mut queue = self.0.queue.lock();
        queue.parked = !std::mem::take(&mut queue.woken) && !queue.closed;
        queue.parked
    }

    /// What is next; None: nothing, and the strand is idle or at its end.
    fn next(&self, body: &mut Body<S>) -> Option<Call<R>> {
        let mut queue = self.0.queue.lock();
        if std::mem::replace(&mut body.rest, Rest::No) != Rest::No && !queue.closed {
            return Some(Call::Resume);
        }
        if let Some(request) = queue.requests.pop_front() {
            let since = std::mem::take(&mut queue.rest_ended);
            drop(queue);
            self.0.counters.latency.record(&self.0.counters.latency.schedule, since);
            return Some(Call::Request(request));
        }
        // A closed one stays "running", so that nobody schedules it again.
        queue.running = queue.closed;
        let ended = if queue.closed { body.session.take() } else { None };
        drop(queue);
        drop(ended);
        self.0.connection.strand_rests();
        None
    }

    fn serve(&self, call: Call<R>, body: &mut Body<S>, out: &mut Vec<u8>) {
        let Body { session: Some(session), gate, rest } = body else { return };
        let connection = &self.0.connection;
        let waker = || -> Waker {
            let strand = self.clone();
            Arc::new(move || strand.wake())
        };
        let mut reply = Reply { out, gate, connection, waker: &waker, rest: Rest::No };
        let done = catch_unwind(AssertUnwindSafe(|| (self.0.serve)(session, call, &mut reply)));
        *rest = reply.rest;
        connection.reply(out, *gate);
        out.clear();
        if done.is_err() {
            *rest = Rest::No;
            connection.panicked();
            self.close();
        }
    }
}
