//! Forms of numeric: text, binary, and the type modifier.
//!
//! A `Decimal`'s scale is PostgreSQL's display scale. A value has up to 131,072 digits before the point and 16,383 behind it; every result passes `checked`, which refuses others. The submodules hold the forms of
//! integers and floats.

use datum::decimal::{Decimal, Special};
use num_bigint::{BigInt, BigUint, Sign};

use crate::error::{PgError, Result, state};

pub mod float;
pub mod integer;

/// The most digits before the point: 32,768 groups of four.
pub const WHOLE_DIGITS_MAX: u32 = 131_072;
/// `NUMERIC_DSCALE_MAX`
pub const SCALE_MAX: u16 = 16_383;

/// Bytes of a length word, which the modifier includes.
const HEADER: i32 = 4;

/// Returns 10 to a power.
pub fn power_of_ten(exponent: u32) -> BigInt {
    BigInt::from(10u8).pow(exponent)
}

#[cold]
pub fn overflow() -> PgError {
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

#[cold]
fn invalid(text: &str) -> PgError {
    PgError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type numeric: \"{text}\""))
}

#[cold]
fn insufficient() -> PgError {
    PgError::new(state::PROTOCOL_VIOLATION, "insufficient data left in message")
}

/// Returns an error for a binary form of another length.
fn exact_length(bytes: &[u8], length: usize) -> Result<()> {
    match bytes.len().cmp(&length) {
        std::cmp::Ordering::Less => Err(insufficient()),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(invalid_binary("incorrect binary data format")),
    }
}

#[cold]
fn invalid_binary(what: &str) -> PgError {
    PgError::new(state::INVALID_BINARY_REPRESENTATION, what)
}

/// Returns the value, or an error where it has more digits than a numeric can.
#[inline]
pub fn checked(value: Decimal) -> Result<Decimal> {
    if value.scale() > SCALE_MAX || (value.small().is_none() && value.whole_digits() > WHOLE_DIGITS_MAX) {
        return Err(overflow());
    }
    Ok(value)
}

/// Returns precision and scale of a type modifier; `None` if the type is not bounded.
pub fn digits_of_typmod(typmod: i32) -> Option<(i32, i32)> {
    let bits = typmod.checked_sub(HEADER)?;
    // The scale is a number of 11 bits with a sign.
    (typmod >= HEADER).then_some(((bits >> 16) & 0xffff, ((bits & 0x7ff) ^ 1024) - 1024))
}

/// Rounds a value to a type modifier. An error for one that does not fit.
pub fn fit_typmod(value: Decimal, typmod: i32) -> Result<Decimal> {
    let Some((precision, scale)) = digits_of_typmod(typmod) else { return Ok(value) };
    if value.is_infinite() {
        let detail = format!("A field with precision {precision}, scale {scale} cannot hold an infinite value.");
        return Err(field_overflow(detail));
    }
    if value.is_nan() {
        return Ok(value);
    }
    let rounded = rounded(&value, scale);
    let digits_max = precision - scale;
    // A number below one has as many digits before the point as it has zeros behind it, with a minus.
    let digits = rounded.digits() as i32 - i32::from(rounded.scale());
    if !rounded.is_zero() && digits > digits_max {
        let limit = if digits_max == 0 { "1".to_owned() } else { format!("10^{digits_max}") };
        let detail = format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}."
        );
        return Err(field_overflow(detail));
    }
    Ok(rounded)
}

#[cold]
fn field_overflow(detail: String) -> PgError {
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").detail(detail)
}

/// Rounds to a scale, halves away from zero; one below zero rounds before the point.
pub fn rounded(value: &Decimal, scale: i32) -> Decimal {
    match u16::try_from(scale) {
        Ok(scale) => value.rounded(scale),
        Err(_) => value.at_power(scale.unsigned_abs(), true),
    }
}

