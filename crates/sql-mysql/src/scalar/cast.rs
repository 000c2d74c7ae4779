//! CAST and CONVERT. A value out of range becomes the nearest one with a warning, never silently.

use crate::charset::text_of_bytes;
use crate::error;
use crate::scalar::convert::{self, shorten};
use crate::scalar::decimal::Decimal;
use crate::scalar::json::{self, Json};
use crate::scalar::state::StateOf as _;
use crate::scalar::temporal::Strictness;
use crate::types::{Charset, CharsetName as _, Collation, Kind, MysqlType as _, Type};
use crate::value::{Text, Value};
use datum::Result;
use query::nodes::context::EvalContext;

/// `from` is the type of the expression that gave the value.
pub fn cast(value: Value, from: &Type, to: &Type, ctx: &mut EvalContext) -> Result<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    match to.kind() {
        kind if kind.is_integer() => integer(&value, from, to.is_unsigned(), ctx),
        Kind::Decimal => decimal(&value, to, ctx),
        Kind::Double => Ok(Value::Double(convert::to_f64(&value, ctx)?)),
        Kind::Float => Ok(Value::Float(convert::to_f64(&value, ctx)? as f32)),
        Kind::Date => {
            let at = convert::to_datetime(&value, Strictness::of(ctx.sql_mode()), ctx)?;
            Ok(at.map_or(Value::Null, |at| Value::Date(at.date)))
        }
        Kind::DateTime | Kind::Timestamp => {
            let at = convert::to_datetime(&value, Strictness::of(ctx.sql_mode()), ctx)?;
            Ok(at.and_then(|at| at.fitted(to.scale, ctx.sql_mode().rounding())).map_or(Value::Null, Value::DateTime))
        }
        Kind::Time => Ok(convert::to_time(&value, ctx)?
            .map_or(Value::Null, |time| Value::Time(time.fitted(to.scale, ctx.sql_mode().rounding())))),
        Kind::Year => year(&value, ctx),
        Kind::Json => to_json(value, from),
        kind if kind.is_bytes() => Ok(bytes(value, from, to, ctx)),
        kind if kind.is_text() => text(value, from, to, ctx),
        _ => Ok(value),
    }
}

/// MySQL's words.
const WRAPPED: &str = "Cast to signed converted positive out-of-range integer to its negative complement";

fn integer(value: &Value, from: &Type, unsigned: bool, ctx: &mut EvalContext) -> Result<Value> {
    if let Value::Decimal(_) | Value::Double(_) | Value::Float(_) = value {
        return rounded(value, unsigned, ctx);
    }
    let whole = match hex_number(value, from) {
        Some(number) => Value::UInt(number),
        None => convert::to_integer(value, ctx)?,
    };
    let written = value.as_string_bytes().is_some();
    Ok(match (whole, unsigned) {
        (Value::UInt(number), false)
            if written && number < u64::MAX && i64::try_from(number).is_err() && !from.is_unsigned() =>
        {
            ctx.warn(error::UNKNOWN_ERROR.raise(&[&WRAPPED]));
            Value::Int(number as i64)
        }
        (Value::UInt(number), false) => Value::Int(number as i64),
        (Value::Int(number), true) => Value::UInt(number as u64),
        (whole, _) => whole,
    })
}

/// Decimals and doubles saturate at the limits of the range.
fn rounded(value: &Value, unsigned: bool, ctx: &mut EvalContext) -> Result<Value> {
    let number = match value {
        Value::Decimal(decimal) => decimal.to_whole(),
        other => convert::to_f64(other, ctx)?.round_ties_even() as i128,
    };
    let (low, high) = if unsigned { (0, i128::from(u64::MAX)) } else { (i64::MIN.into(), i64::MAX.into()) };
    let fitted = number.clamp(low, high);
    let wraps = unsigned && number < 0 && number >= i128::from(i64::MIN);
    if fitted != number {
        let (what, shown) = match value {
            Value::Decimal(decimal) => ("DECIMAL", decimal.to_string()),
            other => ("DOUBLE", convert::to_text(other, &Type::of(other)).to_string()),
        };
        if !wraps {
            ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&what, &shown]))?;
        }
    }
    Ok(match unsigned {
        true if wraps => Value::UInt(number as i64 as u64),
        true => Value::UInt(fitted as u64),
        false => Value::Int(fitted as i64),
    })
}

