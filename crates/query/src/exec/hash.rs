//! Hash join: builds a hash table of the right side and probes it with the left.
//!
//! When the right side does not fit in memory, both sides are partitioned into files by the hash of their keys and
//! joined partition by partition. A partition that is still too large is partitioned again (a Grace hash join).

use std::sync::Arc;

use datum::Result;
use datum::key::{KeyOrder, encode};
use stdx::hash::Map;

use crate::batch::Row;
use crate::exec::Exec;
use crate::exec::host::host;
use crate::exec::join::without;
use crate::exec::memory::{Held, row_bytes};
use crate::exec::row_ops::{BATCH, all_hold};
use crate::exec::spill::partition::{LEVELS, Part, Partitions, Rows};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::{HashJoin, JoinKind};
use crate::types::Type;

type Table = Map<Vec<u8>, Vec<Row>>;
/// Returns the next row with its key, or None at the end.
type Next<'n> = dyn FnMut(&mut EvalContext) -> Result<Option<(Vec<u8>, Row)>> + 'n;

pub struct HashState {
    left: Option<Exec>,
    lefts: std::vec::IntoIter<Row>,
    table: Option<Table>,
    held: Held,
    /// The key of the current left row.
    key: Vec<u8>,
    /// Left rows of the current partition.
    reading: Option<Rows>,
    /// Partitions of both sides.
    parts: Vec<(Part, Part)>,
    /// The approximate size of a batch.
    most: usize,
}

/// The right side after it was read.
enum Built {
    Table(Table),
    Parted(Partitions),
}

impl HashState {
    pub fn new(left: Exec, most: usize) -> HashState {
        let lefts = Vec::new().into_iter();
        HashState {
            left: Some(left),
            lefts,
            table: None,
            held: Held::default(),
            key: Vec::new(),
            reading: None,
            parts: Vec::new(),
            most,
        }
    }

