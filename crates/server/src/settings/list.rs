//! The one list of settings. The file, the flags, the environment, `--help`, `beluga settings`, docs/operating.md and Redis' CONFIG all come from it.
//!
//! To add a setting: a variant of `Name`, a row of the same place in `rows`, and the line of code that reads it.

use std::sync::OnceLock;

use super::value::{GIB, KIB, Kind, MIB, TIB, Unit, Value};
use crate::machine::Machine;

/// One row. Read once at the start; nothing here is quick, nor needs to be.
pub struct Setting {
    pub name: &'static str,
    pub section: &'static str,
    pub kind: Kind,
    pub default: Default,
    /// May change while the server runs.
    pub dynamic: bool,
    /// Its name in Redis' CONFIG and the unit in which Redis writes it.
    pub redis: Option<(&'static str, Redis)>,
    /// A second name, accepted wherever `name` is. Settings of the thread pool have the name of PolarDB-X's system variable here, which SQL shows.
    pub alias: Option<&'static str>,
    pub doc: &'static str,
}

pub enum Default {
    Fixed(Value),
    /// Comes from the machine; the words say how.
    Derived(fn(&Machine) -> u64, &'static str),
}

/// How Redis writes the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Redis {
    AsIs,
    YesNo,
    /// A bare number in this unit.
    Time(Unit),
    /// Bytes as a bare number.
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

    /// The setting's name and its alias.
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

