//! Arithmetic of float4 and float8. A finite computation whose result is infinite is an overflow, one whose result vanishes an underflow.

use std::cmp::Ordering;

use super::arithmetic::{bucket_error, division_by_zero};
use crate::error::{PgError, Result, state};
use crate::types::numeric::integer::Width;

#[cold]
pub fn overflow() -> PgError {
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

#[cold]
pub fn underflow() -> PgError {
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

#[cold]
pub fn out_of_domain() -> PgError {
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

/// The four operations, of both types.
macro_rules! operations {
    ($float:ident, $add:ident, $subtract:ident, $multiply:ident, $divide:ident) => {
        pub fn $add(a: $float, b: $float) -> Result<$float> {
            let sum = a + b;
            if sum.is_infinite() && !a.is_infinite() && !b.is_infinite() { Err(overflow()) } else { Ok(sum) }
        }

        pub fn $subtract(a: $float, b: $float) -> Result<$float> {
            $add(a, -b)
        }

        pub fn $multiply(a: $float, b: $float) -> Result<$float> {
            let product = a * b;
            if product.is_infinite() && !a.is_infinite() && !b.is_infinite() {
                return Err(overflow());
            }
            if product == 0.0 && a != 0.0 && b != 0.0 { Err(underflow()) } else { Ok(product) }
        }

        pub fn $divide(a: $float, b: $float) -> Result<$float> {
            if b == 0.0 && !a.is_nan() {
                return Err(division_by_zero());
            }
            let quotient = a / b;
            if quotient.is_infinite() && !a.is_infinite() {
                return Err(overflow());
            }
            if quotient == 0.0 && a != 0.0 && !b.is_infinite() { Err(underflow()) } else { Ok(quotient) }
        }
    };
}

operations!(f64, add, subtract, multiply, divide);
operations!(f32, add4, subtract4, multiply4, divide4);

/// Orders floats: NaN equals NaN and is greater than every number.
pub fn order(a: f64, b: f64) -> Ordering {
    datum::float::order(a, b)
}

/// Rounds a double to single precision: `dtof`.
pub fn to_float4(number: f64) -> Result<f32> {
    let narrow = number as f32;
    if narrow.is_infinite() && !number.is_infinite() {
        return Err(overflow());
    }
    if narrow == 0.0 && number != 0.0 { Err(underflow()) } else { Ok(narrow) }
}

/// Rounds to an integer, halves to the even one. Error 22003 beyond the type and for NaN.
pub fn to_integer(width: Width, number: f64) -> Result<i64> {
    let whole = number.round_ties_even();
    // Both limits are powers of two, so they are doubles.
    let limit = -(width.min() as f64);
    if whole >= -limit && whole < limit { Ok(whole as i64) } else { Err(width.out_of_range()) }
}

/// `dsign`: 0 for NaN.
pub fn sign(number: f64) -> f64 {
    if number > 0.0 {
        1.0
    } else if number < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// Checks a result of a finite argument.
fn in_range(result: f64, is_argument_finite: bool, may_be_zero: bool) -> Result<f64> {
    if result.is_infinite() && is_argument_finite {
        return Err(overflow());
    }
    if result == 0.0 && !may_be_zero { Err(underflow()) } else { Ok(result) }
}

/// `dsqrt`
pub fn sqrt(number: f64) -> Result<f64> {
    if number < 0.0 {
        return Err(PgError::new(
            state::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "cannot take square root of a negative number",
        ));
    }
    in_range(number.sqrt(), number.is_finite(), number == 0.0)
}

/// `dcbrt`
pub fn cbrt(number: f64) -> Result<f64> {
    in_range(number.cbrt(), number.is_finite(), number == 0.0)
}

/// `dexp`
pub fn exp(number: f64) -> Result<f64> {
    if number.is_infinite() {
        return Ok(if number > 0.0 { number } else { 0.0 });
    }
    in_range(number.exp(), number.is_finite(), false)
}

/// Checks the argument of a logarithm.
fn check_logarithm(number: f64) -> Result<()> {
    if number == 0.0 {
        return Err(PgError::new(state::INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of zero"));
    }
    if number < 0.0 {
        return Err(PgError::new(state::INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of a negative number"));
    }
    Ok(())
}

/// `dlog1`
pub fn ln(number: f64) -> Result<f64> {
    check_logarithm(number)?;
    in_range(number.ln(), number.is_finite(), number == 1.0)
}

/// `dlog10`
pub fn log10(number: f64) -> Result<f64> {
    check_logarithm(number)?;
    in_range(number.log10(), number.is_finite(), number == 1.0)
}

/// `dpow`
pub fn power(base: f64, exponent: f64) -> Result<f64> {
    if base.is_nan() {
        return Ok(if exponent == 0.0 { 1.0 } else { base });
    }
    if exponent.is_nan() {
        return Ok(if base == 1.0 { 1.0 } else { exponent });
    }
    let undefined = |message: &str| Err(PgError::new(state::INVALID_ARGUMENT_FOR_POWER_FUNCTION, message));
    if base == 0.0 && exponent < 0.0 {
        return undefined("zero raised to a negative power is undefined");
    }
    if base < 0.0 && exponent.floor() != exponent {
        return undefined("a negative number raised to a non-integer power yields a complex result");
    }
    let result = base.powf(exponent);
    if base.is_infinite() || exponent.is_infinite() {
        return Ok(result);
    }
    in_range(result, true, base == 0.0)
}

/// `width_bucket_float8`
pub fn width_bucket(operand: f64, low: f64, high: f64, count: i64) -> Result<i64> {
    if count <= 0 {
        return Err(bucket_error("count must be greater than zero"));
    }
    if operand.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(bucket_error("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(bucket_error("lower bound cannot equal upper bound"));
    }
    let (is_before, is_behind) =
        if low < high { (operand < low, operand >= high) } else { (operand > low, operand <= high) };
    if is_before {
        return Ok(0);
    }
    if is_behind {
        return Width::Int4.checked(count + 1);
    }
    // The difference of the bounds may be beyond the type, its half is not.
    let part = if (high - low).is_infinite() {
        (operand / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
    } else {
        (operand - low) / (high - low)
    };
    Ok(((count as f64 * part) as i64).min(count - 1) + 1)
}
