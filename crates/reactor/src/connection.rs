//! One socket and its session: who may run it, what it has received, what it may send.
//!
//! ```text
//!   state word:  RUNNING | what is to be looked at (READ, WRITE, RELEASE, WAKE, PUSH, KILL)
//!
//!   notify(bits):  old = state |= bits | RUNNING;   RUNNING was clear? the caller runs it : whoever runs it sees the bits
//!   run:           loop { bits = swap(RUNNING); look at bits;  CAS(RUNNING -> 0)? done : new bits came, again }
//! ```
//! So a connection is never run by two threads, nobody ever waits for the one that runs it, and no event is lost (R1): it is XRPC's try-lock and recheck
//! with both flags in one word.

use std::any::Any;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};

use stdx::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use stdx::sync::{Mutex, MutexGuard};

use crate::door::{AnyDoor, Flow, Io, Waiting};
use crate::group::{Group, NO_TOKEN};
use crate::mailbox::Mailbox;
use crate::scratch::Scratch;
use crate::tls::{Sent, Tls, TlsConfig};
use crate::{send_batch, sys};

const RUNNING: u32 = 1;
pub(crate) const READ: u32 = 2;
pub(crate) const WRITE: u32 = 4;
/// The watermark may have passed a gate.
pub(crate) const RELEASE: u32 = 8;
pub(crate) const WAKE: u32 = 16;
pub(crate) const PUSH: u32 = 32;
pub(crate) const KILL: u32 = 64;
/// Close as soon as nothing is owed.
pub(crate) const DRAIN: u32 = 128;
/// Go on with input that fairness left in the socket.
pub(crate) const RESUME: u32 = 256;
/// The input holds requests that nobody has looked at.
pub(crate) const SERVE: u32 = 512;

/// The peer sends no more: what is received last is the end of the stream.
pub(crate) const END: u32 = 1024;

/// A connection gives way to others after this many bytes.
const TURN_BYTES: usize = 1 << 20;
/// Receives between two looks at where a connection's packets come in.
const STEER_AFTER: u32 = 64;
/// Output up to this size goes out with that of other connections.
const PUT_UP_MAX: usize = 64 << 10;
/// Output that may wait when all connections together have too much of it: enough for pipelines of small replies, which wait for the log and not for the client.
const CROWDED_OUTPUT: usize = 4 << 10;
/// Output below this size is copied out of the thread's buffer when it has to wait.
const SMALL_OUTPUT: usize = 16 << 10;

/// The state word alone, for the model.
#[derive(Default)]
pub(crate) struct Turn(AtomicU32);

impl Turn {
    /// Taken from the start, by who makes the connection.
    pub fn taken() -> Turn {
        Turn(AtomicU32::new(RUNNING))
    }

    /// The first runner gives the connection free; returns the events that have come meanwhile.
    pub fn open(&self) -> u32 {
        self.0.swap(0, Ordering::AcqRel) & !RUNNING
    }

    /// Adds events; true if the caller has to run the connection.
    pub fn notify(&self, bits: u32) -> bool {
        self.0.fetch_or(bits | RUNNING, Ordering::AcqRel) & RUNNING == 0
    }

    /// Takes the events there are. Only the runner calls this.
    pub fn take(&self) -> u32 {
        self.0.swap(RUNNING, Ordering::AcqRel) & !RUNNING
    }

    /// Takes back events that the runner is about to deal with: left standing, they would look like new ones at the end of the run. Only the runner calls this.
    pub fn answer(&self, bits: u32) {
        self.0.fetch_and(!bits | RUNNING, Ordering::AcqRel);
    }

