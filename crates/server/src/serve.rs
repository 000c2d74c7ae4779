//! The life of a server: the folder, the engine, the worker pool and the doors start in this order. After a signal they stop in the reverse order (SV-5).

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use door_mysql::MysqlDoor;
use door_postgres::PostgresDoor;
use door_redis::RedisDoor;
use door_xrpc::frame::Mode;
use door_xrpc::{Limits, Options as XrpcOptions, XrpcDoor};
use engine::{Engine, Error};
use os::{Clock, RealClock};
use reactor::{Door, EventSource, ListenOptions, Pool, ReplyGate, TlsConfig};
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use sql_mysql::Database;

use crate::control;
use crate::copy;
use crate::exit::{self, Exit, Failure, say};
use crate::hooks::{self, Parts};
use crate::import;
use crate::log::{self, Throttle};
use crate::memory::{self, Shares};
use crate::metrics::Sources;
use crate::metrics::door::MetricsDoor;
use crate::redis;
use crate::settings::value::print_bytes;
use crate::settings::{Name, Settings, list};
use crate::shared::{Leased, Patience};
use crate::stop::{StopSender, Stops};
use crate::store::{self, Held, Until};
use crate::tls;

/// How long running requests may take to finish after a signal. Requests that wait do not get this time: their waits end at once.
const DRAIN_MAX: Duration = Duration::from_secs(3);

/// How long a stop waits for disk space. A rollback that finds no space waits for it, and nobody may ever free any.
const FULL_DISK_STOP_MAX: Duration = Duration::from_secs(20);

/// File descriptors of one worker group: epoll, event, the read ring, and a listener for each port.
const DESCRIPTORS_OF_GROUP: u64 = 9;

/// File descriptors kept for temporary files of statements, WAL segments and the rings of threads.
const DESCRIPTORS_SPARE: u64 = 32;

/// Shortest interval between two log lines about the same lasting problem.
const PROBLEM_LOG_INTERVAL: Duration = Duration::from_secs(60);

pub fn run(settings: Settings) -> Result<(), Failure> {
    let settings = Arc::new(settings);
    let shares = shares(&settings)?;
    refuse_fixed_settings(&settings)?;
    os::process::make_files_private();
    let descriptors = os::process::raise_descriptor_limit().unwrap_or(u64::MAX);
    // Registered before anything is opened, so that a signal during recovery stops the process cleanly as soon as recovery is done.
    let mut signals =
        Signals::new([SIGTERM, SIGINT]).map_err(|e| Failure::new(Exit::Internal, format!("signals: {e}")))?;
    // With SIGXFSZ caught, a write beyond the limit on file sizes is an ordinary error, and the server stops with a message.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let data = settings.text(Name::Data);
    let path = store::local_folder(&settings, &data)?;
    let mut is_stopped = || signals.pending().next().is_some();
    let Some(held) = Held::acquire(&settings, &data, true, Patience::Until(&mut is_stopped))? else {
        log::info("stopped while waiting for the lease", &[]);
        return Ok(());
    };
    let stops = Stops::listen(signals).map_err(|e| Failure::new(Exit::Internal, format!("signals: {e}")))?;
    let engine = held.open(&settings, Until::default(), settings.number(Name::LogSegment))?;
    engine.pager().set_failure_hook(Box::new(|error| exit::end_of_opening(error)));
    let gate = held.leased.as_ref().map(Leased::gate);
    let pool = Arc::new(pool(&settings, &shares, &engine, descriptors, gate)?);
    if let Some(leased) = &held.leased {
        leased.release_replies_of(&pool);
    }
    follow_pool_settings(&settings, &pool);
    log_problems(&pool, &engine);
    follow_login_settings(&settings, &engine);
    let Doors { listening, redis, database, postgres } = match listen(&settings, &engine, &pool, &stops.sender()) {
        Ok(doors) => doors,
        Err(failure) => {
            pool.stop();
            let _ = engine.close();
            held.release();
            return Err(failure);
        }
    };
    let (copied, door) = (engine.clone(), redis.clone());
    let serve = move |request: &str, tell: &mut dyn FnMut(&str)| match import::Request::parse(request) {
        Some(request) => request.serve(&door, tell).map_err(|failure| failure.message),
        None => copy::serve(&copied, request, tell),
    };
    let control = control::listen(&path, Box::new(serve));
    let control = control
        .map_err(|e| log::warn("no control socket: backup and import need the server to be stopped", &[("error", &e)]));
    follow_changes(&settings);
    let of_statements = settings.number(Name::StatementMemory).max(shares.statement_bytes) - shares.statement_bytes;
    stdx::memory::set_headroom(shares.request_bytes() + of_statements);
    banner(&settings, &data, &listening);
    stops.wait(&redis);
    exit_if_disk_stays_full(&engine);
    pool.stop_accepting();
    redis.end_following();
    if let Some(database) = &database {
        database.end_waits();
    }
    if let Some(door) = &postgres {
        door.database().end_waits();
        door.say_goodbye();
    }
    if !pool.drain(DRAIN_MAX) {
        log::warn("connections were cut off", &[("after_seconds", &DRAIN_MAX.as_secs())]);
        redis.end_scripts();
        if let Some(database) = &database {
            database.kill_all();
        }
        if let Some(door) = &postgres {
            door.database().kill_all();
        }
    }
    drop(control);
    redis.end_saves();
    pool.stop();
    close(&engine).map_err(|e| held.failure(e))?;
    let is_shared = held.leased.is_some();
    held.release();
    log::info("stopped", &[]);
    if is_shared {
        // librados has threads of its own, which the end of `main` would not wait for.
        os::process::end_now(0);
    }
    Ok(())
}

