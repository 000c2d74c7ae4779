//! Aggregates of numbers: sums, averages, variances, extremes, bits, and those of two variables.
//!
//! Sums of integers and numerics are exact, so rows can be removed again and a moving frame needs no second pass. A numeric state counts its special values and the display scales beside the sum of the finite ones,
//! because neither can be told from a sum. Floats are added in the order of rows, by the recurrence of Youngs and Cramer; nothing is removed from them.

use std::cmp::Ordering;

use datum::decimal::{Decimal, Special};
use datum::{Fault, Result};
use query::nodes::aggregate::{Accumulator, Aggregate, AggregateFunction, Memory};
use query::nodes::context::EvalContext;
use query::nodes::exact_number::ExactNumber;
use query::types::Type;

use super::arithmetic::{Rounding, divide, division_scale, quotient, root};
use super::floats;
use crate::types::numeric::checked;
use crate::value::Value;

/// Returns the value as it is: no type rounds it.
fn as_it_is(value: Value, _: &Type) -> Value {
    value
}

const fn aggregate(name: &'static str, start: fn(&Aggregate) -> Box<dyn Accumulator>) -> AggregateFunction {
    AggregateFunction {
        name,
        start,
        shares_state: false,
        counts_null: false,
        exact: false,
        memory: Memory::Nothing,
        extreme: None,
        finish: as_it_is,
    }
}

const fn extreme(
    name: &'static str,
    start: fn(&Aggregate) -> Box<dyn Accumulator>,
    order: Ordering,
) -> AggregateFunction {
    AggregateFunction { memory: Memory::One, extreme: Some(order), ..aggregate(name, start) }
}

pub static COUNT: AggregateFunction = aggregate("count", |_| Box::new(Count(0)));
/// Of int2 and int4: an int8.
pub static SUM_SHORT: AggregateFunction = exact("sum", exact_sums);
/// Of int8 and numeric: a numeric.
pub static SUM: AggregateFunction = exact("sum", exact_sums);
pub static AVG: AggregateFunction = exact("avg", exact_sums);
pub static VAR_POP: AggregateFunction = exact("var_pop", exact_squares);
pub static VAR_SAMP: AggregateFunction = exact("var_samp", exact_squares);
pub static VARIANCE: AggregateFunction = exact("variance", exact_squares);
pub static STDDEV_POP: AggregateFunction = exact("stddev_pop", exact_squares);
pub static STDDEV_SAMP: AggregateFunction = exact("stddev_samp", exact_squares);
pub static STDDEV: AggregateFunction = exact("stddev", exact_squares);
pub static SUM_FLOAT4: AggregateFunction = aggregate("sum", |_| Box::new(Float4Sum(None)));
pub static SUM_FLOAT8: AggregateFunction = aggregate("sum", |_| Box::new(Float8Sum(None)));
pub static AVG_FLOAT: AggregateFunction = aggregate("avg", |_| moments(WantedStatistic::Average));
pub static VAR_POP_FLOAT: AggregateFunction =
    aggregate("var_pop", |_| moments(WantedStatistic::Spread(Spread::VAR_POP)));
pub static VAR_SAMP_FLOAT: AggregateFunction =
    aggregate("var_samp", |_| moments(WantedStatistic::Spread(Spread::VAR_SAMP)));
pub static VARIANCE_FLOAT: AggregateFunction =
    aggregate("variance", |_| moments(WantedStatistic::Spread(Spread::VAR_SAMP)));
pub static STDDEV_POP_FLOAT: AggregateFunction =
    aggregate("stddev_pop", |_| moments(WantedStatistic::Spread(Spread::STDDEV_POP)));
pub static STDDEV_SAMP_FLOAT: AggregateFunction =
    aggregate("stddev_samp", |_| moments(WantedStatistic::Spread(Spread::STDDEV_SAMP)));
pub static STDDEV_FLOAT: AggregateFunction =
    aggregate("stddev", |_| moments(WantedStatistic::Spread(Spread::STDDEV_SAMP)));
pub static MIN: AggregateFunction =
    extreme("min", |_| Box::new(Extreme { kept: None, wanted: Ordering::Less }), Ordering::Less);
pub static MAX: AggregateFunction =
    extreme("max", |_| Box::new(Extreme { kept: None, wanted: Ordering::Greater }), Ordering::Greater);
pub static BIT_AND: AggregateFunction =
    aggregate("bit_and", |_| Box::new(BitwiseTotal { kept: None, join: |a, b| a & b }));
pub static BIT_OR: AggregateFunction =
    aggregate("bit_or", |_| Box::new(BitwiseTotal { kept: None, join: |a, b| a | b }));
