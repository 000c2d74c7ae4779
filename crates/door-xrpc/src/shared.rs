//! The state that all connections and sessions of the door share. It lies below them, so that neither imports the door.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use engine::Engine;
use os::Clock;
use reactor::{Alarm, Pool};
use sql_mysql::error::SqlError;
use sql_mysql::{Database, Login, Session};
use stdx::cache::ShardedCache;
use stdx::histogram::Histogram;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::digests::Digests;
use crate::errors;
use crate::identity::Identity;
use crate::options::Options;
use crate::plan_translation::PreparedPlan;
use crate::prepared_text::PreparedText;
use crate::runtime_settings::RuntimeSettings;
use crate::session_pool::SessionPool;
use crate::stats::Stats;

/// Sessions have numbers from here on, apart from connections: CONNECTION_ID() and KILL have one list for all doors.
const FIRST_ID: u64 = 1 << 32;

/// Prepared plans, and prepared texts, kept for each thread: the most recently used.
pub const PREPARED: usize = 512;

/// The state shared by the connections of a door.
pub struct Shared {
    pub(crate) database: Arc<Database>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    /// The settings that may change while the door is open.
    pub(crate) settings: RuntimeSettings,
    pub(crate) stats: Stats,
    /// The digest caches.
    pub(crate) texts: Digests,
    pub(crate) plans: Digests,
    /// Prepared plans and texts, by plan-cache context and digest.
    pub(crate) prepared_plans: ShardedCache<Arc<PreparedPlan>>,
    pub(crate) prepared_texts: ShardedCache<Arc<PreparedText>>,
    pub(crate) session_pool: SessionPool,
    pub(crate) protected_mode: AtomicBool,
    pub(crate) last_id: AtomicU64,
    pub(crate) pool: OnceLock<Weak<Pool>>,
    /// Whether a timer for the cleanup of idle sessions is active.
    pub(crate) is_cleanup_scheduled: AtomicBool,
}

impl Shared {
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.database.engine()
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.monotonic_ns() / 1_000_000
    }

    pub(crate) fn next_connection_id(&self) -> u64 {
        FIRST_ID + self.last_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins a session of `query` for the account.
    pub(crate) fn new_session(&self, identity: &Identity) -> Result<Box<Session>, SqlError> {
        let login = Login {
            user: identity.user.clone(),
            host: identity.host.clone(),
            database: None,
            connection_id: self.next_connection_id(),
        };
        let mut sql = Session::new(&self.database, login)?;
        // The account list may have changed since the login: then the account whose password was proved is not the one found now.
        if sql.account() != identity.account {
            return Err(errors::ACCESS_DENIED.with(&[&identity.user, &identity.host, &"YES"]));
        }
        sql.count_found(true);
        Ok(Box::new(sql))
    }

    /// Takes a session for one statement out of the pool, or begins one.
    pub(crate) fn borrow_session(&self, identity: &Identity) -> Result<Box<Session>, SqlError> {
        match self.session_pool.take(identity)? {
            Some(session) => Ok(session),
            None => self.new_session(identity),
        }
    }

    /// Puts a session back into the pool and makes sure that the pool is cleaned up.
    pub(crate) fn return_session(self: &Arc<Self>, identity: &Identity, session: Box<Session>) {
        if self.session_pool.put_back(identity, session, self.now_ms()) {
            self.schedule_pool_cleanup();
        }
    }

    pub(crate) fn timer(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) {
        if let Some(pool) = self.pool.get().and_then(Weak::upgrade) {
            pool.timer(delay, action);
        }
    }

    /// Starts a timer that is cancelled when the result is dropped.
    pub(crate) fn alarm(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) -> Option<Alarm> {
        self.pool.get().and_then(Weak::upgrade).map(|pool| pool.alarm(delay, action))
    }

    /// Starts a timer that drops old idle sessions, unless one is active.
    pub(crate) fn schedule_pool_cleanup(self: &Arc<Self>) {
        if self.is_cleanup_scheduled.swap(true, Ordering::AcqRel) {
            return;
        }
        let shared = Arc::downgrade(self);
        self.timer(
            self.settings.idle_session_check(),
            Box::new(move || {
                let Some(shared) = shared.upgrade() else { return };
                let begun = shared.begin();
                shared.session_pool.forget(shared.now_ms(), shared.settings.idle_session_lifetime());
                shared.record(&shared.stats.cleanup, begun);
                shared.is_cleanup_scheduled.store(false, Ordering::Release);
                if shared.session_pool.count() > 0 {
                    shared.schedule_pool_cleanup();
                }
            }),
        );
    }

    /// Returns the time for `record`, or `None` while nothing is measured.
    pub(crate) fn begin(&self) -> Option<u64> {
        self.settings.measures().then(|| self.clock.monotonic_ns())
    }

    pub(crate) fn record(&self, into: &Histogram, begun: Option<u64>) {
        if let Some(begun) = begun {
            into.record(self.clock.monotonic_ns() - begun);
        }
    }

    pub(crate) fn report_foreign(&self, what: &str, from: SocketAddr) {
        self.stats.foreign_connections.add(1);
        if let Some(callback) = &self.options.on_foreign_protocol {
            callback(what, from);
        }
    }
}
