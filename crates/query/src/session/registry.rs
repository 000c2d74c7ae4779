//! The sessions of all dialects as others see them: a line of the process list each, the open transaction, and the way to end them.
//!
//! A dialect's session enlists its handle at login and removes it when it ends. The registry holds it weakly, so a list taken from it is of sessions that may end at any time. Ids are those of
//! connections, which doors draw from one sequence.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use engine::Engine;
use stdx::sync::Mutex;

use crate::session::interrupts::{Interrupts, Kill};
use crate::session::open_transaction::OpenTransaction;

/// A session as others see it, embedded in its dialect's handle.
pub struct SessionEntry {
    pub connection_id: u64,
    pub open: Arc<OpenTransaction>,
    interrupts: Interrupts,
    shown: Mutex<ProcessListRow>,
}

/// The handle of a session of some dialect.
pub trait SessionHandle: Send + Sync {
    fn entry(&self) -> &SessionEntry;

    /// Returns the number of rows that the session has changed.
    fn changes(&self) -> u64;
}

impl Deref for dyn SessionHandle {
    type Target = SessionEntry;

    fn deref(&self) -> &SessionEntry {
        self.entry()
    }
}

impl Deref for SessionEntry {
    type Target = Interrupts;

    fn deref(&self) -> &Interrupts {
        &self.interrupts
    }
}

/// A row of the process list.
#[derive(Clone, Debug)]
pub struct ProcessListRow {
    pub user: String,
    pub host: String,
    /// The name of the account.
    pub account: String,
    /// The account is the server's own, so only sessions of such accounts may end it.
    pub is_system: bool,
    /// The stored name of the current schema.
    pub database: Option<String>,
    pub since: Instant,
    /// The connection attributes of the client, in pairs.
    pub attributes: Arc<[(String, String)]>,
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

impl ProcessListRow {
    /// Returns the text of the running statement.
    pub fn statement(&self) -> Option<&str> {
        self.runs.then_some(&*self.text)
    }

    /// Returns the text of the last statement, running or not.
    pub fn last_statement(&self) -> &str {
        &self.text
    }

    /// Returns the state of the running statement.
    pub fn activity(&self) -> Option<&str> {
        self.runs.then(|| self.state.as_deref().unwrap_or("executing"))
    }

    pub fn begin(&mut self, text: &str, now: Instant) {
        self.since = now;
        self.text.clear();
        self.text.push_str(text);
        self.state = None;
        self.runs = true;
    }

    pub fn end(&mut self) {
        self.runs = false;
        self.state = None;
    }
}

impl SessionEntry {
    pub fn new(connection_id: u64, user: String, host: String) -> SessionEntry {
        let now = Instant::now();
        let shown = ProcessListRow {
            user,
            host,
            account: String::new(),
            is_system: false,
            database: None,
            since: now,
            attributes: Arc::default(),
            compression: None,
            sealing: None,
            text: String::new(),
            runs: false,
            state: None,
        };
        let (open, interrupts) = (Arc::new(OpenTransaction::new(now)), Interrupts::default());
        SessionEntry { connection_id, open, interrupts, shown: Mutex::new(shown) }
    }

    pub fn shown(&self) -> ProcessListRow {
        self.shown.lock().clone()
    }

    pub fn show(&self, change: impl FnOnce(&mut ProcessListRow)) {
        change(&mut self.shown.lock());
    }
}

/// All sessions.
#[derive(Default)]
pub struct Registry {
    sessions: Mutex<BTreeMap<u64, Weak<dyn SessionHandle>>>,
    /// The number of sessions so far, and the most at a time.
    total: AtomicU64,
    most: AtomicU64,
    is_stopping: AtomicBool,
}

impl Registry {
    pub fn enlist(&self, session: &Arc<dyn SessionHandle>) {
        let mut sessions = self.sessions.lock();
        sessions.insert(session.connection_id, Arc::downgrade(session));
        // Under the list's lock, since `end_waits` sets the flag before it takes the list.
        if self.is_stopping.load(Ordering::SeqCst) {
            session.end_waits();
        }
        self.total.fetch_add(1, Ordering::Relaxed);
        self.most.fetch_max(sessions.len() as u64, Ordering::Relaxed);
    }

    pub fn delist(&self, connection_id: u64) {
        self.sessions.lock().remove(&connection_id);
    }

    /// Returns all sessions, by their ids.
    pub fn all(&self) -> Vec<Arc<dyn SessionHandle>> {
        self.sessions.lock().values().filter_map(Weak::upgrade).collect()
    }

    pub fn find(&self, connection_id: u64) -> Option<Arc<dyn SessionHandle>> {
        self.sessions.lock().get(&connection_id).and_then(Weak::upgrade)
    }

    /// Returns the number of sessions so far, and the most at a time.
    pub fn counts(&self) -> (u64, u64) {
        (self.total.load(Ordering::Relaxed), self.most.load(Ordering::Relaxed))
    }

    /// Ends a session or its statement. Returns false if it does not exist.
    pub fn kill(&self, connection_id: u64, how: Kill, engine: &Engine) -> bool {
        let Some(session) = self.find(connection_id) else { return false };
        session.kill(how);
        engine.rows().wake_waiters();
        true
    }

    /// Ends all waits of sessions, and rejects new ones, because the server stops.
    pub fn end_waits(&self, engine: &Engine) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.all().iter().for_each(|session| session.end_waits());
        engine.rows().wake_waiters();
    }

    /// Ends all sessions and their statements.
    pub fn kill_all(&self, engine: &Engine) {
        self.all().iter().for_each(|session| session.kill(Kill::Connection));
        engine.rows().wake_waiters();
    }

    /// Notes that the client of a session has closed its connection while a statement runs.
    pub fn depart(&self, session: &SessionEntry, engine: &Engine) {
        session.depart();
        engine.rows().wake_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Handle(SessionEntry);

    impl SessionHandle for Handle {
        fn entry(&self) -> &SessionEntry {
            &self.0
        }

        fn changes(&self) -> u64 {
            0
        }
    }

    fn session(id: u64) -> Arc<dyn SessionHandle> {
        Arc::new(Handle(SessionEntry::new(id, "u".into(), "h".into())))
    }

    #[test]
    fn a_session_is_listed_from_its_login_to_its_end() {
        let registry = Registry::default();
        let (one, two) = (session(7), session(3));
        registry.enlist(&one);
        registry.enlist(&two);
        assert_eq!(registry.all().iter().map(|session| session.connection_id).collect::<Vec<_>>(), [3, 7]);
        two.show(|shown| shown.begin("select 1", Instant::now()));
        assert_eq!(registry.find(3).unwrap().shown().statement(), Some("select 1"));
        registry.delist(3);
        drop(one);
        assert!(registry.all().is_empty(), "a session that is gone is not listed");
        assert_eq!(registry.counts(), (2, 2));
    }

    #[test]
    fn a_session_that_comes_while_the_server_stops_does_not_wait() {
        let registry = Registry::default();
        registry.is_stopping.store(true, Ordering::SeqCst);
        let session = session(1);
        registry.enlist(&session);
        assert!(session.is_interrupted());
    }
}
