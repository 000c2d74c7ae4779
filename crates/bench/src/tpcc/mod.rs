//! A load like TPC-C's beside MariaDB: nine tables, five transactions in their mix, and afterwards a check of the specification's consistency conditions.
//!
//! This is not TPC-C: there are no terminals with keying and thinking times, no limits on response times, and no audit. The tables, their content, the transactions and their mix are those of the specification.

mod check;
mod data;
mod transactions;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::measure::median;
use crate::process;
use crate::setup::Setup;
use crate::sql::client::{Client, Failure};
use crate::sql::{Memory, Programs, SqlServer, SqlSide};
use crate::table::{Cell, Table};

use data::{Random, Size};
use transactions::{Terminal, TransactionKind};

const SETTLE_PATIENCE: Duration = Duration::from_secs(5);
const DATABASE: &str = "tpcc";

pub struct TpccOptions {
    pub rounds: usize,
    pub turn: Duration,
    pub threads: Vec<usize>,
    pub warehouses: u32,
    /// Items and customers are divided by it: for tests.
    pub scale: u32,
    pub sides: Vec<SqlSide>,
    pub memory_mib: u64,
    pub seed: u64,
    /// A running server: it alone is filled, loaded and checked.
    pub at: Option<u16>,
    pub beluga: PathBuf,
}

/// The counts of a turn.
#[derive(Default)]
struct TpccTurn {
    /// Latencies by kind, of all transactions that were committed or intentionally rolled back.
    times: BTreeMap<TransactionKind, Vec<Duration>>,
    /// Deadlocks and lock wait timeouts; each was retried.
    again: u64,
    elapsed: Duration,
    cpu: Duration,
}

impl TpccTurn {
    fn count(&self) -> usize {
        self.times.values().map(Vec::len).sum()
    }

    /// New-Orders a minute.
    fn per_minute(&self) -> f64 {
        self.times.get(&TransactionKind::NewOrder).map_or(0, Vec::len) as f64 * 60.0
            / self.elapsed.as_secs_f64().max(1e-9)
    }

    fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.count().max(1) as f64
    }

    fn quantile_ms(&self, kind: TransactionKind, quantile: f64) -> f64 {
        const AN_HOUR_US: u64 = 3_600_000_000;
        let mut histogram = Histogram::<u64>::new_with_bounds(1, AN_HOUR_US, 3).expect("three digits");
        for time in self.times.get(&kind).into_iter().flatten() {
            histogram.saturating_record(time.as_micros() as u64);
        }
        histogram.value_at_quantile(quantile) as f64 / 1e3
    }
}

