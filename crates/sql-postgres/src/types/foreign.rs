//! Columns of tables that another dialect made: the PostgreSQL type in whose form their values are, or are brought.

use datum::Storage;
use datum::temporal::{Date, DateTime, MICROS_PER_SECOND, Span, Time, Timestamp};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Folding, Function, Run};
use query::types::{Type, TypeId};

use crate::error::{PgError, Result, state};
use crate::types::oid::{self, Oid};
use crate::types::registry;
use crate::types::temporal::{field_overflow, is_finite_timestamp, overflow, typmod};
use crate::value::{Decimal, Text, Value};

/// The PostgreSQL type of a column.
#[derive(Clone, Copy, Debug)]
pub struct ForeignType {
    pub oid: Oid,
    pub typmod: i32,
    /// Called with each value of the column where its form is another than the type's.
    pub conversion: Option<&'static Function>,
}

/// The ids of types from here on are another dialect's.
const FOREIGN_BEGIN: u32 = 1 << 31;

/// Returns whether a type is neither PostgreSQL's nor the core's.
pub fn is_foreign(ty: &Type) -> bool {
    let TypeId(id) = ty.id;
    id >= FOREIGN_BEGIN
}

/// The numbers that MySQL's dialect gives to types with narrower bounds than their storage.
mod kind {
    use super::FOREIGN_BEGIN;

    const UNSIGNED: u32 = 1 << 8;
    pub const MEDIUMINT: u32 = FOREIGN_BEGIN | 3;
    pub const MEDIUMINT_UNSIGNED: u32 = MEDIUMINT | UNSIGNED;
    pub const DECIMAL_UNSIGNED: u32 = FOREIGN_BEGIN | 6 | UNSIGNED;
    pub const CHAR: u32 = FOREIGN_BEGIN | 10;
    pub const TINYTEXT: u32 = FOREIGN_BEGIN | 12;
    pub const LONGTEXT: u32 = FOREIGN_BEGIN | 15;
    pub const BINARY: u32 = FOREIGN_BEGIN | 16;
    pub const YEAR: u32 = FOREIGN_BEGIN | 28 | UNSIGNED;
    /// A YEAR without the bit of UNSIGNED.
    pub const YEAR_PLAIN: u32 = FOREIGN_BEGIN | 28;
}

/// Returns the nearest PostgreSQL type of a column that another dialect or none declared. `None`: its values have no form here, and the column is refused by name.
pub fn type_of(ty: &Type) -> Option<ForeignType> {
    let plain = |oid| ForeignType { oid, typmod: -1, conversion: None };
    let changed = |oid, conversion| ForeignType { conversion: Some(conversion), ..plain(oid) };
    let digits = i32::from(ty.scale);
    Some(match ty.storage {
        Storage::Int { bytes: 2, signed: false } if is_year(ty) => changed(oid::INT2, &TO_SIGNED),
        Storage::Int { bytes: 1, signed: false } => changed(oid::INT2, &TO_SIGNED),
        Storage::Int { bytes: 2, signed: false } => changed(oid::INT4, &TO_SIGNED),
        Storage::Int { bytes: 4, signed: false } => changed(oid::INT8, &TO_SIGNED),
        Storage::Int { signed: false, .. } => {
            let typmod = registry::numeric_typmod(UNSIGNED_DIGITS, 0);
            ForeignType { oid: oid::NUMERIC, typmod, conversion: Some(&TO_NUMERIC) }
        }
        Storage::Decimal if is_foreign(ty) => {
            let typmod = registry::numeric_typmod(ty.length as i32, digits);
            ForeignType { typmod, ..plain(oid::NUMERIC) }
        }
        Storage::Date => changed(oid::DATE, &TO_DATE),
        Storage::Timestamp => ForeignType { typmod: digits, ..changed(oid::TIMESTAMP, &TO_TIMESTAMP) },
        Storage::TimestampTz => ForeignType { typmod: digits, ..changed(oid::TIMESTAMPTZ, &TO_TIMESTAMP) },
        Storage::Time => {
            let typmod = typmod::interval_typmod(typmod::FULL_RANGE, digits);
            ForeignType { typmod, ..changed(oid::INTERVAL, &TO_INTERVAL) }
        }
        Storage::Enum | Storage::Set => changed(oid::TEXT, &TO_LABELS),
        Storage::Json if is_foreign(ty) => changed(oid::JSONB, &TO_JSONB),
        storage => plain(registry::undeclared(storage)?),
    })
}

