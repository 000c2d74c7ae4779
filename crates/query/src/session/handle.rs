//! What others see of a session, and how they end it: the process list, KILL.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use stdx::sync::Mutex;

use crate::session::count::Counts;
use crate::session::open::Open;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kill {
    No,
    /// The statement that runs ends with error 1317.
    Query,
    /// So does the session.
    Connection,
}

/// One session as the others know it.
pub struct Handle {
    pub connection_id: u64,
    /// What this session has counted.
    pub(crate) counts: Counts,
    pub(crate) open: Open,
    kill: AtomicU8,
    shown: Mutex<Shown>,
    wake: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
}

/// A line of the process list.
#[derive(Clone, Debug)]
pub struct Shown {
    pub user: String,
    pub host: String,
    /// The account, by its name in the list.
    pub account: String,
    pub database: Option<String>,
    pub since: Instant,
    /// What the client has said of itself, in pairs.
    pub attributes: std::sync::Arc<[(String, String)]>,
    /// How its stream is made shorter, and at which level.
    pub compression: Option<(&'static str, u8)>,
    /// The version of TLS that it is sealed with, and the cipher.
    pub sealing: Option<(&'static str, &'static str)>,
    /// The text of the last statement.
    text: String,
    runs: bool,
    /// At what, where it says so.
    pub state: Option<String>,
}

impl Shown {
    /// What runs now.
    pub fn statement(&self) -> Option<&str> {
        self.runs.then_some(&*self.text)
    }

    /// At what it is, while a statement runs.
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
        Handle { connection_id, counts, open: Open::new(now), kill: AtomicU8::new(0), shown, wake: Mutex::new(None) }
    }

    /// Called, from any thread, when the session is to end: the door closes the connection.
    pub fn on_kill(&self, wake: Box<dyn Fn() + Send + Sync>) {
        *self.wake.lock() = Some(wake);
    }

    pub fn killed(&self) -> Kill {
        match self.kill.load(Ordering::Relaxed) {
            0 => Kill::No,
            1 => Kill::Query,
            _ => Kill::Connection,
        }
    }

    pub fn kill(&self, how: Kill) {
        self.kill.fetch_max(how as u8, Ordering::Relaxed);
        if how == Kill::Connection
            && let Some(wake) = &*self.wake.lock()
        {
            wake();
        }
    }

    /// A new statement begins: a KILL QUERY that came too late is forgotten.
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

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "session {}", self.connection_id)
    }
}
