//! Comparison: the type as which two values meet, their order, and the forms in which one is looked up in an index on the other.
//!
//! The binder resolves operators first, so both sides have a type of one operator class; whole numbers, numerics and floats may meet as they are.

use std::cmp::Ordering;

use datum::value::RecordField;
use datum::{Array, Fault, Record, Shape, Storage, keyed};
use query::nodes::comparison::{Coerced, Comparator, ComparisonRules, ComparisonType};
use query::nodes::context::EvalContext;
use query::types::{Collation, Type};

use crate::error::{PgError, state};
use crate::types::{oid, record, registry, user};
use crate::value::{Decimal, Value};

/// The dialect's rules of comparison.
pub static RULES: ComparisonRules = ComparisonRules { order, hash_type, may_use_index, coerce };

/// Returns the comparator of values that are compared as this type.
pub fn by(ty: ComparisonType) -> Comparator {
    Comparator { ty, rules: &RULES }
}

/// Returns the comparator of the btree operator class that both types are of. `None`: their values have no order, or two collations conflict.
pub fn comparator(a: &Type, b: &Type) -> Option<Comparator> {
    use ComparisonType::{Bytes, Decimal, Double, Dynamic, Integer, Json, Text};
    let (a_class, b_class) = (class(a)?, class(b)?);
    let ty = match (a_class, b_class) {
        (Text(one), Text(other)) if one == other => a_class,
        (Text(one), Text(Collation::Binary)) | (Text(Collation::Binary), Text(one)) => Text(one),
        (Integer, Integer) | (Bytes, Bytes) | (Json, Json) => a_class,
        (Dynamic, Dynamic) if a.storage == b.storage => a_class,
        (Double, Integer | Decimal | Double) | (Integer | Decimal, Double) => Double,
        (Decimal, Integer | Decimal) | (Integer, Decimal) => Decimal,
        _ => return None,
    };
    Some(by(ty))
}

/// Returns the type as which values of one type are compared with each other; `None` if they have no order.
pub fn class(ty: &Type) -> Option<ComparisonType> {
    let form = user::form(registry::oid_of(ty));
    if matches!(form, oid::JSON | oid::JSONPATH | oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT) {
        return None;
    }
    if ty.storage == Storage::Array {
        let element = registry::element_of(form)?;
        class(&registry::column_type(element.oid, -1, true))?;
        return Some(ComparisonType::Dynamic);
    }
    class_of(ty.shape())
}

fn class_of(shape: Shape) -> Option<ComparisonType> {
    Some(match shape.storage {
        Storage::Int { .. } => ComparisonType::Integer,
        Storage::Float4 | Storage::Float8 => ComparisonType::Double,
        Storage::Decimal => ComparisonType::Decimal,
        Storage::Text => ComparisonType::Text(shape.collation),
        Storage::Bytes => ComparisonType::Bytes,
        // The core has no name for it; the values know how they compare.
        Storage::Interval | Storage::Record | Storage::Keyed => ComparisonType::Dynamic,
        Storage::Jsonb => ComparisonType::Json,
        _ => return None,
    })
}

/// Returns the order of two values that are not NULL.
pub fn order(ty: ComparisonType, a: &Value, b: &Value, ctx: &mut EvalContext) -> datum::Result<Ordering> {
    Ok(match (a, b) {
        (Value::Int(a), Value::Int(b)) if ty != ComparisonType::Double => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) if ty != ComparisonType::Double => a.cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) if ty != ComparisonType::Double => a.cmp(b),
        (Value::Interval(a), Value::Interval(b)) => a.length().cmp(&b.length()),
        (Value::Json(a), Value::Json(b)) => a.node().compare_jsonb(b.node()),
        (Value::Double(a), Value::Double(b)) => float_order(*a, *b),
        (Value::Array(a), Value::Array(b)) => return array_order(a, b, ctx),
        (Value::Record(a), Value::Record(b)) => return record_order(a, b, ctx),
        (Value::Bytes(a), Value::Bytes(b)) if ty == ComparisonType::Dynamic => keyed::compare(a, b),
        (Value::Text(a), Value::Text(b)) => match ty {
            ComparisonType::Text(collation) => collation.compare(a.as_bytes(), b.as_bytes()),
            _ => a.as_bytes().cmp(b.as_bytes()),
        },
        (a, b) if a.as_string_bytes().is_some() && b.as_string_bytes().is_some() => {
            a.as_string_bytes().cmp(&b.as_string_bytes())
        }
        (a, b) => match (to_integer(a), to_integer(b)) {
            (Some(a), Some(b)) if ty != ComparisonType::Double => a.cmp(&b),
            _ if ty == ComparisonType::Decimal && !is_float(a) && !is_float(b) => to_decimal(a).cmp(&to_decimal(b)),
            _ => float_order(to_double(a), to_double(b)),
        },
    })
}