/// Reads the text form: `numeric_in`.
pub fn numeric_in(text: &str, typmod: i32) -> Result<Decimal> {
    let bytes = text.as_bytes();
    let start = skip_spaces(bytes, 0);
    let is_negative = bytes.get(start) == Some(&b'-');
    let at = start + usize::from(matches!(bytes.get(start), Some(b'-' | b'+')));
    let (value, end) = match (bytes.get(at), bytes.get(at + 1)) {
        (Some(b'0'), Some(b'x' | b'X')) => non_decimal(bytes, at + 2, 16, text)?,
        (Some(b'0'), Some(b'o' | b'O')) => non_decimal(bytes, at + 2, 8, text)?,
        (Some(b'0'), Some(b'b' | b'B')) => non_decimal(bytes, at + 2, 2, text)?,
        (Some(b'0'..=b'9' | b'.'), _) => decimal(bytes, at, text)?,
        _ => special(bytes, start, at).ok_or_else(|| invalid(text))?,
    };
    if skip_spaces(bytes, end) != bytes.len() {
        return Err(invalid(text));
    }
    let value = if is_negative { value.negated() } else { value };
    checked(fit_typmod(value, typmod)?)
}

pub(crate) fn skip_spaces(bytes: &[u8], from: usize) -> usize {
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t'..=b'\r');
    from + bytes[from.min(bytes.len())..].iter().take_while(is_space).count()
}

/// Returns a special value and the end of its name. NaN has no sign; the sign of infinity is before `at`.
fn special(bytes: &[u8], start: usize, at: usize) -> Option<(Decimal, usize)> {
    let begins = |from: usize, word: &str| {
        bytes.get(from..from + word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()))
    };
    if begins(start, "nan") {
        Some((Decimal::NAN, start + 3))
    } else if begins(at, "infinity") {
        Some((Decimal::INFINITY, at + 8))
    } else if begins(at, "inf") {
        Some((Decimal::INFINITY, at + 3))
    } else {
        None
    }
}

/// The digits of one run, and their end. An underscore must stand between two digits.
fn run(bytes: &[u8], at: &mut usize, radix: u32, digits: &mut Vec<u8>) -> Option<()> {
    loop {
        match bytes.get(*at) {
            Some(b'_') => {
                *at += 1;
                digit(bytes, *at, radix)?;
            }
            _ => match digit(bytes, *at, radix) {
                Some(value) => {
                    digits.push(value);
                    *at += 1;
                }
                None => return Some(()),
            },
        }
    }
}

fn digit(bytes: &[u8], at: usize, radix: u32) -> Option<u8> {
    bytes.get(at).and_then(|byte| (*byte as char).to_digit(radix)).map(|digit| digit as u8)
}

/// More bits than the largest integer has, so that a long text is refused before it is converted.
const BITS_MAX: usize = WHOLE_DIGITS_MAX as usize * 10 / 3;

fn non_decimal(bytes: &[u8], from: usize, radix: u32, text: &str) -> Result<(Decimal, usize)> {
    let (mut digits, mut at) = (Vec::new(), from);
    run(bytes, &mut at, radix, &mut digits).filter(|()| !digits.is_empty()).ok_or_else(|| invalid(text))?;
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    if (digits.len() - zeros) * radix.ilog2() as usize > BITS_MAX {
        return Err(overflow());
    }
    let value = BigUint::from_radix_be(&digits, radix).unwrap_or_default();
    Ok((checked(Decimal::from_big(value.into(), 0))?, at))
}

/// The most that an exponent may be: more is no value of any type.
const EXPONENT_MAX: i64 = i32::MAX as i64 / 2;

