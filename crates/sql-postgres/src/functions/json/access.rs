//! Parts of a jsonb: members, elements, kinds, sizes.

use datum::Result;
use datum::json::Node;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::functions::args::{integer, text};
use crate::functions::json::{document, invalid, of_node, place, texts};
use crate::types::json::write;
use crate::value::Value;

/// Returns a node as `->>` gives it: strings without quotes, nulls as NULL.
pub fn as_text(node: &Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::String(text) => Value::text(text),
        other => {
            let mut out = String::new();
            write(other, &mut out);
            Value::Text(out.into())
        }
    }
}

fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    match node {
        Node::Object(members) => members.get(name),
        _ => None,
    }
}

/// Returns an element of an array. A document that is a scalar counts as an array of it.
pub fn element(node: &Node, subscript: i64) -> Option<&Node> {
    match node {
        Node::Array(elements) => place(elements.len(), subscript).map(|place| &elements[place]),
        Node::Object(_) => None,
        scalar => place(1, subscript).map(|_| scalar),
    }
}

fn copied(node: Option<&Node>) -> Result<Value> {
    node.map_or(Ok(Value::Null), |node| of_node(node.clone()))
}

pub fn object_field(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    copied(member(document(values, 0)?, text(values, 1)?))
}

pub fn object_field_text(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(member(document(values, 0)?, text(values, 1)?).map_or(Value::Null, as_text))
}

pub fn array_element(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    copied(element(document(values, 0)?, integer(values, 1)?))
}

pub fn array_element_text(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(element(document(values, 0)?, integer(values, 1)?).map_or(Value::Null, as_text))
}

pub fn array_length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    match document(values, 0)? {
        Node::Array(elements) => Ok(Value::Int(elements.len() as i64)),
        Node::Object(_) => invalid("cannot get array length of a non-array"),
        _ => invalid("cannot get array length of a scalar"),
    }
}

/// Returns the name of a node's kind.
pub fn kind(node: &Node) -> &'static str {
    match node {
        Node::Null => "null",
        Node::Bool(_) => "boolean",
        Node::Array(_) => "array",
        Node::Object(_) => "object",
        other if other.jsonb_rank() == Node::Int(0).jsonb_rank() => "number",
        _ => "string",
    }
}

pub fn jsonb_typeof(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(kind(document(values, 0)?)))
}

/// Returns whether a text is a member's name, or a string that is an element.
pub fn has_text(node: &Node, text: &str) -> bool {
    let is_it = |node: &Node| matches!(node, Node::String(string) if **string == *text);
    match node {
        Node::Object(members) => members.get(text).is_some(),
        Node::Array(elements) => elements.iter().any(is_it),
        scalar => is_it(scalar),
    }
}

pub fn exists(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(has_text(document(values, 0)?, text(values, 1)?).into())
}

pub fn exists_any(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let node = document(values, 0)?;
    Ok(texts(values, 1)?.flatten().any(|text| has_text(node, text)).into())
}

pub fn exists_all(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let node = document(values, 0)?;
    Ok(texts(values, 1)?.flatten().all(|text| has_text(node, text)).into())
}