/// A literal such as 0x41 converts to the number that its bytes form.
pub fn hex_number(value: &Value, from: &Type) -> Option<u64> {
    match value {
        Value::Bytes(bytes) if from.kind().is_bytes() && from.is_unsigned() => {
            Some(bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
        }
        _ => None,
    }
}

/// Converts to DECIMAL(precision, scale): rounded, or the largest value where it is too large.
pub fn decimal(value: &Value, to: &Type, ctx: &mut EvalContext) -> Result<Value> {
    let decimal = convert::to_decimal(value, ctx)?.rounded(to.scale.into());
    let limit = Decimal::largest(to.length, to.scale.into());
    if decimal.abs() <= limit {
        return Ok(Value::Decimal(decimal));
    }
    ctx.complain(error::WARN_DATA_OUT_OF_RANGE.raise(&[&"", &1]))?;
    Ok(Value::Decimal(if decimal.is_negative() { limit.negated() } else { limit }))
}

fn year(value: &Value, ctx: &mut EvalContext) -> Result<Value> {
    let number = match value {
        Value::Date(date) => i64::from(date.year),
        Value::DateTime(at) => i64::from(at.date.year),
        Value::Timestamp(at) => i64::from(ctx.zone.local(*at).date.year),
        Value::Time(_) => i64::from(convert::today(ctx).year),
        Value::Text(_) | Value::Bytes(_) if convert::number_prefix(&convert::lossy(value)).0.is_empty() => {
            ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&"YEAR", &convert::lossy(value)]))?;
            return Ok(Value::Null);
        }
        other => convert::to_i64(other, ctx)?,
    };
    let year = match number {
        0 if value.as_string_bytes().is_some_and(|text| text != b"0000") => 2000,
        1..=69 => number + 2000,
        70..=99 => number + 1900,
        other => other,
    };
    if year == 0 || (1901..=2155).contains(&year) {
        return Ok(Value::UInt(year as u64));
    }
    ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&"YEAR", &number]))?;
    Ok(Value::Null)
}

/// Text is a document to parse; other values are scalars.
pub fn to_json(value: Value, from: &Type) -> Result<Value> {
    Ok(match &value {
        Value::Json(_) => value,
        Value::Text(text) => {
            let node = json::parse(text).map_err(|fault| json::argument_error(fault, 1, "cast_as_json"))?;
            Value::Json(Json::from(node))
        }
        Value::Int(number) if from.kind() == Kind::BigInt && from.length == 1 && from.is_truth() => {
            Value::Json(Json::from(json::Node::Bool(*number != 0)))
        }
        other => Value::Json(Json::from_value(other)),
    })
}

/// Returns the bytes of the shown form, cut or padded with zeros to a declared length.
fn bytes(value: Value, from: &Type, to: &Type, ctx: &mut EvalContext) -> Value {
    let mut bytes = match &value {
        Value::Bytes(bytes) => bytes.to_vec(),
        Value::Text(text) => from.charset().encode(text).into_owned(),
        other => convert::to_text(&present(other.clone(), from, ctx), from).as_bytes().to_vec(),
    };
    let length = to.length as usize;
    if to.kind() == Kind::Binary {
        bytes.resize(length, 0);
    }
    bytes.truncate(length);
    Value::from_bytes(bytes)
}

/// Error 1300, which shows the first of the bytes.
pub fn invalid_text(bytes: &[u8], charset: Charset) -> datum::Fault {
    let shown: String = bytes.iter().take(3).map(|byte| format!("{byte:02X}")).collect();
    error::INVALID_CHARACTER_STRING.raise(&[&charset.name(), &shown])
}

fn text(value: Value, from: &Type, to: &Type, ctx: &mut EvalContext) -> Result<Value> {
    let text = match value {
        Value::Text(text) => to.charset().narrowed(text),
        Value::Bytes(bytes) => match text_of_bytes(&bytes, to.charset()) {
            Ok(text) => Text::new(&text),
            Err(at) => {
                ctx.warn(invalid_text(&bytes[at..], to.charset()));
                return Ok(Value::Null);
            }
        },
        other => convert::to_text(&present(other, from, ctx), from),
    };
    let cut = match text.char_indices().nth(to.length as usize) {
        Some((end, _)) => {
            ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&format!("CHAR({})", to.length), &shorten(&text)]))?;
            Text::new(&text[..end])
        }
        None => text,
    };
    debug_assert!(to.collation != Collation::Binary);
    Ok(Value::Text(cut))
}

/// Converts the stored form of a value to the shown one.
pub fn present(value: Value, ty: &Type, ctx: &EvalContext) -> Value {
    match (value, ty.kind()) {
        (Value::UInt(number), Kind::Enum) => {
            let member = usize::try_from(number).ok().and_then(|place| ty.members().get(place.checked_sub(1)?));
            Value::text(member.map_or("", |member| member))
        }
        (Value::UInt(number), Kind::Set) => {
            let chosen = ty.members().iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1);
            Value::text(chosen.map(|(_, member)| &**member).collect::<Vec<_>>().join(","))
        }
        (Value::UInt(number), Kind::Bit) => {
            let length = ty.length.div_ceil(8).clamp(1, 8) as usize;
            Value::bytes(&number.to_be_bytes()[8 - length..])
        }
        (Value::Timestamp(at), _) => Value::DateTime(ctx.zone.local(at)),
        (value, _) => value,
    }
}

/// Returns the type of the shown form.
pub fn present_type(ty: &Type) -> Type {
    match ty.kind() {
        Kind::Bit => Type { nullable: ty.nullable, ..Type::bytes(ty.length.div_ceil(8)) },
        Kind::Timestamp => ty.clone().with_kind(Kind::DateTime),
        Kind::Enum | Kind::Set => {
            let lengths = ty.members().iter().map(|member| member.chars().count() as u32);
            let length =
                if ty.kind() == Kind::Enum { lengths.max().unwrap_or(0) } else { lengths.map(|n| n + 1).sum() };
            Type { nullable: ty.nullable, ..Type::text(length, ty.collation) }
        }
        _ => ty.clone(),
    }
}
