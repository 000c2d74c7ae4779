//! Aggregates that are the same for every type, and those of bool, text and bytea.

use std::cmp::Ordering;

use datum::Result;
use datum::key;
use query::nodes::aggregate::{Accumulator, Aggregate, AggregateFunction, Memory};
use query::nodes::comparison::Comparator;
use query::nodes::context::EvalContext;
use query::types::Type;

use crate::functions::args::claim;
use crate::types::comparison::comparator;
use crate::value::{Text, Value};

pub static MIN: AggregateFunction = extreme("min", Ordering::Less, |_| extremum(Ordering::Less));
pub static MAX: AggregateFunction = extreme("max", Ordering::Greater, |_| extremum(Ordering::Greater));
pub static ANY_VALUE: AggregateFunction =
    AggregateFunction { memory: Memory::One, ..function("any_value", |_| Box::new(First(None))) };
pub static BOOL_AND: AggregateFunction = function("bool_and", |_| Box::new(Truths { decisive: false, met: [0; 2] }));
pub static BOOL_OR: AggregateFunction = function("bool_or", |_| Box::new(Truths { decisive: true, met: [0; 2] }));
pub static STRING_AGG: AggregateFunction = AggregateFunction {
    memory: Memory::All,
    // A row without a delimiter counts; one without a value does not.
    shares_state: false,
    counts_null: true,
    ..function("string_agg", |_| Box::new(Strings::default()))
};

/// Leaves a result as the state gives it.
pub fn same(value: Value, _: &Type) -> Value {
    value
}

/// Returns the key of a row in the ORDER BY within the call, whose values follow the arguments.
pub fn order_key(aggregate: &Aggregate, values: &[Value]) -> Vec<u8> {
    let mut order = Vec::new();
    let from = values.len() - aggregate.order.len();
    for ((value, ty), direction) in values[from..].iter().zip(&aggregate.arguments[from..]).zip(&aggregate.order) {
        key::encode(value, ty.shape(), *direction, &mut order);
    }
    order
}

/// Returns an aggregate whose state holds no value.
pub const fn function(name: &'static str, start: fn(&Aggregate) -> Box<dyn Accumulator>) -> AggregateFunction {
    AggregateFunction {
        name,
        start,
        shares_state: false,
        counts_null: false,
        exact: false,
        memory: Memory::Nothing,
        extreme: None,
        finish: same,
    }
}

const fn extreme(
    name: &'static str,
    wanted: Ordering,
    start: fn(&Aggregate) -> Box<dyn Accumulator>,
) -> AggregateFunction {
    AggregateFunction { extreme: Some(wanted), memory: Memory::One, ..function(name, start) }
}

/// The least or the greatest value so far.
#[derive(Clone, Debug)]
struct Extremum {
    wanted: Ordering,
    kept: Option<Value>,
}

fn extremum(wanted: Ordering) -> Box<dyn Accumulator> {
    Box::new(Extremum { wanted, kept: None })
}

/// Returns how the values of an aggregate's first argument compare.
fn comparator_of(aggregate: &Aggregate) -> Option<Comparator> {
    aggregate.by.or_else(|| comparator(&aggregate.arguments[0], &aggregate.arguments[0]))
}

impl Accumulator for Extremum {
    fn add(&mut self, aggregate: &Aggregate, values: &[Value], ctx: &mut EvalContext) -> Result<()> {
        if values[0].is_null() {
            return Ok(());
        }
        let replaces = match (&self.kept, comparator_of(aggregate)) {
            (Some(kept), Some(by)) => by.order(&values[0], kept, ctx)? == self.wanted,
            (kept, _) => kept.is_none(),
        };
        if replaces {
            self.kept = Some(values[0].clone());
        }
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        Ok(self.kept.take().unwrap_or_default())
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, Value::heap_bytes)
    }
}

/// The first value.
#[derive(Clone, Debug)]
struct First(Option<Value>);

impl Accumulator for First {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        if !values[0].is_null() {
            self.0.get_or_insert_with(|| values[0].clone());
        }
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

/// How many false and true values there were, and which of them decides.
#[derive(Clone, Debug)]
struct Truths {
    decisive: bool,
    met: [u64; 2],
}

fn place(value: &Value) -> usize {
    usize::from(!matches!(value, Value::Int(0)))
}

impl Accumulator for Truths {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        if !values[0].is_null() {
            self.met[place(&values[0])] += 1;
        }
        Ok(())
    }

    fn can_remove(&self, _: &Aggregate) -> bool {
        true
    }

    fn remove(&mut self, values: &[Value], _: &mut EvalContext) -> Result<()> {
        if !values[0].is_null() {
            self.met[place(&values[0])] -= 1;
        }
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        let is_decided = self.met[usize::from(self.decisive)] > 0;
        Ok(match self.met {
            [0, 0] => Value::Null,
            _ => (is_decided == self.decisive).into(),
        })
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// The strings of `string_agg`, each with the delimiter before it and its key in an ORDER BY within the call.
#[derive(Clone, Debug, Default)]
struct Strings {
    rows: Vec<(Vec<u8>, Value, Value)>,
    bytes: usize,
}

impl Accumulator for Strings {
    fn add(&mut self, aggregate: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        if values[0].is_null() {
            return Ok(());
        }
        let order = order_key(aggregate, values);
        self.bytes +=
            size_of::<(Vec<u8>, Value, Value)>() + order.len() + values[0].heap_bytes() + values[1].heap_bytes();
        self.rows.push((order, values[0].clone(), values[1].clone()));
        Ok(())
    }

    fn finish(&mut self, aggregate: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        if self.rows.is_empty() {
            return Ok(Value::Null);
        }
        if !aggregate.order.is_empty() {
            self.rows.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        }
        let length = |value: &Value| value.as_string_bytes().map_or(0, <[u8]>::len);
        let total = self.rows.iter().map(|(_, value, delimiter)| length(value) + length(delimiter)).sum();
        let _claim = claim(total)?;
        let mut out = Vec::with_capacity(total);
        for (number, (_, value, delimiter)) in self.rows.iter().enumerate() {
            if number > 0 {
                out.extend_from_slice(delimiter.as_string_bytes().unwrap_or_default());
            }
            out.extend_from_slice(value.as_string_bytes().unwrap_or_default());
        }
        match &self.rows[0].1 {
            Value::Text(_) => match String::from_utf8(out) {
                Ok(text) => Ok(Value::Text(Text::from(text))),
                Err(_) => Err(datum::Fault::corrupt("a text that is not UTF-8")),
            },
            _ => Ok(Value::from_bytes(out)),
        }
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
