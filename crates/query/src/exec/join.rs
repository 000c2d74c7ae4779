//! Nested-loop join: opens the right side for each left row.

use std::sync::Arc;

use datum::Result;

use crate::batch::Row;
use crate::exec::Exec;
use crate::exec::host::host;
use crate::exec::row_ops::{BATCH, all_hold};
use crate::exec::scan::Take;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::{JoinKind, Node};
use crate::value::Value;

pub struct LoopState {
    left: Exec,
    lefts: std::vec::IntoIter<Row>,
    /// The left row, the running right side, and whether it has matched.
    current: Option<(Arc<Row>, Exec, bool)>,
    batch: Vec<Row>,
    /// The approximate size of a batch. It is 1 where rows are locked on demand.
    most: usize,
}

impl LoopState {
    pub fn new(left: Exec, most: usize) -> LoopState {
        LoopState { left, lefts: Vec::new().into_iter(), current: None, batch: Vec::new(), most }
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
        if kind.decides() {
            return self.next_decided(right, kind, on, ctx, out);
        }
        let wanted = (self.most < BATCH).then_some(1);
        while out.len() < self.most {
            if self.current.is_none() {
                let Some(row) = self.next_left(ctx)? else { return Ok(()) };
                let row = Arc::new(row);
                let exec = Exec::open_for(right, Some(&row), wanted, ctx)?;
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
        }
        Ok(())
    }

    /// Shows every row of an inner or outer join without making rows of their own.
    pub fn each(
        &mut self,
        right: &Arc<Node>,
        (kind, fills): (JoinKind, &[(usize, usize)]),
        on: &[Expr],
        ctx: &mut EvalContext,
        take: &mut Take<'_>,
    ) -> Result<()> {
        while let Some(left) = self.next_left(ctx)? {
            host(ctx).look_up()?;
            let (left, mut matched) = (Arc::new(left), false);
            Exec::open(right, Some(&left), ctx)?.each(ctx, &mut |row, ctx| {
                if all_hold(on, row, ctx)? {
                    matched = true;
                    take(row, ctx)?;
                }
                Ok(())
            })?;
            if kind == JoinKind::Left && !matched {
                take(&without(&left, fills), ctx)?;
            }
        }
        Ok(())
    }

    /// Returns the next left rows of a semi-join or antijoin.
    fn next_decided(
        &mut self,
        right: &Arc<Node>,
        kind: JoinKind,
        on: &[Expr],
        ctx: &mut EvalContext,
        out: &mut Vec<Row>,
    ) -> Result<()> {
        while out.len() < self.most {
            let Some(row) = self.next_left(ctx)? else { return Ok(()) };
            let row = Arc::new(row);
            let has_match = Exec::open(right, Some(&row), ctx)?.any(on, ctx)?;
            if has_match == (kind == JoinKind::Semi) {
                out.push(Arc::unwrap_or_clone(row));
            }
        }
        Ok(())
    }
}

/// Returns the left row with NULLs in the slots of the right side.
pub fn without(left: &Row, fills: &[(usize, usize)]) -> Row {
    let mut row = left.clone();
    for (from, to) in fills {
        row[*from..*to].fill(Value::Null);
    }
    row
}
