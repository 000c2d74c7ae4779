//! array_agg: of values an array of one dimension, of arrays one of another dimension.

use datum::value::{DIMENSIONS_MAX, Dimension};
use datum::{Array, Fault, Result, Shape};
use query::nodes::aggregate::{Accumulator, Aggregate, AggregateFunction, Memory};
use query::nodes::context::EvalContext;

use crate::error::state;
use crate::functions::aggregate::{function, order_key};
use crate::functions::array::{claim, failed, subscript_error};
use crate::types::array::{count, too_many_dimensions};
use crate::types::registry;
use crate::value::Value;

pub static ARRAY_AGG: AggregateFunction = AggregateFunction {
    memory: Memory::All,
    shares_state: false,
    counts_null: true,
    ..function("array_agg", |_| Box::new(GatheredElements::default()))
};

/// The values of a group, each with its key in an ORDER BY within the call.
#[derive(Clone, Debug, Default)]
struct GatheredElements {
    rows: Vec<(Vec<u8>, Value)>,
    bytes: usize,
}

impl Accumulator for GatheredElements {
    fn add(&mut self, aggregate: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        let order = order_key(aggregate, values);
        self.bytes += size_of::<(Vec<u8>, Value)>() + order.len() + values[0].heap_bytes();
        self.rows.push((order, values[0].clone()));
        Ok(())
    }

    fn finish(&mut self, aggregate: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        if self.rows.is_empty() {
            return Ok(Value::Null);
        }
        if !aggregate.order.is_empty() {
            self.rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        let _claim = claim(self.rows.len())?;
        let values = self.rows.drain(..).map(|(_, value)| value).collect();
        let element = registry::element_of(registry::oid_of(&aggregate.ty));
        let element = element.ok_or_else(|| Fault::corrupt("an aggregate that is no array"))?;
        let shape = registry::shape_of(element.oid);
        match registry::is_array(registry::oid_of(&aggregate.arguments[0])) {
            true => joined(shape, values),
            false => {
                count(&[Dimension::of(values.len())])?;
                Ok(Value::Array(Array::list(shape, values)))
            }
        }
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Returns arrays of equal dimensions as one array.
fn joined(shape: Shape, values: Vec<Value>) -> Result<Value> {
    let mut arrays = Vec::with_capacity(values.len());
    for value in values {
        match value {
            Value::Array(array) => arrays.push(array),
            _ => return Err(failed(state::NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays")),
        }
    }
    if arrays.first().is_some_and(Array::is_empty) {
        return Err(subscript_error("cannot accumulate empty arrays").into());
    }
    let Some(first) = arrays.first() else { return Ok(Value::Null) };
    let depth = first.dimensions().len() + 1;
    if depth > DIMENSIONS_MAX {
        return Err(too_many_dimensions(depth as i64).into());
    }
    if arrays.iter().any(|array| array.dimensions() != first.dimensions()) {
        return Err(subscript_error("cannot accumulate arrays of different dimensionality").into());
    }
    let mut dimensions = vec![Dimension::of(arrays.len())];
    dimensions.extend_from_slice(first.dimensions());
    let _claim = claim(count(&dimensions)?)?;
    let values = arrays.iter().flat_map(|array| array.values().iter().cloned()).collect();
    Ok(Value::Array(Array::new(shape, &dimensions, values)))
}
