//! What a map's tree tells without being read through: about how many rows a range has, how much room they take, and the rows of some of its leaves.

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

/// Leaves that are looked through for long values.
const LEAVES: usize = 4;

impl Rows {
    /// About how many records a range of the map has, those of deleted rows that are still there and of open transactions included. Costs a few pages a level.
    pub fn extent(&self, map: MapId, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<RangeEstimate> {
        let (from, to) = ScanState::new(from, to, false).bounds();
        Ok(self.map(map)?.tree.estimate_range(&from, to.as_deref())?)
    }

    /// About how many bytes the map's leaves take on disk.
    pub fn bytes(&self, map: MapId) -> Result<u64> {
        let all = self.extent(map, Bound::Unbounded, Bound::Unbounded)?;
        Ok((all.leaves * PAGE_BYTES as f64) as u64)
    }

    /// About how many bytes the map's values take beside it, those that are too long for a leaf: going by some leaves.
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
    /// The rows of some leaf of the map, in their order, as the transaction's snapshot has them: they replace `out`. None if the leaf has none.
    pub fn sample(&mut self, map: MapId, prng: &mut Prng, out: &mut RowBatch) -> Result<()> {
        let cursor: Cursor = self.scan(map, Bound::Unbounded, Bound::Unbounded, false)?;
        cursor.draw(self, prng, out)
    }
}
