//! The list of settings. The file, the flags, the environment, `--help`, `beluga settings`, docs/operating.md and Redis' CONFIG are all generated from it
//! (SV-1).
//!
//! To add a setting: a row here, which also makes its `Name`, and the code that reads it.

use std::sync::OnceLock;

use door_redis::output_limits;

use super::value::{GIB, KIB, Kind, MIB, TIB, Unit, Value};
use crate::machine::Machine;

/// One row.
pub struct Setting {
    pub name: &'static str,
    pub section: &'static str,
    pub kind: Kind,
    pub default: Default,
    /// Whether the value may change while the server runs.
    pub dynamic: bool,
    /// Its name in Redis' CONFIG and how Redis writes the value.
    pub redis: Option<(&'static str, Redis)>,
    /// A second name, accepted wherever `name` is. For settings of the worker pool it is the name of PolarDB-X's system variable, which SHOW VARIABLES and XRPC
    /// show.
    pub alias: Option<&'static str>,
    pub doc: &'static str,
}

pub enum Default {
    Fixed(Value),
    /// Computed from the machine. The text describes how.
    Derived(fn(&Machine) -> u64, &'static str),
}

/// How Redis writes the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Redis {
    AsIs,
    YesNo,
    /// A bare number in this unit.
    Time(Unit),
    /// A bare number of bytes.
    Bytes,
}

impl Setting {
    fn new(name: &'static str, kind: Kind, default: Value, doc: &'static str) -> Setting {
        Setting {
            name,
            section: "",
            kind,
            default: Default::Fixed(default),
            dynamic: false,
            redis: None,
            alias: None,
            doc,
        }
    }

    fn dynamic(mut self) -> Setting {
        self.dynamic = true;
        self
    }

    fn redis(mut self, name: &'static str, form: Redis) -> Setting {
        self.redis = Some((name, form));
        self
    }

    fn alias(mut self, name: &'static str) -> Setting {
        self.alias = Some(name);
        self
    }

    /// Returns the setting's name and its alias.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.alias)
    }

    fn derived(mut self, from: fn(&Machine) -> u64, words: &'static str) -> Setting {
        self.default = Default::Derived(from, words);
        self
    }

    pub fn default_value(&self, machine: &Machine) -> Value {
        match &self.default {
            Default::Fixed(value) => value.clone(),
            Default::Derived(from, _) => Value::Number(from(machine)),
        }
    }

    /// Returns the flag: `--redis-port` for `redis_port`.
    pub fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    pub fn variable(&self) -> String {
        format!("BELUGA_{}", self.name.to_ascii_uppercase())
    }
}

fn text(name: &'static str, default: &str, doc: &'static str) -> Setting {
    Setting::new(name, Kind::Text, Value::Text(default.into()), doc)
}

fn secret(name: &'static str, doc: &'static str) -> Setting {
    Setting::new(name, Kind::Secret, Value::Text(String::new()), doc)
}