/// Closes the engine with a checkpoint. Without disk space for a checkpoint it closes without one. Acknowledged changes are in the WAL either way; the next
/// start redoes more.
fn close(engine: &Engine) -> Result<(), Error> {
    match engine.close() {
        Err(Error::DiskFull) => {
            log::warn("stopped without a checkpoint, because the disk is full", &[]);
            Ok(())
        }
        other => other,
    }
}

/// Ends the process with an exit code if the disk stays full for `FULL_DISK_STOP_MAX`, because the stop may then never end by itself.
fn exit_if_disk_stays_full(engine: &Arc<Engine>) {
    let engine = engine.clone();
    let body = move || {
        let mut room_seen = Instant::now();
        while room_seen.elapsed() < FULL_DISK_STOP_MAX {
            std::thread::sleep(Duration::from_millis(100));
            if !engine.pager().is_full() {
                room_seen = Instant::now();
            }
        }
        log::warn("stopped while a rollback waits for disk space; the next start finishes it", &[]);
        os::process::end_now(Exit::Io as i32);
    };
    if let Err(error) = std::thread::Builder::new().name("last-resort".into()).spawn(body) {
        log::warn("stopping", &[("error", &error)]);
    }
}

/// Lowers `max_connections` to the number of file descriptors that the limit leaves. Subtracted are the open ones, those that the worker groups and the doors'
/// listeners will open, and `DESCRIPTORS_SPARE` for files of statements.
fn fit_connections(settings: &Settings, limit: u64, groups: usize) {
    let of_groups = DESCRIPTORS_OF_GROUP * groups as u64;
    let others = os::process::descriptors_open() + of_groups + DESCRIPTORS_SPARE;
    let wanted = settings.number(Name::MaxConnections);
    let possible = limit.saturating_sub(others).max(1);
    if possible < wanted {
        settings.lower(Name::MaxConnections, possible);
        log::warn(
            "max_connections is lowered: the limit on file descriptors is too low; raise it (ulimit -Hn, LimitNOFILE=)",
            &[("max_connections", &wanted), ("possible", &possible), ("descriptors", &limit)],
        );
    }
}

/// Refuses to turn off methods for which there is no alternative.
fn refuse_fixed_settings(settings: &Settings) -> Result<(), Failure> {
    match [Name::CsnLockfree, Name::BlinkTree].into_iter().find(|name| !settings.is_on(*name)) {
        None => Ok(()),
        Some(name) => {
            let name = list::list()[name as usize].name;
            Err(Failure::new(
                Exit::Config,
                format!("{name} cannot be off: there is no alternative; remove the setting"),
            ))
        }
    }
}

fn shares(settings: &Settings) -> Result<Shares, Failure> {
    let divided = memory::divide(settings.number(Name::Memory), settings.number(Name::LogBuffer));
    divided.map_err(|e| Failure::new(Exit::Config, e))
}

