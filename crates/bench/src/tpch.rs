//! TPC-H's 22 queries against one of Beluga's SQL doors and a peer of the same protocol: the same rows (`generate`), the same client, answers compared to the letter, times as medians of rounds in
//! alternating order.
//!
//! A time is the server's own clock, read by a statement before and one after the query. So neither the client's start nor its printing counts.

mod generate;
mod queries;
mod words;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::measure::median;
use crate::process;
use crate::setup::Setup;
use crate::sql::{Memory, Programs, SqlServer, SqlSide};
use crate::table::{Cell, Table, grouped};

use generate::Sizes;

const SETTLE_PATIENCE: Duration = Duration::from_secs(10);
/// A query that takes longer has failed.
const PATIENCE_S: u64 = 600;

pub struct TpchOptions {
    /// Beluga's door, and the peer of the same protocol.
    pub sides: [SqlSide; 2],
    /// The name of the page.
    pub page: String,
    pub scale: f64,
    pub rounds: usize,
    /// Numbers of queries.
    pub only: Vec<usize>,
    pub memory_mib: u64,
    pub beluga: PathBuf,
}

/// A query, and what each side made of it.
struct QueryRow {
    number: usize,
    lines: usize,
    /// In milliseconds, Beluga's and the peer's.
    times: [Vec<f64>; 2],
    /// The difference between the answers.
    trouble: Option<String>,
}

/// True when all answers were the same.
pub fn run(setup: &Setup, options: &TpchOptions) -> io::Result<bool> {
    let programs = Programs::debian(options.beluga.clone());
    let mut servers = Vec::new();
    let mut loads = Vec::new();
    for side in options.sides {
        eprintln!("tpch: {} starts and is filled", side.name());
        let folder = setup.place.work.path().join(format!("tpch-{}", side.name().to_lowercase()));
        let server =
            SqlServer::start(side, &programs, &folder, Memory { mib: options.memory_mib, bounded: false }, "tpch")?;
        let start = Instant::now();
        fill(&server, &programs, options.scale)?;
        loads.push(start.elapsed());
        server.settle(SETTLE_PATIENCE);
        servers.push(server);
    }
    let mut rows = Vec::new();
    for number in 1..=queries::QUERIES.len() {
        if options.only.is_empty() || options.only.contains(&number) {
            let row = play(number, &servers, &programs, options)?;
            eprintln!(
                "tpch: Q{number}: {:.1} ms, {:.1} ms{}",
                median(row.times[0].clone()),
                median(row.times[1].clone()),
                row.trouble.as_ref().map_or(String::new(), |trouble| format!(", DIFFERENT: {trouble}"))
            );
            rows.push(row);
        }
    }
    let rss: Vec<f64> = servers.iter().map(|server| process::rss_bytes(server.pid()) as f64).collect();
    drop(servers);
    publish(setup, options, &programs, &rows, (&loads, &rss))?;
    Ok(rows.iter().all(|row| row.trouble.is_none()))
}

fn client(server: &SqlServer, programs: &Programs) -> Command {
    let port = server.side.port().to_string();
    if server.side.speaks_mysql() {
        let mut command = Command::new(&programs.mariadb);
        command.args(["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", server.side.user()]);
        command.args(["--skip-ssl", "--batch", "--skip-column-names", "tpch"]);
        return command;
    }
    let mut command = Command::new(programs.postgres.join("psql"));
    command.args(["-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1"]);
    command.args(["-h", "127.0.0.1", "-p", &port, "-U", server.side.user(), "-d", "tpch"]);
    command
}

/// Creates the tables, fills them, and lets the server look at them.
fn fill(server: &SqlServer, programs: &Programs, scale: f64) -> io::Result<()> {
    let mut child = client(server, programs).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let pipe = child.stdin.take().ok_or_else(|| io::Error::other("the client has no input"))?;
    let mut out = BufWriter::with_capacity(1 << 20, pipe);
    let written = out
        .write_all(generate::tables(server.side.speaks_mysql()).as_bytes())
        .and_then(|()| generate::write(scale, &mut out))
        .and_then(|()| {
            let table = if server.side.speaks_mysql() { " table" } else { "" };
            writeln!(out, "analyze{table} region, nation, supplier, part, partsupp, customer, orders, lineitem;")
        })
        .and_then(|()| out.flush());
    drop(out);
    let status = child.wait()?;
    if status.success() {
        written
    } else {
        Err(io::Error::other(format!("{} could not be filled", server.side.name())))
    }
}

