//! Violations and totals of a run.

use std::fmt;

/// An observed state that must never happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub what: String,
    /// The command line that replays exactly this history.
    pub replay: String,
    /// The last steps before it, oldest first.
    pub trace: Vec<String>,
}

/// Number of steps that a violation lists.
const STEPS_MAX: usize = 6;

impl Violation {
    pub fn new(what: String, replay: String, trace: &[String]) -> Violation {
        let trace = trace[trace.len().saturating_sub(STEPS_MAX)..].to_vec();
        Violation { what, replay, trace }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "VIOLATION: {}", self.what)?;
        for step in &self.trace {
            writeln!(f, "  after: {step}")?;
        }
        write!(f, "again: {}", self.replay)
    }
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub histories: u64,
    /// Power cuts while a history ran.
    pub crashes: u64,
    /// Power cuts during recovery from an earlier one.
    pub in_recovery: u64,
    pub recoveries: u64,
    /// Lives that began during the undo of the losers of the one before.
    pub during_undo: u64,
    /// Digest of the final content of all disks; equal for equal seeds.
    pub digest: u64,
}

impl Summary {
    pub fn add(&mut self, other: &Summary) {
        self.histories += other.histories;
        self.crashes += other.crashes;
        self.in_recovery += other.in_recovery;
        self.recoveries += other.recoveries;
        self.during_undo += other.during_undo;
        self.note(other.digest);
    }

    pub fn note(&mut self, digest: u64) {
        self.digest = mix(self.digest, digest);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { histories, crashes, in_recovery, recoveries, during_undo, digest } = self;
        write!(
            f,
            "{histories} histories, {crashes} crashes, {in_recovery} crashes in recovery, {recoveries} recoveries verified, {during_undo} lives begun during undo, digest {digest:016x}"
        )
    }
}

/// Combines two numbers into a seed.
pub fn mix(a: u64, b: u64) -> u64 {
    stdx::prng::Prng::new(a.rotate_left(32) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next_u64()
}
