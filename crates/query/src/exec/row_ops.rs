//! Operations on single rows that several operators share.

use std::sync::Arc;

use datum::key::{KeyOrder, encode};
use datum::{Fault, Result};

use crate::batch::Row;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::types::Type;
use crate::value::Value;

/// The approximate number of rows in a batch.
pub(super) const BATCH: usize = 256;
/// The size above which a batch of newly built values takes no more rows.
pub(super) const BATCH_BYTES: usize = 512 << 10;

/// Returns an empty wide row, or the left one.
pub(super) fn template(base: Option<&Arc<Row>>, width: usize) -> Row {
    match base {
        Some(base) => Row::clone(base),
        None => vec![Value::Null; width],
    }
}

/// Returns a wide row with these values at an offset.
pub(super) fn placed(values: Row, base: Option<&Arc<Row>>, offset: usize, width: usize) -> Row {
    let mut row = template(base, width);
    values.into_iter().enumerate().for_each(|(at, value)| row[offset + at] = value);
    row
}

/// Returns whether the row satisfies all of the conditions.
pub fn all_hold(conditions: &[Expr], row: &[Value], ctx: &mut EvalContext) -> Result<bool> {
    for condition in conditions {
        if !condition.holds(row, ctx)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Evaluates limit and offset.
pub fn limits(limit: Option<&Expr>, offset: Option<&Expr>, ctx: &mut EvalContext) -> Result<(u64, u64)> {
    let mut number = |expr: Option<&Expr>, default: u64| match expr.map(|expr| expr.eval(&[], ctx)).transpose()? {
        None => Ok(default),
        Some(Value::Int(number)) if number >= 0 => Ok(number as u64),
        Some(Value::UInt(number)) => Ok(number),
        Some(_) => Err(Fault::InvalidLimit),
    };
    Ok((number(limit, u64::MAX)?, number(offset, 0)?))
}

/// Encodes the first values of a row as a key.
pub fn key_of(row: &[Value], types: &[Type]) -> Vec<u8> {
    let mut key = Vec::with_capacity(16 * types.len());
    row.iter().zip(types).for_each(|(value, ty)| encode(value, ty.shape(), KeyOrder::ASCENDING, &mut key));
    key
}
