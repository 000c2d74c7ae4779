//! Aggregates: `range_agg`, the union of all, and `range_intersect_agg`.

use datum::{Fault, Result};
use query::nodes::aggregate::{Accumulator, Aggregate, AggregateFunction, Memory};
use query::nodes::context::EvalContext;

use crate::functions::aggregate::function;
use crate::functions::range::combine::{intersection, intersection_of_all};
use crate::types::range::{self, GatheredRanges, RangeType};
use crate::types::registry;
use crate::value::Value;

pub static RANGE_AGG: AggregateFunction =
    AggregateFunction { memory: Memory::All, ..function("range_agg", |_| Box::new(RangeUnion::default())) };
pub static RANGE_INTERSECT_AGG: AggregateFunction =
    AggregateFunction { memory: Memory::One, ..function("range_intersect_agg", |_| Box::new(RangeIntersection(None))) };

fn type_of(aggregate: &Aggregate) -> Result<RangeType> {
    let ty = range::of(registry::oid_of(&aggregate.arguments[0]));
    ty.ok_or_else(|| Fault::corrupt("an argument that is no range"))
}

/// The ranges of a group; `None` before the first value.
#[derive(Clone, Debug, Default)]
struct RangeUnion(Option<GatheredRanges>);

impl Accumulator for RangeUnion {
    fn add(&mut self, aggregate: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        if values[0].is_null() {
            return Ok(());
        }
        let gathered = self.0.get_or_insert_default();
        for span in type_of(aggregate)?.spans(values[0].as_string_bytes().unwrap_or_default()) {
            gathered.push(&span?);
        }
        Ok(())
    }

    fn finish(&mut self, aggregate: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        match self.0.take() {
            Some(gathered) => Ok(type_of(aggregate)?.multirange(&gathered)?),
            None => Ok(Value::Null),
        }
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, GatheredRanges::bytes)
    }
}

/// The intersection of the values so far.
#[derive(Clone, Debug)]
struct RangeIntersection(Option<Value>);

impl Accumulator for RangeIntersection {
    fn add(&mut self, aggregate: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        if values[0].is_null() {
            return Ok(());
        }
        self.0 = Some(match self.0.take() {
            None => values[0].clone(),
            Some(kept) => {
                let (ty, both) = (type_of(aggregate)?, [kept, values[0].clone()]);
                match registry::oid_of(&aggregate.arguments[0]) == ty.oid {
                    true => intersection(ty, &both)?,
                    false => intersection_of_all(ty, &both)?,
                }
            }
        });
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        Ok(self.0.take().unwrap_or_default())
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, Value::heap_bytes)
    }
}
