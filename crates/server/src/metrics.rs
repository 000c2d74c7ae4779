//! The list of counters. The page /metrics, `beluga counters` and the table in docs/operating.md are generated from it.
//!
//! To add a counter: a field in the code that counts, and a row here.

pub mod door;
mod http;
mod row;
mod rows;

use std::fmt::Write as _;

use row::Series;
pub use row::Sources;

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
    let mut out = String::from("| Name | Kind | What it counts |\n|---|---|---|\n");
    for row in rows::LIST {
        let _ = writeln!(out, "| `{}` | {} | {} |", row.name, row.kind.word(), row.help);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::row::CounterKind;
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
