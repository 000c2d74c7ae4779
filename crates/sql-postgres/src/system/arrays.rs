//! Arrays in catalogs' columns, by their text form: NULL where the type of the array is not served.

use crate::types::array;
use crate::types::io::{self, IoContext};
use crate::types::oid::{self, Oid};
use crate::types::registry;
use crate::value::Value;

/// Reads a text as a type that is found by its name.
fn read(type_name: &str, text: &str) -> Value {
    let Some(ty) = registry::by_name(type_name) else { return Value::Null };
    io::input(&registry::column_type(ty.oid, -1, true), text, &IoContext::default()).unwrap_or(Value::Null)
}

fn list<T: ToString>(items: &[T], between: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

/// Returns texts as elements of an array's text form.
fn quoted(items: &[String]) -> String {
    let quote = |item: &String| format!("\"{}\"", item.replace('\\', "\\\\").replace('"', "\\\""));
    format!("{{{}}}", items.iter().map(quote).collect::<Vec<_>>().join(","))
}

/// Returns a `text[]`; NULL for none.
pub fn texts(items: Option<Vec<String>>) -> Value {
    items.map_or(Value::Null, |items| read("_text", &quoted(&items)))
}

/// Returns an `aclitem[]`.
pub fn rights(items: &[String]) -> Value {
    array::list(oid::ACLITEM, items.iter().map(Value::text).collect())
}

/// Returns an `oid[]`.
pub fn oids(items: &[Oid]) -> Value {
    read("_oid", &format!("{{{}}}", list(items, ",")))
}

/// Returns an `oidvector`.
pub fn oid_vector(items: &[Oid]) -> Value {
    read("oidvector", &list(items, " "))
}

/// Returns an `int2[]`.
pub fn numbers(items: &[i64]) -> Value {
    read("_int2", &format!("{{{}}}", list(items, ",")))
}

/// Returns an `int2vector`.
pub fn number_vector(items: &[i64]) -> Value {
    read("int2vector", &list(items, " "))
}
