//! json and jsonb. A json keeps its text as it is given, once it is known to be a document; a jsonb is a tree.
//!
//! All numbers of a jsonb are numerics that keep the digits behind their point. Its members are in the order that PostgreSQL keeps them in, shorter names first.

mod build;
pub mod encode;
pub mod parse;
mod string;
mod write;

pub use build::{build, too_deep};
pub use string::unquoted;
pub use write::{indented, write, write_string};

use std::fmt::Write as _;

use crate::error::{PgError, Result, state};
use crate::types::io;
use crate::types::json::parse::{Event, Parser};
use crate::value::Value;

/// json's input.
pub fn input(text: &str) -> Result<Value> {
    io::check_no_zero(text)?;
    let mut parser = Parser::new(text);
    while parser.event()? != Event::Finished {}
    Ok(Value::text(text))
}

/// jsonb's input.
pub fn jsonb_input(text: &str) -> Result<Value> {
    io::check_no_zero(text)?;
    build(text).map(|node| Value::Json(node.into()))
}

/// The version of jsonb's binary form: the text follows.
const JSONB_VERSION: u8 = 1;

pub fn jsonb_receive(bytes: &[u8]) -> Result<Value> {
    match bytes {
        [JSONB_VERSION, text @ ..] => jsonb_input(io::utf8(text)?),
        [version, ..] => {
            Err(PgError::new(state::INTERNAL_ERROR, format!("unsupported jsonb version number {version}")))
        }
        [] => Err(PgError::new(state::PROTOCOL_VIOLATION, "no data left in message")),
    }
}

pub fn jsonb_send(value: &datum::Json, out: &mut Vec<u8>) {
    out.push(JSONB_VERSION);
    jsonb_output(value, out);
}

pub fn jsonb_output(value: &datum::Json, out: &mut Vec<u8>) {
    let mut text = String::new();
    write(value.node(), &mut text);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a number as it is shown.
fn write_number(number: &crate::value::Decimal, out: &mut String) {
    let written = write!(out, "{number}");
    debug_assert!(written.is_ok());
}

#[cfg(test)]
mod tests;
