//! One counter: its row in the list, and how its lines are written.

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use door_mysql::MysqlDoor;
use door_postgres::PostgresDoor;
use door_redis::RedisDoor;
use door_xrpc::XrpcDoor;
use engine::Engine;
use reactor::Pool;
use sql_mysql::Database;
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
    pub postgres: Option<Arc<PostgresDoor>>,
    pub xrpc: Option<Arc<XrpcDoor>>,
    /// The database behind the doors for SQL.
    pub database: Option<Arc<Database>>,
    pub memory_limit_bytes: u64,
    pub started_ms: u64,
}

#[derive(Clone, Copy)]
pub enum CounterKind {
    /// Only increases, starting at 0.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Number of values below each of several bounds.
    Histogram,
}

impl CounterKind {
    pub fn word(self) -> &'static str {
        match self {
            CounterKind::Counter => "counter",
            CounterKind::Gauge => "gauge",
            CounterKind::Histogram => "histogram",
        }
    }
}

pub struct Row {
    pub name: &'static str,
    pub kind: CounterKind,
    pub help: &'static str,
    pub read: fn(&Sources, &mut Series<'_>),
}

/// Writes the lines of one row.
pub struct Series<'a> {
    pub name: &'static str,
    pub out: &'a mut String,
}

impl Series<'_> {
    pub fn value(&mut self, value: impl Display) {
        let _ = writeln!(self.out, "{} {value}", self.name);
    }

    /// Writes a snapshot of nanoseconds as a histogram of seconds. `label` is empty or `name="value"`.
    pub fn seconds(&mut self, label: &str, times: &Snapshot) {
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

    pub fn labelled(&mut self, label: &str, of: &str, value: impl Display) {
        let _ = writeln!(self.out, "{}{{{label}=\"{of}\"}} {value}", self.name);
    }
}
