//! Rows by keys of bytes. What is equal stays in the order it came.

use crate::error::Result;
use crate::exec::host::{host, row_bytes};
use crate::scalar::EvalContext;
use crate::session::Row;

#[derive(Default)]
pub struct Sorter {
    rows: Vec<(Vec<u8>, Row)>,
}

/// The rows in order, each with its key.
pub struct Sorted {
    rows: std::vec::IntoIter<(Vec<u8>, Row)>,
}

impl Sorter {
    pub fn push(&mut self, key: Vec<u8>, row: Row, ctx: &mut EvalContext) -> Result<()> {
        host(ctx).hold(key.len() + row_bytes(&row))?;
        self.rows.push((key, row));
        Ok(())
    }

    pub fn finish(mut self) -> Sorted {
        self.rows.sort_by(|a, b| a.0.cmp(&b.0));
        Sorted { rows: self.rows.into_iter() }
    }
}

impl Sorted {
    pub fn next(&mut self, ctx: &mut EvalContext) -> Result<Option<(Vec<u8>, Row)>> {
        let next = self.rows.next();
        if let Some((key, row)) = &next {
            let gone = key.len() + row_bytes(row);
            let host = host(ctx);
            host.memory = host.memory.saturating_sub(gone);
        }
        Ok(next)
    }
}
