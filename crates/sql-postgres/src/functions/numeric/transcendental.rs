//! Exponentials, logarithms and powers of numeric.
//!
//! Scales are selected as in PostgreSQL's `numeric.c`, from estimates in floating point. An exponential is computed in the same steps as there. Logarithms are computed in binary fixed point with bits to spare, so that the
//! rounded digits are the true ones.

use datum::decimal::{Decimal, Special};
use num_bigint::{BigInt, Sign};

use super::arithmetic::{
    DISPLAY_SCALE_MAX, Leading, Rounding, SIGNIFICANT_DIGITS_MIN, divided, division_by_zero, quotient, signum,
};
use crate::error::{PgError, Result, SqlState, state};
use crate::types::numeric::{WHOLE_DIGITS_MAX, checked, overflow, power_of_ten};

const LOG10_E: f64 = std::f64::consts::LOG10_E;
const BITS_PER_DIGIT: f64 = std::f64::consts::LOG2_10;
/// Bits beyond those of the digits that are shown.
const GUARD_BITS: u64 = 96;
/// `NUMERIC_MAX_RESULT_SCALE`: twice the largest declared precision.
const RESULT_SCALE_MAX: f64 = 2000.0;
/// From this argument on an exponential is beyond every numeric; below its opposite it is zero.
const EXPONENT_MAX: f64 = RESULT_SCALE_MAX * 3.0;

#[cold]
fn undefined(state: SqlState, message: &str) -> PgError {
    PgError::new(state, message)
}

/// Returns about so many bits as digits take.
fn bits(digits: i64) -> u64 {
    (digits.max(0) as f64 * BITS_PER_DIGIT) as u64 + GUARD_BITS
}

/// Returns the decimal of a number in units of 2^-`bits`, rounded half away from zero.
fn of_fixed(number: &BigInt, bits: u64, scale: i32) -> Decimal {
    let units = number.magnitude() * power_of_ten(scale as u32).magnitude();
    let half = if bits == 0 { 0u8.into() } else { num_bigint::BigUint::from(1u8) << (bits - 1) };
    let rounded = BigInt::from((units + half) >> bits);
    Decimal::from_big(if number.sign() == Sign::Minus { -rounded } else { rounded }, scale as u16)
}

/// Returns atanh(1 / `divisor`).
fn atanh_of_fraction(divisor: u32, bits: u64) -> BigInt {
    let square = divisor * divisor;
    let mut power = (BigInt::from(1u8) << bits) / divisor;
    let (mut sum, mut nth) = (BigInt::ZERO, 1u32);
    while power.sign() != Sign::NoSign {
        sum += &power / nth;
        power /= square;
        nth += 2;
    }
    sum
}

/// Returns ln 2.
fn ln_two(bits: u64) -> BigInt {
    18 * atanh_of_fraction(26, bits) - 2 * atanh_of_fraction(4801, bits) + 8 * atanh_of_fraction(8749, bits)
}

/// Returns e to a power with a scale: `exp_var`, with its scales of the steps, so that results between two digits round as PostgreSQL rounds them.
fn exp_scaled(value: &Decimal, scale: i32) -> Result<Decimal> {
    let mut estimate = value.to_f64();
    if estimate.abs() >= EXPONENT_MAX {
        return if estimate > 0.0 { Err(overflow()) } else { Ok(Decimal::new(0, scale as u16)) };
    }
    let digits = (estimate * LOG10_E) as i32;
    // Halved so often that the series is short, then squared as often.
    let mut halvings = 0;
    while estimate.abs() > 0.01 {
        (halvings, estimate) = (halvings + 1, estimate / 2.0);
    }
    let value = match halvings {
        0 => value.clone(),
        _ => quotient(value, &Decimal::new(1 << halvings, 0), i32::from(value.scale()) + halvings, Rounding::HalfAway),
    };
    let significant = (1 + digits + scale + (f64::from(halvings) * std::f64::consts::LOG10_2) as i32).max(0) + 8;
    let inner = (significant - 1) as u16;
    let (mut sum, mut term, mut nth) = (Decimal::from(1i64).plus(&value), value.clone(), 1i64);
    loop {
        nth += 1;
        term = term.times_exactly(&value).rounded(inner);
        term = quotient(&term, &Decimal::from(nth), inner.into(), Rounding::HalfAway);
        if term.is_zero() {
            break;
        }
        sum = sum.plus(&term);
    }
    for _ in 0..halvings {
        let inner = (significant - Leading::of(&sum).weight * 8).max(0);
        sum = sum.times_exactly(&sum).rounded(inner as u16);
    }
    Ok(sum.rounded(scale as u16))
}

