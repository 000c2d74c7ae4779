//! Instrumentation of plan nodes, for EXPLAIN ANALYZE.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use engine::ThreadCounts;

use crate::nodes::node::Node;

/// Figures of one node over all its executions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measure {
    pub loops: u64,
    pub rows: u64,
    /// The time to the first rows and in all, including the inputs.
    pub first: Duration,
    pub time: Duration,
    /// Pages and WAL records, including those of the inputs. All of a statement that is measured runs on one thread.
    pub counts: ThreadCounts,
}

/// Figures by the node's address: plans do not move during execution.
#[derive(Debug, Default)]
pub struct Measures(HashMap<usize, Measure>);

impl Measures {
    pub fn of(&self, node: &Arc<Node>) -> Option<&Measure> {
        self.0.get(&(Arc::as_ptr(node) as usize))
    }

    pub fn of_mut(&mut self, node: &Arc<Node>) -> &mut Measure {
        self.0.entry(Arc::as_ptr(node) as usize).or_default()
    }
}

/// Formats as MySQL does: milliseconds and rows of an execution on average, and the number of executions.
impl std::fmt::Display for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let loops = self.loops.max(1) as f64;
        let each = |time: Duration| time.as_secs_f64() * 1000.0 / loops;
        let rows = self.rows as f64 / loops;
        let rows = if rows.fract() == 0.0 { format!("{rows:.0}") } else { format!("{rows:.2}") };
        write!(f, "(actual time={:.3}..{:.3} rows={rows} loops={})", each(self.first), each(self.time), self.loops)
    }
}
