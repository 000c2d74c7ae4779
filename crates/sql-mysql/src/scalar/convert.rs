//! Implicit conversions by MySQL's rules: a string is the number that it begins with, a date the number of its digits.
//!
//! Loss of information is a warning, and an error in a strict statement that changes rows (`EvalContext::complain`),
//! but never silent (MY-26). Callers handle NULL.

use std::fmt::Write;

use datum::float::{double_text, float_text};
use datum::json::Node;

use crate::error;
use crate::scalar::decimal::Decimal;
use crate::scalar::temporal::{self, Date, DateTime, Parsed, Strictness, Time};
use crate::types::{Kind, MysqlType as _, Type};
use crate::value::{Text, Value};
use datum::Result;
use query::nodes::context::EvalContext;

/// Returns the longest numeric prefix of the text, and whether only blanks follow.
pub fn number_prefix(text: &str) -> (&str, bool) {
    let trimmed = text.trim_start();
    let bytes = trimmed.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut count = whole;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        if whole + fraction > 0 {
            end += 1 + fraction;
            count += fraction;
        }
    }
    if count == 0 {
        return ("", false);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = if end + 1 + sign <= bytes.len() { digits(end + 1 + sign) } else { 0 };
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    (&trimmed[..end], trimmed[end..].trim_end().is_empty())
}

fn wrong(what: &str, text: &str, ctx: &mut EvalContext) -> Result<()> {
    ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&what, &shorten(text)]))
}

/// Values in messages are cut as MySQL cuts them.
pub fn shorten(text: &str) -> &str {
    match text.char_indices().nth(128) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Returns the characters of a string value. Invalid bytes appear as escapes, as in messages.
pub fn lossy(value: &Value) -> String {
    String::from_utf8_lossy(value.as_string_bytes().unwrap_or_default()).into_owned()
}

fn text_to_f64(text: &str, ctx: &mut EvalContext) -> Result<f64> {
    let (prefix, clean) = number_prefix(text);
    let number = prefix.parse::<f64>().unwrap_or(0.0);
    if !clean || number.is_infinite() {
        wrong("DOUBLE", text, ctx)?;
    }
    Ok(number.clamp(-f64::MAX, f64::MAX))
}

/// Returns the error of a value of another dialect's table that has no form as a number here.
#[cold]
fn other_dialects(value: &Value) -> datum::Fault {
    let what = match value {
        Value::Array(_) => "an array",
        Value::Record(_) => "a row",
        _ => "a value of type interval",
    };
    error::SqlError::unsupported(format!("{what} as a number")).into()
}

pub fn to_f64(value: &Value, ctx: &mut EvalContext) -> Result<f64> {
    Ok(match value {
        Value::Null => 0.0,
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Decimal(decimal) => decimal.to_f64(),
        Value::Float(number) => f64::from(*number),
        Value::Double(number) => *number,
        Value::Text(text) => text_to_f64(text, ctx)?,
        Value::Bytes(_) => text_to_f64(&lossy(value), ctx)?,
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_) => {
            temporal_number(value, ctx).to_f64()
        }
        Value::Interval(_) | Value::Array(_) | Value::Record(_) => return Err(other_dialects(value)),
        Value::Json(json) => match &*json.0 {
            Node::Int(number) => *number as f64,
            Node::UInt(number) => *number as f64,
            Node::Double(number) => *number,
            Node::Decimal(decimal) => decimal.to_f64(),
            Node::Bool(truth) => f64::from(*truth),
            Node::String(text) => text_to_f64(text, ctx)?,
            _ => {
                ctx.complain(error::INVALID_JSON_VALUE_FOR_CAST.raise(&[&"DOUBLE", &"", &1]))?;
                0.0
            }
        },
    })
}

pub fn to_decimal(value: &Value, ctx: &mut EvalContext) -> Result<Decimal> {
    Ok(match value {
        Value::Null => Decimal::ZERO,
        Value::Int(number) => Decimal::from(*number),
        Value::UInt(number) => Decimal::from(*number),
        Value::Decimal(decimal) => decimal.clone(),
        Value::Float(number) => Decimal::from_f64(f64::from(*number)).unwrap_or(Decimal::ZERO),
        Value::Double(number) => match Decimal::from_f64(*number) {
            Some(decimal) => decimal,
            None => {
                wrong("DECIMAL", &double_text(*number), ctx)?;
                let largest = Decimal::largest(65, 0);
                if *number < 0.0 { largest.negated() } else { largest }
            }
        },
        Value::Text(text) => text_to_decimal(text, ctx)?,
        Value::Bytes(_) => text_to_decimal(&lossy(value), ctx)?,
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_) => temporal_number(value, ctx),
        Value::Interval(_) | Value::Array(_) | Value::Record(_) => return Err(other_dialects(value)),
        Value::Json(json) => match &*json.0 {
            Node::Decimal(decimal) => decimal.clone(),
            Node::Int(number) => Decimal::from(*number),
            Node::UInt(number) => Decimal::from(*number),
            Node::String(text) => text_to_decimal(text, ctx)?,
            _ => Decimal::from_f64(to_f64(value, ctx)?).unwrap_or(Decimal::ZERO),
        },
    })
}

