//! The control block of a session: send budget, kill and end reason, set by the connection while a statement runs (DX-8).

use std::sync::Arc;

use sql_mysql::{Database, Handle, Kill};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

/// The budget of statements without a limit.
const UNLIMITED: i64 = i64::MAX;
/// Bytes of a token.
const TOKEN_BYTES: i64 = 1024;

/// Why a session ends before its client closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    Killed = 1,
    QueueFull = 2,
    /// The client has begun the session twice: one part of the client does not know of the other.
    Duplicate = 3,
}

/// The state that other threads set for a session.
#[derive(Default)]
pub struct SessionControl {
    /// Bytes that the current statement may still send.
    budget: AtomicI64,
    ending: AtomicU32,
    /// The session has ended, and its number may be used again.
    is_over: AtomicBool,
    /// The handle by which the current statement is killed.
    sql: Mutex<Option<Arc<Handle>>>,
}

impl SessionControl {
    /// Sets the budget of a new statement in tokens; `None` is unlimited.
    pub fn begin(&self, token: Option<i32>) {
        let bytes = token.map_or(UNLIMITED, |token| i64::from(token) * TOKEN_BYTES);
        self.budget.store(bytes, Ordering::Relaxed);
    }

    /// Replaces the rest of the budget by the client's offer (DX-10).
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

    /// Returns whether the budget is used up.
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

    /// Sets the reason to end. The first reason stays.
    pub fn end(&self, why: EndReason) {
        let _ = self.ending.compare_exchange(0, why as u32, Ordering::AcqRel, Ordering::Acquire);
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub fn set_over(&self, is_over: bool) {
        self.is_over.store(is_over, Ordering::Release);
    }

    /// Sets the session that a kill reaches.
    pub fn set_sql(&self, handle: Option<Arc<Handle>>) {
        *self.sql.lock() = handle;
    }

    /// Sets the cancel flag of the current statement; does not wake a blocked statement.
    pub fn interrupt(&self) {
        if let Some(handle) = &*self.sql.lock() {
            handle.kill(Kill::Query);
        }
    }

    /// Kills the current statement, or the session with it.
    pub fn kill(&self, database: &Database, how: Kill) {
        let handle = self.sql.lock().clone();
        if let Some(handle) = handle {
            database.kill(handle.connection_id, how);
        }
    }
}
