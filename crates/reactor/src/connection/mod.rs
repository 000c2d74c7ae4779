//! One socket and its session: how a thread becomes its runner, handles its events, and leaves it.
//!
//! The runner alone uses the `StreamState`; its mutex is uncontended and exists for the borrow checker and for a reader of buffer sizes. Receiving, serving and sending have files of their own.
//!
//! Hard part: a run may end in several ways (released, kept for the send batch, kept for the round, closed), and each way must give up the run state exactly once (RE-1).

mod migrate;
mod receive;
mod replies;
mod send;
mod serve;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, OnceLock};

use stdx::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use stdx::sync::{Mutex, MutexGuard};

use crate::run_state::{ASK, DRAIN, END, KILL, PUSH, READ, RELEASE, RunState, SERVE, WAKE, WRITE};
use crate::scratch::Scratch;
use crate::shared::Shared;
use crate::state::{AnyDoor, Batch, Connection, Group, Handle, StreamState};
use crate::tls::Tls;
use crate::{group, send_batch, sys};

/// The bytes in a connection's buffers, and the memory of the buffers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    /// Bytes that are received and not consumed.
    pub received: u64,
    /// Bytes that are written and not sent.
    pub unsent: u64,
    pub receive_capacity: u64,
    pub send_capacity: u64,
}

impl Handle {
    /// Ends the parking of the session: `serve` is called again, even without new input.
    pub fn wake(&self) {
        self.notify(WAKE);
    }

    /// Calls `serve` soon, even without new input and if the session is not parked: it has something to say that nobody has asked for.
    pub fn ask(&self) {
        self.notify(ASK);
    }

    /// Sends bytes outside of a request, after all output that is written so far.
    pub fn push(&self, bytes: &[u8]) {
        self.reply(bytes, 0);
    }

    /// Closes the connection at once.
    pub fn kill(&self) {
        self.notify(KILL);
    }

    fn notify(&self, bits: u32) {
        self.with(|connection| connection.group().enqueue_events(connection.clone(), bits));
    }

    /// Calls `action` with the connection. Returns None if it is gone.
    pub(crate) fn with<T>(&self, action: impl FnOnce(&Arc<Connection>) -> T) -> Option<T> {
        self.0.upgrade().map(|connection| action(&connection))
    }
}

impl StreamState {
    fn new(tls: Option<Box<Tls>>) -> StreamState {
        StreamState {
            session: None,
            tls,
            input: Vec::new(),
            needed: 0,
            out: Vec::new(),
            sent: 0,
            batched_end: 0,
            is_blocked: false,
            out_start: 0,
            holds: VecDeque::new(),
            // Input that has come before the socket is watched makes an event like any other. Looking for it earlier would serve it without a look ahead.
            is_unread: false,
            has_ended: false,
            is_parked: false,
            closes_with_peer: false,
            is_paused: false,
            is_closing: false,
            is_registered: false,
            has_held_mail: false,
            has_messages: false,
            last_round: 0,
            receives: 0,
            suggested_home: None,
        }
    }

    /// Returns true if nothing is half served or half sent and new input consists of requests, so the connection can join a round. With TLS it never does.
    fn is_at_rest(&self) -> bool {
        self.tls.is_none()
            && self.out.is_empty()
            && self.needed == 0
            && self.holds.is_empty()
            && !self.is_parked
            && !self.is_paused
            && !self.is_closing
    }

