//! sysbench against Beluga's SQL doors, MariaDB and PostgreSQL: the same scripts and data, the same promise (on disk before the reply), one after the other in every round.

mod busy;
pub mod client;
mod server;
mod sysbench;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::measure::median;
use crate::process;
use crate::setup::Setup;
use crate::svg::{Chart, Panel};
use crate::table::{Cell, Table, grouped};

use busy::BusyPrograms;
pub use server::{Memory, Programs, SqlServer, SqlSide, XRPC_PORT};
pub use sysbench::Data;
pub use sysbench::SysbenchResult;

const SCRIPTS: [&str; 7] = [
    "oltp_point_select",
    "oltp_read_only",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_write_only",
    "oltp_read_write",
];
const SETTLE_PATIENCE: Duration = Duration::from_secs(3);

pub struct SysbenchOptions {
    pub rounds: usize,
    pub turn: Duration,
    pub threads: Vec<usize>,
    pub data: Data,
    pub sides: Vec<SqlSide>,
    /// Only scripts whose names contain one of these; all if there are none.
    pub only: Vec<String>,
    /// Additional options for sysbench.
    pub script_options: Vec<String>,
    /// The name of the page.
    pub page: String,
    pub memory: Memory,
    /// Programs that compute during the turns.
    pub busy: usize,
    pub beluga: PathBuf,
}

/// A turn of one side.
#[derive(Clone, Copy, Default)]
pub struct ScriptTurn {
    pub told: SysbenchResult,
    /// Of the server, for a transaction.
    pub cpu_us: f64,
    pub rss_bytes: f64,
}

/// A script with a number of threads, and the turns of each side.
pub struct ScriptRow {
    pub script: &'static str,
    pub threads: usize,
    turns: BTreeMap<SqlSide, Vec<ScriptTurn>>,
}

impl ScriptRow {
    pub fn median(&self, side: SqlSide, of: fn(&ScriptTurn) -> f64) -> f64 {
        median(self.turns.get(&side).into_iter().flatten().map(of).collect())
    }
}

/// Returns true if no script lost a connection or met an unexpected error.
pub fn run(setup: &Setup, options: &SysbenchOptions) -> io::Result<bool> {
    let programs = Programs::debian(options.beluga.clone());
    let (rows, lost) = measure(setup, options, &programs)?;
    publish(setup, options, &programs, (&rows, lost))?;
    Ok(true)
}

/// Fills a server of each side and plays all scripts on them. Returns the rows, and the sides whose server has ended.
pub fn measure(
    setup: &Setup,
    options: &SysbenchOptions,
    programs: &Programs,
) -> io::Result<(Vec<ScriptRow>, Vec<SqlSide>)> {
    let mut servers = Vec::new();
    for side in &options.sides {
        eprintln!("sysbench: {} starts and is filled", side.name());
        let folder = setup.place.work.path().join(format!("sql-{}", side.name().to_lowercase()));
        let server = SqlServer::start(*side, programs, &folder, options.memory, "sbtest")?;
        sysbench::prepare(*side, options.data)?;
        server.settle(SETTLE_PATIENCE);
        servers.push(server);
    }
    let _busy = BusyPrograms::start(options.busy)?;
    let mut rows: Vec<ScriptRow> = Vec::new();
    let is_wanted = |script: &&str| options.only.is_empty() || options.only.iter().any(|word| script.contains(&**word));
    for script in SCRIPTS.into_iter().filter(is_wanted) {
        for threads in &options.threads {
            eprintln!("sysbench: {script}, {threads} threads");
            let mut row = ScriptRow { script, threads: *threads, turns: BTreeMap::new() };
            for round in 0..options.rounds {
                play(&mut row, &mut servers, round, options)?;
            }
            rows.push(row);
        }
    }
    let is_lost = |side: &SqlSide| servers.iter().all(|server| server.side != *side);
    let lost = options.sides.iter().copied().filter(is_lost).collect();
    Ok((rows, lost))
}

