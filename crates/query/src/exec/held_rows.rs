//! Rows that an operator holds in memory and cannot spill.

use datum::Result;

use crate::batch::Row;
use crate::exec::host::host;
use crate::exec::memory::{Held, row_bytes};
use crate::nodes::context::EvalContext;

/// Rows that stay in memory, and are counted there.
#[derive(Debug, Default)]
pub struct HeldRows {
    pub rows: Vec<Row>,
    held: Held,
}

impl HeldRows {
    pub fn push(&mut self, row: Row, ctx: &mut EvalContext) -> Result<()> {
        host(ctx).hold(&mut self.held, row_bytes(&row))?;
        self.rows.push(row);
        Ok(())
    }

    pub fn into_parts(self) -> (std::vec::IntoIter<Row>, Held) {
        (self.rows.into_iter(), self.held)
    }
}