/// Starts the worker pool. `descriptors` is the limit on file descriptors, to which `max_connections` is lowered if necessary.
fn pool(
    settings: &Settings,
    shares: &Shares,
    engine: &Engine,
    descriptors: u64,
    gate: Option<ReplyGate>,
) -> Result<Pool, Failure> {
    let number = |name| settings.number(name) as usize;
    let (threads, in_group) = (number(Name::ThreadPoolSize), number(Name::WorkerThreadsPerGroup));
    let epoll_groups = match (number(Name::WorkerGroups), threads) {
        (groups, 0) => groups,
        (0, threads) => threads.div_ceil(in_group.max(1)),
        _ => {
            let message =
                "thread_pool_size and worker_groups both set the number of worker groups; set only one of them";
            return Err(Failure::new(Exit::Config, message));
        }
    };
    let sizes = reactor::Settings {
        epoll_groups,
        epoll_threads_per_group: number(Name::WorkerThreadsPerGroup),
        epoll_group_threads_max: number(Name::WorkerThreadsPerGroupMax),
        auto_cpu_affinity: settings.is_on(Name::WorkerCpuAffinity),
        output_soft_bytes: number(Name::OutputPause).min(shares.connection_output_bytes() as usize),
        output_total_bytes: shares.output_bytes() as usize,
        idle_buffer_bytes: 0,
        tcp_listen_queue: number(Name::TcpBacklog) as i32,
        ..runtime_pool_settings(settings)
    }
    .resolve(os::cpu::allowed().len());
    fit_connections(settings, descriptors, sizes.epoll_groups);
    let base = sizes.epoll_groups * sizes.epoll_threads_per_group;
    let sizes = reactor::Settings {
        max_connections: number(Name::MaxConnections),
        epoll_group_threads_max: (shares.threads_max() as usize / sizes.epoll_groups)
            .clamp(sizes.epoll_threads_per_group + 1, sizes.epoll_group_threads_max),
        idle_buffer_bytes: (shares.kept_bytes() as usize / base).min(reactor::Settings::default().idle_buffer_bytes),
        ..sizes
    };
    // Each group reads absent pages through an async read queue of its own.
    let mut source = |_: usize| {
        let queue = engine.pager().open_read_queue()?;
        let (entered, handed, tended) = (queue.clone(), queue.clone(), queue.clone());
        Some(EventSource {
            fd: queue.poll_fd().ok()?,
            enter: Box::new(move || entered.attach_thread()),
            submit: Box::new(move || handed.submit()),
            poll: Box::new(move || tended.poll_completions()),
        })
    };
    Pool::start_gated(&sizes, engine.durable().clone(), gate, &mut source)
        .map_err(|e| Failure::new(Exit::Internal, format!("thread pool: {e}")))
}

/// Returns the settings of the pool that can change while it runs.
fn runtime_pool_settings(settings: &Settings) -> reactor::Settings {
    let number = |name| settings.number(name) as usize;
    let time = |name| Duration::from_micros(settings.number(name));
    reactor::Settings {
        epoll_events_per_thread: number(Name::WorkerEpollEvents),
        epoll_group_dynamic_threads_shrink_time: time(Name::WorkerIdleTimeout),
        epoll_group_thread_deadlock_check_interval: time(Name::WorkerStallLimit),
        receive_bytes: number(Name::ReceiveChunk),
        net_write_timeout: time(Name::SendTimeout),
        tcp_keep_alive: time(Name::TcpKeepalive).as_secs() as u32,
        tcp_recv_buf: number(Name::TcpReceiveBuffer) as u32,
        tcp_send_buf: number(Name::TcpSendBuffer) as u32,
        ..reactor::Settings::default()
    }
}

/// Applies changes of settings to the running pool.
fn follow_pool_settings(settings: &Settings, pool: &Arc<Pool>) {
    pool.counters().latency.switch(settings.is_on(Name::WorkerHistograms));
    let tuned = Arc::downgrade(pool);
    settings.on_change(Box::new(move |_, settings| {
        if let Some(pool) = tuned.upgrade() {
            pool.tune(&runtime_pool_settings(settings));
            pool.counters().latency.switch(settings.is_on(Name::WorkerHistograms));
        }
    }));
}

