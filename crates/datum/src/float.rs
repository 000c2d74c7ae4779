//! Binary floating point: order and shown form.
//!
//! The shown form is the shortest run of digits that reads back as the same number (Rust's own algorithm, Grisu with a fallback to Dragon), laid out as
//! MySQL's `my_gcvt` lays it out: plain digits between 1e-15 and 1e15, an exponent beyond.

use std::cmp::Ordering;

/// Orders two doubles. Both zeros are equal; NaN equals NaN and is greater than every number.
pub fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Returns the shortest digits that read back as the same number, with an exponent from 1e15 on and below 1e-15.
pub fn double_text(number: f64) -> String {
    shown_digits(number, format!("{number:e}"))
}

/// Returns a single-precision number with at most six significant digits, laid out as `double_text` does.
pub fn float_text(number: f32) -> String {
    shown_digits(f64::from(number), shortest_within_six(number))
}

/// In scientific notation: the shortest digits, or the first six, rounded.
fn shortest_within_six(number: f32) -> String {
    let exact = format!("{number:e}");
    let digits = exact.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    if digits <= 6 { exact } else { trim_mantissa(&format!("{number:.5e}")) }
}

fn trim_mantissa(text: &str) -> String {
    match text.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => {
            format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_owned(),
    }
}

/// Lays out a number in scientific notation.
fn shown_digits(number: f64, scientific: String) -> String {
    if number == 0.0 {
        return if number.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-15..15).contains(&exponent) {
        return scientific;
    }
    let negative = mantissa.starts_with('-');
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let mut out = String::with_capacity(24);
    if negative {
        out.push('-');
    }
    if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
        out.push_str(&digits);
        return out;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.push_str(&digits);
        out.extend(std::iter::repeat_n('0', whole - digits.len()));
    } else {
        out.push_str(&digits[..whole]);
        out.push('.');
        out.push_str(&digits[whole..]);
    }
    out
}
