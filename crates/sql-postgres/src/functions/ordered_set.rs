//! Ordered-set aggregates (percentiles, `mode`) and hypothetical-set aggregates (`rank` and its like within a group).
//!
//! The values of a row are the direct arguments, which are the same in all rows of a group, and those of WITHIN GROUP behind them.

use std::collections::BTreeSet;

use datum::key;
use datum::{Array, Result};
use query::nodes::aggregate::{Accumulator, Aggregate, AggregateFunction, Memory};
use query::nodes::context::EvalContext;

use crate::error::{PgError, state};
use crate::functions::aggregate::function;
use crate::functions::temporal::arithmetic::{interval_difference, interval_product, interval_sum};
use crate::types::registry;
use crate::value::Value;

/// The result of the sorted values of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The first value at or behind a fraction of the rows.
    Discrete,
    /// The value at a fraction, between two rows.
    Continuous,
    /// The most frequent value.
    Mode,
}

/// The result of a hypothetical row among those of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hypothesis {
    Rank,
    Dense,
    Percent,
    Distribution,
}

const fn sorted(name: &'static str, start: fn(&Aggregate) -> Box<dyn Accumulator>) -> AggregateFunction {
    AggregateFunction { memory: Memory::All, counts_null: true, ..function(name, start) }
}

pub static PERCENTILE_DISC: AggregateFunction = sorted("percentile_disc", |_| Sorted::begin(Choice::Discrete));
pub static PERCENTILE_CONT: AggregateFunction = sorted("percentile_cont", |_| Sorted::begin(Choice::Continuous));
pub static MODE: AggregateFunction = sorted("mode", |_| Sorted::begin(Choice::Mode));
pub static RANK: AggregateFunction =
    AggregateFunction { counts_null: true, ..function("rank", |_| Hypothetical::begin(Hypothesis::Rank)) };
pub static PERCENT_RANK: AggregateFunction =
    AggregateFunction { counts_null: true, ..function("percent_rank", |_| Hypothetical::begin(Hypothesis::Percent)) };
pub static CUME_DIST: AggregateFunction =
    AggregateFunction { counts_null: true, ..function("cume_dist", |_| Hypothetical::begin(Hypothesis::Distribution)) };
pub static DENSE_RANK: AggregateFunction = sorted("dense_rank", |_| Hypothetical::begin(Hypothesis::Dense));

/// Returns the key by which values are sorted, whose types and directions are the last of the call.
fn key_of(aggregate: &Aggregate, values: &[Value]) -> Vec<u8> {
    let from = aggregate.arguments.len() - aggregate.order.len();
    let mut out = Vec::new();
    for ((value, ty), direction) in values.iter().zip(&aggregate.arguments[from..]).zip(&aggregate.order) {
        key::encode(value, ty.shape(), *direction, &mut out);
    }
    out
}

#[derive(Clone, Debug)]
struct Sorted {
    choice: Choice,
    /// The direct argument.
    fraction: Value,
    rows: Vec<(Vec<u8>, Value)>,
    bytes: usize,
}

impl Sorted {
    fn begin(choice: Choice) -> Box<dyn Accumulator> {
        Box::new(Sorted { choice, fraction: Value::Null, rows: Vec::new(), bytes: 0 })
    }

    /// Returns the value at a fraction of the sorted rows, of which there are some; NULL for a fraction that is NULL.
    fn at(&self, fraction: Option<f64>) -> Result<Value> {
        let Some(fraction) = fraction else { return Ok(Value::Null) };
        let count = self.rows.len() as f64;
        match self.choice {
            Choice::Mode => Ok(self.most_frequent()),
            Choice::Discrete => {
                let row = (fraction * count).ceil().max(1.0) as usize;
                Ok(self.rows[row - 1].1.clone())
            }
            Choice::Continuous => self.between(fraction * (count - 1.0)),
        }
    }

    /// Returns the results for an array of fractions.
    fn at_all(&self, fractions: &Array, aggregate: &Aggregate) -> Result<Value> {
        let mut values = Vec::with_capacity(fractions.len());
        for fraction in fractions.values() {
            values.push(self.at(checked(fraction)?)?);
        }
        let element = registry::element_of(registry::oid_of(&aggregate.ty));
        let shape = element.map(|row| registry::shape_of(row.oid));
        let shape = shape.ok_or_else(|| datum::Fault::corrupt("percentiles that are no array"))?;
        Ok(Value::Array(Array::new(shape, fractions.dimensions(), values)))
    }