/// Logs lasting problems of the pool and the engine, each at most once per `PROBLEM_LOG_INTERVAL`.
fn log_problems(pool: &Pool, engine: &Engine) {
    let throttle = Throttle::new(PROBLEM_LOG_INTERVAL);
    pool.on_descriptors_exhausted(Box::new(move || {
        if throttle.is_due() {
            log::error(
                "out of file descriptors: new connections are refused; raise the limit (ulimit -n, LimitNOFILE=)",
                &[("open", &os::process::descriptors_open())],
            );
        }
    }));
    let throttle = Throttle::new(PROBLEM_LOG_INTERVAL);
    engine.keyspace().on_background_error(Box::new(move |error| {
        if throttle.is_due() {
            log::error("expiry and purge failed; they will be retried", &[("error", error)]);
        }
    }));
}

/// Applies changes of the login delay settings to the engine.
fn follow_login_settings(settings: &Settings, engine: &Arc<Engine>) {
    let attempts = engine.accounts().attempts().clone();
    let apply = move |settings: &Settings| {
        let delay_max = Duration::from_micros(settings.number(Name::LoginDelayMax));
        attempts.set_limits(settings.number(Name::LoginFailuresFree), delay_max);
    };
    apply(settings);
    settings.on_change(Box::new(move |_, settings| apply(settings)));
}

/// An open port: the name of the door, the address, and a command that connects to it.
struct Listening {
    door: &'static str,
    address: SocketAddr,
    hint: String,
}

/// The open ports, the Redis door, the database if a door for SQL is open, and the PostgreSQL door.
struct Doors {
    listening: Vec<Listening>,
    redis: Arc<RedisDoor>,
    database: Option<Arc<Database>>,
    postgres: Option<Arc<PostgresDoor>>,
}

/// Opens the doors.
fn listen(
    settings: &Arc<Settings>,
    engine: &Arc<Engine>,
    pool: &Arc<Pool>,
    stops: &StopSender,
) -> Result<Doors, Failure> {
    let mut doors = Vec::new();
    let redis = redis_door(settings, engine, pool, stops, &mut doors)?;
    let database = database(settings, engine, pool)?;
    let mysql = mysql_door(settings, database.as_ref(), pool, &mut doors)?;
    let postgres = postgres_door(settings, database.as_ref(), pool, &mut doors)?;
    let xrpc = xrpc_door(settings, database.as_ref(), pool, &mut doors)?;
    if let Some(database) = &database {
        let parts = Parts {
            settings: settings.clone(),
            pool: Arc::downgrade(pool),
            redis: Arc::downgrade(&redis),
            mysql: mysql.as_ref().map(Arc::downgrade).unwrap_or_default(),
            xrpc: xrpc.as_ref().map(Arc::downgrade).unwrap_or_default(),
        };
        let stands = hooks::install(database, parts);
        stands.map_err(|e| {
            Failure::new(Exit::Data, format!("data: system variables set by SET PERSIST: {}", e.message))
        })?;
    }
    let tables = database.as_ref().map(Arc::downgrade).unwrap_or_default();
    store::log_rollback(engine, move || {
        if let Some(database) = tables.upgrade()
            && let Err(fault) = database.drop_left_temporary()
        {
            log::warn(
                "temporary tables from before the crash could not be removed; the next start removes them",
                &[("error", &fault)],
            );
        }
    });
    let metrics = settings.text(Name::MetricsListen);
    if metrics != "off" {
        let sources = Sources {
            engine: engine.clone(),
            pool: pool.clone(),
            redis: redis.clone(),
            mysql,
            postgres: postgres.clone(),
            xrpc,
            database: database.clone(),
            memory_limit_bytes: settings.number(Name::Memory),
            started_ms: RealClock::new().wall_ms(),
        };
        let door = Arc::new(MetricsDoor { sources });
        for address in addresses("metrics_listen", &metrics)? {
            let address =
                open_port(pool, ("metrics_listen", "metrics_listen"), address, &door, ListenOptions::default())?;
            doors.push(Listening { door: "metrics", address, hint: format!("curl http://{address}/metrics") });
        }
    }
    for Listening { door, address, .. } in &doors {
        log::info("listening", &[("door", door), ("address", address)]);
    }
    Ok(Doors { listening: doors, redis, database, postgres })
}

