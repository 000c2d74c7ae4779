//! The door: opens and closes connections, and holds the settings that may change while it is open.

use std::sync::Arc;

use os::Clock;
use reactor::{Connection, Door, Flow, Io, Pool};
use sql_mysql::Database;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::auth::DigestCache;
use crate::clients::Clients;
use crate::errors;
use crate::memory_budget::MemoryBudget;
use crate::options::Options;
use crate::reply::Writer;
use crate::rsa::RsaKey;
use crate::session::Session;
use crate::shared::Shared;
use crate::stats::Stats;

/// The MySQL door.
pub struct MysqlDoor {
    shared: Arc<Shared>,
}

impl MysqlDoor {
    pub fn new(database: Arc<Database>, clock: Arc<dyn Clock>, options: Options) -> MysqlDoor {
        let shared = Arc::new(Shared {
            database,
            started_ns: clock.monotonic_ns(),
            clients: Arc::new(Clients::new(clock.clone())),
            clock,
            stats: Stats::default(),
            digest_cache: DigestCache::default(),
            rsa_key: RsaKey::default(),
            protected_mode: AtomicBool::new(options.protected_mode),
            tls: options.tls,
            require_secure_transport: options.require_secure_transport,
            statements_max: AtomicU64::new(options.statements_max),
            memory_budget: MemoryBudget::new(options.memory_budget_max),
        });
        MysqlDoor { shared }
    }

    /// Sets the thread pool that the door runs on; its timers end idle connections.
    pub fn attach(&self, pool: &Arc<Pool>) {
        self.shared.clients.attach(pool);
    }

    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// Returns the database that the door serves.
    pub fn database(&self) -> &Arc<Database> {
        &self.shared.database
    }

    pub fn connection_count(&self) -> usize {
        self.shared.clients.count()
    }

    /// Returns the bytes of long packets and values in flight.
    pub fn long_bytes(&self) -> u64 {
        self.shared.memory_budget.held()
    }

    pub fn set_protected_mode(&self, on: bool) {
        self.shared.protected_mode.store(on, Ordering::Relaxed);
    }

    pub fn set_statements_max(&self, count: u64) {
        self.shared.statements_max.store(count, Ordering::Relaxed);
    }

    fn is_protected_from(&self, connection: &Connection) -> bool {
        let default = self.shared.engine().accounts().get(engine::DEFAULT_ACCOUNT);
        let open = default.is_some_and(|account| account.enabled && account.nopass);
        open && !connection.peer.ip().is_loopback() && self.shared.protected_mode.load(Ordering::Relaxed)
    }
}

/// Builds an error packet for a client that has not sent anything yet.
fn farewell(error: &sql_mysql::error::SqlError) -> Vec<u8> {
    let (mut out, mut sequence) = (Vec::new(), 0);
    Writer { out: &mut out, sequence: &mut sequence, capabilities: 0 }.error(error);
    out
}

impl Door for MysqlDoor {
    type Session = Session;

    fn open(&self, connection: &Arc<Connection>) -> Result<Session, Vec<u8>> {
        if self.is_protected_from(connection) {
            return Err(farewell(&errors::not_allowed_host(connection.peer.ip())));
        }
        let (session, greeting) = Session::new(&self.shared, connection);
        // The server sends the first packet.
        connection.handle().push(&greeting);
        Ok(session)
    }

    fn serve(&self, session: &mut Session, io: &mut Io<'_>) -> Flow {
        session.serve(io)
    }

    fn close(&self, session: Session) {
        session.end();
    }

    fn refuse(&self) -> Vec<u8> {
        farewell(&sql_mysql::error::CON_COUNT.bare())
    }
}
