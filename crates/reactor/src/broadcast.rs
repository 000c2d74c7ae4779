//! Messages: bytes that connections get outside of their requests, shared by all that get the same.
//!
//! A message is put into the mailbox of each connection, with its durability LSN. The runner of the connection appends it to the output (RE-21): in the order in which the messages were put, behind all output
//! that is written already, and behind whatever that output waits for. So no message and no reply passes an earlier one, unlike the replies of session queues.
//!
//! The bytes of a message are copied once per connection, when its runner takes them. A connection is notified by an entry in the run queue of its home; the entries of one message enter each queue together.

use std::sync::Arc;

use stdx::sync::atomic::Ordering;

use crate::run_state::PUSH;
use crate::scratch::Scratch;
use crate::state::{Connection, Hold, StreamState, Work};

/// Connections that have got messages and are not notified yet. Dropping it notifies them.
#[derive(Default)]
pub struct Broadcast {
    /// By group.
    notices: Vec<Vec<Work>>,
}

/// The bytes that wait for a peer, after a message was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    pub bytes: u64,
    /// All connections together have more unsent bytes than the settings allow (RE-10).
    pub is_crowded: bool,
}

impl Broadcast {
    /// Puts a message into the mailbox of a connection. Returns None if the connection is closed.
    pub fn put(&mut self, connection: &Arc<Connection>, bytes: &Arc<[u8]>, lsn: u64) -> Option<Backlog> {
        let shared = connection.shared();
        let unsent = &shared.counters.unsent;
        let (waiting, must_notify) = {
            let mut mailbox = connection.mailbox.lock();
            // Read under the lock: a connection that closes sets the flag and then empties its mailbox.
            if connection.is_closed() {
                return None;
            }
            // The total is changed under the mailbox's lock, so that the runner subtracts no bytes that are not added yet.
            unsent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            mailbox.message_bytes += bytes.len();
            mailbox.messages.push_back((lsn, bytes.clone()));
            (mailbox.message_bytes as u64, mailbox.must_notify())
        };
        if must_notify {
            let home = connection.home.load(Ordering::Relaxed);
            if self.notices.len() <= home {
                self.notices.resize_with(home + 1, Vec::new);
            }
            self.notices[home].push(Work::Events(connection.clone(), PUSH));
        }
        Some(Backlog { bytes: waiting + connection.pending().1, is_crowded: shared.is_crowded() })
    }
}

impl Drop for Broadcast {
    fn drop(&mut self) {
        for (home, notices) in self.notices.iter_mut().enumerate() {
            let notices = std::mem::take(notices);
            let Some(Work::Events(first, _)) = notices.first() else { continue };
            let group = first.groups[home].clone();
            group.enqueue_locally(notices.into_iter());
        }
    }
}

impl Connection {
    /// Moves the messages of the mailbox to `out`. Returns the highest of their durability LSNs, for which the caller holds `out`. For the session, while it is served.
    pub fn take_messages(&self, out: &mut Vec<u8>) -> u64 {
        let mut mailbox = self.mailbox.lock();
        let highest = mailbox.messages.iter().map(|(lsn, _)| *lsn).max().unwrap_or(0);
        mailbox.messages.drain(..).for_each(|(_, bytes)| out.extend_from_slice(&bytes));
        self.forget_messages(std::mem::take(&mut mailbox.message_bytes));
        highest
    }

    /// Subtracts messages that have left the mailbox from the total of unsent bytes. The caller holds the mailbox.
    pub(crate) fn forget_messages(&self, bytes: usize) {
        if bytes > 0 {
            self.shared().counters.unsent.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Appends the messages of the mailbox to the output, each held for its durability LSN. A session that pauses may have written half of a reply: the messages wait
    /// for the end of the pause. Only the runner calls this.
    pub(crate) fn append_messages(&self, state: &mut StreamState, scratch: &mut Scratch) {
        state.has_messages = state.is_paused;
        if state.is_paused {
            return;
        }
        let mut mailbox = self.mailbox.lock();
        if mailbox.messages.is_empty() {
            return;
        }
        if state.out.is_empty() {
            state.begin_output(scratch);
        }
        let durable = &self.shared().durable;
        for (lsn, bytes) in mailbox.messages.drain(..) {
            // Output behind a hold waits for it in any case.
            if lsn > durable.get() && state.holds.back().is_none_or(|last| last.lsn < lsn) {
                durable.request(lsn);
                state.holds.push_back(Hold { lsn, start: state.out_start + state.out.len() as u64 });
            }
            state.out.extend_from_slice(&bytes);
        }
        self.forget_messages(std::mem::take(&mut mailbox.message_bytes));
    }
}
