//! What a connection leaves for a session while a statement runs: send budget, kill, the reason to end.

use std::sync::Arc;

use query::{Database, Handle, Kill};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

/// Statements that may send as much as they have.
const UNLIMITED: i64 = i64::MAX;
/// A token is so many bytes.
const TOKEN_BYTES: i64 = 1024;

/// Why a session ends before its client closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    Killed = 1,
    QueueFull = 2,
    /// The client has begun it twice: one of its two halves knows nothing of the other.
    Duplicate = 3,
}

/// What others leave for a session.
#[derive(Default)]
pub struct SessionControl {
    /// Bytes that the statement under way may still send.
    budget: AtomicI64,
    ending: AtomicU32,
    /// The session has ended, and its number may be used again.
    is_over: AtomicBool,
    /// Through which the statement under way is stopped.
    sql: Mutex<Option<Arc<Handle>>>,
}

impl SessionControl {
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

    pub fn ending(&self) -> Option<EndReason> {
        match self.ending.load(Ordering::Acquire) {
            0 => None,
            1 => Some(EndReason::Killed),
            2 => Some(EndReason::QueueFull),
            _ => Some(EndReason::Duplicate),
        }
    }

    /// Says that the session is to end. The first reason stays.
    pub fn end(&self, why: EndReason) {
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
    pub fn interrupt(&self) {
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