    fn is_all_sent(&self) -> bool {
        self.out.is_empty() && self.tls.as_ref().is_none_or(|tls| tls.waiting() == 0)
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
        let now = groups[home].shared.now_ms();
        Connection {
            id,
            peer,
            local,
            opened_ms: now,
            token: AtomicU64::new(group::NO_TOKEN),
            stream,
            door,
            groups,
            home: AtomicUsize::new(home),
            run_state: RunState::running(),
            stream_state: Mutex::new(StreamState::new(tls)),
            mailbox: Mutex::default(),
            has_paused: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
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

    /// Returns the number of the socket's descriptor, for reports.
    pub fn fd(&self) -> i32 {
        self.stream.as_raw_fd()
    }

    pub(crate) fn group(&self) -> &Arc<Group> {
        &self.groups[self.home.load(Ordering::Relaxed)]
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.group().shared
    }

    /// Returns the time of the last received bytes, in milliseconds of the pool's clock.
    pub fn last_active_ms(&self) -> u64 {
        self.last_active_ms.load(Ordering::Relaxed)
    }

    /// Returns the bytes that are received and not consumed, and the bytes that are written and not sent.
    pub fn pending(&self) -> (u64, u64) {
        (self.pending_in.load(Ordering::Relaxed), self.pending_out.load(Ordering::Relaxed))
    }

    /// Returns the contents and the capacity of the buffers. While a thread runs the connection the capacity is unknown, and the contents are reported instead.
    pub fn buffers(&self) -> Buffers {
        let (received, unsent) = self.pending();
        let state = self.stream_state.try_lock();
        let capacities = state.map(|state| (state.input.capacity() as u64, state.out.capacity() as u64));
        let (receive_capacity, send_capacity) = capacities.unwrap_or((received, unsent));
        Buffers { received, unsent, receive_capacity, send_capacity }
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Releases a new connection. From now on any thread that brings an event may run it.
    pub(crate) fn publish(self: &Arc<Self>) {
        let bits = self.run_state.release_with_events();
        if bits != 0 {
            self.group().enqueue_events(self.clone(), bits);
        }
    }

    /// Lets the door make the session, before the first event. Returns false if the door refuses; its last bytes have been sent.
    pub(crate) fn start(self: &Arc<Self>) -> bool {
        match self.door.open(self) {
            Ok(session) => {
                self.stream_state.lock().session = Some(session);
                true
            }
            Err(farewell) => {
                if self.stream_state.lock().tls.is_none() {
                    let _ = sys::send(&self.stream, &farewell);
                }
                self.is_closed.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// Ends the session without notice to the peer: the connection could not be watched, or no thread is left to run it.
    pub(crate) fn abandon(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        if let Some(session) = self.stream_state.lock().session.take() {
            self.door.close(session);
        }
    }

    /// Adds events and runs the connection, unless another thread is its runner.
    pub(crate) fn notify(self: &Arc<Self>, bits: u32, scratch: &mut Scratch) {
        if self.add_events(bits) {
            self.run(self.stream_state.lock(), scratch);
        }
    }

    /// Adds events. Returns true if the caller has become the runner. If another thread runs a request of the connection and the peer has gone, the door is notified.
    fn add_events(&self, bits: u32) -> bool {
        let is_runner = self.run_state.notify(bits);
        if !is_runner && bits & END != 0 {
            self.report_departure();
        }
        is_runner
    }

    /// Registers `action`. It is called, from any thread, when the peer closes the connection while a request of it runs (RE-19). Only the first call counts.
    pub fn on_departure(&self, action: Box<dyn Fn() + Send + Sync>) {
        let _ = self.on_departure.set(action);
    }

    fn report_departure(&self) {
        if let Some(action) = self.on_departure.get() {
            action();
        }
    }

    /// Handles events until there are no more. The caller is the runner.
    fn run<'s>(self: &'s Arc<Self>, mut state: MutexGuard<'s, StreamState>, scratch: &mut Scratch) {
        loop {
            let bits = self.run_state.take();
            let is_alive = self.is_closed() || self.handle_events(bits, &mut state, scratch);
            match self.end_run(state, is_alive, scratch) {
                Some(again) => state = again,
                None => return,
            }
        }
    }

    /// Ends a run. Returns the state if new events have come and the caller is still the runner. A connection with batched output stays running until the batch is sent (RE-8).
    fn end_run<'s>(
        self: &'s Arc<Self>,
        mut state: MutexGuard<'s, StreamState>,
        is_alive: bool,
        scratch: &mut Scratch,
    ) -> Option<MutexGuard<'s, StreamState>> {
        if !is_alive {
            self.shut(&mut state);
        }
        if state.batched_end > 0 {
            drop(state);
            send_batch::enqueue(self.clone(), scratch);
            return None;
        }
        if self.run_state.release() { None } else { Some(state) }
    }

    /// Adds events as `notify` does. If they only announce requests for a connection at rest, the requests are received and returned with the session. The caller stays the
    /// runner until `serve_batch` or `take_back` (RE-9).
    pub(crate) fn take_batch(self: &Arc<Self>, bits: u32, scratch: &mut Scratch) -> Option<Batch> {
        if !self.add_events(bits) {
            return None;
        }
        let mut state = self.stream_state.lock();
        if self.is_closed() || bits & !(READ | WRITE | SERVE) != 0 || !state.is_at_rest() {
            self.run(state, scratch);
            return None;
        }
        if bits & SERVE != 0 && !state.input.is_empty() {
            // The requests were received in an earlier round and taken back.
            self.run_state.clear(bits);
            state.is_unread |= bits & READ != 0;
            let session = state.session.take().expect("an open connection has a session");
            return Some(Batch { session, input: std::mem::take(&mut state.input), is_deferred: false });
        }
        if bits & READ == 0 || !state.input.is_empty() {
            self.run(state, scratch);
            return None;
        }
        // Cleared before the receive, so that bytes that come after it make an event of their own.
        self.run_state.clear(bits);
        let mut input = scratch.take_input_buffer();
        let capacity = input.capacity();
        let result = sys::receive_append(&self.stream, &mut input);
        state.is_unread = true;
        let received = self.note_receive(result, capacity, &mut state, scratch);
        if received.is_some_and(|bytes| bytes > 0) && !state.is_unread {
            let session = state.session.take().expect("an open connection has a session");
            return Some(Batch { session, input, is_deferred: false });
        }
        // The end of the stream, no bytes, or more bytes than a round takes.
        let is_alive =
            received.is_some() && self.serve_input(&input, &mut state, scratch) && self.finish(&mut state, scratch);
        scratch.return_input_buffer(input);
        if let Some(state) = self.end_run(state, is_alive, scratch) {
            self.run(state, scratch);
        }
        None
    }

    /// Serves the requests that `take_batch` has received.
    pub(crate) fn serve_batch(self: &Arc<Self>, batch: Batch, scratch: &mut Scratch) {
        let mut state = self.stream_state.lock();
        state.session = Some(batch.session);
        let is_alive = self.serve_input(&batch.input, &mut state, scratch) && self.finish(&mut state, scratch);
        scratch.return_input_buffer(batch.input);
        if let Some(state) = self.end_run(state, is_alive, scratch) {
            self.run(state, scratch);
        }
    }

    /// Takes the session and the requests of `take_batch` back into the connection and leaves it to the queue.
    pub(crate) fn take_back(self: &Arc<Self>, batch: Batch) {
        let mut state = self.stream_state.lock();
        state.session = Some(batch.session);
        state.input = batch.input;
        drop(state);
        let bits = self.run_state.release_with_events();
        self.group().enqueue_events(self.clone(), bits | SERVE);
    }

    /// Handles events. Returns false if the connection has to be closed.
    fn handle_events(self: &Arc<Self>, bits: u32, state: &mut StreamState, scratch: &mut Scratch) -> bool {
        if bits & KILL != 0 {
            return false;
        }
        if bits & RELEASE != 0 {
            state.is_registered = false;
        }
        if bits & PUSH != 0 || state.has_held_mail {
            state.has_held_mail = self.collect_replies(&mut state.out, &mut state.is_registered);
            self.append_messages(state, scratch);
            self.resume_sessions_if_room();
        }
        if bits & READ != 0 {
            state.is_unread = true;
        }
        if bits & END != 0 {
            state.has_ended = true;
        }
        if bits & DRAIN != 0 {
            state.is_closing = true;
        }
        let mut is_alive = self.flush(state, scratch);
        if is_alive && (bits & WAKE != 0 && state.is_parked || bits & (SERVE | ASK) != 0) {
            state.is_parked = false;
            is_alive = self.serve_buffered(state, scratch);
        }
        is_alive && self.finish(state, scratch)
    }

    /// Receives and serves the rest of the input. Returns false if the connection has to be closed.
    fn finish(self: &Arc<Self>, state: &mut StreamState, scratch: &mut Scratch) -> bool {
        let is_alive = self.receive(state, scratch) && self.migrate_if_due(state, scratch);
        self.pending_in.store(state.input.len() as u64, Ordering::Relaxed);
        let has_departed = state.is_parked && state.closes_with_peer && state.has_ended;
        is_alive && !has_departed && !(state.is_closing && state.is_all_sent() && !self.awaits_sessions())
    }

    /// Closes the socket and ends the session.
    fn shut(self: &Arc<Self>, state: &mut StreamState) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.group().forget(self);
        if let Some(tls) = &mut state.tls {
            tls.end(&self.stream);
        }
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        state.input = Vec::new();
        state.out = Vec::new();
        state.batched_end = 0;
        state.holds.clear();
        self.set_pending_out(0);
        let latency = &self.shared().counters.latency;
        let since = latency.now();
        if let Some(session) = state.session.take() {
            self.door.close(session);
        }
        self.empty_mailbox();
        latency.record(&latency.fin, since);
    }
}
