//! Assignment: conversion of a value to the stored form of a column, in INSERT and UPDATE.
//!
//! Under a strict `sql_mode` a value that does not fit is an error; otherwise, and with IGNORE, the nearest value is
//! stored with a warning. Lost fractional digits of a decimal and lost trailing blanks of a string are a note at most.
//!
//! Stored values have the form of MY-23.

use datum::float::double_text;

use crate::error;
use crate::other_values;
use crate::scalar::cast;
use crate::scalar::convert::{self, number_prefix, shorten};
use crate::scalar::decimal::Decimal;
use crate::scalar::json::{self, Json};
use crate::scalar::state::StateOf as _;
use crate::scalar::temporal::{self, Date, DateTime, Parsed, Strictness, Time, Timestamp};
use crate::types::{Charset, Collation, CollationName as _, Kind, MysqlType as _, Type};
use crate::value::{Text, Value};
use datum::Result;
use query::nodes::assignment::{Assignment, Place};
use query::nodes::context::{EvalContext, Level};

/// MySQL's rules of assignment.
pub static ASSIGNMENT: Assignment = Assignment { store, checks_rows: false, implicit_default, text };

/// The most letters of a value that a message shows.
const SHOWN_MAX: u32 = 255;

/// As messages show it.
fn text(value: &Value, ty: &Type, ctx: &mut EvalContext) -> String {
    let (shown, from) = match ty.kind() {
        Kind::Enum | Kind::Set | Kind::Bit | Kind::Timestamp => {
            (cast::present(value.clone(), ty, ctx), cast::present_type(ty))
        }
        _ => (value.clone(), ty.clone()),
    };
    // Room for all of it: a cast that cuts is an error in strict mode.
    let whole = Type::text(from.length.max(SHOWN_MAX), Collation::DEFAULT);
    match cast::cast(shown, &from, &whole, ctx) {
        Ok(Value::Text(text)) => text.as_str().chars().take(SHOWN_MAX as usize).collect(),
        _ => "NULL".to_owned(),
    }
}

/// Returns the stored form of the value in a column of that type. NULL for a NOT NULL column is error 1048 in any mode, and the implicit default under IGNORE. For the implicit default of a
/// multi-row INSERT without strict mode, call `implicit_default`.
pub fn store(value: Value, ty: &Type, place: Place<'_>, ctx: &mut EvalContext) -> Result<Value> {
    if value.is_null() {
        if ty.nullable {
            return Ok(Value::Null);
        }
        let error = error::BAD_NULL.raise(&[&place.column]);
        if !ctx.ignore {
            return Err(error);
        }
        ctx.warn(error);
        return Ok(implicit_default(ty));
    }
    let changes_rows = std::mem::replace(&mut ctx.changes_rows, true);
    let stored = match other_values::seen_type(ty) {
        None => Slot { ty, place }.fill(value, ctx),
        Some(form) => {
            let value = Slot { ty: &form, place }.fill(value, ctx);
            value.and_then(|value| other_values::stored(value, ty, place))
        }
    };
    ctx.changes_rows = changes_rows;
    stored
}

/// Returns the implicit default of a NOT NULL column in a mode that is not strict: 0, the empty string, the zero date,
/// or the first member.
pub fn implicit_default(ty: &Type) -> Value {
    match ty.kind() {
        Kind::Null => Value::Null,
        Kind::Decimal => Value::Decimal(Decimal::new(0, ty.scale.into())),
        Kind::Float => Value::Float(0.0),
        Kind::Double => Value::Double(0.0),
        Kind::Enum => Value::UInt(1),
        Kind::Set | Kind::Bit | Kind::Year => Value::UInt(0),
        Kind::Date => Value::Date(Date::ZERO),
        Kind::Time => Value::Time(Time::default()),
        Kind::DateTime => Value::DateTime(DateTime::ZERO),
        Kind::Timestamp => Value::Timestamp(Timestamp::ZERO),
        Kind::Json => Value::Json(Json::from(json::Node::Null)),
        Kind::Binary => Value::bytes(vec![0; ty.length as usize]),
        kind if kind.is_integer() => {
            if ty.is_unsigned() {
                Value::UInt(0)
            } else {
                Value::Int(0)
            }
        }
        kind if kind.is_bytes() => Value::bytes([]),
        _ => Value::text(""),
    }
}

