//! The state that all PostgreSQL sessions share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use engine::Engine;
use query::catalog::Catalog;
use query::exec::instance::Instance;
use stdx::sync::Mutex;

use crate::error::Result;
use crate::instance::handle::{Handle, Kill};
use crate::instance::plans::Plans;
use crate::session::facts::micros_since_2000;

/// Answers whether a role may do everything.
pub type IsSuperuser = Box<dyn Fn(&str) -> bool + Send + Sync>;

pub struct Database {
    instance: Arc<Instance>,
    sessions: Mutex<BTreeMap<u32, Weak<Handle>>>,
    pub(crate) plans: Arc<Plans>,
    /// Settings that mirror the server's own.
    facts: Mutex<Vec<(&'static str, String)>>,
    is_superuser: OnceLock<IsSuperuser>,
    is_stopping: AtomicBool,
    /// Microseconds since 2000.
    started: i64,
}

/// The role that always may do everything, and the database of that name.
pub const POSTGRES: &str = "postgres";

impl Database {
    /// Opens PostgreSQL's view of an instance, which other dialects share.
    pub fn open(instance: Arc<Instance>) -> Result<Arc<Database>> {
        let plans = Arc::new(Plans::new());
        let cache: Weak<Plans> = Arc::downgrade(&plans);
        stdx::memory::register_cache(cache);
        Ok(Arc::new(Database {
            instance,
            sessions: Mutex::default(),
            plans,
            facts: Mutex::default(),
            is_superuser: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
            started: micros_since_2000(std::time::SystemTime::now()),
        }))
    }

    /// Sets the settings that mirror the server's: `max_connections`, `port`, `listen_addresses`, `data_directory`, `ssl`.
    pub fn describe_server(&self, facts: impl IntoIterator<Item = (&'static str, String)>) {
        self.facts.lock().extend(facts);
    }

    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        self.facts.lock().clone()
    }

    /// Sets which roles besides `postgres` may do everything. Called once, before the first session.
    pub fn set_superusers(&self, is_superuser: IsSuperuser) {
        let _ = self.is_superuser.set(is_superuser);
    }

    pub(crate) fn is_superuser(&self, role: &str) -> bool {
        role == POSTGRES || self.is_superuser.get().is_some_and(|is_superuser| is_superuser(role))
    }

    /// Returns the server's start in microseconds since 2000.
    pub(crate) fn started(&self) -> i64 {
        self.started
    }

    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    pub fn engine(&self) -> &Arc<Engine> {
        self.instance.engine()
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        self.instance.catalog()
    }

    /// Ends all waits of sessions, and rejects new ones, because the server stops.
    pub fn end_waits(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.sessions().iter().for_each(|handle| handle.end_waits());
        self.engine().rows().wake_waiters();
    }

    /// Ends all sessions and their statements.
    pub fn kill_all(&self) {
        self.sessions().iter().for_each(|handle| handle.kill(Kill::Connection));
        self.engine().rows().wake_waiters();
    }

    /// Notes that the client of a session has closed its connection while a statement runs.
    pub fn depart(&self, handle: &Handle) {
        handle.depart();
        self.engine().rows().wake_waiters();
    }

    pub(crate) fn enlist(&self, handle: &Arc<Handle>) {
        let mut sessions = self.sessions.lock();
        sessions.insert(handle.pid, Arc::downgrade(handle));
        // Under the list's lock, since `end_waits` sets the flag before it takes the list.
        if self.is_stopping.load(Ordering::SeqCst) {
            handle.end_waits();
        }
    }

    pub(crate) fn delist(&self, handle: &Handle) {
        self.sessions.lock().remove(&handle.pid);
    }

    /// Returns all sessions.
    pub fn sessions(&self) -> Vec<Arc<Handle>> {
        self.sessions.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Cancels a session's statement or ends the session. Returns false if there is none of that process id.
    pub fn kill(&self, pid: u32, how: Kill) -> bool {
        let handle = self.sessions.lock().get(&pid).and_then(Weak::upgrade);
        let Some(handle) = handle else { return false };
        handle.kill(how);
        self.engine().rows().wake_waiters();
        true
    }
}