fn decimal(bytes: &[u8], from: usize, text: &str) -> Result<(Decimal, usize)> {
    let (mut digits, mut at) = (Vec::new(), from);
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut behind = 0;
    let syntax = || invalid(text);
    if bytes[at] != b'.' {
        run(bytes, &mut at, 10, &mut digits).ok_or_else(syntax)?;
    } else if !is_digit(at + 1) {
        return Err(syntax());
    }
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        let whole = digits.len();
        if bytes.get(at) == Some(&b'_') {
            return Err(syntax());
        }
        run(bytes, &mut at, 10, &mut digits).ok_or_else(syntax)?;
        behind = digits.len() - whole;
        if bytes.get(at) == Some(&b'.') {
            return Err(syntax());
        }
    }
    let mut exponent = 0i64;
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        let is_negative = bytes.get(at) == Some(&b'-');
        at += usize::from(matches!(bytes.get(at), Some(b'-' | b'+')));
        let mut shown = Vec::new();
        let ended = if is_digit(at) { run(bytes, &mut at, 10, &mut shown) } else { None };
        for digit in &shown {
            exponent = exponent * 10 + i64::from(*digit);
            if exponent > EXPONENT_MAX {
                return Err(overflow());
            }
        }
        ended.ok_or_else(syntax)?;
        exponent = if is_negative { -exponent } else { exponent };
    }
    Ok((of_digits(&digits, behind as i64 - exponent)?, at))
}

/// Returns the number of these digits, `scale` of them behind the point. Its scale is not below zero.
fn of_digits(digits: &[u8], scale: i64) -> Result<Decimal> {
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let digits = &digits[zeros..];
    let shown = u16::try_from(scale.max(0)).ok().filter(|scale| *scale <= SCALE_MAX);
    if digits.len() as i64 - scale > WHOLE_DIGITS_MAX.into() && !digits.is_empty() {
        return Err(overflow());
    }
    let Some(shown) = shown else {
        // A type modifier may still round it.
        return excess_scale(digits, scale);
    };
    let coefficient = if digits.len() <= 38 {
        BigInt::from(digits.iter().fold(0i128, |sum, digit| sum * 10 + i128::from(*digit)))
    } else {
        BigInt::from_radix_be(Sign::Plus, digits, 10).unwrap_or_default()
    };
    let coefficient = if scale < 0 && !digits.is_empty() {
        coefficient * power_of_ten(scale.unsigned_abs() as u32)
    } else {
        coefficient
    };
    Ok(Decimal::from_big(coefficient, shown))
}

/// Returns a number with more digits behind the point than a numeric has: cut far below what a type modifier rounds to, with a scale that `checked` refuses.
fn excess_scale(digits: &[u8], scale: i64) -> Result<Decimal> {
    const KEPT: u16 = SCALE_MAX + 2;
    let kept = digits.len() as i64 - (scale - i64::from(KEPT));
    let kept = &digits[..kept.clamp(0, digits.len() as i64) as usize];
    let coefficient = BigInt::from_radix_be(Sign::Plus, kept, 10).unwrap_or_default();
    Ok(Decimal::from_big(coefficient, KEPT))
}

/// Appends the text form: `numeric_out`.
pub fn numeric_out(value: &Decimal, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}

/// In the word of the sign.
const POSITIVE: u16 = 0;
const NEGATIVE: u16 = 0x4000;
const NOT_A_NUMBER: u16 = 0xC000;
const POSITIVE_INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;
/// The scale that PostgreSQL's head of an infinity happens to show.
const INFINITE_SCALE: u16 = 32;

/// Digits of a group: the binary form is in base 10,000.
const GROUP: u32 = 4;
const BASE: u16 = 10_000;

