//! Frames of windows: the checks of offsets, and PostgreSQL's `in_range` functions, which tell whether a value is within an offset of another one.

use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Finish, Function, Run};

use crate::error::{PgError, state};
use crate::functions::args::{integer, truth};
use crate::functions::numeric::arithmetic::{add, subtract};
use crate::functions::state::StateOf;
use crate::functions::temporal::arithmetic::{interval_difference, interval_sum, negated, timestamp_plus};
use crate::functions::temporal::convert::date_to_timestamp;
use crate::functions::temporal::values::{date, double, micros, span, timetz};
use crate::types::oid::{self, Oid};
use crate::types::temporal::{PgZone, Span};
use crate::value::Value;

/// The types of offsets for a column type, the column's own first; none if there is no `in_range` function for it.
pub fn offset_types(column: Oid) -> &'static [Oid] {
    match column {
        oid::INT2 => &[oid::INT2, oid::INT4, oid::INT8],
        oid::INT4 => &[oid::INT4, oid::INT2, oid::INT8],
        oid::INT8 => &[oid::INT8],
        oid::FLOAT4 | oid::FLOAT8 => &[oid::FLOAT8],
        oid::NUMERIC => &[oid::NUMERIC],
        oid::DATE | oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::INTERVAL => &[oid::INTERVAL],
        _ => &[],
    }
}

/// Returns the function of (value, base, offset, subtract, less): whether the value is not in the range.
pub fn outside(column: Oid) -> Option<&'static Function> {
    Some(match column {
        oid::INT2 | oid::INT4 | oid::INT8 => &INTEGERS,
        oid::FLOAT4 | oid::FLOAT8 => &FLOATS,
        oid::NUMERIC => &NUMERICS,
        oid::DATE => &DATES,
        oid::TIME => &TIMES,
        oid::TIMETZ => &TIMES_WITH_ZONE,
        oid::TIMESTAMP => &TIMESTAMPS,
        oid::TIMESTAMPTZ => &INSTANTS,
        oid::INTERVAL => &INTERVALS,
        _ => return None,
    })
}

const fn in_range(run: query::nodes::function::Body) -> Function {
    Function { finish: Finish::Unchanged, ..Function::new(&["in_range"], Run::Values(run)) }
}

static INTEGERS: Function = in_range(integers);
static FLOATS: Function = in_range(floats);
static NUMERICS: Function = in_range(numerics);
static DATES: Function = in_range(dates);
static TIMES: Function = in_range(times);
static TIMES_WITH_ZONE: Function = in_range(times_with_zone);
static TIMESTAMPS: Function = in_range(timestamps);
static INSTANTS: Function = in_range(instants);
static INTERVALS: Function = in_range(intervals);

/// Of (offset, is start): the offset of ROWS and GROUPS.
pub static COUNT: Function =
    Function { finish: Finish::Unchanged, ..Function::new(&["frame offset"], Run::Values(count)) };
/// The same of RANGE, whose offset is part of the test.
pub static DISTANCE: Function =
    Function { finish: Finish::Unchanged, ..Function::new(&["frame offset"], Run::Values(distance)) };

fn edge(values: &[Value]) -> Result<&'static str> {
    Ok(if truth(values, 1)? { "starting" } else { "ending" })
}

fn distance(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() {
        let text = format!("frame {} offset must not be null", edge(values)?);
        return Err(PgError::new(state::NULL_VALUE_NOT_ALLOWED, text).into());
    }
    Ok(Value::Int(0))
}

fn count(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    distance(call, values, ctx)?;
    if integer(values, 0)? < 0 {
        let text = format!("frame {} offset must not be negative", edge(values)?);
        return Err(PgError::new(state::INVALID_PRECEDING_OR_FOLLOWING_SIZE, text).into());
    }
    Ok(values[0].clone())
}

#[cold]
fn invalid_size() -> Fault {
    let text = "invalid preceding or following size in window function";
    PgError::new(state::INVALID_PRECEDING_OR_FOLLOWING_SIZE, text).into()
}

