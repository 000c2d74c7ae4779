//! Serving: passing received bytes to the door, and keeping the bytes that it does not consume.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::scratch::Scratch;
use crate::state::{Connection, Flow, Hold, Io, StreamState};
use crate::tls::{Tls, TlsConfig};

impl StreamState {
    /// Takes a buffer for output. The present one must be empty.
    pub(crate) fn begin_output(&mut self, scratch: &mut Scratch) {
        self.out_start += self.sent as u64;
        self.sent = 0;
        self.out = scratch.take_output_buffer();
    }

    /// Starts TLS if the session has requested it. Returns false if that is impossible, because plain bytes are unsent or TLS is on already.
    fn start_tls(&mut self, config: Option<&Arc<TlsConfig>>) -> bool {
        let Some(config) = config else { return true };
        if self.tls.is_some() || self.out.len() > self.sent {
            return false;
        }
        self.tls = Tls::new(config).ok().map(Box::new);
        self.tls.is_some()
    }
}

impl Connection {
    /// Serves received bytes and keeps the rest of them in the connection. Returns false if the connection has to be closed.
    pub(super) fn serve_input(self: &Arc<Self>, input: &[u8], state: &mut StreamState, scratch: &mut Scratch) -> bool {
        if input.is_empty() {
            return true;
        }
        let was_plain = state.tls.is_none();
        let (consumed, is_alive) = self.serve(input, state, scratch);
        let rest = &input[consumed..];
        if was_plain && state.tls.is_some() {
            return is_alive && self.decrypt_rest(rest, state, scratch);
        }
        if !rest.is_empty() {
            state.input.reserve_exact(state.needed.max(rest.len()));
            state.input.extend_from_slice(rest);
        }
        is_alive
    }

    /// Serves the connection's input; after a wake-up also without input. Returns false if the connection has to be closed.
    pub(super) fn serve_buffered(self: &Arc<Self>, state: &mut StreamState, scratch: &mut Scratch) -> bool {
        let mut input = std::mem::take(&mut state.input);
        state.needed = 0;
        let was_plain = state.tls.is_none();
        let (consumed, is_alive) = self.serve(&input, state, scratch);
        if was_plain && state.tls.is_some() {
            return is_alive && self.decrypt_rest(&input[consumed..], state, scratch);
        }
        if consumed == input.len() {
            input = Vec::new();
        } else {
            input.drain(..consumed);
            if state.needed > input.capacity() {
                input.reserve_exact(state.needed - input.len());
            }
        }
        state.input = input;
        is_alive
    }

    /// Continues with the requests that a pause left in the input (RE-10). Returns the number of bytes written, which count like received ones, or None if the connection has to be closed.
    pub(super) fn serve_paused(self: &Arc<Self>, state: &mut StreamState, scratch: &mut Scratch) -> Option<usize> {
        let before = state.out_start + state.out.len() as u64;
        let is_alive = self.serve_buffered(state, scratch);
        let written = state.out_start + state.out.len() as u64 - before;
        is_alive.then_some(written as usize)
    }

    /// Passes the input that a session has left when it started TLS to the TLS stream.
    #[cold]
    fn decrypt_rest(self: &Arc<Self>, rest: &[u8], state: &mut StreamState, scratch: &mut Scratch) -> bool {
        let StreamState { tls: Some(tls), input, .. } = state else { unreachable!("TLS has just been started") };
        if tls.decrypt(rest, input).is_err() {
            let _ = tls.send(&self.stream);
            return false;
        }
        self.flush(state, scratch)
    }

    /// Lets the session run the requests of `input`. Returns how many bytes it consumed, and false if the connection has to be closed now. A panic of the session closes the connection.
    fn serve(self: &Arc<Self>, input: &[u8], state: &mut StreamState, scratch: &mut Scratch) -> (usize, bool) {
        scratch.tally.batches += 1;
        if state.out.is_empty() {
            state.begin_output(scratch);
        }
        let start = state.out.len();
        let mut session = state.session.take().expect("an open connection has a session");
        let out_max = state.sent + self.output_max();
        let tls_info = state.tls.as_ref().and_then(|tls| tls.info());
        let mut io = Io {
            input,
            consumed: 0,
            needed: 0,
            out: &mut state.out,
            durability_lsn: 0,
            is_parked: false,
            closes_with_peer: false,
            out_max,
            is_paused: false,
            continues: false,
            tls: None,
            tls_info,
            connection: self,
        };
        if state.has_ended {
            self.report_departure();
        }
        let flow = catch_unwind(AssertUnwindSafe(|| self.door.serve(session.as_mut(), &mut io)));
        let Io { consumed, needed, durability_lsn, is_parked, closes_with_peer, is_paused, continues, tls, .. } = io;
        state.session = Some(session);
        state.needed = needed;
        state.is_parked = is_parked;
        state.closes_with_peer = closes_with_peer;
        state.is_paused = continues || is_paused && consumed < input.len();
        let shared = self.shared();
        if durability_lsn > shared.durable.get() && state.out.len() > start {
            shared.counters.replies_held.add(1);
            shared.durable.request(durability_lsn);
            state.holds.push_back(Hold { lsn: durability_lsn, start: state.out_start + start as u64 });
        }
        let flow = flow.unwrap_or_else(|_| {
            shared.counters.panics.add(1);
            Flow::CloseNow
        });
        if state.has_messages {
            self.append_messages(state, scratch);
        }
        state.is_closing |= flow == Flow::Close;
        let is_alive = flow != Flow::CloseNow && state.start_tls(tls.as_ref()) && self.flush(state, scratch);
        (consumed, is_alive)
    }
}