fn is_year(ty: &Type) -> bool {
    matches!(ty.id.0, kind::YEAR | kind::YEAR_PLAIN)
}

/// Returns a value in the form of a column that another dialect declared. An error for a value beyond the column's bounds.
pub fn stored(value: Value, ty: &Type) -> Result<Value> {
    match (ty.storage, value) {
        (Storage::Int { bytes, signed }, value) => {
            let number = integer(&value, bytes, signed).filter(|number| is_within(number, ty));
            number.ok_or_else(|| out_of_range(ty))
        }
        (Storage::Decimal, Value::Decimal(decimal)) => {
            let rounded = decimal.rounded(ty.scale.into());
            let is_wide = rounded.whole_digits() > ty.length.saturating_sub(ty.scale.into());
            let is_below = ty.id.0 == kind::DECIMAL_UNSIGNED && rounded.is_negative();
            match !rounded.is_finite() || is_wide || is_below {
                true => Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")),
                false => Ok(Value::Decimal(rounded)),
            }
        }
        (Storage::Float4, value @ Value::Float(number)) if number.is_finite() => Ok(value),
        (Storage::Float8, value @ Value::Double(number)) if number.is_finite() => Ok(value),
        (Storage::Float4 | Storage::Float8, Value::Float(_) | Value::Double(_)) => Err(out_of_range(ty)),
        (Storage::Text, Value::Text(text)) => stored_text(text, ty),
        (Storage::Bytes, Value::Bytes(bytes)) if bytes.len() <= ty.length as usize => Ok(match ty.id.0 {
            kind::BINARY => {
                let mut padded = bytes.to_vec();
                padded.resize(ty.length as usize, 0);
                Value::bytes(padded)
            }
            _ => Value::Bytes(bytes),
        }),
        (Storage::Bytes, Value::Bytes(_)) => Err(too_long(&format!("bytea of {} bytes", ty.length))),
        (Storage::Date, Value::Int(days)) => {
            let date = Date::from_days_since_2000(days).ok_or_else(|| overflow("date out of range"))?;
            Ok(Value::Date(date))
        }
        (Storage::Timestamp, Value::Int(micros)) => {
            let reading = DateTime::from_micros_since_2000(rounded(micros, ty)?);
            reading.map(Value::DateTime).ok_or_else(|| overflow("timestamp out of range"))
        }
        (Storage::TimestampTz, Value::Int(micros)) => {
            let instant = Timestamp::from_micros_since_2000(rounded(micros, ty)?);
            let known = instant.filter(|instant| (INSTANT_FIRST..INSTANT_END).contains(&instant.0));
            known.map(Value::Timestamp).ok_or_else(|| overflow("timestamp out of range"))
        }
        (Storage::Time, Value::Interval(span)) => {
            let out_of_range = || overflow("interval out of range");
            let span = typmod::adjust_interval(span, typmod::interval_typmod(typmod::FULL_RANGE, ty.scale.into()))?;
            let micros = i64::try_from(span.length()).ok().filter(|_| span.months == 0).ok_or_else(out_of_range)?;
            Time::checked(micros).map(Value::Time).ok_or_else(out_of_range)
        }
        (Storage::Enum, Value::Text(text)) => {
            let at = ty.members().iter().position(|member| &**member == text.as_str());
            at.map(|at| Value::UInt(at as u64 + 1)).ok_or_else(|| no_member(text.as_str()))
        }
        (Storage::Set, Value::Text(text)) => bits_of(text.as_str(), ty).map(Value::UInt),
        (Storage::Json, Value::Json(json)) => {
            let node = json.node().with_machine_numbers().ok_or_else(|| out_of_range(ty))?;
            Ok(Value::Json(node.into()))
        }
        _ => Err(PgError::new(state::FEATURE_NOT_SUPPORTED, "the column's type is another dialect's")),
    }
}

/// Returns whether an integer is within the bounds of a type that are narrower than its storage.
fn is_within(number: &Value, ty: &Type) -> bool {
    match (ty.id.0, number) {
        (kind::MEDIUMINT, Value::Int(number)) => (-(1 << 23)..1 << 23).contains(number),
        (kind::MEDIUMINT_UNSIGNED, Value::UInt(number)) => *number < 1 << 24,
        (kind::YEAR | kind::YEAR_PLAIN, Value::UInt(number)) => *number == 0 || YEARS.contains(number),
        _ => true,
    }
}

