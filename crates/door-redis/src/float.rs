//! Doubles as Redis reads and prints them: scores of sorted sets, coordinates, distances.
//!
//! Redis reads with C's `strtod`, hexadecimal text included, and prints with "%.17g". `extended` has the longer format of INCRBYFLOAT.

use crate::extended::Extended;

/// Returns the number that the whole text is, as Redis' `string2d` reads it: no leading blank, no overflow, no underflow to zero.
pub fn parse(text: &[u8]) -> Option<f64> {
    if text.first().is_some_and(|byte| is_blank(*byte)) {
        return None;
    }
    let value = parse_number(text)?;
    // Only text without a digit other than zero is zero, and only `inf` is infinite.
    let is_zero = value == 0.0 && has_significant_digit(text);
    let is_overflow = value.is_infinite() && text.iter().any(u8::is_ascii_digit);
    (!is_zero && !is_overflow && !value.is_nan()).then_some(value)
}

/// Returns the number that the whole text is, as `strtod` reads it: blanks may lead, an empty text is zero, and what is too large is infinite.
pub fn parse_bound(text: &[u8]) -> Option<f64> {
    let text = &text[text.iter().take_while(|byte| is_blank(**byte)).count()..];
    if text.is_empty() {
        return Some(0.0);
    }
    parse_number(text).filter(|value| !value.is_nan())
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Returns true if a digit before the exponent is not zero.
fn has_significant_digit(text: &[u8]) -> bool {
    let is_hexadecimal = text.iter().any(|byte| matches!(byte, b'x' | b'X'));
    let end =
        text.iter().position(|byte| matches!(byte, b'p' | b'P') || !is_hexadecimal && matches!(byte, b'e' | b'E'));
    text[..end.unwrap_or(text.len())].iter().any(|byte| byte.is_ascii_hexdigit() && *byte != b'0')
}

fn parse_number(text: &[u8]) -> Option<f64> {
    let (is_negative, body) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let magnitude = match body {
        [b'0', b'x' | b'X', ..] => hexadecimal(body)?,
        // Rust reads what C reads, and `infinity`, `inf` and `nan` in any case.
        [b'+' | b'-', ..] => return None,
        _ => std::str::from_utf8(body).ok()?.parse().ok()?,
    };
    Some(if is_negative { -magnitude } else { magnitude })
}

fn hexadecimal(text: &[u8]) -> Option<f64> {
    if !has_significant_digit(text) {
        return Extended::parse(text).map(|_| 0.0);
    }
    match Extended::parse(text)? {
        Extended::Finite { significand, exponent, .. } => Some(scaled(significand, exponent)),
        Extended::Infinite { .. } => Some(f64::INFINITY),
    }
}

/// Returns `significand * 2^exponent`. Each factor is a power of two, so only the last product rounds.
fn scaled(significand: u64, exponent: i32) -> f64 {
    const STEP: i32 = 900;
    let (mut value, mut left) = (significand as f64, exponent);
    while left.abs() > STEP && value != 0.0 && value.is_finite() {
        value *= 2f64.powi(STEP * left.signum());
        left -= STEP * left.signum();
    }
    value * 2f64.powi(left)
}

/// Appends "%.17g" of a number.
pub fn print(out: &mut Vec<u8>, value: f64) {
    const DIGITS: i32 = 17;
    if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
        return;
    }
    if value == value.trunc() && value.abs() < 1e17 && (value != 0.0 || value.is_sign_positive()) {
        crate::number::append(out, value as i64);
        return;
    }
    let text = format!("{value:.16e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = (DIGITS - 1 - exponent) as usize;
        let fixed = format!("{value:.decimals$}");
        out.extend_from_slice(without_zeros(&fixed).as_bytes());
    } else {
        out.extend_from_slice(without_zeros(mantissa).as_bytes());
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.unsigned_abs()).as_bytes());
    }
}

/// Appends a score as a listpack shows it: whole numbers of up to 62 bits without an exponent.
pub fn print_listpack(out: &mut Vec<u8>, value: f64) {
    const WHOLE_MAX: f64 = (i64::MAX / 2) as f64;
    if value == value.trunc() && value.abs() <= WHOLE_MAX {
        crate::number::append(out, value as i64);
    } else {
        print(out, value);
    }
}

/// Appends "%.17f" of a number without zeros at the end, as coordinates are shown.
pub fn print_fixed(out: &mut Vec<u8>, value: f64) {
    let text = format!("{value:.17}");
    let text = without_zeros(&text);
    out.extend_from_slice(if text == "-0" { b"0" } else { text.as_bytes() });
}

/// Removes zeros at the end of a fraction, and a point without a fraction.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64) -> String {
        let mut out = Vec::new();
        print(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_printed_as_printf_does() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (0.1, "0.10000000000000001"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (-123456789012345680.0, "-1.2345678901234568e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (99999999999999984.0, "99999999999999984"),
            (3.0000000000000004, "3.0000000000000004"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in cases {
            assert_eq!(shown(value), text);
        }
    }

    #[test]
    fn numbers_are_read_as_strtod_does() {
        for (text, value) in [
            ("1", 1.0),
            ("+1.5e3", 1500.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("0x10", 16.0),
            ("-0X1.8p1", -3.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("1e-320", 1e-320),
            ("0x1p-1074", 5e-324),
            ("0e999", 0.0),
            ("0x0", 0.0),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(value), "{text}");
        }
        for text in ["", " 1", "1 ", "nan", "1e400", "1e-400", "0x1p-2000", "--1", "+-1", "1e", "x", "e5", "."] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_bound(b""), Some(0.0));
        assert_eq!(parse_bound(b" \t7"), Some(7.0));
        assert_eq!(parse_bound(b"1e400"), Some(f64::INFINITY));
        assert_eq!((parse_bound(b"nan"), parse_bound(b"7 ")), (None, None));
    }
}
