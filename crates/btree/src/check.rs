//! The checker of a whole tree. Each violation names the invariant of README.md that does not hold, and the page.
//!
//! It must run while no thread changes the tree: it reads one page at a time and compares pages with each other.

use std::collections::HashSet;

use pager::{Error, PageId, PageRef, Result};

use crate::node::Node;
use crate::tree::Tree;

/// Violations listed at most.
const VIOLATIONS_MAX: usize = 100;

/// The result of a check.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// Sentences that begin with the invariant's tag and name the page. Empty if the tree is sound.
    pub violations: Vec<String>,
    pub records: u64,
    /// Number of nodes of each level, leaves first.
    pub nodes: Vec<u64>,
    pub empty_leaves: u64,
    /// Pages that could not be read; each is among the violations. The pages below an unreadable inner page were not checked.
    pub unreadable: u64,
    /// Splits whose second step is missing; this is legal.
    pub incomplete: u64,
    /// Words used for slots, records and fences of leaves, and words in all.
    pub leaf_words_used: u64,
    pub leaf_words: u64,
}

impl Report {
    pub fn is_sound(&self) -> bool {
        self.violations.is_empty()
    }

    fn violation(&mut self, tag: &str, pid: PageId, what: impl std::fmt::Display) {
        self.add(format!("{tag} page {pid}: {what}"));
    }

    fn add(&mut self, violation: String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(violation);
        }
    }
}

/// A node as its parent describes it.
struct Expected {
    pid: PageId,
    low: Vec<u8>,
}

impl Tree {
    /// Checks every page of the tree. An error means that nothing can be said: the root could not be read, or the pager is closing.
    pub fn check(&self) -> Result<Report> {
        let mut report = Report::default();
        let mut seen = HashSet::new();
        let mut level = Node(self.pager.shared(self.root)?.page()).level();
        let mut expected = vec![Expected { pid: self.root, low: Vec::new() }];
        while let Some((children, nodes)) = self.check_level(level, &expected, &mut seen, &mut report)? {
            report.nodes.insert(0, nodes);
            if level == 0 {
                break;
            }
            level -= 1;
            expected = children;
        }
        Ok(report)
    }

    /// Walks the chain of one level. Returns the children in order and the number of nodes; `None` if the check cannot continue.
    fn check_level(
        &self,
        level: u8,
        expected: &[Expected],
        seen: &mut HashSet<PageId>,
        report: &mut Report,
    ) -> Result<Option<(Vec<Expected>, u64)>> {
        let mut children = Vec::new();
        // Below an unreadable page the list of children has a gap.
        let whole = report.unreadable == 0;
        let (mut nodes, mut posted) = (0, expected.iter());
        let Some(first) = posted.next() else { return Ok(None) };
        let (mut pid, mut low) = (first.pid, first.low.clone());
        loop {
            if !seen.insert(pid) {
                report.violation("BT-3", pid, "reached twice");
                return Ok(None);
            }
            if !self.pager.is_allocated(pid) {
                report.violation("BT-7", pid, "in the tree, but free in the space map");
            }
            let page = match self.pager.shared(pid) {
                Ok(page) => page,
                Err(Error::Closed) => return Err(Error::Closed),
                Err(error) => {
                    report.unreadable += 1;
                    report.add(error.to_string());
                    // The right link is lost; the parent knows which node comes next.
                    let Some(next) = expected.iter().find(|next| next.low > low) else { break };
                    posted = expected[expected.partition_point(|other| other.low <= next.low)..].iter();
                    (pid, low) = (next.pid, next.low.clone());
                    continue;
                }
            };
            let node = Node(page.page());
            if let Err(what) = node.verify(self.id).and_then(|()| node.verify_records()) {
                report.violation("BT-1", pid, what);
                return Ok(None);
            }
            nodes += 1;
            self.check_node(node, pid, level, &low, report);
            if level > 0 {
                children.extend((0..node.count()).map(|at| Expected { pid: node.child(at), low: node.key(at) }));
            }
            let Some(high) = node.high() else { break };
            let right = node.right();
            if node.is_incomplete() {
                report.incomplete += 1;
            } else if whole {
                match posted.next() {
                    Some(next) if next.pid == right && next.low == high => {}
                    Some(next) => {
                        let what = format!("its right neighbour is page {right}, the parent says {}", next.pid);
                        report.violation("BT-5", pid, what);
                    }
                    None => {
                        report.violation("BT-5", pid, "its right neighbour is not in the parent, without INCOMPLETE")
                    }
                }
            }
            (pid, low) = (right, high);
        }
        if let Some(next) = posted.next().filter(|_| whole) {
            report.violation("BT-3", next.pid, "in the parent, but not in the chain of its level");
        }
        Ok(Some((children, nodes)))
    }

    fn check_node(&self, node: Node<PageRef<'_>>, pid: PageId, level: u8, low: &[u8], report: &mut Report) {
        if node.level() != level {
            report.violation("BT-3", pid, format!("level {} instead of {level}", node.level()));
        }
        if node.low() != low {
            report.violation("BT-2", pid, "its low fence is not its left neighbour's high fence");
        }
        if level > 0 && (node.count() == 0 || node.key(0) != low) {
            report.violation("BT-1", pid, "its first child does not begin at its low fence");
        }
        let mut last: Option<Vec<u8>> = None;
        for index in 0..node.count() {
            let key = node.key(index);
            if !node.covers(&key) {
                report.violation("BT-1", pid, format!("record {index} is outside the fences"));
            }
            if last.is_some_and(|last| last >= key) {
                report.violation("BT-1", pid, format!("record {index} is not above the one before it"));
            }
            if (level == 0 || index > 0) && node.search(&key) != Ok(index) {
                report.violation("BT-1", pid, format!("record {index} is not found by its key"));
            }
            last = Some(key);
        }
        if level == 0 {
            report.records += node.count() as u64;
            report.empty_leaves += u64::from(node.count() == 0);
            report.leaf_words += (node.end() - crate::node::SLOTS) as u64;
            report.leaf_words_used += (node.end() - crate::node::SLOTS - node.gap() - node.dead()) as u64;
        }
    }
}
