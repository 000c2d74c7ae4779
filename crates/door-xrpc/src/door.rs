//! The door: what all its connections share, and how one begins and ends.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use engine::Engine;
use os::Clock;
use query::Database;
use query::error::SqlError;
use reactor::{Alarm, Connection, Door, Flow, Io, Pool, TlsConfig};
use stdx::cache::ShardedCache;
use stdx::histogram::Histogram;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::digests::{Digests, Limits};
use crate::errors;
use crate::frame::Mode;
use crate::link::Link;
use crate::live::Live;
use crate::message::reply::{Severity, Writer};
use crate::session::{self, Who};
use crate::spare::Spare;
use crate::stats::Stats;
use crate::xplan::Known;

/// Told what a connection looks like, and where it comes from.
pub type OnStranger = dyn Fn(&str, SocketAddr) + Send + Sync;
/// Told whose session is killed, and whether as a whole.
pub type OnKill = dyn Fn(&str, u64, bool) + Send + Sync;

/// How the door is opened.
#[derive(Clone)]
pub struct Options {
    pub mode: Mode,
    /// What the length in a frame may say, of who has logged in.
    pub length_max: usize,
    /// Requests that may wait in one session.
    pub queue_max: usize,
    /// Sessions of all connections together.
    pub sessions_max: u64,
    pub digests: Limits,
    /// How long a session for single statements waits for the next one.
    pub spare_lifetime: Duration,
    /// Between two looks at which of them have waited for so long.
    pub spare_refresh: Duration,
    /// Half as many pages of 4 KiB are handed over at a time while rows are sent.
    pub output_pages: usize,
    /// The histograms of `Stats` are filled. That of statements is in any case.
    pub measures: bool,
    /// Connections from beyond loopback are refused while the account `default` needs no password.
    pub protected_mode: bool,
    /// Connections that begin with TLS get it. None: it is not offered.
    pub tls: Option<Arc<TlsConfig>>,
    /// Who does not begin with TLS is refused.
    pub require_secure_transport: bool,
    /// Hears of connections that are none of ours.
    pub on_stranger: Option<Arc<OnStranger>>,
    /// Hears of SESS_KILL.
    pub on_kill: Option<Arc<OnKill>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mode: Mode::Legacy,
            length_max: 64 << 20,
            queue_max: 128,
            sessions_max: 16_384,
            digests: Limits { entries: 1024, shards: 16, bytes_max: 1 << 20 },
            spare_lifetime: Duration::from_secs(60),
            spare_refresh: Duration::from_secs(10),
            output_pages: 10,
            measures: true,
            protected_mode: false,
            tls: None,
            require_secure_transport: false,
            on_stranger: None,
            on_kill: None,
        }
    }
}

/// Sessions are numbered apart from connections, from here on: CONNECTION_ID() and KILL have one list for all doors.
const FIRST_ID: u64 = 1 << 32;

/// So many plans that are ready to run are kept for a thread, of those that were asked for last.
const PREPARED_PLANS: usize = 512;

/// What the connections of a door share.
pub struct Shared {
    pub(crate) database: Arc<Database>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    /// What has become of those of them that may change.
    pub(crate) live: Live,
    pub(crate) stats: Stats,
    /// Statements by digest.
    pub(crate) texts: Digests,
    pub(crate) plans: Digests,
    /// By what a session's plans stand on, and the digest.
    pub(crate) prepared_plans: ShardedCache<Arc<Known>>,
    pub(crate) spare: Spare,
    protected_mode: AtomicBool,
    last_id: AtomicU64,
    pool: OnceLock<Weak<Pool>>,
    /// A timer is set that looks after the spare sessions.
    is_tended: AtomicBool,
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

    pub(crate) fn enter(&self, who: &Who) -> Result<Box<query::Session>, SqlError> {
        session::enter(self, who)
    }

    pub(crate) fn timer(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) {
        if let Some(pool) = self.pool.get().and_then(Weak::upgrade) {
            pool.timer(delay, action);
        }
    }

    /// The same, cancelled when the result is dropped.
    pub(crate) fn alarm(&self, delay: Duration, action: Box<dyn FnOnce() + Send>) -> Option<Alarm> {
        self.pool.get().and_then(Weak::upgrade).map(|pool| pool.alarm(delay, action))
    }

