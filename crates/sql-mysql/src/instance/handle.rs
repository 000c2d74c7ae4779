//! A session as other sessions see it: a line of the process list, counters, the open transaction; and how they end it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use stdx::sync::Mutex;

use crate::instance::count::{Count, Counts};
use query::exec::monitor::{Monitor, RowAccess};
use query::session::interrupts::Interrupts;
use query::session::open_transaction::OpenTransaction;

pub use query::session::interrupts::{Kill, Wake};

/// A session as others see it.
pub struct Handle {
    pub connection_id: u64,
    /// The counters of the session.
    pub(crate) counts: Counts,
    pub(crate) open: Arc<OpenTransaction>,
    interrupts: Interrupts,
    shown: Mutex<Shown>,
}

impl Deref for Handle {
    type Target = Interrupts;

    fn deref(&self) -> &Interrupts {
        &self.interrupts
    }
}

/// A row of the process list.
#[derive(Clone, Debug)]
pub struct Shown {
    pub user: String,
    pub host: String,
    /// The name of the account.
    pub account: String,
    /// The session holds SYSTEM_USER, so only sessions that hold it may kill it.
    pub is_system: bool,
    pub database: Option<String>,
    pub since: Instant,
    /// The connection attributes of the client, in pairs.
    pub attributes: std::sync::Arc<[(String, String)]>,
    /// The compression algorithm and level of the connection.
    pub compression: Option<(&'static str, u8)>,
    /// The TLS version and cipher of the connection.
    pub sealing: Option<(&'static str, &'static str)>,
    /// The text of the last statement.
    text: String,
    runs: bool,
    /// The state of the statement, if known.
    pub state: Option<String>,
}

impl Shown {
    /// Returns the text of the running statement.
    pub fn statement(&self) -> Option<&str> {
        self.runs.then_some(&*self.text)
    }

    /// Returns the state of the running statement.
    pub fn activity(&self) -> Option<&str> {
        self.runs.then(|| self.state.as_deref().unwrap_or("executing"))
    }

    pub(crate) fn begin(&mut self, text: &str, now: Instant) {
        self.since = now;
        self.text.clear();
        self.text.push_str(text);
        self.state = None;
        self.runs = true;
    }

    pub(crate) fn end(&mut self) {
        self.runs = false;
        self.state = None;
    }
}

impl Handle {
    pub(crate) fn new(connection_id: u64, user: String, host: String) -> Handle {
        let now = Instant::now();
        let shown = Shown {
            user,
            host,
            account: String::new(),
            is_system: false,
            database: None,
            since: now,
            attributes: std::sync::Arc::default(),
            compression: None,
            sealing: None,
            text: String::new(),
            runs: false,
            state: None,
        };
        let (counts, shown) = (Counts::default(), Mutex::new(shown));
        let (open, interrupts) = (Arc::new(OpenTransaction::new(now)), Interrupts::default());
        Handle { connection_id, counts, open, interrupts, shown }
    }

    pub fn shown(&self) -> Shown {
        self.shown.lock().clone()
    }

    pub(crate) fn show(&self, change: impl FnOnce(&mut Shown)) {
        change(&mut self.shown.lock());
    }
}

impl Monitor for Handle {
    fn count(&self, access: RowAccess, times: u64) {
        let count = match access {
            RowAccess::Insert => Count::HandlerWrite,
            RowAccess::Update => Count::HandlerUpdate,
            RowAccess::Delete => Count::HandlerDelete,
            RowAccess::ReadFirst => Count::HandlerReadFirst,
            RowAccess::ReadKey => Count::HandlerReadKey,
            RowAccess::ReadLast => Count::HandlerReadLast,
            RowAccess::ReadNext => Count::HandlerReadNext,
            RowAccess::ReadPrev => Count::HandlerReadPrev,
            RowAccess::ReadSequential => Count::HandlerReadRndNext,
        };
        self.counts.add_many(count, times);
    }

    fn is_cancelled(&self) -> bool {
        self.killed() != Kill::No
    }

    fn show_state(&self, state: Option<String>) {
        self.show(|shown| shown.state = state);
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "session {}", self.connection_id)
    }
}