pub static BIT_XOR: AggregateFunction =
    aggregate("bit_xor", |_| Box::new(BitwiseTotal { kept: None, join: |a, b| a ^ b }));

#[cold]
fn wrong_form() -> Fault {
    Fault::corrupt("an argument in the form of another type")
}

/// The methods of a state whose values take no memory elsewhere.
macro_rules! of_fixed_size {
    () => {
        fn copy(&self) -> Box<dyn Accumulator> {
            Box::new(self.clone())
        }

        fn bytes(&self) -> usize {
            0
        }
    };
}

/// `count(*)` and `count("any")`.
#[derive(Clone, Debug)]
struct Count(i64);

impl Accumulator for Count {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        self.0 += i64::from(!values.first().is_some_and(Value::is_null));
        Ok(())
    }

    fn can_remove(&self, aggregate: &Aggregate) -> bool {
        !aggregate.distinct
    }

    fn remove(&mut self, values: &[Value], _: &mut EvalContext) -> Result<()> {
        self.0 -= i64::from(!values.first().is_some_and(Value::is_null));
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        Ok(Value::Int(self.0))
    }

    of_fixed_size!();
}

/// The result of exact sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exact {
    ShortSum,
    Sum,
    Average,
    Spread(Spread),
}

impl Exact {
    /// Returns the result of an aggregate function whose state is `ExactSums`.
    fn of(function: &'static AggregateFunction) -> Exact {
        const SPREADS: [(&AggregateFunction, Spread); 6] = [
            (&VAR_POP, Spread::VAR_POP),
            (&VAR_SAMP, Spread::VAR_SAMP),
            (&VARIANCE, Spread::VAR_SAMP),
            (&STDDEV_POP, Spread::STDDEV_POP),
            (&STDDEV_SAMP, Spread::STDDEV_SAMP),
            (&STDDEV, Spread::STDDEV_SAMP),
        ];
        match function {
            _ if std::ptr::eq(function, &SUM) => Exact::Sum,
            _ if std::ptr::eq(function, &SUM_SHORT) => Exact::ShortSum,
            _ if std::ptr::eq(function, &AVG) => Exact::Average,
            _ => {
                let spread = SPREADS.iter().find(|(known, _)| std::ptr::eq(*known, function));
                spread.map_or(Exact::Sum, |(_, spread)| Exact::Spread(*spread))
            }
        }
    }
}

/// A variance or its root, of all values or of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spread {
    is_root: bool,
    is_sample: bool,
}

impl Spread {
    const VAR_POP: Spread = Spread { is_root: false, is_sample: false };
    const VAR_SAMP: Spread = Spread { is_root: false, is_sample: true };
    const STDDEV_POP: Spread = Spread { is_root: true, is_sample: false };
    const STDDEV_SAMP: Spread = Spread { is_root: true, is_sample: true };
}

/// Sums of integers and numerics.
#[derive(Clone, Debug)]
struct ExactSums {
    has_squares: bool,
    /// Finite values.
    count: i64,
    sum: Decimal,
    squares: Decimal,
    /// The display scale of the first value, and the number of values with it.
    usual: (u16, i64),
    /// The number of values of each other display scale, from the largest scale; few scales occur together.
    scales: Vec<(u16, i64)>,
    /// NaN, infinities, negative infinities.
    specials: [i64; 3],
}

/// Returns an aggregate function that shares its state with those of the same `start`.
const fn exact(name: &'static str, start: fn(&Aggregate) -> Box<dyn Accumulator>) -> AggregateFunction {
    AggregateFunction { shares_state: true, ..aggregate(name, start) }
}

fn exact_sums(_: &Aggregate) -> Box<dyn Accumulator> {
    Box::new(ExactSums::new(false))
}

fn exact_squares(_: &Aggregate) -> Box<dyn Accumulator> {
    Box::new(ExactSums::new(true))
}

impl ExactSums {
    fn new(has_squares: bool) -> ExactSums {
        let (sum, squares) = (Decimal::ZERO, Decimal::ZERO);
        ExactSums { has_squares, count: 0, sum, squares, usual: (0, 0), scales: Vec::new(), specials: [0; 3] }
    }

    /// Adds a value of the usual scale. False: nothing was changed.
    #[inline]
    fn add_alike(&mut self, decimal: &Decimal) -> bool {
        let (scale, count) = &mut self.usual;
        let is_added = !self.has_squares && *count > 0 && decimal.scale() == *scale && self.sum.add_small(decimal);
        if is_added {
            *count += 1;
            self.count += 1;
        }
        is_added
    }

