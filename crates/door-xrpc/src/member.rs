//! A session as its connection knows it: where its requests go, and what reaches it while it is busy.
//!
//! The session itself belongs to the thread that runs its session queue. What a client says beside the order of requests (go on sending, stop, end) is left here, where the session queue looks.

use std::sync::Arc;

use query::{Database, Handle, Kill};
use reactor::SessionQueue;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use crate::session::{Request, Session};

/// Statements that may send as much as they have.
const UNLIMITED: i64 = i64::MAX;
/// A token is so many bytes.
const TOKEN_BYTES: i64 = 1024;

/// Why a session ends before its client closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Killed = 1,
    QueueFull = 2,
    /// The client has begun it twice: one of its two halves knows nothing of the other.
    Duplicate = 3,
}

/// What others leave for a session.
#[derive(Default)]
pub struct Outside {
    /// Bytes that the statement under way may still send.
    budget: AtomicI64,
    ending: AtomicU32,
    /// The session has ended, and its number may be used again.
    is_over: AtomicBool,
    /// Through which the statement under way is stopped.
    sql: Mutex<Option<Arc<Handle>>>,
}

impl Outside {
    /// A statement begins, with the client's leave to send that many tokens; None: any number.
    pub fn begin(&self, token: Option<i32>) {
        let bytes = token.map_or(UNLIMITED, |token| i64::from(token) * TOKEN_BYTES);
        self.budget.store(bytes, Ordering::Relaxed);
    }

    /// The client gives leave to send so much more, instead of what was left of the old leave.
    pub fn offer(&self, token: i32) {
        if token >= 0 && self.budget.load(Ordering::Relaxed) != UNLIMITED {
            self.budget.store((i64::from(token) * TOKEN_BYTES).min(i32::MAX.into()), Ordering::Release);
        }
    }

    pub fn spend(&self, bytes: usize) {
        if self.budget.load(Ordering::Relaxed) != UNLIMITED {
            self.budget.fetch_sub(bytes as i64, Ordering::Relaxed);
        }
    }

    /// Is the leave used up?
    pub fn is_spent(&self) -> bool {
        self.budget.load(Ordering::Acquire) < 0
    }

    pub fn ending(&self) -> Option<Ending> {
        match self.ending.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Ending::Killed),
            2 => Some(Ending::QueueFull),
            _ => Some(Ending::Duplicate),
        }
    }

    /// Says that the session is to end. The first reason stays.
    pub fn end(&self, why: Ending) {
        let _ = self.ending.compare_exchange(0, why as u32, Ordering::AcqRel, Ordering::Acquire);
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub fn set_over(&self, is_over: bool) {
        self.is_over.store(is_over, Ordering::Release);
    }

    /// Whom a kill reaches from here on.
    pub fn set_sql(&self, handle: Option<Arc<Handle>>) {
        *self.sql.lock() = handle;
    }

    /// Stops the statement under way when it looks whether it should, and wakes it not.
    fn interrupt(&self) {
        if let Some(handle) = &*self.sql.lock() {
            handle.kill(Kill::Query);
        }
    }

    /// Stops the statement under way, or the session with it.
    pub fn kill(&self, database: &Database, how: Kill) {
        let handle = self.sql.lock().clone();
        if let Some(handle) = handle {
            database.kill(handle.connection_id, how);
        }
    }
}

pub struct Member {
    pub session_queue: SessionQueue<Session, Request>,
    pub outside: Arc<Outside>,
    /// SESS_CLOSE has come: nothing behind it is looked at.
    pub is_closing: bool,
}

impl Member {
    /// Ends the session as soon as may be: what it waits for is broken off, and it says why itself.
    pub fn end(&self, database: &Database, why: Ending) {
        self.outside.end(why);
        self.outside.kill(database, Kill::Connection);
        rouse(&self.session_queue);
    }

    /// As its connection is gone.
    pub fn abandon(&self, database: &Database) {
        self.outside.end(Ending::Killed);
        self.outside.kill(database, Kill::Connection);
        self.session_queue.close();
    }
}

/// The connection is gone. All statements are told to stop before the first session ends: one that waits for a lock which that one gives back would go on otherwise.
pub fn abandon_all<'m>(members: impl Iterator<Item = &'m Member> + Clone, database: &Database) {
    members.clone().for_each(|member| member.outside.interrupt());
    members.for_each(|member| member.abandon(database));
}

/// Lets the session look at what was left for it, whatever it does. A queue that is full is being worked on.
pub fn rouse(session_queue: &SessionQueue<Session, Request>) {
    let _ = session_queue.post(Request::Look);
    session_queue.wake();
}
