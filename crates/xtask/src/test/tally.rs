//! Counts tests from what their runners print.

#[derive(Default, Debug, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
}

impl Tally {
    /// Takes the counts of a closing line, if this is one.
    pub fn read(&mut self, line: &str) {
        let counts = match line.strip_prefix("test result: ") {
            Some(rest) => rest.split_once(". ").map(|(_, counts)| counts.replace(';', ",")),
            None => plain(line).map(String::from),
        };
        let Some(counts) = counts else { return };
        let mut parts = counts.split(", ").map_while(count);
        if let (Some((passed, "passed")), Some((failed, "failed"))) = (parts.next(), parts.next()) {
            self.passed += passed;
            self.failed += failed;
        }
    }

    pub fn add(&mut self, other: &Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// A program that failed without naming a failed test failed once; one that passed without counting passed once.
    pub fn closed(mut self, success: bool) -> Tally {
        if !success && self.failed == 0 {
            self.failed = 1;
        } else if success && self.passed + self.failed == 0 {
            self.passed = 1;
        }
        self
    }
}

/// `12 passed, 0 failed` alone on a line, perhaps behind one word and a colon, perhaps with ` , 1 skipped`.
fn plain(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = match line.split_once(": ") {
        Some((word, rest)) if !word.contains(' ') => rest,
        _ => line,
    };
    let mut parts = rest.split(", ").map(count);
    let closes = parts.clone().count() >= 2 && parts.all(|part| part.is_some());
    closes.then_some(rest)
}

fn count(part: &str) -> Option<(u64, &str)> {
    let (number, word) = part.trim().split_once(' ')?;
    Some((number.parse().ok()?, word))
}

/// Lines that only say that a test passed, or that a file holds none.
pub fn is_noise(line: &str) -> bool {
    let passed = line.starts_with("test ") && line.ends_with(" ok");
    passed
        || line.is_empty()
        || line.starts_with("running ")
        || line.trim_start().starts_with("Running ")
        || line.starts_with("test result: ok. 0 passed; 0 failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|l| tally.read(l));
        tally
    }

    #[test]
    fn both_forms_are_counted() {
        let lines = [
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s",
            "5 passed, 1 failed",
            "redis-py: 7 passed, 0 failed, 2 skipped",
            "yesterday 100 passed, 3 failed",
            "100 passed",
            "copied 3 files, 4 folders",
        ];
        assert_eq!(tally(&lines), Tally { passed: 27, failed: 3 });
    }

    #[test]
    fn a_step_counts_at_least_once() {
        assert_eq!(Tally::default().closed(true), Tally { passed: 1, failed: 0 });
        assert_eq!(Tally::default().closed(false), Tally { passed: 0, failed: 1 });
        assert_eq!(tally(&["5 passed, 1 failed"]).closed(false), Tally { passed: 5, failed: 1 });
        assert_eq!(tally(&["5 passed, 0 failed"]).closed(false), Tally { passed: 5, failed: 1 });
    }

    #[test]
    fn only_noise_is_hidden() {
        assert!(is_noise("test a::b ... ok"));
        assert!(!is_noise("test a::b ... FAILED"));
        assert!(!is_noise("test result: FAILED. 3 passed; 2 failed"));
    }
}
