//! Sorting by keys that compare as bytes. With a limit only so many rows are kept.

use crate::error::Result;
use crate::exec::sorter::{Sorted, Sorter};
use crate::exec::{BATCH, Exec, limits};
use crate::plan::SortKey;
use crate::scalar::key::encode;
use crate::scalar::{EvalContext, Expr};
use crate::session::Row;

/// Beyond this many rows the smallest are not kept apart.
const TOP: u64 = 10_000;

pub struct SortState {
    input: Option<Exec>,
    sorted: Option<Sorted>,
    /// The key of the last row, where equal ones are left out.
    last: Option<Vec<u8>>,
}

impl SortState {
    pub fn new(input: Exec) -> SortState {
        SortState { input: Some(input), sorted: None, last: None }
    }

    pub fn next(
        &mut self,
        keys: &[SortKey],
        limit: Option<&(Expr, Option<Expr>)>,
        unique: bool,
        ctx: &mut EvalContext,
        out: &mut Vec<Row>,
    ) -> Result<()> {
        if let Some(input) = self.input.take() {
            self.sorted = Some(gather(keys, limit, input, ctx)?);
        }
        let Some(sorted) = &mut self.sorted else { return Ok(()) };
        while out.len() < BATCH {
            let Some((key, row)) = sorted.next(ctx)? else { return Ok(()) };
            if unique {
                if self.last.as_ref() == Some(&key) {
                    continue;
                }
                self.last = Some(key);
            }
            out.push(row);
        }
        Ok(())
    }
}

fn gather(
    keys: &[SortKey],
    limit: Option<&(Expr, Option<Expr>)>,
    mut input: Exec,
    ctx: &mut EvalContext,
) -> Result<Sorted> {
    let top = match limit {
        None => u64::MAX,
        Some((limit, offset)) => {
            let (limit, offset) = limits(Some(limit), offset.as_ref(), ctx)?;
            limit.saturating_add(offset)
        }
    };
    let mut sorter = Sorter::default();
    let mut batch = Vec::new();
    let mut key_bytes = 0;
    while input.next(ctx, &mut batch)? {
        for row in batch.drain(..) {
            // Most keys are about as long as the one before.
            let mut key = Vec::with_capacity(key_bytes);
            keys.iter().for_each(|sort| encode(&row[sort.at], &sort.ty, sort.descending, &mut key));
            key_bytes = key.len();
            sorter.push(key, row, ctx)?;
        }
        if top <= TOP && sorter.len() as u64 > 2 * top + 1000 {
            sorter.keep(top as usize, ctx);
        }
    }
    sorter.finish(ctx)
}
