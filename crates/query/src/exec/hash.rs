//! Hash join: builds a hash table of the right side and probes it with the left.
//!
//! When the right side does not fit in memory, both sides are partitioned into files by the hash of their keys and
//! joined partition by partition. A partition that is still too large is partitioned again (a Grace hash join).

use std::sync::Arc;

use datum::Result;
use datum::key::{KeyOrder, encode};

use crate::batch::Row;
use crate::exec::Exec;
use crate::exec::host::host;
use crate::exec::key_table::KeyTable;
use crate::exec::memory::{Held, row_bytes};
use crate::exec::row_ops::{BATCH, all_hold};
use crate::exec::scan::Take;
use crate::exec::spill::partition::{LEVELS, Part, Partitions, Rows};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::{HashJoin, JoinKind};
use crate::types::Type;
use crate::value::Value;

/// The used columns of the right rows by their keys. Values of many rows lie in one buffer, so a row takes no allocation of its own.
#[derive(Default)]
struct Table {
    keys: KeyTable,
    /// Of each key, its first and its last row.
    chains: Vec<(u32, u32)>,
    /// Of each row, the next one of its key, or `END`.
    nexts: Vec<u32>,
    /// The values of the rows, `BLOCK` rows in each.
    blocks: Vec<Vec<Value>>,
    /// The number of values of a row.
    width: usize,
}

const END: u32 = u32::MAX;
/// Rows in a block. A full one is not moved when others come.
const BLOCK: usize = 512;

impl Table {
    /// Adds a row behind those of its key.
    fn add(&mut self, key: &[u8], row: impl Iterator<Item = Value>) {
        let at = self.nexts.len();
        if at.is_multiple_of(BLOCK) {
            // The first one grows with its rows, since many tables have few.
            let values = if at == 0 { 0 } else { BLOCK * self.width };
            self.blocks.push(Vec::with_capacity(values));
        }
        let block = &mut self.blocks[at / BLOCK];
        block.extend(row);
        debug_assert_eq!(block.len(), self.width * (at % BLOCK + 1));
        self.nexts.push(END);
        let at = u32::try_from(at).ok().filter(|at| *at != END).expect("memory for so many rows is counted");
        match self.keys.search(key) {
            Ok(number) => {
                let last = std::mem::replace(&mut self.chains[number].1, at);
                self.nexts[last as usize] = at;
            }
            Err(hash) => {
                self.keys.add(key, hash);
                self.chains.push((at, at));
            }
        }
    }

    /// Returns the first row of a key; `None` for no key.
    fn first(&self, key: Option<&Vec<u8>>) -> Option<usize> {
        key.and_then(|key| self.keys.find(key)).map(|number| self.chains[number].0 as usize)
    }

    fn next(&self, at: usize) -> Option<usize> {
        Some(self.nexts[at]).filter(|next| *next != END).map(|next| next as usize)
    }

    fn row(&self, at: usize) -> &[Value] {
        &self.blocks[at / BLOCK][at % BLOCK * self.width..][..self.width]
    }

    /// Gives what a left row makes with the right rows of its key, of which the first is given. Each match overwrites the one before in the left row itself.
    fn join(
        &self,
        join: &HashJoin,
        mut next: Option<usize>,
        left: &mut Row,
        ctx: &mut EvalContext,
        give: &mut Give<'_>,
    ) -> Result<()> {
        let is_decided = join.kind.decides();
        if is_decided && join.on.is_empty() {
            return if next.is_some() == (join.kind == JoinKind::Semi) { give(left, true, ctx) } else { Ok(()) };
        }
        let mut matched = false;
        while let Some(at) = next {
            next = self.next(at);
            for (place, value) in join.kept.iter().zip(self.row(at)) {
                left[*place].clone_from(value);
            }
            if all_hold(&join.on, left, ctx)? {
                matched = true;
                if is_decided {
                    break;
                }
                give(left, next.is_none(), ctx)?;
            }
        }
        match join.kind {
            JoinKind::Left if !matched => {
                join.fills.iter().for_each(|(from, to)| left[*from..*to].fill(Value::Null));
                give(left, true, ctx)
            }
            JoinKind::Semi if matched => give(left, true, ctx),
            JoinKind::Anti if !matched => give(left, true, ctx),
            _ => Ok(()),
        }
    }
}

/// Takes a joined row, and may take it away where it is the last one of its left row.
type Give<'g> = dyn FnMut(&mut Row, bool, &mut EvalContext) -> Result<()> + 'g;

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

/// The right side while it is read: a hash table, or partitions once memory is short.
struct Building {
    table: Table,
    parted: Option<Partitions>,
    held: Held,
    level: u32,
}

impl Building {
    fn new(join: &HashJoin, level: u32) -> Building {
        let table = Table { width: join.kept.len(), ..Table::default() };
        Building { table, parted: None, held: Held::default(), level }
    }