/// Creates the Redis door. It exists even if it does not listen, because the metrics read it.
fn redis_door(
    settings: &Arc<Settings>,
    engine: &Arc<Engine>,
    pool: &Arc<Pool>,
    stops: &StopSender,
    doors: &mut Vec<Listening>,
) -> Result<Arc<RedisDoor>, Failure> {
    let password = settings.text(Name::RedisPassword);
    if !password.is_empty() {
        let set = redis::set_password(engine, &password);
        set.map_err(|e| Failure::new(Exit::Io, format!("redis_password: {e}")))?;
    }
    let door = Arc::new(redis::door(settings, engine, stops));
    door.attach(pool);
    if let Err(error) = door.resume_following() {
        log::error(
            "the master is not followed, and writes to keys are refused; REPLICAOF NO ONE ends that",
            &[("error", &error)],
        );
    }
    let tuned = Arc::downgrade(&door);
    settings.on_change(Box::new(move |_, settings| {
        if let Some(door) = tuned.upgrade() {
            redis::tune(&door, settings);
        }
    }));
    let port = settings.number(Name::RedisPort) as u16;
    if port != 0 {
        listen_redis(settings, engine, pool, &door, ("redis_port", port), None, doors)?;
    }
    let tls_port = settings.number(Name::RedisTlsPort) as u16;
    if tls_port != 0 {
        let tls = Some(tls::redis(settings)?);
        listen_redis(settings, engine, pool, &door, ("redis_tls_port", tls_port), tls, doors)?;
    }
    Ok(door)
}

/// Memory of one statement.
fn statement_share(settings: &Settings) -> u64 {
    match settings.number(Name::StatementMemory) {
        0 => memory::statement_bytes(settings.number(Name::Memory)),
        bytes => bytes.max(64 << 10),
    }
}

/// Opens the database (tables and catalog) if a door for SQL will be opened.
fn database(
    settings: &Arc<Settings>,
    engine: &Arc<Engine>,
    pool: &Arc<Pool>,
) -> Result<Option<Arc<Database>>, Failure> {
    let ports = [Name::MysqlPort, Name::PostgresPort, Name::XrpcPort];
    if ports.into_iter().all(|port| settings.number(port) == 0) {
        return Ok(None);
    }
    let database = Database::open(engine.clone());
    let database = database.map_err(|e| Failure::new(Exit::Data, format!("data: the catalog of tables: {e}")))?;
    let share = statement_share(settings);
    let folder = store::local_folder(settings, &settings.text(Name::Data))?;
    let spill = folder.join("spill");
    let opened = database.spill_to(&spill, usize::try_from(share).unwrap_or(usize::MAX));
    opened.map_err(|e| Failure::new(Exit::Data, format!("data: the folder {}: {e}", spill.display())))?;
    database.set_data_directory(&std::fs::canonicalize(&folder).unwrap_or(folder));
    let files = settings.text(Name::SecureFilePriv);
    let files = (!files.is_empty()).then(|| PathBuf::from(files));
    if let Some(folder) = files.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::new(Exit::Config, format!("secure_file_priv: {} is not a folder", folder.display())));
    }
    database.allow_files(files.as_deref(), settings.is_on(Name::LocalInfile));
    database.set_server_values(hooks::facts(settings, pool));
    let (told, threads) = (Arc::downgrade(&database), Arc::downgrade(pool));
    settings.on_change(Box::new(move |_, settings| {
        if let (Some(database), Some(pool)) = (told.upgrade(), threads.upgrade()) {
            database.set_server_values(hooks::facts(settings, &pool));
        }
    }));
    Ok(Some(database))
}

