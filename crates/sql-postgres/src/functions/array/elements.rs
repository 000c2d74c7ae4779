//! Arrays made of arrays: array_append, array_prepend, array_cat, array_remove, array_replace, trim_array, array_shuffle, array_sample.

use std::collections::HashSet;

use datum::key::{KeyOrder, encode};
use datum::value::Dimension;
use datum::{Array, Result, Shape};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::state;
use crate::functions::args::{integer, invalid};
use crate::functions::array::search::same;
use crate::functions::array::subscript::cut;
use crate::functions::array::{array, claim, element_type, empty, failed, subscript_error};
use crate::functions::numeric::random::random;
use crate::types::array::count;
use crate::value::Value;

/// Returns an argument, or an empty array for NULL.
fn or_empty(call: &Call, values: &[Value], at: usize) -> Result<Array> {
    match &values[at] {
        Value::Null => empty(call),
        _ => array(values, at).cloned(),
    }
}

fn extended(call: &Call, of: &Array, added: &Value, is_first: bool) -> Result<Value> {
    let lower = match of.dimensions() {
        [] => 1,
        [dimension] => dimension.lower,
        _ => return Err(failed("22000", "argument must be empty or one-dimensional array")),
    };
    let dimension = Dimension { length: of.len() as u32 + 1, lower };
    let is_over = match is_first {
        true => lower == i32::MIN && !of.is_empty(),
        false => lower.checked_add_unsigned(dimension.length - 1).is_none(),
    };
    if is_over {
        return Err(failed(state::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"));
    }
    count(&[dimension])?;
    let _claim = claim(of.len() + 1)?;
    let mut list = Vec::with_capacity(of.len() + 1);
    if is_first {
        list.push(added.clone());
    }
    list.extend_from_slice(of.values());
    if !is_first {
        list.push(added.clone());
    }
    Ok(Value::Array(Array::new(empty(call)?.element(), &[dimension], list)))
}

pub fn append(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    extended(call, &or_empty(call, values, 0)?, &values[1], false)
}

pub fn prepend(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    extended(call, &or_empty(call, values, 1)?, &values[0], true)
}

pub fn cat(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() || values[1].is_null() {
        return Ok(values[usize::from(values[0].is_null())].clone());
    }
    let (left, right) = (array(values, 0)?, array(values, 1)?);
    if left.is_empty() || right.is_empty() {
        return Ok(values[usize::from(left.is_empty())].clone());
    }
    let (a, b) = (left.dimensions(), right.dimensions());
    let incompatible = |detail: String| subscript_error("cannot concatenate incompatible arrays").detail(detail);
    let mut dimensions;
    match a.len() as i64 - b.len() as i64 {
        0 => {
            if a[1..] != b[1..] {
                let text = "Arrays with differing element dimensions are not compatible for concatenation.";
                return Err(incompatible(text.to_owned()).into());
            }
            dimensions = a.to_vec();
            dimensions[0].length = a[0].length.saturating_add(b[0].length);
        }
        by @ (-1 | 1) => {
            let (outer, inner) = if by == 1 { (a, b) } else { (b, a) };
            if outer[1..] != *inner {
                let text = "Arrays with differing dimensions are not compatible for concatenation.";
                return Err(incompatible(text.to_owned()).into());
            }
            dimensions = outer.to_vec();
            dimensions[0].length += 1;
        }
        _ => {
            let (a, b) = (a.len(), b.len());
            let text = format!("Arrays of {a} and {b} dimensions are not compatible for concatenation.");
            return Err(incompatible(text).into());
        }
    }
    let _claim = claim(count(&dimensions)?)?;
    let list = left.values().iter().chain(right.values()).cloned().collect();
    Ok(Value::Array(Array::new(left.element(), &dimensions, list)))
}

pub fn remove(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Null);
    }
    let of = array(values, 0)?;
    if of.is_empty() {
        return Ok(values[0].clone());
    }
    if of.dimensions().len() > 1 {
        let text = "removing elements from multidimensional arrays is not supported";
        return Err(failed(state::FEATURE_NOT_SUPPORTED, text));
    }
    let same = same(element_type(call, 0)?)?;
    let _claim = claim(of.len())?;
    let mut kept = Vec::with_capacity(of.len());
    for value in of.values() {
        if !same.holds(value, &values[1], ctx)? {
            kept.push(value.clone());
        }
    }
    let dimension = Dimension { length: kept.len() as u32, ..of.dimensions()[0] };
    Ok(Value::Array(Array::new(of.element(), &[dimension], kept)))
}

