//! What is counted: one list, from which come the page at /metrics, `beluga counters` and the table in docs/operating.md.
//!
//! To add a counter: a field where it is counted, and a row here.

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

/// Upper bounds of the histograms' buckets, in microseconds.
const BOUNDS_US: &[u64] = &[
    10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    5_000_000,
];

/// Where the counts are.
pub struct Sources {
    pub engine: Arc<Engine>,
    pub pool: Arc<Pool>,
    pub redis: Arc<RedisDoor>,
    /// None: it is not open, and its lines are left out.
    pub mysql: Option<Arc<MysqlDoor>>,
    pub xrpc: Option<Arc<XrpcDoor>>,
    /// The tables behind those two.
    pub database: Option<Arc<Database>>,
    pub memory_limit_bytes: u64,
    pub started_ms: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Only grows, from 0 at the start.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How many lay below each of some bounds.
    Histogram,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

struct Row {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    read: fn(&Sources, &mut Series<'_>),
}

/// The lines of one row.
struct Series<'a> {
    name: &'static str,
    out: &'a mut String,
}

impl Series<'_> {
    fn value(&mut self, value: impl Display) {
        let _ = writeln!(self.out, "{} {value}", self.name);
    }

    /// Times in nanoseconds as a histogram in seconds; `label` is empty or `name="value"`.
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

/// The text that a collector reads.
pub fn page(sources: &Sources) -> String {
    let mut out = String::new();
    for row in rows::LIST {
        let _ = writeln!(out, "# HELP {} {}\n# TYPE {} {}", row.name, row.help, row.name, row.kind.word());
        (row.read)(sources, &mut Series { name: row.name, out: &mut out });
    }
    out
}

/// The table of docs/operating.md.
pub fn markdown() -> String {
    let mut out = String::from("| Name | Kind | What it counts |\n|---|---|---|\n");
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
                matches!(row.kind, Kind::Counter),
                "{}: counters, and only they, end in _total",
                row.name
            );
        }
    }
}