fn text_to_decimal(text: &str, ctx: &mut EvalContext) -> Result<Decimal> {
    let (prefix, clean) = number_prefix(text);
    if !clean {
        wrong("DECIMAL", text, ctx)?;
    }
    Ok(Decimal::parse(prefix).unwrap_or(Decimal::ZERO))
}

/// Converts to an integer: `Int`, or `UInt` beyond its range. Fractions are rounded; a string counts as far as its
/// digits go.
pub fn to_integer(value: &Value, ctx: &mut EvalContext) -> Result<Value> {
    Ok(match value {
        Value::Int(_) | Value::UInt(_) => value.clone(),
        Value::Null => Value::Int(0),
        Value::Text(text) => text_to_integer(text, ctx)?,
        Value::Bytes(_) => text_to_integer(&lossy(value), ctx)?,
        Value::Double(number) => whole_of_f64(*number),
        Value::Float(number) => whole_of_f64(f64::from(*number)),
        // A fraction rounds the time itself, not its digits.
        Value::Time(time) => Value::Int(time.rounded(0).number()),
        Value::DateTime(at) => Value::Int(at.rounded(0).unwrap_or(*at).number()),
        Value::Timestamp(at) => {
            let local = ctx.zone.local(*at);
            Value::Int(local.rounded(0).unwrap_or(local).number())
        }
        Value::Json(json) if matches!(&*json.0, Node::String(_) | Node::Double(_) | Node::Bool(_)) => match &*json.0 {
            Node::String(text) => text_to_integer(text, ctx)?,
            Node::Bool(truth) => Value::Int(i64::from(*truth)),
            _ => whole_of_f64(to_f64(value, ctx)?),
        },
        _ => whole_of_i128(to_decimal(value, ctx)?.to_whole()),
    })
}

fn whole_of_f64(number: f64) -> Value {
    let number = number.round_ties_even();
    if number >= 9_223_372_036_854_775_808.0 { Value::UInt(number as u64) } else { Value::Int(number as i64) }
}

/// Saturates at both ends of the range.
pub fn whole_of_i128(number: i128) -> Value {
    match (i64::try_from(number), u64::try_from(number)) {
        (Ok(number), _) => Value::Int(number),
        (_, Ok(number)) => Value::UInt(number),
        _ => {
            if number < 0 {
                Value::Int(i64::MIN)
            } else {
                Value::UInt(u64::MAX)
            }
        }
    }
}

