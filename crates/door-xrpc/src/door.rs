//! The door: opens and closes connections, and takes over settings that change while it is open.

use std::sync::{Arc, OnceLock};

use os::Clock;
use reactor::{Connection, Door, Flow, Io, Pool};
use sql_mysql::Database;
use sql_mysql::error::SqlError;
use stdx::cache::ShardedCache;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::connection::XrpcConnection;
use crate::digests::Digests;
use crate::errors;
use crate::message::reply::{Severity, Writer};
use crate::options::Options;
use crate::runtime_settings::RuntimeSettings;
use crate::session_pool::SessionPool;
use crate::shared::{PREPARED, Shared};
use crate::stats::Stats;

/// The XRPC door.
pub struct XrpcDoor {
    shared: Arc<Shared>,
}

impl XrpcDoor {
    pub fn new(database: Arc<Database>, clock: Arc<dyn Clock>, options: Options) -> XrpcDoor {
        let shared = Arc::new(Shared {
            database,
            clock,
            stats: Stats::default(),
            texts: Digests::new(options.digests),
            plans: Digests::new(options.digests),
            prepared_plans: ShardedCache::new(PREPARED),
            prepared_texts: ShardedCache::new(PREPARED),
            session_pool: SessionPool::default(),
            protected_mode: AtomicBool::new(options.protected_mode),
            settings: RuntimeSettings::of(&options),
            options,
            last_id: AtomicU64::new(0),
            pool: OnceLock::new(),
            is_cleanup_scheduled: AtomicBool::new(false),
        });
        XrpcDoor { shared }
    }

    /// Sets the thread pool that the door runs on; its timers end connections that do not log in.
    pub fn attach(&self, pool: &Arc<Pool>) {
        let _ = self.shared.pool.set(Arc::downgrade(pool));
    }

    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// Returns the digest cache of statements.
    pub fn texts(&self) -> &Digests {
        &self.shared.texts
    }

    /// Returns the digest cache of plans.
    pub fn plans(&self) -> &Digests {
        &self.shared.plans
    }

    /// Returns the number of sessions: those of clients, and those for single statements, running or idle.
    pub fn session_count(&self) -> u64 {
        let stats = self.stats();
        stats.sessions.get().wrapping_add(stats.borrowed.get()) + self.idle_session_count() as u64
    }

    /// Returns the number of idle sessions in the pool for single statements.
    pub fn idle_session_count(&self) -> usize {
        self.shared.session_pool.count()
    }

    /// Applies the settings that may change while the door is open: mode, lengths, queues, times of idle sessions, pages, histograms. The others keep their
    /// values.
    pub fn tune(&self, options: &Options) {
        self.shared.settings.take(options);
    }

    pub fn set_protected_mode(&self, on: bool) {
        self.shared.protected_mode.store(on, Ordering::Relaxed);
    }

    fn is_protected_from(&self, connection: &Connection) -> bool {
        let default = self.shared.engine().accounts().get(engine::DEFAULT_ACCOUNT);
        let open = default.is_some_and(|account| account.enabled && account.nopass);
        open && !connection.peer.ip().is_loopback() && self.shared.protected_mode.load(Ordering::Relaxed)
    }

    /// Returns an error frame for a client that has not sent anything yet.
    fn farewell(&self, error: &SqlError) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer { out: &mut out, mode: self.shared.settings.mode(), sid: 0 };
        writer.error(Severity::Fatal, (error.code, error.sqlstate, &error.message));
        out
    }
}

impl Door for XrpcDoor {
    type Session = XrpcConnection;

    fn open(&self, connection: &Arc<Connection>) -> Result<XrpcConnection, Vec<u8>> {
        if self.is_protected_from(connection) {
            return Err(self.farewell(&errors::not_allowed_host(connection.peer.ip())));
        }
        Ok(XrpcConnection::new(&self.shared, connection))
    }

    fn serve(&self, state: &mut XrpcConnection, io: &mut Io<'_>) -> Flow {
        state.serve(io)
    }

    fn close(&self, state: XrpcConnection) {
        state.end();
    }

    fn refuse(&self) -> Vec<u8> {
        self.farewell(&sql_mysql::error::CON_COUNT.bare())
    }
}
