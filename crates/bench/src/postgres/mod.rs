//! The PostgreSQL door beside PostgreSQL, besides sysbench: pgbench, one client, bulk statements, and idle connections.

mod wire;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine;
use crate::measure::median;
use crate::process;
use crate::setup::Setup;
use crate::sql::{Memory, Programs, SqlServer, SqlSide};
use crate::table::{Cell, Table, grouped};

use wire::Wire;

const SIDES: [SqlSide; 2] = [SqlSide::BelugaPostgres, SqlSide::PostgreSql];
const SETTLE_PATIENCE: Duration = Duration::from_secs(5);
/// More than this times PostgreSQL's transactions in tpcb-like and select-only with 64 clients.
const PGBENCH_GOAL: f64 = 2.5;
/// The most memory of an idle connection, in KiB.
const IDLE_GOAL_KIB: f64 = 64.0;

pub struct PostgresOptions {
    pub rounds: usize,
    pub turn: Duration,
    /// pgbench's scale: 100,000 accounts each.
    pub scale: usize,
    pub clients: Vec<usize>,
    /// Rows of the table for bulk statements.
    pub rows: usize,
    pub idle: usize,
    pub memory_mib: u64,
    pub beluga: PathBuf,
}

/// One figure of each side, a line of the result.
struct Line {
    case: String,
    /// Whether more is better, as of transactions a second; otherwise less is, as of milliseconds.
    is_rate: bool,
    unit: &'static str,
    goal: Option<f64>,
    figures: BTreeMap<SqlSide, Vec<f64>>,
    cpu_us: BTreeMap<SqlSide, Vec<f64>>,
}

impl Line {
    fn new(case: String, unit: &'static str, is_rate: bool, goal: Option<f64>) -> Line {
        Line { case, is_rate, unit, goal, figures: BTreeMap::new(), cpu_us: BTreeMap::new() }
    }

    fn add(&mut self, side: SqlSide, figure: f64, cpu_us: f64) {
        self.figures.entry(side).or_default().push(figure);
        self.cpu_us.entry(side).or_default().push(cpu_us);
    }

    /// Returns how many times better Beluga is.
    fn ratio(&self) -> f64 {
        let [ours, theirs] = SIDES.map(|side| median(self.figures.get(&side).cloned().unwrap_or_default()));
        if self.is_rate { ours / theirs } else { theirs / ours }
    }

    fn cells(&self) -> Vec<Cell> {
        let middle = |of: &BTreeMap<SqlSide, Vec<f64>>, side| median(of.get(&side).cloned().unwrap_or_default());
        let [ours, theirs] = SIDES.map(|side| middle(&self.figures, side));
        let [our_cpu, their_cpu] = SIDES.map(|side| middle(&self.cpu_us, side));
        let verdict = match self.goal {
            None => "",
            Some(goal) if self.ratio() >= goal => "pass",
            Some(_) => "**miss**",
        };
        vec![
            self.case.as_str().into(),
            self.unit.into(),
            ours.into(),
            theirs.into(),
            Cell::Number(self.ratio(), 2),
            self.goal.map_or("".into(), |goal| format!("≥ {goal}").into()),
            verdict.into(),
            our_cpu.into(),
            their_cpu.into(),
            Cell::Number(our_cpu / their_cpu, 2),
        ]
    }
}

/// Returns true if nothing failed.
pub fn run(setup: &Setup, options: &PostgresOptions) -> io::Result<bool> {
    let programs = Programs::debian(options.beluga.clone());
    let mut servers = Vec::new();
    for side in SIDES {
        eprintln!("postgres: {} starts and is filled", side.name());
        let folder = setup.place.work.path().join(format!("pgbench-{}", side.name().to_lowercase()));
        let memory = Memory { mib: options.memory_mib, bounded: false };
        let server = SqlServer::start(side, &programs, &folder, memory, "bench")?;
        said(pgbench(&programs, side).args(["-i", "-q", "-s", &options.scale.to_string()]))?;
        server.settle(SETTLE_PATIENCE);
        servers.push(server);
    }
    let mut lines = Vec::new();
    for clients in &options.clients {
        for script in ["select-only", "tpcb-like"] {
            for mode in ["prepared", "simple"] {
                lines.push(load(&servers, &programs, options, (script, mode, *clients))?);
            }
        }
    }
    lines.extend(bulk(&servers, options)?);
    let idle = idle(&servers, options.idle)?;
    drop(servers);
    publish(setup, options, &programs, &lines, &idle)?;
    Ok(true)
}

