//! The mailbox of a connection: replies and messages that other threads than its runner have written, and session queues that are paused until the peer takes more.
//!
//! A reply that waits for its durability LSN lets later replies pass, because they belong to other sessions. The durability LSNs within one session never fall, so the replies of a
//! session stay in order (RE-6).

use std::collections::VecDeque;
use std::sync::Arc;

/// A piece of work for a thread of the pool.
pub type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(crate) struct Mailbox {
    pub bytes: Vec<u8>,
    /// The durability LSN and the length of each reply in `bytes`.
    pub replies: Vec<(u64, usize)>,
    /// Messages that several connections share, in order, with their durability LSNs.
    pub messages: VecDeque<(u64, Arc<[u8]>)>,
    pub message_bytes: usize,
    /// The connection has been notified and will look here.
    is_notified: bool,
    /// Session queues that are scheduled, running or paused.
    pub active_sessions: usize,
    /// Runs of session queues that wait until the peer takes more (RE-10).
    pub paused: Vec<Task>,
    /// The connection closes when no session queue is active.
    pub is_draining: bool,
}

impl Mailbox {
    /// Moves the replies whose durability LSN is at most `durable` to `out`, in order. Returns the lowest durability LSN of the others.
    pub fn take_durable(&mut self, durable: u64, out: &mut Vec<u8>) -> Option<u64> {
        self.is_notified = false;
        if self.replies.iter().all(|(lsn, _)| *lsn <= durable) {
            self.replies.clear();
            out.append(&mut self.bytes);
            return None;
        }
        let (bytes, replies) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.replies));
        let (mut at, mut lowest) = (0, u64::MAX);
        for (lsn, length) in replies {
            let reply = &bytes[at..at + length];
            at += length;
            if lsn <= durable {
                out.extend_from_slice(reply);
            } else {
                lowest = lowest.min(lsn);
                self.bytes.extend_from_slice(reply);
                self.replies.push((lsn, length));
            }
        }
        Some(lowest)
    }

    /// Marks the connection as notified. Returns true if it was not, so the caller has to notify it.
    pub fn must_notify(&mut self) -> bool {
        !std::mem::replace(&mut self.is_notified, true)
    }
}
