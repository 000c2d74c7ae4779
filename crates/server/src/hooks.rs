//! Server hooks for SQL: the settings as system variables, the counters of the XRPC door as status variables, and the histograms of all doors.
//!
//! A setting that has the name of a system variable, as its own name or its alias, is that variable. `query`'s table says whether it may be set and within
//! which bounds; a test compares it with the list of settings. The list holds the value and notifies the listeners, so CONFIG SET and SET GLOBAL are the same
//! change.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};

use door_mysql::MysqlDoor;
use door_redis::RedisDoor;
use door_xrpc::XrpcDoor;
use reactor::Pool;
use sql_mysql::rights::Privileges;
use sql_mysql::{Database, Procedure, ServerHooks};
use stdx::histogram::{Histogram, Snapshot};

use crate::settings::{Name, Settings};

/// Prefix of the variables of the worker pool and the XRPC door. SQL knows all settings with it.
const PREFIX: &str = "polarx_rpc_";
/// Width of a histogram's bars, in characters.
const BAR: usize = 40;

/// The parts that the hooks read. They are weak because the doors hold the database, which holds the hooks.
pub struct Parts {
    pub settings: Arc<Settings>,
    pub pool: Weak<Pool>,
    pub redis: Weak<RedisDoor>,
    pub mysql: Weak<MysqlDoor>,
    pub xrpc: Weak<XrpcDoor>,
}

/// Returns the settings that SQL shows.
pub fn facts(settings: &Settings, pool: &Pool) -> Vec<(&'static str, u64)> {
    let (groups, in_group) = (pool.settings().epoll_groups as u64, pool.settings().epoll_threads_per_group as u64);
    let mut facts = settings.numbers(PREFIX);
    facts.extend([
        ("innodb_buffer_pool_size", settings.number(Name::Memory)),
        ("innodb_lock_sys_rec_partition", settings.number(Name::LockPartitions)),
        ("max_connections", settings.number(Name::MaxConnections)),
        ("max_prepared_stmt_count", settings.number(Name::MaxPreparedStmtCount)),
        ("port", settings.number(Name::MysqlPort)),
        ("rpc_port", settings.number(Name::XrpcPort)),
        ("thread_pool_size", groups * in_group),
        // The effective numbers, where the setting is 0 (automatic).
        ("polarx_rpc_epoll_groups", groups),
        ("polarx_rpc_epoll_threads_per_group", in_group),
        ("polarx_rpc_epoll_group_threads_max", pool.settings().epoll_group_threads_max as u64),
    ]);
    facts
}

/// Installs the hooks. Values that SET PERSIST stored take effect here.
pub fn install(database: &Database, parts: Parts) -> sql_mysql::error::Result<()> {
    let settings = parts.settings.clone();
    let parts = Arc::new(parts);
    let (counting, measuring, clearing) = (parts.clone(), parts.clone(), parts);
    database.install_hooks(ServerHooks {
        set: Box::new(move |name, number| settings.set_number(name, number)),
        status: Box::new(move || status(&counting)),
        procedures: vec![
            Procedure {
                schema: "xrpc",
                name: "perf_hist",
                columns: &[("name", 128), ("hist", 65_535)],
                needs: |word| if word.eq_ignore_ascii_case("reset") { admin() } else { Privileges::PROCESS },
                run: Box::new(move |word| perf_hist(&measuring, word)),
            },
            Procedure {
                schema: "xrpc",
                name: "cmd",
                columns: &[("name", 128), ("result", 1024)],
                needs: |_| admin(),
                run: Box::new(move |word| command(&clearing, word)),
            },
        ],
    })?;
    Ok(())
}

/// Privileges for a change that affects everybody.
fn admin() -> Privileges {
    Privileges::SUPER | Privileges::SYSTEM_VARIABLES_ADMIN
}