fn pgbench(programs: &Programs, side: SqlSide) -> Command {
    let mut command = Command::new(programs.postgres.join("pgbench"));
    command.args(["-h", "127.0.0.1", "-p", &side.port().to_string(), "-U", side.user()]);
    command.env("PGDATABASE", "bench").stdin(Stdio::null());
    command
}

fn said(command: &mut Command) -> io::Result<String> {
    let output = command.output().map_err(|error| io::Error::other(format!("{command:?}: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(io::Error::other(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// Calls `turn` for each side in alternating order; it returns a figure, and the operations by which processor time is divided.
fn rounds(
    line: &mut Line,
    servers: &[SqlServer],
    count: usize,
    turn: &mut dyn FnMut(&SqlServer) -> io::Result<(f64, f64)>,
) -> io::Result<()> {
    for round in 0..count {
        let mut order: Vec<&SqlServer> = servers.iter().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for server in order {
            let before = process::usage(server.pid());
            let (figure, operations) = turn(server)?;
            server.settle(SETTLE_PATIENCE);
            let cpu = process::usage(server.pid()).since(before).cpu;
            line.add(server.side, figure, cpu.as_secs_f64() * 1e6 / operations.max(1.0));
        }
    }
    Ok(())
}

fn load(
    servers: &[SqlServer],
    programs: &Programs,
    options: &PostgresOptions,
    (script, mode, clients): (&str, &str, usize),
) -> io::Result<Line> {
    eprintln!("postgres: pgbench {script}, {mode}, {clients} clients");
    let goal = match clients {
        1 => Some(1.0),
        64 => Some(PGBENCH_GOAL),
        _ => None,
    };
    let mut line = Line::new(format!("pgbench {script}, {mode}, {clients} clients"), "1/s", true, goal);
    rounds(&mut line, servers, options.rounds, &mut |server| {
        let mut command = pgbench(programs, server.side);
        command.args(["-n", "-b", script, "-M", mode, "-c", &clients.to_string(), "-j", "1"]);
        let text = said(command.args(["-T", &options.turn.as_secs().max(1).to_string()]))?;
        let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        let parsed = |name: &str| number(name).and_then(|word| word.parse::<f64>().ok());
        let failed = || io::Error::other(format!("pgbench said nothing that makes sense: {text}"));
        let tps = parsed("tps = ").ok_or_else(failed)?;
        Ok((tps, parsed("number of transactions actually processed: ").ok_or_else(failed)?))
    })?;
    Ok(line)
}

fn wire(side: SqlSide) -> io::Result<Wire> {
    Wire::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, side.port())), side.user(), "bench")
}

/// COPY in both directions, a SELECT and an INSERT of many rows, over one connection.
fn bulk(servers: &[SqlServer], options: &PostgresOptions) -> io::Result<Vec<Line>> {
    eprintln!("postgres: bulk statements");
    let mut data = String::new();
    let mut insert = String::from("insert into bulk values ");
    for row in 0..options.rows {
        let text = format!("some words that make up the text of row {row}, no two alike");
        data += &format!("{row}\t{}.{:02}\t{text}\n", row * 7, row % 100);
        insert += &format!("{}({row}, {}.{:02}, '{text}')", if row == 0 { "" } else { ", " }, row * 7, row % 100);
    }
    const MAKE: &str = "drop table if exists bulk; create table bulk (a int primary key, b numeric(12, 2), c text)";
    let (rows, mib) = (options.rows as f64, data.len() as f64 / f64::from(1 << 20));
    let mut lines = Vec::new();
    let mut case = |name: &str, unit: &'static str, amount: f64, statement: &str, data: &str| -> io::Result<()> {
        let mut line = Line::new(name.into(), unit, true, None);
        rounds(&mut line, servers, options.rounds, &mut |server| {
            let mut wire = wire(server.side)?;
            if !statement.starts_with("select") && !statement.ends_with("stdout") {
                wire.query(MAKE, &[])?;
            }
            let start = Instant::now();
            wire.query(statement, data.as_bytes())?;
            Ok((amount / start.elapsed().as_secs_f64(), rows))
        })?;
        lines.push(line);
        Ok(())
    };
    case("INSERT of all rows in one statement", "rows/s", rows, &insert, "")?;
    case("COPY FROM STDIN, text", "MiB/s", mib, "copy bulk from stdin", &data)?;
    case("COPY TO STDOUT, text", "MiB/s", mib, "copy bulk to stdout", "")?;
    case("SELECT of all rows", "rows/s", rows, "select * from bulk", "")?;
    Ok(lines)
}

