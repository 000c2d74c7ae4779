//! What is counted: one list, from which come the page at /metrics, `beluga counters` and the table in docs/operating.md.
//!
//! To add a counter: a field where it is counted, and a row here.

pub mod door;
mod http;
mod rows;

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use engine::Engine;
use reactor::Pool;

/// Where the counts are.
pub struct Sources {
    pub engine: Arc<Engine>,
    pub pool: Arc<Pool>,
    pub memory_limit_bytes: u64,
    pub started_ms: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Only grows, from 0 at the start.
    Counter,
    /// Goes up and down.
    Gauge,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
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
