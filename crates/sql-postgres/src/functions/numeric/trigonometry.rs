//! Trigonometric and hyperbolic functions of float8, in radians and in degrees.
//!
//! The functions of degrees are exact where they should be: `sind(30)` is 0.5. They divide the library's result by its result for a known angle, in the same steps as PostgreSQL, so that the last digits agree too.

use std::hint::black_box;
use std::sync::LazyLock;

use super::floats::{divide, multiply, out_of_domain, overflow, underflow};
use crate::error::Result;

const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

/// Refuses infinities, at which periodic functions have no value.
fn check_finite(number: f64) -> Result<()> {
    if number.is_infinite() { Err(out_of_domain()) } else { Ok(()) }
}

/// Refuses what is no sine of an angle. NaN passes.
fn check_sine(number: f64) -> Result<()> {
    if !(-1.0..=1.0).contains(&number) && !number.is_nan() { Err(out_of_domain()) } else { Ok(()) }
}

pub fn sin(number: f64) -> Result<f64> {
    check_finite(number)?;
    Ok(number.sin())
}

pub fn cos(number: f64) -> Result<f64> {
    check_finite(number)?;
    Ok(number.cos())
}

pub fn tan(number: f64) -> Result<f64> {
    check_finite(number)?;
    Ok(number.tan())
}

/// Infinite at 0.
pub fn cot(number: f64) -> Result<f64> {
    check_finite(number)?;
    Ok(1.0 / number.tan())
}

pub fn asin(number: f64) -> Result<f64> {
    check_sine(number)?;
    Ok(number.asin())
}

pub fn acos(number: f64) -> Result<f64> {
    check_sine(number)?;
    Ok(number.acos())
}

pub fn degrees(number: f64) -> Result<f64> {
    divide(number, RADIANS_PER_DEGREE)
}

pub fn radians(number: f64) -> Result<f64> {
    multiply(number, RADIANS_PER_DEGREE)
}

/// The library's results for known angles.
struct Known {
    sin_30: f64,
    one_minus_cos_60: f64,
    asin_half: f64,
    acos_half: f64,
    atan_one: f64,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| Known {
    sin_30: (black_box(30.0) * RADIANS_PER_DEGREE).sin(),
    one_minus_cos_60: 1.0 - (black_box(60.0) * RADIANS_PER_DEGREE).cos(),
    asin_half: black_box(0.5f64).asin(),
    acos_half: black_box(0.5f64).acos(),
    atan_one: black_box(1.0f64).atan(),
});

static TAN_45: LazyLock<f64> = LazyLock::new(|| sine_of_quadrant(45.0) / cosine_of_quadrant(45.0));
static COT_45: LazyLock<f64> = LazyLock::new(|| cosine_of_quadrant(45.0) / sine_of_quadrant(45.0));

/// Of 0 to 30 degrees.
fn small_sine(degrees: f64) -> f64 {
    ((degrees * RADIANS_PER_DEGREE).sin() / KNOWN.sin_30) / 2.0
}

/// Of 0 to 60 degrees.
fn large_cosine(degrees: f64) -> f64 {
    let rest = 1.0 - (degrees * RADIANS_PER_DEGREE).cos();
    1.0 - (rest / KNOWN.one_minus_cos_60) / 2.0
}

/// Of 0 to 90 degrees.
fn sine_of_quadrant(degrees: f64) -> f64 {
    if degrees <= 30.0 { small_sine(degrees) } else { large_cosine(90.0 - degrees) }
}

/// Of 0 to 90 degrees.
fn cosine_of_quadrant(degrees: f64) -> f64 {
    if degrees <= 60.0 { large_cosine(degrees) } else { small_sine(90.0 - degrees) }
}

/// An angle brought to the first quadrant, and the signs that the function changes on the way.
struct Quadrant {
    degrees: f64,
    /// The angle was negative.
    below_zero: bool,
    /// It was in the third or fourth quadrant.
    beyond_180: bool,
    /// It was in the second, then.
    beyond_90: bool,
}

impl Quadrant {
    fn of(degrees: f64) -> Result<Quadrant> {
        check_finite(degrees)?;
        let mut degrees = degrees % 360.0;
        let below_zero = degrees < 0.0;
        degrees = if below_zero { -degrees } else { degrees };
        let beyond_180 = degrees > 180.0;
        degrees = if beyond_180 { 360.0 - degrees } else { degrees };
        let beyond_90 = degrees > 90.0;
        degrees = if beyond_90 { 180.0 - degrees } else { degrees };
        Ok(Quadrant { degrees, below_zero, beyond_180, beyond_90 })
    }
}

fn signed(number: f64, is_negative: bool) -> f64 {
    if is_negative { -number } else { number }
}

