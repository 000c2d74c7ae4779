//! Ranges and multiranges made of others: union, difference, intersection, and what encloses them.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::range::{ArgumentSpans, touch, type_of};
use crate::types::range::{GatheredRanges, RangeSpan, RangeType};
use crate::value::Value;

#[cold]
fn not_contiguous(operation: &str) -> PgError {
    PgError::new(state::DATA_EXCEPTION, format!("result of range {operation} would not be contiguous"))
}

/// Returns what two ranges have in common. Of equal ends it has those of the first range.
fn common<'v>(ty: RangeType, a: &RangeSpan<'v>, b: &RangeSpan<'v>) -> Result<Option<RangeSpan<'v>>> {
    if !a.overlaps(b) {
        return Ok(None);
    }
    let lower = if a.lower.compare(&b.lower).is_ge() { &a.lower } else { &b.lower };
    let upper = if a.upper.compare(&b.upper).is_le() { &a.upper } else { &b.upper };
    Ok(ty.range(lower.clone(), upper.clone())?)
}

/// Returns what is left of a range below and above another that overlaps it.
fn without<'v>(ty: RangeType, a: &RangeSpan<'v>, b: &RangeSpan<'v>) -> Result<[Option<RangeSpan<'v>>; 2]> {
    let below = a.lower.compare(&b.lower).is_lt().then(|| ty.range(a.lower.clone(), b.lower.turned()));
    let above = a.upper.compare(&b.upper).is_gt().then(|| ty.range(b.upper.turned(), a.upper.clone()));
    Ok([below.transpose()?.flatten(), above.transpose()?.flatten()])
}

/// Returns the range from the one to the other, or the one that is not empty.
fn united(call: &Call, values: &[Value], is_strict: bool) -> Result<Value> {
    let (a, b) = ArgumentSpans::two(call, values)?;
    let Some(one) = a.clone().next()? else { return Ok(values[1].clone()) };
    let Some(other) = b.clone().next()? else { return Ok(values[0].clone()) };
    if is_strict && !one.overlaps(&other) && !touch(&a, &b)? {
        return Err(not_contiguous("union").into());
    }
    Ok(a.ty.value(Some(&one.joined(other))))
}

pub fn union(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    united(call, values, true)
}

pub fn merge(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    united(call, values, false)
}

/// Returns the range that encloses those of a multirange.
pub fn merge_all(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let spans = ArgumentSpans::of(call, values, 0)?;
    let made = match spans.lower()?.zip(spans.upper()?) {
        Some((lower, upper)) => spans.ty.range(lower, upper)?,
        None => None,
    };
    Ok(spans.ty.value(made.as_ref()))
}

pub fn minus(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (mut a, mut b) = ArgumentSpans::two(call, values)?;
    let (Some(one), Some(other)) = (a.next()?, b.next()?) else { return Ok(values[0].clone()) };
    if !one.overlaps(&other) {
        return Ok(values[0].clone());
    }
    if one.lower.compare(&other.lower).is_lt() && one.upper.compare(&other.upper).is_gt() {
        return Err(not_contiguous("difference").into());
    }
    let [below, above] = without(a.ty, &one, &other)?;
    Ok(a.ty.value(below.or(above).as_ref()))
}

pub fn intersect(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    intersection(type_of(call, 0)?, values)
}

/// Returns what two ranges have in common.
pub fn intersection(ty: RangeType, values: &[Value]) -> Result<Value> {
    let (mut a, mut b) = (ArgumentSpans::of_value(ty, &values[0])?, ArgumentSpans::of_value(ty, &values[1])?);
    let made = match a.next()?.zip(b.next()?) {
        Some((a, b)) => common(ty, &a, &b)?,
        None => None,
    };
    Ok(ty.value(made.as_ref()))
}

pub fn union_all(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (mut a, mut b) = ArgumentSpans::two(call, values)?;
    let mut both = GatheredRanges::default();
    while let Some(span) = a.next()? {
        both.push(&span);
    }
    while let Some(span) = b.next()? {
        both.push(&span);
    }
    Ok(a.ty.multirange(&both)?)
}

pub fn minus_all(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (mut a, mut b) = ArgumentSpans::two(call, values)?;
    let (mut left, mut other) = (GatheredRanges::default(), b.next()?);
    while let Some(span) = a.next()? {
        let mut rest = Some(span);
        while let (Some(span), Some(cut)) = (&rest, &other) {
            if cut.lower.compare(&span.upper).is_gt() {
                break;
            }
            // The other range goes on beyond this one, and may reach the next.
            let reaches = cut.upper.compare(&span.upper).is_gt();
            if cut.upper.compare(&span.lower).is_ge() {
                let [below, above] = without(a.ty, span, cut)?;
                below.iter().for_each(|span| left.push(span));
                rest = above;
            }
            if reaches {
                break;
            }
            other = b.next()?;
        }
        rest.iter().for_each(|span| left.push(span));
    }
    Ok(a.ty.multirange(&left)?)
}

pub fn intersect_all(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    intersection_of_all(type_of(call, 0)?, values)
}

/// Returns what two multiranges have in common.
pub fn intersection_of_all(ty: RangeType, values: &[Value]) -> Result<Value> {
    let (mut a, mut b) = (ArgumentSpans::of_value(ty, &values[0])?, ArgumentSpans::of_value(ty, &values[1])?);
    let (mut one, mut other) = (a.next()?, b.next()?);
    let mut made = GatheredRanges::default();
    while let (Some(left), Some(right)) = (&one, &other) {
        common(ty, left, right)?.iter().for_each(|span| made.push(span));
        match left.upper.compare(&right.upper).is_lt() {
            true => one = a.next()?,
            false => other = b.next()?,
        }
    }
    Ok(ty.multirange(&made)?)
}