/// Opens the MySQL door if it is configured.
fn mysql_door(
    settings: &Arc<Settings>,
    database: Option<&Arc<Database>>,
    pool: &Arc<Pool>,
    doors: &mut Vec<Listening>,
) -> Result<Option<Arc<MysqlDoor>>, Failure> {
    let port = settings.number(Name::MysqlPort) as u16;
    let Some(database) = database.filter(|_| port != 0) else { return Ok(None) };
    let options = door_mysql::Options {
        protected_mode: settings.is_on(Name::MysqlProtectedMode),
        tls: tls::mysql(settings)?,
        require_secure_transport: settings.is_on(Name::MysqlRequireSecureTransport),
        statements_max: settings.number(Name::MaxPreparedStmtCount),
        memory_budget_max: settings.number(Name::MysqlLongValues),
    };
    let door = Arc::new(MysqlDoor::new(database.clone(), Arc::new(RealClock::new()), options));
    door.attach(pool);
    let tuned = Arc::downgrade(&door);
    settings.on_change(Box::new(move |_, settings| {
        if let Some(door) = tuned.upgrade() {
            door.set_protected_mode(settings.is_on(Name::MysqlProtectedMode));
            door.set_statements_max(settings.number(Name::MaxPreparedStmtCount));
        }
    }));
    for (address, needed) in bind_addresses("mysql", &settings.text(Name::MysqlBind), port)? {
        if !needed && let Err(error) = probe(address) {
            log::info("not listening", &[("address", &address), ("why", &error)]);
            continue;
        }
        refuse_open_address("mysql", settings.is_on(Name::MysqlProtectedMode), address, database.engine())?;
        let address = open_port(pool, ("mysql_bind", "mysql_port"), address, &door, ListenOptions::default())?;
        let hint = format!("mysql -h {} -P {} -u root", address.ip(), address.port());
        doors.push(Listening { door: "mysql", address, hint });
    }
    Ok(Some(door))
}

/// Opens the PostgreSQL door if it is configured.
fn postgres_door(
    settings: &Arc<Settings>,
    database: Option<&Arc<Database>>,
    pool: &Arc<Pool>,
    doors: &mut Vec<Listening>,
) -> Result<Option<Arc<PostgresDoor>>, Failure> {
    let port = settings.number(Name::PostgresPort) as u16;
    let Some(shared) = database.filter(|_| port != 0) else { return Ok(None) };
    let tls = tls::postgres(settings)?;
    let database = door_postgres::Database::open(shared.instance().clone());
    let database =
        database.map_err(|e| Failure::new(Exit::Data, format!("data: the catalog of tables: {}", e.message)))?;
    let listed = shared.engine().clone();
    database.set_superusers(Box::new(move |role| {
        let accounts = listed.accounts();
        accounts.get(role).is_some_and(|account| sql_mysql::rights::is_system_account(accounts, &account))
    }));
    database.set_logger(Box::new(|what, client| log::warn(what, &[("client", &client)])));
    database.describe_server([
        ("max_connections", settings.number(Name::MaxConnections).to_string()),
        ("work_mem", (statement_share(settings) >> 10).min(i32::MAX as u64).to_string()),
        ("port", port.to_string()),
        ("listen_addresses", settings.text(Name::PostgresBind)),
        ("data_directory", settings.text(Name::Data)),
        ("ssl", if tls.is_some() { "on" } else { "off" }.to_owned()),
    ]);
    let options = door_postgres::Options {
        protected_mode: settings.is_on(Name::PostgresProtectedMode),
        tls,
        require_secure_transport: settings.is_on(Name::PostgresRequireSecureTransport),
        message_max: settings.number(Name::PostgresMessageMax) as usize,
    };
    let door = Arc::new(PostgresDoor::new(database, Arc::new(RealClock::new()), options));
    door.attach(pool);
    let tuned = Arc::downgrade(&door);
    settings.on_change(Box::new(move |_, settings| {
        if let Some(door) = tuned.upgrade() {
            door.set_protected_mode(settings.is_on(Name::PostgresProtectedMode));
            door.set_message_max(settings.number(Name::PostgresMessageMax) as usize);
        }
    }));
    for (address, needed) in bind_addresses("postgres", &settings.text(Name::PostgresBind), port)? {
        if !needed && let Err(error) = probe(address) {
            log::info("not listening", &[("address", &address), ("why", &error)]);
            continue;
        }
        refuse_open_address("postgres", settings.is_on(Name::PostgresProtectedMode), address, shared.engine())?;
        let address = open_port(pool, ("postgres_bind", "postgres_port"), address, &door, ListenOptions::default())?;
        let hint = format!("psql -h {} -p {} -U postgres", address.ip(), address.port());
        doors.push(Listening { door: "postgres", address, hint });
    }
    Ok(Some(door))
}