pub fn sind(degrees: f64) -> Result<f64> {
    let at = Quadrant::of(degrees)?;
    Ok(signed(sine_of_quadrant(at.degrees), at.below_zero != at.beyond_180))
}

pub fn cosd(degrees: f64) -> Result<f64> {
    let at = Quadrant::of(degrees)?;
    Ok(signed(cosine_of_quadrant(at.degrees), at.beyond_90))
}

pub fn tand(degrees: f64) -> Result<f64> {
    let at = Quadrant::of(degrees)?;
    let tangent = sine_of_quadrant(at.degrees) / cosine_of_quadrant(at.degrees);
    Ok(without_minus_zero(signed(tangent / *TAN_45, at.below_zero != (at.beyond_180 != at.beyond_90))))
}

pub fn cotd(degrees: f64) -> Result<f64> {
    let at = Quadrant::of(degrees)?;
    let cotangent = cosine_of_quadrant(at.degrees) / sine_of_quadrant(at.degrees);
    Ok(without_minus_zero(signed(cotangent / *COT_45, at.below_zero != (at.beyond_180 != at.beyond_90))))
}

fn without_minus_zero(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

/// Of 0 to 1.
fn arcsine(sine: f64) -> f64 {
    if sine <= 0.5 { (sine.asin() / KNOWN.asin_half) * 30.0 } else { 90.0 - (sine.acos() / KNOWN.acos_half) * 60.0 }
}

/// Of 0 to 1.
fn arccosine(cosine: f64) -> f64 {
    if cosine <= 0.5 {
        90.0 - (cosine.asin() / KNOWN.asin_half) * 30.0
    } else {
        (cosine.acos() / KNOWN.acos_half) * 60.0
    }
}

pub fn asind(sine: f64) -> Result<f64> {
    check_sine(sine)?;
    Ok(if sine >= 0.0 { arcsine(sine) } else { -arcsine(-sine) })
}

pub fn acosd(cosine: f64) -> Result<f64> {
    check_sine(cosine)?;
    Ok(if cosine >= 0.0 { arccosine(cosine) } else { 90.0 + arcsine(-cosine) })
}

pub fn atand(tangent: f64) -> f64 {
    (tangent.atan() / KNOWN.atan_one) * 45.0
}

pub fn atan2d(y: f64, x: f64) -> f64 {
    (y.atan2(x) / KNOWN.atan_one) * 45.0
}

/// Infinite beyond the range, without an error.
pub fn sinh(number: f64) -> f64 {
    number.sinh()
}

pub fn cosh(number: f64) -> Result<f64> {
    let result = number.cosh();
    if result == 0.0 { Err(underflow()) } else { Ok(result) }
}

pub fn tanh(number: f64) -> Result<f64> {
    let result = number.tanh();
    if result.is_infinite() { Err(overflow()) } else { Ok(result) }
}

/// ln(x + sqrt(x^2 + 1)), by the formula that loses no digits for the size of the argument.
pub fn asinh(number: f64) -> f64 {
    let size = number.abs();
    if !size.is_finite() || size < 2f64.powi(-28) {
        return number;
    }
    let result = if size > 2f64.powi(28) {
        size.ln() + std::f64::consts::LN_2
    } else if size > 2.0 {
        (2.0 * size + 1.0 / ((size * size + 1.0).sqrt() + size)).ln()
    } else {
        let square = size * size;
        (size + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    result.copysign(number)
}

/// ln(x + sqrt(x^2 - 1)), as `asinh`.
pub fn acosh(number: f64) -> Result<f64> {
    if number < 1.0 {
        return Err(out_of_domain());
    }
    Ok(if number.is_nan() || number.is_infinite() {
        number
    } else if number >= 2f64.powi(28) {
        number.ln() + std::f64::consts::LN_2
    } else if number > 2.0 {
        (2.0 * number - 1.0 / (number + (number * number - 1.0).sqrt())).ln()
    } else {
        let beyond = number - 1.0;
        (beyond + (2.0 * beyond + beyond * beyond).sqrt()).ln_1p()
    })
}

/// ln((1 + x) / (1 - x)) / 2, as `asinh`. Infinite at the ends of its domain.
pub fn atanh(number: f64) -> Result<f64> {
    check_sine(number)?;
    let size = number.abs();
    if size == 1.0 || number.is_nan() {
        return Ok(number / if size == 1.0 { 0.0 } else { 1.0 });
    }
    let result = if size < 2f64.powi(-28) {
        size
    } else if size < 0.5 {
        let double = size + size;
        0.5 * (double + double * size / (1.0 - size)).ln_1p()
    } else {
        0.5 * ((size + size) / (1.0 - size)).ln_1p()
    };
    Ok(result.copysign(number))
}