    /// Adds or removes a value.
    fn count(&mut self, value: &Value, by: i64) -> Result<()> {
        let decimal = match value {
            Value::Null => return Ok(()),
            Value::Int(number) => &Decimal::from(*number),
            Value::Decimal(decimal) => decimal,
            _ => return Err(wrong_form()),
        };
        if let Some(special) = decimal.special() {
            self.specials[match special {
                Special::NotANumber => 0,
                Special::Infinity => 1,
                Special::NegativeInfinity => 2,
            }] += by;
            return Ok(());
        }
        self.count += by;
        self.count_scale(decimal.scale(), by);
        let change = if by < 0 { &decimal.negated() } else { decimal };
        if !self.sum.add_small(change) {
            self.sum = self.sum.plus(change);
        }
        if self.has_squares {
            let square = decimal.times_exactly(decimal);
            let change = if by < 0 { square.negated() } else { square };
            if !self.squares.add_small(&change) {
                self.squares = self.squares.plus(&change);
            }
        }
        Ok(())
    }

    fn count_scale(&mut self, scale: u16, by: i64) {
        if self.usual.1 == 0 && self.scales.is_empty() {
            self.usual.0 = scale;
        }
        if self.usual.0 == scale {
            self.usual.1 += by;
            return;
        }
        let at = self.scales.partition_point(|(known, _)| *known > scale);
        match self.scales.get_mut(at) {
            Some((known, count)) if *known == scale => {
                *count += by;
                if *count == 0 {
                    self.scales.remove(at);
                }
            }
            _ => self.scales.insert(at, (scale, by)),
        }
    }

    /// The largest scale of the values.
    fn scale(&self) -> u16 {
        let usual = if self.usual.1 > 0 { self.usual.0 } else { 0 };
        self.scales.first().map_or(usual, |(scale, _)| usual.max(*scale))
    }

    /// Returns what special values make of a sum; `None` without them.
    fn special(&self) -> Option<Decimal> {
        match self.specials {
            [0, 0, 0] => None,
            [0, _, 0] => Some(Decimal::INFINITY),
            [0, 0, _] => Some(Decimal::NEGATIVE_INFINITY),
            _ => Some(Decimal::NAN),
        }
    }

    /// `numeric_stddev_internal`
    fn spread(&self, Spread { is_root, is_sample }: Spread) -> Result<Value> {
        let total = self.count + self.specials.iter().sum::<i64>();
        if total == 0 || (is_sample && total == 1) {
            return Ok(Value::Null);
        }
        if self.special().is_some() {
            return Ok(Value::Decimal(Decimal::NAN));
        }
        let scale = self.scale();
        let (count, sum, squares) =
            (Decimal::from(self.count), self.sum.rounded(scale), self.squares.rounded(2 * scale));
        let numerator = count.times_exactly(&squares).minus(&sum.times_exactly(&sum));
        if numerator <= Decimal::ZERO {
            return Ok(Value::Decimal(Decimal::ZERO));
        }
        let others = if is_sample { Decimal::from(self.count - 1) } else { count.clone() };
        let divisor = count.times_exactly(&others);
        let scale = i32::from(division_scale(&numerator, &divisor));
        let variance = quotient(&numerator, &divisor, scale, Rounding::HalfAway);
        Ok(Value::Decimal(checked(if is_root { root(&variance, scale) } else { variance })?))
    }
}

impl Accumulator for ExactSums {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        match &values[0] {
            Value::Decimal(decimal) if self.add_alike(decimal) => Ok(()),
            value => self.count(value, 1),
        }
    }

    fn add_exact(&mut self, number: ExactNumber) -> bool {
        self.add_alike(&number.into())
    }

    fn can_remove(&self, aggregate: &Aggregate) -> bool {
        !aggregate.distinct
    }

    fn remove(&mut self, values: &[Value], _: &mut EvalContext) -> Result<()> {
        self.count(&values[0], -1)
    }

    fn finish(&mut self, aggregate: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        let wanted = Exact::of(aggregate.function);
        if let Exact::Spread(spread) = wanted {
            return self.spread(spread);
        }
        if let Some(special) = self.special() {
            return Ok(Value::Decimal(special));
        }
        if self.count == 0 {
            return Ok(Value::Null);
        }
        let sum = self.sum.rounded(self.scale());
        Ok(match wanted {
            // PostgreSQL adds without a check for overflow.
            Exact::ShortSum => Value::Int(sum.to_whole() as i64),
            Exact::Average => Value::Decimal(divide(&sum, &Decimal::from(self.count))?),
            _ => Value::Decimal(checked(sum)?),
        })
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.sum.heap_bytes() + self.squares.heap_bytes()
    }
}

/// Adds in single precision, as PostgreSQL does.
#[derive(Clone, Debug)]
struct Float4Sum(Option<f32>);