/// Runs one turn for each side, in alternating order. The kernel kills a peer that exceeds its memory cgroup; the others continue without it.
fn play(row: &mut ScriptRow, servers: &mut Vec<SqlServer>, round: usize, options: &SysbenchOptions) -> io::Result<()> {
    let mut order: Vec<&SqlServer> = servers.iter().collect();
    if round % 2 == 1 {
        order.reverse();
    }
    let mut lost = None;
    for server in order {
        let before = process::usage(server.pid());
        let told = match sysbench::run(server.side, row.script, row.threads, options) {
            Err(error) if !server.side.is_ours() && process::is_dead(server.pid()) => {
                eprintln!("sysbench: {} has ended in {}: {error}", server.side.name(), row.script);
                lost = Some(server.side);
                continue;
            }
            told => told?,
        };
        let rss_bytes = process::rss_bytes(server.pid()) as f64;
        server.settle(SETTLE_PATIENCE);
        let cpu = process::usage(server.pid()).since(before).cpu;
        let cpu_us = cpu.as_secs_f64() * 1e6 / told.transactions.max(1.0);
        row.turns.entry(server.side).or_default().push(ScriptTurn { told, cpu_us, rss_bytes });
    }
    servers.retain(|server| Some(server.side) != lost);
    Ok(())
}

/// The goals of a door: multiples of the better peer's transactions, and fractions of its processor time.
fn goal(ours: SqlSide, script: &str) -> (f64, f64) {
    match (ours, script) {
        (SqlSide::BelugaPostgres, "oltp_point_select") => (3.0, 0.22),
        (SqlSide::BelugaPostgres, "oltp_read_only") => (3.3, 0.2),
        (SqlSide::BelugaPostgres, "oltp_update_index" | "oltp_update_non_index") => (4.2, 0.16),
        (SqlSide::BelugaPostgres, "oltp_insert") => (4.2, 0.14),
        (SqlSide::BelugaPostgres, "oltp_write_only") => (3.5, 0.2),
        (SqlSide::BelugaPostgres, _) => (3.7, 0.18),
        (_, "oltp_point_select") => (1.6, 0.3),
        (_, "oltp_read_only") => (2.0, 0.3),
        _ => (2.0, 0.35),
    }
}