pub fn replace(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Null);
    }
    let of = array(values, 0)?;
    let same = same(element_type(call, 0)?)?;
    let _claim = claim(of.len())?;
    let mut list = Vec::with_capacity(of.len());
    for value in of.values() {
        let is_old = same.holds(value, &values[1], ctx)?;
        list.push(if is_old { values[2].clone() } else { value.clone() });
    }
    Ok(Value::Array(Array::new(of.element(), of.dimensions(), list)))
}

pub fn trim(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let of = array(values, 0)?;
    let length = of.dimensions().first().map_or(0, |dimension| i64::from(dimension.length));
    let trimmed = integer(values, 1)?;
    if !(0..=length).contains(&trimmed) {
        let text = format!("number of elements to trim must be between 0 and {length}");
        return Err(subscript_error(&text).into());
    }
    let Some(first) = of.dimensions().first() else { return Ok(values[0].clone()) };
    let upper = i64::from(first.upper()) - trimmed;
    if upper < i64::from(i32::MIN) {
        return Ok(Value::Array(empty(call)?));
    }
    Ok(Value::Array(cut(of, &[(None, Some(upper as i32))], &empty(call)?)?))
}

pub fn shuffle(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let of = array(values, 0)?;
    match of.dimensions().first() {
        Some(first) if first.length > 1 => picked(of, first.length, first.lower, ctx),
        _ => Ok(values[0].clone()),
    }
}

pub fn sample(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let of = array(values, 0)?;
    let count = of.dimensions().first().map_or(0, |dimension| dimension.length);
    match u32::try_from(integer(values, 1)?).ok().filter(|wanted| *wanted <= count) {
        Some(wanted) => picked(of, wanted, 1, ctx),
        None => Err(invalid(format!("sample size must be between 0 and {count}"))),
    }
}

/// Returns items of the first dimension in random order, each at most once.
fn picked(of: &Array, wanted: u32, lower: i32, ctx: &mut EvalContext) -> Result<Value> {
    if wanted == 0 {
        return Ok(Value::Array(Array::empty(of.element())));
    }
    let _claim = claim(2 * of.len())?;
    let count = of.dimensions()[0].length as usize;
    let item = of.len() / count;
    let mut order: Vec<usize> = (0..count).collect();
    let mut list = Vec::with_capacity(wanted as usize * item);
    for nth in 0..wanted as usize {
        let other = nth + (random(ctx) * (count - nth) as f64) as usize;
        order.swap(nth, other.min(count - 1));
        list.extend_from_slice(&of.values()[order[nth] * item..(order[nth] + 1) * item]);
    }
    let mut dimensions = of.dimensions().to_vec();
    dimensions[0] = Dimension { length: wanted, lower };
    Ok(Value::Array(Array::new(of.element(), &dimensions, list)))
}

/// Returns the keys of the elements that are not NULL.
fn keys(of: &Array) -> HashSet<Vec<u8>> {
    of.values().iter().filter(|value| !value.is_null()).map(|value| key(value, of.element())).collect()
}

fn key(value: &Value, shape: Shape) -> Vec<u8> {
    let mut key = Vec::new();
    encode(value, shape, KeyOrder::ASCENDING, &mut key);
    key
}

fn contains_all(call: &Call, all: &Array, of: &Array) -> Result<Value> {
    same(element_type(call, 0)?)?;
    let _claim = claim(2 * all.len())?;
    let keys = keys(all);
    let is_in = |value: &Value| !value.is_null() && keys.contains(&key(value, of.element()));
    Ok(of.values().iter().all(is_in).into())
}

pub fn contains(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    contains_all(call, array(values, 0)?, array(values, 1)?)
}

pub fn contained(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    contains_all(call, array(values, 1)?, array(values, 0)?)
}

pub fn overlap(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    same(element_type(call, 0)?)?;
    let (left, right) = (array(values, 0)?, array(values, 1)?);
    let _claim = claim(2 * left.len())?;
    let keys = keys(left);
    let is_in = |value: &Value| !value.is_null() && keys.contains(&key(value, right.element()));
    Ok(right.values().iter().any(is_in).into())
}
