//! Functions and operators of ranges and multiranges.
//!
//! A range is here a list of no or one span, a multirange a list of any number, in order and apart. So the operators between the two kinds of types have one body.

pub mod aggregate;
pub mod combine;
pub mod construct;
pub mod rows;
mod sets;

use std::cmp::Ordering;

use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::functions::args::bytes_of;
use crate::types::oid;
use crate::types::range::{self, RangeEnd, RangeSpan, RangeSpans, RangeType, key_of};
use crate::types::registry;
use crate::value::Value;

/// Returns the range type of an argument, or that of its multirange type.
fn type_of(call: &Call, at: usize) -> Result<RangeType> {
    let ty = range::of(registry::oid_of(&call.arguments[at].ty()));
    ty.ok_or_else(|| Fault::corrupt("an argument that is no range"))
}

/// The spans of an argument, read one after another.
#[derive(Clone)]
struct ArgumentSpans<'v> {
    ty: RangeType,
    left: RangeSpans<'v>,
}

impl<'v> ArgumentSpans<'v> {
    fn of(call: &Call, values: &'v [Value], at: usize) -> Result<ArgumentSpans<'v>> {
        ArgumentSpans::of_value(type_of(call, at)?, &values[at])
    }

    fn of_value(ty: RangeType, value: &'v Value) -> Result<ArgumentSpans<'v>> {
        Ok(ArgumentSpans { ty, left: ty.spans(bytes_of(value)?) })
    }

    fn two(call: &Call, values: &'v [Value]) -> Result<(ArgumentSpans<'v>, ArgumentSpans<'v>)> {
        Ok((ArgumentSpans::of(call, values, 0)?, ArgumentSpans::of(call, values, 1)?))
    }

    fn next(&mut self) -> Result<Option<RangeSpan<'v>>> {
        Ok(self.left.next().transpose()?)
    }

    fn lower(&self) -> Result<Option<RangeEnd<'v>>> {
        Ok(self.clone().next()?.map(|span| span.lower))
    }

    fn upper(&self) -> Result<Option<RangeEnd<'v>>> {
        let (mut spans, mut upper) = (self.clone(), None);
        while let Some(span) = spans.next()? {
            upper = Some(span.upper);
        }
        Ok(upper)
    }
}

/// Returns the value of an end; NULL for none and for an infinite one.
fn value_of(ty: RangeType, end: Option<RangeEnd<'_>>) -> Result<Value> {
    Ok(end.map(|end| end.value(ty)).transpose()?.flatten().unwrap_or(Value::Null))
}

pub fn lower(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let spans = ArgumentSpans::of(call, values, 0)?;
    value_of(spans.ty, spans.lower()?)
}

pub fn upper(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let spans = ArgumentSpans::of(call, values, 0)?;
    value_of(spans.ty, spans.upper()?)
}

pub fn is_empty(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(ArgumentSpans::of(call, values, 0)?.next()?.is_none().into())
}

pub fn lower_inc(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(ArgumentSpans::of(call, values, 0)?.lower()?.is_some_and(|end| end.is_inclusive).into())
}

pub fn upper_inc(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(ArgumentSpans::of(call, values, 0)?.upper()?.is_some_and(|end| end.is_inclusive).into())
}

pub fn lower_inf(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(ArgumentSpans::of(call, values, 0)?.lower()?.is_some_and(|end| end.is_infinite()).into())
}

pub fn upper_inf(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(ArgumentSpans::of(call, values, 0)?.upper()?.is_some_and(|end| end.is_infinite()).into())
}

/// Returns whether each span of the second list fits the one of the first list that is not before it, or whether any does.
fn fits<'v>(
    mut outer: ArgumentSpans<'v>,
    mut inner: ArgumentSpans<'v>,
    is_fit: fn(&RangeSpan<'v>, &RangeSpan<'v>) -> bool,
    wanted: bool,
) -> Result<bool> {
    let mut other = outer.next()?;
    while let Some(span) = inner.next()? {
        while other.as_ref().is_some_and(|other| other.upper.compare(&span.lower).is_lt()) {
            other = outer.next()?;
        }
        if other.as_ref().is_some_and(|other| is_fit(other, &span)) == wanted {
            return Ok(wanted);
        }
    }
    Ok(!wanted)
}

