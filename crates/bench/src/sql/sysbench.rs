//! One run of sysbench, and its output.

use std::io;
use std::process::{Command, Stdio};

use crate::sql::SysbenchOptions;
use crate::sql::server::SqlSide;

/// Tables and rows that a script works on.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub tables: usize,
    pub rows: u64,
}

/// The result of a run.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct SysbenchResult {
    pub transactions: f64,
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Errors that sysbench ignores (deadlocks), and lost connections.
    pub ignored: f64,
}

fn command(side: SqlSide, script: &str, data: Data, threads: usize) -> Command {
    let driver = side.driver();
    let mut command = Command::new("sysbench");
    command.arg(script).arg(format!("--db-driver={}", driver.name)).args(driver.arguments);
    command.args([format!("--tables={}", data.tables), format!("--table-size={}", data.rows)]);
    command.args([format!("--threads={threads}"), "--histogram=on".into(), "--rand-type=uniform".into()]);
    command.stdin(Stdio::null());
    command
}

/// Returns the text that sysbench printed, or its error.
fn said(mut command: Command) -> io::Result<String> {
    let output = command.output().map_err(|error| io::Error::other(format!("sysbench: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let all = text + &String::from_utf8_lossy(&output.stderr);
    let fatal: Vec<&str> = all.lines().filter(|line| line.contains("FATAL") || line.contains("rror")).take(3).collect();
    Err(io::Error::other(format!("{command:?}: {}", fatal.join(" | "))))
}

pub fn prepare(side: SqlSide, data: Data) -> io::Result<()> {
    let mut command = command(side, "oltp_read_write", data, data.tables);
    command.arg("prepare");
    said(command).map(drop)
}

pub fn run(side: SqlSide, script: &str, threads: usize, options: &SysbenchOptions) -> io::Result<SysbenchResult> {
    let mut command = command(side, script, options.data, threads);
    command.args(&options.script_options);
    command.args([format!("--time={}", options.turn.as_secs().max(1)), "run".into()]);
    let text = said(command)?;
    parse(&text).ok_or_else(|| io::Error::other(format!("sysbench said nothing that makes sense: {text}")))
}

fn parse(text: &str) -> Option<SysbenchResult> {
    let line = |name: &str| text.lines().map(str::trim).find_map(|line| line.strip_prefix(name));
    let number = |text: &str| text.split_whitespace().next()?.parse::<f64>().ok();
    let transactions = line("transactions:")?;
    let per_second = number(transactions.split_once('(')?.1)?;
    let ignored = number(line("ignored errors:")?)? + number(line("reconnects:")?)?;
    let (p50_ms, p99_ms) = percentiles(text)?;
    Some(SysbenchResult { transactions: number(transactions)?, per_second, p50_ms, p99_ms, ignored })
}

/// From the histogram: `value |bar count`, ascending, in milliseconds.
fn percentiles(text: &str) -> Option<(f64, f64)> {
    let buckets: Vec<(f64, f64)> = text
        .lines()
        .filter_map(|line| {
            let (value, rest) = line.split_once('|')?;
            Some((value.trim().parse().ok()?, rest.split_whitespace().last()?.parse().ok()?))
        })
        .collect();
    let total: f64 = buckets.iter().map(|(_, count)| count).sum();
    let at = |share: f64| {
        let mut seen = 0.0;
        buckets.iter().find(|(_, count)| {
            seen += count;
            seen >= total * share
        })
    };
    Some((at(0.5)?.0, at(0.99)?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sysbench_says_is_understood() {
        let text = "\
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.052 |*                                        1
       0.110 |**********                               60
       0.250 |****                                     38
       9.100 |                                         1

SQL statistics:
    queries performed:
        read:                            100
    transactions:                        100    (49.95 per sec.)
    queries:                             100    (49.95 per sec.)
    ignored errors:                      2      (1.00 per sec.)
    reconnects:                          1      (0.50 per sec.)
";
        let told =
            SysbenchResult { transactions: 100.0, per_second: 49.95, p50_ms: 0.110, p99_ms: 0.250, ignored: 3.0 };
        assert_eq!(parse(text), Some(told));
        assert_eq!(parse("FATAL: nothing"), None);
    }
}
