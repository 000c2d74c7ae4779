//! Values of arguments, whose types the binder has settled.

use datum::{Fault, Result};

use crate::error::{PgError, state};
use crate::types::io::VALUE_BYTES_MAX;
use crate::types::oid::Oid;
use crate::value::Value;

/// Returns a text, or an error where the value is of another form.
pub fn text(values: &[Value], at: usize) -> Result<&str> {
    text_of(&values[at])
}

pub fn text_of(value: &Value) -> Result<&str> {
    match value {
        Value::Text(text) => Ok(text),
        _ => Err(form()),
    }
}

pub fn bytes(values: &[Value], at: usize) -> Result<&[u8]> {
    bytes_of(&values[at])
}

pub fn bytes_of(value: &Value) -> Result<&[u8]> {
    value.as_string_bytes().ok_or_else(form)
}

pub fn integer(values: &[Value], at: usize) -> Result<i64> {
    match &values[at] {
        Value::Int(number) => Ok(*number),
        Value::UInt(number) => Ok(*number as i64),
        _ => Err(form()),
    }
}

pub fn truth(values: &[Value], at: usize) -> Result<bool> {
    Ok(integer(values, at)? != 0)
}

/// Returns an OID. A cast from an integer may have left one in the form of an integer.
pub fn oid(values: &[Value], at: usize) -> Result<Oid> {
    Ok(integer(values, at)? as Oid)
}

#[cold]
fn form() -> Fault {
    Fault::corrupt("an argument in the form of another type")
}

/// Claims the memory of a result of so many bytes. An error if no value may be so long.
pub fn claim(bytes: usize) -> Result<stdx::memory::Claim> {
    if bytes > VALUE_BYTES_MAX {
        return Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "requested length too large").into());
    }
    Ok(stdx::memory::claim(bytes)?)
}

#[cold]
pub fn invalid(message: impl Into<String>) -> Fault {
    PgError::new(state::INVALID_PARAMETER_VALUE, message).into()
}
