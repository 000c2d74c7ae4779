//! Duplicate elimination. The first row of each key is passed on at once. When memory is short, new rows are
//! partitioned into files by their keys, and each partition is processed afterwards.

use datum::Result;
use stdx::hash::Set;

use crate::batch::Row;
use crate::exec::Exec;
use crate::exec::host::host;
use crate::exec::memory::{Held, row_bytes};
use crate::exec::row_ops::{BATCH, BATCH_BYTES, key_of};
use crate::exec::spill::keys::short_key;
use crate::exec::spill::partition::{LEVELS, Part, Partitions, Rows};
use crate::nodes::context::EvalContext;
use crate::types::Type;

pub struct DistinctState {
    input: Option<Exec>,
    seen: Set<Vec<u8>>,
    held: Held,
    level: u32,
    others: Option<Partitions>,
    parts: Vec<Part>,
    reading: Option<Rows>,
}

impl DistinctState {
    pub fn new(input: Exec) -> DistinctState {
        let (seen, parts) = (Set::default(), Vec::new());
        DistinctState { input: Some(input), seen, held: Held::default(), level: 0, others: None, parts, reading: None }
    }

    pub fn next(&mut self, types: &[Type], ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        while out.is_empty() {
            if let Some(input) = &mut self.input {
                if input.next(ctx, out)? {
                    self.filter(types, ctx, out)?;
                    continue;
                }
                self.input = None;
            } else if let Some(rows) = &mut self.reading {
                let mut bytes = 0;
                while out.len() < BATCH && bytes < BATCH_BYTES {
                    let Some((_, row)) = rows.next()? else { break };
                    bytes += row_bytes(&row);
                    out.push(row);
                }
                if !out.is_empty() {
                    host(ctx).look_up()?;
                    self.filter(types, ctx, out)?;
                    continue;
                }
            }
            if !self.next_part()? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn next_part(&mut self) -> Result<bool> {
        if let Some(others) = self.others.take() {
            self.parts.extend(others.finish()?.into_iter().filter(|part| !part.run.is_empty()));
        }
        self.seen.clear();
        self.held.clear();
        let Some(part) = self.parts.pop() else { return Ok(false) };
        self.level = part.level;
        self.reading = Some(part.rows());
        Ok(true)
    }

    /// Keeps the rows whose keys have not been seen.
    fn filter(&mut self, types: &[Type], ctx: &mut EvalContext, rows: &mut Vec<Row>) -> Result<()> {
        let mut kept = 0;
        for at in 0..rows.len() {
            let key = short_key(key_of(&rows[at], types));
            if self.seen.contains(&key) {
                continue;
            }
            let bytes = key.len() + 48;
            if self.others.is_some() || (self.level < LEVELS && host(ctx).must_spill(&self.held, bytes)) {
                let others = match &mut self.others {
                    Some(others) => others,
                    None => self.others.insert(Partitions::new(&host(ctx).spill()?, self.level)?),
                };
                others.put(&key, &rows[at])?;
                continue;
            }
            if self.level < LEVELS {
                host(ctx).count(&mut self.held, bytes)?
            } else {
                host(ctx).hold(&mut self.held, bytes)?
            }
            self.seen.insert(key);
            rows.swap(kept, at);
            kept += 1;
        }
        rows.truncate(kept);
        Ok(())
    }
}