/// Returns the natural logarithm of a value above zero, in units of 2^-`bits`.
fn ln_fixed(value: &Decimal, bits: u64) -> BigInt {
    let roots = ((bits as f64).sqrt() as u64 / 3).clamp(3, 48);
    let inner = bits + roots + 32;
    let (coefficient, divisor) = (value.coefficient(), power_of_ten(value.scale().into()));
    let mut exponent = coefficient.bits() as i64 - divisor.bits() as i64;
    let shift = inner as i64 - exponent;
    let mantissa = match u64::try_from(shift) {
        Ok(shift) => (coefficient << shift) / divisor,
        Err(_) => coefficient / (divisor << shift.unsigned_abs()),
    };
    // Between 1/2 and 2 now; brought to between 0.7 and 1.4, so that a number near 1 keeps its exponent 0.
    let mut mantissa = mantissa;
    let one = BigInt::from(1u8) << inner;
    if &mantissa * 10u8 > &one * 14u8 {
        (mantissa, exponent) = (mantissa >> 1u8, exponent + 1);
    } else if &mantissa * 10u8 < &one * 7u8 {
        (mantissa, exponent) = (mantissa << 1u8, exponent - 1);
    }
    for _ in 0..roots {
        mantissa = BigInt::from((mantissa.magnitude() << inner).sqrt());
    }
    // ln m = 2 atanh((m - 1) / (m + 1))
    let ratio = ((&mantissa - &one) << inner) / (mantissa + one);
    let square = (&ratio * &ratio) >> inner;
    let (mut sum, mut power, mut nth) = (BigInt::ZERO, ratio, 1u32);
    while power.magnitude().bits() > 1 {
        sum += &power / nth;
        power = (power * &square) >> inner;
        nth += 2;
    }
    let logarithm = (sum << (roots + 1)) + if exponent == 0 { BigInt::ZERO } else { exponent * ln_two(inner) };
    logarithm >> (inner - bits)
}

/// Returns the natural logarithm with a scale: `ln_var`. Errors for zero and below.
fn ln_scaled(value: &Decimal, scale: i32) -> Result<Decimal> {
    check_logarithm(value)?;
    let bits = bits(scale.into());
    Ok(of_fixed(&ln_fixed(value, bits), bits, scale))
}