/// The column that receives the value.
struct Slot<'s> {
    ty: &'s Type,
    place: Place<'s>,
}

impl Slot<'_> {
    fn fill(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        match self.ty.kind() {
            Kind::Null => Ok(value),
            kind if kind.is_integer() => self.integer(value, ctx),
            Kind::Decimal => self.decimal(value, ctx),
            Kind::Float | Kind::Double => self.floating(value, ctx),
            Kind::Bit => self.bit(value, ctx),
            Kind::Enum => self.member(value, ctx),
            Kind::Set => self.members(value, ctx),
            Kind::Date | Kind::DateTime | Kind::Timestamp => self.date(value, ctx),
            Kind::Time => self.time(value, ctx),
            Kind::Year => self.year(value, ctx),
            Kind::Json => self.json(value),
            kind if kind.is_bytes() => self.bytes(value, ctx),
            _ => self.text(value, ctx),
        }
    }

    fn out_of_range(&self) -> datum::Fault {
        error::WARN_DATA_OUT_OF_RANGE.raise(&[&self.place.column, &self.place.row])
    }

    fn truncated(&self) -> datum::Fault {
        error::WARN_DATA_TRUNCATED.raise(&[&self.place.column, &self.place.row])
    }

    fn wrong(&self, what: &str, text: &str) -> datum::Fault {
        error::TRUNCATED_WRONG_VALUE_FOR_FIELD.raise(&[&what, &shorten(text), &self.place.column, &self.place.row])
    }

    /// Returns the number that the text begins with.
    fn number_of(&self, text: &str, what: &str, ctx: &mut EvalContext) -> Result<Decimal> {
        let (prefix, clean) = number_prefix(text);
        if prefix.is_empty() {
            ctx.complain(self.wrong(what, text))?;
        } else if !clean {
            ctx.complain(self.truncated())?;
        }
        Ok(Decimal::parse(prefix).unwrap_or(Decimal::ZERO))
    }

    fn integer(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        let number = match &value {
            Value::Int(number) => i128::from(*number),
            Value::UInt(number) => i128::from(*number),
            Value::Text(text) => self.number_of(text, "integer", ctx)?.to_whole(),
            Value::Bytes(_) => self.number_of(&convert::lossy(&value), "integer", ctx)?.to_whole(),
            Value::Double(number) => number.round_ties_even() as i128,
            Value::Float(number) => f64::from(*number).round_ties_even() as i128,
            other => convert::to_decimal(other, ctx)?.to_whole(),
        };
        let (low, high) = self.ty.integer_range().unwrap_or((i64::MIN, i64::MAX as u64));
        let fitted = number.clamp(low.into(), high.into());
        if fitted != number {
            ctx.complain(self.out_of_range())?;
        }
        Ok(if self.ty.is_unsigned() { Value::UInt(fitted as u64) } else { Value::Int(fitted as i64) })
    }

    fn decimal(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        let number = match &value {
            Value::Text(text) => self.number_of(text, "decimal", ctx)?,
            Value::Bytes(_) => self.number_of(&convert::lossy(&value), "decimal", ctx)?,
            other => convert::to_decimal(other, ctx)?,
        };
        let rounded = number.rounded(self.ty.scale.into());
        let limit = Decimal::largest(self.ty.length, self.ty.scale.into());
        if rounded.abs() > limit || (self.ty.is_unsigned() && rounded.is_negative() && !rounded.is_zero()) {
            ctx.complain(self.out_of_range())?;
            let low = if self.ty.is_unsigned() { Decimal::new(0, self.ty.scale.into()) } else { limit.negated() };
            return Ok(Value::Decimal(if rounded.is_negative() { low } else { limit }));
        }
        if rounded != number && !matches!(value, Value::Double(_) | Value::Float(_)) {
            ctx.warnings.push(Level::Note, self.truncated());
        }
        Ok(Value::Decimal(rounded))
    }

    fn floating(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        let mut number = match &value {
            Value::Text(_) | Value::Bytes(_) => {
                let text = convert::lossy(&value);
                let (prefix, clean) = number_prefix(&text);
                if !clean {
                    ctx.complain(self.truncated())?;
                }
                prefix.parse().unwrap_or(0.0)
            }
            other => convert::to_f64(other, ctx)?,
        };
        if self.ty.scale < Type::FLOATING {
            let unit = 10f64.powi(self.ty.scale.into());
            let limit = 10f64.powi(self.ty.length as i32 - i32::from(self.ty.scale)) - 1.0 / unit;
            number = (number * unit).round_ties_even() / unit;
            if number.abs() > limit {
                ctx.complain(self.out_of_range())?;
                number = limit.copysign(number);
            }
        }
        let limit = if self.ty.kind() == Kind::Float { f64::from(f32::MAX) } else { f64::MAX };
        if number.abs() > limit || (self.ty.is_unsigned() && number < 0.0) {
            ctx.complain(self.out_of_range())?;
            number = if self.ty.is_unsigned() && number < 0.0 { 0.0 } else { limit.copysign(number) };
        }
        Ok(if self.ty.kind() == Kind::Float { Value::Float(number as f32) } else { Value::Double(number) })
    }

    fn bit(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        let limit = u64::MAX >> (64 - self.ty.length.clamp(1, 64));
        let number = match value.as_string_bytes() {
            Some(bytes) => {
                let significant = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
                let number = significant.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
                (significant.len() <= 8).then_some(number)
            }
            None => match convert::to_integer(&value, ctx)? {
                Value::Int(number) => Some(number as u64),
                Value::UInt(number) => Some(number),
                _ => None,
            },
        };
        match number.filter(|number| *number <= limit) {
            Some(number) => Ok(Value::UInt(number)),
            None => {
                if ctx.is_strict() {
                    return Err(error::DATA_TOO_LONG.raise(&[&self.place.column, &self.place.row]));
                }
                ctx.warn(self.out_of_range());
                Ok(Value::UInt(limit))
            }
        }
    }

    fn find_member(&self, name: &str) -> Option<usize> {
        let name = name.trim_end_matches(' ');
        self.ty.members().iter().position(|member| self.ty.collation.equal(member.as_bytes(), name.as_bytes()))
    }

    fn member(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        let count = self.ty.members().len() as u64;
        let place = match value.as_string_bytes() {
            Some(_) => {
                let name = convert::lossy(&value);
                let number = || name.parse::<u64>().ok().filter(|number| (1..=count).contains(number));
                self.find_member(&name).map(|place| place as u64 + 1).or_else(number)
            }
            None => match convert::to_integer(&value, ctx)? {
                Value::Int(number) => u64::try_from(number).ok(),
                Value::UInt(number) => Some(number),
                _ => None,
            }
            .filter(|number| (1..=count).contains(number)),
        };
        match place {
            Some(place) => Ok(Value::UInt(place)),
            None => {
                ctx.complain(self.truncated())?;
                Ok(Value::UInt(0))
            }
        }
    }

    fn members(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        let count = self.ty.members().len() as u32;
        let all = if count == 0 { 0 } else { u64::MAX >> (64 - count) };
        let wanted = match value.as_string_bytes() {
            Some([]) => Some(0),
            Some(_) => {
                let names = convert::lossy(&value);
                let mut bits = Some(0u64);
                for name in names.split(',') {
                    bits = bits.zip(self.find_member(name)).map(|(bits, place)| bits | 1 << place);
                }
                bits.or_else(|| names.parse::<u64>().ok())
            }
            None => Some(convert::to_bits(&value, ctx)?),
        };
        match wanted.filter(|bits| bits & !all == 0) {
            Some(bits) => Ok(Value::UInt(bits)),
            None => {
                ctx.complain(self.truncated())?;
                if value.as_string_bytes().is_none() {
                    return Ok(Value::UInt(convert::to_bits(&value, ctx)? & all));
                }
                let known = convert::lossy(&value);
                let known = known.split(',').filter_map(|name| self.find_member(name));
                Ok(Value::UInt(known.fold(0, |bits, place| bits | 1 << place)))
            }
        }
    }

    /// Returns the error of a value that is no date.
    fn wrong_date(&self, value: &Value) -> datum::Fault {
        let what = match self.ty.kind() {
            Kind::Date => "date",
            Kind::Time => "time",
            _ => "datetime",
        };
        let shown = convert::to_text(value, &Type::of(value));
        error::WRONG_VALUE_FOR_COLUMN_TEMPORAL.raise(&[&what, &shorten(&shown), &self.place.column, &self.place.row])
    }

    fn date(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        if let (Value::Timestamp(at), Kind::Timestamp) = (&value, self.ty.kind()) {
            return Ok(Value::Timestamp(*at));
        }
        let strict = ctx.is_strict();
        let rules = Strictness::of(ctx.sql_mode());
        // Where the mode is not strict, zeros are stored with a warning.
        let lenient = if strict { rules } else { Strictness { no_zero_date: false, no_zero_in_date: false, ..rules } };
        let Some(parsed) = self.read_date(&value, lenient, ctx)? else {
            let any = Strictness { allow_invalid: true, ..Strictness::default() };
            let loose =
                if self.read_date(&value, any, ctx)?.is_some() { self.out_of_range() } else { self.truncated() };
            self.complain_date(&value, loose, ctx)?;
            return Ok(implicit_default(self.ty));
        };
        if !strict && !rules.passes(parsed.value.date) {
            ctx.warn(self.out_of_range());
            return Ok(implicit_default(self.ty));
        }
        if parsed.truncated {
            self.complain_date(&value, self.truncated(), ctx)?;
        }
        self.settle_date(parsed.value, &value, ctx)
    }

    /// Error 1292 in a strict statement, elsewhere a shorter warning.
    fn complain_date(&self, value: &Value, loose: datum::Fault, ctx: &mut EvalContext) -> Result<()> {
        if ctx.is_strict() {
            return Err(self.wrong_date(value));
        }
        ctx.warn(loose);
        Ok(())
    }

    fn read_date(&self, value: &Value, rules: Strictness, ctx: &mut EvalContext) -> Result<Option<Parsed<DateTime>>> {
        let text = match value {
            Value::Text(text) => temporal::parse_datetime(text, rules),
            Value::Bytes(_) => temporal::parse_datetime(&convert::lossy(value), rules),
            other => {
                let mut quiet = std::mem::take(&mut ctx.warnings);
                let strict = std::mem::replace(&mut ctx.changes_rows, false);
                let parsed = convert::to_parsed_datetime(other, rules, ctx);
                ctx.changes_rows = strict;
                std::mem::swap(&mut ctx.warnings, &mut quiet);
                return parsed;
            }
        };
        Ok(text.map(|mut parsed| {
            if let Some(offset) = parsed.offset.take() {
                let utc = parsed.value.plus_micros(-offset * temporal::MICROS_PER_SECOND);
                let instant = utc.and_then(|utc| temporal::Zone::utc().instant(utc));
                parsed.value = instant.map_or(parsed.value, |instant| ctx.zone.local(instant));
            }
            parsed
        }))
    }

    fn settle_date(&self, at: DateTime, value: &Value, ctx: &mut EvalContext) -> Result<Value> {
        if self.ty.kind() == Kind::Date {
            if at.micros_of_day() != 0 {
                ctx.warnings.push(Level::Note, self.truncated());
            }
            return Ok(Value::Date(at.date));
        }
        let rounded = at.fitted(self.ty.scale, ctx.sql_mode().rounding());
        let stored = match (rounded, self.ty.kind()) {
            (Some(at), Kind::DateTime) => Some(Value::DateTime(at)),
            (Some(at), _) if at.is_zero() => Some(Value::Timestamp(Timestamp::ZERO)),
            (Some(at), _) => temporal::timestamp(&ctx.zone, at).map(Value::Timestamp),
            (None, _) => None,
        };
        match stored {
            Some(stored) => Ok(stored),
            None => {
                self.complain_date(value, self.out_of_range(), ctx)?;
                Ok(implicit_default(self.ty))
            }
        }
    }

    fn time(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        let dated = match &value {
            Value::Text(text) => {
                temporal::parse_whole_datetime(text).is_some_and(|parsed| !parsed.value.date.is_zero())
            }
            other => matches!(other, Value::DateTime(_) | Value::Timestamp(_)),
        };
        if dated {
            ctx.warnings.push(Level::Note, self.truncated());
        }
        let parsed = match &value {
            Value::Text(text) => temporal::parse_time(text),
            Value::Bytes(_) => temporal::parse_time(&convert::lossy(&value)),
            Value::Int(number) => temporal::time_from_number(*number),
            other => {
                let time = match (convert::to_time(other, ctx)?, convert::to_f64(other, ctx)?) {
                    (Some(time), _) => time,
                    // The nearest value, as for integers.
                    (None, number) if number.abs() > 8_385_959.0 => {
                        Time::from_micros(if number < 0.0 { -Time::MAX.micros() } else { Time::MAX.micros() })
                    }
                    _ => Time::default(),
                };
                return Ok(Value::Time(time.fitted(self.ty.scale, ctx.sql_mode().rounding())));
            }
        };
        let Some(parsed) = parsed else {
            self.complain_date(&value, self.truncated(), ctx)?;
            return Ok(implicit_default(self.ty));
        };
        if parsed.truncated {
            let clamped = parsed.value.micros().abs() == Time::MAX.micros();
            self.complain_date(&value, if clamped { self.out_of_range() } else { self.truncated() }, ctx)?;
        }
        Ok(Value::Time(parsed.value.fitted(self.ty.scale, ctx.sql_mode().rounding())))
    }

    fn year(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        let written = value.as_string_bytes().is_some();
        let number = match &value {
            Value::Text(text) => self.number_of(text, "integer", ctx)?.to_whole(),
            Value::Bytes(_) => self.number_of(&convert::lossy(&value), "integer", ctx)?.to_whole(),
            Value::Date(date) => date.year.into(),
            Value::DateTime(at) => at.date.year.into(),
            other => convert::to_decimal(other, ctx)?.to_whole(),
        };
        let numeric = !number_prefix(&convert::lossy(&value)).0.is_empty();
        let four_digits = written && convert::lossy(&value).trim().len() >= 4;
        let year = match number {
            0 if written && !four_digits && numeric => 2000,
            1..=69 => number + 2000,
            70..=99 => number + 1900,
            other => other,
        };
        if year == 0 || (1901..=2155).contains(&year) {
            return Ok(Value::UInt(year as u64));
        }
        ctx.complain(self.out_of_range())?;
        Ok(Value::UInt(0))
    }

    fn json(&self, value: Value) -> Result<Value> {
        match &value {
            Value::Bytes(_) => Err(error::INVALID_JSON_CHARSET.raise(&[&"binary"])),
            Value::Text(text) => {
                let node = json::parse(text).map_err(|fault| json::column_error(fault, self.place.column))?;
                Ok(Value::Json(Json::from(node)))
            }
            other => Ok(Value::Json(Json::from_value(other))),
        }
    }

    fn too_long(&self, ctx: &mut EvalContext) -> Result<()> {
        match ctx.is_strict() {
            true => Err(error::DATA_TOO_LONG.raise(&[&self.place.column, &self.place.row])),
            false => {
                ctx.warn(self.truncated());
                Ok(())
            }
        }
    }

    fn bytes(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        let bytes = match value {
            Value::Bytes(bytes) => bytes,
            other => {
                let shown = cast::present(other, self.ty, ctx);
                convert::to_text(&shown, &Type::of(&shown)).as_bytes().into()
            }
        };
        let length = self.ty.length as usize;
        if bytes.len() > length {
            self.too_long(ctx)?;
            return Ok(Value::bytes(&bytes[..length]));
        }
        if self.ty.kind() == Kind::Binary && bytes.len() < length {
            let mut padded = bytes.to_vec();
            padded.resize(length, 0);
            return Ok(Value::from_bytes(padded));
        }
        Ok(Value::Bytes(bytes))
    }

    fn text(&self, value: Value, ctx: &mut EvalContext) -> Result<Value> {
        let text = match value {
            Value::Text(text) => text,
            Value::Bytes(bytes) => self.decode(&bytes, ctx)?,
            Value::Double(number) => {
                // The exponent form is used if only that fits.
                let (plain, short) = (double_text(number), format!("{number:e}"));
                if plain.len() > self.ty.length as usize && short.len() <= self.ty.length as usize {
                    short
                } else {
                    plain
                }
                .into()
            }
            other => {
                let shown = cast::present(other, &Type::of(&Value::Null), ctx);
                convert::to_text(&shown, &Type::of(&shown))
            }
        };
        let text = self.within_charset(text, ctx)?;
        let text = self.within_length(text, ctx)?;
        // Trailing blanks of CHAR are padding.
        if self.ty.kind() == Kind::Char && text.ends_with(' ') {
            return Ok(Value::text(text.trim_end_matches(' ')));
        }
        Ok(Value::Text(text))
    }

    fn bad_bytes(&self, bytes: &[u8]) -> datum::Fault {
        let shown: String = bytes.iter().take(6).map(|byte| format!("\\x{byte:02X}")).collect();
        let shown = if bytes.len() > 6 { format!("{shown}...") } else { shown };
        self.wrong("string", &shown)
    }

    fn decode(&self, bytes: &[u8], ctx: &mut EvalContext) -> Result<Text> {
        let charset = self.ty.charset();
        match crate::charset::text_of_bytes(bytes, charset) {
            Ok(text) => Ok(Text::new(&text)),
            Err(at) => {
                ctx.complain(self.bad_bytes(&bytes[at..]))?;
                let valid = crate::charset::text_of_bytes(&bytes[..at], charset);
                Ok(Text::new(valid.as_deref().unwrap_or("")))
            }
        }
    }

    fn within_charset(&self, text: Text, ctx: &mut EvalContext) -> Result<Text> {
        let charset = self.ty.charset();
        if charset == Charset::Utf8 || (charset.contains_ascii() && text.is_ascii()) {
            return Ok(text);
        }
        match text.char_indices().find(|(_, c)| !charset.holds(*c)) {
            None => Ok(text),
            Some((at, _)) => {
                ctx.complain(self.bad_bytes(&text.as_bytes()[at..]))?;
                Ok(text.chars().map(|c| if charset.holds(c) { c } else { '?' }).collect::<String>().into())
            }
        }
    }

    /// CHAR and VARCHAR count characters, the TEXT types bytes.
    fn within_length(&self, text: Text, ctx: &mut EvalContext) -> Result<Text> {
        let length = self.ty.length as usize;
        if text.len() <= length {
            return Ok(text);
        }
        let end = match self.ty.kind() {
            Kind::Char | Kind::VarChar => text.char_indices().nth(length).map(|(end, _)| end),
            _ => Some((0..=length).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0)),
        };
        let Some(end) = end else {
            return Ok(text);
        };
        if text[end..].bytes().any(|byte| byte != b' ') {
            self.too_long(ctx)?;
        } else if self.ty.kind() != Kind::Char {
            ctx.warnings.push(Level::Note, self.truncated());
        }
        Ok(Text::new(&text[..end]))
    }
}

#[cfg(test)]
mod tests;
