//! The handle of a session, through which other sessions see and kill it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use stdx::sync::Mutex;

use crate::instance::count::{Count, Counts};
use crate::instance::open_transaction::Open;
use query::exec::monitor::{Monitor, RowAccess};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kill {
    No,
    /// Ends the running statement with error 1317.
    Query,
    /// Ends the statement and the session.
    Connection,
}

/// A session as others see it.
pub struct Handle {
    pub connection_id: u64,
    /// The counters of the session.
    pub(crate) counts: Counts,
    pub(crate) open: Open,
    kill: AtomicU8,
    shown: Mutex<Shown>,
    wake: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
    /// `DEPARTED`, `NO_WAITS` and `IS_READ`.
    ends: AtomicU8,
    /// Resumes the suspended statement.
    resume: Mutex<Option<Wake>>,
}

/// Called from any thread when a suspended statement may be resumed. Spurious calls are possible.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// The client has closed its connection.
const DEPARTED: u8 = 1;
/// Waits of the session end at once, because the client has left or the server stops.
const NO_WAITS: u8 = 2;
/// The running statement changes nothing, so it is pointless without a client.
const IS_READ: u8 = 4;

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
        Handle {
            connection_id,
            counts,
            open: Open::new(now),
            kill: AtomicU8::new(0),
            shown,
            wake: Mutex::new(None),
            ends: AtomicU8::new(0),
            resume: Mutex::new(None),
        }
    }

    /// Sets the callback that runs, in any thread, when the session must end: the door closes the connection.
    pub fn on_kill(&self, wake: Box<dyn Fn() + Send + Sync>) {
        *self.wake.lock() = Some(wake);
    }

    pub fn killed(&self) -> Kill {
        match self.kill.load(Ordering::Relaxed) {
            0 if self.ends.load(Ordering::Relaxed) & (DEPARTED | IS_READ) == DEPARTED | IS_READ => Kill::Query,
            0 => Kill::No,
            1 => Kill::Query,
            _ => Kill::Connection,
        }
    }

    pub fn kill(&self, how: Kill) {
        self.kill.fetch_max(how as u8, Ordering::SeqCst);
        self.wake_suspended();
        if how == Kill::Connection
            && let Some(wake) = &*self.wake.lock()
        {
            wake();
        }
    }

    /// Notes that the client has left: ends a read-only statement, and the waits of the session.
    pub(crate) fn depart(&self) {
        self.ends.fetch_or(DEPARTED | NO_WAITS, Ordering::SeqCst);
        self.wake_suspended();
    }

    /// Ends the current wait of the session, and rejects later ones.
    pub(crate) fn end_waits(&self) {
        self.ends.fetch_or(NO_WAITS, Ordering::SeqCst);
        self.wake_suspended();
    }

    /// Returns whether a wait must end.
    pub fn is_interrupted(&self) -> bool {
        self.kill.load(Ordering::SeqCst) != 0 || self.ends.load(Ordering::SeqCst) & NO_WAITS != 0
    }

    /// Notes whether the statement that begins is read-only.
    pub(crate) fn begin_plan(&self, is_read: bool) {
        match is_read {
            true => self.ends.fetch_or(IS_READ, Ordering::Relaxed),
            false => self.ends.fetch_and(!IS_READ, Ordering::Relaxed),
        };
    }

    /// Notes that the statement is suspended. `wake` is called when its wait must end, or at once.
    pub(crate) fn suspend(&self, wake: Wake) {
        *self.resume.lock() = Some(wake);
        if self.is_interrupted() {
            self.wake_suspended();
        }
    }

    pub(crate) fn resumed(&self) {
        *self.resume.lock() = None;
    }

    fn wake_suspended(&self) {
        let wake = self.resume.lock().clone();
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Clears a KILL QUERY that came after the statement ended.
    pub(crate) fn forget_query_kill(&self) {
        if self.kill.load(Ordering::Relaxed) == Kill::Query as u8 {
            let _ = self.kill.compare_exchange(Kill::Query as u8, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
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
