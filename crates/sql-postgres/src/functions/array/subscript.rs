//! Subscripts and slices: of a value, and of the place that an assignment changes.

use datum::value::{DIMENSIONS_MAX, Dimension};
use datum::{Array, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Finish, Function, Run};

use crate::error::{PgError, state};
use crate::functions::args::{integer, text};
use crate::functions::array::{array, claim, empty, failed, subscript_error};
use crate::types::array::{count, too_many};
use crate::value::Value;

/// The length of a `name`, which zeros fill.
const NAME_BYTES: usize = 64;

/// `array[i][j]`: the array, then a subscript for each dimension.
pub static ELEMENT: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["subscript"], Run::Strict(element)) };
/// `name[i]`: a name is an array of 64 bytes from 0.
pub static NAME_BYTE: Function = Function::new(&["subscript"], Run::Strict(name_byte));
/// `array[low:high]...`: the array, then two bounds for each dimension. The bits of the call's words tell which bounds are written: of word 0 the lower ones, of word 1 the upper ones.
pub static SLICE: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["slice"], Run::Values(slice)) };
/// The array with the element at the subscripts replaced by the last argument.
pub static SET_ELEMENT: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["set subscript"], Run::Values(set_element)) };
/// The array with a slice replaced by the last argument; bounds as in `SLICE`.
pub static SET_SLICE: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["set slice"], Run::Values(set_slice)) };

fn subscripts(values: &[Value]) -> Result<Vec<i32>> {
    (0..values.len()).map(|at| integer(values, at).map(|number| number as i32)).collect()
}

/// Returns the place of an element in row-major order. `None`: there is none.
fn place(dimensions: &[Dimension], at: &[i32]) -> Option<usize> {
    if dimensions.len() != at.len() {
        return None;
    }
    dimensions.iter().zip(at).try_fold(0usize, |place, (dimension, at)| {
        let nth = u32::try_from(i64::from(*at) - i64::from(dimension.lower)).ok()?;
        (nth < dimension.length).then_some(place * dimension.length as usize + nth as usize)
    })
}

fn element(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let array = array(values, 0)?;
    let at = subscripts(&values[1..])?;
    Ok(place(array.dimensions(), &at).map_or(Value::Null, |place| array.values()[place].clone()))
}

fn name_byte(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let at = usize::try_from(integer(values, 1)?).ok().filter(|at| *at < NAME_BYTES && values.len() == 2);
    let name = text(values, 0)?.as_bytes();
    Ok(at.map_or(Value::Null, |at| Value::UInt(name.get(at).copied().unwrap_or(0).into())))
}

/// The bounds of a slice, as far as they are written.
fn bounds(call: &Call, values: &[Value]) -> Result<Vec<(Option<i32>, Option<i32>)>> {
    let written = |word: u8, nth: usize, value: &Value| -> Result<Option<i32>> {
        match word & 1 << nth {
            0 => Ok(None),
            _ => integer(std::slice::from_ref(value), 0).map(|number| Some(number as i32)),
        }
    };
    let [low, high] = call.extra.word;
    let pair = |(nth, pair): (usize, &[Value])| Ok((written(low, nth, &pair[0])?, written(high, nth, &pair[1])?));
    values.chunks_exact(2).enumerate().map(pair).collect()
}

/// Returns whether a bound that is written is NULL.
fn has_null_bound(call: &Call, values: &[Value]) -> bool {
    let [low, high] = call.extra.word;
    values
        .chunks_exact(2)
        .enumerate()
        .any(|(nth, pair)| (low & 1 << nth != 0 && pair[0].is_null()) || (high & 1 << nth != 0 && pair[1].is_null()))
}

fn slice(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() || has_null_bound(call, &values[1..]) {
        return Ok(Value::Null);
    }
    let of = array(values, 0)?;
    let bounds = bounds(call, &values[1..])?;
    Ok(Value::Array(cut(of, &bounds, &empty(call)?)?))
}

