//! What a map's tree tells without being read through: about how many rows a range has, and the rows of some of its leaves.

use std::ops::Bound;

use btree::{Extent, Span};
use stdx::prng::Prng;

use crate::error::Result;
use crate::rows::read::{Cursor, RowBatch};
use crate::rows::transaction::Transaction;
use crate::rows::{MapId, Rows};

impl Rows {
    /// About how many records a range of the map has, those of deleted rows that are still there and of open transactions included. Costs a few pages a level.
    pub fn extent(&self, map: MapId, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<Extent> {
        let (from, to) = Span::new(from, to, false).bounds();
        Ok(self.map(map)?.tree.extent(&from, to.as_deref())?)
    }
}

impl Transaction {
    /// The rows of some leaf of the map, in their order, as the transaction's snapshot has them: they replace `out`. None if the leaf has none.
    pub fn sample(&mut self, map: MapId, prng: &mut Prng, out: &mut RowBatch) -> Result<()> {
        let cursor: Cursor = self.scan(map, Bound::Unbounded, Bound::Unbounded, false)?;
        cursor.draw(self, prng, out)
    }
}
