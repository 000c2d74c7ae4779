//! Exact counts: how many records a range has, and which record is the n-th one.
//!
//! Each leaf of the range is visited, but no record is copied: two searches in a leaf's slots give the number of its records in the range. So the cost is one
//! node per leaf of the range, and callers keep ranges to a few leaves. Each leaf is counted as of one moment; with concurrent changes the whole is of none.

use std::cell::Cell;

use pager::{PageRef, Result};

use crate::node::Node;
use crate::scan::LeafPosition;
use crate::tree::{ReadMode, Tree};

impl Tree {
    /// Returns how many records lie in `from <= key < to`, or `limit` if there are at least that many.
    pub fn count(&self, from: &[u8], to: Option<&[u8]>, limit: u64) -> Result<u64> {
        let mut count = 0;
        self.each_leaf(
            from,
            to,
            |leaf, from| leaf.range(from, to),
            |(start, end)| {
                count += end.saturating_sub(start) as u64;
                count < limit
            },
        )?;
        Ok(count.min(limit))
    }

    /// Returns the key of the record that `n` others of the range `from <= key < to` precede; `None` if the range has no more than `n` records.
    pub fn skip(&self, from: &[u8], to: Option<&[u8]>, n: u64) -> Result<Option<Vec<u8>>> {
        let (left, mut key) = (Cell::new(n), None);
        let visit = |leaf: Node<PageRef<'_>>, from: &[u8]| {
            let (start, end) = leaf.range(from, to);
            let count = end.saturating_sub(start) as u64;
            (count, (left.get() < count).then(|| leaf.key(start + left.get() as usize)))
        };
        self.each_leaf(from, to, visit, |(count, found)| {
            left.set(left.get().saturating_sub(count));
            key = found;
            key.is_none()
        })?;
        Ok(key)
    }

    /// Calls `visit` on each leaf of a range, and `take` with each result that was consistent at one moment, until it returns false.
    fn each_leaf<R>(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        mut visit: impl FnMut(Node<PageRef<'_>>, &[u8]) -> R,
        mut take: impl FnMut(R) -> bool,
    ) -> Result<()> {
        if to.is_some_and(|to| to <= from) {
            return Ok(());
        }
        let mut position = LeafPosition::at(from.to_vec());
        loop {
            let (result, end) = position.read(self, ReadMode::MayRead, &mut visit)?;
            if !take(result) || !position.advance(self, &end, to)? {
                return Ok(());
            }
        }
    }
}
