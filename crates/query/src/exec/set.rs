//! INTERSECT and EXCEPT: counts the keys of the right side, and filters the left side by them.
//!
//! The left side is read once and keeps its order. When the right side does not fit in memory, both sides are
//! partitioned into files by the hash of their keys, and processed partition by partition; one that is still too large
//! is partitioned again. Only keys of the right side are kept.

use datum::{Fault, Result};
use stdx::hash::Map;

use crate::batch::Row;
use crate::exec::Exec;
use crate::exec::host::host;
use crate::exec::memory::Held;
use crate::exec::row_ops::{BATCH, key_of};
use crate::exec::spill::partition::{LEVELS, Part, Partitions, Rows};
use crate::nodes::context::EvalContext;
use crate::types::Type;
use crate::value::Value;

type Counts = Map<Vec<u8>, i64>;
/// Returns the next key of the right side with its count, or None at the end.
type Next<'n> = dyn FnMut(&mut EvalContext) -> Result<Option<(Vec<u8>, i64)>> + 'n;

/// The operation on rows of the left side.
#[derive(Clone, Copy)]
pub struct How<'s> {
    pub types: &'s [Type],
    pub keeps_common: bool,
    /// ALL: a right row matches one left row only.
    pub all: bool,
}

pub struct SetState {
    left: Option<Exec>,
    right: Option<Exec>,
    counts: Counts,
    held: Held,
    /// Left rows of the current partition.
    reading: Option<Rows>,
    /// Partitions of both sides.
    parts: Vec<(Part, Part)>,
}

/// The right side after it was read.
enum Built {
    Counts(Counts),
    Parted(Partitions),
}

impl SetState {
    pub fn new(left: Exec, right: Exec) -> SetState {
        let (counts, held) = (Counts::default(), Held::default());
        SetState { left: Some(left), right: Some(right), counts, held, reading: None, parts: Vec::new() }
    }

    pub fn next(&mut self, how: How<'_>, ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        if let Some(right) = self.right.take() {
            self.begin(right, how, ctx)?;
        }
        while out.is_empty() {
            if let Some(rows) = &mut self.reading {
                for _ in 0..BATCH {
                    let Some((key, row)) = rows.next()? else {
                        self.reading = None;
                        break;
                    };
                    if stays(&mut self.counts, &key, how) {
                        out.push(row);
                    }
                }
                host(ctx).look_up()?;
            } else if let Some(left) = &mut self.left {
                if left.next(ctx, out)? {
                    out.retain(|row| stays(&mut self.counts, &key_of(row, how.types), how));
                } else {
                    self.left = None;
                }
            } else if !self.next_part(ctx)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Counts the right side, and partitions both sides if it is too large.
    fn begin(&mut self, mut right: Exec, how: How<'_>, ctx: &mut EvalContext) -> Result<()> {
        let mut batch = Vec::new();
        let mut next = |ctx: &mut EvalContext| -> Result<Option<(Vec<u8>, i64)>> {
            if batch.is_empty() {
                right.next(ctx, &mut batch)?;
            }
            Ok(batch.pop().map(|row: Row| (key_of(&row, how.types), 1)))
        };
        match self.build(0, ctx, &mut next)? {
            Built::Counts(counts) => self.counts = counts,
            Built::Parted(rights) => {
                let mut lefts = Partitions::new(&host(ctx).spill()?, 0)?;
                let (mut left, mut rows) = (self.left.take(), Vec::new());
                while let Some(left) = &mut left
                    && left.next(ctx, &mut rows)?
                {
                    rows.drain(..).try_for_each(|row| lefts.put(&key_of(&row, how.types), &row))?;
                }
                self.parts = lefts.finish()?.into_iter().zip(rights.finish()?).collect();
            }
        }
        Ok(())
    }

    /// Counts keys, or partitions them if memory is short.
    fn build(&mut self, level: u32, ctx: &mut EvalContext, next: &mut Next<'_>) -> Result<Built> {
        let (mut counts, mut parted): (Counts, Option<Partitions>) = (Counts::default(), None);
        while let Some((key, times)) = next(ctx)? {
            if let Some(partitions) = &mut parted {
                partitions.put(&key, &[Value::Int(times)])?;
                continue;
            }
            if let Some(count) = counts.get_mut(&key) {
                *count += times;
                continue;
            }
            let bytes = key.len() + 72;
            if level < LEVELS && host(ctx).must_spill(&self.held, bytes) {
                let partitions = parted.insert(Partitions::new(&host(ctx).spill()?, level)?);
                for (key, count) in counts.drain() {
                    partitions.put(&key, &[Value::Int(count)])?;
                }
                partitions.put(&key, &[Value::Int(times)])?;
                self.held.clear();
                continue;
            }
            if level < LEVELS {
                host(ctx).count(&mut self.held, bytes)?
            } else {
                host(ctx).hold(&mut self.held, bytes)?
            }
            counts.insert(key, times);
        }
        Ok(match parted {
            Some(partitions) => Built::Parted(partitions),
            None => Built::Counts(counts),
        })
    }

    /// Counts the keys of the next partition. Returns false at the end.
    fn next_part(&mut self, ctx: &mut EvalContext) -> Result<bool> {
        self.counts.clear();
        self.held.clear();
        let Some((left, right)) = self.parts.pop() else { return Ok(false) };
        let (mut rows, mut count) = (right.rows(), 0u64);
        let mut next = |ctx: &mut EvalContext| -> Result<Option<(Vec<u8>, i64)>> {
            count += 1;
            if count.is_multiple_of(1024) {
                host(ctx).look_up()?;
            }
            match rows.next()? {
                Some((key, row)) => match row[..] {
                    [Value::Int(times)] => Ok(Some((key, times))),
                    _ => Err(Fault::corrupt("a count in a temporary file")),
                },
                None => Ok(None),
            }
        };
        match self.build(right.level, ctx, &mut next)? {
            Built::Counts(counts) => {
                self.counts = counts;
                self.reading = Some(left.rows());
            }
            Built::Parted(rights) => {
                let lefts = left.parted(&host(ctx).spill()?)?;
                self.parts.extend(lefts.into_iter().zip(rights.finish()?));
            }
        }
        Ok(true)
    }
}

fn stays(counts: &mut Counts, key: &[u8], how: How<'_>) -> bool {
    let is_common = match counts.get_mut(key) {
        Some(count) if how.all => {
            let is_left = *count > 0;
            *count -= i64::from(is_left);
            is_left
        }
        found => found.is_some(),
    };
    is_common == how.keeps_common
}