fn text_to_integer(text: &str, ctx: &mut EvalContext) -> Result<Value> {
    let trimmed = text.trim_start();
    let sign = usize::from(trimmed.starts_with(['+', '-']));
    let digits = trimmed[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let clean = digits > 0 && trimmed[sign + digits..].trim_end().is_empty();
    let number =
        trimmed[sign..sign + digits].bytes().fold(0i128, |n, digit| (n * 10 + i128::from(digit - b'0')).min(1 << 100));
    let number = if trimmed.starts_with('-') { -number } else { number };
    let fits = (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number);
    if !clean || !fits {
        wrong("INTEGER", text, ctx)?;
    }
    Ok(whole_of_i128(number))
}

/// Saturates at both ends of the range, for counts and positions.
pub fn to_i64(value: &Value, ctx: &mut EvalContext) -> Result<i64> {
    Ok(match to_integer(value, ctx)? {
        Value::Int(number) => number,
        Value::UInt(number) => i64::try_from(number).unwrap_or(i64::MAX),
        _ => 0,
    })
}

/// Returns the operand of a bit operator. A value that is not an integer saturates at the signed range.
pub fn to_bits(value: &Value, ctx: &mut EvalContext) -> Result<u64> {
    if matches!(value, Value::Decimal(_) | Value::Double(_) | Value::Float(_)) {
        return Ok(match to_integer(value, ctx)? {
            Value::Int(number) => number as u64,
            _ => i64::MAX as u64,
        });
    }
    Ok(match to_integer(value, ctx)? {
        Value::Int(number) => number as u64,
        Value::UInt(number) => number,
        _ => 0,
    })
}

/// Returns whether the value is not zero.
pub fn truth(value: &Value, ctx: &mut EvalContext) -> Result<Option<bool>> {
    Ok(match value {
        Value::Null => None,
        Value::Int(number) => Some(*number != 0),
        Value::UInt(number) => Some(*number != 0),
        Value::Decimal(decimal) => Some(!decimal.is_zero()),
        // A document is true unless it is the number 0; false, null and '' are true.
        Value::Json(json) => Some(json.node().compare(&Node::Int(0)).is_ne()),
        _ => Some(to_f64(value, ctx)? != 0.0),
    })
}

/// Returns the digits of a date or time as a number, with its fraction if there is one.
pub fn temporal_number(value: &Value, ctx: &EvalContext) -> Decimal {
    let (number, micros) = match value {
        Value::Date(date) => return Decimal::from(date.number()),
        Value::Time(time) => (time.number(), time.parts().3),
        Value::DateTime(at) => (at.number(), at.clock().3),
        Value::Timestamp(at) => {
            let local = ctx.zone.local(*at);
            (local.number(), local.clock().3)
        }
        _ => return Decimal::ZERO,
    };
    if micros == 0 {
        return Decimal::from(number);
    }
    let negative = matches!(value, Value::Time(time) if time.is_negative());
    let fraction = if negative { -i128::from(micros) } else { i128::from(micros) };
    Decimal::new(i128::from(number) * 1_000_000 + fraction, 6)
}

/// Returns the time in the session's zone, or `None` with a warning for an invalid date.
pub fn to_datetime(value: &Value, rules: Strictness, ctx: &mut EvalContext) -> Result<Option<DateTime>> {
    Ok(to_parsed_datetime(value, rules, ctx)?.map(|parsed| parsed.value))
}

pub fn to_parsed_datetime(value: &Value, rules: Strictness, ctx: &mut EvalContext) -> Result<Option<Parsed<DateTime>>> {
    let whole = |value: DateTime, has_time| Parsed { value, truncated: false, has_time, offset: None, scale: 6 };
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::DateTime(at) => Some(whole(*at, true)).filter(|parsed| rules.passes(parsed.value.date)),
        Value::Date(date) => Some(whole(DateTime::from(*date), false)).filter(|_| rules.passes(*date)),
        Value::Timestamp(at) => Some(whole(ctx.zone.local(*at), true)).filter(|parsed| rules.passes(parsed.value.date)),
        Value::Time(time) => on_current_date(*time, ctx).map(|at| whole(at, true)),
        Value::Text(text) => temporal::parse_datetime(text, rules),
        Value::Bytes(_) => temporal::parse_datetime(&lossy(value), rules),
        Value::Json(json) => match &*json.0 {
            Node::Date(date) => Some(whole(DateTime::from(*date), false)),
            Node::DateTime(at) => Some(whole(*at, true)),
            Node::Time(time) => on_current_date(*time, ctx).map(|at| whole(at, true)),
            Node::String(text) => temporal::parse_datetime(text, rules),
            _ => None,
        },
        number => number_to_datetime(number, rules, ctx)?,
    };
    let Some(mut parsed) = parsed else {
        let shown = to_text(value, &Type::of(value));
        ctx.complain(error::WRONG_VALUE_TEMPORAL.raise(&[&"datetime", &shorten(&shown)]))?;
        return Ok(None);
    };
    if parsed.truncated {
        ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&"datetime", &shorten(&lossy(value))]))?;
    }
    if let Some(offset) = parsed.offset.take() {
        let utc = parsed.value.plus_micros(-offset * temporal::MICROS_PER_SECOND);
        let instant = utc.and_then(|utc| temporal::Zone::utc().instant(utc));
        parsed.value = instant.map_or(parsed.value, |instant| ctx.zone.local(instant));
    }
    Ok(Some(parsed))
}

fn number_to_datetime(value: &Value, rules: Strictness, ctx: &mut EvalContext) -> Result<Option<Parsed<DateTime>>> {
    let decimal = to_decimal(value, ctx)?;
    let whole = decimal.truncated(0);
    let Some(number) = whole.small().and_then(|small| i64::try_from(small).ok()).filter(|number| *number >= 0) else {
        return Ok(None);
    };
    let parsed = temporal::datetime_from_number(number, rules);
    let micros = decimal.minus(&whole).rounded(6).small().unwrap_or(0) as i64;
    Ok(parsed.and_then(|parsed| Some(Parsed { value: parsed.value.plus_fraction(micros)?, ..parsed })))
}

/// Returns today's midnight plus the time.
pub fn on_current_date(time: Time, ctx: &EvalContext) -> Option<DateTime> {
    DateTime::from(ctx.zone.local(ctx.now).date).plus_micros(time.micros())
}

