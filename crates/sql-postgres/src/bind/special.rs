//! Functions of SQL's syntax that are no rows of `pg_proc`: COALESCE, GREATEST, LEAST, the checks of LIMIT.

use std::cmp::Ordering;

use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Finish, Function, Run};
use syntax::postgres::tree::IntervalFields;

use crate::bind::comparison::comparator;
use crate::bind::typing::settled;
use crate::error::PgError;
use crate::types::registry::{interval_field, oid_of};
use crate::value::Value;

pub static COALESCE: Function =
    Function { finish: Finish::Unchanged, ..Function::new(&["coalesce"], Run::Lazy(coalesce)) };
pub static GREATEST: Function =
    Function { finish: Finish::Unchanged, ..Function::new(&["greatest"], Run::Values(greatest)) };
pub static LEAST: Function = Function { finish: Finish::Unchanged, ..Function::new(&["least"], Run::Values(least)) };
/// NULLIF of types that the core compares.
pub static NULL_IF: Function =
    Function { finish: Finish::Unchanged, ..Function::new(&["nullif"], Run::Values(null_if)) };
/// The count of LIMIT: NULL is no limit.
pub static LIMIT: Function = Function::new(&["limit"], Run::Values(limit));
/// The count of FETCH ... WITH TIES, which may not be NULL.
pub static TIES: Function = Function::new(&["limit"], Run::Values(ties));
/// The count of OFFSET: NULL is 0.
pub static OFFSET: Function = Function::new(&["offset"], Run::Values(offset));

fn coalesce(call: &Call, row: &[Value], ctx: &mut EvalContext) -> datum::Result<Value> {
    for argument in &call.arguments {
        let value = argument.eval(row, ctx)?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(Value::Null)
}

fn greatest(call: &Call, values: &[Value], ctx: &mut EvalContext) -> datum::Result<Value> {
    extreme(call, values, Ordering::Greater, ctx)
}

fn least(call: &Call, values: &[Value], ctx: &mut EvalContext) -> datum::Result<Value> {
    extreme(call, values, Ordering::Less, ctx)
}

fn extreme(call: &Call, values: &[Value], wanted: Ordering, ctx: &mut EvalContext) -> datum::Result<Value> {
    let ty = oid_of(&call.ty);
    let Some(by) = comparator(ty, ty) else { return Err(datum::Fault::corrupt("values without an order")) };
    let mut best: Option<&Value> = None;
    for value in values.iter().filter(|value| !value.is_null()) {
        let replaces = match best {
            Some(best) => by.order(value, best, ctx)? == wanted,
            None => true,
        };
        if replaces {
            best = Some(value);
        }
    }
    Ok(best.cloned().unwrap_or_default())
}

fn null_if(call: &Call, values: &[Value], ctx: &mut EvalContext) -> datum::Result<Value> {
    if values[0].is_null() || values[1].is_null() {
        return Ok(values[0].clone());
    }
    let [left, right] = [0, 1].map(|at| oid_of(&settled(&call.arguments[at].ty())));
    let Some(by) = comparator(left, right) else { return Err(datum::Fault::corrupt("values without an order")) };
    Ok(if by.order(&values[0], &values[1], ctx)?.is_eq() { Value::Null } else { values[0].clone() })
}

fn limit(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    match values[0] {
        Value::Null => Ok(Value::Int(i64::MAX)),
        Value::Int(count) if count < 0 => Err(PgError::new("2201W", "LIMIT must not be negative").into()),
        ref count => Ok(count.clone()),
    }
}

fn ties(call: &Call, values: &[Value], ctx: &mut EvalContext) -> datum::Result<Value> {
    if values[0].is_null() {
        let text = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
        return Err(PgError::new("2201W", text).into());
    }
    limit(call, values, ctx)
}

fn offset(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    match values[0] {
        Value::Null => Ok(Value::Int(0)),
        Value::Int(count) if count < 0 => Err(PgError::new("2201X", "OFFSET must not be negative").into()),
        ref count => Ok(count.clone()),
    }
}

/// Returns the fields of an interval as the first of its modifiers.
pub fn interval_bits(fields: IntervalFields) -> i32 {
    use interval_field::{DAY, HOUR, MINUTE, MONTH, SECOND, YEAR};
    match fields {
        IntervalFields::Year => YEAR,
        IntervalFields::Month => MONTH,
        IntervalFields::Day => DAY,
        IntervalFields::Hour => HOUR,
        IntervalFields::Minute => MINUTE,
        IntervalFields::Second => SECOND,
        IntervalFields::YearToMonth => YEAR | MONTH,
        IntervalFields::DayToHour => DAY | HOUR,
        IntervalFields::DayToMinute => DAY | HOUR | MINUTE,
        IntervalFields::DayToSecond => DAY | HOUR | MINUTE | SECOND,
        IntervalFields::HourToMinute => HOUR | MINUTE,
        IntervalFields::HourToSecond => HOUR | MINUTE | SECOND,
        IntervalFields::MinuteToSecond => MINUTE | SECOND,
    }
}
