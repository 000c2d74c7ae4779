//! Arrays made of values: ARRAY[...], array_fill, and casts of each element.

use datum::value::{DIMENSIONS_MAX, Dimension};
use datum::{Array, Fault, Result, Shape};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Finish, Folding, Function, Run};

use crate::error::state;
use crate::functions::array::{array, claim, failed, subscript_error};
use crate::types::array::{count, too_many_dimensions};
use crate::types::registry;
use crate::value::Value;

/// ARRAY[...]. The word of the call is 1 where the arguments are arrays, which become one of another dimension.
pub static ARRAY: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["array"], Run::Values(construct)) };

/// A cast of each element: `Extra::each` over a row of one element.
pub static EACH: Function = Function {
    folding: Folding::CheckedCoercion,
    typed: true,
    finish: Finish::Unchanged,
    ..Function::new(&["each element"], Run::Strict(each))
};

fn shape(call: &Call) -> Result<Shape> {
    let element = registry::element_of(registry::oid_of(&call.ty));
    element.map(|row| registry::shape_of(row.oid)).ok_or_else(|| Fault::corrupt("a result that is no array"))
}

fn construct(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let _claim = claim(values.len())?;
    match call.extra.word[0] {
        0 => Ok(Value::Array(Array::list(shape(call)?, values.to_vec()))),
        _ => nested(shape(call)?, values),
    }
}

/// Returns an array of arrays that all have the same dimensions, those that are NULL left out.
pub fn nested(shape: Shape, values: &[Value]) -> Result<Value> {
    let mismatch = || -> Fault {
        subscript_error("multidimensional arrays must have array expressions with matching dimensions").into()
    };
    let arrays: Vec<&Array> =
        values.iter().filter_map(|value| if let Value::Array(array) = value { Some(array) } else { None }).collect();
    let mut filled = arrays.iter().filter(|array| !array.is_empty());
    let Some(first) = filled.next() else { return Ok(Value::Array(Array::empty(shape))) };
    let depth = first.dimensions().len() + 1;
    if depth > DIMENSIONS_MAX {
        return Err(too_many_dimensions(depth as i64).into());
    }
    if filled.any(|array| array.dimensions() != first.dimensions())
        || arrays.len() < values.len()
        || arrays.iter().any(|array| array.is_empty())
    {
        return Err(mismatch());
    }
    let mut dimensions = vec![Dimension::of(arrays.len())];
    dimensions.extend_from_slice(first.dimensions());
    let _claim = claim(count(&dimensions)?)?;
    let values = arrays.iter().flat_map(|array| array.values().iter().cloned()).collect();
    Ok(Value::Array(Array::new(shape, &dimensions, values)))
}

fn each(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (array, shape) = (array(values, 0)?, shape(call)?);
    let Some(cast) = &call.extra.each else { return Err(Fault::corrupt("a cast of elements without one")) };
    let _claim = claim(array.len())?;
    let mut brought = Vec::with_capacity(array.len());
    let mut row = [Value::Null];
    for (at, value) in array.values().iter().enumerate() {
        row[0] = value.clone();
        brought.push(cast.eval(&row, ctx)?);
        if at % 4096 == 4095 {
            ctx.check_killed()?;
        }
    }
    Ok(Value::Array(Array::new(shape, array.dimensions(), brought)))
}

/// array_fill(value, dimensions [, lower bounds])
pub fn fill(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    if values[1..].iter().any(Value::is_null) {
        return Err(failed(state::NULL_VALUE_NOT_ALLOWED, "dimension array or low bound array cannot be null"));
    }
    let list = |at: usize| -> Result<Vec<i32>> {
        let array = array(values, at)?;
        if array.dimensions().len() > 1 {
            let error = subscript_error("wrong number of array subscripts");
            return Err(error.detail("Dimension array must be one dimensional.").into());
        }
        if at == 1 && array.len() > DIMENSIONS_MAX {
            return Err(too_many_dimensions(array.len() as i64).into());
        }
        let number = |value: &Value| match value {
            Value::Int(number) => Ok(*number as i32),
            _ => Err(failed(state::NULL_VALUE_NOT_ALLOWED, "dimension values cannot be null")),
        };
        array.values().iter().map(number).collect()
    };
    let lengths = list(1)?;
    let lowers = if values.len() > 2 { list(2)? } else { vec![1; lengths.len()] };
    if lowers.len() != lengths.len() {
        let error = subscript_error("wrong number of array subscripts");
        return Err(error.detail("Low bound array has different size than dimensions array.").into());
    }
    let length = |length: i32| u32::try_from(length).map_err(|_| crate::types::array::too_many());
    let dimensions: Vec<Dimension> = lengths
        .into_iter()
        .zip(lowers)
        .map(|(size, lower)| Ok(Dimension { length: length(size)?, lower }))
        .collect::<Result<_>>()?;
    let total = count(&dimensions)?;
    let _claim = claim(total.saturating_add(total.saturating_mul(values[0].heap_bytes() / size_of::<Value>())))?;
    Ok(Value::Array(Array::new(shape(call)?, &dimensions, vec![values[0].clone(); total])))
}
