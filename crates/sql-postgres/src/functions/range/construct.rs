//! Constructors: `int4range(1, 10)`, `int4range(1, 10, '[]')`, `int4multirange(...)`.

use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::args::{bytes, text};
use crate::functions::array::array;
use crate::functions::range::type_of;
use crate::types::range::{self, GatheredRanges, RangeEnd, RangeType};
use crate::types::registry;
use crate::value::Value;

/// Returns the range type of the result, or that of the multirange.
fn result_type(call: &Call) -> Result<RangeType> {
    range::of(registry::oid_of(&call.ty)).ok_or_else(|| Fault::corrupt("a result that is no range"))
}

fn made(call: &Call, values: &[Value], has_lower: bool, has_upper: bool) -> Result<Value> {
    let ty = result_type(call)?;
    let value = |at: usize| Some(&values[at]).filter(|value| !value.is_null());
    let lower = RangeEnd::new(ty, value(0), true, has_lower)?;
    let upper = RangeEnd::new(ty, value(1), false, has_upper)?;
    Ok(ty.value(ty.range(lower, upper)?.as_ref()))
}

/// A bound that is NULL is infinite.
pub fn of_bounds(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    made(call, values, true, false)
}

pub fn of_bounds_and_flags(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    if values[2].is_null() {
        let text = "range constructor flags argument must not be null";
        return Err(PgError::new(state::DATA_EXCEPTION, text).into());
    }
    match text(values, 2)?.as_bytes() {
        [lower @ (b'[' | b'('), upper @ (b']' | b')')] => made(call, values, *lower == b'[', *upper == b']'),
        _ => {
            let error = PgError::new(state::SYNTAX_ERROR, "invalid range bound flags");
            Err(error.hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".").into())
        }
    }
}

pub fn multirange_of_none(call: &Call, _: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(result_type(call)?.multirange(&GatheredRanges::default())?)
}

pub fn multirange_of_one(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let ty = type_of(call, 0)?;
    let mut gathered = GatheredRanges::default();
    ty.span(bytes(values, 0)?)?.iter().for_each(|span| gathered.push(span));
    Ok(ty.multirange(&gathered)?)
}

/// Returns the multirange of the ranges in an array.
pub fn multirange_of_array(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (ty, ranges) = (result_type(call)?, array(values, 0)?);
    if ranges.dimensions().len() > 1 {
        let text = "multiranges cannot be constructed from multidimensional arrays";
        return Err(PgError::new(state::CARDINALITY_VIOLATION, text).into());
    }
    let mut gathered = GatheredRanges::default();
    for (at, range) in ranges.values().iter().enumerate() {
        if range.is_null() {
            let text = "multirange values cannot contain null members";
            return Err(PgError::new(state::NULL_VALUE_NOT_ALLOWED, text).into());
        }
        if let Some(span) = ty.span(range.as_string_bytes().unwrap_or_default())? {
            gathered.push(&span);
        }
        if at % 4096 == 4095 {
            ctx.check_killed()?;
        }
    }
    Ok(ty.multirange(&gathered)?)
}
