//! Whether a value that a column is compared with can be looked up in the column's index: it must be turned into the column's own form without changing what the comparison means.
//!
//! Whatever does not fit exactly is not looked up: the scan is wider, and the condition, which is always looked at again, decides.

use crate::nodes::expr::Domain;
use crate::scalar::context::EvalContext;
use crate::scalar::store::{Place, store};
use crate::scalar::temporal;
use crate::types::{Kind, Type};
use crate::value::{Decimal, Value};

#[derive(Debug, PartialEq)]
pub enum Fit {
    Exact(Value),
    /// Less than, or greater than, every value of the column.
    Below,
    Above,
    /// The comparison holds for no row.
    Null,
    Unusable,
}

/// Could any value fit, going by types alone?
pub fn is_promising(ty: &Type, domain: Domain) -> bool {
    match domain {
        Domain::Dynamic => !matches!(ty.kind, Kind::Enum | Kind::Set | Kind::Bit | Kind::Float | Kind::Json),
        Domain::Integer => ty.kind.is_integer() || ty.kind == Kind::Decimal || ty.kind == Kind::Year,
        Domain::Decimal | Domain::Double => ty.kind.is_number() && ty.kind != Kind::Float,
        Domain::Text(collation) => {
            ty.kind.is_text() && !matches!(ty.kind, Kind::Enum | Kind::Set) && ty.collation == collation
        }
        Domain::Bytes => ty.kind.is_bytes(),
        Domain::DateTime => matches!(ty.kind, Kind::Date | Kind::DateTime | Kind::Timestamp),
        Domain::Time => ty.kind == Kind::Time,
        Domain::Json => false,
    }
}

pub fn fit(value: &Value, ty: &Type, ctx: &EvalContext) -> Fit {
    if value.is_null() {
        return Fit::Null;
    }
    match ty.kind {
        kind if kind.is_integer() => integer(value, ty),
        Kind::Year => match value {
            Value::UInt(year) if *year == 0 || (1901..=2155).contains(year) => Fit::Exact(value.clone()),
            Value::Int(year) if (1901..=2155).contains(year) => Fit::Exact(Value::UInt(*year as u64)),
            _ => Fit::Unusable,
        },
        Kind::Decimal => decimal(value, ty),
        Kind::Double => match value {
            Value::Double(_) => Fit::Exact(value.clone()),
            Value::Int(number) if number.unsigned_abs() <= 1 << 53 => Fit::Exact(Value::Double(*number as f64)),
            _ => Fit::Unusable,
        },
        Kind::Date | Kind::DateTime | Kind::Timestamp | Kind::Time => temporal(value, ty, ctx),
        kind if kind.is_bytes() => match value {
            Value::Bytes(_) => Fit::Exact(value.clone()),
            Value::Text(text) => Fit::Exact(Value::bytes(text.as_bytes())),
            _ => Fit::Unusable,
        },
        Kind::Enum | Kind::Set => Fit::Unusable,
        kind if kind.is_text() => match value {
            Value::Text(_) => Fit::Exact(value.clone()),
            _ => Fit::Unusable,
        },
        _ => Fit::Unusable,
    }
}

fn integer(value: &Value, ty: &Type) -> Fit {
    let number: i128 = match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        Value::Decimal(decimal) if decimal.truncated(0) == *decimal => decimal.to_whole(),
        Value::Double(double) if double.fract() == 0.0 && double.abs() < (1u64 << 53) as f64 => *double as i128,
        // Compared as doubles: exact where a double is.
        Value::Text(text) => match text.parse::<i64>() {
            Ok(number) if number.unsigned_abs() < 1 << 53 => i128::from(number),
            _ => return Fit::Unusable,
        },
        _ => return Fit::Unusable,
    };
    let Some((low, high)) = ty.integer_range() else { return Fit::Unusable };
    if number < i128::from(low) {
        Fit::Below
    } else if number > i128::from(high) {
        Fit::Above
    } else if ty.unsigned {
        Fit::Exact(Value::UInt(number as u64))
    } else {
        Fit::Exact(Value::Int(number as i64))
    }
}

fn decimal(value: &Value, ty: &Type) -> Fit {
    let decimal = match value {
        Value::Int(number) => Decimal::new(i128::from(*number), 0),
        Value::UInt(number) => Decimal::new(i128::from(*number), 0),
        Value::Decimal(decimal) => decimal.clone(),
        _ => return Fit::Unusable,
    };
    let rounded = decimal.rounded(ty.scale);
    if rounded != decimal || rounded.whole_digits() > ty.length - u32::from(ty.scale) {
        return Fit::Unusable;
    }
    Fit::Exact(Value::Decimal(rounded))
}

fn temporal(value: &Value, ty: &Type, ctx: &EvalContext) -> Fit {
    if ty.kind == Kind::Time {
        return match value {
            Value::Time(time) if time.truncated(ty.scale) == *time => Fit::Exact(value.clone()),
            _ => Fit::Unusable,
        };
    }
    let reading = match value {
        Value::DateTime(reading) => *reading,
        Value::Date(date) => crate::value::DateTime::new(*date, 0),
        Value::Timestamp(at) if ty.kind == Kind::Timestamp => return Fit::Exact(Value::Timestamp(*at)),
        Value::Text(text) => {
            // Text that is a date beyond doubt: what needs a warning is left to the comparison.
            let mut scratch = EvalContext { changes_rows: true, ..EvalContext::new() };
            let place = Place { column: "", row: 1 };
            let stored = store(Value::text(text.as_str()), &Type::temporal(Kind::DateTime, 6), place, &mut scratch);
            match stored {
                Ok(Value::DateTime(reading)) if scratch.warnings.count() == 0 => reading,
                _ => return Fit::Unusable,
            }
        }
        _ => return Fit::Unusable,
    };
    match ty.kind {
        Kind::Date if reading.micros_of_day() == 0 => Fit::Exact(Value::Date(reading.date)),
        Kind::DateTime if reading.truncated(ty.scale) == reading => Fit::Exact(Value::DateTime(reading)),
        Kind::Timestamp if reading.truncated(ty.scale) == reading => match temporal::timestamp(&ctx.zone, reading) {
            Some(at) => Fit::Exact(Value::Timestamp(at)),
            None => Fit::Unusable,
        },
        _ => Fit::Unusable,
    }
}