/// An empty range is in every other.
pub fn contains(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (outer, inner) = ArgumentSpans::two(call, values)?;
    Ok(fits(outer, inner, RangeSpan::contains, false)?.into())
}

pub fn contained(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (inner, outer) = ArgumentSpans::two(call, values)?;
    Ok(fits(outer, inner, RangeSpan::contains, false)?.into())
}

pub fn overlaps(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = ArgumentSpans::two(call, values)?;
    Ok(fits(a, b, RangeSpan::overlaps, true)?.into())
}

fn has_element(call: &Call, values: &[Value], range: usize, element: usize) -> Result<Value> {
    let mut spans = ArgumentSpans::of(call, values, range)?;
    let key = key_of(&values[element], spans.ty.shape());
    while let Some(span) = spans.next()? {
        if span.contains_key(&key) {
            return Ok(Value::TRUE);
        }
    }
    Ok(Value::FALSE)
}

pub fn contains_element(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    has_element(call, values, 0, 1)
}

pub fn element_contained(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    has_element(call, values, 1, 0)
}

/// Returns whether two ends are there and their order is one that is asked for.
fn ordered(a: Option<RangeEnd<'_>>, b: Option<RangeEnd<'_>>, is_asked: fn(Ordering) -> bool) -> Value {
    a.zip(b).is_some_and(|(a, b)| is_asked(a.compare(&b))).into()
}

pub fn before(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = ArgumentSpans::two(call, values)?;
    Ok(ordered(a.upper()?, b.lower()?, Ordering::is_lt))
}

pub fn after(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = ArgumentSpans::two(call, values)?;
    Ok(ordered(a.lower()?, b.upper()?, Ordering::is_gt))
}

pub fn overleft(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = ArgumentSpans::two(call, values)?;
    Ok(ordered(a.upper()?, b.upper()?, Ordering::is_le))
}

pub fn overright(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = ArgumentSpans::two(call, values)?;
    Ok(ordered(a.lower()?, b.lower()?, Ordering::is_ge))
}

/// Returns whether two lists touch at their ends.
fn touch(a: &ArgumentSpans<'_>, b: &ArgumentSpans<'_>) -> Result<bool> {
    let meets = |upper: Option<RangeEnd<'_>>, lower: Option<RangeEnd<'_>>| match upper.zip(lower) {
        Some((upper, lower)) => a.ty.touches(&upper, &lower),
        None => Ok(false),
    };
    Ok(meets(a.upper()?, b.lower()?)? || meets(b.upper()?, a.lower()?)?)
}

pub fn adjacent(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = ArgumentSpans::two(call, values)?;
    Ok(touch(&a, &b)?.into())
}

/// Returns the distance between two values of a subtype, as indexes of other servers measure it. That of dates is in days, of timestamps in seconds.
pub fn difference(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let number = |value: &Value| match value {
        Value::Int(number) => *number as f64,
        Value::Decimal(number) => number.to_f64(),
        _ => f64::NAN,
    };
    let (a, b) = (&values[0], &values[1]);
    Ok(Value::Double(match (a, b, registry::oid_of(&call.arguments[0].ty())) {
        (Value::Int(a), Value::Int(b), oid::TIMESTAMP | oid::TIMESTAMPTZ) => (*a as f64 - *b as f64) / 1e6,
        (Value::Int(a), Value::Int(b), oid::DATE) => (*a as i32).wrapping_sub(*b as i32).into(),
        (Value::Decimal(a), Value::Decimal(b), _) => crate::functions::numeric::arithmetic::subtract(a, b)?.to_f64(),
        _ => number(a) - number(b),
    }))
}

/// Returns the range as it is: values have no other form.
pub fn canonical(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(values[0].clone())
}
