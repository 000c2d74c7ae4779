//! Copies of a jsonb that are changed at the end of a path: `setPath`.

use std::collections::HashSet;

use datum::json::{Members, Node};
use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::args::{text, truth};
use crate::functions::json::change::check_depth;
use crate::functions::json::{check_one_dimension, document, invalid, of_node, subscript, texts};
use crate::value::Value;

/// The change that is made at the end of a path.
#[derive(Clone, Copy)]
enum Edit<'v> {
    /// Replaces what is there, and puts the value there if `creates`.
    Set {
        value: &'v Node,
        creates: bool,
    },
    Insert {
        value: &'v Node,
        after: bool,
    },
    Delete,
}

impl<'v> Edit<'v> {
    /// Returns the value that is put where there is none.
    fn added(self) -> Option<&'v Node> {
        match self {
            Edit::Set { value, creates: true } | Edit::Insert { value, .. } => Some(value),
            Edit::Set { creates: false, .. } | Edit::Delete => None,
        }
    }
}

/// A path, and the number of steps that led to the node.
struct Steps<'p> {
    path: &'p [Option<&'p str>],
    level: usize,
}

impl<'p> Steps<'p> {
    fn current(&self) -> Result<&'p str> {
        self.path[self.level].ok_or_else(|| {
            let text = format!("path element at position {} is null", self.level + 1);
            PgError::new(state::NULL_VALUE_NOT_ALLOWED, text).into()
        })
    }

    fn is_last(&self) -> bool {
        self.level + 1 == self.path.len()
    }

    fn next(&self) -> Steps<'p> {
        Steps { path: self.path, level: self.level + 1 }
    }
}

fn edit(node: &mut Node, steps: &Steps<'_>, change: Edit<'_>) -> Result<()> {
    let step = steps.current()?;
    match node {
        Node::Array(elements) => edit_array(elements, step, steps, change),
        Node::Object(members) => edit_object(members, step, steps, change),
        _ => Ok(()),
    }
}

fn edit_object(members: &mut Members, step: &str, steps: &Steps<'_>, change: Edit<'_>) -> Result<()> {
    if !steps.is_last() {
        return members.get_mut(step).map_or(Ok(()), |node| edit(node, &steps.next(), change));
    }
    let is_there = members.get(step).is_some();
    match change {
        Edit::Insert { .. } if is_there => {
            let hint = "Try using the function jsonb_set to replace key value.";
            return Err(PgError::new(state::INVALID_PARAMETER_VALUE, "cannot replace existing key").hint(hint).into());
        }
        Edit::Set { value, creates } if is_there || creates => members.set(step, value.clone()),
        Edit::Insert { value, .. } => members.set(step, value.clone()),
        Edit::Set { .. } => {}
        Edit::Delete => drop(members.remove(step)),
    }
    Ok(())
}

fn edit_array(elements: &mut Vec<Node>, step: &str, steps: &Steps<'_>, change: Edit<'_>) -> Result<()> {
    let Some(subscript) = subscript(step) else { return Err(no_subscript(step, steps.level)) };
    let length = elements.len() as i64;
    let place = if subscript < 0 { length + i64::from(subscript) } else { i64::from(subscript) };
    let place = usize::try_from(place).ok();
    let Some(at) = place.filter(|place| *place < elements.len()) else {
        if let Some(value) = change.added().filter(|_| steps.is_last()) {
            let end = if place.is_none() { 0 } else { elements.len() };
            elements.insert(end, value.clone());
        }
        return Ok(());
    };
    if !steps.is_last() {
        return edit(&mut elements[at], &steps.next(), change);
    }
    match change {
        Edit::Set { value, .. } => elements[at] = value.clone(),
        Edit::Insert { value, after } => elements.insert(at + usize::from(after), value.clone()),
        Edit::Delete => drop(elements.remove(at)),
    }
    Ok(())
}

#[cold]
pub fn no_subscript(step: &str, level: usize) -> Fault {
    let text = format!("path element at position {} is not an integer: \"{step}\"", level + 1);
    PgError::new(state::INVALID_TEXT_REPRESENTATION, text).into()
}

/// Returns the first argument, changed at the end of the path that is the second.
fn edited(values: &[Value], change: Edit<'_>) -> Result<Value> {
    check_one_dimension(values, 1)?;
    let root = document(values, 0)?;
    if !matches!(root, Node::Array(_) | Node::Object(_)) {
        let verb = if matches!(change, Edit::Delete) { "delete" } else { "set" };
        return invalid(format!("cannot {verb} path in scalar"));
    }
    let path: Vec<Option<&str>> = texts(values, 1)?.collect();
    let is_unchanged = root.length() == 0 && change.added().is_none();
    if path.is_empty() || is_unchanged {
        return Ok(values[0].clone());
    }
    let mut root = root.clone();
    edit(&mut root, &Steps { path: &path, level: 0 }, change)?;
    check_depth(root)
}

pub fn set(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    edited(values, Edit::Set { value: document(values, 2)?, creates: truth(values, 3)? })
}

pub fn insert(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    edited(values, Edit::Insert { value: document(values, 2)?, after: truth(values, 3)? })
}

pub fn delete_path(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    edited(values, Edit::Delete)
}

/// `jsonb_set_lax`: the last argument says what a NULL in the place of the new value does.
pub fn set_lax(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    if [0, 1, 3].iter().any(|at| values[*at].is_null()) {
        return Ok(Value::Null);
    }
    const TREATMENTS: &str =
        "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"";
    if values[4].is_null() {
        return invalid(TREATMENTS);
    }
    let creates = truth(values, 3)?;
    if !values[2].is_null() {
        return edited(values, Edit::Set { value: document(values, 2)?, creates });
    }
    match text(values, 4)? {
        "raise_exception" => {
            let detail = "Exception was raised because null_value_treatment is \"raise_exception\".";
            let hint =
                "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.";
            let error = PgError::new(state::NULL_VALUE_NOT_ALLOWED, "JSON value must not be null");
            Err(error.detail(detail).hint(hint).into())
        }
        "use_json_null" => edited(values, Edit::Set { value: &Node::Null, creates }),
        "delete_key" => edited(values, Edit::Delete),
        "return_target" => Ok(values[0].clone()),
        _ => invalid(TREATMENTS),
    }
}

/// `jsonb - text[]`: without the members of these names, and without strings that are one of them.
pub fn delete_all(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    check_one_dimension(values, 1)?;
    let names: HashSet<&str> = texts(values, 1)?.flatten().collect();
    match document(values, 0)? {
        Node::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !names.contains(name));
            of_node(Node::Object(Members::new(kept.map(|(name, node)| (name.into(), node.clone())).collect())))
        }
        Node::Array(elements) => {
            let is_kept = |node: &&Node| !matches!(node, Node::String(text) if names.contains(&**text));
            of_node(Node::Array(elements.iter().filter(is_kept).cloned().collect()))
        }
        _ => invalid("cannot delete from scalar"),
    }
}
