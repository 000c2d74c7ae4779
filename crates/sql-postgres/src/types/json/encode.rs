//! Values of any type as parts of documents: `datum_to_json` and `datum_to_jsonb`.

use datum::json::{Members, Node};
use datum::{Array, Record};
use query::types::Type;

use crate::error::{PgError, Result, state};
use crate::types::io::{self, IoContext};
use crate::types::json::{build, write, write_string};
use crate::types::oid::{self, Oid};
use crate::types::temporal::io::{date_in_document, timestamp_in_document};
use crate::types::{record, registry, user};
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
    /// Shown as an object with a member for each field.
    Composite,
    /// Shown as an array, each dimension within the one before.
    Array,
    /// Shown as a string of its text form.
    Other,
}

/// Returns the kind of a type, and the type: that of a domain is its base.
fn kind_of(ty: &Type, io: &IoContext) -> Result<(Category, Option<Type>)> {
    let oid = registry::oid_of(ty);
    if !user::is_domain(oid) {
        return Ok((category(oid), None));
    }
    let base = user::base_type(oid, io)?;
    Ok((category(registry::oid_of(&base)), Some(base)))
}

/// Returns the kind of a type that is no domain.
pub fn category(oid: Oid) -> Category {
    match oid {
        oid::BOOL => Category::Bool,
        oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC => Category::Number,
        oid::DATE => Category::Date,
        oid::TIMESTAMP => Category::Timestamp,
        oid::TIMESTAMPTZ => Category::TimestampTz,
        oid::JSON => Category::Json,
        oid::JSONB => Category::Jsonb,
        oid::RECORD => Category::Composite,
        oid if user::is_composite(oid) => Category::Composite,
        oid if registry::is_array(oid) => Category::Array,
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
    let (category, base) = kind_of(ty, io)?;
    let ty = base.as_ref().unwrap_or(ty);
    match (category, value) {
        (_, Value::Null) => out.push_str("null"),
        (Category::Bool, value) => out.push_str(if crate::types::boolean::of(value) { "true" } else { "false" }),
        (Category::Json, Value::Text(text)) => out.push_str(text),
        (Category::Jsonb, Value::Json(document)) => write(document.node(), out),
        (Category::Composite, Value::Record(record)) => append_record(record, io, ",", out)?,
        (Category::Array, Value::Array(array)) => append_array(array, &element_type(ty)?, io, ",", out)?,
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
    let (category, base) = kind_of(ty, io)?;
    let ty = base.as_ref().unwrap_or(ty);
    Ok(match (category, value) {
        (_, Value::Null) => Node::Null,
        (Category::Bool, value) => Node::Bool(crate::types::boolean::of(value)),
        (Category::Json, Value::Text(text)) => build(text)?,
        (Category::Jsonb, Value::Json(document)) => document.node().clone(),
        (Category::Composite, Value::Record(record)) => record_node(record, io)?,
        (Category::Array, Value::Array(array)) => array_node(array, &element_type(ty)?, io)?,
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

fn element_type(ty: &Type) -> Result<Type> {
    let array = registry::oid_of(ty);
    match registry::element_of(array) {
        Some(row) => Ok(registry::column_type(row.oid, -1, true)),
        None => Err(PgError::unsupported(registry::format_type(array, None))),
    }
}

/// Appends a record, with this text between its members.
pub fn append_record(record: &Record, io: &IoContext, between: &str, out: &mut String) -> Result<()> {
    out.push('{');
    for (at, (field, value)) in record.fields().enumerate() {
        out.push_str(if at > 0 { between } else { "" });
        write_string(&field.name, out);
        out.push(':');
        append(value, &record::type_of(field), io, out)?;
    }
    out.push('}');
    Ok(())
}

fn record_node(record: &Record, io: &IoContext) -> Result<Node> {
    let mut members = Vec::with_capacity(record.values().len());
    for (field, value) in record.fields() {
        members.push((field.name.clone(), node(value, &record::type_of(field), io)?));
    }
    Ok(Node::Object(Members::new(members)))
}

/// Appends an array, with this text between the elements of its first dimension.
pub fn append_array(array: &Array, element: &Type, io: &IoContext, between: &str, out: &mut String) -> Result<()> {
    out.push('[');
    let spans = spans(array);
    for (at, value) in array.values().iter().enumerate() {
        let opened = spans.iter().filter(|span| at.is_multiple_of(**span)).count();
        if at > 0 {
            out.extend(std::iter::repeat_n(']', opened));
            let is_of_first = opened == spans.len();
            out.push_str(if is_of_first { between } else { "," });
        }
        out.extend(std::iter::repeat_n('[', opened));
        append(value, element, io, out)?;
    }
    if !array.is_empty() {
        out.extend(std::iter::repeat_n(']', spans.len()));
    }
    out.push(']');
    Ok(())
}

/// Returns how many elements each item of the first dimension has, and of each further one but the last.
fn spans(array: &Array) -> Vec<usize> {
    let lengths = array.dimensions().iter().rev().map(|dimension| dimension.length as usize);
    let mut spans: Vec<usize> = lengths
        .scan(1, |span, length| {
            *span *= length;
            Some(*span)
        })
        .collect();
    // The last one is the whole array.
    spans.pop();
    spans
}

fn array_node(array: &Array, element: &Type, io: &IoContext) -> Result<Node> {
    let mut nodes = Vec::with_capacity(array.len());
    for value in array.values() {
        nodes.push(node(value, element, io)?);
    }
    // From the last dimension to the second, the nodes of each item become one.
    for dimension in array.dimensions().iter().skip(1).rev() {
        let length = dimension.length as usize;
        let mut items = nodes.into_iter();
        let mut outer = Vec::new();
        while items.len() > 0 {
            outer.push(Node::Array(items.by_ref().take(length).collect()));
        }
        nodes = outer;
    }
    Ok(Node::Array(nodes))
}

/// Returns the name of a member that a value stands for. An error for a document.
pub fn name(value: &Value, ty: &Type, io: &IoContext) -> Result<String> {
    let (category, base) = kind_of(ty, io)?;
    let ty = base.as_ref().unwrap_or(ty);
    match category {
        Category::Json | Category::Jsonb | Category::Array | Category::Composite => {
            let text = "key value must be scalar, not array, composite, or json";
            Err(PgError::new(state::INVALID_PARAMETER_VALUE, text))
        }
        Category::Bool => Ok(if crate::types::boolean::of(value) { "true" } else { "false" }.to_owned()),
        category => shown(value, ty, category, io),
    }
}
