//! Forms of float4 and float8.
//!
//! The text form is the shortest run of digits that reads back as the same number. Rust's own algorithm accepts digits that lie exactly between two numbers, because its reader rounds to even; PostgreSQL trusts no
//! reader to do so and shows one digit more.

use crate::error::{PgError, Result, state};
use crate::types::numeric::{exact_length, skip_spaces};

/// A binary floating-point type.
pub trait Float: Copy + std::str::FromStr + std::fmt::LowerExp + Into<f64> {
    const NAME: &'static str;
    /// From 10^this on the text form has an exponent.
    const FIXED_DIGITS: i32;
    /// Digits that a number of the type surely has: `FLT_DIG`, `DBL_DIG`.
    const DIGITS: i32;
    /// Rounds a double that has no more bits than rounding once needs.
    fn of(number: f64) -> Self;
    /// Returns the magnitude as an integer times a power of two, and that power. Only of finite numbers.
    fn parts(self) -> (u64, i32);
}

impl Float for f64 {
    const NAME: &'static str = "double precision";
    const FIXED_DIGITS: i32 = 15;
    const DIGITS: i32 = 15;

    fn of(number: f64) -> f64 {
        number
    }

    fn parts(self) -> (u64, i32) {
        let bits = self.to_bits() & !(1 << 63);
        let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
        if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
    }
}

impl Float for f32 {
    const NAME: &'static str = "real";
    const FIXED_DIGITS: i32 = 6;
    const DIGITS: i32 = 6;

    fn of(number: f64) -> f32 {
        number as f32
    }

    fn parts(self) -> (u64, i32) {
        let bits = self.to_bits() & !(1 << 31);
        let (exponent, fraction) = ((bits >> 23) as i32, u64::from(bits & ((1 << 23) - 1)));
        if exponent == 0 { (fraction, -149) } else { (fraction | 1 << 23, exponent - 150) }
    }
}

/// Reads the text form: `float4in`, `float8in`.
pub fn float_in<F: Float>(text: &str) -> Result<F> {
    let bytes = text.as_bytes();
    let start = skip_spaces(bytes, 0);
    let sign = usize::from(matches!(bytes.get(start), Some(b'-' | b'+')));
    let (number, end) = match number(text, start, start + sign) {
        Some(found) => found?,
        None => return Err(invalid::<F>(text)),
    };
    if skip_spaces(bytes, end) != bytes.len() {
        return Err(invalid::<F>(text));
    }
    Ok(number)
}

/// Reads the number at `at`, behind the sign at `start`. An error where it lies beyond the type's range, however the text goes on.
fn number<F: Float>(text: &str, start: usize, at: usize) -> Option<Result<(F, usize)>> {
    let bytes = text.as_bytes();
    let is_negative = bytes.get(start) == Some(&b'-');
    let begins =
        |word: &str| bytes.get(at..at + word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()));
    let named = |number: f64, length: usize| Some(Ok((F::of(if is_negative { -number } else { number }), at + length)));
    if begins("infinity") {
        return named(f64::INFINITY, 8);
    } else if begins("inf") {
        return named(f64::INFINITY, 3);
    } else if begins("nan") {
        return named(f64::NAN, 3);
    }
    if begins("0x")
        && let Some((magnitude, end)) = hexadecimal(bytes, at + 2)
    {
        return named(magnitude, end - at);
    }
    let end = decimal_end(bytes, at)?;
    let shown = &text[start..end];
    let number: F = shown.parse().ok()?;
    let wide: f64 = number.into();
    let mantissa = bytes[at..end].iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    let is_zero = mantissa.into_iter().all(|byte| matches!(byte, b'0' | b'.'));
    if wide.is_infinite() || (wide == 0.0 && !is_zero) {
        return Some(Err(out_of_range::<F>(shown)));
    }
    Some(Ok((number, end)))
}