/// Reads the binary form: `numeric_recv`.
pub fn numeric_receive(bytes: &[u8], typmod: i32) -> Result<Decimal> {
    let word = |at: usize| match bytes.get(2 * at..2 * at + 2) {
        Some(word) => Ok(u16::from_be_bytes([word[0], word[1]])),
        None => Err(insufficient()),
    };
    let (count, weight, sign, scale) = (usize::from(word(0)?), word(1)? as i16, word(2)?, word(3)?);
    if ![POSITIVE, NEGATIVE, NOT_A_NUMBER, POSITIVE_INFINITY, NEGATIVE_INFINITY].contains(&sign) {
        return Err(invalid_binary("invalid sign in external \"numeric\" value"));
    }
    if scale > SCALE_MAX {
        return Err(invalid_binary("invalid scale in external \"numeric\" value"));
    }
    let mut digits = Vec::with_capacity(count * GROUP as usize);
    for at in 0..count {
        let group = word(4 + at)?;
        if group >= BASE {
            return Err(invalid_binary("invalid digit in external \"numeric\" value"));
        }
        digits.extend([group / 1000, group / 100 % 10, group / 10 % 10, group % 10].map(|digit| digit as u8));
    }
    exact_length(bytes, 8 + 2 * count)?;
    let value = match sign {
        NOT_A_NUMBER => Decimal::NAN,
        POSITIVE_INFINITY => Decimal::INFINITY,
        NEGATIVE_INFINITY => Decimal::NEGATIVE_INFINITY,
        _ => {
            let value = of_groups(&digits, weight, scale);
            if sign == NEGATIVE { value.negated() } else { value }
        }
    };
    checked(fit_typmod(value, typmod)?)
}

/// Returns the number of these decimal digits, the first group of which has a weight, cut to a scale.
fn of_groups(digits: &[u8], weight: i16, scale: u16) -> Decimal {
    let before = (i64::from(weight) + 1) * i64::from(GROUP);
    let wanted = (before + i64::from(scale)).max(0) as usize;
    let kept = &digits[..digits.len().min(wanted)];
    let coefficient = BigInt::from_radix_be(Sign::Plus, kept, 10).unwrap_or_default();
    let missing = if kept.is_empty() { 0 } else { wanted - kept.len() };
    Decimal::from_big(coefficient * power_of_ten(missing as u32), scale)
}

/// Appends the binary form: `numeric_send`.
pub fn numeric_send(value: &Decimal, out: &mut Vec<u8>) {
    let mut head = |count: u16, weight: i16, sign: u16, scale: u16| {
        [count, weight as u16, sign, scale].iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    };
    match value.special() {
        Some(Special::NotANumber) => return head(0, 0, NOT_A_NUMBER, 0),
        Some(Special::Infinity) => return head(0, 0, POSITIVE_INFINITY, INFINITE_SCALE),
        Some(Special::NegativeInfinity) => return head(0, 0, NEGATIVE_INFINITY, INFINITE_SCALE),
        None => {}
    }
    let (groups, weight) = groups(value);
    let sign = if value.is_negative() { NEGATIVE } else { POSITIVE };
    head(groups.len() as u16, weight, sign, value.scale());
    groups.iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
}

/// Returns the groups of four digits without those of zeros at both ends, and the weight of the first.
pub fn groups(value: &Decimal) -> (Vec<u16>, i16) {
    let digits = match value.small() {
        Some(0) => return (Vec::new(), 0),
        Some(small) => small.unsigned_abs().to_string(),
        None => value.coefficient().magnitude().to_string(),
    };
    let digits = digits.as_bytes();
    // The first digit is worth 10^exponent.
    let exponent = digits.len() as i64 - 1 - i64::from(value.scale());
    let weight = exponent.div_euclid(GROUP.into());
    let mut missing = (GROUP as i64 - 1 - exponent.rem_euclid(GROUP.into())) as usize;
    let mut groups = Vec::with_capacity(digits.len() / GROUP as usize + 2);
    let mut rest = digits;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(rest.len().min(GROUP as usize - missing));
        let behind = GROUP - head.len() as u32 - missing as u32;
        let value = head.iter().fold(0u16, |sum, digit| sum * 10 + u16::from(digit - b'0'));
        groups.push(value * 10u16.pow(behind));
        (rest, missing) = (tail, 0);
    }
    while groups.last() == Some(&0) {
        groups.pop();
    }
    (groups, weight as i16)
}
