//! Comparison of two values by MySQL's rules: the types as which values are compared, and their order in each.

use std::cmp::Ordering;

use datum::float;

use crate::scalar::json::Json;
use crate::scalar::state::StateOf as _;
use crate::scalar::temporal::{DateTime, Strictness, Time};
use crate::scalar::{convert, index_coercion};
use crate::types::{Collation, CollationName as _, Kind, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::comparison::{Comparator, Comparison, ComparisonRules, ComparisonType};
use query::nodes::context::EvalContext;

static RULES: ComparisonRules =
    ComparisonRules { order, hash_type, may_use_index: index_coercion::may_use_index, coerce: index_coercion::coerce };

/// Returns the comparator of MySQL's rules for values that are compared as this type.
pub fn by(ty: ComparisonType) -> Comparator {
    Comparator { ty, rules: &RULES }
}

/// Returns the operator as SQL writes it.
pub fn sign(op: Comparison) -> &'static str {
    match op {
        Comparison::Equal => "=",
        Comparison::NullSafeEqual => "<=>",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterEqual => ">=",
    }
}

/// Returns the comparison type of two types; `text` is the collation that the caller has chosen for strings.
pub fn domain(a: &Type, b: &Type, text: Collation) -> ComparisonType {
    use Kind::{Date, DateTime, Json, Null, Timestamp, Year};
    let dated = |ty: &Type| matches!(ty.kind(), Date | DateTime | Timestamp);
    let numeric = |ty: &Type| ty.kind().is_number() || matches!(ty.kind(), Kind::Bit | Year);
    // An untyped parameter beside a string is compared in the string's collation if it is a string.
    let own = |ty: &Type| if ty.kind().is_bytes() { ComparisonType::Bytes } else { ComparisonType::Text(ty.collation) };
    match (a, b) {
        (a, b) if a.kind() == Null && b.is_string() => own(b),
        (a, b) if b.kind() == Null && a.is_string() => own(a),
        (a, b) if a.kind() == Null || b.kind() == Null => ComparisonType::Dynamic,
        (a, b) if a.kind() == Json || b.kind() == Json => ComparisonType::Json,
        (a, b) if a.is_string() && b.is_string() => {
            if text == Collation::Binary {
                ComparisonType::Bytes
            } else {
                ComparisonType::Text(text)
            }
        }
        (a, b) if dated(a) && (dated(b) || b.kind() == Kind::Time || b.is_string()) => ComparisonType::DateTime,
        (a, b) if dated(b) && (a.kind() == Kind::Time || a.is_string()) => ComparisonType::DateTime,
        (a, b) if a.kind() == Kind::Time && (b.kind() == Kind::Time || b.is_string()) => ComparisonType::Time,
        (a, b) if b.kind() == Kind::Time && a.is_string() => ComparisonType::Time,
        (a, b) => {
            let whole = |ty: &Type| ty.kind().is_integer() || matches!(ty.kind(), Kind::Bit | Year | Date);
            let exact = |ty: &Type| whole(ty) || ty.kind() == Kind::Decimal || ty.kind().is_temporal();
            if whole(a) && whole(b) {
                ComparisonType::Integer
            } else if exact(a) && exact(b) && (numeric(a) || numeric(b)) {
                ComparisonType::Decimal
            } else {
                ComparisonType::Double
            }
        }
    }
}

