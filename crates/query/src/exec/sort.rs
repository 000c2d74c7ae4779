//! Sorting by keys that compare as bytes. With a limit, only that many rows are kept.

use datum::Result;

use crate::batch::Batch;
use crate::exec::Exec;
use crate::exec::host::host;
use crate::exec::progress::{Of, Progress};
use crate::exec::row_ops::{BATCH, limits};
use crate::exec::sorter::{Sorted, Sorter};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::SortKey;
use crate::plan::estimate::estimate;

/// Strings are counted in steps of this size.
const BATCH_BYTES: usize = 64 << 10;
/// The largest limit for which only the smallest rows are kept.
const TOP: u64 = 10_000;

pub struct SortState {
    input: Option<Exec>,
    sorted: Option<(Sorted, Progress)>,
    /// The key of the last row, if equal ones are omitted.
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
        out: &mut Batch,
    ) -> Result<()> {
        if let Some(input) = self.input.take() {
            let sorted = gather(keys, limit, input, ctx)?;
            let sending = Progress::begin("Sorting for order: sending", Of::Exactly(sorted.len()));
            self.sorted = Some((sorted, sending));
        }
        let Some((sorted, sending)) = &mut self.sorted else { return Ok(()) };
        if out.is_empty()
            && let Some(batch) = sorted.take_batch(unique)
        {
            *out = batch;
            return Ok(());
        }
        let before = out.len();
        while out.len() < before + BATCH && !out.is_long() {
            let Some(record) = sorted.next_record()? else {
                sending.end(host(ctx));
                return Ok(());
            };
            if unique {
                if self.last.as_deref() == Some(&*record.key) {
                    continue;
                }
                let last = self.last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(&record.key);
            }
            record.unpack(out)?;
        }
        // A batch of long values has fewer rows.
        sending.add(out.len() - before, host(ctx));
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
    let (mut batch, mut reading) = (Batch::new(), None);
    while input.fill(ctx, &mut batch)? {
        // A leaf has few rows, so the rows of several leaves are taken over together.
        if batch.len() < BATCH && batch.string_bytes() < BATCH_BYTES && !batch.is_long() {
            continue;
        }
        // A sort of a few rows needs no estimate.
        let reading = reading.get_or_insert_with(|| {
            let all = Of::About(estimate(&input.node).rows as u64);
            Progress::begin("Sorting for order: reading", all)
        });
        reading.add(batch.len(), host(ctx));
        sorter.push_batch(std::mem::replace(&mut batch, Batch::new()), keys, ctx)?;
        if top <= TOP && sorter.len() as u64 > 2 * top + 1000 {
            sorter.keep(top as usize, keys);
        }
    }
    sorter.push_batch(batch, keys, ctx)?;
    let Some(mut reading) = reading else { return sorter.finish(keys, ctx) };
    reading.turn("Sorting for order: sorting", host(ctx));
    let sorted = sorter.finish(keys, ctx)?;
    reading.end(host(ctx));
    Ok(sorted)
}
