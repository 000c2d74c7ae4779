//! Estimates from a map's tree without reading all of it: number of rows in a range, space, and rows of random leaves.

use std::ops::Bound;

use btree::{Batch, RangeEstimate, ScanState};
use pager::PAGE_BYTES;
use stdx::prng::Prng;

use crate::error::Result;
use crate::rows::read::{Cursor, RowBatch};
use crate::rows::row::summarize;
use crate::rows::state::Rows;
use crate::rows::transaction::Transaction;
use crate::store::trees::MapId;

/// Number of leaves that are read to estimate long values.
const LEAVES: usize = 4;

impl Rows {
    /// Estimates the number of records in a range, delete-marked ones and those of open transactions included. Reads a few pages per level.
    pub fn extent(&self, map: MapId, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<RangeEstimate> {
        let (from, to) = ScanState::new(from, to, false).bounds();
        Ok(self.map(map)?.tree.estimate_range(&from, to.as_deref())?)
    }

    /// Estimates the bytes that the map's leaves take on disk.
    pub fn bytes(&self, map: MapId) -> Result<u64> {
        let all = self.extent(map, Bound::Unbounded, Bound::Unbounded)?;
        Ok((all.leaves * PAGE_BYTES as f64) as u64)
    }

    /// Estimates the bytes of the map's long values from a few leaves.
    pub fn long_bytes(&self, map: MapId) -> Result<u64> {
        let all = self.extent(map, Bound::Unbounded, Bound::Unbounded)?;
        let tree = &self.map(map)?.tree;
        let (mut prng, mut leaf) = (Prng::new(map.into()), Batch::default());
        let (mut records, mut long) = (0u64, 0u64);
        for _ in 0..LEAVES {
            tree.random_leaf(&mut prng, &mut leaf)?;
            for record in leaf.iter() {
                records += 1;
                long += summarize(record.value)?.segments.map_or(0, |(_, len)| len);
            }
        }
        Ok(if records > 0 { (all.records * long as f64 / records as f64) as u64 } else { 0 })
    }
}

impl Transaction {
    /// Replaces `out` by the rows of a random leaf of the map, in their order, as the transaction's snapshot has them. It may be empty.
    pub fn sample(&mut self, map: MapId, prng: &mut Prng, out: &mut RowBatch) -> Result<()> {
        let cursor: Cursor = self.scan(map, Bound::Unbounded, Bound::Unbounded, false)?;
        cursor.draw(self, prng, out)
    }
}