/// Returns the bytes of an idle connection of each side, by proportional set size where processes share pages.
fn idle(servers: &[SqlServer], count: usize) -> io::Result<Vec<(SqlSide, f64)>> {
    machine::allow_open_files(count as u64 + 200)?;
    let mut found = Vec::new();
    for server in servers {
        eprintln!("postgres: {count} idle connections of {}", server.side.name());
        let before = process::pss_bytes(server.pid());
        let connections = (0..count)
            .map(|_| {
                let mut wire = wire(server.side)?;
                wire.query("select 1", &[]).map(|_| wire)
            })
            .collect::<io::Result<Vec<_>>>()?;
        server.settle(SETTLE_PATIENCE);
        let more = process::pss_bytes(server.pid()).saturating_sub(before);
        found.push((server.side, more as f64 / count as f64));
        drop(connections);
        server.settle(SETTLE_PATIENCE);
    }
    Ok(found)
}

fn publish(
    setup: &Setup,
    options: &PostgresOptions,
    programs: &Programs,
    lines: &[Line],
    idle: &[(SqlSide, f64)],
) -> io::Result<()> {
    let mut table = Table::new(&[
        "load",
        "unit",
        "Beluga",
        "PostgreSQL",
        "times better",
        "goal",
        "verdict",
        "CPU us",
        "PostgreSQL's",
        "CPU ×",
    ]);
    let misses = |line: &&Line| line.goal.is_some_and(|goal| line.ratio() < goal);
    lines
        .iter()
        .filter(misses)
        .chain(lines.iter().filter(|line| !misses(line)))
        .for_each(|line| table.row(line.cells()));
    let mut page = String::from("# pgbench, bulk statements and idle connections beside PostgreSQL\n\n");
    page += &setup.machine()?;
    page += "- To reproduce: `scripts/postgres.sh install`, then `cargo build --release -p server` and `cargo run --release -p bench -- postgres --out docs/bench`.\n\n";
    let versions: Vec<String> = SIDES.iter().map(|side| programs.version(*side)).collect();
    page += &format!(
        "Servers: {}. Each has {} MiB for its pages, which hold all data, and acknowledges a commit when it is on disk. pgbench has scale {} ({} accounts) and one thread; turns of {:.0} s, {} rounds in \
         alternating order, medians. The table of the bulk statements has {} rows (an int as primary key, a numeric(12, 2), a text of some 60 bytes). Server CPU is for a transaction, of bulk statements for a \
         row, until the server is quiet again. Missed goals come first.\n\n",
        versions.join(", "),
        options.memory_mib,
        options.scale,
        grouped(options.scale as f64 * 1e5, 0),
        options.turn.as_secs_f64(),
        options.rounds,
        grouped(options.rows as f64, 0),
    );
    page += &table.markdown();
    let kib = |side: SqlSide| idle.iter().find(|(known, _)| *known == side).map_or(0.0, |(_, bytes)| bytes / 1024.0);
    let ours = kib(SqlSide::BelugaPostgres);
    page += &format!(
        "\n{} idle connections, each after one `select 1`, take {ours:.1} KiB each (goal: < {IDLE_GOAL_KIB} KiB, {}); PostgreSQL's take {:.0} KiB each, by the proportional set size of its processes.\n",
        grouped(options.idle as f64, 0),
        if ours < IDLE_GOAL_KIB { "pass" } else { "**miss**" },
        kib(SqlSide::PostgreSql),
    );
    setup.publish("postgres", &page, &[("postgres", &table)], &[])
}
