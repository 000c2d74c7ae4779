//! Canaries: the oracle must detect a disk that acknowledges writes and loses them.

use crate::random::Random;
use crate::report::Violation;

/// A file whose syncs the disk acknowledges without doing them.
#[derive(Clone, Copy, Debug)]
pub struct Lie {
    pub about: &'static str,
    /// Prefix of the names of the files.
    pub names: &'static str,
}

/// The lies that must be detected.
pub const LIES: [Lie; 4] = [
    Lie { about: "the log", names: "log-" },
    Lie { about: "the data file", names: "data" },
    Lie { about: "the double-write file", names: "doublewrite" },
    Lie { about: "everything, names too", names: "" },
];

impl Lie {
    /// Plays histories on such a disk until one is found wrong. Returns how many that took, `None` if all passed.
    pub fn is_detected(&self, seed: u64, histories: u64) -> Option<(u64, Violation)> {
        (0..histories).find_map(|at| {
            let random = Random { seed: seed + at, liar: Some(self.names) };
            random.run(&mut Vec::new()).err().map(|violation| (at + 1, violation))
        })
    }
}
