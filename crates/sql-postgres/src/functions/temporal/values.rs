//! Arguments of the types of dates and times, and results.

use datum::{Fault, Result};

use crate::functions::args;
use crate::types::temporal::Span;
use crate::types::temporal::io::TimeTz;
use crate::value::Value;

pub fn date(values: &[Value], at: usize) -> Result<i32> {
    i32::try_from(args::integer(values, at)?).map_err(|_| Fault::corrupt("a date beyond its range"))
}

pub fn int(values: &[Value], at: usize) -> Result<i32> {
    i32::try_from(args::integer(values, at)?).map_err(|_| Fault::corrupt("an integer beyond its range"))
}

/// Returns a timestamp or a time, in microseconds.
pub fn micros(values: &[Value], at: usize) -> Result<i64> {
    args::integer(values, at)
}

pub fn span(values: &[Value], at: usize) -> Result<Span> {
    match &values[at] {
        Value::Interval(span) => Ok(*span),
        _ => Err(Fault::corrupt("an interval in the form of another type")),
    }
}

pub fn timetz(values: &[Value], at: usize) -> Result<TimeTz> {
    match &values[at] {
        Value::Bytes(bytes) => Ok(TimeTz::of_bytes(bytes)),
        _ => Err(Fault::corrupt("a time with time zone in the form of another type")),
    }
}

pub fn double(values: &[Value], at: usize) -> Result<f64> {
    match &values[at] {
        Value::Double(number) => Ok(*number),
        Value::Float(number) => Ok((*number).into()),
        _ => Err(Fault::corrupt("a double in the form of another type")),
    }
}

pub fn text(values: &[Value], at: usize) -> Result<&str> {
    args::text(values, at)
}

/// Returns a number as C's `%g` shows it: six digits.
pub fn short_double(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        let infinity = if number > 0.0 { "Infinity" } else { "-Infinity" };
        return if number == 0.0 {
            "0".into()
        } else if number.is_nan() {
            "NaN".into()
        } else {
            infinity.into()
        };
    }
    let scientific = format!("{number:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text.to_string() }
    };
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(digits), exponent.abs());
    }
    trim(&format!("{number:.*}", (5 - exponent) as usize))
}