    /// Sees to it that spare sessions do not stay for ever.
    pub(crate) fn tend(self: &Arc<Self>) {
        if self.is_tended.swap(true, Ordering::AcqRel) {
            return;
        }
        let shared = Arc::downgrade(self);
        self.timer(
            self.live.spare_refresh(),
            Box::new(move || {
                let Some(shared) = shared.upgrade() else { return };
                let begun = shared.begin();
                shared.spare.forget(shared.now_ms(), shared.live.spare_lifetime());
                shared.record(&shared.stats.cleanup, begun);
                shared.is_tended.store(false, Ordering::Release);
                if shared.spare.count() > 0 {
                    shared.tend();
                }
            }),
        );
    }

    /// Now, for `record`; None while nothing is measured.
    pub(crate) fn begin(&self) -> Option<u64> {
        self.live.measures().then(|| self.clock.monotonic_ns())
    }

    pub(crate) fn record(&self, into: &Histogram, begun: Option<u64>) {
        if let Some(begun) = begun {
            into.record(self.clock.monotonic_ns() - begun);
        }
    }

    pub(crate) fn stranger(&self, what: &str, from: SocketAddr) {
        self.stats.strangers.add(1);
        if let Some(hear) = &self.options.on_stranger {
            hear(what, from);
        }
    }
}

/// XRPC on the engine.
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
            prepared_plans: ShardedCache::new(PREPARED_PLANS),
            spare: Spare::default(),
            protected_mode: AtomicBool::new(options.protected_mode),
            live: Live::of(&options),
            options,
            last_id: AtomicU64::new(0),
            pool: OnceLock::new(),
            is_tended: AtomicBool::new(false),
        });
        XrpcDoor { shared }
    }

    /// Gives the door the pool it runs on, whose timers end connections that do not log in.
    pub fn attach(&self, pool: &Arc<Pool>) {
        let _ = self.shared.pool.set(Arc::downgrade(pool));
    }

    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// Statements by digest.
    pub fn texts(&self) -> &Digests {
        &self.shared.texts
    }

    /// Plans by digest.
    pub fn plans(&self) -> &Digests {
        &self.shared.plans
    }

    /// Sessions of clients, and those for single statements, at work or not.
    pub fn session_count(&self) -> u64 {
        let stats = self.stats();
        stats.sessions.get().wrapping_add(stats.borrowed.get()) + self.spare_count() as u64
    }

    /// Sessions that wait for a single statement.
    pub fn spare_count(&self) -> usize {
        self.shared.spare.count()
    }

    /// Takes over what may change while the door is open: mode, lengths, queues, times of spare sessions, pages, histograms. The rest stays as it was.
    pub fn tune(&self, options: &Options) {
        self.shared.live.take(options);
    }

    pub fn set_protected_mode(&self, on: bool) {
        self.shared.protected_mode.store(on, Ordering::Relaxed);
    }

    fn is_protected_from(&self, connection: &Connection) -> bool {
        let default = self.shared.engine().accounts().get(engine::DEFAULT_ACCOUNT);
        let open = default.is_some_and(|account| account.enabled && account.nopass);
        open && !connection.peer.ip().is_loopback() && self.shared.protected_mode.load(Ordering::Relaxed)
    }

    /// A frame for a client that has not said anything yet.
    fn farewell(&self, error: &SqlError) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer { out: &mut out, mode: self.shared.live.mode(), sid: 0 };
        writer.error(Severity::Fatal, (error.code, error.sqlstate, &error.message));
        out
    }
}

impl Door for XrpcDoor {
    type Session = Link;

    fn open(&self, connection: &Arc<Connection>) -> Result<Link, Vec<u8>> {
        if self.is_protected_from(connection) {
            return Err(self.farewell(&errors::NOT_ALLOWED_HOST.with(&[&connection.peer.ip()])));
        }
        Ok(Link::new(&self.shared, connection))
    }

    fn serve(&self, link: &mut Link, io: &mut Io<'_>) -> Flow {
        link.serve(io)
    }

    fn close(&self, link: Link) {
        link.end();
    }

    fn refuse(&self) -> Vec<u8> {
        self.farewell(&query::error::CON_COUNT.bare())
    }
}
