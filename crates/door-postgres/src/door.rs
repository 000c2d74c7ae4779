//! The door: opens and closes connections, and holds the settings that may change while it is open.

use std::sync::Arc;

use os::Clock;
use reactor::{Connection, Door, Flow, Io, Pool};
use stdx::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::auth::Decoys;
use crate::clients::Clients;
use crate::options::Options;
use crate::session::Session;
use crate::shared::Shared;
use crate::sql::Database;
use crate::stats::Stats;
use crate::{certificate, errors, reply};

/// The PostgreSQL door.
pub struct PostgresDoor {
    shared: Arc<Shared>,
}

impl PostgresDoor {
    pub fn new(database: Arc<Database>, clock: Arc<dyn Clock>, options: Options) -> PostgresDoor {
        let channel = options.tls.as_ref().and_then(|tls| certificate::end_point(&tls.certificate));
        let shared = Arc::new(Shared {
            database,
            clients: Arc::new(Clients::new(clock.clone())),
            clock,
            stats: Stats::default(),
            decoys: Decoys::default(),
            protected_mode: AtomicBool::new(options.protected_mode),
            tls: options.tls,
            channel,
            require_secure_transport: options.require_secure_transport,
            message_max: AtomicUsize::new(options.message_max),
        });
        PostgresDoor { shared }
    }

    /// Sets the thread pool that the door runs on; its timers end logins that take too long.
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

    pub fn set_protected_mode(&self, on: bool) {
        self.shared.protected_mode.store(on, Ordering::Relaxed);
    }

    pub fn set_message_max(&self, bytes: usize) {
        self.shared.message_max.store(bytes, Ordering::Relaxed);
    }

    /// Tells every client that the server stops: idle ones at once, others after their reply.
    pub fn say_goodbye(&self) {
        self.shared.clients.end_all(&errors::shutdown());
    }
}

impl Door for PostgresDoor {
    type Session = Session;

    fn open(&self, connection: &Arc<Connection>) -> Result<Session, Vec<u8>> {
        Ok(Session::new(&self.shared, connection))
    }

    fn serve(&self, session: &mut Session, io: &mut Io<'_>) -> Flow {
        session.serve(io)
    }

    fn close(&self, session: Session) {
        session.end();
    }

    fn refuse(&self) -> Vec<u8> {
        let mut out = Vec::new();
        reply::put_error(&mut out, reply::FATAL, &errors::too_many_clients());
        out
    }
}