fn one_of(name: &'static str, words: &'static [&'static str], default: &str, doc: &'static str) -> Setting {
    Setting::new(name, Kind::OneOf(words), Value::Text(default.into()), doc)
}

fn switch(name: &'static str, default: bool, doc: &'static str) -> Setting {
    Setting::new(name, Kind::Switch, Value::Number(default.into()), doc)
}

fn count(name: &'static str, range: std::ops::RangeInclusive<u64>, default: u64, doc: &'static str) -> Setting {
    Setting::new(name, Kind::Count(range), Value::Number(default), doc)
}

fn bytes(name: &'static str, range: std::ops::RangeInclusive<u64>, default: u64, doc: &'static str) -> Setting {
    Setting::new(name, Kind::Bytes(range), Value::Number(default), doc)
}

fn time(
    name: &'static str,
    unit: Unit,
    range: std::ops::RangeInclusive<u64>,
    default: u64,
    doc: &'static str,
) -> Setting {
    Setting::new(name, Kind::Time(unit, range), Value::Number(default * unit.micros()), doc)
}

macro_rules! settings {
    ($($section:literal { $($name:ident = $row:expr;)* })*) => {
        /// A row of the list: `settings.number(Name::Memory)`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Name { $($($name,)*)* }

        pub const NAMES: &[Name] = &[$($(Name::$name,)*)*];

        fn rows() -> Vec<Setting> {
            vec![$($(Setting { section: $section, ..$row },)*)*]
        }
    };
}

settings! {
    "Data" {
        Data = text("data", "./beluga-data", "Folder that holds the data, or rados:POOL/NAME for a database in a Ceph cluster. It is created if it does not exist. One server at a time may use it; a second one on rados: waits for the first.")
            .redis("dir", Redis::AsIs);
        Scratch = text("scratch", "./beluga-scratch", "Folder on this machine for files that do not outlive the server, and for dumps, if `data` is in a Ceph cluster. One server at a time may use it.");
        CephConf = text("ceph_conf", "", "Configuration file of the Ceph cluster. If it is empty, Ceph's client looks in CEPH_CONF and /etc/ceph/ceph.conf.");
        CephUser = text("ceph_user", "client.admin", "User of the Ceph cluster, with its type. It needs to read the monitors and to read and write the pool, at least the namespace NAME.");
        Memory = bytes("memory", 64 * MIB..=16 * TIB, 0,
            "Upper limit of the memory that the server uses: buffer pool, WAL buffer, undo and the buffers of connections. Most of it is the buffer pool, so a larger value keeps more pages in memory. Lower it if other programs share the machine.")
            .derived(|m| (m.memory_bytes / 10 * 6).max(64 * MIB) / MIB * MIB, "60 % of the memory of the machine or the cgroup, whichever is smaller")
            .redis("maxmemory", Redis::Bytes);
        LogBuffer = bytes("log_buffer", MIB..=GIB, 0,
            "Size of the ring in memory in which WAL records wait until they are written; a power of two. Writers wait when it is full. Increase it if many large writes arrive at once.")
            .derived(|m| if m.cores <= 4 { 8 * MIB } else { 64 * MIB }, "8mb with up to 4 processors, otherwise 64mb");
        LogSegment = bytes("log_segment", MIB..=4 * GIB, 64 * MIB,
            "Size of one WAL file. Files are filled with zeros once and then recycled.");
        CheckpointDistance = bytes("checkpoint_distance", 4 * MIB..=TIB, GIB,
            "Maximum distance between the last checkpoint and the end of the WAL, which is how much WAL a restart after a crash may have to read. A smaller value shortens restarts. A larger value writes fewer pages.");
    }
    "Redis door" {
        RedisBind = text("redis_bind", "127.0.0.1", "Addresses to listen on, separated by spaces. * means all addresses.").redis("bind", Redis::AsIs);
        RedisPort = count("redis_port", 0..=65535, 6379, "TCP port to listen on. 0 opens no Redis door.").redis("port", Redis::AsIs);
        RedisTlsPort = count("redis_tls_port", 0..=65535, 0, "TCP port to listen on for TLS, at the addresses in redis_bind. 0 disables it.").redis("tls-port", Redis::AsIs);
        RedisTlsCertFile = text("redis_tls_cert_file", "", "PEM file with the certificate chain of the TLS port.").redis("tls-cert-file", Redis::AsIs);
        RedisTlsKeyFile = text("redis_tls_key_file", "", "PEM file with the private key of the TLS port.").redis("tls-key-file", Redis::AsIs);
        RedisTlsCaFile = text("redis_tls_ca_cert_file", "", "PEM file with the certificate authorities that may sign the certificates of clients.").redis("tls-ca-cert-file", Redis::AsIs);
        RedisTlsAuthClients = one_of("redis_tls_auth_clients", &["no", "optional", "yes"], "no", "Whether clients must present a certificate on the TLS port. `optional` verifies a certificate only if the client sends one.")
            .redis("tls-auth-clients", Redis::AsIs);
        RedisPassword = secret("redis_password",
            "Password of the user `default`. It is stored as a digest and as a SCRAM verifier in the data folder. If the setting is empty at startup, the user stays as it is.")
            .dynamic().redis("requirepass", Redis::AsIs);
        RedisMasteruser = text("redis_masteruser", "", "User of this server at the server that REPLICAOF names. Empty: its user `default`.").dynamic().redis("masteruser", Redis::AsIs);
        RedisMasterauth = secret("redis_masterauth", "Password of this server at the server that REPLICAOF names. If it is empty, this server does not log in there.")
            .dynamic().redis("masterauth", Redis::AsIs);
        RedisProtectedMode = switch("redis_protected_mode", true,
            "Refuses connections from other machines while the user `default` needs no password. The server does not start if an address in redis_bind is not a loopback address and that user has no password.")
            .dynamic().redis("protected-mode", Redis::YesNo);
        RedisClusterEnabled = switch("redis_cluster_enabled", false,
            "Shows the server to Redis clients as the one node of a cluster, which has all slots. As in a cluster, only database 0 exists, and the keys of a command or transaction must be in one slot.")
            .redis("cluster-enabled", Redis::YesNo);
        RedisAppendfsync = one_of("redis_appendfsync", &["always", "everysec", "no"], "always",
            "When a reply is sent: with `always`, after the WAL has reached disk up to the changes that the reply shows or acknowledges. `everysec` and `no` do not wait. The WAL is still written as fast as the disk accepts it, and a crash loses only what had not reached disk.")
            .dynamic().redis("appendfsync", Redis::AsIs);
        RedisBulkMax = bytes("redis_proto_max_bulk_len", MIB..=512 * MIB, 512 * MIB, "Maximum size of one argument of a request, and therefore of one value in it.")
            .dynamic().redis("proto-max-bulk-len", Redis::Bytes);
        RedisRequestMax = bytes("redis_client_query_buffer_limit", MIB..=4 * GIB - 1, GIB, "Maximum size of one request. A client that sends a larger one is disconnected.")
            .dynamic().redis("client-query-buffer-limit", Redis::Bytes);
        RedisEventFlags = Setting::new("redis_notify_keyspace_events", Kind::EventFlags, Value::Text(String::new()),
            "Events of keys that are published: a letter for each class (g$lshzxetdn, m for misses, A for g$lshzxetd), and K or E for the channels, those of keys and those of events. If it is empty, none is.")
            .dynamic().redis("notify-keyspace-events", Redis::AsIs);
        RedisOutputLimits = Setting::new("redis_client_output_buffer_limit", Kind::OutputLimits, Value::Text(output_limits::DEFAULT.into()),
            "How much may be unsent to a client before it is disconnected: class (normal, slave or pubsub), bytes, bytes that are too many after some seconds, and these seconds. 0 is no limit. Classes that are not named keep their limits.")
            .dynamic().redis("client-output-buffer-limit", Redis::AsIs);
        RedisSlowLogAfter = Setting::new("redis_slowlog_log_slower_than", Kind::TimeOrOff(Unit::Microseconds), Value::Number(10_000),
            "Minimum execution time of the requests that SLOWLOG records. The wait for the WAL does not count. `off` records none, 0 records all.").dynamic().redis("slowlog-log-slower-than", Redis::Time(Unit::Microseconds));
        RedisSlowLogEntries = count("redis_slowlog_max_len", 0..=100_000, 128, "Number of entries that SLOWLOG keeps. The oldest entry is removed first.")
            .dynamic().redis("slowlog-max-len", Redis::AsIs);
    }
    "MySQL door" {
        MysqlBind = text("mysql_bind", "127.0.0.1", "Addresses to listen on, separated by spaces. * means all addresses.");
        MysqlPort = count("mysql_port", 0..=65535, 3306, "TCP port to listen on. 0 opens no MySQL door.");
        MysqlProtectedMode = switch("mysql_protected_mode", true,
            "Refuses connections from other machines while the user `default` needs no password. The server does not start if an address in mysql_bind is not a loopback address and that user has no password.")
            .dynamic();
        MysqlSslCert = text("mysql_ssl_cert", "", "PEM file with the certificate chain. If it and mysql_ssl_key are set, the server offers TLS on mysql_port.");
        MysqlSslKey = text("mysql_ssl_key", "", "PEM file with the private key of mysql_ssl_cert.");
        MaxPreparedStmtCount = count("max_prepared_stmt_count", 0..=4_194_304, 16_382,
            "Maximum number of prepared statements of all clients together. PREPARE fails with error 1461 beyond it.").dynamic();
        MysqlLongValues = bytes("mysql_long_values", 64 * MIB..=16 * TIB, 0,
            "Memory, in addition to `memory`, for packets over 16 MB and for long values on their way to clients, of all connections together. A packet counts twice because the row is built from it. Beyond the limit a statement fails with error 1041. Increase it if many clients read or write long values at once.")
            .derived(|m| (m.memory_bytes / 5).max(64 * MIB) / MIB * MIB, "20 % of the memory of the machine or the cgroup, whichever is smaller");
        MysqlRequireSecureTransport = switch("mysql_require_secure_transport", false, "Refuses clients that do not use TLS.");
    }
    "PostgreSQL door" {
        PostgresBind = text("postgres_bind", "127.0.0.1", "Addresses to listen on, separated by spaces. * means all addresses.");
        PostgresPort = count("postgres_port", 0..=65535, 5432, "TCP port to listen on. 0 opens no PostgreSQL door.");
        PostgresProtectedMode = switch("postgres_protected_mode", true,
            "Refuses connections from other machines while the role `postgres` needs no password. The server does not start if an address in postgres_bind is not a loopback address and the user `default` has no password.")
            .dynamic();
        PostgresSslCert = text("postgres_ssl_cert", "", "PEM file with the certificate chain. If it and postgres_ssl_key are set, the server offers TLS on postgres_port, and logins can be bound to the certificate.");
        PostgresSslKey = text("postgres_ssl_key", "", "PEM file with the private key of postgres_ssl_cert.");
        PostgresMessageMax = bytes("postgres_message_max", MIB..=GIB - 2, 64 * MIB,
            "Maximum size of one message of a client: a statement, the parameters of one execution, or one piece of COPY data. A larger one fails with error 54000. Increase it for larger values.").dynamic();
        PostgresRequireSecureTransport = switch("postgres_require_secure_transport", false, "Refuses clients that do not use TLS.");
    }
    "XRPC door" {
        XrpcBind = text("xrpc_bind", "127.0.0.1", "Addresses to listen on, separated by spaces. * means all addresses.");
        XrpcPort = count("xrpc_port", 0..=65535, 0, "TCP port to listen on, usually 33660. 0 opens no XRPC door.");
        XrpcProtectedMode = switch("xrpc_protected_mode", true,
            "Refuses connections from other machines while the user `default` needs no password. The server does not start if an address in xrpc_bind is not a loopback address and that user has no password.")
            .dynamic();
        XrpcSslCert = text("xrpc_ssl_cert", "", "PEM file with the certificate chain. If it and xrpc_ssl_key are set, xrpc_port accepts TLS beside plain connections.");
        XrpcSslKey = text("xrpc_ssl_key", "", "PEM file with the private key of xrpc_ssl_cert.");
        XrpcRequireSecureTransport = switch("xrpc_require_secure_transport", false, "Refuses clients that do not use TLS.");
        XrpcSessionsMax = count("xrpc_sessions_max", 1..=1_000_000, 16_384, "Maximum number of sessions of all connections together. Opening another one fails with error 1040.");
        GalaxyProtocol = switch("polarx_rpc_galaxy_protocol", false, "Whether frames carry the 14-byte galaxy header, which adds a version byte to the session id. A client of the other kind gets an error that says so. Set it as the clients are configured.").dynamic();
        GalaxyVersion = count("polarx_rpc_galaxy_version", 0..=127, 0, "Protocol version in the galaxy header.").dynamic();
        XrpcPacketMax = bytes("polarx_rpc_max_allowed_packet", 4 * KIB..=GIB, 64 * MIB, "Maximum size of one request. A client that sends a larger one gets error 1153 and is disconnected.").dynamic();
        XrpcQueueMax = count("polarx_rpc_max_queued_messages", 16..=4096, 128, "Maximum number of requests that wait in one session. One more ends the session. Increase it for clients with deep pipelines.").dynamic();
        SharedSessionLifetime = time("polarx_rpc_shared_session_lifetime", Unit::Milliseconds, 1000..=3_600_000, 60_000,
            "How long a session that served a single statement stays in the session pool for the next one.").dynamic();
        ContextRefreshTime = time("polarx_rpc_epoll_group_ctx_refresh_time", Unit::Milliseconds, 1000..=60_000, 10_000,
            "Interval at which the session pool is checked for sessions older than polarx_rpc_shared_session_lifetime.").dynamic();
        OutputPages = count("polarx_rpc_max_cached_output_buffer_pages", 1..=256, 10,
            "Size of the row buffer, in pages of 4kb. Rows are sent when they fill half of it. A larger value sends fewer, larger packets.").dynamic();
        KillLog = switch("polarx_rpc_enable_kill_log", true, "Logs each SESS_KILL at level info.").dynamic();
        RequestCacheNumber = count("polarx_rpc_request_cache_number", 128..=16_384, 1024, "Number of statements kept in the cache of statements by digest.");
        RequestCacheInstances = count("polarx_rpc_request_cache_instances", 1..=128, 16, "Number of partitions of the statement cache. Each has its own lock.");
        RequestCacheLength = bytes("polarx_rpc_request_cache_max_length", 128..=GIB, MIB, "Maximum length of a cached statement. A longer one is executed but not cached.");
    }
    "SQL" {
        LockPartitions = count("innodb_lock_sys_rec_partition", 1..=1024, 64, "Number of partitions of the row lock table.")
            .derived(|machine| (16 * machine.cores).clamp(64, 1024), "16 per processor, at least 64");
        CsnLockfree = switch("innodb_csn_lockfree", true,
            "Commit numbers are assigned and read without a lock. Beluga has no other method, so `off` is refused.");
        BlinkTree = switch("innodb_polar_blink_tree", true,
            "Tables and indexes are B-link trees, whose readers take no latches. Beluga has no other kind, so `off` is refused.");
        LocalInfile = switch("local_infile", false,
            "Initial value of the system variable local_infile: whether LOAD DATA LOCAL may read files of the client.");
        SecureFilePriv = text("secure_file_priv", "",
            "Folder whose files SQL statements may read and write. LOAD DATA INFILE and SELECT ... INTO OUTFILE are restricted to it. If it is empty, both statements fail with error 1290.");
        StatementMemory = bytes("statement_memory", 0..=TIB, 0,
            "Memory that one SQL statement may use for sorts, groups, hash joins and other materialized rows. It is also the target for all statements together. Rows beyond it are spilled to files in the folder `spill` of the data folder, which recovery ignores. 0 means a sixteenth of `memory`, at most 1gb.");
    }
    "Thread pool" {
        MaxConnections = count("max_connections", 1..=1_000_000, 10_000,
            "Maximum number of connections of all doors together. A client beyond it gets an error and is disconnected.").redis("maxclients", Redis::AsIs);
        LoginFailuresFree = count("login_failures_free", 0..=1000, 3,
            "Number of consecutive failed logins of one account from one address that cause no delay, counted over all doors. Each further failure doubles the delay of the next login, starting at 100ms.").dynamic();
        LoginDelayMax = time("login_delay_max", Unit::Milliseconds, 0..=8000, 4000,
            "Maximum login delay after failures. The delay holds no worker thread and comes before the password check. 0 disables delays.").dynamic();
        ThreadPoolSize = count("thread_pool_size", 0..=4096, 0,
            "Number of base worker threads, divided into groups of worker_threads_per_group. 0 leaves the number of groups to worker_groups. Only one of the two may be set.");
        WorkerGroups = count("worker_groups", 0..=128, 0,
            "Number of worker groups. Each has its own epoll instance and run queue. 0 means as many as give each processor one base thread.").alias("polarx_rpc_epoll_groups");
        WorkerThreadsPerGroup = count("worker_threads_per_group", 0..=128, 0,
            "Number of base threads of a worker group, which never exit. 0 means one.").alias("polarx_rpc_epoll_threads_per_group");
        WorkerEpollEvents = count("worker_epoll_events", 1..=256, 64, "Maximum number of events that a worker takes from one epoll_wait. A smaller value spreads ready connections over more threads.").dynamic().alias("polarx_rpc_epoll_events_per_thread");
        WorkerThreadsPerGroupMax = count("worker_threads_per_group_max", 1..=4096, 256,
            "Maximum number of threads of a worker group. Threads beyond the base are started while requests wait for pages or locks. If `memory` is small, the effective limit is lower.").alias("polarx_rpc_epoll_group_threads_max");
        WorkerIdleTimeout = time("worker_idle_timeout", Unit::Milliseconds, 1000..=600_000, 10_000,
            "Time after which an idle thread beyond the base exits.").dynamic().alias("polarx_rpc_epoll_group_dynamic_threads_shrink_time");
        WorkerStallLimit = time("worker_stall_limit", Unit::Milliseconds, 1..=10_000, 100,
            "Time after which a worker that is still in one request counts as stalled and its other events move to other workers. A worker that only computes counts as stalled after about 5 ms.").dynamic().alias("polarx_rpc_epoll_group_thread_deadlock_check_interval");
        WorkerCpuAffinity = switch("worker_cpu_affinity", false, "Binds each base thread to a processor.").alias("polarx_rpc_auto_cpu_affinity");
        TcpKeepalive = time("tcp_keepalive", Unit::Seconds, 0..=7200, 300,
            "Idle time after which a connection gets TCP keepalive probes: up to three, a third of this time apart. 0 disables probes.").dynamic().redis("tcp-keepalive", Redis::Time(Unit::Seconds)).alias("polarx_rpc_tcp_keep_alive");
        TcpReceiveBuffer = bytes("tcp_receive_buffer", 0..=2 * MIB, 0, "Size of the kernel's receive buffer of a connection (SO_RCVBUF). 0 leaves it to the kernel.").dynamic().alias("polarx_rpc_tcp_recv_buf");
        TcpSendBuffer = bytes("tcp_send_buffer", 0..=2 * MIB, 0, "Size of the kernel's send buffer of a connection (SO_SNDBUF). 0 leaves it to the kernel.").dynamic().alias("polarx_rpc_tcp_send_buf");
        TcpBacklog = count("tcp_backlog", 1..=65535, 511,
            "Maximum number of connections that wait to be accepted, per address. The kernel limits it to net.core.somaxconn. Increase it if many clients connect at once.").redis("tcp-backlog", Redis::AsIs).alias("polarx_rpc_tcp_listen_queue");
        SendTimeout = time("send_timeout", Unit::Milliseconds, 1..=7_200_000, 60_000,
            "Time after which a client that accepts no byte of a pending reply is disconnected.").dynamic().alias("polarx_rpc_net_write_timeout");
        ReceiveChunk = bytes("receive_chunk", 4 * KIB..=MIB, 64 * KIB, "Maximum number of bytes that one receive call takes from a connection.").dynamic().alias("polarx_rpc_tcp_fixed_dealing_buf");
        OutputPause = bytes("output_pause", 64 * KIB..=GIB, MIB,
            "Amount of unsent reply bytes above which a connection's further requests are not run until its client has read some. If `memory` is small, the effective limit is lower. While all connections together have more unsent bytes than about an eightieth of `memory`, the limit of each is 4kb.");
    }
    "Logging and metrics" {
        LogLevel = one_of("log_level", &["error", "warn", "info", "debug"], "warn",
            "Lowest level of events that are logged. An event is one line of `key=value` pairs.").dynamic().redis("loglevel", Redis::AsIs);
        LogFile = text("log_file", "", "File to which log lines are appended. If it is empty, they go to standard error.").redis("logfile", Redis::AsIs);
        WorkerHistograms = switch("worker_histograms", true,
            "Records how long requests wait in the worker groups. `call xrpc.perf_hist('all')` and the metrics page show it. Execution times are recorded in any case.").dynamic().alias("polarx_rpc_enable_perf_hist");
        MetricsListen = text("metrics_listen", "off",
            "Address and port of the HTTP server of the metrics page /metrics, such as 127.0.0.1:9633, or `off`. The page is in the Prometheus text format. It asks for no password, so keep it on loopback or on a private network.");
    }
}

pub fn list() -> &'static [Setting] {
    static LIST: OnceLock<Vec<Setting>> = OnceLock::new();
    LIST.get_or_init(rows)
}