fn stored_text(text: Text, ty: &Type) -> Result<Value> {
    if !text.chars().all(|letter| ty.collation.charset().holds(letter)) {
        let message = "character has no equivalent in the character set of the column";
        return Err(PgError::new(state::UNTRANSLATABLE_CHARACTER, message));
    }
    let is_bounded_in_bytes = (kind::TINYTEXT..=kind::LONGTEXT).contains(&ty.id.0);
    // A CHAR has no spaces at its end.
    let kept = if ty.id.0 == kind::CHAR { text.trim_end_matches(' ') } else { text.as_str() };
    let length = if is_bounded_in_bytes { kept.len() } else { kept.chars().count() };
    match length <= ty.length as usize {
        true if kept.len() == text.len() => Ok(Value::Text(text)),
        true => Ok(Value::text(kept)),
        false => Err(too_long(&format!("character varying({})", ty.length))),
    }
}

/// Returns the microseconds with the digits of the column. The infinities have no form there.
fn rounded(micros: i64, ty: &Type) -> Result<i64> {
    match is_finite_timestamp(micros) {
        true => Ok(typmod::adjust_timestamp(micros, ty.scale.into())),
        false => Err(overflow("timestamp out of range")),
    }
}

/// Returns the bits of a set's members from their text.
fn bits_of(text: &str, ty: &Type) -> Result<u64> {
    let mut bits = 0;
    for name in text.split(',').filter(|_| !text.is_empty()) {
        let at = ty.members().iter().position(|member| &**member == name).ok_or_else(|| no_member(name))?;
        bits |= 1 << at;
    }
    Ok(bits)
}

fn integer(value: &Value, bytes: u8, signed: bool) -> Option<Value> {
    let number = match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        Value::Decimal(decimal) => decimal.rounded(0).small()?,
        _ => return None,
    };
    let bits = u32::from(bytes) * 8;
    match signed {
        true => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&number).then_some(Value::Int(number as i64)),
        false => (0..1i128 << bits).contains(&number).then_some(Value::UInt(number as u64)),
    }
}

#[cold]
fn no_member(text: &str) -> PgError {
    PgError::new(state::CHECK_VIOLATION, format!("value \"{text}\" is no member of the column's type"))
}

#[cold]
fn out_of_range(ty: &Type) -> PgError {
    let name = type_of(ty).map_or("integer".to_owned(), |near| registry::format_type(near.oid, None));
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"))
}

#[cold]
fn too_long(name: &str) -> PgError {
    PgError::new(state::STRING_DATA_RIGHT_TRUNCATION, format!("value too long for type {name}"))
}

/// Decimal digits of the greatest unsigned number of 8 bytes.
const UNSIGNED_DIGITS: i32 = 20;
/// The years that a YEAR can be besides 0.
const YEARS: std::ops::RangeInclusive<u64> = 1901..=2155;
/// The instants that a TIMESTAMP can be, in microseconds since 1970: 32 bits of seconds without the first.
const INSTANT_FIRST: i64 = MICROS_PER_SECOND;
const INSTANT_END: i64 = (1 << 31) * MICROS_PER_SECOND;

const fn conversion(name: &'static [&'static str], run: Conversion) -> Function {
    Function { folding: Folding::Coercion, ..Function::new(name, Run::Strict(run)) }
}

type Conversion = fn(&Call, &[Value], &mut EvalContext) -> datum::Result<Value>;

static TO_SIGNED: Function = conversion(&["int8"], to_signed);
static TO_NUMERIC: Function = conversion(&["numeric"], to_numeric);
static TO_DATE: Function = conversion(&["date"], to_date);
static TO_TIMESTAMP: Function = conversion(&["timestamp"], to_timestamp);
static TO_INTERVAL: Function = conversion(&["interval"], to_interval);
static TO_LABELS: Function = conversion(&["text"], to_labels);
static TO_JSONB: Function = conversion(&["jsonb"], to_jsonb);

fn to_signed(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    Ok(match &values[0] {
        Value::UInt(number) => Value::Int(*number as i64),
        other => other.clone(),
    })
}

fn to_numeric(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    Ok(match &values[0] {
        Value::UInt(number) => Value::Decimal(Decimal::new(i128::from(*number), 0)),
        other => other.clone(),
    })
}

