//! What others than its runner have for a connection: replies of strands, each behind its gate, and strands that wait until the peer takes more.
//!
//! A reply whose gate is closed lets others pass: it belongs to another session than they do. Replies of one session come with gates that never fall, so
//! they stay in order (R6).

use std::sync::Arc;

use stdx::sync::atomic::{Ordering, fence};

use crate::connection::{Connection, Handle, PUSH};
use crate::group::Work;

/// Something to be run by a thread of the pool.
pub type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(crate) struct Mailbox {
    bytes: Vec<u8>,
    /// Gate and length of each reply in `bytes`.
    replies: Vec<(u64, usize)>,
    /// A turn is on its way that will look here.
    told: bool,
    /// Strands that are scheduled, running or paused.
    strands: usize,
    /// Runs of strands that wait for room.
    paused: Vec<Task>,
    /// The connection closes when no strand is at work.
    draining: bool,
}

impl Mailbox {
    /// Moves the replies whose gates are open to `out`, in order; returns the lowest gate of the others.
    fn take_open(&mut self, durable: u64, out: &mut Vec<u8>) -> Option<u64> {
        self.told = false;
        if self.replies.iter().all(|(gate, _)| *gate <= durable) {
            self.replies.clear();
            out.append(&mut self.bytes);
            return None;
        }
        let (bytes, replies) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.replies));
        let (mut at, mut lowest) = (0, u64::MAX);
        for (gate, length) in replies {
            let reply = &bytes[at..at + length];
            at += length;
            if gate <= durable {
                out.extend_from_slice(reply);
            } else {
                lowest = lowest.min(gate);
                self.bytes.extend_from_slice(reply);
                self.replies.push((gate, length));
            }
        }
        Some(lowest)
    }

    /// True if the caller has to send a turn here.
    fn tell(&mut self) -> bool {
        !std::mem::replace(&mut self.told, true)
    }
}

impl Connection {
    /// Deals runs of strands out to the groups, the first to the connection's own. What falls to the group of the calling thread is run when this connection's turn is over.
    pub fn dispatch_sessions(&self, mut tasks: Vec<Task>) {
        let (groups, home) = self.groups_and_home();
        if tasks.len() == 1 {
            return groups[home].take_on(tasks.pop().map(Work::Session).into_iter());
        }
        let count = groups.len();
        let mut shares: Vec<Vec<Work>> = (0..count.min(tasks.len())).map(|_| Vec::new()).collect();
        for (at, task) in tasks.into_iter().enumerate() {
            shares[at % count].push(Work::Session(task));
        }
        for (at, share) in shares.into_iter().enumerate() {
            groups[(home + at) % count].take_on(share.into_iter());
        }
    }

    /// Moves what may go from the mailbox to `out`, and sees to it that the rest follows; true if there is a rest. Only the runner calls this.
    /// `is_registered`: the group knows that the connection waits for the watermark.
    pub(crate) fn collect(self: &Arc<Self>, out: &mut Vec<u8>, is_registered: &mut bool) -> bool {
        loop {
            let durable = self.group().durable.get();
            let lowest = self.mailbox.lock().take_open(durable, out);
            let Some(lowest) = lowest else { return false };
            if *is_registered {
                return true;
            }
            // Register first, then look again, as for output behind a gate (R3).
            *is_registered = true;
            self.group().register_gated(self.clone());
            fence(Ordering::SeqCst);
            if self.group().durable.get() < lowest {
                return true;
            }
        }
    }

    /// True if strands are at work; then the end of the last one sends a turn.
    pub(crate) fn awaits_strands(&self) -> bool {
        let mut mailbox = self.mailbox.lock();
        mailbox.draining = mailbox.strands > 0;
        mailbox.draining || !mailbox.replies.is_empty()
    }

    /// The connection is closed: nobody answers any more. What waits for room goes to its end.
    pub(crate) fn empty_mailbox(&self) {
        let mut mailbox = self.mailbox.lock();
        mailbox.bytes = Vec::new();
        mailbox.replies = Vec::new();
        drop(mailbox);
        self.resume_strands();
    }

    /// Lets the strands go on that wait for room, if there is some.
    pub(crate) fn look_for_room(&self) {
        // The room was made before this, and whoever waits says so before it looks for room once more (R3).
        fence(Ordering::SeqCst);
        if self.any_paused.load(Ordering::Relaxed) && self.has_room() {
            self.resume_strands();
        }
    }

    fn resume_strands(&self) {
        let paused = {
            let mut mailbox = self.mailbox.lock();
            self.any_paused.store(false, Ordering::Relaxed);
            std::mem::take(&mut mailbox.paused)
        };
        if !paused.is_empty() {
            self.dispatch_sessions(paused);
        }
    }

    fn has_room(&self) -> bool {
        let waiting = self.mailbox.lock().bytes.len() + self.pending().1 as usize;
        self.is_closed() || waiting <= self.output_max()
    }
}

impl Handle {
    /// Sends bytes when the watermark has reached `gate`, behind what was sent with the same gate before.
    pub fn reply(&self, bytes: &[u8], gate: u64) {
        if bytes.is_empty() {
            return;
        }
        self.with(|connection| {
            if connection.is_closed() {
                return;
            }
            connection.group().durable.request(gate);
            let mut mailbox = connection.mailbox.lock();
            mailbox.bytes.extend_from_slice(bytes);
            mailbox.replies.push((gate, bytes.len()));
            let tell = mailbox.tell();
            drop(mailbox);
            if tell {
                connection.group().take_on(std::iter::once(Work::Turn(connection.clone(), PUSH)));
            }
        });
    }

    /// Leaves a run of a strand to the pool, behind what waits there.
    pub(crate) fn schedule(&self, task: Task) {
        self.with(|connection| connection.group().enqueue(std::iter::once(Work::Session(task))));
    }

    /// A strand is no longer idle.
    pub(crate) fn strand_starts(&self) {
        self.with(|connection| connection.mailbox.lock().strands += 1);
    }

    /// A strand is idle again.
    pub(crate) fn strand_rests(&self) {
        self.with(|connection| {
            let mut mailbox = connection.mailbox.lock();
            mailbox.strands -= 1;
            let tell = mailbox.draining && mailbox.strands == 0 && mailbox.tell();
            drop(mailbox);
            if tell {
                connection.group().take_on(std::iter::once(Work::Turn(connection.clone(), PUSH)));
            }
        });
    }

    pub(crate) fn resume_strands(&self) {
        self.with(|connection| connection.resume_strands());
    }

    /// A request of a strand has ended in a panic: nobody can know what the peer was told.
    pub(crate) fn panicked(&self) {
        self.with(|connection| connection.group().counters.panics.add(1));
        self.kill();
    }

    /// False if the peer owes so much that nothing more should be made for it.
    pub(crate) fn has_room(&self) -> bool {
        self.with(|connection| connection.has_room()).unwrap_or(true)
    }

    /// True if there is room now. Otherwise `task` is run when there is.
    pub(crate) fn wait_for_room(&self, task: impl FnOnce() -> Task) -> bool {
        self.with(|connection| {
            if connection.has_room() {
                return true;
            }
            let mut mailbox = connection.mailbox.lock();
            mailbox.paused.push(task());
            connection.any_paused.store(true, Ordering::Relaxed);
            drop(mailbox);
            connection.look_for_room();
            false
        })
        .unwrap_or(true)
    }
}