/// Returns the end of a decimal number; `None` where there is none.
fn decimal_end(bytes: &[u8], from: usize) -> Option<usize> {
    let run =
        |from: usize| from + bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = run(from);
    let mut end = whole;
    let mut digits = whole - from;
    if bytes.get(whole) == Some(&b'.') {
        end = run(whole + 1);
        digits += end - whole - 1;
    }
    if digits == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let exponent = run(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    Some(end)
}

/// Reads a number in the hexadecimal form of C, behind `0x`: digits with a point, then perhaps `p` and a power of two.
fn hexadecimal(bytes: &[u8], from: usize) -> Option<(f64, usize)> {
    let (mut at, mut bits, mut exponent, mut count, mut is_behind) = (from, 0u64, 0i32, 0, false);
    loop {
        match bytes.get(at).map(|byte| (*byte as char).to_digit(16)) {
            Some(Some(digit)) => {
                count += 1;
                if bits >> 59 == 0 {
                    bits = bits << 4 | u64::from(digit);
                    exponent -= 4 * i32::from(is_behind);
                } else {
                    // Digits beyond the precision only tell a tie from more.
                    bits |= u64::from(digit != 0);
                    exponent = exponent.saturating_add(4 * i32::from(!is_behind));
                }
            }
            Some(None) if bytes[at] == b'.' && !is_behind => is_behind = true,
            _ => break,
        }
        at += 1;
    }
    if count == 0 {
        return None;
    }
    if matches!(bytes.get(at), Some(b'p' | b'P')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
        let digits = bytes[(at + 1 + sign).min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit());
        let (power, length) = digits
            .fold((0i32, 0), |(power, length), digit| ((power * 10 + i32::from(digit - b'0')).min(9999), length + 1));
        if length > 0 {
            exponent = exponent.saturating_add(if bytes[at + 1] == b'-' { -power } else { power });
            at += 1 + sign + length;
        }
    }
    // In two steps, so that neither power leaves the range before the number does.
    let exponent = exponent.clamp(-2400, 2400);
    let half = exponent / 2;
    Some((bits as f64 * 2f64.powi(half) * 2f64.powi(exponent - half), at))
}

#[cold]
fn invalid<F: Float>(text: &str) -> PgError {
    let message = format!("invalid input syntax for type {}: \"{text}\"", F::NAME);
    PgError::new(state::INVALID_TEXT_REPRESENTATION, message)
}

#[cold]
pub fn out_of_range<F: Float>(text: &str) -> PgError {
    let message = format!("\"{text}\" is out of range for type {}", F::NAME);
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// Appends the text form: `float4out`, `float8out`. `extra_digits` is the setting `extra_float_digits`: above 0 the shortest form that reads back, else so many digits more than the type surely has.
pub fn float_out<F: Float>(number: F, extra_digits: i32, out: &mut Vec<u8>) {
    let wide: f64 = number.into();
    if !wide.is_finite() {
        let name = if wide.is_nan() {
            "NaN"
        } else if wide > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        return out.extend_from_slice(name.as_bytes());
    }
    if extra_digits > 0 {
        layout(&shortest(number), F::FIXED_DIGITS, out);
    } else {
        let digits = (F::DIGITS + extra_digits).max(1);
        layout(&format!("{number:.*e}", digits as usize - 1), digits, out);
    }
}

/// Returns a number with so many digits, no more than the type surely has, as C's `%.*g` shows it.
pub fn with_digits<F: Float>(number: F, digits: i32) -> String {
    let mut out = Vec::new();
    float_out(number, digits - F::DIGITS, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends a number in scientific form as fixed digits, or with an exponent of two digits below 1e-4 and from 10^`fixed` on.
fn layout(scientific: &str, fixed: i32, out: &mut Vec<u8>) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let used = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
    let digits = &digits[..used];
    out.extend_from_slice(sign.as_bytes());
    if exponent < -4 || exponent >= fixed {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend_from_slice(digits);
    } else {
        let whole = exponent as usize + 1;
        out.extend_from_slice(&digits[..digits.len().min(whole)]);
        out.extend(std::iter::repeat_n(b'0', whole.saturating_sub(digits.len())));
        if digits.len() > whole {
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }
}

/// Returns the shortest scientific form that reads back and lies nearer to the number than to its neighbours.
fn shortest<F: Float>(number: F) -> String {
    let text = format!("{number:e}");
    let digits = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    // Two runs of so many digits may be equally near; the even one is shown. Below a power of two the nearest run may be that of another number.
    let rounded = || format!("{number:.behind$e}", behind = digits - 1);
    let is_same = |text: &String| text.parse::<F>().is_ok_and(|read| read.into() == number.into());
    let text =
        Some(digits > F::DIGITS as usize).filter(|is_long| *is_long).map(|_| rounded()).filter(is_same).unwrap_or(text);
    if !is_midpoint(number, &text) {
        return text;
    }
    (digits..17).map(|behind| format!("{number:.behind$e}")).find(|text| !is_midpoint(number, text)).unwrap_or(text)
}

/// Returns whether digits in scientific form lie exactly between a number and one of its neighbours.
fn is_midpoint<F: Float>(number: F, text: &str) -> bool {
    let Some((mantissa, exponent)) = text.split_once('e') else { return false };
    let behind = mantissa.split_once('.').map_or(0, |(_, behind)| behind.len() as i32);
    let digits =
        mantissa.bytes().filter(u8::is_ascii_digit).fold(0u128, |sum, digit| sum * 10 + u128::from(digit - b'0'));
    let power = exponent.parse::<i32>().unwrap_or(0) - behind;
    let (fraction, exponent) = number.parts();
    if fraction == 0 {
        return false;
    }
    // digits * 10^power = (4 * fraction +- 2) * 2^(exponent - 2), or - 1 below a power of two, where numbers are closer.
    // A number of 54 bits is a multiple of 5^23 at most, and one of 17 digits tells midpoints from others only down to 10^-25.
    if !(-25..=23).contains(&power) {
        return false;
    }
    let five = 5u128.pow(power.unsigned_abs());
    let below = if fraction.is_power_of_two() { 1 } else { 2 };
    let halves = [4 * u128::from(fraction) + 2, 4 * u128::from(fraction) - below];
    halves.into_iter().any(|half| {
        let (left, right) =
            if power >= 0 { (digits.checked_mul(five), Some(half)) } else { (Some(digits), half.checked_mul(five)) };
        let (Some(left), Some(right)) = (left, right) else { return false };
        // left * 2^power = right * 2^(exponent - 2)
        let (left_zeros, right_zeros) = (left.trailing_zeros() as i32, right.trailing_zeros() as i32);
        left >> left_zeros == right >> right_zeros && left_zeros + power == right_zeros + exponent - 2
    })
}

/// Reads the binary form, the bytes of the number from the highest: `float4recv`.
pub fn float4_receive(bytes: &[u8]) -> Result<f32> {
    exact_length(bytes, 4)?;
    Ok(f32::from_bits(bytes.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte))))
}

/// As `float4_receive`: `float8recv`.
pub fn float8_receive(bytes: &[u8]) -> Result<f64> {
    exact_length(bytes, 8)?;
    Ok(f64::from_bits(bytes.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))))
}

/// Appends the binary form.
pub fn float4_send(number: f32, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_bits().to_be_bytes());
}

/// As `float4_send`.
pub fn float8_send(number: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_bits().to_be_bytes());
}