/// The query as it is at this scale.
fn query(number: usize, scale: f64) -> String {
    // The specification's fraction is of a scale factor of 1; its quantity finds nothing in very few orders.
    let fraction = format!("{:.10}", 0.0001 / scale);
    let quantity = if scale < 0.1 { "250" } else { "300" };
    queries::QUERIES[number - 1].replace("{fraction}", &fraction).replace("{quantity}", quantity)
}

/// The rows as the client prints them, and the time in milliseconds.
fn ask(server: &SqlServer, programs: &Programs, query: &str) -> io::Result<Result<(String, f64), String>> {
    let mut command = Command::new("timeout");
    let inner = client(server, programs);
    command.arg(PATIENCE_S.to_string()).arg(inner.get_program()).args(inner.get_args());
    if server.side.speaks_mysql() {
        const CLOCK: &str = "select 'at', timestampdiff(microsecond, '2020-01-01', sysdate(6));";
        command.args(["-e", &format!("{CLOCK} {query}; {CLOCK}")]);
    } else {
        const CLOCK: &str = "select 'at', extract(epoch from clock_timestamp()) * 1000000";
        command.args(["-c", CLOCK, "-c", query, "-c", CLOCK]);
    }
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Ok(Err(if said.is_empty() { format!("no answer after {PATIENCE_S} s") } else { said }));
    }
    let lines: Vec<&str> = text.lines().collect();
    let clock = |line: Option<&&str>| line.and_then(|line| line.strip_prefix("at\t")?.parse::<f64>().ok());
    let (Some(from), Some(to)) = (clock(lines.first()), clock(lines.last())) else {
        return Ok(Err("the client says nothing that makes sense".into()));
    };
    Ok(Ok((lines[1..lines.len() - 1].join("\n"), (to - from) / 1000.0)))
}

/// Runs all rounds of one query. A server's first run, which brings data into memory, is not measured.
fn play(number: usize, servers: &[SqlServer], programs: &Programs, options: &TpchOptions) -> io::Result<QueryRow> {
    let query = query(number, options.scale);
    let mut row = QueryRow { number, lines: 0, times: [Vec::new(), Vec::new()], trouble: None };
    let mut first: Vec<String> = Vec::new();
    for server in servers {
        match ask(server, programs, &query)? {
            Ok((answer, _)) => first.push(answer),
            Err(trouble) => {
                row.trouble = Some(format!("{}: {trouble}", server.side.name()));
                return Ok(row);
            }
        }
    }
    row.lines = first[1].lines().count();
    row.trouble = difference(&first[0], &first[1]);
    for round in 0..options.rounds {
        let mut order: Vec<usize> = (0..servers.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            match ask(&servers[at], programs, &query)? {
                Ok((answer, time)) => {
                    row.times[at].push(time);
                    let again = (answer != first[at]).then(|| format!("{} answers anew", servers[at].side.name()));
                    row.trouble = row.trouble.or(again);
                }
                Err(trouble) => row.trouble = Some(format!("{}: {trouble}", servers[at].side.name())),
            }
        }
    }
    Ok(row)
}

/// The first line that is not the same.
fn difference(ours: &str, theirs: &str) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let (mut a, mut b) = (ours.lines(), theirs.lines());
    let mut line = 1;
    loop {
        match (a.next(), b.next()) {
            (Some(ours), Some(theirs)) if ours == theirs => line += 1,
            (ours, theirs) => {
                let shown = |line: Option<&str>| line.unwrap_or("nothing").to_string();
                return Some(format!("line {line}: {} for {}", shown(ours), shown(theirs)));
            }
        }
    }
}