/// Returns the index of the setting with this name or alias. `-` equals `_`, and case does not matter.
pub fn find(name: &str) -> Option<usize> {
    let name = name.replace('-', "_").to_ascii_lowercase();
    list().iter().position(|s| s.names().any(|known| known == name))
}

/// Returns the known name that is most similar to an unknown one, if any is similar enough.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = name.replace('-', "_").to_ascii_lowercase();
    let distances = list().iter().flat_map(Setting::names).map(|known| (distance(&name, known), known));
    distances.min().filter(|(d, _)| *d <= name.len() / 3).map(|(_, n)| n)
}

/// Returns the Levenshtein distance: the smallest number of letters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let change = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_whole() {
        let machine = Machine { cores: 2, memory_bytes: 8 << 30 };
        for (at, setting) in list().iter().enumerate() {
            for name in setting.names() {
                assert_eq!(find(name), Some(at), "{name}: two rows have this name");
            }
            assert!(setting.doc.ends_with('.'), "{}: the text is a sentence", setting.name);
            assert!(
                setting.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                "{}",
                setting.name
            );
            let default = setting.default_value(&machine);
            if setting.kind != Kind::Secret {
                assert_eq!(setting.kind.parse(&setting.kind.print(&default)), Ok(default), "{}: default", setting.name);
            }
        }
    }

    #[test]
    fn derived_defaults_are_within_their_range_on_any_machine() {
        for (cores, memory_bytes) in [(1, 32 << 20), (2, 8 << 30), (120, 920 << 30)] {
            let machine = Machine { cores, memory_bytes };
            for setting in list() {
                let default = setting.kind.print(&setting.default_value(&machine));
                assert!(
                    setting.kind == Kind::Secret || setting.kind.parse(&default).is_ok(),
                    "{} = {default}",
                    setting.name
                );
            }
        }
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        assert_eq!(nearest("memroy"), Some("memory"));
        assert_eq!(nearest("log-levle"), Some("log_level"));
        assert_eq!(nearest("zzz"), None);
    }
}
