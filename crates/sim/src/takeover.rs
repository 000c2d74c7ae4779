//! Nodes of a shared database: they write, are paused, cut off and killed at any operation on the store, and take over from each other, against an oracle.
//!
//! Each node runs the real pager on the simulated store, with pages of its own instead of trees. Everything happens in one thread. A node that is paused in an
//! operation lets the others run nested in the call; so all moments at which others could notice it are covered, and the seed determines the run.
//!
//! Hard part: what an old writer believes. Its flush may have taken effect although it never hears of it, and it may be told so only after another node has taken
//! over. It may then believe it, if the new writer has found those bytes.

mod cluster;
mod node;
mod oracle;
mod totals;

use crate::report::Violation;
use crate::takeover::cluster::Cluster;
pub use crate::takeover::totals::{TAKEOVER_FAULTS, TakeoverFault, TakeoverSummary};

impl TakeoverFault {
    /// Plays histories with the fault until one is found wrong. Returns how many that took, `None` if all passed.
    pub fn is_detected(self, seed: u64, histories: u64) -> Option<(u64, Violation)> {
        (0..histories).find_map(|at| {
            let takeover = Takeover { seed: seed + at, fault: Some(self) };
            takeover.run(&mut Vec::new()).err().map(|violation| (at + 1, violation))
        })
    }
}

/// One history.
#[derive(Clone, Copy, Debug)]
pub struct Takeover {
    pub seed: u64,
    pub fault: Option<TakeoverFault>,
}

impl Takeover {
    /// Plays the history. `trace` gets its steps.
    pub fn run(&self, trace: &mut Vec<String>) -> Result<TakeoverSummary, Violation> {
        let cluster = Cluster::new(self.seed, self.fault);
        cluster.clone().connect();
        let result = cluster.play();
        let summary;
        (summary, *trace) = cluster.end();
        let without = self.fault.map_or(String::new(), |fault| format!(" --without {}", fault.name()));
        let replay = format!("cargo run -p sim -- takeover --seed {} --histories 1{without}", self.seed);
        result.map(|()| summary).map_err(|what| Violation::new(what, replay, trace))
    }
}