fn publish(
    setup: &Setup,
    options: &TpchOptions,
    programs: &Programs,
    rows: &[QueryRow],
    (loads, rss): (&[Duration], &[f64]),
) -> io::Result<()> {
    let [ours, peer] = options.sides.map(SqlSide::name);
    let heads = [
        "query".into(),
        "rows".into(),
        format!("{ours} ms"),
        format!("{peer} ms"),
        format!("times {peer}'s"),
        "answers".into(),
    ];
    let mut table = Table::new(&heads.each_ref().map(String::as_str));
    let mut sums = [0.0, 0.0];
    for row in rows {
        let [ours, theirs] = [0, 1].map(|side| median(row.times[side].clone()));
        (sums[0], sums[1]) = (sums[0] + ours, sums[1] + theirs);
        table.row(vec![
            format!("Q{}", row.number).into(),
            Cell::Number(row.lines as f64, 0),
            Cell::Number(ours, 1),
            Cell::Number(theirs, 1),
            Cell::Number(ours / theirs, 2),
            row.trouble.clone().map_or("the same".into(), |trouble| format!("**{trouble}**")).into(),
        ]);
    }
    table.row(vec![
        "all".into(),
        "".into(),
        Cell::Number(sums[0], 1),
        Cell::Number(sums[1], 1),
        Cell::Number(sums[0] / sums[1], 2),
        "".into(),
    ]);
    let sizes = Sizes::of(options.scale);
    let mut page = format!("# TPC-H's queries beside {peer}\n\n");
    page += &setup.machine()?;
    page += &format!(
        "- To reproduce: `{}`, then `cargo build --release -p server` and `cargo run --release -p bench -- tpch --sides {} --page {} --scale {} --out docs/bench`.\n\n",
        if options.sides[1].speaks_mysql() { "apt-get install mariadb-server" } else { "scripts/postgres.sh install" },
        options.sides.map(|side| side.name().to_lowercase()).join(","),
        options.page,
        options.scale
    );
    let versions: Vec<String> = options.sides.iter().map(|side| programs.version(*side)).collect();
    page += &format!(
        "Servers: {}. Each has {} MiB for its pages; all rows are in memory. Scale factor {}: {} orders, {} customers, {} parts. {} rounds in alternating order after an uncounted one; medians of \
         a query's time by the server's own clock. Answers are compared letter by letter, in order.\n\n\
         This is not a result of TPC-H: rows come from a generator of this program that has dbgen's sizes, keys, ranges and links between tables, but draws its texts word by word and all values uniformly; \
         parameters are the specification's validation parameters; ORDER BY is completed where it is ambiguous; there are no refreshes and no throughput test. Tables have their primary keys and \
         indexes over foreign keys and over `o_orderdate` and `l_shipdate`.\n\n",
        versions.join(", "),
        options.memory_mib,
        options.scale,
        grouped(sizes.orders as f64, 0),
        grouped(sizes.customers as f64, 0),
        grouped(sizes.parts as f64, 0),
        options.rounds,
    );
    page += &table.markdown();
    page += &format!(
        "\nLoading took {:.0} s and {:.0} s by INSERTs of 500 rows, one connection; afterwards the servers held {:.0} and {:.0} MiB.\n",
        loads[0].as_secs_f64(),
        loads[1].as_secs_f64(),
        rss[0] / f64::from(1 << 20),
        rss[1] / f64::from(1 << 20),
    );
    setup.publish(&options.page, &page, &[(&options.page, &table)], &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_told() {
        assert_eq!(difference("a\nb", "a\nb"), None);
        assert_eq!(difference("a\nb", "a\nc").as_deref(), Some("line 2: b for c"));
        assert_eq!(difference("a", "a\nc").as_deref(), Some("line 2: nothing for c"));
    }

    #[test]
    fn queries_are_whole_at_any_scale() {
        for number in 1..=22 {
            assert!(!query(number, 0.01).contains(['{', '}']), "Q{number}");
        }
        assert!(query(11, 0.1).contains("* 0.0010000000"));
    }
}