/// Opens the XRPC door if it is configured.
fn xrpc_door(
    settings: &Arc<Settings>,
    database: Option<&Arc<Database>>,
    pool: &Arc<Pool>,
    doors: &mut Vec<Listening>,
) -> Result<Option<Arc<XrpcDoor>>, Failure> {
    let port = settings.number(Name::XrpcPort) as u16;
    let Some(database) = database.filter(|_| port != 0) else { return Ok(None) };
    let door = Arc::new(XrpcDoor::new(database.clone(), Arc::new(RealClock::new()), xrpc_options(settings)?));
    door.attach(pool);
    let tuned = Arc::downgrade(&door);
    settings.on_change(Box::new(move |_, settings| {
        if let Some(door) = tuned.upgrade() {
            door.set_protected_mode(settings.is_on(Name::XrpcProtectedMode));
            door.tune(&runtime_xrpc_settings(settings));
        }
    }));
    for (address, needed) in bind_addresses("xrpc", &settings.text(Name::XrpcBind), port)? {
        if !needed && let Err(error) = probe(address) {
            log::info("not listening", &[("address", &address), ("why", &error)]);
            continue;
        }
        refuse_open_address("xrpc", settings.is_on(Name::XrpcProtectedMode), address, database.engine())?;
        let address = open_port(pool, ("xrpc_bind", "xrpc_port"), address, &door, ListenOptions::default())?;
        let hint = match settings.is_on(Name::GalaxyProtocol) {
            true => format!("galaxy protocol, version {}", settings.number(Name::GalaxyVersion)),
            false => "galaxy protocol off".to_owned(),
        };
        doors.push(Listening { door: "xrpc", address, hint });
    }
    Ok(Some(door))
}

/// Returns the settings of the XRPC door that can change while it is open.
fn runtime_xrpc_settings(settings: &Settings) -> XrpcOptions {
    let number = |name| settings.number(name) as usize;
    let mode = match settings.is_on(Name::GalaxyProtocol) {
        true => Mode::Galaxy(settings.number(Name::GalaxyVersion) as u8),
        false => Mode::Legacy,
    };
    XrpcOptions {
        mode,
        length_max: number(Name::XrpcPacketMax),
        queue_max: number(Name::XrpcQueueMax),
        idle_session_lifetime: Duration::from_micros(settings.number(Name::SharedSessionLifetime)),
        idle_session_check: Duration::from_micros(settings.number(Name::ContextRefreshTime)),
        output_pages: number(Name::OutputPages),
        measures: settings.is_on(Name::WorkerHistograms),
        ..XrpcOptions::default()
    }
}

fn xrpc_options(settings: &Arc<Settings>) -> Result<XrpcOptions, Failure> {
    let number = |name| settings.number(name) as usize;
    let logged = settings.clone();
    Ok(XrpcOptions {
        sessions_max: settings.number(Name::XrpcSessionsMax),
        digests: Limits {
            entries: number(Name::RequestCacheNumber),
            shards: number(Name::RequestCacheInstances),
            bytes_max: number(Name::RequestCacheLength),
        },
        protected_mode: settings.is_on(Name::XrpcProtectedMode),
        tls: tls::xrpc(settings)?,
        require_secure_transport: settings.is_on(Name::XrpcRequireSecureTransport),
        on_foreign_protocol: Some(Arc::new(|what, from| {
            log::warn("a connection to the XRPC door speaks another protocol", &[("what", &what), ("from", &from)]);
        })),
        on_kill: Some(Arc::new(move |user, session, whole| {
            if logged.is_on(Name::KillLog) {
                let what = if whole { "session" } else { "statement" };
                log::info("killed over XRPC", &[("what", &what), ("session", &session), ("user", &user)]);
            }
        })),
        ..runtime_xrpc_settings(settings)
    })
}

/// Refuses to listen on an address that other machines can reach while anybody may log in.
fn refuse_open_address(door: &str, protected: bool, address: SocketAddr, engine: &Engine) -> Result<(), Failure> {
    if !protected || address.ip().is_loopback() || !redis::is_open(engine) {
        return Ok(());
    }
    let what = format!(
        "{door}_bind: {} is reachable from other machines, and the user `default` needs no password",
        address.ip()
    );
    Err(Failure::new(Exit::Config, format!("{what}; set redis_password, or turn {door}_protected_mode off")))
}

