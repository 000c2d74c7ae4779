//! Receiving: into the thread's buffer where requests arrive whole, into the connection where they are cut or large, through TLS where it is on.

use std::io::{ErrorKind, Result};
use std::sync::Arc;

use stdx::sync::atomic::Ordering;

use crate::run_state::RESUME;
use crate::scratch::Scratch;
use crate::state::{Connection, StreamState};
use crate::sys;

/// A connection yields to others after it has received this many bytes in one run.
const RUN_BYTES: usize = 1 << 20;

/// The unsent output that a connection may have when all connections together have too much: enough for pipelines of small replies, which wait for the WAL and not for the client.
const CROWDED_OUTPUT: usize = 4 << 10;

impl Connection {
    /// Receives and serves while there is input and the peer takes the output. Returns false if the connection has to be closed.
    pub(super) fn receive(self: &Arc<Self>, state: &mut StreamState, scratch: &mut Scratch) -> bool {
        let mut run_bytes = 0;
        while (state.is_unread || state.is_paused) && !state.is_parked && !state.is_closing {
            // More input may mean much more to serve, so the output that is ready is sent first.
            if state.batched_end > 0 && run_bytes > 0 && !self.flush_now(state, scratch) {
                return false;
            }
            if state.out.len() - state.sent > self.output_max() {
                // RE-10: the connection continues here when the peer has taken enough, by WRITE or RELEASE.
                return true;
            }
            if run_bytes > RUN_BYTES {
                self.group().enqueue_events(self.clone(), RESUME);
                return true;
            }
            let received = if state.is_paused {
                self.serve_paused(state, scratch)
            } else if state.tls.is_some() {
                self.receive_tls(state, scratch)
            } else if state.input.is_empty() && state.needed == 0 {
                self.receive_scratch(state, scratch)
            } else {
                self.receive_input(state, scratch)
            };
            match received {
                Some(bytes) => run_bytes += bytes,
                None => return false,
            }
        }
        true
    }

    /// Returns how much output may be unsent before no further request is served (RE-10).
    pub(crate) fn output_max(&self) -> usize {
        let shared = self.shared();
        let most = shared.settings.output_soft_bytes;
        if shared.is_crowded() { most.min(CROWDED_OUTPUT) } else { most }
    }

    /// Interprets the result of a receive call into a buffer of `capacity` bytes. Returns the number of bytes, or None at the end of the stream.
    pub(super) fn note_receive(
        &self,
        result: Result<usize>,
        capacity: usize,
        state: &mut StreamState,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        match result {
            Ok(0) => None,
            Ok(bytes) => {
                // RE-2: a short read has emptied the socket, so the next byte makes a new edge. The end of the stream may have come with the last byte.
                state.is_unread = bytes == capacity || state.has_ended;
                state.receives += 1;
                self.record_latency(state, scratch);
                scratch.tally.bytes_in += bytes as u64;
                self.last_active_ms.store(scratch.now_ms, Ordering::Relaxed);
                Some(bytes)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                state.is_unread = false;
                Some(0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Some(0),
            Err(_) => None,
        }
    }

    /// Records the time from the beginning of the round to the first received bytes, and to the receive that emptied the socket.
    fn record_latency(&self, state: &mut StreamState, scratch: &Scratch) {
        let latency = &self.shared().counters.latency;
        let is_first = std::mem::replace(&mut state.last_round, scratch.began) != scratch.began;
        if scratch.began == 0 || !is_first && state.is_unread {
            return;
        }
        let elapsed = (latency.elapsed().as_nanos() as u64).saturating_sub(scratch.began);
        if is_first {
            latency.recv_first.record(elapsed);
        }
        if !state.is_unread {
            latency.recv_all.record(elapsed);
        }
    }

    /// Receives into the thread's buffer and serves from there, which is the usual case: whole requests. Only a cut request is copied into the connection.
    fn receive_scratch(self: &Arc<Self>, state: &mut StreamState, scratch: &mut Scratch) -> Option<usize> {
        let mut buffer = std::mem::take(&mut scratch.input);
        let result = sys::receive(&self.stream, &mut buffer);
        let received = self.note_receive(result, buffer.len(), state, scratch);
        let mut is_alive = true;
        if let Some(bytes) = received
            && bytes > 0
        {
            is_alive = self.serve_input(&buffer[..bytes], state, scratch);
        }
        scratch.input = buffer;
        if is_alive { received } else { None }
    }

    /// Receives TLS records, decrypts them into the connection's input and serves from there.
    fn receive_tls(self: &Arc<Self>, state: &mut StreamState, scratch: &mut Scratch) -> Option<usize> {
        let result = sys::receive(&self.stream, &mut scratch.input);
        let capacity = scratch.input.len();
        let received = self.note_receive(result, capacity, state, scratch)?;
        let before = state.input.len();
        let missing = state.needed.saturating_sub(before);
        state.input.reserve_exact(missing);
        let tls = state.tls.as_mut().expect("the caller has checked that TLS is on");
        if tls.decrypt(&scratch.input[..received], &mut state.input).is_err() {
            let _ = tls.send(&self.stream);
            return None;
        }
        let (is_new, is_whole) = (state.input.len() > before, state.input.len() >= state.needed);
        let is_alive =
            if is_new && is_whole { self.serve_buffered(state, scratch) } else { self.flush(state, scratch) };
        is_alive.then_some(received)
    }

    /// Receives into the connection's input: the rest of a cut request, or a request whose size is known.
    fn receive_input(self: &Arc<Self>, state: &mut StreamState, scratch: &mut Scratch) -> Option<usize> {
        let missing = state.needed.saturating_sub(state.input.len());
        state.input.reserve_exact(if missing > 0 { missing } else { self.shared().live.receive_bytes() });
        let capacity = state.input.capacity() - state.input.len();
        let result = sys::receive_append(&self.stream, &mut state.input);
        let received = self.note_receive(result, capacity, state, scratch)?;
        if received > 0 && state.input.len() >= state.needed && !self.serve_buffered(state, scratch) {
            return None;
        }
        Some(received)
    }
}
