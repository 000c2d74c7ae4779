//! The door: how it is configured, and how a connection opens and closes.

use std::sync::{Arc, OnceLock};

use engine::{Ahead, EffectBatch, Engine};
use os::Clock;
use reactor::{Connection, Door, Fetch, Flow, Io, Pool, Received};
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clients::Clients;
use crate::commands::function::dump_set;
use crate::host::Host;
use crate::messages::Hub;
use crate::messages::limits::OutputLimits;
use crate::messages::monitors::Monitors;
use crate::messages::tracking::TrackingTable;
use crate::migrations::Migrations;
use crate::parameters::Parameters;
use crate::parameters::event_flags::EventFlags;
use crate::parser::first_key;
use crate::rates::Rates;
use crate::replica::run::run;
use crate::replica::start;
use crate::replica::state::Replica;
use crate::reply::Reply;
use crate::saves::Saves;
use crate::scripts::libraries::Libraries;
use crate::scripts::{Runs, ScriptTexts};
use crate::session::Session;
use crate::shared::Shared;
use crate::shutdown::Shutdown;
use crate::shutdown::prepare::prepare;
use crate::source::encoding::encode;
use crate::source::history::History;
use crate::stats::Stats;
use crate::users::Users;
use crate::users::log::AccessLog;

/// Options of the door.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether a reply waits until the changes that it shows are on disk. False for `appendfsync everysec` and `no`.
    pub strict: bool,
    /// Whether connections from other machines are refused while the default user has no password.
    pub protected_mode: bool,
    pub bulk_bytes_max: u64,
    pub request_bytes_max: u64,
    pub port: u16,
    /// Whether the server is the one node of a cluster, with Redis' rules for keys of several slots.
    pub cluster: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            strict: true,
            protected_mode: true,
            bulk_bytes_max: 512 << 20,
            request_bytes_max: 1 << 30,
            port: 6379,
            cluster: false,
        }
    }
}

/// The Redis protocol over the engine.
pub struct RedisDoor {
    pub(crate) shared: Arc<Shared>,
}

impl RedisDoor {
    pub fn new(engine: Arc<Engine>, clock: Arc<dyn Clock>, host: Arc<dyn Host>, options: &Options) -> RedisDoor {
        let mut random = [0; 20];
        os::entropy(&mut random).expect("the kernel has random bytes");
        let run_id = hexadecimal(&random);
        let node_id = if options.cluster { node_id(&engine, &random) } else { String::new() };
        let door = RedisDoor {
            shared: Arc::new(Shared {
                keyspace: engine.keyspace().clone(),
                started_ms: clock.wall_ms(),
                http_warned_ms: AtomicU64::new(0),
                rates: Rates::new(clock.monotonic_ns()),
                clock,
                host,
                stats: Stats::default(),
                clients: Clients::default(),
                pack_limits: engine.keyspace().encoding_limits().clone(),
                parameters: Parameters::default(),
                access_log: AccessLog::default(),
                users: Users::default(),
                hub: Hub::default(),
                monitors: Monitors::default(),
                tracking: TrackingTable::default(),
                output_limits: OutputLimits::default(),
                event_flags: EventFlags::default(),
                scripts: ScriptTexts::default(),
                script_flushes: AtomicU64::new(0),
                libraries: Libraries::default(),
                runs: Runs::default(),
                saves: Saves::default(),
                migrations: Migrations::default(),
                shutdown: Shutdown::default(),
                replica: Replica::default(),
                history: History::default(),
                pool: OnceLock::new(),
                strict: AtomicBool::new(options.strict),
                protected_mode: AtomicBool::new(options.protected_mode),
                bulk_bytes_max: AtomicU64::new(options.bulk_bytes_max),
                request_bytes_max: AtomicU64::new(options.request_bytes_max),
                port: options.port,
                run_id,
                is_cluster: options.cluster,
                node_id,
                engine,
            }),
        };
        door.shared.pack_limits.set(door.shared.parameters.encoding_limits());
        door.shared.listen_to_keys();
        door.listen_to_effects();
        door.open_libraries();
        start_links(&door.shared);
        door
    }

    /// Gives the door the worker pool that it runs on, for timers and for INFO.
    pub fn attach(&self, pool: &Arc<Pool>) {
        let _ = self.shared.pool.set(Arc::downgrade(pool));
        self.shared.serve_deferred_waits();
    }

