//! Arithmetic of numeric as PostgreSQL's `numeric.c` has it: the same display scales, rounding and limits.
//!
//! Sums and products are exact. A quotient gets the scale that `division_scale` selects, at least 16 significant digits, and is rounded half away from zero. PostgreSQL computes in groups of four digits, and the
//! selection of scales depends on their weights; `Leading` tells them.

use datum::decimal::{Decimal, Special};
use num_bigint::{BigInt, BigUint, Sign};

use crate::error::{PgError, Result, state};
use crate::types::numeric::{WHOLE_DIGITS_MAX, checked, overflow, power_of_ten};

/// `NUMERIC_MIN_SIG_DIGITS`
pub const SIGNIFICANT_DIGITS_MIN: i32 = 16;
/// `NUMERIC_MAX_DISPLAY_SCALE`
pub const DISPLAY_SCALE_MAX: i32 = 1000;

#[cold]
pub fn division_by_zero() -> PgError {
    PgError::new(state::DIVISION_BY_ZERO, "division by zero")
}

/// Returns 1, 0 or -1; 0 for NaN.
pub fn signum(value: &Decimal) -> i32 {
    if value.is_nan() || value.is_zero() {
        0
    } else if value.is_negative() {
        -1
    } else {
        1
    }
}

pub fn add(a: &Decimal, b: &Decimal) -> Result<Decimal> {
    checked(a.plus(b))
}

pub fn subtract(a: &Decimal, b: &Decimal) -> Result<Decimal> {
    checked(a.minus(b))
}

pub fn multiply(a: &Decimal, b: &Decimal) -> Result<Decimal> {
    let product = a.times_exactly(b);
    let scale = product.scale().min(crate::types::numeric::SCALE_MAX);
    checked(if scale == product.scale() { product } else { product.rounded(scale) })
}

/// The leading group of four digits, and its weight: the value is about `digit` * 10,000^`weight`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leading {
    pub weight: i32,
    pub digit: i32,
}

impl Leading {
    /// Returns that of a finite value; both 0 for zero.
    pub fn of(value: &Decimal) -> Leading {
        if value.is_zero() {
            return Leading::default();
        }
        let digits = value.digits() as i32;
        let exponent = digits - 1 - i32::from(value.scale());
        let weight = exponent.div_euclid(4);
        let wanted = exponent.rem_euclid(4) + 1;
        let digit = match value.small() {
            Some(small) if digits >= wanted => (small.unsigned_abs() / 10u128.pow((digits - wanted) as u32)) as i32,
            Some(small) => (small.unsigned_abs() * 10u128.pow((wanted - digits) as u32)) as i32,
            None => {
                let top = value.coefficient().magnitude() / power_of_ten((digits - wanted) as u32).magnitude();
                i32::try_from(top).unwrap_or(0)
            }
        };
        Leading { weight, digit }
    }
}

/// Returns the scale of a quotient: `select_div_scale`.
pub fn division_scale(a: &Decimal, b: &Decimal) -> u16 {
    let (first, second) = (Leading::of(a), Leading::of(b));
    let weight = first.weight - second.weight - i32::from(first.digit <= second.digit);
    let scale = (SIGNIFICANT_DIGITS_MIN - weight * 4).max(a.scale().into()).max(b.scale().into());
    scale.clamp(0, DISPLAY_SCALE_MAX) as u16
}

/// How the digits behind a quotient's scale are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    HalfAway,
    Truncate,
}

/// Returns the quotient of finite values, the divisor not zero, with a scale.
pub fn quotient(a: &Decimal, b: &Decimal, scale: i32, rounding: Rounding) -> Decimal {
    // a / 10^s / (b / 10^t) = a * 10^(scale + t - s) / b, in units of 10^-scale.
    let exponent = scale + i32::from(b.scale()) - i32::from(a.scale());
    let shown = scale.max(0) as u16;
    if let (Some(a), Some(b)) = (a.small(), b.small())
        && let Ok(exponent) = u32::try_from(exponent)
        && let Some(numerator) = 10i128.checked_pow(exponent).and_then(|power| a.checked_mul(power))
        && let (Some(whole), Some(rest)) = (numerator.checked_div(b), numerator.checked_rem(b))
    {
        let is_up = rounding == Rounding::HalfAway && rest.unsigned_abs() >= b.unsigned_abs().div_ceil(2) && rest != 0;
        let step = if !is_up {
            0
        } else if (numerator < 0) == (b < 0) {
            1
        } else {
            -1
        };
        return Decimal::new(whole + step, shown);
    }
    let (mut numerator, mut divisor) = (a.coefficient(), b.coefficient());
    match u32::try_from(exponent) {
        Ok(exponent) => numerator *= power_of_ten(exponent),
        Err(_) => divisor *= power_of_ten(exponent.unsigned_abs()),
    }
    Decimal::from_big(divided(&numerator, &divisor, rounding), shown)
}

