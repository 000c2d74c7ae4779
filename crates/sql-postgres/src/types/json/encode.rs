//! Values of any type as parts of documents: `datum_to_json` and `datum_to_jsonb`.

use datum::json::Node;
use query::types::Type;

use crate::error::{PgError, Result, state};
use crate::types::io::{self, IoContext};
use crate::types::json::{build, write, write_string};
use crate::types::oid::{self, Oid};
use crate::types::registry;
use crate::types::temporal::io::{date_in_document, timestamp_in_document};
use crate::value::Value;

/// The kinds of types that documents tell apart: `JsonTypeCategory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    Bool,
    Number,
    Date,
    Timestamp,
    TimestampTz,
    Json,
    Jsonb,
    /// Shown as a string of its text form.
    Other,
}

/// Returns the kind of a type.
pub fn category(oid: Oid) -> Category {
    match oid {
        oid::BOOL => Category::Bool,
        oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC => Category::Number,
        oid::DATE => Category::Date,
        oid::TIMESTAMP => Category::Timestamp,
        oid::TIMESTAMPTZ => Category::TimestampTz,
        oid::JSON => Category::Json,
        oid::JSONB => Category::Jsonb,
        _ => Category::Other,
    }
}

/// Returns the text form of a value, those of dates and times as documents have them.
fn shown(value: &Value, ty: &Type, category: Category, io: &IoContext) -> Result<String> {
    let mut out = Vec::new();
    match (category, value) {
        (Category::Date, Value::Int(days)) => date_in_document(*days as i32, &mut out),
        (Category::Timestamp, Value::Int(micros)) => timestamp_in_document(*micros, None, &mut out),
        (Category::TimestampTz, Value::Int(micros)) => timestamp_in_document(*micros, Some(&io.zone), &mut out),
        _ => io::output(value, ty, io, &mut out)?,
    }
    // Text forms are UTF-8.
    Ok(String::from_utf8(out).unwrap_or_default())
}

/// Returns whether the text of a number is one of a document too: NaN and infinities are strings.
fn is_number(text: &str) -> bool {
    text.ends_with(|last: char| last.is_ascii_digit())
}

/// Appends a value as json has it.
pub fn append(value: &Value, ty: &Type, io: &IoContext, out: &mut String) -> Result<()> {
    let category = category(registry::oid_of(ty));
    match (category, value) {
        (_, Value::Null) => out.push_str("null"),
        (Category::Bool, value) => out.push_str(if crate::types::boolean::of(value) { "true" } else { "false" }),
        (Category::Json, Value::Text(text)) => out.push_str(text),
        (Category::Jsonb, Value::Json(document)) => write(document.node(), out),
        _ => {
            let text = shown(value, ty, category, io)?;
            if category == Category::Number && is_number(&text) {
                out.push_str(&text);
            } else {
                write_string(&text, out);
            }
        }
    }
    Ok(())
}

/// Returns a value as a node of a jsonb.
pub fn node(value: &Value, ty: &Type, io: &IoContext) -> Result<Node> {
    let category = category(registry::oid_of(ty));
    Ok(match (category, value) {
        (_, Value::Null) => Node::Null,
        (Category::Bool, value) => Node::Bool(crate::types::boolean::of(value)),
        (Category::Json, Value::Text(text)) => build(text)?,
        (Category::Jsonb, Value::Json(document)) => document.node().clone(),
        _ => {
            let text = shown(value, ty, category, io)?;
            if category == Category::Number && is_number(&text) {
                Node::Decimal(crate::types::numeric::numeric_in(&text, -1)?)
            } else {
                Node::String(text.into())
            }
        }
    })
}

/// Returns the name of a member that a value stands for. An error for a document.
pub fn name(value: &Value, ty: &Type, io: &IoContext) -> Result<String> {
    match category(registry::oid_of(ty)) {
        Category::Json | Category::Jsonb => {
            let text = "key value must be scalar, not array, composite, or json";
            Err(PgError::new(state::INVALID_PARAMETER_VALUE, text))
        }
        Category::Bool => Ok(if crate::types::boolean::of(value) { "true" } else { "false" }.to_owned()),
        category => shown(value, ty, category, io),
    }
}
