//! Arithmetic of int2, int4 and int8: results beyond the type are error 22003.

use crate::error::Result;
use crate::functions::numeric::arithmetic::division_by_zero;
use crate::types::numeric::integer::Width;

pub fn add(width: Width, a: i64, b: i64) -> Result<i64> {
    width.checked(a.checked_add(b).ok_or_else(|| width.out_of_range())?)
}

pub fn subtract(width: Width, a: i64, b: i64) -> Result<i64> {
    width.checked(a.checked_sub(b).ok_or_else(|| width.out_of_range())?)
}

pub fn multiply(width: Width, a: i64, b: i64) -> Result<i64> {
    width.checked(a.checked_mul(b).ok_or_else(|| width.out_of_range())?)
}

pub fn divide(width: Width, a: i64, b: i64) -> Result<i64> {
    if b == 0 {
        return Err(division_by_zero());
    }
    width.checked(a.checked_div(b).ok_or_else(|| width.out_of_range())?)
}

pub fn modulo(a: i64, b: i64) -> Result<i64> {
    // The least number by -1 overflows as a quotient and not as a rest.
    if b == 0 { Err(division_by_zero()) } else { Ok(a.wrapping_rem(b)) }
}

pub fn negate(width: Width, a: i64) -> Result<i64> {
    subtract(width, 0, a)
}

pub fn abs(width: Width, a: i64) -> Result<i64> {
    if a < 0 { negate(width, a) } else { Ok(a) }
}

/// Shifts as the processors do on which PostgreSQL runs: by a distance within the register, which has at least 32 bits.
pub fn shift_left(width: Width, a: i64, by: i64) -> i64 {
    match width {
        Width::Int2 => i64::from((a as i32).wrapping_shl(by as u32) as i16),
        Width::Int4 => i64::from((a as i32).wrapping_shl(by as u32)),
        Width::Int8 => a.wrapping_shl(by as u32),
    }
}

/// As `shift_left`; copies of the sign come from the left.
pub fn shift_right(width: Width, a: i64, by: i64) -> i64 {
    match width {
        Width::Int2 => i64::from((a as i32).wrapping_shr(by as u32) as i16),
        Width::Int4 => i64::from((a as i32).wrapping_shr(by as u32)),
        Width::Int8 => a.wrapping_shr(by as u32),
    }
}

fn magnitude_of_gcd(a: i64, b: i64) -> u64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

pub fn gcd(width: Width, a: i64, b: i64) -> Result<i64> {
    let divisor = i64::try_from(magnitude_of_gcd(a, b)).map_err(|_| width.out_of_range())?;
    width.checked(divisor)
}

pub fn lcm(width: Width, a: i64, b: i64) -> Result<i64> {
    if a == 0 || b == 0 {
        return Ok(0);
    }
    let multiple = (a.unsigned_abs() / magnitude_of_gcd(a, b)).checked_mul(b.unsigned_abs());
    let multiple = multiple.and_then(|multiple| i64::try_from(multiple).ok());
    width.checked(multiple.ok_or_else(|| width.out_of_range())?)
}
