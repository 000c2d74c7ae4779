//! `sum` and `avg` of intervals.

use datum::Result;
use query::nodes::aggregate::{Accumulator, Aggregate, AggregateFunction, Memory};
use query::nodes::context::EvalContext;

use super::arithmetic::{interval_difference, interval_quotient, interval_sum};
use super::values::span;
use crate::types::temporal::Span;
use crate::value::Value;

pub static SUM: AggregateFunction = function("sum", |_| Box::new(Spans::new(false)));
pub static AVG: AggregateFunction = function("avg", |_| Box::new(Spans::new(true)));

const fn function(name: &'static str, start: fn(&Aggregate) -> Box<dyn Accumulator>) -> AggregateFunction {
    AggregateFunction {
        name,
        start,
        shares_state: false,
        counts_null: false,
        exact: false,
        memory: Memory::Nothing,
        extreme: None,
        finish: |value, _| value,
    }
}

#[derive(Clone, Debug)]
struct Spans {
    sum: Span,
    count: u64,
    is_average: bool,
}

impl Spans {
    fn new(is_average: bool) -> Spans {
        Spans { sum: Span::default(), count: 0, is_average }
    }
}

impl Accumulator for Spans {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        self.sum = interval_sum(self.sum, span(values, 0)?)?;
        self.count += 1;
        Ok(())
    }

    fn can_remove(&self, _: &Aggregate) -> bool {
        true
    }

    fn remove(&mut self, values: &[Value], _: &mut EvalContext) -> Result<()> {
        self.sum = interval_difference(self.sum, span(values, 0)?)?;
        self.count -= 1;
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        if self.count == 0 {
            return Ok(Value::Null);
        }
        let sum = self.sum;
        Ok(Value::Interval(if self.is_average { interval_quotient(sum, self.count as f64)? } else { sum }))
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        0
    }
}
