//! Beluga through other people's clients: redis-benchmark and sysbench, and this program's load one reply at a time, beside redis-server and MariaDB.
//!
//! Servers take turns in an order that alternates; a figure is the median over the rounds. Redis has its log on disk before it answers a SET, as Beluga has.

pub mod redis_benchmark;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::cases::{Arena, Effort};
use crate::load::{Range, Shape, Traffic, Until};
use crate::measure::{Figures, measure};
use crate::server::{Launch, Server, Side};
use crate::setup::Setup;
use crate::sql;
use crate::table::{Cell, Table};

pub struct ClientsOptions {
    pub effort: Effort,
    /// Connections, and the requests in flight on each.
    pub levels: Vec<(usize, usize)>,
    pub sql: sql::SysbenchOptions,
}

/// Both clients choose among the same keys: redis-benchmark's `key:` and twelve digits.
const KEYS: u64 = 100_000;
const VALUE_BYTES: usize = 128;
const SCRIPTS: [&str; 3] = ["oltp_point_select", "oltp_read_write", "oltp_write_only"];
const SIDES: [Side; 2] = [Side::Beluga, Side::RedisAlways];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Ping,
    Get,
    Set,
}

impl Operation {
    const ALL: [Operation; 3] = [Operation::Ping, Operation::Get, Operation::Set];

