//! Comparison operators as functions, for any types of one operator class.
//!
//! The binder makes the core's comparison of an operator that has one; these bodies serve calls by name.

use std::cmp::Ordering;

use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::types::comparison::comparator;
use crate::value::Value;

fn order(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Ordering> {
    let by = comparator(&call.arguments[0].ty(), &call.arguments[1].ty());
    let by = by.ok_or_else(|| Fault::corrupt("a comparison of types without an order"))?;
    by.order(&values[0], &values[1], ctx)
}

pub fn equal(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(order(call, values, ctx)?.is_eq().into())
}

pub fn not_equal(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(order(call, values, ctx)?.is_ne().into())
}

pub fn less(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(order(call, values, ctx)?.is_lt().into())
}

pub fn less_equal(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(order(call, values, ctx)?.is_le().into())
}

pub fn greater(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(order(call, values, ctx)?.is_gt().into())
}

pub fn greater_equal(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(order(call, values, ctx)?.is_ge().into())
}

/// The support function of a btree operator class: -1, 0 or 1.
pub fn compare(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(order(call, values, ctx)? as i64))
}

pub fn larger(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(values[usize::from(order(call, values, ctx)?.is_lt())].clone())
}

pub fn smaller(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(values[usize::from(order(call, values, ctx)?.is_gt())].clone())
}
