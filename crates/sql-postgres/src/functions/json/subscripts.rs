//! Subscripts of a jsonb: of a value, and of the place that an assignment changes. A subscript is an integer or a text; both are steps of a path.

use std::borrow::Cow;

use datum::json::{DEPTH_MAX, Members, Node};
use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Finish, Function, Run};

use crate::error::{PgError, state};
use crate::functions::args::claim;
use crate::functions::json::change::check_depth;
use crate::functions::json::edit::no_subscript;
use crate::functions::json::extract::follow;
use crate::functions::json::{document, invalid, of_node, subscript};
use crate::types::json::too_deep;
use crate::value::Value;

/// `jsonb[a][b]`: the document, then the subscripts.
pub static ELEMENT: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["subscript"], Run::Strict(element)) };
/// The document with the value at the subscripts replaced by the last argument.
pub static SET_ELEMENT: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["set subscript"], Run::Values(set_element)) };

fn steps(subscripts: &[Value]) -> Result<Vec<Cow<'_, str>>> {
    let step = |value| match value {
        &Value::Int(number) => Ok(Cow::Owned(number.to_string())),
        Value::Text(text) => Ok(Cow::Borrowed(text.as_str())),
        _ => Err(Fault::corrupt("a subscript in the form of another type")),
    };
    subscripts.iter().map(step).collect()
}

fn element(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let path = steps(&values[1..])?;
    let path: Vec<&str> = path.iter().map(|step| &**step).collect();
    follow(document(values, 0)?, &path).map_or(Ok(Value::Null), |node| of_node(node.clone()))
}

fn set_element(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let [base, subscripts @ .., new] = values else { return Ok(Value::Null) };
    if subscripts.iter().any(Value::is_null) {
        let text = "jsonb subscript in assignment must not be null";
        return Err(PgError::new(state::NULL_VALUE_NOT_ALLOWED, text).into());
    }
    if subscripts.len() > DEPTH_MAX {
        return Err(too_deep().into());
    }
    let mut root = match (base, &subscripts[0]) {
        (Value::Null, Value::Int(_)) => Node::Array(Vec::new()),
        (Value::Null, _) => Node::Object(Members::new(Vec::new())),
        _ => document(values, 0)?.clone(),
    };
    let new = if new.is_null() { Node::Null } else { document(values, values.len() - 1)?.clone() };
    set(&mut root, &steps(subscripts)?, new)?;
    check_depth(root)
}

/// Puts a value at the end of a path: `setPath` with JB_PATH_FILL_GAPS and JB_PATH_CONSISTENT_POSITION.
fn set(root: &mut Node, path: &[Cow<'_, str>], new: Node) -> Result<()> {
    let mut node = root;
    for (level, step) in path.iter().enumerate() {
        let rest = &path[level + 1..];
        node = match node {
            Node::Array(elements) => {
                let place = place_of(step, level, elements.len())?;
                if place >= elements.len() {
                    let missing = place - elements.len();
                    let _claim = claim(missing.saturating_mul(size_of::<Node>()))?;
                    elements.resize(place, Node::Null);
                    elements.push(chain(rest, new)?);
                    return Ok(());
                }
                &mut elements[place]
            }
            Node::Object(members) => {
                if members.get(step).is_none() {
                    members.set(step, chain(rest, new)?);
                    return Ok(());
                }
                let Some(member) = members.get_mut(step) else { return Ok(()) };
                member
            }
            _ => {
                let detail = "The path assumes key is a composite object, but it is a scalar value.";
                let error = PgError::new(state::INVALID_PARAMETER_VALUE, "cannot replace existing key");
                return Err(error.detail(detail).into());
            }
        };
    }
    *node = new;
    Ok(())
}

/// Returns the place in an array, perhaps behind its end.
fn place_of(step: &str, level: usize, length: usize) -> Result<usize> {
    let Some(number) = subscript(step) else { return Err(no_subscript(step, level)) };
    let place = if number < 0 { length as i64 + i64::from(number) } else { number.into() };
    match usize::try_from(place) {
        Ok(place) => Ok(place),
        Err(_) => invalid(format!("path element at position {} is out of range: {number}", level + 1)),
    }
}

/// Returns arrays and objects within each other, with the value at the end of the path.
fn chain(path: &[Cow<'_, str>], value: Node) -> Result<Node> {
    let mut node = value;
    for step in path.iter().rev() {
        node = match subscript(step) {
            Some(number) => {
                let place = usize::try_from(number).unwrap_or(0);
                let _claim = claim(place.saturating_mul(size_of::<Node>()))?;
                let mut elements = vec![Node::Null; place];
                elements.push(node);
                Node::Array(elements)
            }
            None => Node::Object(Members::new(vec![((**step).into(), node)])),
        };
    }
    Ok(node)
}