    /// Adds a row, which is empty afterwards.
    fn add(&mut self, key: &[u8], row: &mut Row, ctx: &mut EvalContext) -> Result<()> {
        let bytes = 2 * key.len() + 48 + row_bytes(row);
        if self.parted.is_none() && self.level < LEVELS && host(ctx).must_spill(&self.held, bytes) {
            let mut partitions = Partitions::new(&host(ctx).spill()?, self.level)?;
            let table = Table { width: self.table.width, ..Table::default() };
            let table = std::mem::replace(&mut self.table, table);
            for (number, (first, _)) in table.chains.iter().enumerate() {
                let mut next = Some(*first as usize);
                while let Some(at) = next {
                    partitions.put(table.keys.get(number), table.row(at))?;
                    next = table.next(at);
                }
            }
            self.held.clear();
            self.parted = Some(partitions);
        }
        if let Some(partitions) = &mut self.parted {
            partitions.put(key, row)?;
            row.clear();
            return Ok(());
        }
        if self.level < LEVELS {
            host(ctx).count(&mut self.held, bytes)?
        } else {
            host(ctx).hold(&mut self.held, bytes)?
        }
        self.table.add(key, row.drain(..));
        Ok(())
    }
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
                if self.next_part(join, ctx)? {
                    continue;
                }
                return Ok(());
            };
            let Some(table) = &self.table else { return Ok(()) };
            let first = table.first(has_key.then_some(&self.key));
            table.join(join, first, &mut left, ctx, &mut |row, is_last, _| {
                out.push(if is_last { std::mem::take(row) } else { row.clone() });
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Shows every row without making rows of their own, of a join whose rows nobody has asked for before.
    pub fn each(
        &mut self,
        join: &HashJoin,
        base: Option<&Arc<Row>>,
        ctx: &mut EvalContext,
        take: &mut Take<'_>,
    ) -> Result<()> {
        self.begin(join, base, ctx)?;
        let mut given = 0u64;
        let mut give = |row: &mut Row, _: bool, ctx: &mut EvalContext| {
            given += 1;
            if given.is_multiple_of(1024) {
                host(ctx).look_up()?;
            }
            take(row, ctx)
        };
        if let (Some(table), Some(left)) = (&self.table, self.left.as_mut().filter(|left| left.is_scan())) {
            let (mut key, mut joined) = (Vec::new(), Row::new());
            left.each(ctx, &mut |row, ctx| {
                let has_key = write_key(&join.left_keys, &join.types, row, ctx, &mut key)?;
                let first = table.first(has_key.then_some(&key));
                if first.is_none() && matches!(join.kind, JoinKind::Inner | JoinKind::Semi) {
                    return Ok(());
                }
                joined.clear();
                joined.extend_from_slice(row);
                table.join(join, first, &mut joined, ctx, &mut give)
            })?;
            self.left = None;
        }
        loop {
            while let Some((has_key, mut left)) = self.next_left(join, ctx)? {
                let Some(table) = &self.table else { return Ok(()) };
                let first = table.first(has_key.then_some(&self.key));
                table.join(join, first, &mut left, ctx, &mut give)?;
            }
            if !self.next_part(join, ctx)? {
                return Ok(());
            }
        }
    }

    /// Reads the right side, and partitions both sides if it is too large.
    fn begin(&mut self, join: &HashJoin, base: Option<&Arc<Row>>, ctx: &mut EvalContext) -> Result<()> {
        debug_assert!(self.left.is_some(), "the right side is read once");
        let mut building = Building::new(join, 0);
        let (mut key, mut own) = (Vec::new(), Row::new());
        Exec::open(&join.right, base, ctx)?.each(ctx, &mut |row, ctx| {
            if !write_key(&join.right_keys, &join.types, row, ctx, &mut key)? {
                return Ok(());
            }
            // Only the table's own used columns of a wide row are kept.
            own.extend(join.kept.iter().map(|place| row[*place].clone()));
            building.add(&key, &mut own, ctx)
        })?;
        self.held = building.held;
        self.table = Some(building.table);
        match building.parted {
            None => {}
            Some(rights) => {
                let mut lefts = Partitions::new(&host(ctx).spill()?, 0)?;
                let Some(mut left) = self.left.take() else { return Ok(()) };
                let (mut rows, mut alone) = (Vec::new(), Vec::new());
                while left.next(ctx, &mut rows)? {
                    for row in rows.drain(..) {
                        if write_key(&join.left_keys, &join.types, &row, ctx, &mut key)? {
                            lefts.put(&key, &row)?;
                        } else if matches!(join.kind, JoinKind::Left | JoinKind::Anti) {
                            // A NULL equals nothing, so the row belongs to no partition.
                            alone.push(row);
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
    fn next_part(&mut self, join: &HashJoin, ctx: &mut EvalContext) -> Result<bool> {
        self.reading = None;
        self.held.clear();
        let Some((left, right)) = self.parts.pop() else { return Ok(false) };
        host(ctx).look_up()?;
        let (mut rows, mut count, mut building) = (right.rows(), 0u64, Building::new(join, right.level));
        while let Some((key, mut row)) = rows.next()? {
            building.add(&key, &mut row, ctx)?;
            count += 1;
            if count.is_multiple_of(1024) {
                host(ctx).look_up()?;
            }
        }
        self.held = building.held;
        self.table = Some(building.table);
        match building.parted {
            None => self.reading = Some(left.rows()),
            Some(rights) => {
                let lefts = left.parted(&host(ctx).spill()?)?;
                self.parts.extend(lefts.into_iter().zip(rights.finish()?));
            }
        }
        Ok(true)
    }
}

/// Writes the key into a buffer. Returns false if it has a NULL.
fn write_key(exprs: &[Expr], types: &[Type], row: &[Value], ctx: &mut EvalContext, key: &mut Vec<u8>) -> Result<bool> {
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
