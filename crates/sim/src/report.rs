//! What a run has to say.

use std::fmt;

/// Something that must never happen has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub what: String,
    /// The command line that plays exactly this.
    pub replay: String,
    /// The last steps before it, oldest first.
    pub trace: Vec<String>,
}

/// Steps that are told.
const TOLD: usize = 6;

impl Violation {
    pub fn new(what: String, replay: String, trace: &[String]) -> Violation {
        let trace = trace[trace.len().saturating_sub(TOLD)..].to_vec();
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
    /// Power cuts while what an earlier one had left was recovered.
    pub in_recovery: u64,
    pub recoveries: u64,
    /// Lives that began amid the undo of what the one before had left.
    pub amid_undo: u64,
    /// The same for the same seeds: what all disks held in the end.
    pub digest: u64,
}

impl Summary {
    pub fn add(&mut self, other: &Summary) {
        self.histories += other.histories;
        self.crashes += other.crashes;
        self.in_recovery += other.in_recovery;
        self.recoveries += other.recoveries;
        self.amid_undo += other.amid_undo;
        self.note(other.digest);
    }

    pub fn note(&mut self, digest: u64) {
        self.digest = mix(self.digest, digest);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { histories, crashes, in_recovery, recoveries, amid_undo, digest } = self;
        write!(
            f,
            "{histories} histories, {crashes} crashes, {in_recovery} crashes in recovery, {recoveries} recoveries verified, {amid_undo} lives begun amid undo, digest {digest:016x}"
        )
    }
}

/// One seed out of two numbers.
pub fn mix(a: u64, b: u64) -> u64 {
    stdx::prng::Prng::new(a.rotate_left(32) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next_u64()
}