/// Returns whether the offset is subtracted, and whether the value is to be at most the sum.
fn direction(values: &[Value]) -> Result<(bool, bool)> {
    Ok((truth(values, 3)?, truth(values, 4)?))
}

/// Returns whether a value is on the other side of the sum.
fn is_outside<T: PartialOrd>(value: T, sum: T, less: bool) -> Value {
    (if less { value > sum } else { value < sum }).into()
}

fn integers(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (subtract, less) = direction(values)?;
    let (value, base, offset) = (integer(values, 0)?, integer(values, 1)?, integer(values, 2)?);
    if offset < 0 {
        return Err(invalid_size());
    }
    let (base, offset) = (i128::from(base), i128::from(offset));
    Ok(is_outside(i128::from(value), if subtract { base - offset } else { base + offset }, less))
}

fn floats(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (subtract, less) = direction(values)?;
    let (value, base, offset) = (double(values, 0)?, double(values, 1)?, double(values, 2)?);
    if offset.is_nan() || offset < 0.0 {
        return Err(invalid_size());
    }
    // NaN is greater than all others.
    if value.is_nan() || base.is_nan() {
        let is_in_range = if value.is_nan() { base.is_nan() || !less } else { less };
        return Ok((!is_in_range).into());
    }
    let sum = if subtract { base - offset } else { base + offset };
    // An infinity less itself is everywhere.
    Ok(if sum.is_nan() { false.into() } else { is_outside(value, sum, less) })
}

fn numerics(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (subtracts, less) = direction(values)?;
    let (Value::Decimal(value), Value::Decimal(base), Value::Decimal(offset)) = (&values[0], &values[1], &values[2])
    else {
        return Err(Fault::corrupt("a numeric in the form of another type"));
    };
    if offset.is_nan() || offset.is_negative() {
        return Err(invalid_size());
    }
    if value.is_nan() || base.is_nan() {
        let is_in_range = if value.is_nan() { base.is_nan() || !less } else { less };
        return Ok((!is_in_range).into());
    }
    let sum = if subtracts { subtract(base, offset)? } else { add(base, offset)? };
    Ok(if sum.is_nan() { false.into() } else { is_outside(value, &sum, less) })
}

fn offset_of(values: &[Value]) -> Result<Span> {
    let offset = span(values, 2)?;
    if offset.length() < 0 { Err(invalid_size()) } else { Ok(offset) }
}

fn of_instants(values: &[Value], (value, base): (i64, i64), zone: Option<&PgZone>) -> Result<Value> {
    let (subtract, less) = direction(values)?;
    let offset = offset_of(values)?;
    let sum = timestamp_plus(base, if subtract { negated(offset) } else { offset }, zone)?;
    Ok(is_outside(value, sum, less))
}

fn timestamps(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of_instants(values, (micros(values, 0)?, micros(values, 1)?), None)
}

fn instants(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_instants(values, (micros(values, 0)?, micros(values, 1)?), Some(&ctx.state().io.zone))
}

fn dates(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of_instants(values, (date_to_timestamp(date(values, 0)?)?, date_to_timestamp(date(values, 1)?)?), None)
}

/// Returns the sum of a time of day and an offset, whose days and months do not count. It does not go around the clock.
fn time_sum(values: &[Value], base: i64) -> Result<i64> {
    let offset = span(values, 2)?.micros;
    if offset < 0 {
        return Err(invalid_size());
    }
    Ok(if truth(values, 3)? { base.saturating_sub(offset) } else { base.saturating_add(offset) })
}

fn times(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(is_outside(micros(values, 0)?, time_sum(values, micros(values, 1)?)?, truth(values, 4)?))
}

fn times_with_zone(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (value, base) = (timetz(values, 0)?, timetz(values, 1)?);
    let sum = time_sum(values, base.utc())?;
    Ok(is_outside((value.utc(), value.west), (sum, base.west), truth(values, 4)?))
}

fn intervals(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (subtract, less) = direction(values)?;
    let (value, base, offset) = (span(values, 0)?, span(values, 1)?, offset_of(values)?);
    let sum = if subtract { interval_difference(base, offset)? } else { interval_sum(base, offset)? };
    Ok(is_outside(value.length(), sum.length(), less))
}