fn publish(
    setup: &Setup,
    options: &SysbenchOptions,
    programs: &Programs,
    (rows, lost): (&[ScriptRow], Vec<SqlSide>),
) -> io::Result<()> {
    let ours = options.sides.iter().copied().find(|side| side.is_ours());
    let mut goals =
        Table::new(&["script", "threads", "TPS × better peer", "goal", "CPU × better peer", "goal", "verdict"]);
    let mut all =
        Table::new(&["script", "threads", "server", "TPS", "p50 ms", "p99 ms", "server CPU us", "RSS MiB", "errors"]);
    for row in rows {
        for side in options.sides.iter().filter(|side| row.turns.contains_key(side)) {
            all.row(vec![
                row.script.into(),
                Cell::Number(row.threads as f64, 0),
                side.name().into(),
                row.median(*side, |turn| turn.told.per_second).into(),
                row.median(*side, |turn| turn.told.p50_ms).into(),
                row.median(*side, |turn| turn.told.p99_ms).into(),
                row.median(*side, |turn| turn.cpu_us).into(),
                Cell::Number(row.median(*side, |turn| turn.rss_bytes) / f64::from(1 << 20), 0),
                row.turns.get(side).into_iter().flatten().map(|turn| turn.told.ignored).sum::<f64>().into(),
            ]);
        }
        let peers = || row.turns.keys().copied().filter(|side| !side.is_ours());
        let best_tps = peers().map(|side| row.median(side, |turn| turn.told.per_second)).fold(0.0, f64::max);
        let best_cpu = peers().map(|side| row.median(side, |turn| turn.cpu_us)).fold(f64::INFINITY, f64::min);
        let Some(ours) = ours.filter(|_| best_tps > 0.0) else { continue };
        let tps = row.median(ours, |turn| turn.told.per_second) / best_tps;
        let cpu = row.median(ours, |turn| turn.cpu_us) / best_cpu;
        // Beside busy programs commits wait for their turn on a processor, and no more is demanded than to be no slower.
        let (want_tps, want_cpu) = if options.busy > 0 { (1.0, 1.0) } else { goal(ours, row.script) };
        let verdict = if tps >= want_tps && cpu <= want_cpu { "pass" } else { "**miss**" };
        let number = |value: f64| Cell::Number(value, 2);
        let cells = [number(tps), format!("≥ {want_tps}").into(), number(cpu), format!("≤ {want_cpu}").into()];
        let mut line: Vec<Cell> = vec![row.script.into(), Cell::Number(row.threads as f64, 0)];
        line.extend(cells);
        line.push(verdict.into());
        goals.row(line);
    }
    let charts = [
        (
            format!("{}-tps", options.page),
            chart(rows, options, "Transactions", "per second", |turn| turn.told.per_second),
        ),
        (
            format!("{}-cpu", options.page),
            chart(rows, options, "Server processor time", "us for a transaction", |turn| turn.cpu_us),
        ),
    ];
    let peers: Vec<&str> = options.sides.iter().filter(|side| !side.is_ours()).map(|side| side.name()).collect();
    let mut page = format!("# sysbench beside {}\n\n", peers.join(" and "));
    page += &setup.machine()?;
    let sides: Vec<String> = options.sides.iter().map(|side| side.name().to_lowercase()).collect();
    page += &format!(
        "- To reproduce: `apt-get install sysbench mariadb-server postgresql` (or `scripts/postgres.sh install`), then `cargo build --release -p server` and \
         `cargo run --release -p bench -- sysbench --sides {} --page {} --out docs/bench`.\n\n",
        sides.join(","),
        options.page,
    );
    let versions: Vec<String> = options.sides.iter().map(|side| programs.version(*side)).collect();
    page += &format!(
        "Servers: {}. Each has {} and acknowledges a commit when it is on disk. {} tables of {} rows; Debian's sysbench{} on the same machine, prepared statements, \
         uniform keys; turns of {:.0} s, {} rounds in alternating order, medians. Server CPU counts until the server is quiet again.\n\n",
        versions.join(", "),
        options.memory.words(),
        options.data.tables,
        grouped(options.data.rows as f64, 0),
        options.script_options.iter().map(|option| format!(" `{option}`")).collect::<String>(),
        options.turn.as_secs_f64(),
        options.rounds,
    );
    if options.busy > 0 {
        page += &format!("Beside them {} shells compute in endless loops (`--busy {0}`).\n\n", options.busy);
    }
    for side in lost {
        page += &format!(
            "{} was killed by the kernel because it exceeded its memory cgroup. Where it has no figure, the other peer is the better one.\n\n",
            side.name()
        );
    }
    if !goals.is_empty() {
        page += &format!("{}\n", goals.markdown());
    }
    for (name, chart) in &charts {
        page += &format!("![{}]({name}.svg)\n\n", chart.title);
    }
    page += &format!("## All figures\n\n{}", all.markdown());
    let charts: Vec<(&str, &Chart)> = charts.iter().map(|(name, chart)| (&**name, chart)).collect();
    setup.publish(&options.page, &page, &[(&options.page, &all)], &charts)
}

fn chart(rows: &[ScriptRow], options: &SysbenchOptions, title: &str, unit: &str, of: fn(&ScriptTurn) -> f64) -> Chart {
    let panel = |row: &ScriptRow| Panel {
        title: format!("{}, {} threads", row.script, row.threads),
        groups: vec![(String::new(), options.sides.iter().map(|side| row.median(*side, of)).collect())],
    };
    Chart {
        title: title.into(),
        unit: unit.into(),
        series: options.sides.iter().map(|side| side.name().to_string()).collect(),
        panels: rows.iter().map(panel).collect(),
        logarithmic: false,
    }
}