/// Elements between two looks for interrupts.
const ELEMENTS_CHECKED: usize = 16 << 10;

/// Returns the order of two elements of a shape, neither of which is NULL.
pub fn element_order(shape: Shape, a: &Value, b: &Value, ctx: &mut EvalContext) -> datum::Result<Ordering> {
    match class_of(shape) {
        Some(ty) => order(ty, a, b, ctx),
        None => Err(Fault::corrupt("values without an order")),
    }
}

/// Compares element by element, a NULL as greater than every value; then the numbers of elements, the dimensions and their lower bounds.
fn array_order(a: &Array, b: &Array, ctx: &mut EvalContext) -> datum::Result<Ordering> {
    for (at, (left, right)) in a.values().iter().zip(b.values()).enumerate() {
        let order = match (left.is_null(), right.is_null()) {
            (false, false) => element_order(a.element(), left, right, ctx)?,
            (left, right) => left.cmp(&right),
        };
        if order.is_ne() {
            return Ok(order);
        }
        if at % ELEMENTS_CHECKED == ELEMENTS_CHECKED - 1 {
            ctx.check_killed()?;
        }
    }
    let lengths = |array: &Array| array.dimensions().iter().map(|dimension| dimension.length).collect::<Vec<_>>();
    let lowers = |array: &Array| array.dimensions().iter().map(|dimension| dimension.lower).collect::<Vec<_>>();
    let by_count = a.len().cmp(&b.len()).then(a.dimensions().len().cmp(&b.dimensions().len()));
    Ok(by_count.then_with(|| lengths(a).cmp(&lengths(b))).then_with(|| lowers(a).cmp(&lowers(b))))
}

/// Compares field by field, a NULL as greater than every value. Fields of two types do not compare, nor do records that are equal but for their length.
fn record_order(a: &Record, b: &Record, ctx: &mut EvalContext) -> datum::Result<Ordering> {
    for (at, ((field, left), (other, right))) in a.fields().zip(b.fields()).enumerate() {
        if field.number != other.number {
            let shown = |field: &RecordField| registry::format_type(field.number, None);
            let text = format!(
                "cannot compare dissimilar column types {} and {} at record column {}",
                shown(field),
                shown(other),
                at + 1
            );
            return Err(PgError::new(state::DATATYPE_MISMATCH, text).into());
        }
        let Some(ty) = class(&record::type_of(field)).filter(|_| field.number != oid::UNKNOWN) else {
            let name = registry::format_type(field.number, None);
            let text = format!("could not identify an equality operator for type {name}");
            return Err(PgError::new(state::UNDEFINED_FUNCTION, text).into());
        };
        let order = match (left.is_null(), right.is_null()) {
            (false, false) => order(ty, left, right, ctx)?,
            (left, right) => left.cmp(&right),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    match a.values().len() == b.values().len() {
        true => Ok(Ordering::Equal),
        false => {
            let text = "cannot compare record types with different numbers of columns";
            Err(PgError::new(state::DATATYPE_MISMATCH, text).into())
        }
    }
}

/// Returns the order of floats: both zeros are equal; NaN equals NaN and is greater than every number.
pub fn float_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn is_float(value: &Value) -> bool {
    matches!(value, Value::Float(_) | Value::Double(_))
}

fn to_integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::UInt(number) => Some(i128::from(*number)),
        _ => None,
    }
}

fn to_decimal(value: &Value) -> Decimal {
    match value {
        Value::Decimal(decimal) => decimal.clone(),
        other => Decimal::new(to_integer(other).unwrap_or_default(), 0),
    }
}

fn to_double(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Float(number) => f64::from(*number),
        Value::Double(number) => *number,
        Value::Decimal(decimal) => decimal.to_f64(),
        _ => f64::NAN,
    }
}

