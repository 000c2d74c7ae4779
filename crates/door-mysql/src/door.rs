//! The door: what all its connections share, and how one begins and ends.

use std::sync::Arc;

use engine::Engine;
use os::Clock;
use query::Database;
use reactor::{Connection, Door, Flow, Io, Pool, TlsConfig};
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::auth::Remembered;
use crate::clients::Clients;
use crate::errors;
use crate::reply::Writer;
use crate::room::Room;
use crate::seal::Seal;
use crate::session::Session;
use crate::stats::Stats;

/// How the door is opened.
#[derive(Clone)]
pub struct Options {
    /// Connections from beyond loopback are refused while the account `default` needs no password.
    pub protected_mode: bool,
    /// Connections that ask for it get TLS. None: it is not offered.
    pub tls: Option<Arc<TlsConfig>>,
    /// Who does not ask for TLS is refused.
    pub require_secure_transport: bool,
    /// Prepared statements of all clients together.
    pub statements_max: u64,
    /// Bytes of long packets and values under way, of all clients together.
    pub room_max: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            protected_mode: false,
            tls: None,
            require_secure_transport: false,
            statements_max: 16_382,
            room_max: 4 << 30,
        }
    }
}

/// What the connections of a door share.
pub(crate) struct Shared {
    pub database: Arc<Database>,
    pub clock: Arc<dyn Clock>,
    pub stats: Stats,
    pub clients: Arc<Clients>,
    pub remembered: Remembered,
    pub seal: Seal,
    pub protected_mode: AtomicBool,
    pub tls: Option<Arc<TlsConfig>>,
    pub require_secure_transport: bool,
    pub statements_max: AtomicU64,
    pub room: Arc<Room>,
    pub started_ns: u64,
}

impl Shared {
    pub fn engine(&self) -> &Arc<Engine> {
        self.database.engine()
    }
}

/// The MySQL protocol on the engine.
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
            remembered: Remembered::default(),
            seal: Seal::default(),
            protected_mode: AtomicBool::new(options.protected_mode),
            tls: options.tls,
            require_secure_transport: options.require_secure_transport,
            statements_max: AtomicU64::new(options.statements_max),
            room: Room::new(options.room_max),
        });
        MysqlDoor { shared }
    }

    /// Gives the door the pool it runs on, whose timers end idle connections.
    pub fn attach(&self, pool: &Arc<Pool>) {
        self.shared.clients.attach(pool);
    }

    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// The tables behind it.
    pub fn database(&self) -> &Arc<Database> {
        &self.shared.database
    }

    pub fn connection_count(&self) -> usize {
        self.shared.clients.count()
    }

    /// Bytes of long packets and values under way.
    pub fn long_bytes(&self) -> u64 {
        self.shared.room.held()
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

/// A packet of an error for a client that has not said anything yet.
fn farewell(error: &query::error::SqlError) -> Vec<u8> {
    let (mut out, mut sequence) = (Vec::new(), 0);
    Writer { out: &mut out, sequence: &mut sequence, capabilities: 0 }.error(error);
    out
}

impl Door for MysqlDoor {
    type Session = Session;

    fn open(&self, connection: &Arc<Connection>) -> Result<Session, Vec<u8>> {
        if self.is_protected_from(connection) {
            return Err(farewell(&errors::NOT_ALLOWED_HOST.with(&[&connection.peer.ip()])));
        }
        let (session, greeting) = Session::new(&self.shared, connection);
        // The server speaks first.
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
        farewell(&query::error::CON_COUNT.bare())
    }
}