/// Opens the ports of the Redis door at every address of `redis_bind`.
fn listen_redis(
    settings: &Settings,
    engine: &Engine,
    pool: &Pool,
    door: &Arc<RedisDoor>,
    (port_setting, port): (&str, u16),
    tls: Option<Arc<TlsConfig>>,
    doors: &mut Vec<Listening>,
) -> Result<(), Failure> {
    for (address, needed) in bind_addresses("redis", &settings.text(Name::RedisBind), port)? {
        if !needed && let Err(error) = probe(address) {
            log::info("not listening", &[("address", &address), ("why", &error)]);
            continue;
        }
        refuse_open_address("redis", settings.is_on(Name::RedisProtectedMode), address, engine)?;
        let options = ListenOptions { tls: tls.clone(), ..ListenOptions::default() };
        let address = open_port(pool, ("redis_bind", port_setting), address, door, options)?;
        let (name, flag) = if tls.is_some() { ("redis, TLS", " --tls") } else { ("redis", "") };
        let hint = format!("redis-cli -h {} -p {}{flag}", address.ip(), address.port());
        doors.push(Listening { door: name, address, hint });
    }
    Ok(())
}

fn addresses(setting: &str, text: &str) -> Result<Vec<SocketAddr>, Failure> {
    let found = text.to_socket_addrs();
    let found = found
        .map_err(|e| Failure::new(Exit::Config, format!("{setting}: '{text}' is not an address and port: {e}")))?;
    Ok(found.collect())
}

/// Returns the addresses of a door's `bind` setting in Redis' notation: `*` is every address, and an address behind a `-` is optional (the second field is then
/// false).
fn bind_addresses(door: &str, text: &str, port: u16) -> Result<Vec<(SocketAddr, bool)>, Failure> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let (name, needed) = word.strip_prefix('-').map_or((word, true), |name| (name, false));
        let name = match name {
            "*" => "0.0.0.0",
            "::*" => "::",
            name => name,
        };
        let resolved = (name, port).to_socket_addrs();
        let resolved = resolved
            .map_err(|e| Failure::new(Exit::Config, format!("{door}_bind: '{name}' is not an address: {e}")))?;
        found.extend(resolved.map(|address| (address, needed)));
    }
    if found.is_empty() {
        return Err(Failure::new(
            Exit::Config,
            format!("{door}_bind: expected an address such as 127.0.0.1; {door}_port = 0 disables this door"),
        ));
    }
    Ok(found)
}

/// Opens a listener. `settings` names the settings of the address and of the port, for errors. Returns the address with the actual port.
fn open_port<D: Door>(
    pool: &Pool,
    settings: (&str, &str),
    address: SocketAddr,
    door: &Arc<D>,
    options: ListenOptions,
) -> Result<SocketAddr, Failure> {
    let opened = probe(address).and_then(|()| pool.listen(address, door.clone(), options));
    opened.map(|listener| listener.local_addr).map_err(|error| {
        let (setting, what) = match error.kind() {
            ErrorKind::AddrInUse => {
                (settings.1, "is in use by another process; stop it, or choose another port".to_string())
            }
            ErrorKind::PermissionDenied => {
                (settings.1, "may not be used by this user: permission denied; choose a port above 1023".to_string())
            }
            ErrorKind::AddrNotAvailable => {
                (settings.0, "is not an address of this machine; choose another address".to_string())
            }
            _ => (settings.0, format!("cannot be opened: {error}; choose another address")),
        };
        Failure::new(Exit::Unavailable, format!("{setting}: {address} {what}"))
    })
}

/// Returns whether the port is free. The pool's sockets share a port with SO_REUSEPORT, and would also share it with a second server of the same user (SV-4).
fn probe(address: SocketAddr) -> std::io::Result<()> {
    if address.port() == 0 { Ok(()) } else { TcpListener::bind(address).map(drop) }
}

/// Applies changes of settings that the server itself uses.
fn follow_changes(settings: &Settings) {
    settings.on_change(Box::new(|name, settings| {
        if name == Name::LogLevel {
            log::set_level(&settings.text(name));
        }
    }));
}

fn banner(settings: &Settings, data: &str, doors: &[Listening]) {
    let path = std::fs::canonicalize(data).unwrap_or_else(|_| PathBuf::from(data));
    let mut text = format!("Beluga {}\n", env!("CARGO_PKG_VERSION"));
    for Listening { door, address, hint } in doors {
        text += &format!("  {door:<9} {address:<22} {hint}\n");
    }
    text += &format!("  {:<9} {}\n", "data", path.display());
    text += &format!("  {:<9} {}\n", "memory", print_bytes(settings.number(Name::Memory)));
    text += "Ready. Ctrl-C or SIGTERM stops it.\n";
    say(&text);
}
