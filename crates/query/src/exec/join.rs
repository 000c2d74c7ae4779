//! Nested-loop join: opens the right side for each left row.

use std::sync::Arc;

use datum::Result;

use crate::batch::Row;
use crate::exec::Exec;
use crate::exec::host::host;
use crate::exec::row_ops::{BATCH, all_hold};
use crate::exec::scan::{ScanState, Take};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::{JoinKind, Node, Scan};
use crate::value::Value;

pub struct LoopState {
    left: Exec,
    lefts: std::vec::IntoIter<Row>,
    /// The left row, the running right side, and whether it has matched.
    current: Option<(Arc<Row>, Exec, bool)>,
    batch: Vec<Row>,
    /// The approximate size of a batch. It is 1 where rows are locked on demand.
    most: usize,
    /// The right side of the left row before.
    spare: Option<Exec>,
    /// The same of a right side whose rows are not given away.
    scan: Option<Box<ScanState>>,
}

impl LoopState {
    pub fn new(left: Exec, most: usize) -> LoopState {
        LoopState {
            left,
            lefts: Vec::new().into_iter(),
            current: None,
            batch: Vec::new(),
            most,
            spare: None,
            scan: None,
        }
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
                let mut spare = self.spare.take();
                let is_restarted = match &mut spare {
                    Some(exec) => exec.restart(&row, ctx)?,
                    None => false,
                };
                let exec = match spare.filter(|_| is_restarted) {
                    Some(exec) => exec,
                    None => Exec::open_for(right, Some(&row), wanted, ctx)?,
                };
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
            self.spare = self.current.take().map(|(_, exec, _)| exec);
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
        let scan = restartable(right);
        let mut join = |state: &mut Option<Box<ScanState>>, left: &[Value], ctx: &mut EvalContext| {
            host(ctx).look_up()?;
            let mut matched = false;
            let mut take_matching = |row: &[Value], ctx: &mut EvalContext| {
                if all_hold(on, row, ctx)? {
                    matched = true;
                    take(row, ctx)?;
                }
                Ok(())
            };
            match scan {
                Some(scan) => ScanState::restarted(state, scan, left, ctx)?.each(scan, ctx, &mut take_matching)?,
                None => Exec::open(right, Some(&Arc::new(left.to_vec())), ctx)?.each(ctx, &mut take_matching)?,
            }
            if kind == JoinKind::Left && !matched { take(&without(left, fills), ctx) } else { Ok(()) }
        };
        if self.left.is_scan() {
            let (left, state) = (&mut self.left, &mut self.scan);
            return left.each(ctx, &mut |row, ctx| join(state, row, ctx));
        }
        while let Some(left) = self.next_left(ctx)? {
            join(&mut self.scan, &left, ctx)?;
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
            if let Some(scan) = restartable(right).filter(|_| host(ctx).measures.is_none()) {
                host(ctx).look_up()?;
                let has_match = ScanState::restarted(&mut self.scan, scan, &row, ctx)?.any(scan, on, ctx)?;
                if has_match == (kind == JoinKind::Semi) {
                    out.push(row);
                }
                continue;
            }
            let row = Arc::new(row);
            let has_match = Exec::open(right, Some(&row), ctx)?.any(on, ctx)?;
            if has_match == (kind == JoinKind::Semi) {
                out.push(Arc::unwrap_or_clone(row));
            }
        }
        Ok(())
    }
}

/// Returns the scan that the right side is, if one state serves it for all left rows.
fn restartable(right: &Node) -> Option<&Scan> {
    match right {
        Node::Scan(scan) if ScanState::may_restart(scan) => Some(scan),
        _ => None,
    }
}

/// Returns the left row with NULLs in the slots of the right side.
pub fn without(left: &[Value], fills: &[(usize, usize)]) -> Row {
    let mut row = left.to_vec();
    for (from, to) in fills {
        row[*from..*to].fill(Value::Null);
    }
    row
}
