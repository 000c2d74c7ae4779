//! The bounds of window frames.
//!
//! Both bounds only move forward from row to row. Rows whose ordering value is NULL are peers, and have no distance
//! from other rows.

use datum::{Fault, Result};

use crate::exec::partition::{Amounts, Partition};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::window::{Distance, Edge, Exclusion, Frame, Reach, Unit};
use crate::value::Value;

/// The progress of the bounds of a RANGE or GROUPS frame.
#[derive(Default)]
pub struct Edges {
    start: Bound,
    end: Bound,
}

#[derive(Default)]
struct Bound {
    place: usize,
    /// The number of the group of peers that the place is in.
    group: u64,
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
            _ if frame.unit != Unit::Range => Err(invalid()),
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
        let group = partition.groups - 1;
        let start = match (&frame.start, frame.unit) {
            (Edge::Far, _) => 0,
            (Edge::Current, Unit::Rows) => at,
            (Edge::Current, _) => partition.peers.0,
            (Edge::Preceding(_), Unit::Rows) => at.saturating_sub(rows(amounts.start)),
            (Edge::Following(_), Unit::Rows) => at.saturating_add(rows(amounts.start)).min(count),
            (Edge::Preceding(distance), Unit::Range) => self.reach(partition, at, distance, true, true, ctx)?,
            (Edge::Following(distance), Unit::Range) => self.reach(partition, at, distance, false, true, ctx)?,
            (Edge::Preceding(_), Unit::Groups) => {
                self.start.advance_to_group(partition, group.saturating_sub(amounts.start.unwrap_or(0)))?
            }
            (Edge::Following(_), Unit::Groups) => {
                self.start.advance_to_group(partition, group.saturating_add(amounts.start.unwrap_or(0)))?
            }
        };
        let end = match (&frame.end, frame.unit) {
            (Edge::Far, _) => count,
            (Edge::Current, Unit::Rows) => at + 1,
            (Edge::Current, _) => partition.peers.1,
            (Edge::Preceding(_), Unit::Rows) => (at + 1).saturating_sub(rows(amounts.end)),
            (Edge::Following(_), Unit::Rows) => at.saturating_add(rows(amounts.end)).saturating_add(1).min(count),
            (Edge::Preceding(distance), Unit::Range) => self.reach(partition, at, distance, true, false, ctx)?,
            (Edge::Following(distance), Unit::Range) => self.reach(partition, at, distance, false, false, ctx)?,
            (Edge::Preceding(_), Unit::Groups) => {
                self.end.advance_to_group(partition, (group + 1).saturating_sub(amounts.end.unwrap_or(0)))?
            }
            (Edge::Following(_), Unit::Groups) => {
                let next = group.saturating_add(amounts.end.unwrap_or(0)).saturating_add(1);
                self.end.advance_to_group(partition, next)?
            }
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
        let place = if is_start { &mut self.start.place } else { &mut self.end.place };
        while *place < partition.len() {
            let key = reach.key.eval(partition.row(*place)?, ctx)?;
            let is_outside = match key.is_null() {
                true => reach.nulls_first == is_start,
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

impl Bound {
    /// Moves forward to the first row of a group of peers, or to the end.
    fn advance_to_group(&mut self, partition: &mut Partition, group: u64) -> Result<usize> {
        while self.group < group && self.place < partition.len() {
            let key = partition.key(self.place)?;
            self.place += 1;
            while self.place < partition.len() && partition.key(self.place)? == key {
                self.place += 1;
            }
            self.group += 1;
        }
        Ok(self.place)
    }
}

/// A frame without the rows that it leaves out, as up to three runs of rows in order.
pub fn runs(frame: &Frame, (from, to): (usize, usize), at: usize, peers: (usize, usize)) -> [(usize, usize); 3] {
    let within = |start: usize, end: usize| {
        let (start, end) = (start.max(from), end.min(to));
        (start, end.max(start))
    };
    match frame.exclusion {
        Exclusion::NoOthers => [within(from, to), (to, to), (to, to)],
        Exclusion::CurrentRow => [within(from, at), within(at + 1, to), (to, to)],
        Exclusion::Group => [within(from, peers.0), within(peers.1, to), (to, to)],
        Exclusion::Ties => [within(from, peers.0), within(at, at + 1), within(peers.1, to)],
    }
}

fn outside(reach: &Reach, boundary: &Value, key: Value, ctx: &mut EvalContext) -> Result<bool> {
    let test: &Expr = &reach.outside;
    test.holds(&[boundary.clone(), key], ctx)
}
