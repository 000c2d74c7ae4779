//! Joins: a loop that opens the right side for each left row, and a hash table of the right side.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Result;
use crate::exec::host::{host, row_bytes};
use crate::exec::{BATCH, Exec, all_hold, drain};
use crate::plan::{HashJoin, JoinKind, Node};
use crate::scalar::key::encode;
use crate::scalar::{EvalContext, Expr};
use crate::session::Row;
use crate::types::Type;
use crate::value::Value;

pub struct LoopState {
    left: Exec,
    lefts: std::vec::IntoIter<Row>,
    /// The left row, what runs on the right of it, whether it has matched.
    current: Option<(Arc<Row>, Exec, bool)>,
    /// Bytes held before the right side began.
    held: usize,
    batch: Vec<Row>,
}

impl LoopState {
    pub fn new(left: Exec) -> LoopState {
        LoopState { left, lefts: Vec::new().into_iter(), current: None, held: 0, batch: Vec::new() }
    }

    fn next_left(&mut self, ctx: &mut EvalContext) -> Result<Option<Row>> {
        if let Some(row) = self.lefts.next() {
            return Ok(Some(row));
        }
        let mut rows = Vec::new();
        self.left.next(ctx, &mut rows)?;
        self.lefts = rows.into_iter();
        Ok(self.lefts.next())
    }

    pub fn next(
        &mut self,
        right: &Arc<Node>,
        kind: JoinKind,
        on: &[Expr],
        fills: &[(usize, usize)],
        ctx: &mut EvalContext,
        out: &mut Vec<Row>,
    ) -> Result<()> {
        while out.len() < BATCH {
            if self.current.is_none() {
                let Some(row) = self.next_left(ctx)? else { return Ok(()) };
                let row = Arc::new(row);
                self.held = host(ctx).memory;
                let exec = Exec::open(right, Some(&row), ctx)?;
                self.current = Some((row, exec, false));
            }
            let Some((left, exec, matched)) = &mut self.current else { continue };
            if exec.next(ctx, &mut self.batch)? {
                for row in self.batch.drain(..) {
                    if all_hold(on, &row, ctx)? {
                        *matched = true;
                        out.push(row);
                    }
                }
                continue;
            }
            if kind == JoinKind::Left && !*matched {
                out.push(without(left, fills));
            }
            self.current = None;
            host(ctx).memory = self.held;
        }
        Ok(())
    }
}

/// The left row with NULL where the right side would be.
fn without(left: &Row, fills: &[(usize, usize)]) -> Row {
    let mut row = left.clone();
    for (from, to) in fills {
        row[*from..*to].fill(Value::Null);
    }
    row
}

pub struct HashState {
    left: Exec,
    lefts: std::vec::IntoIter<Row>,
    table: Option<HashMap<Vec<u8>, Vec<Row>>>,
}

impl HashState {
    pub fn new(left: Exec) -> HashState {
        HashState { left, lefts: Vec::new().into_iter(), table: None }
    }

    pub fn next(
        &mut self,
        join: &HashJoin,
        base: Option<&Arc<Row>>,
        ctx: &mut EvalContext,
        out: &mut Vec<Row>,
    ) -> Result<()> {
        if self.table.is_none() {
            self.table = Some(build(join, base, ctx)?);
        }
        let Some(table) = &self.table else { return Ok(()) };
        while out.len() < BATCH {
            let Some(left) = self.lefts.next() else {
                let mut rows = Vec::new();
                if !self.left.next(ctx, &mut rows)? {
                    return Ok(());
                }
                self.lefts = rows.into_iter();
                continue;
            };
            let mut matched = false;
            if let Some(key) = key(&join.left_keys, &join.types, &left, ctx)? {
                for right in table.get(&key).into_iter().flatten() {
                    let mut row = left.clone();
                    for (from, to) in &join.fills {
                        row[*from..*to].clone_from_slice(&right[*from..*to]);
                    }
                    if all_hold(&join.on, &row, ctx)? {
                        matched = true;
                        out.push(row);
                    }
                }
            }
            if join.kind == JoinKind::Left && !matched {
                out.push(without(&left, &join.fills));
            }
        }
        Ok(())
    }
}

fn build(join: &HashJoin, base: Option<&Arc<Row>>, ctx: &mut EvalContext) -> Result<HashMap<Vec<u8>, Vec<Row>>> {
    let mut exec = Exec::open(&join.right, base, ctx)?;
    let mut table: HashMap<Vec<u8>, Vec<Row>> = HashMap::new();
    for row in drain(&mut exec, ctx, usize::MAX)? {
        if let Some(key) = key(&join.right_keys, &join.types, &row, ctx)? {
            host(ctx).hold(key.len() + row_bytes(&[]))?;
            table.entry(key).or_default().push(row);
        }
    }
    Ok(table)
}

/// None: a NULL, which equals nothing.
fn key(exprs: &[Expr], types: &[Type], row: &Row, ctx: &mut EvalContext) -> Result<Option<Vec<u8>>> {
    let mut key = Vec::new();
    for (expr, ty) in exprs.iter().zip(types) {
        let value = expr.eval(row, ctx)?;
        if value.is_null() {
            return Ok(None);
        }
        encode(&value, ty, false, &mut key);
    }
    Ok(Some(key))
}
