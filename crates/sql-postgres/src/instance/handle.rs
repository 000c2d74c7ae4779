//! A PostgreSQL session's handle: its entry in the list of sessions of all dialects (`query::session::registry`), and the facts that only `pg_stat_activity` shows.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use query::exec::monitor::{Monitor, RowAccess};
use query::session::registry::{SessionEntry, SessionHandle};
use stdx::sync::Mutex;

use crate::types::oid::Oid;
use crate::wire::Login;

pub use query::session::interrupts::{Kill, Wake};

/// A session as others see it.
pub struct Handle {
    entry: SessionEntry,
    pub pid: u32,
    /// The role that logged in.
    role: AtomicU32,
    status: Mutex<BackendStatus>,
    /// The rows that the session has changed.
    changes: AtomicU64,
}

impl Deref for Handle {
    type Target = SessionEntry;

    fn deref(&self) -> &SessionEntry {
        &self.entry
    }
}

impl SessionHandle for Handle {
    fn entry(&self) -> &SessionEntry {
        &self.entry
    }

    fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

/// The part of a row of `pg_stat_activity` that the list of sessions does not have.
#[derive(Clone, Debug)]
pub struct BackendStatus {
    pub application: String,
    pub backend_start: SystemTime,
    pub state_change: SystemTime,
    pub query_start: SystemTime,
    /// The start of the open transaction.
    pub transaction_start: Option<SystemTime>,
    pub state: ActivityState,
    /// The event that a statement waits for.
    pub awaits: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityState {
    Idle,
    Active,
    IdleInTransaction,
    IdleInAbortedTransaction,
}

impl ActivityState {
    pub fn name(self) -> &'static str {
        match self {
            ActivityState::Idle => "idle",
            ActivityState::Active => "active",
            ActivityState::IdleInTransaction => "idle in transaction",
            ActivityState::IdleInAbortedTransaction => "idle in transaction (aborted)",
        }
    }
}

/// The bytes of a statement that others see: `track_activity_query_size`.
const QUERY_BYTES_MAX: usize = 1023;

/// Returns the part of a statement's text that others see.
pub(crate) fn shown_text(text: &str) -> &str {
    let end = (0..=text.len().min(QUERY_BYTES_MAX)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

impl Handle {
    pub(crate) fn new(who: &Login) -> Handle {
        let entry = SessionEntry::new(who.connection_id, who.role.clone(), who.address.clone());
        entry.show(|shown| {
            shown.account.clone_from(&who.account);
            shown.database = Some(who.database.clone());
        });
        let now = SystemTime::now();
        let status = BackendStatus {
            application: String::new(),
            backend_start: now,
            state_change: now,
            query_start: now,
            transaction_start: None,
            state: ActivityState::Idle,
            awaits: None,
        };
        let (role, changes) = (AtomicU32::new(0), AtomicU64::new(0));
        Handle { entry, pid: who.pid, role, status: Mutex::new(status), changes }
    }

    pub(crate) fn role(&self) -> Oid {
        self.role.load(Ordering::Relaxed)
    }

    pub(crate) fn set_role(&self, role: Oid) {
        self.role.store(role, Ordering::Relaxed);
    }

    pub fn status(&self) -> BackendStatus {
        self.status.lock().clone()
    }

    pub(crate) fn change_status(&self, change: impl FnOnce(&mut BackendStatus)) {
        change(&mut self.status.lock());
    }

    /// Shows a statement that begins. `transaction_begins` if no transaction is open.
    pub(crate) fn begin_statement(&self, text: &str, (began, now): (Instant, SystemTime), transaction_begins: bool) {
        self.show(|shown| shown.begin(shown_text(text), began));
        self.change_status(|status| {
            (status.query_start, status.state_change) = (now, now);
            status.state = ActivityState::Active;
            if transaction_begins {
                status.transaction_start = Some(now);
            }
        });
    }

    /// Shows that the session waits for its client.
    pub(crate) fn end_statement(&self, state: ActivityState) {
        self.show(|shown| {
            if shown.statement().is_some() {
                shown.since = Instant::now();
            }
            shown.end();
        });
        self.change_status(|status| {
            status.state = state;
            status.awaits = None;
            if state == ActivityState::Idle {
                status.transaction_start = None;
            }
        });
    }
}

impl Monitor for Handle {
    fn count(&self, access: RowAccess, times: u64) {
        if matches!(access, RowAccess::Insert | RowAccess::Update | RowAccess::Delete) {
            self.changes.fetch_add(times, Ordering::Relaxed);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.killed() != Kill::No
    }

    fn show_state(&self, state: Option<String>) {
        self.show(|shown| shown.state = state);
    }
}
