//! Conversions between numeric, the integers and the floats.

use datum::decimal::Decimal;

use crate::error::{PgError, Result, state};
use crate::types::numeric::float::{self, Float, with_digits};
use crate::types::numeric::integer::Width;
use crate::types::numeric::numeric_in;

/// Rounds half away from zero: `numeric_int2`, `numeric_int4`, `numeric_int8`.
pub fn to_integer(width: Width, value: &Decimal) -> Result<i64> {
    if !value.is_finite() {
        let name = if value.is_nan() { "NaN" } else { "infinity" };
        let message = format!("cannot convert {name} to {}", width.name());
        return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    let whole = value.rounded(0).small().and_then(|whole| i64::try_from(whole).ok());
    width.checked(whole.ok_or_else(|| width.out_of_range())?)
}

/// `numeric_float4`, `numeric_float8`. Error 22003 beyond the type.
pub fn to_float<F: Float>(value: &Decimal) -> Result<F> {
    match value.special() {
        Some(special) => float::float_in(&special.to_string()),
        None => float::float_in(&value.to_string()),
    }
}

/// Keeps the digits that the type surely has: `float4_numeric`, `float8_numeric`.
pub fn of_float<F: Float>(number: F) -> Result<Decimal> {
    let wide: f64 = number.into();
    if wide.is_nan() {
        return Ok(Decimal::NAN);
    }
    if wide.is_infinite() {
        return Ok(if wide > 0.0 { Decimal::INFINITY } else { Decimal::NEGATIVE_INFINITY });
    }
    numeric_in(&with_digits(number, F::DIGITS), -1)
}