/// See `Comparator::hash_type`.
fn hash_type(ty: ComparisonType, a: &Type, b: &Type) -> Option<Type> {
    let (a, b) = (a.storage, b.storage);
    let is_exact = |storage: Storage| matches!(storage, Storage::Int { .. } | Storage::Decimal);
    let is_float = |storage: Storage| matches!(storage, Storage::Float4 | Storage::Float8);
    let key = |storage: Storage, collation: Collation| {
        let ty = Type::undeclared(storage, (0, Type::ANY_SCALE), true);
        Some(Type { collation, ..ty })
    };
    match ty {
        ComparisonType::Integer => match (a, b) {
            (Storage::Int { signed, .. }, Storage::Int { signed: other, .. }) if signed == other => {
                key(Storage::Int { bytes: 8, signed }, Collation::Binary)
            }
            _ => None,
        },
        ComparisonType::Decimal if is_exact(a) && is_exact(b) => key(Storage::Decimal, Collation::Binary),
        ComparisonType::Double if is_float(a) && is_float(b) => key(Storage::Float8, Collation::Binary),
        ComparisonType::Text(collation) if a == Storage::Text && b == Storage::Text => key(Storage::Text, collation),
        ComparisonType::Dynamic | ComparisonType::Json if a == b => key(a, Collation::Binary),
        ComparisonType::Bytes if a == Storage::Bytes && b == Storage::Bytes => key(Storage::Bytes, Collation::Binary),
        _ => None,
    }
}

/// See `Comparator::may_use_index`.
fn may_use_index(ty: ComparisonType, column: &Type) -> bool {
    match ty {
        ComparisonType::Integer => matches!(column.storage, Storage::Int { .. }),
        ComparisonType::Decimal => matches!(column.storage, Storage::Int { .. } | Storage::Decimal),
        ComparisonType::Double => {
            matches!(column.storage, Storage::Int { .. } | Storage::Float4 | Storage::Float8)
        }
        ComparisonType::Text(collation) => column.storage == Storage::Text && column.collation == collation,
        ComparisonType::Bytes => column.storage == Storage::Bytes,
        ComparisonType::Dynamic => {
            matches!(column.storage, Storage::Interval | Storage::Array | Storage::Record | Storage::Keyed)
        }
        ComparisonType::Json => column.storage == Storage::Jsonb,
        _ => false,
    }
}

/// See `ComparisonRules::coerce`.
fn coerce(value: &Value, column: &Type, _: &EvalContext) -> Coerced {
    if value.is_null() {
        return Coerced::Null;
    }
    let exact = || Coerced::Exact(value.clone());
    match (column.storage, value) {
        (Storage::Int { bytes, signed }, _) => integer(value, bytes, signed),
        (Storage::Decimal, Value::Int(_) | Value::UInt(_) | Value::Decimal(_)) => {
            Coerced::Exact(Value::Decimal(to_decimal(value)))
        }
        // The comparison is one of doubles, so this is the very value that rows are compared with.
        (Storage::Float8, Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Float(_) | Value::Double(_)) => {
            Coerced::Exact(Value::Double(to_double(value)))
        }
        (Storage::Float4, Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Float(_) | Value::Double(_)) => {
            let double = to_double(value);
            let single = double as f32;
            if float_order(f64::from(single), double).is_eq() {
                Coerced::Exact(Value::Float(single))
            } else {
                Coerced::Unusable
            }
        }
        (Storage::Text, Value::Text(_))
        | (Storage::Bytes | Storage::Keyed, Value::Bytes(_))
        | (Storage::Interval, Value::Interval(_))
        | (Storage::Jsonb, Value::Json(_))
        | (Storage::Array, Value::Array(_))
        | (Storage::Record, Value::Record(_)) => exact(),
        _ => Coerced::Unusable,
    }
}

/// Whole numbers of a smaller magnitude have doubles of their own.
const DOUBLE_WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

fn integer(value: &Value, bytes: u8, signed: bool) -> Coerced {
    let number = match value {
        Value::Decimal(decimal) => {
            let whole = decimal.truncated(0);
            if whole != *decimal {
                return Coerced::Unusable;
            }
            whole.small()
        }
        Value::Float(_) | Value::Double(_) => {
            let double = to_double(value);
            if double.is_nan() || double == f64::INFINITY {
                return Coerced::Above;
            }
            if double == f64::NEG_INFINITY {
                return Coerced::Below;
            }
            (double.fract() == 0.0 && double.abs() < DOUBLE_WHOLE_MAX).then_some(double as i128)
        }
        other => to_integer(other),
    };
    let Some(number) = number else { return Coerced::Unusable };
    let bits = u32::from(bytes) * 8;
    let (low, high) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    if number < low {
        Coerced::Below
    } else if number > high {
        Coerced::Above
    } else if signed {
        Coerced::Exact(Value::Int(number as i64))
    } else {
        Coerced::Exact(Value::UInt(number as u64))
    }
}

#[cfg(test)]
mod tests;
