//! Range estimates: how many records a range has, from a few nodes of each level.
//!
//! Both ends of the range are followed from the root down. If both ends lie in one node of a level, the children between them are counted; otherwise the
//! nodes between them are assumed to be as full as a random sample. So a range within two neighbouring leaves is counted exactly, and a large one costs a
//! few nodes per level. Levels are read one after the other: with concurrent changes the estimate is of no single moment.

use pager::{PageId, PageRef, Result};
use stdx::prng::Prng;

use crate::node::Node;
use crate::scan::Batch;
use crate::search::{Descent, Seek, TRIES_MAX};
use crate::tree::{LatchMode, ReadMode, Tree};

/// Nodes sampled on each level.
const SAMPLES: usize = 8;

/// The estimated size of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeEstimate {
    pub records: f64,
    /// Leaves that hold a part of the range: at least one.
    pub leaves: f64,
}

/// The entries of one node that lie in the range, as indexes, and the number of all its entries.
struct NodePart {
    first: usize,
    end: usize,
    count: usize,
}

impl Tree {
    /// Estimates how many records lie in `from <= key < to`, and in how many leaves.
    pub fn estimate_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<RangeEstimate> {
        if to.is_some_and(|to| to <= from) {
            return Ok(RangeEstimate { records: 0.0, leaves: 1.0 });
        }
        let top = self.pager.shared(self.root).map(|root| Node(root.page()).level())?;
        let mut prng = Prng::new(u64::from(self.id));
        let mut nodes = 1.0f64;
        for level in (0..=top).rev() {
            let (left, first) = self.entries_in_range(Seek::At(from), level, from, to)?;
            let (right, last) = self.entries_in_range(to.map_or(Seek::Last, Seek::Before), level, from, to)?;
            let entries = if left == right {
                last.end.saturating_sub(first.first) as f64
            } else {
                let between = (nodes - 2.0).max(0.0);
                let ends = first.count.saturating_sub(first.first) + last.end;
                ends as f64
                    + if between > 0.0 { between * self.entries_per_node(from, to, level, &mut prng)? } else { 0.0 }
            };
            if level == 0 {
                return Ok(RangeEstimate { records: entries, leaves: nodes });
            }
            nodes = entries.max(1.0);
        }
        unreachable!("level 0 is the last one")
    }

    /// Returns the average number of entries of sampled nodes of the range.
    fn entries_per_node(&self, from: &[u8], to: Option<&[u8]>, level: u8, prng: &mut Prng) -> Result<f64> {
        let mut sum = 0;
        for _ in 0..SAMPLES {
            sum += self.entries_in_range(Seek::Random { from, to, draw: prng.next_u64() }, level, from, to)?.1.count;
        }
        Ok(sum as f64 / SAMPLES as f64)
    }

    fn entries_in_range(
        &self,
        seek: Seek<'_>,
        level: u8,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Result<(PageId, NodePart)> {
        let visit = |node: Node<PageRef<'_>>| {
            let count = node.count();
            let (first, end) = if level == 0 {
                node.range(from, to)
            } else {
                let (first, last) = node.children_of(from, to);
                (first, last + 1)
            };
            NodePart { first, end, count }
        };
        if self.mode == LatchMode::Optimistic {
            for _ in 0..TRIES_MAX {
                let Some(node) = self.descend_optimistic(seek, level, &mut Descent::default())? else { continue };
                let part = visit(Node(node.page()));
                if node.validate() {
                    return Ok((node.pid(), part));
                }
            }
        }
        let held = self.descend_latched(seek, level, false, &mut Descent::default())?;
        Ok((held.pid(), visit(Node(held.page()))))
    }

    /// Replaces the batch by all records of a random leaf, each leaf about equally likely. The batch is empty if the leaf is.
    pub fn random_leaf(&self, prng: &mut Prng, batch: &mut Batch) -> Result<()> {
        let draw = prng.next_u64();
        let count = self.read(ReadMode::MayRead, Seek::Random { from: &[], to: None, draw }, |leaf| {
            batch.copy(leaf, 0..leaf.count(), false);
            leaf.count()
        })?;
        batch.index_copy(0..count, false);
        Ok(())
    }
}
