//! Collects the lines that name a failure from what the runners of tests print.

use std::collections::VecDeque;

/// A step's summary shows this many lines of failures.
const LINES_MAX: usize = 30;
/// A suite that ends without naming a failed check has said why in its last lines.
const LAST_LINES: usize = 3;
/// Longer lines are cut.
const LINE_CHARS: usize = 400;

/// The failures of one step, in the order in which they were printed.
#[derive(Default)]
pub struct Failures {
    lines: Vec<String>,
    last: VecDeque<String>,
}

impl Failures {
    /// Takes the line if it names a failure. A suite's own verdict, `FAILED suite NAME`, brings the lines before it along.
    pub fn read(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        let line: String = line.chars().take(LINE_CHARS).collect();
        if line.starts_with("FAILED suite ") {
            self.last.drain(..).for_each(|line| push(&mut self.lines, line));
        }
        if names_failure(&line) {
            push(&mut self.lines, line);
        } else {
            self.last.push_back(line);
            if self.last.len() > LAST_LINES {
                self.last.pop_front();
            }
        }
    }

    /// Prints the failures below the step's name; nothing if there are none.
    pub fn print(&self, step: &str) {
        if !self.lines.is_empty() {
            println!("\n== failures of {step}");
            self.lines.iter().for_each(|line| println!("{line}"));
        }
    }
}

fn push(lines: &mut Vec<String>, line: String) {
    if lines.len() < LINES_MAX {
        lines.push(line);
    }
}

fn names_failure(line: &str) -> bool {
    let of_cargo = line.starts_with("test ") && line.ends_with("FAILED");
    of_cargo || line.starts_with("FAILED ") || line.starts_with("error: ") || line.contains(" panicked at ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(lines: &[&str]) -> Vec<String> {
        let mut failures = Failures::default();
        lines.iter().for_each(|line| failures.read(line));
        failures.lines
    }

    #[test]
    fn failures_are_taken_and_other_lines_left() {
        let lines = [
            "-- cluster",
            "FAILED slots found 1, expected 2",
            "3 passed, 1 failed",
            "test a::b ... ok",
            "test a::c ... FAILED",
        ];
        assert_eq!(failures(&lines), ["FAILED slots found 1, expected 2", "test a::c ... FAILED"]);
    }

    #[test]
    fn a_suite_that_breaks_off_says_why() {
        let lines = [
            "-- cluster",
            "Traceback (most recent call last):",
            "  File x",
            "    raise",
            "TimeoutError: slots",
            "",
            "FAILED suite cluster",
        ];
        assert_eq!(failures(&lines), ["  File x", "    raise", "TimeoutError: slots", "FAILED suite cluster"]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let long = format!("FAILED {}", "\u{e9}".repeat(LINE_CHARS));
        let kept = failures(&[long.as_str(); LINES_MAX + 1]);
        assert!(kept.len() == LINES_MAX && kept[0].chars().count() == LINE_CHARS);
    }
}