    pub fn next(
        &mut self,
        join: &HashJoin,
        base: Option<&Arc<Row>>,
        ctx: &mut EvalContext,
        out: &mut Vec<Row>,
    ) -> Result<()> {
        if self.table.is_none() {
            self.begin(join, base, ctx)?;
        }
        while out.len() < self.most {
            let Some((has_key, mut left)) = self.next_left(join, ctx)? else {
                if self.next_part(ctx)? {
                    continue;
                }
                return Ok(());
            };
            let mut matched = false;
            let found = self.table.as_ref().filter(|_| has_key).and_then(|table| table.get(&self.key));
            let is_decided = join.on.is_empty() && matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
            if is_decided {
                if found.is_some() == (join.kind == JoinKind::Semi) {
                    out.push(left);
                }
                continue;
            }
            // Each match overwrites the one before in the left row itself; the last one takes it.
            let mut rights = found.into_iter().flatten().peekable();
            while let Some(right) = rights.next() {
                for (place, value) in join.kept.iter().zip(right) {
                    left[*place].clone_from(value);
                }
                if all_hold(&join.on, &left, ctx)? {
                    matched = true;
                    if matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
                        break;
                    }
                    let is_last = rights.peek().is_none();
                    out.push(if is_last { std::mem::take(&mut left) } else { left.clone() });
                }
            }
            match join.kind {
                JoinKind::Left if !matched => out.push(without(&left, &join.fills)),
                JoinKind::Semi if matched => out.push(left),
                JoinKind::Anti if !matched => out.push(left),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the right side, and partitions both sides if it is too large.
    fn begin(&mut self, join: &HashJoin, base: Option<&Arc<Row>>, ctx: &mut EvalContext) -> Result<()> {
        let mut right = Exec::open(&join.right, base, ctx)?;
        let mut batch = Vec::new();
        let mut next = |ctx: &mut EvalContext| -> Result<Option<(Vec<u8>, Row)>> {
            loop {
                if let Some(mut row) = batch.pop() {
                    if let Some(key) = key(&join.right_keys, &join.types, &row, ctx)? {
                        // Only the table's own used columns of a wide row are kept.
                        let own = join.kept.iter().map(|place| std::mem::take(&mut row[*place])).collect();
                        return Ok(Some((key, own)));
                    }
                } else if !right.next(ctx, &mut batch)? {
                    return Ok(None);
                } else {
                    batch.reverse();
                }
            }
        };
        match self.build(0, ctx, &mut next)? {
            Built::Table(table) => self.table = Some(table),
            Built::Parted(rights) => {
                self.table = Some(Table::default());
                let mut lefts = Partitions::new(&host(ctx).spill()?, 0)?;
                let Some(mut left) = self.left.take() else { return Ok(()) };
                let (mut rows, mut alone) = (Vec::new(), Vec::new());
                while left.next(ctx, &mut rows)? {
                    for row in rows.drain(..) {
                        match key(&join.left_keys, &join.types, &row, ctx)? {
                            Some(key) => lefts.put(&key, &row)?,
                            // A NULL equals nothing, so the row belongs to no partition.
                            None if matches!(join.kind, JoinKind::Left | JoinKind::Anti) => alone.push(row),
                            None => {}
                        }
                    }
                    if alone.len() > BATCH {
                        // An empty key marks these rows; no other key is empty.
                        alone.drain(..).try_for_each(|row| lefts.put(&[], &row))?;
                    }
                }
                alone.drain(..).try_for_each(|row| lefts.put(&[], &row))?;
                self.parts = lefts.finish()?.into_iter().zip(rights.finish()?).collect();
            }
        }
        Ok(())
    }

    /// Builds the hash table, or partitions if memory is short.
    fn build(&mut self, level: u32, ctx: &mut EvalContext, next: &mut Next<'_>) -> Result<Built> {
        let (mut table, mut parted): (Table, Option<Partitions>) = (Table::default(), None);
        while let Some((key, row)) = next(ctx)? {
            let bytes = 2 * key.len() + 48 + row_bytes(&row);
            if parted.is_none() && level < LEVELS && host(ctx).must_spill(&self.held, bytes) {
                let mut partitions = Partitions::new(&host(ctx).spill()?, level)?;
                for (key, rows) in table.drain() {
                    rows.iter().try_for_each(|row| partitions.put(&key, row))?;
                }
                self.held.clear();
                parted = Some(partitions);
            }
            if let Some(partitions) = &mut parted {
                partitions.put(&key, &row)?;
                continue;
            }
            if level < LEVELS {
                host(ctx).count(&mut self.held, bytes)?
            } else {
                host(ctx).hold(&mut self.held, bytes)?
            }
            table.entry(key).or_default().push(row);
        }
        Ok(match parted {
            Some(partitions) => Built::Parted(partitions),
            None => Built::Table(table),
        })
    }

    /// Returns the next left row. Its key, if it has one, is in `key`.
    fn next_left(&mut self, join: &HashJoin, ctx: &mut EvalContext) -> Result<Option<(bool, Row)>> {
        if let Some(rows) = &mut self.reading {
            let Some((key, row)) = rows.next()? else { return Ok(None) };
            self.key = key;
            return Ok(Some((true, row)));
        }
        let Some(left) = &mut self.left else { return Ok(None) };
        loop {
            if let Some(row) = self.lefts.next() {
                let has_key = write_key(&join.left_keys, &join.types, &row, ctx, &mut self.key)?;
                return Ok(Some((has_key, row)));
            }
            let mut rows = Vec::new();
            if !left.next(ctx, &mut rows)? {
                self.left = None;
                return Ok(None);
            }
            self.lefts = rows.into_iter();
        }
    }

    /// Builds the hash table of the next partition. Returns false at the end.
    fn next_part(&mut self, ctx: &mut EvalContext) -> Result<bool> {
        self.reading = None;
        self.held.clear();
        let Some((left, right)) = self.parts.pop() else { return Ok(false) };
        host(ctx).look_up()?;
        let (mut rows, mut count) = (right.rows(), 0u64);
        let mut next = |ctx: &mut EvalContext| {
            count += 1;
            if count.is_multiple_of(1024) {
                host(ctx).look_up()?;
            }
            rows.next()
        };
        match self.build(right.level, ctx, &mut next)? {
            Built::Table(table) => {
                self.table = Some(table);
                self.reading = Some(left.rows());
            }
            Built::Parted(rights) => {
                self.table = Some(Table::default());
                let lefts = left.parted(&host(ctx).spill()?)?;
                self.parts.extend(lefts.into_iter().zip(rights.finish()?));
            }
        }
        Ok(true)
    }
}

/// Returns the key of a row, or None if it has a NULL.
fn key(exprs: &[Expr], types: &[Type], row: &Row, ctx: &mut EvalContext) -> Result<Option<Vec<u8>>> {
    let mut key = Vec::new();
    Ok(write_key(exprs, types, row, ctx, &mut key)?.then_some(key))
}

/// Writes the key into a buffer. Returns false if it has a NULL.
fn write_key(exprs: &[Expr], types: &[Type], row: &Row, ctx: &mut EvalContext, key: &mut Vec<u8>) -> Result<bool> {
    key.clear();
    for (expr, ty) in exprs.iter().zip(types) {
        let computed;
        let value = match expr {
            Expr::Column(place, _) => &row[*place],
            expr => {
                computed = expr.eval(row, ctx)?;
                &computed
            }
        };
        if value.is_null() {
            return Ok(false);
        }
        encode(value, ty.shape(), KeyOrder::ASCENDING, key);
    }
    Ok(true)
}
