//! Index coercion by MySQL's rules: turns a value that a column is compared with into the column's own form, if that keeps the meaning of the comparison.
//!
//! A value without an exact form is not looked up. The scan is wider then, and the condition, which is rechecked for each row, decides.

use crate::scalar::store::store;
use crate::scalar::temporal;
use crate::types::{Kind, MysqlType as _, Type};
use crate::value::{Decimal, Value};
use query::nodes::assignment::Place;
use query::nodes::comparison::{Coerced, ComparisonType};
use query::nodes::context::EvalContext;

/// See `Comparator::may_use_index`.
pub fn may_use_index(compared_as: ComparisonType, ty: &Type) -> bool {
    match compared_as {
        ComparisonType::Dynamic => !matches!(ty.kind(), Kind::Enum | Kind::Set | Kind::Bit | Kind::Float | Kind::Json),
        ComparisonType::Integer => ty.kind().is_integer() || ty.kind() == Kind::Decimal || ty.kind() == Kind::Year,
        // `id = '5'` is compared as doubles, and looked up as an integer if the text is one.
        ComparisonType::Decimal | ComparisonType::Double => ty.kind().is_number() && ty.kind() != Kind::Float,
        ComparisonType::Text(collation) => {
            ty.kind().is_text() && !matches!(ty.kind(), Kind::Enum | Kind::Set) && ty.collation == collation
        }
        ComparisonType::Bytes => ty.kind().is_bytes(),
        ComparisonType::DateTime => matches!(ty.kind(), Kind::Date | Kind::DateTime | Kind::Timestamp),
        ComparisonType::Time => ty.kind() == Kind::Time,
        ComparisonType::Json => false,
    }
}

/// See `ComparisonRules::coerce`.
pub fn coerce(value: &Value, ty: &Type, ctx: &EvalContext) -> Coerced {
    if value.is_null() {
        return Coerced::Null;
    }
    match ty.kind() {
        kind if kind.is_integer() => integer(value, ty),
        Kind::Year => match value {
            Value::UInt(year) if *year == 0 || (1901..=2155).contains(year) => Coerced::Exact(value.clone()),
            Value::Int(year) if (1901..=2155).contains(year) => Coerced::Exact(Value::UInt(*year as u64)),
            _ => Coerced::Unusable,
        },
        Kind::Decimal => decimal(value, ty),
        Kind::Double => match value {
            Value::Double(_) => Coerced::Exact(value.clone()),
            Value::Int(number) if number.unsigned_abs() <= 1 << 53 => Coerced::Exact(Value::Double(*number as f64)),
            _ => Coerced::Unusable,
        },
        Kind::Date | Kind::DateTime | Kind::Timestamp | Kind::Time => temporal(value, ty, ctx),
        kind if kind.is_bytes() => match value {
            Value::Bytes(_) => Coerced::Exact(value.clone()),
            Value::Text(text) => Coerced::Exact(Value::bytes(text.as_bytes())),
            _ => Coerced::Unusable,
        },
        Kind::Enum | Kind::Set => Coerced::Unusable,
        kind if kind.is_text() => match value {
            Value::Text(_) => Coerced::Exact(value.clone()),
            _ => Coerced::Unusable,
        },
        _ => Coerced::Unusable,
    }
}

fn integer(value: &Value, ty: &Type) -> Coerced {
    let number: i128 = match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        Value::Decimal(decimal) if decimal.is_nan() => return Coerced::Above,
        Value::Decimal(decimal) if decimal.truncated(0) == *decimal => decimal.to_whole(),
        Value::Double(double) if double.fract() == 0.0 && double.abs() < (1u64 << 53) as f64 => *double as i128,
        // Compared as doubles: exact where a double is.
        Value::Text(text) => match text.parse::<i64>() {
            Ok(number) if number.unsigned_abs() < 1 << 53 => i128::from(number),
            _ => return Coerced::Unusable,
        },
        _ => return Coerced::Unusable,
    };
    let Some((low, high)) = ty.integer_range() else { return Coerced::Unusable };
    if number < i128::from(low) {
        Coerced::Below
    } else if number > i128::from(high) {
        Coerced::Above
    } else if ty.is_unsigned() {
        Coerced::Exact(Value::UInt(number as u64))
    } else {
        Coerced::Exact(Value::Int(number as i64))
    }
}

fn decimal(value: &Value, ty: &Type) -> Coerced {
    let decimal = match value {
        Value::Int(number) => Decimal::new(i128::from(*number), 0),
        Value::UInt(number) => Decimal::new(i128::from(*number), 0),
        Value::Decimal(decimal) => decimal.clone(),
        _ => return Coerced::Unusable,
    };
    let rounded = decimal.rounded(ty.scale.into());
    if rounded != decimal || rounded.whole_digits() > ty.length - u32::from(ty.scale) {
        return Coerced::Unusable;
    }
    Coerced::Exact(Value::Decimal(rounded))
}

fn temporal(value: &Value, ty: &Type, ctx: &EvalContext) -> Coerced {
    if ty.kind() == Kind::Time {
        return match value {
            Value::Time(time) if time.truncated(ty.scale) == *time => Coerced::Exact(value.clone()),
            _ => Coerced::Unusable,
        };
    }
    let reading = match value {
        Value::DateTime(reading) => *reading,
        Value::Date(date) => crate::value::DateTime::new(*date, 0),
        Value::Timestamp(at) if ty.kind() == Kind::Timestamp => return Coerced::Exact(Value::Timestamp(*at)),
        Value::Text(text) => {
            // Text that is a date beyond doubt: what needs a warning is left to the comparison.
            let mut scratch = EvalContext::new();
            scratch.changes_rows = true;
            let place = Place { column: "", row: 1 };
            let stored = store(Value::text(text.as_str()), &Type::temporal(Kind::DateTime, 6), place, &mut scratch);
            match stored {
                Ok(Value::DateTime(reading)) if scratch.warnings.count() == 0 => reading,
                _ => return Coerced::Unusable,
            }
        }
        _ => return Coerced::Unusable,
    };
    match ty.kind() {
        Kind::Date if reading.micros_of_day() == 0 => Coerced::Exact(Value::Date(reading.date)),
        Kind::DateTime if reading.truncated(ty.scale) == reading => Coerced::Exact(Value::DateTime(reading)),
        Kind::Timestamp if reading.truncated(ty.scale) == reading => match temporal::timestamp(&ctx.zone, reading) {
            Some(at) => Coerced::Exact(Value::Timestamp(at)),
            None => Coerced::Unusable,
        },
        _ => Coerced::Unusable,
    }
}