    fn name(self) -> &'static str {
        ["PING", "GET", "SET"][self as usize]
    }

    /// redis-benchmark's name for it.
    fn test(self) -> &'static str {
        ["ping_mbulk", "get", "set"][self as usize]
    }

    fn traffic(self) -> Traffic {
        match self {
            Operation::Ping => Traffic::Ping,
            Operation::Get => Traffic::mix(0, 1),
            Operation::Set => Traffic::mix(1, 0),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClientProgram {
    RedisBenchmark,
    OneByOne,
}

impl ClientProgram {
    const ALL: [ClientProgram; 2] = [ClientProgram::RedisBenchmark, ClientProgram::OneByOne];

    fn name(self) -> &'static str {
        match self {
            ClientProgram::RedisBenchmark => "redis-benchmark",
            ClientProgram::OneByOne => "bench load",
        }
    }
}

/// One client with one load, against Beluga and against its peer.
#[derive(Clone, Debug)]
struct ClientRow {
    client: &'static str,
    load: String,
    peer: &'static str,
    ours: Figures,
    theirs: Figures,
}

impl ClientRow {
    fn speed(&self) -> f64 {
        self.ours.operations_per_second / self.theirs.operations_per_second.max(1e-9)
    }

    fn cpu(&self) -> f64 {
        self.ours.server_cpu_us / self.theirs.server_cpu_us.max(1e-9)
    }

    fn tail(&self) -> f64 {
        self.ours.p99_ms / self.theirs.p99_ms.max(1e-9)
    }

    /// In throughput or processor time.
    fn falls_short(&self) -> bool {
        self.speed() < 1.0 || self.cpu() > 1.0
    }
}

/// Returns true if no request failed and every program was found.
pub fn run(setup: &Setup, options: &ClientsOptions) -> io::Result<bool> {
    let programs = sql::Programs::debian(options.sql.beluga.clone());
    let mut missing = Vec::new();
    let mut rows = Vec::new();
    if programs.mariadbd.exists() && is_there("sysbench".into()) {
        rows.extend(sysbench(setup, &options.sql, &programs)?);
    } else {
        missing.push("sysbench or mariadbd");
    }
    let redis_benchmark = redis_benchmark::program(&setup.place.redis);
    if is_there(redis_benchmark) && is_there(setup.place.redis.clone()) {
        rows.extend(redis(setup, options)?);
    } else {
        missing.push("redis-server or redis-benchmark");
    }
    for what in &missing {
        eprintln!("clients: {what} is not installed");
    }
    publish(setup, options, &rows, &missing)?;
    Ok(missing.is_empty() && rows.iter().all(|row| row.ours.errors + row.theirs.errors == 0.0))
}

pub fn is_there(program: PathBuf) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn redis(setup: &Setup, options: &ClientsOptions) -> io::Result<Vec<ClientRow>> {
    let arena = Arena::open(&SIDES, &setup.place, "clients", &Launch::default())?;
    fill(&arena)?;
    let mut cases = Vec::new();
    for (connections, pipeline) in &options.levels {
        for operation in Operation::ALL {
            cases.extend(ClientProgram::ALL.map(|client| ClientCase {
                client,
                operation,
                connections: *connections,
                pipeline: *pipeline,
                turns: BTreeMap::new(),
                requests: BTreeMap::new(),
            }));
        }
    }
    // All cases in every round, so that a noisy minute hits all of them alike.
    for round in 0..options.effort.rounds {
        for case in &mut cases {
            eprintln!("clients: round {}: {}, {}", round + 1, case.client.name(), case.load());
            let mut order: Vec<&Server> = arena.servers.iter().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for server in order {
                let figures = case.turn(setup, server, options, round)?;
                case.turns.entry(server.side).or_default().push(figures);
            }
        }
    }
    Ok(cases.iter().map(ClientCase::row).collect())
}

/// Writes every key: the numbers of a load have no leading zeros, so each count of digits has a prefix of its own.
fn fill(arena: &Arena) -> io::Result<()> {
    let mut min = 0;
    while min < KEYS {
        let max = (min.max(1) * 10 - 1).min(KEYS - 1);
        arena.fill(|server| Shape { keys: Range { min, max }, prefix: prefix(max), ..shape(server) })?;
        min = max + 1;
    }
    Ok(())
}

/// The front of keys that have as many digits as `number`.
fn prefix(number: u64) -> String {
    format!("key:{}", "0".repeat(12 - number.to_string().len()))
}

fn shape(server: &Server) -> Shape {
    Shape { value_bytes: VALUE_BYTES, ..server.shape() }
}

struct ClientCase {
    client: ClientProgram,
    operation: Operation,
    connections: usize,
    pipeline: usize,
    turns: BTreeMap<Side, Vec<Figures>>,
    /// redis-benchmark plays a number of requests, not a time.
    requests: BTreeMap<Side, u64>,
}

impl ClientCase {
    fn load(&self) -> String {
        let (operation, connections) = (self.operation.name(), self.connections);
        let plural = if connections == 1 { "" } else { "s" };
        match self.pipeline {
            1 => format!("{operation}, {connections} connection{plural}"),
            pipeline => format!("{operation}, {connections} connection{plural}, pipeline {pipeline}"),
        }
    }

    fn turn(&mut self, setup: &Setup, server: &Server, options: &ClientsOptions, round: usize) -> io::Result<Figures> {
        let effort = &options.effort;
        if self.client == ClientProgram::OneByOne {
            // The five-digit keys are nine of ten that redis-benchmark chooses.
            let shape = Shape {
                connections: self.connections,
                threads: effort.threads.min(self.connections),
                pipeline: self.pipeline,
                one_by_one: true,
                traffic: self.operation.traffic(),
                keys: Range { min: KEYS / 10, max: KEYS - 1 },
                prefix: prefix(KEYS - 1),
                until: Until::Time(effort.turn),
                seed: round as u64 + 1,
                ..shape(server)
            };
            return measure(server, &shape);
        }
        let load = redis_benchmark::Load {
            program: redis_benchmark::program(&setup.place.redis),
            operation: vec!["-t", self.operation.test()],
            connections: self.connections,
            pipeline: self.pipeline,
            threads: effort.threads.min(self.connections),
            keys: KEYS,
            value_bytes: VALUE_BYTES,
        };
        let requests = match self.requests.get(&server.side) {
            Some(requests) => *requests,
            None => load.requests_for(server, effort.turn, |_| Ok(()))?,
        };
        self.requests.insert(server.side, requests);
        load.measure(server, requests)
    }

    fn row(&self) -> ClientRow {
        let median = |side| Figures::median(self.turns.get(&side).map_or(&[], |turns| &turns[..]));
        ClientRow {
            client: self.client.name(),
            load: self.load(),
            peer: "Redis",
            ours: median(Side::Beluga),
            theirs: median(Side::RedisAlways),
        }
    }
}

fn sysbench(setup: &Setup, options: &sql::SysbenchOptions, programs: &sql::Programs) -> io::Result<Vec<ClientRow>> {
    let (measured, lost) = sql::measure(setup, options, programs)?;
    if !lost.is_empty() {
        return Err(io::Error::other(format!("{lost:?} has ended under sysbench")));
    }
    let figures = |row: &sql::ScriptRow, side| Figures {
        operations_per_second: row.median(side, |turn| turn.told.per_second),
        p50_ms: row.median(side, |turn| turn.told.p50_ms),
        p99_ms: row.median(side, |turn| turn.told.p99_ms),
        server_cpu_us: row.median(side, |turn| turn.cpu_us),
        ..Figures::default()
    };
    Ok(measured
        .iter()
        .map(|row| ClientRow {
            client: "sysbench",
            load: format!("{}, {} thread{}", row.script, row.threads, if row.threads == 1 { "" } else { "s" }),
            peer: "MariaDB",
            ours: figures(row, sql::SqlSide::Beluga),
            theirs: figures(row, sql::SqlSide::MariaDb),
        })
        .collect())
}

/// The sysbench scripts to run.
pub fn scripts() -> Vec<String> {
    SCRIPTS.map(str::to_string).to_vec()
}

fn table(rows: &[&ClientRow]) -> Table {
    let mut table = Table::new(&[
        "client",
        "load",
        "peer",
        "Beluga per second",
        "peer per second",
        "speed ×",
        "Beluga CPU us",
        "peer CPU us",
        "CPU ×",
        "Beluga p50 ms",
        "peer p50 ms",
        "Beluga p99 ms",
        "peer p99 ms",
        "p99 ×",
    ]);
    for row in rows {
        let number = |number: f64, decimals| Cell::Number(number, decimals);
        let (ours, theirs) = (&row.ours, &row.theirs);
        table.row(vec![
            row.client.into(),
            row.load.clone().into(),
            row.peer.into(),
            number(ours.operations_per_second, 0),
            number(theirs.operations_per_second, 0),
            number(row.speed(), 2),
            number(ours.server_cpu_us, 2),
            number(theirs.server_cpu_us, 2),
            number(row.cpu(), 2),
            number(ours.p50_ms, 3),
            number(theirs.p50_ms, 3),
            number(ours.p99_ms, 3),
            number(theirs.p99_ms, 3),
            number(row.tail(), 2),
        ]);
    }
    table
}

/// Slowest beside the peer first: those that fall short, and the others.
fn sorted(rows: &[ClientRow]) -> (Vec<&ClientRow>, Vec<&ClientRow>) {
    let mut all: Vec<&ClientRow> = rows.iter().collect();
    all.sort_by(|a, b| a.speed().total_cmp(&b.speed()));
    all.into_iter().partition(|row| row.falls_short())
}

fn publish(setup: &Setup, options: &ClientsOptions, rows: &[ClientRow], missing: &[&str]) -> io::Result<()> {
    let (short, other) = sorted(rows);
    let mut page = String::from("# Beluga through redis-benchmark, a load of single replies, and sysbench\n\n");
    page += &setup.machine()?;
    page += "- To reproduce: `apt-get install redis-server redis-tools sysbench mariadb-server`, then `cargo build --release -p server` and \
             `cargo run --release -p bench -- clients --out docs/bench`.\n";
    page += &format!(
        "- Measured with `--rounds {} --seconds {} --threads {} --sysbench-threads {} --levels {}`.\n\n",
        options.effort.rounds,
        options.effort.turn.as_secs_f64(),
        options.effort.threads,
        options.sql.threads.iter().map(|threads| threads.to_string()).collect::<Vec<_>>().join(","),
        options.levels.iter().map(|level| format!("{}x{}", level.0, level.1)).collect::<Vec<_>>().join(","),
    );
    let programs = sql::Programs::debian(options.sql.beluga.clone());
    page += &format!(
        "Servers: {}, {}. Redis runs with `appendfsync always`, MariaDB with `innodb_flush_log_at_trx_commit=1`; Beluga runs with its default, which is as strict. \
         `redis-benchmark` and `bench load --one-by-one` use {} thread{}, {KEYS} keys that all exist, values of {VALUE_BYTES} bytes (redis-benchmark's are one letter, those of `bench load` random). \
         redis-benchmark takes all replies of a connection that have arrived; `bench load --one-by-one` waits, receives and sends once for each. sysbench has {} tables of {} rows, \
         prepared statements and uniform keys; an operation is a transaction. Turns alternate, figures are medians. Server CPU is that of the server's process per operation, until the process is quiet again. \
         Speed × is Beluga's throughput as a multiple of the peer's (above 1: Beluga is faster); CPU × and p99 × are likewise (below 1: Beluga takes less). \
         Client and server share the processors, and a client that is slower than the server bounds both: server CPU is then more telling than speed.\n\n",
        setup.place.versions().join(", "),
        programs.version(sql::SqlSide::MariaDb),
        options.effort.threads,
        if options.effort.threads == 1 { "" } else { "s" },
        options.sql.data.tables,
        options.sql.data.rows,
    );
    for what in missing {
        page += &format!("**Not measured: {what} was not installed.**\n\n");
    }
    page += "## Slower than the peer, or more CPU\n\n";
    page += &if short.is_empty() { "None.\n".to_string() } else { table(&short).markdown() };
    page += "\n## The others\n\n";
    page += &if other.is_empty() { "None.\n".to_string() } else { table(&other).markdown() };
    let all: Vec<&ClientRow> = rows.iter().collect();
    setup.publish("clients", page.trim_end(), &[("clients", &table(&all))], &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(speed: f64, cpu: f64) -> ClientRow {
        let figures = |per_second, server_cpu_us| Figures {
            operations_per_second: per_second,
            server_cpu_us,
            ..Figures::default()
        };
        ClientRow {
            client: "bench load",
            load: "GET".into(),
            peer: "Redis",
            ours: figures(speed, cpu),
            theirs: figures(1.0, 1.0),
        }
    }

    #[test]
    fn rows_that_fall_short_stand_first_the_slowest_at_the_top() {
        let rows = [row(1.5, 0.5), row(0.9, 0.5), row(1.2, 1.1), row(0.5, 2.0), row(1.0, 1.0)];
        let (short, other) = sorted(&rows);
        let speeds = |rows: &[&ClientRow]| rows.iter().map(|row| row.speed()).collect::<Vec<_>>();
        assert_eq!((speeds(&short), speeds(&other)), (vec![0.5, 0.9, 1.2], vec![1.0, 1.5]));
        assert_eq!(table(&short).markdown().lines().count(), 5);
    }

    #[test]
    fn keys_are_those_of_redis_benchmark() {
        assert_eq!(prefix(9) + "7", "key:000000000007");
        assert_eq!(prefix(KEYS - 1) + "12345", "key:000000012345");
    }
}
