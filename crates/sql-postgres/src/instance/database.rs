//! The state that all PostgreSQL sessions share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, Weak};

use engine::Engine;
use query::catalog::Catalog;
use query::exec::instance::Instance;
use query::session::registry::SessionHandle;
use stdx::sync::Mutex;

use crate::error::Result;
use crate::instance::handle::{Handle, Kill};
use crate::instance::notifications::Channels;
use crate::instance::plans::Plans;
use crate::session::facts::micros_since_2000;

/// Answers whether a role may do everything.
pub type IsSuperuser = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Writes a warning to the event log: what has happened, and to which client.
pub type Logger = Box<dyn Fn(&str, &str) + Send + Sync>;

pub struct Database {
    instance: Arc<Instance>,
    /// The sessions of this dialect, by their process ids. The list of all is `query::session::registry`.
    by_pid: Mutex<BTreeMap<u32, Weak<Handle>>>,
    pub(crate) plans: Arc<Plans>,
    pub(crate) channels: Channels,
    logger: OnceLock<Logger>,
    /// Settings that mirror the server's own.
    facts: Mutex<Vec<(&'static str, String)>>,
    is_superuser: OnceLock<IsSuperuser>,
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
            by_pid: Mutex::default(),
            plans,
            channels: Channels::default(),
            logger: OnceLock::new(),
            facts: Mutex::default(),
            is_superuser: OnceLock::new(),
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

    /// Sets where warnings go. Called once, before the first session.
    pub fn set_logger(&self, logger: Logger) {
        let _ = self.logger.set(logger);
    }

    /// Logs a warning about a client.
    pub fn warn(&self, what: &str, client: &str) {
        if let Some(log) = self.logger.get() {
            log(what, client);
        }
    }

    /// Ends a session that does not take its notifications.
    pub(crate) fn cut_listener(&self, pid: u32) {
        let address = self.by_pid.lock().get(&pid).and_then(Weak::upgrade).map(|handle| handle.shown().host.clone());
        self.warn("a client that does not take its notifications is disconnected", &address.unwrap_or_default());
        self.kill(pid, Kill::Connection);
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
        self.instance.sessions().end_waits(self.engine());
    }

    /// Ends all sessions and their statements.
    pub fn kill_all(&self) {
        self.instance.sessions().kill_all(self.engine());
    }

    /// Notes that the client of a session has closed its connection while a statement runs.
    pub fn depart(&self, handle: &Handle) {
        self.instance.sessions().depart(handle, self.engine());
    }

    pub(crate) fn enlist(&self, handle: &Arc<Handle>) {
        self.by_pid.lock().insert(handle.pid, Arc::downgrade(handle));
        let listed: Arc<dyn SessionHandle> = handle.clone();
        self.instance.sessions().enlist(&listed);
    }

    pub(crate) fn delist(&self, handle: &Handle) {
        self.instance.sessions().delist(handle.connection_id);
        self.by_pid.lock().remove(&handle.pid);
    }

    /// Returns the sessions of this dialect.
    pub fn sessions(&self) -> Vec<Arc<Handle>> {
        self.by_pid.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Returns the sessions of other dialects.
    pub(crate) fn other_sessions(&self) -> Vec<Arc<dyn SessionHandle>> {
        let own: BTreeSet<u64> = self.sessions().iter().map(|handle| handle.connection_id).collect();
        self.instance.sessions().all().into_iter().filter(|session| !own.contains(&session.connection_id)).collect()
    }

    /// Cancels a session's statement or ends the session. A process id that no session of this dialect has is the connection id of one of another. Returns
    /// false if there is none.
    pub fn kill(&self, pid: u32, how: Kill) -> bool {
        let own = self.by_pid.lock().get(&pid).and_then(Weak::upgrade);
        let connection_id = own.map_or(u64::from(pid), |handle| handle.connection_id);
        self.instance.sessions().kill(connection_id, how, self.engine())
    }
}
