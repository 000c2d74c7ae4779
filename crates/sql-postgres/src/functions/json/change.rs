//! Changed copies of a jsonb.

use datum::Result;
use datum::json::{Members, Node};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::functions::args::{integer, text};
use crate::functions::json::{document, invalid, of_node, place};
use crate::types::json::indented;
use crate::value::Value;

/// Members of both, or elements of both. Whatever is no array counts as one element.
pub fn concat(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (left, right) = (document(values, 0)?, document(values, 1)?);
    if let (Node::Object(left), Node::Object(right)) = (left, right) {
        let mut members = left.clone();
        right.iter().for_each(|(name, node)| members.set(name, node.clone()));
        return of_node(Node::Object(members));
    }
    let elements = |node: &Node| match node {
        Node::Array(elements) => elements.clone(),
        other => vec![other.clone()],
    };
    let mut all = elements(left);
    all.extend(elements(right));
    check_depth(Node::Array(all))
}

/// Returns a document, or an error if it nests deeper than documents may.
pub fn check_depth(node: Node) -> Result<Value> {
    // A scalar counts as a level here.
    if node.depth() > datum::json::DEPTH_MAX + 1 {
        return Err(crate::types::json::too_deep().into());
    }
    of_node(node)
}

pub fn delete(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let name = text(values, 1)?;
    match document(values, 0)? {
        Node::Object(members) => {
            let mut members = members.clone();
            members.remove(name);
            of_node(Node::Object(members))
        }
        Node::Array(elements) => {
            let is_it = |node: &&Node| matches!(node, Node::String(string) if **string == *name);
            of_node(Node::Array(elements.iter().filter(|node| !is_it(node)).cloned().collect()))
        }
        _ => invalid("cannot delete from scalar"),
    }
}

pub fn delete_element(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let subscript = integer(values, 1)?;
    match document(values, 0)? {
        Node::Array(elements) => {
            let mut elements = elements.clone();
            if let Some(place) = place(elements.len(), subscript) {
                elements.remove(place);
            }
            of_node(Node::Array(elements))
        }
        Node::Object(_) => invalid("cannot delete from object using integer index"),
        _ => invalid("cannot delete from scalar"),
    }
}

pub fn strip_nulls(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of_node(without_nulls(document(values, 0)?))
}

/// Leaves out members that are null, on every level.
fn without_nulls(node: &Node) -> Node {
    match node {
        Node::Array(elements) => Node::Array(elements.iter().map(without_nulls).collect()),
        Node::Object(members) => {
            let kept = members.iter().filter(|(_, node)| **node != Node::Null);
            Node::Object(Members::new(kept.map(|(name, node)| (name.into(), without_nulls(node))).collect()))
        }
        scalar => scalar.clone(),
    }
}

pub fn pretty(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut out = String::new();
    indented(document(values, 0)?, 0, &mut out);
    Ok(Value::Text(out.into()))
}