pub fn to_time(value: &Value, ctx: &mut EvalContext) -> Result<Option<Time>> {
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::Time(time) => return Ok(Some(*time)),
        Value::DateTime(at) => return Ok(Some(at.time())),
        Value::Timestamp(at) => return Ok(Some(ctx.zone.local(*at).time())),
        Value::Date(_) => return Ok(Some(Time::default())),
        Value::Text(text) => temporal::parse_time(text),
        Value::Bytes(_) => temporal::parse_time(&lossy(value)),
        Value::Json(json) => match &*json.0 {
            Node::Time(time) => return Ok(Some(*time)),
            Node::DateTime(at) => return Ok(Some(at.time())),
            Node::String(text) => temporal::parse_time(text),
            _ => None,
        },
        number => {
            let decimal = to_decimal(number, ctx)?;
            let whole = decimal.truncated(0);
            let micros = decimal.minus(&whole).rounded(6).small().unwrap_or(0) as i64;
            let number = whole.small().and_then(|small| i64::try_from(small).ok()).unwrap_or(i64::MAX);
            // A number beyond 838 hours is not a time, while a text is clamped.
            temporal::time_from_number(number)
                .filter(|parsed| !parsed.truncated)
                .map(|parsed| Parsed { value: Time::from_micros(parsed.value.micros() + micros), ..parsed })
        }
    };
    let shown = |ctx: &mut EvalContext| {
        let text = to_text(value, &Type::of(value));
        ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&"time", &shorten(&text)]))
    };
    match parsed {
        Some(parsed) => {
            if parsed.truncated {
                shown(ctx)?;
            }
            Ok(Some(parsed.value))
        }
        None => {
            shown(ctx)?;
            Ok(None)
        }
    }
}

/// Formats a double with fixed fractional digits. Beyond 1e15 its significant digits are followed by zeros, not by the digits of the exact value.
fn fixed_text(number: f64, scale: u8) -> String {
    match Decimal::from_f64(number) {
        Some(decimal) if number.abs() >= 1e15 => decimal.rounded(scale.into()).to_string(),
        _ => format!("{number:.digits$}", digits = usize::from(scale)),
    }
}

/// Appends the characters of a value in shown form: what the text protocol sends, what CONCAT joins. Bytes are not characters and are not for this.
pub fn write_text(value: &Value, ty: &Type, out: &mut String) {
    let (scale, start) = (usize::from(ty.scale.min(6)), out.len());
    let written = match value {
        Value::Null => Ok(()),
        Value::Int(number) => write!(out, "{number}"),
        Value::UInt(number) if ty.kind() == Kind::Year => write!(out, "{number:04}"),
        Value::UInt(number) => write!(out, "{number}"),
        Value::Decimal(decimal) => write!(out, "{decimal}"),
        Value::Float(number) if ty.scale < Type::FLOATING => {
            write!(out, "{number:.digits$}", digits = usize::from(ty.scale))
        }
        Value::Float(number) => out.write_str(&float_text(*number)),
        Value::Double(number) if ty.scale < Type::FLOATING && matches!(ty.kind(), Kind::Double | Kind::Float) => {
            out.write_str(&fixed_text(*number, ty.scale))
        }
        Value::Double(number) => out.write_str(&double_text(*number)),
        Value::Text(text) => out.write_str(text),
        Value::Bytes(_) => out.write_str(&lossy(value)),
        Value::Date(date) => write!(out, "{date}"),
        Value::Time(time) => write!(out, "{time:.scale$}"),
        Value::DateTime(at) if ty.kind() == Kind::Date => write!(out, "{}", at.date),
        Value::DateTime(at) => write!(out, "{at:.scale$}"),
        Value::Timestamp(at) => write!(out, "{:.scale$}", temporal::Zone::utc().local(*at)),
        Value::Interval(span) => write!(out, "{span}"),
        Value::Json(json) => write!(out, "{json}"),
        Value::Array(_) | Value::Record(_) => write!(out, "{value}"),
    };
    debug_assert!(written.is_ok());
    if ty.has_zerofill() && !value.is_null() {
        // A decimal's point is not in its length.
        let width = ty.length as usize + usize::from(ty.kind() == Kind::Decimal && ty.scale > 0);
        let missing = width.saturating_sub(out.len() - start);
        out.insert_str(start, &"0".repeat(missing));
    }
}

pub fn to_text(value: &Value, ty: &Type) -> Text {
    if let Value::Text(text) = value {
        return text.clone();
    }
    let mut out = String::new();
    write_text(value, ty, &mut out);
    Text::from(out)
}

/// Returns the current date of the session's clock.
pub fn today(ctx: &EvalContext) -> Date {
    ctx.zone.local(ctx.now).date
}