/// Returns the whole quotient of integers.
pub fn divided(numerator: &BigInt, divisor: &BigInt, rounding: Rounding) -> BigInt {
    let (whole, rest) = (numerator / divisor, numerator % divisor);
    if rounding == Rounding::Truncate || rest.magnitude() * 2u8 < *divisor.magnitude() {
        return whole;
    }
    let is_negative = (numerator.sign() == Sign::Minus) != (divisor.sign() == Sign::Minus);
    if is_negative { whole - 1 } else { whole + 1 }
}

/// Returns the quotient where a side is not finite. An error for an infinity divided by zero.
#[cold]
fn special_quotient(a: &Decimal, b: &Decimal) -> Result<Decimal> {
    if a.is_nan() || b.is_nan() || (a.is_infinite() && b.is_infinite()) {
        return Ok(Decimal::NAN);
    }
    if b.is_infinite() {
        return Ok(Decimal::ZERO);
    }
    match signum(b) {
        0 => Err(division_by_zero()),
        1 => Ok(a.clone()),
        _ => Ok(a.negated()),
    }
}

/// `numeric_div`
pub fn divide(a: &Decimal, b: &Decimal) -> Result<Decimal> {
    if !a.is_finite() || !b.is_finite() {
        return special_quotient(a, b);
    }
    if b.is_zero() {
        return Err(division_by_zero());
    }
    checked(quotient(a, b, division_scale(a, b).into(), Rounding::HalfAway))
}

/// `numeric_div_trunc`
pub fn divide_whole(a: &Decimal, b: &Decimal) -> Result<Decimal> {
    if !a.is_finite() || !b.is_finite() {
        return special_quotient(a, b);
    }
    if b.is_zero() {
        return Err(division_by_zero());
    }
    checked(quotient(a, b, 0, Rounding::Truncate))
}

/// `numeric_mod`
pub fn modulo(a: &Decimal, b: &Decimal) -> Result<Decimal> {
    if b.is_zero() && !a.is_nan() {
        return Err(division_by_zero());
    }
    Ok(a.remainder(b).unwrap_or(Decimal::NAN))
}

/// Rounds to a scale that a client gave: `numeric_round`.
pub fn round(value: &Decimal, scale: i64) -> Result<Decimal> {
    checked(crate::types::numeric::rounded(value, limited(scale)))
}

/// Cuts digits behind a scale that a client gave: `numeric_trunc`.
pub fn truncate(value: &Decimal, scale: i64) -> Result<Decimal> {
    let scale = limited(scale);
    checked(match u16::try_from(scale) {
        Ok(scale) => value.truncated(scale),
        Err(_) => value.at_power(scale.unsigned_abs(), false),
    })
}

fn limited(scale: i64) -> i32 {
    let least = -i64::from(WHOLE_DIGITS_MAX) - 1;
    scale.clamp(least, crate::types::numeric::SCALE_MAX.into()) as i32
}

/// `numeric_sign`
pub fn sign(value: &Decimal) -> Decimal {
    if value.is_nan() { Decimal::NAN } else { Decimal::from(i64::from(signum(value))) }
}

/// Returns how many digits behind the point are needed; `None` for a special value.
pub fn min_scale(value: &Decimal) -> Option<u16> {
    if !value.is_finite() {
        return None;
    }
    if let Some(mut small) = value.small() {
        let mut scale = value.scale();
        if small == 0 {
            return Some(0);
        }
        while scale > 0 && small % 10 == 0 {
            (small, scale) = (small / 10, scale - 1);
        }
        return Some(scale);
    }
    let digits = value.coefficient().magnitude().to_string();
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    Some(value.scale().saturating_sub(zeros.min(usize::from(u16::MAX)) as u16))
}

/// `numeric_trim_scale`
pub fn trim_scale(value: &Decimal) -> Decimal {
    min_scale(value).map_or_else(|| value.clone(), |scale| value.truncated(scale))
}

/// Returns both coefficients in units of the larger scale, and that scale.
fn aligned(a: &Decimal, b: &Decimal) -> (BigInt, BigInt, u16) {
    let scale = a.scale().max(b.scale());
    (a.rounded(scale).coefficient(), b.rounded(scale).coefficient(), scale)
}

