//! The door: what all its connections share, and how one begins and ends.

use std::sync::{Arc, OnceLock, Weak};

use engine::{Ahead, Engine, Keyspace};
use os::Clock;
use reactor::{Connection, Door, Fetch, Flow, Io, Pool, Received};
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clients::Clients;
use crate::frame::first_key;
use crate::host::Host;
use crate::parameters::Parameters;
use crate::rates::Rates;
use crate::reply::Reply;
use crate::session::Session;
use crate::stats::Stats;
use crate::users::Users;
use crate::users::log::AccessLog;

/// How the door is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Replies wait until what they tell is on disk. Off: `appendfsync everysec` or `no`.
    pub strict: bool,
    /// Connections from beyond loopback are refused while the default user has no password.
    pub protected_mode: bool,
    pub bulk_bytes_max: u64,
    pub request_bytes_max: u64,
    pub port: u16,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            strict: true,
            protected_mode: true,
            bulk_bytes_max: 512 << 20,
            request_bytes_max: 1 << 30,
            port: 6379,
        }
    }
}

/// What the connections of a door share.
pub(crate) struct Shared {
    pub engine: Arc<Engine>,
    pub keyspace: Arc<Keyspace>,
    pub clock: Arc<dyn Clock>,
    pub host: Arc<dyn Host>,
    pub stats: Stats,
    /// Of commands, bytes received and bytes sent.
    pub rates: Rates<3>,
    pub clients: Clients,
    pub parameters: Parameters,
    pub access_log: AccessLog,
    pub users: Users,
    pub pool: OnceLock<Weak<Pool>>,
    pub strict: AtomicBool,
    pub protected_mode: AtomicBool,
    pub bulk_bytes_max: AtomicU64,
    pub request_bytes_max: AtomicU64,
    pub port: u16,
    pub started_ms: u64,
    /// When the last warning of HTTP was logged.
    http_warned_ms: AtomicU64,
    /// Forty hexadecimal digits, new at each start.
    pub run_id: String,
}

impl Shared {
    /// Looks for keys ahead of the requests that name them. Of a request that names none yet, nothing is known: what is found for another key
    /// must not be taken for its.
    pub fn look_ahead(&self, keys: &[(u8, Option<&[u8]>)]) -> Vec<Ahead> {
        let named: Vec<(u8, &[u8])> = keys.iter().filter_map(|(db, key)| Some((*db, (*key)?))).collect();
        let mut found = Vec::with_capacity(named.len());
        self.keyspace.look_ahead(&named, &mut found);
        let mut found = found.into_iter();
        keys.iter().map(|(_, key)| key.and_then(|_| found.next()).unwrap_or_default()).collect()
    }

    /// One line for the log, and not more often than once a minute, as Redis does it.
    pub fn warn_of_http(&self, from: &str, now_ms: u64) {
        let last = self.http_warned_ms.load(Ordering::Relaxed);
        let is_due = last == 0 || now_ms.saturating_sub(last) >= 60_000;
        let is_ours =
            || self.http_warned_ms.compare_exchange(last, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due && is_ours() {
            self.host.warn(
                "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to the Redis door. This is likely due to an attacker attempting to use Cross Protocol Scripting to compromise it. Connection aborted.",
                from,
            );
        }
    }

    pub fn pool(&self) -> Option<Arc<Pool>> {
        self.pool.get().and_then(Weak::upgrade)
    }
}

/// The Redis protocol on the engine.
pub struct RedisDoor {
    pub(crate) shared: Arc<Shared>,
}

impl RedisDoor {
    pub fn new(engine: Arc<Engine>, clock: Arc<dyn Clock>, host: Arc<dyn Host>, options: &Options) -> RedisDoor {
        let mut random = [0; 20];
        os::entropy(&mut random).expect("the kernel has random bytes");
        let run_id = random.iter().map(|byte| format!("{byte:02x}")).collect();
        RedisDoor {
            shared: Arc::new(Shared {
                keyspace: engine.keyspace().clone(),
                engine,
                started_ms: clock.wall_ms(),
                http_warned_ms: AtomicU64::new(0),
                rates: Rates::new(clock.monotonic_ns()),
                clock,
                host,
                stats: Stats::default(),
                clients: Clients::default(),
                parameters: Parameters::default(),
                access_log: AccessLog::default(),
                users: Users::default(),
                pool: OnceLock::new(),
                strict: AtomicBool::new(options.strict),
                protected_mode: AtomicBool::new(options.protected_mode),
                bulk_bytes_max: AtomicU64::new(options.bulk_bytes_max),
                request_bytes_max: AtomicU64::new(options.request_bytes_max),
                port: options.port,
                run_id,
            }),
        }
    }

