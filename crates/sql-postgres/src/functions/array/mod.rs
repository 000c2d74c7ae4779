//! Arrays: construction, subscripts, functions and operators.
//!
//! `rows` has the rows of PostgreSQL's catalogs. An array knows the shape of its elements and not their type, so what needs the type's text or name takes it from the call's expressions.

pub mod aggregate;
pub mod construct;
pub mod elements;
pub mod measure;
pub mod quantified;
pub mod rows;
pub mod search;
pub mod sets;
pub mod subscript;
pub mod text;

use datum::{Array, Fault, Result};
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::types::oid::Oid;
use crate::types::registry;
use crate::value::Value;

/// Returns an array, or an error where the value is of another form.
pub fn array(values: &[Value], at: usize) -> Result<&Array> {
    match &values[at] {
        Value::Array(array) => Ok(array),
        _ => Err(Fault::corrupt("an argument in the form of another type")),
    }
}

/// Returns the type of the elements of an argument.
pub fn element_type(call: &Call, at: usize) -> Result<Oid> {
    let array = registry::oid_of(&call.arguments[at].ty());
    registry::element_of(array).map(|row| row.oid).ok_or_else(|| Fault::corrupt("an argument that is no array"))
}

/// Returns an array of the shape that the call's type has.
pub fn empty(call: &Call) -> Result<Array> {
    let element = registry::element_of(registry::oid_of(&call.ty));
    let element = element.ok_or_else(|| Fault::corrupt("a result that is no array"))?;
    Ok(Array::empty(registry::shape_of(element.oid)))
}

/// Claims the memory of so many elements.
pub fn claim(count: usize) -> Result<stdx::memory::Claim> {
    Ok(stdx::memory::claim(count.saturating_mul(size_of::<Value>()))?)
}

#[cold]
fn failed(state: &'static str, text: impl Into<String>) -> Fault {
    PgError::new(state, text).into()
}

#[cold]
fn subscript_error(text: &str) -> PgError {
    PgError::new(state::ARRAY_SUBSCRIPT_ERROR, text)
}