/// `numeric_gcd`
pub fn gcd(a: &Decimal, b: &Decimal) -> Result<Decimal> {
    if !a.is_finite() || !b.is_finite() {
        return Ok(Decimal::NAN);
    }
    let (a, b, scale) = aligned(a, b);
    Ok(Decimal::from_big(gcd_of(a.magnitude().clone(), b.magnitude().clone()).into(), scale))
}

fn gcd_of(mut a: BigUint, mut b: BigUint) -> BigUint {
    while b != BigUint::ZERO {
        let rest = &a % &b;
        (a, b) = (b, rest);
    }
    a
}

/// `numeric_lcm`
pub fn lcm(a: &Decimal, b: &Decimal) -> Result<Decimal> {
    if !a.is_finite() || !b.is_finite() {
        return Ok(Decimal::NAN);
    }
    let (a, b, scale) = aligned(a, b);
    if a == BigInt::ZERO || b == BigInt::ZERO {
        return Ok(Decimal::new(0, scale));
    }
    let divisor = gcd_of(a.magnitude().clone(), b.magnitude().clone());
    checked(Decimal::from_big((a.magnitude() / divisor * b.magnitude()).into(), scale))
}

/// `numeric_fac`
pub fn factorial(number: i64) -> Result<Decimal> {
    /// The factorial of a larger number has too many digits.
    const LARGEST: i64 = 32_177;
    if number < 0 {
        return Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "factorial of a negative number is undefined"));
    }
    if number > LARGEST {
        return Err(overflow());
    }
    checked(Decimal::from_big(product(1, number.max(1) as u64).into(), 0))
}

/// Returns the product of the numbers of a range, by halves, so that factors are of similar size.
fn product(from: u64, to: u64) -> BigUint {
    if to - from < 8 {
        return (from..=to).fold(BigUint::from(1u8), |product, factor| product * factor);
    }
    let middle = from + (to - from) / 2;
    product(from, middle) * product(middle + 1, to)
}

/// Returns the error of `width_bucket` for arguments that make no buckets.
#[cold]
pub fn bucket_error(message: &str) -> PgError {
    PgError::new(state::INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION, message)
}

/// `width_bucket_numeric`
pub fn width_bucket(operand: &Decimal, low: &Decimal, high: &Decimal, count: i64) -> Result<i64> {
    if count <= 0 {
        return Err(bucket_error("count must be greater than zero"));
    }
    if operand.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bucket_error("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(bucket_error("lower and upper bounds must be finite"));
    }
    let is_ascending = low < high;
    if low == high {
        return Err(bucket_error("lower bound cannot equal upper bound"));
    }
    let (is_before, is_behind) =
        if is_ascending { (operand < low, operand >= high) } else { (operand > low, operand <= high) };
    let bucket = if is_before {
        0
    } else if is_behind {
        i128::from(count) + 1
    } else {
        bucket_between(operand, low, high, count)
    };
    let in_range = |bucket: &i64| *bucket <= i64::from(i32::MAX);
    i64::try_from(bucket)
        .ok()
        .filter(in_range)
        .ok_or_else(|| crate::types::numeric::integer::Width::Int4.out_of_range())
}

fn bucket_between(operand: &Decimal, low: &Decimal, high: &Decimal, count: i64) -> i128 {
    let distance = operand.minus(low).times_exactly(&Decimal::from(count));
    let whole = quotient(&distance, &high.minus(low), 0, Rounding::Truncate).to_whole();
    whole.min(i128::from(count) - 1) + 1
}

/// Returns the square root, correctly rounded, with a scale.
pub fn root(value: &Decimal, scale: i32) -> Decimal {
    // One digit more, which decides the rounding: what follows it cannot be a half.
    let exponent = 2 * (scale + 1) - i32::from(value.scale());
    let coefficient = value.coefficient();
    let radicand = match u32::try_from(exponent) {
        Ok(exponent) => coefficient * power_of_ten(exponent),
        Err(_) => coefficient / power_of_ten(exponent.unsigned_abs()),
    };
    let root = (radicand.magnitude().sqrt() + 5u8) / 10u8;
    Decimal::from_big(root.into(), scale.max(0) as u16)
}

/// `numeric_sqrt`
pub fn sqrt(value: &Decimal) -> Result<Decimal> {
    if signum(value) < 0 {
        return Err(PgError::new(
            state::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "cannot take square root of a negative number",
        ));
    }
    if value.special() == Some(Special::Infinity) || value.is_nan() {
        return Ok(value.clone());
    }
    let digits_before = Leading::of(value).weight * 4 / 2 + 1;
    let scale = (SIGNIFICANT_DIGITS_MIN - digits_before).max(value.scale().into()).clamp(0, DISPLAY_SCALE_MAX);
    checked(root(value, scale))
}