    /// Gives the door the pool it runs on, for timers and for INFO.
    pub fn attach(&self, pool: &Arc<Pool>) {
        let _ = self.shared.pool.set(Arc::downgrade(pool));
    }

    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// Whether replies wait for the disk from now on.
    pub fn set_strict(&self, strict: bool) {
        self.shared.strict.store(strict, Ordering::Relaxed);
    }

    pub fn set_protected_mode(&self, on: bool) {
        self.shared.protected_mode.store(on, Ordering::Relaxed);
    }

    pub fn set_bulk_bytes_max(&self, bytes: u64) {
        self.shared.bulk_bytes_max.store(bytes, Ordering::Relaxed);
    }

    pub fn set_request_bytes_max(&self, bytes: u64) {
        self.shared.request_bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Requests that took at least so long, in microseconds, go into the slow log; negative: none. It keeps the newest `entries`.
    pub fn set_slow_log(&self, microseconds: i64, entries: u64) {
        self.shared.stats.slow_microseconds.store(microseconds, Ordering::Relaxed);
        self.shared.stats.slow_entries.store(entries, Ordering::Relaxed);
    }
}

const PROTECTED: &str = "DENIED Beluga is running in protected mode because protected mode is enabled and no password is set for the default user. In this mode connections are only accepted from the loopback interface. Set the setting 'requirepass', or an account password with ACL SETUSER, or turn 'protected-mode' off if nobody else can reach this port.";

impl Door for RedisDoor {
    type Session = Session;

    fn open(&self, connection: &Arc<Connection>) -> Result<Session, Vec<u8>> {
        let open = self.shared.engine.accounts().get(engine::DEFAULT_ACCOUNT).is_some_and(|account| account.nopass);
        let outside = !connection.peer.ip().is_loopback();
        if open && outside && self.shared.protected_mode.load(Ordering::Relaxed) {
            let mut farewell = Vec::new();
            Reply { out: &mut farewell, resp3: false }.error(PROTECTED);
            return Err(farewell);
        }
        Ok(Session::new(&self.shared, connection))
    }

    fn serve(&self, session: &mut Session, io: &mut Io<'_>) -> Flow {
        session.serve(io)
    }

    fn look_ahead(&self, arrived: &mut [Received<'_, Session>]) -> Option<Fetch> {
        let keys: Vec<_> = arrived.iter().map(|arrived| (arrived.session.db, first_key(arrived.input))).collect();
        let ahead = self.shared.look_ahead(&keys);
        let any_late = ahead.iter().any(Ahead::is_absent);
        let now = if any_late { self.shared.clock.monotonic_ns() } else { 0 };
        for (arrived, ahead) in arrived.iter_mut().zip(&ahead) {
            arrived.is_deferred = ahead.is_absent();
            arrived.session.expect(*ahead, if arrived.is_deferred { now } else { 0 });
        }
        let keyspace = self.shared.keyspace.clone();
        any_late.then(|| -> Fetch { Box::new(move |thens| keyspace.fetch(&ahead, thens)) })
    }

    fn close(&self, session: Session) {
        self.shared.clients.remove(session.client.id);
    }

    fn refuse(&self) -> Vec<u8> {
        b"-ERR max number of clients reached\r\n".to_vec()
    }
}
