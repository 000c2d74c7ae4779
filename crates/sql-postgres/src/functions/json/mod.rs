//! Functions and operators of json and jsonb.
//!
//! Those of a json read its text by the parser's events and answer with parts of that text; those of a jsonb work on its tree.

mod access;
mod aggregate;
mod cast;
mod change;
pub mod constructor;
mod contain;
mod edit;
mod extract;
mod make;
pub mod path;
mod populate;
pub mod rows;
mod sets;
pub mod subscripts;
mod text;

use datum::Result;
use datum::json::Node;

use crate::error::{PgError, state};
use crate::value::Value;

/// Returns the tree of an argument.
fn document(values: &[Value], at: usize) -> Result<&Node> {
    match &values[at] {
        Value::Json(document) => Ok(document.node()),
        _ => Err(datum::Fault::corrupt("a document in the form of another type")),
    }
}

fn of_node(node: Node) -> Result<Value> {
    Ok(Value::Json(node.into()))
}

#[cold]
fn invalid<T>(text: impl Into<String>) -> Result<T> {
    Err(PgError::new(state::INVALID_PARAMETER_VALUE, text).into())
}

/// The elements of an argument that is an array of texts, in row-major order; `None` for NULL.
fn texts(values: &[Value], at: usize) -> Result<impl Iterator<Item = Option<&str>> + Clone> {
    let array = crate::functions::array::array(values, at)?;
    Ok(array.values().iter().map(|value| if let Value::Text(text) = value { Some(text.as_str()) } else { None }))
}

#[cold]
fn subscript_error(text: &str) -> datum::Fault {
    PgError::new(state::ARRAY_SUBSCRIPT_ERROR, text).into()
}

/// Refuses a path of several dimensions.
fn check_one_dimension(values: &[Value], at: usize) -> Result<()> {
    match crate::functions::array::array(values, at)?.dimensions().len() {
        0 | 1 => Ok(()),
        _ => Err(subscript_error("wrong number of array subscripts")),
    }
}

/// Reads a subscript within a path as `strtoint` does; `None` if the text is none.
fn subscript(text: &str) -> Option<i32> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Returns the element that a subscript counts to, from the end where it is negative.
fn place(length: usize, subscript: i64) -> Option<usize> {
    let place = if subscript < 0 { subscript + length as i64 } else { subscript };
    usize::try_from(place).ok().filter(|place| *place < length)
}