/// Returns the lines of SHOW STATUS. Those of a closed door are zero.
fn status(parts: &Parts) -> Vec<(&'static str, String)> {
    let door = parts.xrpc.upgrade();
    let of = |read: fn(&XrpcDoor) -> u64| door.as_deref().map_or(0, read).to_string();
    let threads = parts.pool.upgrade().map_or(0, |pool| pool.thread_counts().0);
    vec![
        ("polarx_rpc_inited", if door.is_some() { "ON" } else { "OFF" }.to_owned()),
        ("polarx_rpc_plan_evict", of(|door| door.plans().evicted.get())),
        ("polarx_rpc_plan_hit", of(|door| door.plans().hits.get())),
        ("polarx_rpc_plan_miss", of(|door| door.plans().misses.get())),
        ("polarx_rpc_sql_evict", of(|door| door.texts().evicted.get())),
        ("polarx_rpc_sql_hit", of(|door| door.texts().hits.get())),
        ("polarx_rpc_sql_miss", of(|door| door.texts().misses.get())),
        ("polarx_rpc_tcp_closing", of(|door| door.stats().closing.get())),
        ("polarx_rpc_tcp_connections", of(|door| door.stats().connections.get())),
        ("polarx_rpc_threads", threads.to_string()),
        ("polarx_rpc_total_sessions", of(XrpcDoor::session_count)),
        ("polarx_rpc_worker_sessions", of(|door| door.stats().sessions.get())),
    ]
}

/// One histogram, or the sum of several.
enum HistogramSource<'s> {
    One(&'s Histogram),
    Redis(&'s RedisDoor),
}

impl HistogramSource<'_> {
    fn snapshot(&self) -> Snapshot {
        match self {
            HistogramSource::One(histogram) => histogram.snapshot(),
            HistogramSource::Redis(door) => door.stats().times(),
        }
    }

    fn reset(&self) {
        match self {
            HistogramSource::One(histogram) => histogram.reset(),
            HistogramSource::Redis(door) => {
                door.stats().commands.iter().filter_map(|command| command.times()).for_each(Histogram::reset)
            }
        }
    }
}

/// Calls `look` with the name and the source of each histogram.
fn each(parts: &Parts, mut look: impl FnMut(&'static str, HistogramSource<'_>)) {
    if let Some(pool) = parts.pool.upgrade() {
        pool.counters().latency.named().into_iter().for_each(|(name, one)| look(name, HistogramSource::One(one)));
    }
    if let Some(door) = parts.xrpc.upgrade() {
        door.stats().named().into_iter().for_each(|(name, one)| look(name, HistogramSource::One(one)));
    }
    if let Some(door) = parts.mysql.upgrade() {
        look("run mysql", HistogramSource::One(&door.stats().times));
    }
    if let Some(door) = parts.redis.upgrade() {
        look("run redis", HistogramSource::Redis(&door));
    }
}

/// `call xrpc.perf_hist(word)`.
fn perf_hist(parts: &Parts, word: &str) -> Vec<Vec<String>> {
    if word.eq_ignore_ascii_case("reset") {
        each(parts, |_, source| source.reset());
        return vec![vec!["reset".to_owned(), "ok".to_owned()]];
    }
    let (mut rows, mut known) = (Vec::new(), Vec::new());
    each(parts, |name, source| {
        known.push(name);
        if word.eq_ignore_ascii_case("all") || word.eq_ignore_ascii_case(name) {
            rows.push(vec![name.to_owned(), drawn(&source.snapshot())]);
        }
    });
    if rows.is_empty() {
        rows.push(unknown(&[&known[..], &["all", "reset"]].concat()));
    }
    rows
}

/// `call xrpc.cmd(word)`.
fn command(parts: &Parts, word: &str) -> Vec<Vec<String>> {
    if !word.eq_ignore_ascii_case("clear cache") {
        return vec![unknown(&["clear cache"])];
    }
    if let Some(door) = parts.xrpc.upgrade() {
        door.texts().clear();
        door.plans().clear();
    }
    vec![vec!["clear cache".to_owned(), "ok".to_owned()]]
}

fn unknown(words: &[&str]) -> Vec<String> {
    vec!["error".to_owned(), format!("expected one of: {}", words.join(", "))]
}

