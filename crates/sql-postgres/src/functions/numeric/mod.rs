//! Functions, operators, casts and aggregates of numbers: int2, int4, int8, float4, float8, numeric.
//!
//! `rows.rs` has the rows of PostgreSQL's catalogs; each names the code of one of the other files. Values come in the form of their type, which the binder has settled by casts; another form is a fault of the binder and ends in an
//! error, not in a panic.

use std::cmp::Ordering;

use datum::decimal::Decimal;
use datum::{Fault, Result};

use crate::error::PgError;
use crate::value::Value;

pub mod aggregates;
pub mod arithmetic;
pub mod casts;
pub mod floats;
pub mod integers;
pub mod random;
mod regression;
mod rows;
mod rows_operators;
pub mod transcendental;
pub mod trigonometry;

pub use rows::FUNCTIONS;
pub use rows_operators::{CASTS, OPERATORS};

/// A form in which a function takes an argument.
trait Argument<'v>: Sized {
    fn of(value: &'v Value) -> Option<Self>;
}

impl Argument<'_> for i64 {
    fn of(value: &Value) -> Option<i64> {
        if let Value::Int(number) = value { Some(*number) } else { None }
    }
}

impl Argument<'_> for f32 {
    fn of(value: &Value) -> Option<f32> {
        if let Value::Float(number) = value { Some(*number) } else { None }
    }
}

impl Argument<'_> for f64 {
    fn of(value: &Value) -> Option<f64> {
        if let Value::Double(number) = value { Some(*number) } else { None }
    }
}

impl<'v> Argument<'v> for &'v Decimal {
    fn of(value: &'v Value) -> Option<&'v Decimal> {
        if let Value::Decimal(number) = value { Some(number) } else { None }
    }
}

/// A form in which a function gives its result.
trait FunctionResult {
    fn value(self) -> Result<Value>;
}

/// Implements `FunctionResult` for types that are one variant of `Value`.
macro_rules! outcomes {
    ($($ty:ty: $of:expr;)*) => {
        $(impl FunctionResult for $ty {
            #[inline]
            fn value(self) -> Result<Value> {
                Ok($of(self))
            }
        })*
    };
}

outcomes! {
    i64: Value::Int;
    f32: Value::Float;
    f64: Value::Double;
    Decimal: Value::Decimal;
    bool: Value::from;
    Ordering: |order| Value::Int(order as i64);
    // A scale, or NULL.
    Option<u16>: |scale: Option<u16>| scale.map_or(Value::Null, |scale| Value::Int(scale.into()));
    // Of type void.
    (): |()| Value::text("");
}

impl<T: FunctionResult> FunctionResult for std::result::Result<T, PgError> {
    #[inline]
    fn value(self) -> Result<Value> {
        match self {
            Ok(value) => value.value(),
            Err(error) => Err(error.into()),
        }
    }
}

fn argument<'v, A: Argument<'v>>(values: &'v [Value], at: usize) -> Result<A> {
    values.get(at).and_then(A::of).ok_or_else(wrong_form)
}

#[cold]
fn wrong_form() -> Fault {
    Fault::corrupt("an argument in the form of another type")
}

/// Calls a function of one argument.
fn one<'v, A: Argument<'v>, R: FunctionResult>(values: &'v [Value], function: impl Fn(A) -> R) -> Result<Value> {
    function(argument(values, 0)?).value()
}

/// Calls a function of two arguments.
fn two<'v, A: Argument<'v>, B: Argument<'v>, R: FunctionResult>(
    a: &'v Value,
    b: &'v Value,
    function: impl Fn(A, B) -> R,
) -> Result<Value> {
    let (Some(a), Some(b)) = (A::of(a), B::of(b)) else { return Err(wrong_form()) };
    function(a, b).value()
}

/// Calls `width_bucket`: three numbers of one type, and the number of buckets.
fn bucket<'v, A: Argument<'v>>(
    values: &'v [Value],
    function: impl Fn(A, A, A, i64) -> crate::error::Result<i64>,
) -> Result<Value> {
    function(argument(values, 0)?, argument(values, 1)?, argument(values, 2)?, argument(values, 3)?).value()
}

#[cfg(test)]
mod exact_tests;
#[cfg(test)]
mod tests;
