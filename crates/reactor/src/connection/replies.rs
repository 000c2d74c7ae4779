//! The mailbox side of a connection: replies of session queues, and the queues that are paused until the peer takes more.

use std::collections::VecDeque;
use std::sync::Arc;

use stdx::sync::atomic::{Ordering, fence};

use crate::mailbox::Task;
use crate::run_state::PUSH;
use crate::state::{Connection, Group, Handle, Work};

impl Connection {
    /// Leaves runs of session queues to the connection's group, and equal shares of many or long ones to groups that have nothing to do (RE-22). Runs for the group of the calling thread begin when
    /// the run of this connection has ended.
    pub fn dispatch_sessions(&self, tasks: &mut Vec<Task>) {
        let home = self.group();
        let kept_count = home.run_cost.kept_count();
        let helpers_max = (tasks.len() / kept_count).saturating_sub(1);
        if helpers_max > 0 {
            let is_helper = |group: &&Arc<Group>| !Arc::ptr_eq(group, home) && group.is_idle();
            let helpers: Vec<_> = self.groups.iter().filter(is_helper).take(helpers_max).collect();
            let share = tasks.len() / (helpers.len() + 1);
            for helper in helpers {
                helper.enqueue_locally(tasks.drain(tasks.len() - share..).map(Work::Session));
            }
        }
        home.enqueue_locally(tasks.drain(..).map(Work::Session));
    }

    /// Moves durable replies from the mailbox to `out` and makes sure that the others follow. Returns true if there are others. Only the runner calls this.
    /// `is_registered` says whether the group knows that the connection waits for the watermark.
    pub(super) fn collect_replies(self: &Arc<Self>, out: &mut Vec<u8>, is_registered: &mut bool) -> bool {
        loop {
            let durable = self.shared().durable.get();
            let lowest = self.mailbox.lock().take_durable(durable, out);
            let Some(lowest) = lowest else { return false };
            if *is_registered {
                return true;
            }
            // RE-3: register first, then read the watermark again, as for the output itself.
            *is_registered = true;
            self.group().register_held(self.clone());
            fence(Ordering::SeqCst);
            if self.shared().durable.get() < lowest {
                return true;
            }
        }
    }

    /// Returns true if session queues are active or replies are held. The end of the last active one notifies the connection then.
    pub(super) fn awaits_sessions(&self) -> bool {
        let mut mailbox = self.mailbox.lock();
        mailbox.is_draining = mailbox.active_sessions > 0;
        mailbox.is_draining || !mailbox.replies.is_empty()
    }

    /// Drops the replies of a closed connection and resumes the paused session queues, so that they end.
    pub(super) fn empty_mailbox(&self) {
        let mut mailbox = self.mailbox.lock();
        mailbox.bytes = Vec::new();
        mailbox.replies = Vec::new();
        mailbox.messages = VecDeque::new();
        self.forget_messages(std::mem::take(&mut mailbox.message_bytes));
        drop(mailbox);
        self.resume_sessions();
    }

    /// Resumes the paused session queues if the peer has taken enough.
    pub(super) fn resume_sessions_if_room(&self) {
        // RE-3: the room was made before this. A queue publishes that it is paused before it looks for room once more.
        fence(Ordering::SeqCst);
        if self.has_paused.load(Ordering::Relaxed) && self.has_output_room() {
            self.resume_sessions();
        }
    }

    fn resume_sessions(&self) {
        let mut paused = {
            let mut mailbox = self.mailbox.lock();
            self.has_paused.store(false, Ordering::Relaxed);
            std::mem::take(&mut mailbox.paused)
        };
        if !paused.is_empty() {
            self.dispatch_sessions(&mut paused);
        }
    }

    /// Returns true if more output may be made for the peer (RE-10), or the connection is closed.
    fn has_output_room(&self) -> bool {
        let waiting = self.mailbox.lock().bytes.len() + self.pending().1 as usize;
        self.is_closed() || waiting <= self.output_max()
    }
}

impl Handle {
    /// Sends bytes when the WAL is durable up to `lsn`, after bytes that were sent with the same `lsn` before (RE-6).
    pub fn reply(&self, bytes: &[u8], lsn: u64) {
        if bytes.is_empty() {
            return;
        }
        self.with(|connection| {
            if connection.is_closed() {
                return;
            }
            connection.shared().durable.request(lsn);
            let mut mailbox = connection.mailbox.lock();
            mailbox.bytes.extend_from_slice(bytes);
            mailbox.replies.push((lsn, bytes.len()));
            let must_notify = mailbox.must_notify();
            drop(mailbox);
            if must_notify {
                connection.group().enqueue_locally(std::iter::once(Work::Events(connection.clone(), PUSH)));
            }
        });
    }

    /// Enqueues a run of a session queue behind the work that waits in the group.
    pub(crate) fn schedule(&self, task: Task) {
        self.with(|connection| connection.group().enqueue(std::iter::once(Work::Session(task))));
    }

    /// Counts a session queue that is no longer idle.
    pub(crate) fn session_started(&self) {
        self.with(|connection| connection.mailbox.lock().active_sessions += 1);
    }

    /// Counts a session queue that is idle again.
    pub(crate) fn session_rested(&self) {
        self.with(|connection| {
            let mut mailbox = connection.mailbox.lock();
            mailbox.active_sessions -= 1;
            let must_notify = mailbox.is_draining && mailbox.active_sessions == 0 && mailbox.must_notify();
            drop(mailbox);
            if must_notify {
                connection.group().enqueue_locally(std::iter::once(Work::Events(connection.clone(), PUSH)));
            }
        });
    }

    pub(crate) fn resume_sessions(&self) {
        self.with(|connection| connection.resume_sessions());
    }

    /// Closes the connection after a panic in a session queue: how much of a reply the peer has received is unknown.
    pub(crate) fn report_panic(&self) {
        self.with(|connection| connection.shared().counters.panics.add(1));
        self.kill();
    }

    /// Returns false if so much output waits for the peer that no more should be made.
    pub(crate) fn has_output_room(&self) -> bool {
        self.with(|connection| connection.has_output_room()).unwrap_or(true)
    }

    /// Returns true if more output may be made. Otherwise keeps the task and runs it when the peer has taken enough.
    pub(crate) fn wait_for_output_room(&self, task: impl FnOnce() -> Task) -> bool {
        self.with(|connection| {
            if connection.has_output_room() {
                return true;
            }
            let mut mailbox = connection.mailbox.lock();
            mailbox.paused.push(task());
            connection.has_paused.store(true, Ordering::Relaxed);
            drop(mailbox);
            connection.resume_sessions_if_room();
            false
        })
        .unwrap_or(true)
    }
}
