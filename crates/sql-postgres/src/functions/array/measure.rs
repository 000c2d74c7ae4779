//! Dimensions of arrays: array_ndims, array_dims, array_lower, array_upper, array_length, cardinality.

use datum::Result;
use datum::value::Dimension;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::functions::args::integer;
use crate::functions::array::array;
use crate::value::Value;

pub fn ndims(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(match array(values, 0)?.dimensions() {
        [] => Value::Null,
        dimensions => Value::Int(dimensions.len() as i64),
    })
}

pub fn dims(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let dimensions = array(values, 0)?.dimensions();
    if dimensions.is_empty() {
        return Ok(Value::Null);
    }
    let text: String = dimensions.iter().map(|of| format!("[{}:{}]", of.lower, of.upper())).collect();
    Ok(Value::text(text))
}

/// Returns the dimension that the second argument names, from 1.
pub fn dimension(values: &[Value]) -> Result<Option<Dimension>> {
    let nth = usize::try_from(integer(values, 1)? - 1).ok();
    let dimensions = array(values, 0)?.dimensions();
    Ok(nth.and_then(|nth| dimensions.get(nth)).copied())
}

fn of(values: &[Value], what: fn(Dimension) -> i64) -> Result<Value> {
    Ok(dimension(values)?.map_or(Value::Null, |dimension| Value::Int(what(dimension))))
}

pub fn lower(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of(values, |dimension| dimension.lower.into())
}

pub fn upper(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of(values, |dimension| dimension.upper().into())
}

pub fn length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of(values, |dimension| dimension.length.into())
}

pub fn cardinality(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(array(values, 0)?.len() as i64))
}
