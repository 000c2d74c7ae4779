//! Values of catalogs' columns.

use crate::types::oid::Oid;
use crate::value::Value;

pub fn text(text: impl AsRef<str>) -> Value {
    Value::text(text.as_ref())
}

pub fn oid(oid: Oid) -> Value {
    Value::UInt(oid.into())
}

pub fn truth(truth: bool) -> Value {
    Value::from(truth)
}

/// Returns a "char".
pub fn letter(letter: char) -> Value {
    Value::UInt(letter as u64)
}

pub fn number(number: i64) -> Value {
    Value::Int(number)
}

pub fn null() -> Value {
    Value::Null
}

/// Returns `YES` or `NO`.
pub fn yes(is: bool) -> Value {
    text(if is { "YES" } else { "NO" })
}