/// Returns the elements within the bounds; `nothing` where there are none.
pub fn cut(of: &Array, bounds: &[(Option<i32>, Option<i32>)], nothing: &Array) -> Result<Array> {
    if of.dimensions().len() < bounds.len() || of.is_empty() {
        return Ok(nothing.clone());
    }
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (nth, dimension) in of.dimensions().iter().enumerate() {
        let (low, high) = bounds.get(nth).copied().unwrap_or((None, None));
        let low = low.map_or(dimension.lower, |low| low.max(dimension.lower));
        let high = high.map_or(dimension.upper(), |high| high.min(dimension.upper()));
        if low > high {
            return Ok(nothing.clone());
        }
        let skipped = (i64::from(low) - i64::from(dimension.lower)) as usize;
        spans.push((skipped, (i64::from(high) - i64::from(low) + 1) as usize));
    }
    let dimensions: Vec<Dimension> = spans.iter().map(|(_, length)| Dimension::of(*length)).collect();
    let total = count(&dimensions)?;
    let _claim = claim(total)?;
    let mut values = Vec::with_capacity(total);
    places(of.dimensions(), &spans, &mut |place| values.push(of.values()[place].clone()));
    Ok(Array::new(of.element(), &dimensions, values))
}

/// Calls `visit` with the place of each element within the spans (elements skipped, elements taken), in row-major order.
fn places(dimensions: &[Dimension], spans: &[(usize, usize)], visit: &mut dyn FnMut(usize)) {
    fn level(dimensions: &[Dimension], spans: &[(usize, usize)], base: usize, visit: &mut dyn FnMut(usize)) {
        let ([dimension, inner @ ..], [(skipped, taken), spans @ ..]) = (dimensions, spans) else {
            return visit(base);
        };
        for nth in *skipped..skipped + taken {
            level(inner, spans, base * dimension.length as usize + nth, visit);
        }
    }
    level(dimensions, spans, 0, visit);
}

#[cold]
fn wrong_subscripts() -> PgError {
    subscript_error("wrong number of array subscripts")
}

#[cold]
fn out_of_range() -> PgError {
    subscript_error("array subscript out of range")
}

fn set_element(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let [of, at @ .., new] = values else { return Ok(Value::Null) };
    if at.iter().any(Value::is_null) {
        return Err(failed(state::NULL_VALUE_NOT_ALLOWED, "array subscript in assignment must not be null"));
    }
    let of = match of {
        Value::Null => empty(call)?,
        _ => array(values, 0)?.clone(),
    };
    let at = subscripts(at)?;
    let shape = empty(call)?.element();
    if of.is_empty() {
        let dimensions: Vec<Dimension> = at.iter().map(|at| Dimension { length: 1, lower: *at }).collect();
        count(&dimensions)?;
        return Ok(Value::Array(Array::new(shape, &dimensions, vec![new.clone()])));
    }
    if of.dimensions().len() != at.len() {
        return Err(wrong_subscripts().into());
    }
    let mut dimensions = of.dimensions().to_vec();
    let (mut before, mut behind) = (0, 0);
    if let ([dimension], [at]) = (&mut dimensions[..], &at[..]) {
        (before, behind) = widened(dimension, *at, *at)?;
    }
    count(&dimensions)?;
    let Some(place) = place(&dimensions, &at) else { return Err(out_of_range().into()) };
    let mut list = widen(&of, before, behind)?;
    list[place] = new.clone();
    Ok(Value::Array(Array::new(shape, &dimensions, list)))
}

/// Makes room in a dimension for subscripts from `low` to `high`. Returns the numbers of elements that come before and behind.
fn widened(dimension: &mut Dimension, low: i32, high: i32) -> Result<(usize, usize)> {
    let before = (i64::from(dimension.lower) - i64::from(low)).max(0);
    let behind = (i64::from(high) - i64::from(dimension.upper())).max(0);
    let length = i64::from(dimension.length) + before + behind;
    if length > crate::types::array::ELEMENTS_MAX as i64 {
        return Err(too_many().into());
    }
    dimension.lower = dimension.lower.min(low);
    dimension.length = length as u32;
    Ok((before as usize, behind as usize))
}

