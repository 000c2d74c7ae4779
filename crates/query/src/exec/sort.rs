//! Sorting, in memory: by keys that compare as bytes. With a limit only so many rows are kept.

use crate::error::Result;
use crate::exec::host::{host, row_bytes};
use crate::exec::{Exec, limits};
use crate::plan::SortKey;
use crate::scalar::key::encode;
use crate::scalar::{EvalContext, Expr};
use crate::session::Row;

/// Beyond this many rows the smallest are not kept apart.
const TOP: u64 = 10_000;

pub fn gather(
    keys: &[SortKey],
    limit: Option<&(Expr, Option<Expr>)>,
    unique: bool,
    input: &mut Exec,
    ctx: &mut EvalContext,
) -> Result<Vec<Row>> {
    let top = match limit {
        None => u64::MAX,
        Some((limit, offset)) => {
            let (limit, offset) = limits(Some(limit), offset.as_ref(), ctx)?;
            limit.saturating_add(offset)
        }
    };
    let mut rows: Vec<(Vec<u8>, Row)> = Vec::new();
    let mut batch = Vec::new();
    let mut key_bytes = 0;
    while input.next(ctx, &mut batch)? {
        for row in batch.drain(..) {
            // Most keys are about as long as the one before.
            let mut key = Vec::with_capacity(key_bytes);
            keys.iter().for_each(|sort| encode(&row[sort.at], &sort.ty, sort.descending, &mut key));
            key_bytes = key.len();
            host(ctx).hold(key_bytes + row_bytes(&row))?;
            rows.push((key, row));
        }
        if top <= TOP && rows.len() as u64 > 2 * top + 1000 {
            rows.sort_by(|a, b| a.0.cmp(&b.0));
            let gone = rows.drain(top as usize..).map(|(key, row)| key.len() + row_bytes(&row)).sum::<usize>();
            let host = host(ctx);
            host.memory = host.memory.saturating_sub(gone);
        }
    }
    // Stable: what is equal stays in the order it came.
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    if unique {
        rows.dedup_by(|a, b| a.0 == b.0);
    }
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}
