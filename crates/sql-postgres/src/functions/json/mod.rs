//! Functions and operators of json and jsonb.
//!
//! Those of a json read its text by the parser's events and answer with parts of that text; those of a jsonb work on its tree.

mod access;
mod aggregate;
mod cast;
mod change;
mod contain;
mod make;
pub mod path;
pub mod rows;
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

/// Returns the element that a subscript counts to, from the end where it is negative.
fn place(length: usize, subscript: i64) -> Option<usize> {
    let place = if subscript < 0 { subscript + length as i64 } else { subscript };
    usize::try_from(place).ok().filter(|place| *place < length)
}
