//! Comparisons by the btree operators of PostgreSQL's types, as the core evaluates them and looks them up in indexes.
//!
//! Both sides of a comparison come in the forms of their types; the operator was chosen by these types, so a value says by its variant how it is compared.

use std::cmp::Ordering;

use datum::{Fault, Result, Storage, float};
use query::nodes::comparison::{Coerced, Comparator, ComparisonRules, ComparisonType};
use query::nodes::context::EvalContext;
use query::types::{Collation, Type};

use crate::types::oid::{self, Oid};
use crate::types::registry::{BPCHAR_COLLATION, column_type};
use crate::value::Value;

static RULES: ComparisonRules = ComparisonRules { order, hash_type, may_use_index, coerce };

/// Returns the comparator of an operator over these types; `None` if the operator must be called, because their values differ in form.
pub fn comparator(left: Oid, right: Oid) -> Option<Comparator> {
    let ty = comparison_type(left)?;
    let is_same_form = match ty {
        // Each kind of date and time counts from its own zero in its own unit.
        ComparisonType::Integer => class(left) == class(right),
        ty => comparison_type(right) == Some(ty),
    };
    is_same_form.then_some(Comparator { ty, rules: &RULES })
}

/// Returns types whose integers compare with each other.
fn class(ty: Oid) -> Oid {
    match ty {
        oid::INT2 | oid::INT4 | oid::INT8 => oid::INT8,
        oid::REGPROC
        | oid::REGPROCEDURE
        | oid::REGOPER
        | oid::REGOPERATOR
        | oid::REGCLASS
        | oid::REGTYPE
        | oid::REGNAMESPACE
        | oid::REGROLE
        | oid::REGCOLLATION => oid::OID,
        other => other,
    }
}

fn comparison_type(ty: Oid) -> Option<ComparisonType> {
    Some(match class(ty) {
        oid::INT8 | oid::OID | oid::BOOL | oid::CHAR | oid::DATE | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            ComparisonType::Integer
        }
        oid::FLOAT4 | oid::FLOAT8 => ComparisonType::Double,
        oid::NUMERIC => ComparisonType::Decimal,
        oid::BPCHAR => ComparisonType::Text(BPCHAR_COLLATION),
        oid::TEXT | oid::VARCHAR | oid::NAME => ComparisonType::Text(Collation::Binary),
        oid::BYTEA | oid::UUID | oid::TIMETZ => ComparisonType::Bytes,
        oid::INTERVAL => ComparisonType::Time,
        _ => return None,
    })
}

fn order(ty: ComparisonType, a: &Value, b: &Value, _: &mut EvalContext) -> Result<Ordering> {
    Ok(match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::Int(a), Value::UInt(b)) => u64::try_from(*a).map_or(Ordering::Less, |a| a.cmp(b)),
        (Value::UInt(a), Value::Int(b)) => u64::try_from(*b).map_or(Ordering::Greater, |b| a.cmp(&b)),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Interval(a), Value::Interval(b)) => a.cmp(b),
        (a, b) => match (double(a), double(b)) {
            (Some(a), Some(b)) => float::order(a, b),
            _ => strings(ty, a, b)?,
        },
    })
}

fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(f64::from(*number)),
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

fn strings(ty: ComparisonType, a: &Value, b: &Value) -> Result<Ordering> {
    let (Some(a), Some(b)) = (a.as_string_bytes(), b.as_string_bytes()) else {
        return Err(Fault::corrupt("values that do not compare"));
    };
    let collation = if let ComparisonType::Text(collation) = ty { collation } else { Collation::Binary };
    Ok(collation.compare(a, b))
}

fn hash_type(ty: ComparisonType, a: &Type, b: &Type) -> Option<Type> {
    match ty {
        ComparisonType::Integer => {
            let signed = |ty: &Type| match ty.storage {
                Storage::Int { signed, .. } => Some(signed),
                _ => None,
            };
            let is_same = signed(a)? == signed(b)?;
            is_same.then(|| column_type(if signed(a) == Some(true) { oid::INT8 } else { oid::OID }, -1, true))
        }
        ComparisonType::Text(collation) => {
            let is_text = a.storage == Storage::Text && b.storage == Storage::Text;
            let ty = column_type(oid::TEXT, -1, true);
            is_text.then_some(Type { collation, ..ty })
        }
        _ => (a.storage == b.storage).then(|| a.clone().with_nullable(true)),
    }
}

fn may_use_index(ty: ComparisonType, column: &Type) -> bool {
    match (ty, column.storage) {
        (ComparisonType::Integer, Storage::Int { .. })
        | (ComparisonType::Double, Storage::Float4 | Storage::Float8)
        | (ComparisonType::Decimal, Storage::Decimal)
        | (ComparisonType::Bytes, Storage::Bytes) => true,
        (ComparisonType::Time, storage) => storage == Storage::Interval,
        (ComparisonType::Text(collation), Storage::Text) => collation == column.collation,
        _ => false,
    }
}

fn coerce(value: &Value, column: &Type, _: &EvalContext) -> Coerced {
    match (value, column.storage) {
        (Value::Null, _) => Coerced::Null,
        (Value::Int(number), Storage::Int { bytes, signed }) => integer(i128::from(*number), bytes, signed),
        (Value::UInt(number), Storage::Int { bytes, signed }) => integer(i128::from(*number), bytes, signed),
        (Value::Double(number), Storage::Float4) => match f64::from(*number as f32) == *number {
            true => Coerced::Exact(Value::Float(*number as f32)),
            false => Coerced::Unusable,
        },
        (Value::Float(number), Storage::Float8) => Coerced::Exact(Value::Double(f64::from(*number))),
        (Value::Double(_), Storage::Float8)
        | (Value::Float(_), Storage::Float4)
        | (Value::Text(_), Storage::Text)
        | (Value::Bytes(_), Storage::Bytes)
        | (Value::Interval(_), Storage::Interval)
        | (Value::Decimal(_), Storage::Decimal) => Coerced::Exact(value.clone()),
        _ => Coerced::Unusable,
    }
}

fn integer(number: i128, bytes: u8, signed: bool) -> Coerced {
    let bits = u32::from(bytes) * 8;
    let (min, max) = match signed {
        true => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        false => (0, (1_i128 << bits) - 1),
    };
    match () {
        () if number < min => Coerced::Below,
        () if number > max => Coerced::Above,
        () if signed => Coerced::Exact(Value::Int(number as i64)),
        () => Coerced::Exact(Value::UInt(number as u64)),
    }
}