/// Returns the order of two values, neither NULL, converting them to the comparison type.
pub fn order(domain: ComparisonType, a: &Value, b: &Value, ctx: &mut EvalContext) -> Result<Ordering> {
    Ok(match (domain, a, b) {
        (ComparisonType::Text(collation), Value::Text(a), Value::Text(b)) => {
            collation.compare(a.as_bytes(), b.as_bytes())
        }
        (_, Value::Int(a), Value::Int(b)) => a.cmp(b),
        (_, Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (ComparisonType::DateTime, Value::Date(a), Value::Date(b)) => a.cmp(b),
        (_, Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (_, Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (_, Value::Time(a), Value::Time(b)) => a.cmp(b),
        (ComparisonType::Dynamic, a, b) => {
            let met = self::domain(&Type::of(a), &Type::of(b), Collation::DEFAULT);
            let met = if met == ComparisonType::Dynamic { ComparisonType::Double } else { met };
            return order(met, a, b, ctx);
        }
        (ComparisonType::Integer | ComparisonType::Decimal | ComparisonType::Double, a, b) => {
            numbers(domain, a, b, ctx)?
        }
        (ComparisonType::Text(_) | ComparisonType::Bytes, a, b)
            if a.as_string_bytes().is_none() || b.as_string_bytes().is_none() =>
        {
            return order(ComparisonType::Dynamic, a, b, ctx);
        }
        (ComparisonType::Text(collation), a, b) => strings(collation, a, b),
        (ComparisonType::Bytes, a, b) => strings(Collation::Binary, a, b),
        (ComparisonType::DateTime, a, b) => {
            let (a, b) = (reading(a, ctx)?, reading(b, ctx)?);
            a.cmp(&b)
        }
        (ComparisonType::Time, a, b) => {
            let (a, b) = (time(a, ctx)?, time(b, ctx)?);
            a.cmp(&b)
        }
        (ComparisonType::Json, a, b) => Json::from_value(a).compare(&Json::from_value(b)),
    })
}

fn numbers(domain: ComparisonType, a: &Value, b: &Value, ctx: &mut EvalContext) -> Result<Ordering> {
    let inexact = |value: &Value| {
        matches!(value, Value::Double(_) | Value::Float(_) | Value::Text(_) | Value::Bytes(_) | Value::Json(_))
    };
    Ok(match (a, b) {
        (Value::Int(a), Value::UInt(b)) => u64::try_from(*a).map_or(Ordering::Less, |a| a.cmp(b)),
        (Value::UInt(a), Value::Int(b)) => u64::try_from(*b).map_or(Ordering::Greater, |b| a.cmp(&b)),
        (a, b) if domain == ComparisonType::Double || inexact(a) || inexact(b) => {
            float::order(convert::to_f64(a, ctx)?, convert::to_f64(b, ctx)?)
        }
        (a, b) => convert::to_decimal(a, ctx)?.cmp(&convert::to_decimal(b, ctx)?),
    })
}

fn strings(collation: Collation, a: &Value, b: &Value) -> Ordering {
    collation.compare(a.as_string_bytes().unwrap_or_default(), b.as_string_bytes().unwrap_or_default())
}

/// Reads a value as a date. An invalid one sorts before all dates. The SQL mode decides whether a text may be a date without a month or a day.
fn reading(value: &Value, ctx: &mut EvalContext) -> Result<Option<DateTime>> {
    let rules = match value {
        Value::Text(_) | Value::Bytes(_) => {
            Strictness { no_zero_date: false, allow_invalid: false, ..Strictness::of(ctx.sql_mode()) }
        }
        _ => Strictness::default(),
    };
    convert::to_datetime(value, rules, ctx)
}

fn time(value: &Value, ctx: &mut EvalContext) -> Result<Option<Time>> {
    convert::to_time(value, ctx)
}

/// Returns the sort order of a type, as of ORDER BY, MIN, MAX and keys. NULL is first.
pub fn sort_order(ty: &Type, a: &Value, b: &Value, ctx: &mut EvalContext) -> Result<Ordering> {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ok(Ordering::Equal),
        (true, false) => Ok(Ordering::Less),
        (false, true) => Ok(Ordering::Greater),
        (false, false) => order(own_domain(ty), a, b, ctx),
    }
}

/// Returns the comparison type of values of one type.
pub fn own_domain(ty: &Type) -> ComparisonType {
    match ty.kind() {
        // ENUM values order by their numbers, not by their names.
        Kind::Enum | Kind::Set => ComparisonType::Integer,
        _ => domain(ty, ty, ty.collation),
    }
}

fn hash_type(compared_as: ComparisonType, a: &Type, b: &Type) -> Option<Type> {
    match compared_as {
        ComparisonType::Integer
            if a.kind().is_integer() && b.kind().is_integer() && a.is_unsigned() == b.is_unsigned() =>
        {
            Some(Type::integer().with_unsigned(a.is_unsigned()))
        }
        ComparisonType::Text(collation) if is_plain_text(a) && is_plain_text(b) => Some(Type::text(255, collation)),
        ComparisonType::Decimal if a.kind() == Kind::Decimal && b.kind() == Kind::Decimal && a.scale == b.scale => {
            Some(a.clone())
        }
        ComparisonType::DateTime | ComparisonType::Time if a.kind() == b.kind() => Some(a.clone()),
        ComparisonType::Double if a.kind() == Kind::Double && b.kind() == Kind::Double => Some(Type::double()),
        _ => None,
    }
}

fn is_plain_text(ty: &Type) -> bool {
    ty.kind().is_text() && !matches!(ty.kind(), Kind::Enum | Kind::Set)
}