impl Accumulator for Float4Sum {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        match (&values[0], self.0) {
            (Value::Null, _) => {}
            (Value::Float(next), None) => self.0 = Some(*next),
            (Value::Float(next), Some(sum)) => self.0 = Some(floats::add4(sum, *next)?),
            _ => return Err(wrong_form()),
        }
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        Ok(self.0.map_or(Value::Null, Value::Float))
    }

    of_fixed_size!();
}

#[derive(Clone, Debug)]
struct Float8Sum(Option<f64>);

impl Accumulator for Float8Sum {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        match (float(&values[0])?, self.0) {
            (None, _) => {}
            (Some(next), None) => self.0 = Some(next),
            (Some(next), Some(sum)) => self.0 = Some(floats::add(sum, next)?),
        }
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        Ok(self.0.map_or(Value::Null, Value::Double))
    }

    of_fixed_size!();
}

/// Returns a float as a double; `None` for NULL.
fn float(value: &Value) -> Result<Option<f64>> {
    match value {
        Value::Null => Ok(None),
        Value::Float(number) => Ok(Some(f64::from(*number))),
        Value::Double(number) => Ok(Some(*number)),
        _ => Err(wrong_form()),
    }
}

/// The result of sums of floats.
#[derive(Clone, Copy, Debug)]
enum WantedStatistic {
    Average,
    Spread(Spread),
}

/// Sums of float4 and float8: `float8_accum`.
#[derive(Clone, Debug)]
struct Moments {
    wanted: WantedStatistic,
    count: f64,
    sum: f64,
    /// The sum of the squares of the distances from the average.
    squares: f64,
}

fn moments(wanted: WantedStatistic) -> Box<dyn Accumulator> {
    Box::new(Moments { wanted, count: 0.0, sum: 0.0, squares: 0.0 })
}

impl Accumulator for Moments {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        let Some(next) = float(&values[0])? else { return Ok(()) };
        let (before, sum_before) = (self.count, self.sum);
        self.count += 1.0;
        self.sum += next;
        if before > 0.0 {
            let distance = next * self.count - self.sum;
            self.squares += distance * distance / (self.count * before);
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if !sum_before.is_infinite() && !next.is_infinite() {
                    return Err(floats::overflow().into());
                }
                self.squares = f64::NAN;
            }
        } else if !next.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        let number = match self.wanted {
            _ if self.count == 0.0 => return Ok(Value::Null),
            WantedStatistic::Average => self.sum / self.count,
            WantedStatistic::Spread(Spread { is_sample: true, .. }) if self.count <= 1.0 => return Ok(Value::Null),
            WantedStatistic::Spread(Spread { is_root, is_sample }) => {
                let variance = self.squares / if is_sample { self.count - 1.0 } else { self.count };
                if is_root { variance.sqrt() } else { variance }
            }
        };
        Ok(Value::Double(number))
    }

    of_fixed_size!();
}

/// MIN and MAX, of types that have an order: by the aggregate's comparator, or as numbers.
#[derive(Clone, Debug)]
struct Extreme {
    kept: Option<Value>,
    wanted: Ordering,
}

/// Returns the order of two numbers of one type.
fn number_order(a: &Value, b: &Value) -> Result<Ordering> {
    Ok(match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => floats::order((*a).into(), (*b).into()),
        (Value::Double(a), Value::Double(b)) => floats::order(*a, *b),
        _ => return Err(wrong_form()),
    })
}

impl Accumulator for Extreme {
    fn add(&mut self, aggregate: &Aggregate, values: &[Value], ctx: &mut EvalContext) -> Result<()> {
        let next = &values[0];
        if next.is_null() {
            return Ok(());
        }
        let is_worse = match (&self.kept, &aggregate.by) {
            (None, _) => false,
            (Some(kept), Some(by)) => by.order(kept, next, ctx)? == self.wanted,
            (Some(kept), None) => number_order(kept, next)? == self.wanted,
        };
        // Of equal values the last stays, as in PostgreSQL: 1.00 after 1.0.
        if !is_worse {
            self.kept = Some(next.clone());
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

/// The operators on bits of all values.
#[derive(Clone, Debug)]
struct BitwiseTotal {
    kept: Option<i64>,
    join: fn(i64, i64) -> i64,
}

impl Accumulator for BitwiseTotal {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> Result<()> {
        match &values[0] {
            Value::Null => {}
            Value::Int(next) => self.kept = Some(self.kept.map_or(*next, |kept| (self.join)(kept, *next))),
            _ => return Err(wrong_form()),
        }
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        Ok(self.kept.map_or(Value::Null, Value::Int))
    }

    of_fixed_size!();
}