fn widen(of: &Array, before: usize, behind: usize) -> Result<Vec<Value>> {
    let total = of.len() + before + behind;
    let _claim = claim(total)?;
    let mut list = Vec::with_capacity(total);
    list.resize(before, Value::Null);
    list.extend_from_slice(of.values());
    list.resize(total, Value::Null);
    Ok(list)
}

fn set_slice(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let [of, at @ .., new] = values else { return Ok(Value::Null) };
    if has_null_bound(call, at) {
        return Err(failed(state::NULL_VALUE_NOT_ALLOWED, "array subscript in assignment must not be null"));
    }
    // A slice of NULL leaves the array as it is.
    let source = match new {
        Value::Array(source) => source,
        _ => return Ok(of.clone()),
    };
    let of = match of {
        Value::Null => empty(call)?,
        _ => array(values, 0)?.clone(),
    };
    let bounds = bounds(call, at)?;
    let shape = empty(call)?.element();
    if of.is_empty() {
        return new_of_slice(shape, &bounds, source);
    }
    if of.dimensions().len() < bounds.len() || bounds.len() > DIMENSIONS_MAX {
        return Err(wrong_subscripts().into());
    }
    let mut dimensions = of.dimensions().to_vec();
    let (mut before, mut behind) = (0, 0);
    let mut spans = Vec::new();
    let is_single = dimensions.len() == 1;
    for (nth, dimension) in dimensions.iter_mut().enumerate() {
        let (low, high) = bounds.get(nth).copied().unwrap_or((None, None));
        let (low, high) = (low.unwrap_or(dimension.lower), high.unwrap_or(dimension.upper()));
        if low > high {
            return Err(subscript_error("upper bound cannot be less than lower bound").into());
        }
        if is_single {
            (before, behind) = widened(dimension, low, high)?;
        } else if low < dimension.lower || high > dimension.upper() {
            return Err(out_of_range().into());
        }
        let skipped = (i64::from(low) - i64::from(dimension.lower)) as usize;
        spans.push((skipped, (i64::from(high) - i64::from(low) + 1) as usize));
    }
    count(&dimensions)?;
    let wanted: usize = spans.iter().map(|(_, length)| *length).product();
    if wanted > source.len() {
        return Err(subscript_error("source array too small").into());
    }
    let mut list = widen(&of, before, behind)?;
    let mut next = source.values().iter();
    places(&dimensions, &spans, &mut |place| {
        if let Some(value) = next.next() {
            list[place] = value.clone();
        }
    });
    Ok(Value::Array(Array::new(shape, &dimensions, list)))
}

/// Returns the array that an assignment to a slice makes of an empty one.
fn new_of_slice(shape: datum::Shape, bounds: &[(Option<i32>, Option<i32>)], source: &Array) -> Result<Value> {
    let mut dimensions = Vec::new();
    for (low, high) in bounds {
        let (Some(low), Some(high)) = (*low, *high) else {
            let error = subscript_error("array slice subscript must provide both boundaries");
            let detail = "When assigning to a slice of an empty array value, slice boundaries must be fully specified.";
            return Err(error.detail(detail).into());
        };
        if low > high {
            return Err(subscript_error("upper bound cannot be less than lower bound").into());
        }
        let length = i64::from(high) - i64::from(low) + 1;
        dimensions.push(Dimension { length: u32::try_from(length).unwrap_or(u32::MAX), lower: low });
    }
    let total = count(&dimensions)?;
    if total > source.len() {
        return Err(subscript_error("source array too small").into());
    }
    Ok(Value::Array(Array::new(shape, &dimensions, source.values()[..total].to_vec())))
}
