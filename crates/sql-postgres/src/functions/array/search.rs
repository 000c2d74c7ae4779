//! array_position, array_positions, and whether elements are the same.

use datum::Result;
use query::nodes::comparison::Comparator;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::bind::comparator;
use crate::error::{PgError, state};
use crate::functions::args::integer;
use crate::functions::array::{array, element_type, failed};
use crate::types::array::list;
use crate::types::oid::{self, Oid};
use crate::types::registry::format_type;
use crate::value::Value;

/// The equality of elements of a type, as which NULL is the same as NULL.
#[derive(Clone, Copy, Debug)]
pub struct Same(Comparator);

/// Returns the equality of a type; an error if its values do not compare.
pub fn same(element: Oid) -> Result<Same> {
    comparator(element, element).map(Same).ok_or_else(|| {
        let text = format!("could not identify an equality operator for type {}", format_type(element, None));
        PgError::new(state::UNDEFINED_FUNCTION, text).into()
    })
}

impl Same {
    pub fn holds(self, a: &Value, b: &Value, ctx: &mut EvalContext) -> Result<bool> {
        match (a.is_null(), b.is_null()) {
            (false, false) => Ok(self.0.order(a, b, ctx)?.is_eq()),
            (a, b) => Ok(a && b),
        }
    }
}

fn check_single(values: &[Value]) -> Result<()> {
    if array(values, 0)?.dimensions().len() > 1 {
        let text = "searching for elements in multidimensional arrays is not supported";
        return Err(failed(state::FEATURE_NOT_SUPPORTED, text));
    }
    Ok(())
}

pub fn position(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Null);
    }
    check_single(values)?;
    let of = array(values, 0)?;
    let [dimension] = of.dimensions() else { return Ok(Value::Null) };
    let start = match values.get(2) {
        Some(Value::Null) => {
            return Err(failed(state::NULL_VALUE_NOT_ALLOWED, "initial position must not be null"));
        }
        Some(_) => integer(values, 2)?,
        None => i64::MIN,
    };
    let same = same(element_type(call, 0)?)?;
    for (nth, value) in of.values().iter().enumerate() {
        let at = i64::from(dimension.lower) + nth as i64;
        if at >= start && same.holds(value, &values[1], ctx)? {
            return Ok(Value::Int(at));
        }
    }
    Ok(Value::Null)
}

pub fn positions(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() {
        return Ok(Value::Null);
    }
    check_single(values)?;
    let of = array(values, 0)?;
    let [dimension] = of.dimensions() else { return Ok(list(oid::INT4, Vec::new())) };
    let same = same(element_type(call, 0)?)?;
    let mut found = Vec::new();
    for (nth, value) in of.values().iter().enumerate() {
        if same.holds(value, &values[1], ctx)? {
            found.push(Value::Int(i64::from(dimension.lower) + nth as i64));
        }
    }
    Ok(list(oid::INT4, found))
}

/// Returns the number of thresholds, which ascend, that are not above the operand.
pub fn width_bucket(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let thresholds = array(values, 1)?;
    if thresholds.dimensions().len() > 1 {
        return Err(failed(state::ARRAY_SUBSCRIPT_ERROR, "thresholds must be one-dimensional array"));
    }
    if thresholds.values().iter().any(Value::is_null) {
        return Err(failed(state::NULL_VALUE_NOT_ALLOWED, "thresholds array must not contain NULLs"));
    }
    let element = element_type(call, 1)?;
    let Some(by) = comparator(element, element) else {
        let text = format!("could not identify a comparison function for type {}", format_type(element, None));
        return Err(PgError::new(state::UNDEFINED_FUNCTION, text).into());
    };
    let (mut low, mut high) = (0, thresholds.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match by.order(&values[0], &thresholds.values()[middle], ctx)?.is_lt() {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok(Value::Int(low as i64))
}