    /// Takes what changes keys and functions into the history that other servers follow.
    fn listen_to_effects(&self) {
        // The keyspace and the libraries belong to the shared state, so strong references would be circles.
        let (of_keys, of_libraries) = (Arc::downgrade(&self.shared), Arc::downgrade(&self.shared));
        let take = move |batch: EffectBatch, lsn| {
            if let Some(shared) = of_keys.upgrade() {
                shared.history.append(&batch, lsn, || shared.new_history_id());
            }
        };
        self.shared.keyspace.effects().listen(encode, Box::new(take));
        self.shared.libraries.listen(Box::new(move |set, lsn| {
            if let Some(shared) = of_libraries.upgrade().filter(|shared| shared.keyspace.effects().is_on()) {
                // All of them, because a repetition must change nothing (DR-23).
                shared.history.append_command(&[b"FUNCTION", b"RESTORE", &dump_set(set), b"FLUSH"], lsn);
            }
        }));
    }

    /// Loads the libraries of functions that are stored. One that cannot be loaded stays stored, and is missing until the next start.
    fn open_libraries(&self) {
        let shared = &self.shared;
        match shared.libraries.open(shared) {
            Ok(failed) => failed.iter().for_each(|(name, text)| {
                shared.host.report(&format!("the library of functions '{name}' could not be loaded: {text}"));
            }),
            Err(error) => shared.host.report(&format!("the libraries of functions could not be read: {error}")),
        }
    }

    /// Prepares the stop of the server, which a signal (named as in `shutdown-on-NAME`) or SHUTDOWN has asked for: waits for followers, and writes an RDB file
    /// if that was asked for. Returns false if the server is to go on.
    pub fn prepare_stop(&self, signal: Option<&str>) -> bool {
        prepare(&self.shared, signal)
    }

    /// Ends all scripts, because the server stops. Their changes are rolled back.
    pub fn end_scripts(&self) {
        self.shared.runs.is_ending.store(true, Ordering::Relaxed);
    }

    /// Gives up the RDB file that is being written and the keys that are being moved, because the server stops.
    pub fn end_saves(&self) {
        self.shared.end_migrations();
        self.shared.saves.stop();
    }

    /// Follows the server again that was followed before the restart, if there is one.
    pub fn resume_following(&self) -> engine::Result<()> {
        start::resume(&self.shared)
    }

    /// Ends the link to the server that is followed, because this one stops. The next start continues.
    pub fn end_following(&self) {
        start::end(&self.shared);
    }

    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// Sets whether replies wait for the disk from now on.
    pub fn set_strict(&self, strict: bool) {
        self.shared.strict.store(strict, Ordering::Relaxed);
    }

    /// Takes over the text of `notify-keyspace-events`, which has been checked.
    pub fn set_event_flags(&self, text: &str) {
        self.shared.set_event_flags(text);
    }

    /// Takes over the text of `client-output-buffer-limit`, which has been checked.
    pub fn set_output_limits(&self, text: &str) {
        self.shared.output_limits.set(text);
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

    /// Configures the slow log: it records requests of at least so many microseconds (none if negative) and keeps the newest `entries`.
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

    fn close(&self, mut session: Session) {
        session.leave();
        session.end_feed();
        self.shared.hub.leave(&session.client);
        self.shared.monitors.leave(&session.client);
        self.shared.stop_tracking(&session.client);
        self.shared.clients.remove(session.client.id);
    }

    fn refuse(&self) -> Vec<u8> {
        b"-ERR max number of clients reached\r\n".to_vec()
    }
}

/// Says how the thread of a link to a server that is followed starts.
fn start_links(shared: &Arc<Shared>) {
    let of_links = Arc::downgrade(shared);
    let _ = shared.replica.start.set(Box::new(move |following, progress| {
        let Some(shared) = of_links.upgrade() else { return Ok(()) };
        let thread = std::thread::Builder::new().name("replica".into());
        thread.spawn(move || run(&shared, &following, progress)).map(drop)
    }));
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the id of this node of a cluster. The first start makes one from these random bytes and keeps it in the data folder.
fn node_id(engine: &Engine, random: &[u8; 20]) -> String {
    const KIND: &str = "redis-cluster";
    const NAME: &str = "node-id";
    let kept = engine.documents().list(KIND).unwrap_or_default();
    if let Some(known) = kept.into_iter().find(|(name, _)| name == NAME).and_then(|(_, id)| String::from_utf8(id).ok())
    {
        return known;
    }
    // It differs from the id of this run.
    let id = hexadecimal(&engine::sha1(random));
    if let Ok(lsn) = engine.documents().change(KIND, &[(NAME, Some(id.as_bytes()))]) {
        engine.durable().wait(lsn);
    }
    id
}
