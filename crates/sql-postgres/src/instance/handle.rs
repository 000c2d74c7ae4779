//! A session as other sessions see it: a row of `pg_stat_activity`, and how they cancel its statement or end it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use query::exec::monitor::{Monitor, RowAccess};
use query::session::interrupts::Interrupts;
use query::session::open_transaction::OpenTransaction;
use stdx::sync::Mutex;

pub use query::session::interrupts::{Kill, Wake};

/// A session as others see it.
pub struct Handle {
    pub pid: u32,
    pub(crate) open: Arc<OpenTransaction>,
    interrupts: Interrupts,
    shown: Mutex<SessionActivity>,
}

impl Deref for Handle {
    type Target = Interrupts;

    fn deref(&self) -> &Interrupts {
        &self.interrupts
    }
}

/// The columns of `pg_stat_activity` for a session.
#[derive(Clone, Debug)]
pub struct SessionActivity {
    pub role: String,
    pub database: String,
    pub address: String,
    pub application: String,
    pub backend_start: SystemTime,
    pub state_change: SystemTime,
    pub query_start: SystemTime,
    /// The start of the open transaction.
    pub transaction_start: Option<SystemTime>,
    /// The text of the last statement.
    pub query: String,
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

impl Handle {
    pub(crate) fn new(pid: u32, role: &str, database: &str, address: &str) -> Handle {
        let now = SystemTime::now();
        let shown = SessionActivity {
            role: role.to_owned(),
            database: database.to_owned(),
            address: address.to_owned(),
            application: String::new(),
            backend_start: now,
            state_change: now,
            query_start: now,
            transaction_start: None,
            query: String::new(),
            state: ActivityState::Idle,
            awaits: None,
        };
        let open = Arc::new(OpenTransaction::new(Instant::now()));
        Handle { pid, open, interrupts: Interrupts::default(), shown: Mutex::new(shown) }
    }

    pub fn shown(&self) -> SessionActivity {
        self.shown.lock().clone()
    }

    pub(crate) fn show(&self, change: impl FnOnce(&mut SessionActivity)) {
        change(&mut self.shown.lock());
    }

    /// Shows a statement that begins. `transaction_begins` if no transaction is open.
    pub(crate) fn begin_statement(&self, text: &str, now: SystemTime, transaction_begins: bool) {
        let end = (0..=text.len().min(QUERY_BYTES_MAX)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let mut shown = self.shown.lock();
        shown.query.clear();
        shown.query.push_str(&text[..end]);
        (shown.query_start, shown.state_change) = (now, now);
        shown.state = ActivityState::Active;
        if transaction_begins {
            shown.transaction_start = Some(now);
        }
    }

    /// Shows that the session waits for its client.
    pub(crate) fn end_statement(&self, state: ActivityState) {
        let mut shown = self.shown.lock();
        shown.state = state;
        shown.awaits = None;
        if state == ActivityState::Idle {
            shown.transaction_start = None;
        }
    }
}

impl Monitor for Handle {
    fn count(&self, _access: RowAccess, _times: u64) {}

    fn is_cancelled(&self) -> bool {
        self.killed() != Kill::No
    }

    fn show_state(&self, _state: Option<String>) {}
}