    /// Returns the fraction; `None` if it is NULL.
    fn fraction(&self) -> Result<Option<f64>> {
        checked(&self.fraction)
    }
}

/// Returns a fraction; `None` for NULL. An error for one that is not between 0 and 1.
fn checked(fraction: &Value) -> Result<Option<f64>> {
    match *fraction {
        Value::Double(fraction) if (0.0..=1.0).contains(&fraction) => Ok(Some(fraction)),
        Value::Double(fraction) => {
            let shown = crate::functions::temporal::values::short_double(fraction);
            let text = format!("percentile value {shown} is not between 0 and 1");
            Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, text).into())
        }
        _ => Ok(None),
    }
}

impl Sorted {
    fn most_frequent(&self) -> Value {
        let (mut best, mut most) = (0, 0);
        let mut first = 0;
        for at in 0..self.rows.len() {
            if self.rows[at].0 != self.rows[first].0 {
                first = at;
            }
            if at + 1 - first > most {
                (best, most) = (first, at + 1 - first);
            }
        }
        self.rows[best].1.clone()
    }

    /// Returns the value at a place between two rows.
    fn between(&self, place: f64) -> Result<Value> {
        let (low, high) = (&self.rows[place.floor() as usize].1, &self.rows[place.ceil() as usize].1);
        let part = place - place.floor();
        Ok(match (low, high) {
            _ if place.floor() == place.ceil() => low.clone(),
            (Value::Double(low), Value::Double(high)) => Value::Double(low + part * (high - low)),
            (Value::Interval(low), Value::Interval(high)) => {
                let step = interval_product(interval_difference(*high, *low)?, part)?;
                Value::Interval(interval_sum(step, *low)?)
            }
            _ => return Err(datum::Fault::corrupt("a percentile of another type")),
        })
    }
}

impl Accumulator for Sorted {
    fn add(&mut self, aggregate: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        let (direct, wanted) = values.split_at(values.len() - aggregate.order.len());
        if let Some(direct) = direct.first() {
            self.fraction = direct.clone();
        }
        let [value] = wanted else { return Err(datum::Fault::corrupt("an aggregate of several columns")) };
        if !value.is_null() {
            let key = key_of(aggregate, wanted);
            self.bytes += size_of::<(Vec<u8>, Value)>() + key.len() + value.heap_bytes();
            self.rows.push((key, value.clone()));
        }
        Ok(())
    }

    fn finish(&mut self, aggregate: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        if let Value::Array(fractions) = self.fraction.clone() {
            if self.rows.is_empty() {
                return Ok(Value::Null);
            }
            self.rows.sort_by(|(a, _), (b, _)| a.cmp(b));
            return self.at_all(&fractions, aggregate);
        }
        let fraction = if self.choice == Choice::Mode { Some(0.0) } else { self.fraction()? };
        let Some(fraction) = fraction.filter(|_| !self.rows.is_empty()) else { return Ok(Value::Null) };
        self.rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.at(Some(fraction))
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[derive(Clone, Debug)]
struct Hypothetical {
    place: Hypothesis,
    count: u64,
    /// The rows before the hypothetical one, and those equal to it.
    before: u64,
    equal: u64,
    /// Of `dense_rank`, the different keys of the rows before.
    keys: BTreeSet<Vec<u8>>,
    bytes: usize,
}

impl Hypothetical {
    fn begin(place: Hypothesis) -> Box<dyn Accumulator> {
        Box::new(Hypothetical { place, count: 0, before: 0, equal: 0, keys: BTreeSet::new(), bytes: 0 })
    }
}

impl Accumulator for Hypothetical {
    fn add(&mut self, aggregate: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        let (direct, own) = values.split_at(values.len() - aggregate.order.len());
        let (hypothetical, own) = (key_of(aggregate, direct), key_of(aggregate, own));
        self.count += 1;
        self.equal += u64::from(own == hypothetical);
        if own < hypothetical {
            self.before += 1;
            let bytes = size_of::<Vec<u8>>() + own.len();
            if self.place == Hypothesis::Dense && self.keys.insert(own) {
                self.bytes += bytes;
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        Ok(match self.place {
            Hypothesis::Rank => Value::Int(self.before as i64 + 1),
            Hypothesis::Dense => Value::Int(self.keys.len() as i64 + 1),
            Hypothesis::Percent if self.count == 0 => Value::Double(0.0),
            Hypothesis::Percent => Value::Double(self.before as f64 / self.count as f64),
            Hypothesis::Distribution => Value::Double((self.before + self.equal + 1) as f64 / (self.count + 1) as f64),
        })
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