    /// Gives the connection free, unless events have come since `take`.
    pub fn release(&self) -> bool {
        self.0.compare_exchange(RUNNING, 0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Bytes of the output that wait for a log position.
struct Gate {
    position: u64,
    /// First byte of the output, as a stream offset.
    start: u64,
}

pub(crate) struct Inner {
    session: Option<Box<dyn Any + Send>>,
    tls: Option<Box<Tls>>,
    /// Received and not yet consumed.
    input: Vec<u8>,
    /// Size of the request at the front, if the session has said it.
    want: usize,
    out: Vec<u8>,
    /// Bytes of `out` already sent.
    sent: usize,
    /// The end of the bytes that go out with the round's outbox; 0 if none do.
    put_up: usize,
    /// The socket took less than was put up: what is left is sent on its own, so that the socket says when it can go on.
    is_stuck: bool,
    /// Stream offset of `out[0]`.
    out_start: u64,
    gates: VecDeque<Gate>,
    /// The socket may hold bytes that we have not read.
    unread: bool,
    /// The end of the stream has come, perhaps behind bytes.
    ended: bool,
    parked: bool,
    /// It is parked for as long as its peer is there.
    needs_peer: bool,
    /// The input holds whole requests that wait until the peer has taken what is written (R10).
    paused: bool,
    /// No more requests; close when the output is gone.
    closing: bool,
    registered: bool,
    /// The mailbox holds replies that wait for the watermark.
    holds_mail: bool,
    /// The round in which bytes were received last, by its beginning.
    heard: u64,
    /// Receives since the last look at where packets come in.
    receives: u32,
    /// The group that the last look suggested, if it was not the home.
    suggested: Option<usize>,
}

/// Bytes in a connection's buffers: received and not consumed, written and not sent; and the memory that both take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    pub received: u64,
    pub unsent: u64,
    pub receive_room: u64,
    pub send_room: u64,
}

/// Facts about a connection, and the way to reach it from outside.
pub struct Connection {
    pub id: u64,
    pub peer: SocketAddr,
    pub local: SocketAddr,
    pub opened_ms: u64,
    pub(crate) token: AtomicU64,
    stream: TcpStream,
    door: Arc<dyn AnyDoor>,
    groups: Arc<[Arc<Group>]>,
    /// Which of the groups watches the socket. Changed by the runner only; an older value is good enough for everybody else, since any thread may
    /// run any connection.
    home: AtomicUsize,
    turn: Turn,
    inner: Mutex<Inner>,
    /// What others than the runner have for the connection.
    pub(crate) mailbox: Mutex<Mailbox>,
    /// Strands wait in the mailbox for room.
    pub(crate) any_paused: AtomicBool,
    closed: AtomicBool,
    /// Called when the peer has gone while a request of it runs.
    on_departure: OnceLock<Box<dyn Fn() + Send + Sync>>,
    last_active_ms: AtomicU64,
    pending_out: AtomicU64,
    pending_in: AtomicU64,
    /// Since when output waits for the peer to take it, in milliseconds; 0 if it does not.
    pub(crate) blocked_since_ms: AtomicU64,
}

/// Reaches a connection without keeping it alive.
#[derive(Clone)]
pub struct Handle(Weak<Connection>);

impl Handle {
    /// Ends the session's parking: `serve` is called again, also without new input.
    pub fn wake(&self) {
        self.tell(WAKE);
    }

    /// Sends bytes out of turn, after what is written so far.
    pub fn push(&self, bytes: &[u8]) {
        self.reply(bytes, 0);
    }

    /// Closes the connection at once.
    pub fn kill(&self) {
        self.tell(KILL);
    }

    fn tell(&self, bits: u32) {
        self.with(|connection| connection.group().enqueue_turn(connection.clone(), bits));
    }

    /// None: the connection is gone.
    pub(crate) fn with<T>(&self, action: impl FnOnce(&Arc<Connection>) -> T) -> Option<T> {
        self.0.upgrade().map(|connection| action(&connection))
    }
}

impl Inner {
    /// Nothing is half served or half sent, and what comes is requests. A connection with TLS is on its own.
    fn is_at_rest(&self) -> bool {
        self.tls.is_none()
            && self.out.is_empty()
            && self.want == 0
            && self.gates.is_empty()
            && !self.parked
            && !self.paused
            && !self.closing
    }

    /// The session may have asked for TLS. False: that cannot be, because plain bytes are unsent or TLS is there already.
    fn start_tls(&mut self, config: Option<&Arc<TlsConfig>>) -> bool {
        let Some(config) = config else { return true };
        if self.tls.is_some() || self.out.len() > self.sent {
            return false;
        }
        self.tls = Tls::new(config).ok().map(Box::new);
        self.tls.is_some()
    }

    fn owes_nothing(&self) -> bool {
        self.out.is_empty() && self.tls.as_ref().is_none_or(|tls| tls.waiting() == 0)
    }

    /// What goes out with the outbox.
    pub fn put_up(&self) -> &[u8] {
        &self.out[self.sent..self.put_up]
    }
}

impl Connection {
    pub(crate) fn new(
        id: u64,
        stream: TcpStream,
        peer: SocketAddr,
        local: SocketAddr,
        door: Arc<dyn AnyDoor>,
        tls: Option<Box<Tls>>,
        (groups, home): (Arc<[Arc<Group>]>, usize),
    ) -> Connection {
        let now = groups[home].now_ms();
        Connection {
            id,
            peer,
            local,
            opened_ms: now,
            token: AtomicU64::new(NO_TOKEN),
            stream,
            door,
            groups,
            home: AtomicUsize::new(home),
            turn: Turn::taken(),
            inner: Mutex::new(Inner {
                session: None,
                tls,
                input: Vec::new(),
                want: 0,
                out: Vec::new(),
                sent: 0,
                put_up: 0,
                is_stuck: false,
                out_start: 0,
                gates: VecDeque::new(),
                unread: true,
                ended: false,
                parked: false,
                needs_peer: false,
                paused: false,
                closing: false,
                registered: false,
                holds_mail: false,
                heard: 0,
                receives: 0,
                suggested: None,
            }),
            mailbox: Mutex::default(),
            any_paused: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            on_departure: OnceLock::new(),
            last_active_ms: AtomicU64::new(now),
            pending_out: AtomicU64::new(0),
            pending_in: AtomicU64::new(0),
            blocked_since_ms: AtomicU64::new(0),
        }
    }

    pub fn handle(self: &Arc<Self>) -> Handle {
        Handle(Arc::downgrade(self))
    }

    /// The number of the socket's descriptor, for reports.
    pub fn fd(&self) -> i32 {
        self.stream.as_raw_fd()
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn group(&self) -> &Arc<Group> {
        &self.groups[self.home.load(Ordering::Relaxed)]
    }

    pub(crate) fn groups_and_home(&self) -> (&[Arc<Group>], usize) {
        (&self.groups, self.home.load(Ordering::Relaxed))
    }

    /// Milliseconds of the pool's clock when the last bytes came.
    pub fn last_active_ms(&self) -> u64 {
        self.last_active_ms.load(Ordering::Relaxed)
    }

    /// Bytes received and not consumed, bytes written and not sent.
    pub fn pending(&self) -> (u64, u64) {
        (self.pending_in.load(Ordering::Relaxed), self.pending_out.load(Ordering::Relaxed))
    }

    /// What it has in its buffers. Of a connection that runs just now, the room in them is not known and told as what they hold.
    pub fn buffers(&self) -> Buffers {
        let (received, unsent) = self.pending();
        let rooms = self.inner.try_lock().map(|inner| (inner.input.capacity() as u64, inner.out.capacity() as u64));
        let (receive_room, send_room) = rooms.unwrap_or((received, unsent));
        Buffers { received, unsent, receive_room, send_room }
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// The connection is watched: from here on whoever brings an event runs it.
    pub(crate) fn settle(self: &Arc<Self>) {
        let bits = self.turn.open();
        if bits != 0 {
            self.group().enqueue_turn(self.clone(), bits);
        }
    }

    /// Lets the door make its session, before the first event. False: refused, and told why.
    pub(crate) fn start(self: &Arc<Self>) -> bool {
        match self.door.open(self) {
            Ok(session) => {
                self.inner.lock().session = Some(session);
                true
            }
            Err(farewell) => {
                if self.inner.lock().tls.is_none() {
                    let _ = sys::send(&self.stream, &farewell);
                }
                self.closed.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// Ends the session without a word to the peer: the connection could not be watched, or nobody is left to run it.
    pub(crate) fn abandon(&self) {
        self.closed.store(true, Ordering::Relaxed);
        if let Some(session) = self.inner.lock().session.take() {
            self.door.close(session);
        }
    }

    /// Adds events and runs the connection, unless another thread is at it.
    pub(crate) fn notify(self: &Arc<Self>, bits: u32, scratch: &mut Scratch) {
        if self.raise(bits) {
            self.run(scratch);
        }
    }

    /// Adds events; true if the caller has to run the connection. If another thread runs it and the peer has gone, that thread's request hears of it.
    fn raise(&self, bits: u32) -> bool {
        let is_runner = self.turn.notify(bits);
        if !is_runner && bits & END != 0 {
            self.depart();
        }
        is_runner
    }

    /// `action` is called, from any thread, when the peer closes the connection while a request of it runs. Only the first call of this counts.
    pub fn on_departure(&self, action: Box<dyn Fn() + Send + Sync>) {
        let _ = self.on_departure.set(action);
    }

    fn depart(&self) {
        if let Some(action) = self.on_departure.get() {
            action();
        }
    }

    fn run(self: &Arc<Self>, scratch: &mut Scratch) {
        self.go_on(self.inner.lock(), scratch);
    }

    fn go_on<'i>(self: &'i Arc<Self>, mut inner: MutexGuard<'i, Inner>, scratch: &mut Scratch) {
        loop {
            let bits = self.turn.take();
            let alive = self.is_closed() || self.look(bits, &mut inner, scratch);
            match self.leave(inner, alive, scratch) {
                Some(again) => inner = again,
                None => return,
            }
        }
    }

    /// Ends a run. Some: new events have come, and the turn is still the caller's.
    fn leave<'i>(
        self: &'i Arc<Self>,
        mut inner: MutexGuard<'i, Inner>,
        alive: bool,
        scratch: &mut Scratch,
    ) -> Option<MutexGuard<'i, Inner>> {
        if !alive {
            self.shut(&mut inner);
        }
        if inner.put_up > 0 {
            drop(inner);
            send_batch::put(self.clone(), scratch);
            return None;
        }
        if self.turn.release() { None } else { Some(inner) }
    }

    /// Adds events like `notify`. If they only say that requests have come to a connection at rest, these are received and returned with the session: the
    /// turn stays taken until `serve_arrived` or `take_back`.
    pub(crate) fn arrive(self: &Arc<Self>, bits: u32, scratch: &mut Scratch) -> Option<Waiting> {
        if !self.raise(bits) {
            return None;
        }
        let mut inner = self.inner.lock();
        if self.is_closed() || bits & !(READ | WRITE | SERVE) != 0 || !inner.is_at_rest() {
            self.go_on(inner, scratch);
            return None;
        }
        if bits & SERVE != 0 && !inner.input.is_empty() {
            // Received before, and given back.
            self.turn.answer(bits);
            inner.unread |= bits & READ != 0;
            let session = inner.session.take().expect("an open connection has a session");
            return Some(Waiting { session, input: std::mem::take(&mut inner.input), is_deferred: false });
        }
        if bits & READ == 0 || !inner.input.is_empty() {
            self.go_on(inner, scratch);
            return None;
        }
        // Before the receive, so that what comes after it is an event of its own.
        self.turn.answer(bits);
        let mut input = scratch.give_input();
        let room = input.capacity();
        let result = sys::receive_append(&self.stream, &mut input);
        inner.unread = true;
        let got = self.received(result, room, &mut inner, scratch);
        if got.is_some_and(|bytes| bytes > 0) && !inner.unread {
            let session = inner.session.take().expect("an open connection has a session");
            return Some(Waiting { session, input, is_deferred: false });
        }
        // The end, nothing, or more than a round takes.
        let alive = got.is_some() && self.serve_input(&input, &mut inner, scratch) && self.after(&mut inner, scratch);
        scratch.take_input(input);
        if let Some(inner) = self.leave(inner, alive, scratch) {
            self.go_on(inner, scratch);
        }
        None
    }

    /// Serves what `arrive` has received.
    pub(crate) fn serve_arrived(self: &Arc<Self>, waiting: Waiting, scratch: &mut Scratch) {
        let mut inner = self.inner.lock();
        inner.session = Some(waiting.session);
        let alive = self.serve_input(&waiting.input, &mut inner, scratch) && self.after(&mut inner, scratch);
        scratch.take_input(waiting.input);
        if let Some(inner) = self.leave(inner, alive, scratch) {
            self.go_on(inner, scratch);
        }
    }

    /// Takes what `arrive` has received back into the connection and leaves it to the queue.
    pub(crate) fn take_back(self: &Arc<Self>, waiting: Waiting) {
        let mut inner = self.inner.lock();
        inner.session = Some(waiting.session);
        inner.input = waiting.input;
        drop(inner);
        let bits = self.turn.open();
        self.group().enqueue_turn(self.clone(), bits | SERVE);
    }

    /// Serves received bytes and keeps what is left of them.
    fn serve_input(self: &Arc<Self>, input: &[u8], inner: &mut Inner, scratch: &mut Scratch) -> bool {
        if input.is_empty() {
            return true;
        }
        let was_plain = inner.tls.is_none();
        let (consumed, alive) = self.serve(input, inner, scratch);
        let rest = &input[consumed..];
        if was_plain && inner.tls.is_some() {
            return alive && self.open_rest(rest, inner, scratch);
        }
        if !rest.is_empty() {
            inner.input.reserve_exact(inner.want.max(rest.len()));
            inner.input.extend_from_slice(rest);
        }
        alive
    }

    pub(crate) fn door(&self) -> &Arc<dyn AnyDoor> {
        &self.door
    }

    pub(crate) fn lock_put_up(&self) -> MutexGuard<'_, Inner> {
        let inner = self.inner.lock();
        debug_assert!(inner.put_up > inner.sent);
        inner
    }

    /// The outbox has sent the put up bytes, or some of them. Gives the connection free; what remains to be done is left to the queue.
    pub(crate) fn sent(
        self: &Arc<Self>,
        mut inner: MutexGuard<'_, Inner>,
        result: std::io::Result<usize>,
        mut scratch: Option<&mut Scratch>,
    ) {
        // An error, also a full socket, shows itself again when the rest is sent.
        let bytes = result.unwrap_or(0);
        inner.sent += bytes;
        inner.is_stuck = inner.sent < inner.put_up;
        inner.put_up = 0;
        if bytes > 0 {
            self.blocked_since_ms.store(0, Ordering::Relaxed);
        }
        match &mut scratch {
            Some(scratch) => scratch.tally.sent(bytes as u64),
            None => {
                self.group().counters.bytes_out.add(bytes as u64);
                self.group().counters.sends.add(u64::from(bytes > 0));
            }
        }
        self.keep_output(&mut inner, scratch);
        let done = inner.sent == inner.out.len() && inner.gates.is_empty() && !inner.closing && !inner.paused;
        if !done || !self.turn.release() {
            let bits = self.turn.open();
            self.group().enqueue_turn(self.clone(), bits | WRITE);
        }
    }

    /// Does what the events ask for; false: close.
    fn look(self: &Arc<Self>, bits: u32, inner: &mut Inner, scratch: &mut Scratch) -> bool {
        if bits & KILL != 0 {
            return false;
        }
        if bits & RELEASE != 0 {
            inner.registered = false;
        }
        if bits & PUSH != 0 || inner.holds_mail {
            inner.holds_mail = self.collect(&mut inner.out, &mut inner.registered);
            self.look_for_room();
        }
        if bits & READ != 0 {
            inner.unread = true;
        }
        if bits & END != 0 {
            inner.ended = true;
        }
        if bits & DRAIN != 0 {
            inner.closing = true;
        }
        let mut alive = self.flush(inner, scratch);
        if alive && (bits & WAKE != 0 && inner.parked || bits & SERVE != 0) {
            inner.parked = false;
            alive = self.serve_buffered(inner, scratch);
        }
        alive && self.after(inner, scratch)
    }

    /// Receives what else there is; false: close.
    fn after(self: &Arc<Self>, inner: &mut Inner, scratch: &mut Scratch) -> bool {
        let mut alive = self.receive(inner, scratch);
        if alive && inner.receives >= STEER_AFTER {
            alive = self.steer(inner, scratch);
        }
        self.pending_in.store(inner.input.len() as u64, Ordering::Relaxed);
        let has_departed = inner.parked && inner.needs_peer && inner.ended;
        alive && !has_departed && !(inner.closing && inner.owes_nothing() && !self.awaits_strands())
    }

    /// Moves the connection to the group that runs where its packets come in, if two looks agree and the groups stay even: then receiving, serving,
    /// sending and waking a peer on the same machine are one processor's work (R7). False: the connection is lost.
    #[cold]
    fn steer(self: &Arc<Self>, inner: &mut Inner, scratch: &Scratch) -> bool {
        inner.receives = 0;
        let home = self.home.load(Ordering::Relaxed);
        let target = match sys::incoming_cpu(&self.stream) {
            Some(cpu) if cpu != scratch.cpu => self.groups.iter().position(|group| group.cpu() == cpu),
            _ => None,
        };
        let Some(target) = target.filter(|target| *target != home) else {
            inner.suggested = None;
            return true;
        };
        if inner.suggested.replace(target) != Some(target) || !has_room(&self.groups[target], &self.groups[home]) {
            return true;
        }
        inner.suggested = None;
        self.groups[home].part(self);
        self.home.store(target, Ordering::Relaxed);
        self.groups[target].counters.migrated.add(1);
        self.groups[target].adopt(self).is_ok()
    }

    /// Reads and serves while there is something to read and the peer takes what we write.
    fn receive(self: &Arc<Self>, inner: &mut Inner, scratch: &mut Scratch) -> bool {
        let mut turn = 0;
        while (inner.unread || inner.paused) && !inner.parked && !inner.closing {
            // More to receive may mean much more to serve: what is ready goes first.
            if inner.put_up > 0 && turn > 0 && !self.flush_now(inner, scratch) {
                return false;
            }
            if inner.out.len() - inner.sent > self.output_max() {
                // Goes on when the peer has taken enough: WRITE and RELEASE come through here again.
                return true;
            }
            if turn > TURN_BYTES {
                self.group().enqueue_turn(self.clone(), RESUME);
                return true;
            }
            let got = if inner.paused {
                self.serve_paused(inner, scratch)
            } else if inner.tls.is_some() {
                self.receive_sealed(inner, scratch)
            } else if inner.input.is_empty() && inner.want == 0 {
                self.receive_scratch(inner, scratch)
            } else {
                self.receive_input(inner, scratch)
            };
            match got {
                Some(bytes) => turn += bytes,
                None => return false,
            }
        }
        true
    }

    /// How much may be unsent before nothing more is served.
    pub(crate) fn output_max(&self) -> usize {
        let group = self.group();
        let most = group.settings.output_soft_bytes;
        if group.counters.is_crowded(&group.settings) { most.min(CROWDED_OUTPUT) } else { most }
    }

    /// Goes on with the requests that were left in the input. The bytes written count as those of a turn.
    fn serve_paused(self: &Arc<Self>, inner: &mut Inner, scratch: &mut Scratch) -> Option<usize> {
        let before = inner.out_start + inner.out.len() as u64;
        let alive = self.serve_buffered(inner, scratch);
        let written = inner.out_start + inner.out.len() as u64 - before;
        alive.then_some(written as usize)
    }

    /// What a receive call means; None: the stream has ended.
    fn received(
        &self,
        result: std::io::Result<usize>,
        room: usize,
        inner: &mut Inner,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        match result {
            Ok(0) => None,
            Ok(bytes) => {
                // A short read emptied the socket: the next byte makes a new edge. The end may have come with the last one (R2).
                inner.unread = bytes == room || inner.ended;
                inner.receives += 1;
                self.time_receive(inner, scratch);
                scratch.tally.bytes_in += bytes as u64;
                self.last_active_ms.store(scratch.now_ms, Ordering::Relaxed);
                Some(bytes)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                inner.unread = false;
                Some(0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Some(0),
            Err(_) => None,
        }
    }

    /// Notes how long bytes took from the round's beginning: the first of them, and all that the socket held.
    fn time_receive(&self, inner: &mut Inner, scratch: &Scratch) {
        let times = &self.group().counters.latency;
        let is_first = std::mem::replace(&mut inner.heard, scratch.began) != scratch.began;
        if scratch.began == 0 || !is_first && inner.unread {
            return;
        }
        let taken = (times.elapsed().as_nanos() as u64).saturating_sub(scratch.began);
        if is_first {
            times.recv_first.record(taken);
        }
        if !inner.unread {
            times.recv_all.record(taken);
        }
    }

    /// The usual way: whole requests, served straight from the thread's buffer. Only a cut request is copied into the connection.
    fn receive_scratch(self: &Arc<Self>, inner: &mut Inner, scratch: &mut Scratch) -> Option<usize> {
        let mut buffer = std::mem::take(&mut scratch.input);
        let result = sys::receive(&self.stream, &mut buffer);
        let got = self.received(result, buffer.len(), inner, scratch);
        let mut alive = true;
        if let Some(bytes) = got
            && bytes > 0
        {
            alive = self.serve_input(&buffer[..bytes], inner, scratch);
        }
        scratch.input = buffer;
        if alive { got } else { None }
    }

    /// Receives through TLS: opens what comes into the connection's input and serves it from there.
    fn receive_sealed(self: &Arc<Self>, inner: &mut Inner, scratch: &mut Scratch) -> Option<usize> {
        let result = sys::receive(&self.stream, &mut scratch.input);
        let room = scratch.input.len();
        let got = self.received(result, room, inner, scratch)?;
        let before = inner.input.len();
        let missing = inner.want.saturating_sub(before);
        inner.input.reserve_exact(missing);
        let tls = inner.tls.as_mut().expect("looked at by the caller");
        let opened = tls.open(&scratch.input[..got], &mut inner.input);
        if opened.is_err() {
            let _ = tls.send(&self.stream);
            return None;
        }
        let (is_new, is_whole) = (inner.input.len() > before, inner.input.len() >= inner.want);
        let alive = if is_new && is_whole { self.serve_buffered(inner, scratch) } else { self.flush(inner, scratch) };
        alive.then_some(got)
    }

    /// A request that came in pieces, or one whose size is known: received where it will be looked at.
    fn receive_input(self: &Arc<Self>, inner: &mut Inner, scratch: &mut Scratch) -> Option<usize> {
        let missing = inner.want.saturating_sub(inner.input.len());
        inner.input.reserve_exact(if missing > 0 { missing } else { self.group().live.receive_bytes() });
        let room = inner.input.capacity() - inner.input.len();
        let result = sys::receive_append(&self.stream, &mut inner.input);
        let got = self.received(result, room, inner, scratch)?;
        if got > 0 && inner.input.len() >= inner.want && !self.serve_buffered(inner, scratch) {
            return None;
        }
        Some(got)
    }

    /// Serves what the connection holds; also without input, after a wake-up.
    fn serve_buffered(self: &Arc<Self>, inner: &mut Inner, scratch: &mut Scratch) -> bool {
        let mut input = std::mem::take(&mut inner.input);
        inner.want = 0;
        let was_plain = inner.tls.is_none();
        let (consumed, alive) = self.serve(&input, inner, scratch);
        if was_plain && inner.tls.is_some() {
            return alive && self.open_rest(&input[consumed..], inner, scratch);
        }
        if consumed == input.len() {
            input = Vec::new();
        } else {
            input.drain(..consumed);
            if inner.want > input.capacity() {
                input.reserve_exact(inner.want - input.len());
            }
        }
        inner.input = input;
        alive
    }

    /// TLS begins with what the session has left of the input.
    #[cold]
    fn open_rest(self: &Arc<Self>, rest: &[u8], inner: &mut Inner, scratch: &mut Scratch) -> bool {
        let Inner { tls: Some(tls), input, .. } = inner else { unreachable!("the caller has looked") };
        if tls.open(rest, input).is_err() {
            let _ = tls.send(&self.stream);
            return false;
        }
        self.flush(inner, scratch)
    }

    /// Lets the session run the requests of `input`; returns what it consumed, and false if the connection is to be closed now.
    fn serve(self: &Arc<Self>, input: &[u8], inner: &mut Inner, scratch: &mut Scratch) -> (usize, bool) {
        scratch.tally.batches += 1;
        if inner.out.is_empty() {
            inner.out_start += inner.sent as u64;
            inner.sent = 0;
            inner.out = scratch.give_output();
        }
        let start = inner.out.len();
        let mut session = inner.session.take().expect("an open connection has a session");
        let out_max = inner.sent + self.output_max();
        let tls_info = inner.tls.as_ref().and_then(|tls| tls.tls_info());
        let mut io = Io {
            input,
            consumed: 0,
            want: 0,
            out: &mut inner.out,
            gate: 0,
            park: false,
            needs_peer: false,
            out_max,
            paused: false,
            tls: None,
            tls_info,
            connection: self,
        };
        if inner.ended {
            self.depart();
        }
        let flow = catch_unwind(AssertUnwindSafe(|| self.door.serve(session.as_mut(), &mut io)));
        let Io { consumed, want, gate, park, needs_peer, paused, tls, .. } = io;
        inner.session = Some(session);
        inner.want = want;
        inner.parked = park;
        inner.needs_peer = needs_peer;
        inner.paused = paused && consumed < input.len();
        if gate > self.group().durable.get() && inner.out.len() > start {
            self.group().counters.replies_held.add(1);
            self.group().durable.request(gate);
            inner.gates.push_back(Gate { position: gate, start: inner.out_start + start as u64 });
        }
        let flow = flow.unwrap_or_else(|_| {
            self.group().counters.panics.add(1);
            Flow::CloseNow
        });
        inner.closing |= flow == Flow::Close;
        let alive = flow != Flow::CloseNow && inner.start_tls(tls.as_ref()) && self.flush(inner, scratch);
        (consumed, alive)
    }

    /// Sends what no gate holds back, or puts it up to be sent with the round's other replies; false if the peer is gone.
    fn flush(self: &Arc<Self>, inner: &mut Inner, scratch: &mut Scratch) -> bool {
        let free = self.free_bytes(inner);
        if free > inner.sent && free - inner.sent <= PUT_UP_MAX && inner.tls.is_none() && !inner.is_stuck {
            inner.put_up = free;
            return true;
        }
        self.flush_now(inner, scratch)
    }

    /// Sends what no gate holds back; false if the peer is gone.
    fn flush_now(self: &Arc<Self>, inner: &mut Inner, scratch: &mut Scratch) -> bool {
        inner.put_up = 0;
        loop {
            let free = self.free_bytes(inner);
            let sent = if inner.tls.is_some() {
                self.send_sealed(inner, free, scratch)
            } else {
                self.send_plain(inner, free, scratch)
            };
            match sent {
                Ok(Sent::All) => inner.is_stuck = false,
                Ok(Sent::Some) => {
                    if self.blocked_since_ms.load(Ordering::Relaxed) == 0 {
                        self.blocked_since_ms.store(self.group().now_ms().max(1), Ordering::Relaxed);
                        self.group().watch_slow(self);
                    }
                    self.keep_output(inner, Some(scratch));
                    return true;
                }
                Err(_) => return false,
            }
            self.keep_output(inner, Some(scratch));
            if inner.gates.is_empty() || inner.registered {
                return true;
            }
            // Register first, then look again; the watermark's listener raises the mark first and then looks who is registered (R3).
            inner.registered = true;
            self.group().register_gated(self.clone());
            fence(Ordering::SeqCst);
            let first = inner.gates.front().expect("looked at above").position;
            if self.group().durable.get() < first {
                return true;
            }
        }
    }

    /// Sends the output up to `free`.
    fn send_plain(&self, inner: &mut Inner, free: usize, scratch: &mut Scratch) -> std::io::Result<Sent> {
        while inner.sent < free {
            match sys::send(&self.stream, &inner.out[inner.sent..free]) {
                Ok(bytes) => {
                    inner.sent += bytes;
                    scratch.tally.sent(bytes as u64);
                    self.blocked_since_ms.store(0, Ordering::Relaxed);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Sent::Some),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Sent::All)
    }

    /// Seals and sends the output up to `free`, and what TLS itself has to say.
    fn send_sealed(&self, inner: &mut Inner, free: usize, scratch: &mut Scratch) -> std::io::Result<Sent> {
        let Inner { tls: Some(tls), out, sent, .. } = inner else { unreachable!("the caller has looked") };
        loop {
            let before = tls.waiting();
            let result = tls.send(&self.stream)?;
            let bytes = before - tls.waiting();
            scratch.tally.sent(bytes as u64);
            if bytes > 0 {
                self.blocked_since_ms.store(0, Ordering::Relaxed);
            }
            if result == Sent::Some || *sent >= free {
                return Ok(result);
            }
            let sealed = tls.seal(&out[*sent..free])?;
            if sealed == 0 {
                // The handshake is not over.
                return Ok(Sent::All);
            }
            *sent += sealed;
        }
    }

    /// End of the bytes that may go out now.
    fn free_bytes(&self, inner: &mut Inner) -> usize {
        let durable = self.group().durable.get();
        while inner.gates.front().is_some_and(|gate| gate.position <= durable) {
            inner.gates.pop_front();
        }
        inner.gates.front().map_or(inner.out.len(), |gate| (gate.start - inner.out_start) as usize)
    }

    /// After sending: empty output goes back to the thread, small rests are copied, so that waiting connections hold little memory.
    ///
    /// Without `scratch` (the thread is about to wait) too: a connection that keeps its empty output is not at rest, and would stay out of rounds.
    fn keep_output(&self, inner: &mut Inner, scratch: Option<&mut Scratch>) {
        let rest = inner.out.len() - inner.sent;
        self.owe_out(rest as u64);
        if rest == 0 {
            inner.out_start += inner.sent as u64;
            inner.sent = 0;
            let empty = std::mem::take(&mut inner.out);
            if let Some(scratch) = scratch {
                scratch.take_output(empty);
            }
        } else if rest <= SMALL_OUTPUT && inner.out.capacity() > rest + SMALL_OUTPUT {
            let kept = inner.out[inner.sent..].to_vec();
            inner.out_start += inner.sent as u64;
            inner.sent = 0;
            let full = std::mem::replace(&mut inner.out, kept);
            if let Some(scratch) = scratch {
                scratch.take_output(full);
            }
        }
    }

    /// So much is unsent now.
    fn owe_out(&self, bytes: u64) {
        let before = self.pending_out.swap(bytes, Ordering::Relaxed);
        if before != bytes {
            self.group().counters.unsent.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
            self.look_for_room();
        }
    }

    fn shut(self: &Arc<Self>, inner: &mut Inner) {
        self.closed.store(true, Ordering::Relaxed);
        self.group().forget(self);
        if let Some(tls) = &mut inner.tls {
            tls.end(&self.stream);
        }
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        inner.input = Vec::new();
        inner.out = Vec::new();
        inner.put_up = 0;
        inner.gates.clear();
        self.owe_out(0);
        let times = &self.group().counters.latency;
        let since = times.now();
        if let Some(session) = inner.session.take() {
            self.door.close(session);
        }
        self.empty_mailbox();
        times.record(&times.fin, since);
    }
}

/// A group takes connections from another one until it has an eighth more, or four.
fn has_room(target: &Group, home: &Group) -> bool {
    let other = home.population();
    target.population() < other + (other / 8).max(4)
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use stdx::sync::{Arc, thread};

    /// R1: two threads bring events; each event is looked at, and never by both threads at once.
    #[test]
    fn loom_every_event_is_seen_by_one_runner_at_a_time() {
        loom::model(|| {
            let turn = Arc::new(Turn::default());
            let inside = Arc::new(AtomicU32::new(0));
            let seen = Arc::new(AtomicU32::new(0));
            let tasks: Vec<_> = [READ, WRITE]
                .into_iter()
                .map(|bit| {
                    let (turn, inside, seen) = (turn.clone(), inside.clone(), seen.clone());
                    thread::spawn(move || {
                        if !turn.notify(bit) {
                            return;
                        }
                        loop {
                            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                            seen.fetch_or(turn.take(), Ordering::Relaxed);
                            inside.fetch_sub(1, Ordering::Relaxed);
                            if turn.release() {
                                return;
                            }
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.join().unwrap();
            }
            assert_eq!(seen.load(Ordering::Relaxed), READ | WRITE);
        });
    }
}