fn check_logarithm(value: &Decimal) -> Result<()> {
    match signum(value) {
        0 if !value.is_nan() => Err(undefined(state::INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of zero")),
        -1 => Err(undefined(state::INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of a negative number")),
        _ => Ok(()),
    }
}

/// Estimates the decimal exponent of the natural logarithm: `estimate_ln_dweight`.
fn ln_weight(value: &Decimal) -> i32 {
    if signum(value) <= 0 {
        return 0;
    }
    if *value >= Decimal::new(9, 1) && *value <= Decimal::new(11, 1) {
        // ln(1 + x) is about x.
        let distance = value.minus(&Decimal::from(1i64));
        return if distance.is_zero() { 0 } else { distance.digits() as i32 - 1 - i32::from(distance.scale()) };
    }
    let (mantissa, exponent) = float_parts(value, 2);
    let logarithm = mantissa.ln() + f64::from(exponent) * std::f64::consts::LN_10;
    logarithm.abs().log10() as i32
}

/// Returns the first groups of four digits as a double, and the power of ten that they are multiplied with.
fn float_parts(value: &Decimal, groups: i32) -> (f64, i32) {
    let Leading { weight, .. } = Leading::of(value);
    let exponent = (weight - groups + 1) * 4;
    let digits = quotient(&value.abs(), &Decimal::from(1i64), -exponent, Rounding::Truncate);
    (digits.small().map_or(0.0, |number| number as f64), exponent)
}

fn display_scale(scale: i32, least: u16) -> i32 {
    scale.max(least.into()).clamp(0, DISPLAY_SCALE_MAX)
}

/// `numeric_exp`
pub fn exp(value: &Decimal) -> Result<Decimal> {
    match value.special() {
        Some(Special::NegativeInfinity) => return Ok(Decimal::ZERO),
        Some(_) => return Ok(value.clone()),
        None => {}
    }
    let weight = (value.to_f64() * LOG10_E).clamp(-RESULT_SCALE_MAX, RESULT_SCALE_MAX) as i32;
    checked(exp_scaled(value, display_scale(SIGNIFICANT_DIGITS_MIN - weight, value.scale()))?)
}

/// `numeric_ln`
pub fn ln(value: &Decimal) -> Result<Decimal> {
    check_logarithm(value)?;
    if !value.is_finite() {
        return Ok(value.clone());
    }
    ln_scaled(value, display_scale(SIGNIFICANT_DIGITS_MIN - ln_weight(value), value.scale()))
}

/// Returns the logarithm of a value to a base: `numeric_log`.
pub fn log(base: &Decimal, value: &Decimal) -> Result<Decimal> {
    if base.is_nan() || value.is_nan() {
        return Ok(Decimal::NAN);
    }
    if !base.is_finite() || !value.is_finite() {
        let signs = [signum(base), signum(value)];
        if let Some(least) = signs.iter().min().filter(|sign| **sign <= 0) {
            check_logarithm(&Decimal::from(i64::from(*least)))?;
        }
        return Ok(match (base.is_finite(), value.is_finite()) {
            (false, false) => Decimal::NAN,
            (false, true) => Decimal::ZERO,
            _ => Decimal::INFINITY,
        });
    }
    let (base_weight, value_weight) = (ln_weight(base), ln_weight(value));
    let weight = value_weight - base_weight;
    let scale = display_scale(SIGNIFICANT_DIGITS_MIN - weight, base.scale().max(value.scale()));
    let base_scale = (scale + weight - base_weight + 8).max(0);
    let value_scale = (scale + weight - value_weight + 8).max(0);
    let base = ln_scaled(base, base_scale)?;
    let value = ln_scaled(value, value_scale)?;
    if base.is_zero() {
        return Err(division_by_zero());
    }
    checked(quotient(&value, &base, scale, Rounding::HalfAway))
}

/// The logarithm to base 10.
pub fn log10(value: &Decimal) -> Result<Decimal> {
    log(&Decimal::from(10i64), value)
}

const ZERO_TO_NEGATIVE: &str = "zero raised to a negative power is undefined";
const COMPLEX: &str = "a negative number raised to a non-integer power yields a complex result";

/// True for the infinities too.
fn is_whole(value: &Decimal) -> bool {
    value.is_infinite() || (value.is_finite() && value.truncated(0) == *value)
}

fn is_odd(value: &Decimal) -> bool {
    value.is_finite() && is_whole(value) && value.truncated(0).coefficient().bit(0)
}

/// `numeric_power`
pub fn power(base: &Decimal, exponent: &Decimal) -> Result<Decimal> {
    let one = Decimal::from(1i64);
    if base.is_nan() {
        return Ok(if exponent.is_zero() { one } else { Decimal::NAN });
    }
    if exponent.is_nan() {
        return Ok(if *base == one { one } else { Decimal::NAN });
    }
    if signum(base) == 0 && signum(exponent) < 0 {
        return Err(undefined(state::INVALID_ARGUMENT_FOR_POWER_FUNCTION, ZERO_TO_NEGATIVE));
    }
    if signum(base) < 0 && !is_whole(exponent) {
        return Err(undefined(state::INVALID_ARGUMENT_FOR_POWER_FUNCTION, COMPLEX));
    }
    if base.is_infinite() || exponent.is_infinite() {
        return Ok(infinite_power(base, exponent));
    }
    checked(power_finite(base, exponent)?)
}

/// Follows POSIX's `pow`, but for minus zero, which numeric has not.
fn infinite_power(base: &Decimal, exponent: &Decimal) -> Decimal {
    let one = Decimal::from(1i64);
    if *base == one || exponent.is_zero() {
        return one;
    }
    if base.is_zero() {
        return Decimal::ZERO;
    }
    if exponent.is_infinite() {
        if *base == one.negated() {
            return one;
        }
        let grows = (base.abs() > one) != exponent.is_negative();
        return if grows { Decimal::INFINITY } else { Decimal::ZERO };
    }
    if exponent.is_negative() {
        return Decimal::ZERO;
    }
    if base.is_negative() && is_odd(exponent) { Decimal::NEGATIVE_INFINITY } else { Decimal::INFINITY }
}

/// `power_var`
fn power_finite(base: &Decimal, exponent: &Decimal) -> Result<Decimal> {
    if is_whole(exponent)
        && let Ok(whole) = i32::try_from(exponent.truncated(0).to_whole())
    {
        return power_whole(base, whole, exponent.scale());
    }
    if base.is_zero() {
        return Ok(Decimal::new(0, SIGNIFICANT_DIGITS_MIN as u16));
    }
    let is_negative = base.is_negative() && is_odd(exponent);
    let base = base.abs();
    let weight = ln_weight(&base);
    // Enough digits to know how large the result is.
    let rough = ln_scaled(&base, (8 - weight).max(0))?;
    let size = rough.times_exactly(exponent).to_f64();
    if size.abs() > RESULT_SCALE_MAX * 3.01 {
        return if size > 0.0 { Err(overflow()) } else { Ok(Decimal::new(0, DISPLAY_SCALE_MAX as u16)) };
    }
    let digits = (size * LOG10_E) as i32;
    let scale = display_scale(SIGNIFICANT_DIGITS_MIN - digits, base.scale().max(exponent.scale()));
    let significant = (scale + digits).max(0);
    let inner = (significant - weight + 8).max(0);
    let product = ln_scaled(&base, inner)?.times_exactly(exponent).rounded(inner.min(u16::MAX.into()) as u16);
    let result = exp_scaled(&product, scale)?;
    Ok(if is_negative { result.negated() } else { result })
}

/// `power_var_int`
fn power_whole(base: &Decimal, exponent: i32, exponent_scale: u16) -> Result<Decimal> {
    let size = if base.is_zero() {
        0.0
    } else {
        let (mantissa, power) = float_parts(base, 4);
        f64::from(exponent) * (mantissa.log10() + f64::from(power))
    };
    if size > f64::from(WHOLE_DIGITS_MAX) {
        return Err(overflow());
    }
    if size + 1.0 < -f64::from(DISPLAY_SCALE_MAX) {
        return Ok(Decimal::new(0, DISPLAY_SCALE_MAX as u16));
    }
    let scale = display_scale(SIGNIFICANT_DIGITS_MIN - size as i32, base.scale().max(exponent_scale));
    let one = Decimal::from(1i64);
    match exponent {
        0 => return Ok(one.rounded(scale as u16)),
        1 => return Ok(base.rounded(scale as u16)),
        -1 if base.is_zero() => return Err(division_by_zero()),
        -1 => return Ok(quotient(&one, base, scale, Rounding::HalfAway)),
        2 => return Ok(base.times_exactly(base).rounded(scale as u16)),
        _ if base.is_zero() && exponent < 0 => return Err(division_by_zero()),
        _ if base.is_zero() => return Ok(Decimal::new(0, scale as u16)),
        _ => {}
    }
    let significant = 1 + i64::from(scale) + size as i64 + f64::from(exponent).abs().ln() as i64 + 18;
    Product { digits: significant.max(1) as u64, coefficient: base.coefficient(), scale: base.scale().into() }
        .to_the(exponent.unsigned_abs())
        .map(|product| product.shown(exponent < 0, scale))
        .unwrap_or_else(|| if exponent < 0 { Ok(Decimal::new(0, scale as u16)) } else { Err(overflow()) })
}

/// A number with at most about `digits` digits: `coefficient` / 10^`scale`.
#[derive(Clone)]
struct Product {
    digits: u64,
    coefficient: BigInt,
    scale: i64,
}

impl Product {
    fn times(&self, other: &Product) -> Product {
        let mut coefficient = &self.coefficient * &other.coefficient;
        let mut scale = self.scale + other.scale;
        let digits = (coefficient.bits() as f64 / BITS_PER_DIGIT) as u64;
        if digits > self.digits + 8 {
            let dropped = digits - self.digits;
            coefficient = divided(&coefficient, &power_of_ten(dropped as u32), Rounding::HalfAway);
            scale -= dropped as i64;
        }
        Product { digits: self.digits, coefficient, scale }
    }

    /// Returns the power; `None` where it has more digits before the point than a numeric.
    fn to_the(&self, exponent: u32) -> Option<Product> {
        let (mut rest, mut square) = (exponent, self.clone());
        let mut result = Product { coefficient: BigInt::from(1u8), scale: 0, ..self.clone() };
        loop {
            if rest & 1 == 1 {
                result = result.times(&square);
            }
            rest >>= 1;
            if rest == 0 {
                return Some(result);
            }
            square = square.times(&square);
            let whole = |product: &Product| (product.coefficient.bits() as f64 / BITS_PER_DIGIT) as i64 - product.scale;
            if whole(&square) > i64::from(WHOLE_DIGITS_MAX) || whole(&result) > i64::from(WHOLE_DIGITS_MAX) {
                return None;
            }
        }
    }

    /// Returns the number, or one divided by it, with a scale.
    fn shown(self, is_inverse: bool, scale: i32) -> Result<Decimal> {
        let (mut numerator, mut divisor) = (self.coefficient, BigInt::from(1u8));
        // In units of 10^-scale.
        let mut power = i64::from(scale) - self.scale;
        if is_inverse {
            (numerator, divisor) = (divisor, numerator);
            power = i64::from(scale) + self.scale;
        }
        match u32::try_from(power) {
            Ok(power) => numerator *= power_of_ten(power),
            Err(_) => divisor *= power_of_ten(power.unsigned_abs().min(u32::MAX.into()) as u32),
        }
        Ok(Decimal::from_big(divided(&numerator, &divisor, Rounding::HalfAway), scale as u16))
    }
}