    /// The flag: `--redis-port` for `redis_port`.
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
        /// Names a row of the list: `settings.number(Name::Memory)`.
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
        Data = text("data", "./beluga-data", "Folder of the data. Created if it does not exist. One server at a time may use it.")
            .redis("dir", Redis::AsIs);
        Memory = bytes("memory", 64 * MIB..=16 * TIB, 0,
            "Memory the server may use in all: page frames, log buffer, undo, buffers of connections.")
            .derived(|m| (m.memory_bytes / 10 * 6).max(64 * MIB) / MIB * MIB, "60 % of the machine's or the cgroup's memory, whichever is smaller")
            .redis("maxmemory", Redis::Bytes);
        LogBuffer = bytes("log_buffer", MIB..=GIB, 0,
            "Memory ring in which log records wait to be written; a power of two. Writers wait when it is full.")
            .derived(|m| if m.cores <= 4 { 8 * MIB } else { 64 * MIB }, "8mb up to 4 cores, else 64mb");
        LogSegment = bytes("log_segment", MIB..=4 * GIB, 64 * MIB,
            "Size of one log file. Files are filled with zeros once and then recycled.");
        CheckpointDistance = bytes("checkpoint_distance", 4 * MIB..=TIB, GIB,
            "How much log recovery may have to read after a crash. Less makes restarts quicker; more writes fewer pages.");
    }
    "Redis door" {
        RedisBind = text("redis_bind", "127.0.0.1", "Addresses to listen on, separated by spaces; * is all of them.").redis("bind", Redis::AsIs);
        RedisPort = count("redis_port", 0..=65535, 6379, "Port to listen on; 0 opens no Redis door.").redis("port", Redis::AsIs);
        RedisTlsPort = count("redis_tls_port", 0..=65535, 0, "Port to listen on for TLS, at the addresses of redis_bind; 0: none.").redis("tls-port", Redis::AsIs);
        RedisTlsCertFile = text("redis_tls_cert_file", "", "Certificate chain of the TLS port, a PEM file.").redis("tls-cert-file", Redis::AsIs);
        RedisTlsKeyFile = text("redis_tls_key_file", "", "Private key of the TLS port, a PEM file.").redis("tls-key-file", Redis::AsIs);
        RedisTlsCaFile = text("redis_tls_ca_cert_file", "", "Certificates that clients' certificates must lead to, a PEM file.").redis("tls-ca-cert-file", Redis::AsIs);
        RedisTlsAuthClients = one_of("redis_tls_auth_clients", &["no", "optional", "yes"], "no", "Whether a client must show a certificate on the TLS port.")
            .redis("tls-auth-clients", Redis::AsIs);
        RedisPassword = secret("redis_password",
            "Password of the user `default`, kept as a digest in the data folder. Empty at the start leaves that user as it is.")
            .dynamic().redis("requirepass", Redis::AsIs);
        RedisProtectedMode = switch("redis_protected_mode", true,
            "Refuses to listen beyond loopback, and connections from there, while the user `default` needs no password.")
            .dynamic().redis("protected-mode", Redis::YesNo);
        RedisAppendfsync = one_of("redis_appendfsync", &["always", "everysec", "no"], "always",
            "always: a reply waits until what it tells is on disk. The other two: it does not; the log is written as fast as the disk takes it all the same, and a crash loses what had not got there.")
            .dynamic().redis("appendfsync", Redis::AsIs);
        RedisBulkMax = bytes("redis_proto_max_bulk_len", MIB..=512 * MIB, 512 * MIB, "Longest argument of a request, and so the longest value in it.")
            .dynamic().redis("proto-max-bulk-len", Redis::Bytes);
        RedisRequestMax = bytes("redis_client_query_buffer_limit", MIB..=4 * GIB - 1, GIB, "Longest request; a client that sends a longer one is disconnected.")
            .dynamic().redis("client-query-buffer-limit", Redis::Bytes);
        RedisSlowLogAfter = Setting::new("redis_slowlog_log_slower_than", Kind::TimeOrOff(Unit::Microseconds), Value::Number(10_000),
            "Requests that take at least so long go into SLOWLOG; the wait for the log does not count. off: none.").dynamic().redis("slowlog-log-slower-than", Redis::Time(Unit::Microseconds));
        RedisSlowLogEntries = count("redis_slowlog_max_len", 0..=100_000, 128, "SLOWLOG keeps so many.")
            .dynamic().redis("slowlog-max-len", Redis::AsIs);
    }
    "MySQL door" {
        MysqlBind = text("mysql_bind", "127.0.0.1", "Addresses to listen on, separated by spaces; * is all of them.");
        MysqlPort = count("mysql_port", 0..=65535, 3306, "Port to listen on; 0 opens no MySQL door.");
        MysqlProtectedMode = switch("mysql_protected_mode", true,
            "Refuses to listen beyond loopback, and connections from there, while the user `default` needs no password.")
            .dynamic();
        MysqlSslCert = text("mysql_ssl_cert", "", "Certificate chain, a PEM file. With it and mysql_ssl_key clients are offered TLS on the same port.");
        MysqlSslKey = text("mysql_ssl_key", "", "Private key of the certificate, a PEM file.");
        MaxPreparedStmtCount = count("max_prepared_stmt_count", 0..=4_194_304, 16_382,
            "Prepared statements of all clients together; one more gets error 1461.").dynamic();
        MysqlLongValues = bytes("mysql_long_values", 64 * MIB..=16 * TIB, 0,
            "Memory, beside `memory`, for packets of more than 16 MB and for long values on their way to clients, of all connections together. A packet counts twice, for the row is made of it. Beyond it error 1041.")
            .derived(|m| (m.memory_bytes / 5).max(64 * MIB) / MIB * MIB, "20 % of the machine's or the cgroup's memory, whichever is smaller");
        MysqlRequireSecureTransport = switch("mysql_require_secure_transport", false, "Refuses clients that do not use TLS.");
    }
    "XRPC door" {
        XrpcBind = text("xrpc_bind", "127.0.0.1", "Addresses to listen on, separated by spaces; * is all of them.");
        XrpcPort = count("xrpc_port", 0..=65535, 0, "Port to listen on, mostly 33660; 0 opens no XRPC door.");
        XrpcProtectedMode = switch("xrpc_protected_mode", true,
            "Refuses to listen beyond loopback, and connections from there, while the user `default` needs no password.")
            .dynamic();
        XrpcSslCert = text("xrpc_ssl_cert", "", "Certificate chain, a PEM file. With it and xrpc_ssl_key connections that begin with TLS get it, on the same port.");
        XrpcSslKey = text("xrpc_ssl_key", "", "Private key of the certificate, a PEM file.");
        XrpcRequireSecureTransport = switch("xrpc_require_secure_transport", false, "Refuses clients that do not use TLS.");
        XrpcSessionsMax = count("xrpc_sessions_max", 1..=1_000_000, 16_384, "Sessions of all connections together; one more gets error 1040.");
        GalaxyProtocol = switch("polarx_rpc_galaxy_protocol", false, "Frames have a byte of version behind the session's number. A client of the other kind is told so.").dynamic();
        GalaxyVersion = count("polarx_rpc_galaxy_version", 0..=127, 0, "That byte.").dynamic();
        XrpcPacketMax = bytes("polarx_rpc_max_allowed_packet", 4 * KIB..=GIB, 64 * MIB, "Longest request; a client that sends a longer one gets error 1153 and is disconnected.").dynamic();
        XrpcQueueMax = count("polarx_rpc_max_queued_messages", 16..=4096, 128, "Requests that wait in one session; one more ends it.").dynamic();
        SharedSessionLifetime = time("polarx_rpc_shared_session_lifetime", Unit::Milliseconds, 1000..=3_600_000, 60_000,
            "How long a session that served a single statement waits for the next one.").dynamic();
        ContextRefreshTime = time("polarx_rpc_epoll_group_ctx_refresh_time", Unit::Milliseconds, 1000..=60_000, 10_000,
            "Between two looks at which of those sessions have waited for so long.").dynamic();
        OutputPages = count("polarx_rpc_max_cached_output_buffer_pages", 1..=256, 10,
            "Rows are handed over when they fill half as many pages of 4kb.").dynamic();
        KillLog = switch("polarx_rpc_enable_kill_log", true, "SESS_KILL leaves a line in the log, of level info.").dynamic();
        RequestCacheNumber = count("polarx_rpc_request_cache_number", 128..=16_384, 1024, "Statements that are known by their digest.");
        RequestCacheInstances = count("polarx_rpc_request_cache_instances", 1..=128, 16, "Parts of that cache, each with a lock of its own.");
        RequestCacheLength = bytes("polarx_rpc_request_cache_max_length", 128..=GIB, MIB, "A longer statement is executed and not kept by its digest.");
    }
    "SQL" {
        LockPartitions = count("innodb_lock_sys_rec_partition", 1..=1024, 64, "Partitions of the table of row locks.")
            .derived(|machine| (16 * machine.cores).clamp(64, 1024), "sixteen for each processor, at least 64");
        CsnLockfree = switch("innodb_csn_lockfree", true,
            "Commit numbers are taken and read without a lock. There is no other way here: off is refused.");
        BlinkTree = switch("innodb_polar_blink_tree", true,
            "Tables and indexes are B-link trees, whose readers take no latch. There is no other way here: off is refused.");
        LocalInfile = switch("local_infile", false,
            "Lets LOAD DATA LOCAL ask clients for their files, as long as SET GLOBAL local_infile says nothing else.");
        SecureFilePriv = text("secure_file_priv", "",
            "Folder for the files of LOAD DATA INFILE and SELECT ... INTO OUTFILE; empty: there is none, and such statements get error 1290.");
        StatementMemory = bytes("statement_memory", 0..=TIB, 0,
            "Memory that the sorts, groups, joins and other gathered rows of one SQL statement may take, and those of all statements together should. What is more goes to files in the folder `spill` of the data, which need no recovery. 0: a sixteenth of `memory`, but not more than 1gb.");
    }
    "Thread pool" {
        MaxConnections = count("max_connections", 1..=1_000_000, 10_000,
            "Connections of all doors together; one more is told so and closed.").redis("maxclients", Redis::AsIs);
        LoginFailuresFree = count("login_failures_free", 0..=1000, 3,
            "Logins of one account from one address that may fail in a row without a delay, over all doors together. Each further failure doubles the delay of the next login, from 100ms on.").dynamic();
        LoginDelayMax = time("login_delay_max", Unit::Milliseconds, 0..=8000, 4000,
            "Longest such delay; it passes without a thread, before the password is checked. 0: failures delay nothing.").dynamic();
        ThreadPoolSize = count("thread_pool_size", 0..=4096, 0,
            "Threads that the pool always has, in as many groups as `worker_threads_per_group` makes of them; 0: as `worker_groups` says.");
        WorkerGroups = count("worker_groups", 0..=128, 0,
            "Groups of threads, each with an epoll instance; 0: as many as give every processor a thread.").alias("polarx_rpc_epoll_groups");
        WorkerThreadsPerGroup = count("worker_threads_per_group", 0..=128, 0,
            "Threads that a group always has; 0: one.").alias("polarx_rpc_epoll_threads_per_group");
        WorkerEpollEvents = count("worker_epoll_events", 1..=256, 64, "Events that a thread takes from epoll at once.").dynamic().alias("polarx_rpc_epoll_events_per_thread");
        WorkerThreadsPerGroupMax = count("worker_threads_per_group_max", 1..=4096, 256,
            "Threads that a group may have while requests wait, for pages or for locks; fewer where `memory` is small.").alias("polarx_rpc_epoll_group_threads_max");
        WorkerIdleTimeout = time("worker_idle_timeout", Unit::Milliseconds, 1000..=600_000, 10_000,
            "How long a thread beyond the base stays without work.").dynamic().alias("polarx_rpc_epoll_group_dynamic_threads_shrink_time");
        WorkerStallLimit = time("worker_stall_limit", Unit::Milliseconds, 1..=10_000, 100,
            "How long a thread may be in one piece of work before its other events go to other threads; some 5 ms if it computes all that time.").dynamic().alias("polarx_rpc_epoll_group_thread_deadlock_check_interval");
        WorkerCpuAffinity = switch("worker_cpu_affinity", false, "Binds each base thread to a processor.").alias("polarx_rpc_auto_cpu_affinity");
        TcpKeepalive = time("tcp_keepalive", Unit::Seconds, 0..=7200, 300,
            "Silence after which a connection is probed, up to three times, each a third of it later; 0 probes none.").dynamic().redis("tcp-keepalive", Redis::Time(Unit::Seconds)).alias("polarx_rpc_tcp_keep_alive");
        TcpReceiveBuffer = bytes("tcp_receive_buffer", 0..=2 * MIB, 0, "What the system keeps of received bytes for a connection; 0: as it likes.").dynamic().alias("polarx_rpc_tcp_recv_buf");
        TcpSendBuffer = bytes("tcp_send_buffer", 0..=2 * MIB, 0, "The same of bytes to be sent.").dynamic().alias("polarx_rpc_tcp_send_buf");
        TcpBacklog = count("tcp_backlog", 1..=65535, 511,
            "Connections that may wait to be accepted.").redis("tcp-backlog", Redis::AsIs).alias("polarx_rpc_tcp_listen_queue");
        SendTimeout = time("send_timeout", Unit::Milliseconds, 1..=7_200_000, 60_000,
            "A client that takes no byte of a waiting reply for so long is disconnected.").dynamic().alias("polarx_rpc_net_write_timeout");
        ReceiveChunk = bytes("receive_chunk", 4 * KIB..=MIB, 64 * KIB, "Received bytes are taken in pieces of at most this size.").dynamic().alias("polarx_rpc_tcp_fixed_dealing_buf");
        OutputPause = bytes("output_pause", 64 * KIB..=GIB, MIB,
            "A connection with more unsent bytes than this is not served until its client has taken some (sooner where `memory` is small); neither is one with more than 4kb, while all together have more than about an eightieth of `memory`.");
    }
    "Logging and metrics" {
        LogLevel = one_of("log_level", &["error", "warn", "info", "debug"], "warn",
            "How much is logged: one line per event, key=value.").dynamic().redis("loglevel", Redis::AsIs);
        LogFile = text("log_file", "", "File that log lines are appended to. Empty: standard error.").redis("logfile", Redis::AsIs);
        WorkerHistograms = switch("worker_histograms", true,
            "Measures how long requests wait in the pool; `call xrpc.perf_hist('all')` and the counters show it. How long they run is measured in any case.").dynamic().alias("polarx_rpc_enable_perf_hist");
        MetricsListen = text("metrics_listen", "off",
            "Address and port that serve the counters at /metrics as Prometheus text over HTTP, such as 127.0.0.1:9633, or off. It asks for no password: keep it on loopback or a private network.");
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

/// The known name that is most like an unknown one, if any is close.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = name.replace('-', "_").to_ascii_lowercase();
    let distances = list().iter().flat_map(Setting::names).map(|known| (distance(&name, known), known));
    distances.min().filter(|(d, _)| *d <= name.len() / 3).map(|(_, n)| n)
}

/// Levenshtein's: the fewest letters to put in, take out or change.
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
