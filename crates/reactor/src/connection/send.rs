//! Sending: the output in its order, none of it before the WAL is durable up to its durability LSN (RE-6).
//!
//! Small output leaves with the send batch of the round. Large, encrypted or blocked output is sent here.

use std::io::{ErrorKind, Result};
use std::sync::Arc;

use stdx::sync::MutexGuard;
use stdx::sync::atomic::{Ordering, fence};

use crate::run_state::WRITE;
use crate::scratch::Scratch;
use crate::state::{Connection, StreamState};
use crate::sys;
use crate::tls::Sent;

/// Output up to this size leaves with that of other connections.
const BATCHED_MAX: usize = 64 << 10;
/// Unsent output below this size is copied out of the thread's buffer.
const SMALL_OUTPUT: usize = 16 << 10;

impl StreamState {
    /// Returns the bytes that leave with the send batch.
    pub fn batched(&self) -> &[u8] {
        &self.out[self.sent..self.batched_end]
    }
}

impl Connection {
    /// Sends the output that no durability LSN holds back, or marks it for the send batch. Returns false if the peer is gone.
    pub(super) fn flush(self: &Arc<Self>, state: &mut StreamState, scratch: &mut Scratch) -> bool {
        let end = self.sendable_end(state);
        if end > state.sent && end - state.sent <= BATCHED_MAX && state.tls.is_none() && !state.is_blocked {
            state.batched_end = end;
            return true;
        }
        self.flush_now(state, scratch)
    }

    /// Sends the output that no durability LSN holds back. Returns false if the peer is gone.
    pub(super) fn flush_now(self: &Arc<Self>, state: &mut StreamState, scratch: &mut Scratch) -> bool {
        state.batched_end = 0;
        loop {
            let end = self.sendable_end(state);
            let is_held = end < state.out.len();
            let sent = if state.tls.is_some() {
                self.send_tls(state, end, scratch)
            } else {
                self.send_plain(state, end, scratch)
            };
            match sent {
                Ok(Sent::All) => state.is_blocked = false,
                Ok(Sent::Some) => {
                    if self.blocked_since_ms.load(Ordering::Relaxed) == 0 {
                        self.blocked_since_ms.store(self.shared().now_ms().max(1), Ordering::Relaxed);
                        self.group().watch_blocked(self);
                    }
                    self.keep_output(state, Some(scratch));
                    return true;
                }
                Err(_) => return false,
            }
            self.keep_output(state, Some(scratch));
            if !is_held || state.is_registered {
                return true;
            }
            // RE-3: register first, then read the watermark and the gate. Their listeners run after the advance or the opening and then look for registered connections.
            state.is_registered = true;
            self.group().register_held(self.clone());
            fence(Ordering::SeqCst);
            if self.sendable_end(state) == state.sent {
                return true;
            }
        }
    }

    /// Sends the output up to `end`.
    fn send_plain(&self, state: &mut StreamState, end: usize, scratch: &mut Scratch) -> Result<Sent> {
        while state.sent < end {
            match sys::send(&self.stream, &state.out[state.sent..end]) {
                Ok(bytes) => {
                    state.sent += bytes;
                    scratch.tally.add_send(bytes as u64);
                    self.blocked_since_ms.store(0, Ordering::Relaxed);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Sent::Some),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Sent::All)
    }

    /// Encrypts and sends the output up to `end`, and the messages of TLS itself.
    fn send_tls(&self, state: &mut StreamState, end: usize, scratch: &mut Scratch) -> Result<Sent> {
        let StreamState { tls: Some(tls), out, sent, .. } = state else {
            unreachable!("the caller has checked that TLS is on")
        };
        loop {
            let before = tls.waiting();
            let result = tls.send(&self.stream)?;
            let bytes = before - tls.waiting();
            scratch.tally.add_send(bytes as u64);
            if bytes > 0 {
                self.blocked_since_ms.store(0, Ordering::Relaxed);
            }
            if result == Sent::Some || *sent >= end {
                return Ok(result);
            }
            let encrypted = tls.encrypt(&out[*sent..end])?;
            if encrypted == 0 {
                // The handshake has not ended.
                return Ok(Sent::All);
            }
            *sent += encrypted;
        }
    }

    /// Drops the holds that the watermark has passed and returns the end of the output that may be sent. While the gate is closed, that is nothing.
    fn sendable_end(&self, state: &mut StreamState) -> usize {
        let shared = self.shared();
        if !shared.may_reply() {
            return state.sent;
        }
        let durable = shared.durable.get();
        while state.holds.front().is_some_and(|hold| hold.lsn <= durable) {
            state.holds.pop_front();
        }
        state.holds.front().map_or(state.out.len(), |hold| (hold.start - state.out_start) as usize)
    }

    /// Returns an empty output buffer to the thread and copies a small rest, so that waiting connections hold little memory.
    ///
    /// Without `scratch` (the thread is about to wait) the buffer is freed: a connection that keeps its empty output is not at rest, and would stay out of rounds.
    fn keep_output(&self, state: &mut StreamState, scratch: Option<&mut Scratch>) {
        let rest = state.out.len() - state.sent;
        self.set_pending_out(rest as u64);
        if rest == 0 {
            state.out_start += state.sent as u64;
            state.sent = 0;
            let empty = std::mem::take(&mut state.out);
            if let Some(scratch) = scratch {
                scratch.return_output_buffer(empty);
            }
        } else if rest <= SMALL_OUTPUT && state.out.capacity() > rest + SMALL_OUTPUT {
            let kept = state.out[state.sent..].to_vec();
            state.out_start += state.sent as u64;
            state.sent = 0;
            let full = std::mem::replace(&mut state.out, kept);
            if let Some(scratch) = scratch {
                scratch.return_output_buffer(full);
            }
        }
    }

    /// Records how many bytes are unsent, here and in the total of all connections.
    pub(super) fn set_pending_out(&self, bytes: u64) {
        let before = self.pending_out.swap(bytes, Ordering::Relaxed);
        if before != bytes {
            self.shared().counters.unsent.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
            self.resume_sessions_if_room();
        }
    }

    /// Locks the state of a connection in the send batch.
    pub(crate) fn lock_batched(&self) -> MutexGuard<'_, StreamState> {
        let state = self.stream_state.lock();
        debug_assert!(state.batched_end > state.sent, "RE-8: a connection in the send batch has output");
        state
    }

    /// Handles the result of the send batch and releases the connection. Work that remains is left to the queue (RE-8).
    pub(crate) fn batch_sent(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, StreamState>,
        result: Result<usize>,
        mut scratch: Option<&mut Scratch>,
    ) {
        // An error, also a full socket, shows again when the rest is sent.
        let bytes = result.unwrap_or(0);
        state.sent += bytes;
        state.is_blocked = state.sent < state.batched_end;
        state.batched_end = 0;
        if bytes > 0 {
            self.blocked_since_ms.store(0, Ordering::Relaxed);
        }
        match &mut scratch {
            Some(scratch) => scratch.tally.add_send(bytes as u64),
            None => {
                self.shared().counters.bytes_out.add(bytes as u64);
                self.shared().counters.sends.add(u64::from(bytes > 0));
            }
        }
        self.keep_output(&mut state, scratch);
        // Input that RE-10 left in the socket makes no further edge.
        let is_idle = !state.is_unread && !state.is_closing && !state.is_paused;
        let is_done = is_idle && state.sent == state.out.len() && state.holds.is_empty();
        if !is_done || !self.run_state.release() {
            let bits = self.run_state.release_with_events();
            self.group().enqueue_events(self.clone(), bits | WRITE);
        }
    }
}
