//! A profile of a server's processor time under one shape, by `perf`, if the machine has it.
//!
//! Taken after the figures, in a turn of its own, so that sampling slows nothing that counts.

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::load::{self, Shape, Until};
use crate::server::{Place, Server};
use crate::table::{Cell, Table};

const SYMBOLS: usize = 10;
const SAMPLED: Duration = Duration::from_secs(3);

pub fn table() -> Table {
    Table::new(&["case", "share of samples %", "in", "function"])
}

/// Adds the busiest functions of the server under the shape; adds nothing where `perf` is absent or refused.
pub fn add(table: &mut Table, case: &str, place: &Place, server: &Server, shape: &Shape) -> io::Result<()> {
    let file = place.work.path().join("profile");
    let recorder = Command::new("perf")
        .args(["record", "--quiet", "--freq", "499", "--pid", &server.pid().to_string(), "--output"])
        .arg(&file)
        .args(["--", "sleep", &SAMPLED.as_secs_f64().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut recorder) = recorder else { return Ok(()) };
    load::run(&Shape { until: Until::Time(SAMPLED), ..shape.clone() }, || {})?;
    recorder.wait()?;
    let report = Command::new("perf")
        .args(["report", "--stdio", "--quiet", "--no-children", "--fields", "overhead,sym", "--input"])
        .arg(&file)
        .stderr(Stdio::null())
        .output()?;
    for (share, place, symbol) in String::from_utf8_lossy(&report.stdout).lines().filter_map(symbol).take(SYMBOLS) {
        table.row(vec![case.into(), Cell::Number(share, 1), place.into(), format!("`{symbol}`").into()]);
    }
    Ok(())
}

/// `  20.83%  [k] do_syscall_64`
fn symbol(line: &str) -> Option<(f64, &'static str, String)> {
    let (share, rest) = line.trim().split_once('%')?;
    let (mark, name) = rest.trim().split_once(' ')?;
    let place = if mark == "[k]" { "kernel" } else { "server" };
    // A bar or a line break within a cell would break the table.
    Some((share.trim().parse().ok()?, place, name.trim().replace(['|', '`'], " ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_perf_are_read_and_others_passed_over() {
        assert_eq!(symbol("    20.83%  [k] do_syscall_64  "), Some((20.83, "kernel", "do_syscall_64".into())));
        let rust = symbol(" 1.50%  [.] <btree::Tree as core::fmt::Debug>::fmt");
        assert_eq!(rust, Some((1.5, "server", "<btree::Tree as core::fmt::Debug>::fmt".into())));
        assert_eq!(symbol("# Overhead  Symbol"), None);
        assert_eq!(symbol(""), None);
    }
}