/// Draws a line for each bucket that is not empty: its largest value in seconds, a bar, the count.
fn drawn(snapshot: &Snapshot) -> String {
    let mut text = format!("hist:\n{:>12}  {:-^BAR$} count\n", "value", " distribution ");
    let most = snapshot.filled().map(|(_, count)| count).max().unwrap_or(1);
    for (bound, count) in snapshot.filled() {
        let bar = "*".repeat((count as u128 * BAR as u128 / most as u128) as usize);
        let _ = writeln!(text, "{:>12.9} |{bar:<BAR$} {count}", bound as f64 / 1e9);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::list::{Setting, list};
    use crate::settings::value::Kind;
    use sql_mysql::{Login, Outcome, Session};

    #[test]
    fn a_histogram_is_drawn_with_a_line_for_each_bucket() {
        let histogram = Histogram::new();
        histogram.record_many(31, 4);
        histogram.record(1 << 30);
        assert_eq!(
            drawn(&histogram.snapshot()),
            format!(
                "hist:\n       value  {0} distribution {0} count\n 0.000000031 |{1} 4\n 1.107296255 |{2:<40} 1\n",
                "-".repeat(13),
                "*".repeat(40),
                "*".repeat(10)
            )
        );
    }

    fn database() -> (Arc<Database>, Session) {
        let mut sizes = engine::Options::default();
        sizes.pager.frame_bytes = 8 << 20;
        sizes.pager.ring_bytes = 1 << 20;
        sizes.pager.segment_bytes = 4 << 20;
        let clock = Arc::new(os::RealClock::new());
        let engine = engine::Engine::open(sizes, os::SimFolder::new(1), clock).expect("an empty folder opens");
        let database = Database::open(engine).expect("a new catalog");
        let login = Login { user: "root".into(), host: "localhost".into(), database: None, connection_id: 1 };
        let session = Session::new(&database, login).expect("nobody needs a password");
        (database, session)
    }

    fn code(session: &mut Session, sql: &str) -> u16 {
        match session.execute(sql) {
            Ok(Outcome::Done { .. }) => 0,
            Ok(other) => panic!("{sql}: {other:?}"),
            Err(error) => error.code,
        }
    }

    /// The list of settings and SQL's table of variables agree.
    #[test]
    fn settings_that_sql_knows_have_the_bounds_that_it_knows() {
        let (_database, mut session) = database();
        let mut count = 0;
        let named = |setting: &'static Setting| Some((setting.names().find(|name| name.starts_with(PREFIX))?, setting));
        for (name, setting) in list().iter().filter_map(named) {
            count += 1;
            let set = |value: String| format!("set global {name} = {value}");
            if !setting.dynamic {
                assert_eq!(code(&mut session, &set("1".into())), 1238, "{name}");
                continue;
            }
            let (least, most) = match &setting.kind {
                Kind::Count(range) | Kind::Bytes(range) | Kind::Time(_, range) => (*range.start(), *range.end()),
                Kind::Switch => (0, 1),
                other => panic!("{name}: {other:?} is no number"),
            };
            for good in [least, most] {
                assert_eq!(code(&mut session, &set(good.to_string())), 0, "{name} = {good}");
            }
            for bad in [Some(most + 1), least.checked_sub(1)].into_iter().flatten() {
                assert_eq!(code(&mut session, &set(bad.to_string())), 1231, "{name} = {bad}");
            }
            let wrong = if setting.kind == Kind::Switch { 1231 } else { 1232 };
            assert_eq!(code(&mut session, &set("'many'".into())), wrong, "{name}");
            assert_eq!(code(&mut session, &set("default".into())), 0, "{name}");
            let settings = Settings::of(crate::machine::Machine { cores: 2, memory_bytes: 8 << 30 });
            let value = settings.numbers(name)[0].1;
            let is_default = format!("do 1 / (@@{name} = {value})");
            assert_eq!(code(&mut session, &is_default), 0);
            assert_eq!(session.warnings().count(), 0, "{name}: the defaults differ");
        }
        assert!(count > 20, "{count}");
    }
}