fn named(side: &str, failure: Failure) -> io::Error {
    io::Error::other(format!("{side}: {}", io::Error::from(failure)))
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn fill(name: &str, port: u16, options: &TpccOptions) -> io::Result<()> {
    let size = Size::new(options.warehouses, options.scale);
    let work = || -> Result<(), Failure> {
        Client::connect(address(port), "")?.ask(&format!("create database if not exists {DATABASE}"))?;
        data::fill(&mut Client::connect(address(port), DATABASE)?, size, options.seed)
    };
    work().map_err(|failure| named(name, failure))
}

/// Runs the terminals for the length of a turn. A transaction that meets a deadlock is retried, and its time counts from the first attempt.
fn play(port: u16, options: &TpccOptions, threads: usize, round: usize) -> Result<TpccTurn, Failure> {
    let size = Size::new(options.warehouses, options.scale);
    let turn = Mutex::new(TpccTurn::default());
    let failed = Mutex::new(None);
    let begin = Instant::now();
    let terminal = |number: usize| -> Result<(), Failure> {
        let seed = options.seed ^ (((round as u64) << 32) | (number as u64 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let random = Random::new(seed, options.seed);
        let client = Client::connect(address(port), DATABASE)?;
        let mut terminal = Terminal { client, random, size, home: number as u32 % size.warehouses + 1 };
        let (mut times, mut again) = (BTreeMap::<TransactionKind, Vec<Duration>>::new(), 0);
        while begin.elapsed() < options.turn {
            let (kind, start) = (TransactionKind::draw(&mut terminal.random), Instant::now());
            loop {
                match terminal.play(kind) {
                    Ok(_) => break,
                    Err(failure) if failure.is_transient() => again += 1,
                    Err(failure) => return Err(failure),
                }
            }
            times.entry(kind).or_default().push(start.elapsed());
        }
        let mut turn = turn.lock().expect("nobody panics with it");
        times.into_iter().for_each(|(kind, times)| turn.times.entry(kind).or_default().extend(times));
        turn.again += again;
        Ok(())
    };
    std::thread::scope(|scope| {
        for number in 0..threads {
            let (terminal, failed) = (&terminal, &failed);
            scope.spawn(move || {
                if let Err(failure) = terminal(number) {
                    failed.lock().expect("nobody panics with it").get_or_insert(failure);
                }
            });
        }
    });
    if let Some(failure) = failed.into_inner().expect("nobody panics with it") {
        return Err(failure);
    }
    let mut turn = turn.into_inner().expect("nobody panics with it");
    turn.elapsed = begin.elapsed();
    Ok(turn)
}

/// Prints the violated conditions. Returns true if there are none.
fn check(name: &str, port: u16) -> io::Result<bool> {
    let ask = || check::check(&mut Client::connect(address(port), DATABASE)?);
    let wrong = ask().map_err(|failure| named(name, failure))?;
    wrong.iter().for_each(|line| println!("{name}: {line}"));
    Ok(wrong.is_empty())
}

/// True when every table was consistent afterwards.
pub fn run(setup: &Setup, options: &TpccOptions) -> io::Result<bool> {
    if let Some(port) = options.at {
        return run_at(port, options);
    }
    let programs = Programs::debian(options.beluga.clone());
    let mut servers = Vec::new();
    for side in &options.sides {
        eprintln!("tpcc: {} starts and is filled", side.name());
        let folder = setup.place.work.path().join(format!("tpcc-{}", side.name().to_lowercase()));
        let server =
            SqlServer::start(*side, &programs, &folder, Memory { mib: options.memory_mib, bounded: false }, DATABASE)?;
        fill(side.name(), side.port(), options)?;
        server.settle(SETTLE_PATIENCE);
        servers.push(server);
    }
    let mut turns: BTreeMap<(usize, SqlSide), Vec<TpccTurn>> = BTreeMap::new();
    for threads in &options.threads {
        for round in 0..options.rounds {
            let mut order: Vec<&SqlServer> = servers.iter().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for server in order {
                eprintln!("tpcc: {}, {threads} threads, round {}", server.side.name(), round + 1);
                let before = process::usage(server.pid());
                let turn = play(server.side.port(), options, *threads, round);
                let mut turn = turn.map_err(|failure| named(server.side.name(), failure))?;
                server.settle(SETTLE_PATIENCE);
                turn.cpu = process::usage(server.pid()).since(before).cpu;
                turns.entry((*threads, server.side)).or_default().push(turn);
            }
        }
    }
    let mut is_consistent = true;
    for server in &servers {
        is_consistent &= check(server.side.name(), server.side.port())?;
    }
    drop(servers);
    publish(setup, options, &programs, &turns, is_consistent)?;
    Ok(is_consistent)
}

fn run_at(port: u16, options: &TpccOptions) -> io::Result<bool> {
    fill("the server", port, options)?;
    let mut is_consistent = check("freshly filled", port)?;
    for threads in &options.threads {
        for round in 0..options.rounds {
            let turn = play(port, options, *threads, round).map_err(|failure| named("the server", failure))?;
            is_consistent &= check("the server", port)?;
            println!(
                "{threads} threads, round {}: {} transactions, {:.0} New-Orders a minute, {} tried again, {}",
                round + 1,
                turn.count(),
                turn.per_minute(),
                turn.again,
                if is_consistent { "consistent" } else { "NOT consistent" }
            );
            is_consistent &= turn.count() > 0;
        }
    }
    Ok(is_consistent)
}

fn publish(
    setup: &Setup,
    options: &TpccOptions,
    programs: &Programs,
    turns: &BTreeMap<(usize, SqlSide), Vec<TpccTurn>>,
    is_consistent: bool,
) -> io::Result<()> {
    let mut whole =
        Table::new(&["threads", "server", "New-Orders a minute", "server CPU us a transaction", "tried again"]);
    let mut each = Table::new(&["threads", "server", "transaction", "share %", "p50 ms", "p99 ms"]);
    for ((threads, side), turns) in turns {
        let middle = |of: &dyn Fn(&TpccTurn) -> f64| median(turns.iter().map(of).collect());
        whole.row(vec![
            Cell::Number(*threads as f64, 0),
            side.name().into(),
            Cell::Number(middle(&TpccTurn::per_minute), 0),
            Cell::Number(middle(&TpccTurn::cpu_us), 0),
            Cell::Number(turns.iter().map(|turn| turn.again as f64).sum(), 0),
        ]);
        for kind in TransactionKind::ALL {
            let share =
                |turn: &TpccTurn| turn.times.get(&kind).map_or(0, Vec::len) as f64 * 100.0 / turn.count().max(1) as f64;
            each.row(vec![
                Cell::Number(*threads as f64, 0),
                side.name().into(),
                kind.name().into(),
                Cell::Number(middle(&share), 1),
                Cell::Number(middle(&|turn| turn.quantile_ms(kind, 0.5)), 2),
                Cell::Number(middle(&|turn| turn.quantile_ms(kind, 0.99)), 2),
            ]);
        }
    }
    let versions: Vec<String> = options.sides.iter().map(|side| programs.version(*side)).collect();
    let mut page = String::from("# A load like TPC-C's, beside MariaDB\n\n");
    page += &setup.machine()?;
    page += "- To reproduce: `apt-get install mariadb-server`, then `cargo build --release -p server` and `cargo run --release -p bench -- tpcc --out docs/bench`.\n\n";
    page += &format!(
        "Servers: {}. Each has {} MiB for its pages and acknowledges a commit when it is on disk. {} warehouses{}, REPEATABLE READ, statements as text from the same machine, no keying or thinking time; turns of \
         {:.0} s, {} rounds in alternating order, medians. This is not TPC-C and its figures are not tpmC: there are no terminals with waiting times, and no audit. A transaction that meets a deadlock is retried, and \
         its time counts from the first attempt.\n\n",
        versions.join(", "),
        options.memory_mib,
        options.warehouses,
        if options.scale > 1 {
            format!(" with a {}th of the items and customers", options.scale)
        } else {
            String::new()
        },
        options.turn.as_secs_f64(),
        options.rounds,
    );
    let verdict = if is_consistent { "all hold" } else { "**some are violated**" };
    page += &format!(
        "After the last round consistency conditions 1 to 10 and 12 were checked on each server: {verdict}.\n\n"
    );
    page += &format!("{}\n## Each transaction\n\n{}", whole.markdown(), each.markdown());
    setup.publish("tpcc", &page, &[("tpcc", &whole), ("tpcc-each", &each)], &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_tells_how_long_its_transactions_took() {
        let times = (1..=100).map(Duration::from_millis).collect();
        let turn = TpccTurn { times: BTreeMap::from([(TransactionKind::NewOrder, times)]), ..TpccTurn::default() };
        assert!((turn.quantile_ms(TransactionKind::NewOrder, 0.5) - 50.0).abs() < 0.1);
        assert!((turn.quantile_ms(TransactionKind::NewOrder, 0.99) - 99.0).abs() < 0.1);
    }
}
