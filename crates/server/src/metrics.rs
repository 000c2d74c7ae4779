//! The list of counters. The page /metrics, `beluga counters` and the table in docs/operating.md are generated from it.
//!
//! To add a counter: a field in the code that counts, and a row here.

pub mod door;
mod http;
mod rows;

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use door_mysql::MysqlDoor;
use door_redis::RedisDoor;
use door_xrpc::XrpcDoor;
use engine::Engine;
use query::Database;
use reactor::Pool;
use stdx::histogram::Snapshot;

/// Upper bounds of the histogram buckets, in microseconds.
const BOUNDS_US: &[u64] = &[
    10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    5_000_000,
];

/// The parts of the server that count.
pub struct Sources {
    pub engine: Arc<Engine>,
    pub pool: Arc<Pool>,
    pub redis: Arc<RedisDoor>,
    /// None if the door is not open; its lines are then left out.
    pub mysql: Option<Arc<MysqlDoor>>,
    pub xrpc: Option<Arc<XrpcDoor>>,
    /// The database behind the MySQL and XRPC doors.
    pub database: Option<Arc<Database>>,
    pub memory_limit_bytes: u64,
    pub started_ms: u64,
}

#[derive(Clone, Copy)]
enum CounterKind {
    /// Only increases, starting at 0.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Number of values below each of several bounds.
    Histogram,
}

impl CounterKind {
    fn word(self) -> &'static str {
        match self {
            CounterKind::Counter => "counter",
            CounterKind::Gauge => "gauge",
            CounterKind::Histogram => "histogram",
        }
    }
}

struct Row {
    name: &'static str,
    kind: CounterKind,
    help: &'static str,
    read: fn(&Sources, &mut Series<'_>),
}

/// Writes the lines of one row.
struct Series<'a> {
    name: &'static str,
    out: &'a mut String,
}

impl Series<'_> {
    fn value(&mut self, value: impl Display) {
        let _ = writeln!(self.out, "{} {value}", self.name);
    }

    /// Writes a snapshot of nanoseconds as a histogram of seconds. `label` is empty or `name="value"`.
    fn seconds(&mut self, label: &str, times: &Snapshot) {
        let comma = if label.is_empty() { "" } else { "," };
        for bound_us in BOUNDS_US {
            let below = times.count_up_to(bound_us * 1000);
            let _ =
                writeln!(self.out, "{}_bucket{{{label}{comma}le=\"{}\"}} {below}", self.name, *bound_us as f64 / 1e6);
        }
        let braces = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
        let _ = writeln!(self.out, "{}_bucket{{{label}{comma}le=\"+Inf\"}} {}", self.name, times.count);
        let _ = writeln!(self.out, "{}_sum{braces} {}", self.name, times.sum as f64 / 1e9);
        let _ = writeln!(self.out, "{}_count{braces} {}", self.name, times.count);
    }

    fn labelled(&mut self, label: &str, of: &str, value: impl Display) {
        let _ = writeln!(self.out, "{}{{{label}=\"{of}\"}} {value}", self.name);
    }
}

/// Returns the metrics page.
pub fn page(sources: &Sources) -> String {
    let mut out = String::new();
    for row in rows::LIST {
        let _ = writeln!(out, "# HELP {} {}\n# TYPE {} {}", row.name, row.help, row.name, row.kind.word());
        (row.read)(sources, &mut Series { name: row.name, out: &mut out });
    }
    out
}

/// Returns the table in docs/operating.md.
pub fn markdown() -> String {
    let mut out = String::from("| Name | CounterKind | What it counts |\n|---|---|---|\n");
    for row in rows::LIST {
        let _ = writeln!(out, "| `{}` | {} | {} |", row.name, row.kind.word(), row.help);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_cumulative() {
        let histogram = stdx::histogram::Histogram::new();
        [15_000, 15_000, 3_000_000, 9_000_000_000].into_iter().for_each(|ns| histogram.record(ns));
        let mut out = String::new();
        Series { name: "x", out: &mut out }.seconds("door=\"redis\"", &histogram.snapshot());
        for line in [
            "x_bucket{door=\"redis\",le=\"0.00001\"} 0",
            "le=\"0.00002\"} 2",
            "le=\"0.005\"} 3",
            "le=\"5\"} 3",
            "le=\"+Inf\"} 4",
            "x_count{door=\"redis\"} 4",
        ] {
            assert!(out.contains(line), "no {line} in {out}");
        }
    }

    #[test]
    fn every_row_is_whole() {
        for (at, row) in rows::LIST.iter().enumerate() {
            assert!(rows::LIST[..at].iter().all(|r| r.name != row.name), "{}: two rows have this name", row.name);
            assert!(row.help.ends_with('.') && !row.help.contains('\n'), "{}: the help is a sentence", row.name);
            let total = row.name.ends_with("_total");
            assert_eq!(
                total,
                matches!(row.kind, CounterKind::Counter),
                "{}: counters, and only they, end in _total",
                row.name
            );
        }
    }
}