fn to_date(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    let Value::Date(date) = &values[0] else { return Ok(values[0].clone()) };
    Ok(Value::Int(date.days_since_2000().ok_or_else(|| no_date(*date))?))
}

/// Converts a reading or an instant.
fn to_timestamp(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    let (micros, date) = match &values[0] {
        Value::DateTime(reading) => (reading.micros_since_2000(), reading.date),
        Value::Timestamp(instant) => (instant.micros_since_2000(), Date::ZERO),
        other => return Ok(other.clone()),
    };
    Ok(Value::Int(micros.ok_or_else(|| no_date(date))?))
}

fn to_interval(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    Ok(match &values[0] {
        Value::Time(time) => Value::Interval(Span::new(0, 0, time.micros())),
        other => other.clone(),
    })
}

/// Converts the number of an enum's member, or the bits of a set, to the labels.
fn to_labels(call: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    let Value::UInt(number) = &values[0] else { return Ok(values[0].clone()) };
    let ty = call.arguments[0].ty();
    let members = ty.members();
    if ty.storage == Storage::Enum {
        // 0 is the empty string, which stands for a value that was none of the members.
        let label = (*number as usize).checked_sub(1).and_then(|at| members.get(at));
        return Ok(Value::text(label.map_or("", |label| label)));
    }
    let held = members.iter().enumerate().filter(|(at, _)| number >> at & 1 == 1).map(|(_, label)| &**label);
    Ok(Value::text(held.collect::<Vec<_>>().join(",")))
}

fn to_jsonb(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    Ok(match &values[0] {
        Value::Json(json) => Value::Json(json.node().with_decimals().into()),
        other => other.clone(),
    })
}

/// Returns the error of a date that does not exist, the zero date among them.
#[cold]
fn no_date(date: Date) -> datum::Fault {
    field_overflow(&format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use query::types::Collation;

    fn column(id: u32, storage: Storage, length: u32) -> Type {
        Type::plain(storage, TypeId(id), (length, 0), true, Collation::Binary)
    }

    #[test]
    fn values_beyond_the_bounds_of_a_type_are_refused() {
        let int = |bytes, signed| Storage::Int { bytes, signed };
        for (ty, inside, outside) in [
            (column(kind::MEDIUMINT, int(4, true), 9), 8_388_607, 8_388_608),
            (column(kind::MEDIUMINT, int(4, true), 9), -8_388_608, -8_388_609),
            (column(kind::MEDIUMINT_UNSIGNED, int(4, false), 8), 16_777_215, 16_777_216),
            (column(kind::YEAR, int(2, false), 4), 1901, 1900),
            (column(kind::YEAR_PLAIN, int(2, false), 4), 0, 2156),
            (column(FOREIGN_BEGIN | 4, int(4, true), 11), 8_388_608, i64::from(i32::MAX) + 1),
        ] {
            assert!(stored(Value::Int(inside), &ty).is_ok(), "{inside}");
            assert_eq!(stored(Value::Int(outside), &ty).unwrap_err().state, "22003", "{outside}");
        }
    }

    #[test]
    fn texts_and_bytes_get_the_form_of_their_column() {
        let char = column(kind::CHAR, Storage::Text, 3);
        let char = Type { collation: Collation::Utf8Bin, ..char };
        assert_eq!(stored(Value::text("ab  "), &char).unwrap(), Value::text("ab"));
        assert!(stored(Value::text("abcd"), &char).is_err());
        let binary = column(kind::BINARY, Storage::Bytes, 3);
        assert_eq!(stored(Value::bytes(b"a"), &binary).unwrap(), Value::bytes(b"a\0\0"));
        let tiny = Type { collation: Collation::Utf8Bin, ..column(kind::TINYTEXT, Storage::Text, 255) };
        assert!(stored(Value::text("\u{e9}".repeat(127)), &tiny).is_ok());
        assert!(stored(Value::text("\u{e9}".repeat(128)), &tiny).is_err());
    }

    #[test]
    fn a_date_that_does_not_exist_has_no_form() {
        let fault = no_date(Date::ZERO);
        assert!(format!("{fault:?}").contains("0000-00-00"), "{fault:?}");
        let date = column(FOREIGN_BEGIN | 24, Storage::Date, 0);
        assert_eq!(stored(Value::Int(0), &date).unwrap(), Value::Date(Date::new(2000, 1, 1)));
        assert_eq!(stored(Value::Int(i64::from(i32::MAX)), &date).unwrap_err().state, "22008");
    }
}
