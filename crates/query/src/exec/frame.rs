//! The bounds of window frames.
//!
//! Both bounds only move forward from row to row. Rows whose ordering value is NULL are peers, and have no distance
//! from other rows.

use datum::{Fault, Result};

use crate::exec::partition::{Amounts, Partition};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::window::{Distance, Edge, Frame, Reach};
use crate::value::Value;

/// The progress of the bounds of a RANGE frame.
#[derive(Default)]
pub struct Edges {
    start: usize,
    end: usize,
}

/// Evaluates the offsets of ROWS. Error 3586 for an invalid one.
pub fn amounts(frame: &Frame, ctx: &mut EvalContext) -> Result<(Option<u64>, Option<u64>)> {
    let mut amount = |edge: &Edge| {
        let (Edge::Preceding(distance) | Edge::Following(distance)) = edge else { return Ok(None) };
        let value = distance.amount.eval(&[], ctx)?;
        let is_negative = match &value {
            Value::Null => true,
            Value::Int(number) => *number < 0,
            Value::Decimal(decimal) => decimal.is_negative(),
            Value::Double(number) => *number < 0.0,
            Value::Text(text) => text.trim_start().starts_with('-'),
            _ => false,
        };
        let invalid = || Fault::InvalidFrame { window: (*frame.window).into() };
        match value {
            _ if is_negative => Err(invalid()),
            Value::Int(number) => Ok(Some(number as u64)),
            Value::UInt(number) => Ok(Some(number)),
            _ if frame.counts_rows => Err(invalid()),
            _ => Ok(None),
        }
    };
    Ok((amount(&frame.start)?, amount(&frame.end)?))
}

impl Edges {
    /// Returns the frame of row `at`: its first row and its end.
    pub fn frame(
        &mut self,
        partition: &mut Partition,
        at: usize,
        frame: &Frame,
        amounts: &Amounts,
        ctx: &mut EvalContext,
    ) -> Result<(usize, usize)> {
        let count = partition.len();
        let rows = |amount: Option<u64>| usize::try_from(amount.unwrap_or(0)).unwrap_or(usize::MAX);
        let start = match (&frame.start, frame.counts_rows) {
            (Edge::Far, _) => 0,
            (Edge::Current, true) => at,
            (Edge::Current, false) => partition.peers.0,
            (Edge::Preceding(_), true) => at.saturating_sub(rows(amounts.start)),
            (Edge::Following(_), true) => at.saturating_add(rows(amounts.start)).min(count),
            (Edge::Preceding(distance), false) => self.reach(partition, at, distance, true, true, ctx)?,
            (Edge::Following(distance), false) => self.reach(partition, at, distance, false, true, ctx)?,
        };
        let end = match (&frame.end, frame.counts_rows) {
            (Edge::Far, _) => count,
            (Edge::Current, true) => at + 1,
            (Edge::Current, false) => partition.peers.1,
            (Edge::Preceding(_), true) => (at + 1).saturating_sub(rows(amounts.end)),
            (Edge::Following(_), true) => at.saturating_add(rows(amounts.end)).saturating_add(1).min(count),
            (Edge::Preceding(distance), false) => self.reach(partition, at, distance, true, false, ctx)?,
            (Edge::Following(distance), false) => self.reach(partition, at, distance, false, false, ctx)?,
        };
        Ok((start, end))
    }

    /// Moves a bound of row `at` forward from that of the row before.
    fn reach(
        &mut self,
        partition: &mut Partition,
        at: usize,
        distance: &Distance,
        precedes: bool,
        is_start: bool,
        ctx: &mut EvalContext,
    ) -> Result<usize> {
        let Some(reach) = &distance.reach else { return Ok(if is_start { at } else { at + 1 }) };
        let row = partition.row(at)?;
        if reach.key.eval(row, ctx)?.is_null() {
            return Ok(if is_start { partition.peers.0 } else { partition.peers.1 });
        }
        let boundary = reach.boundary.eval(row, ctx)?;
        let place = if is_start { &mut self.start } else { &mut self.end };
        while *place < partition.len() {
            let key = reach.key.eval(partition.row(*place)?, ctx)?;
            let is_outside = match key.is_null() {
                true => reach.descending != is_start,
                // The bound is outside the range of the type.
                false if boundary.is_null() => precedes != is_start,
                false => outside(reach, &boundary, key, ctx)?,
            };
            // A frame starts after the rows that are outside, and ends before the first of them.
            if is_outside != is_start {
                break;
            }
            *place += 1;
        }
        Ok(*place)
    }
}

fn outside(reach: &Reach, boundary: &Value, key: Value, ctx: &mut EvalContext) -> Result<bool> {
    let test: &Expr = &reach.outside;
    test.holds(&[boundary.clone(), key], ctx)
}
