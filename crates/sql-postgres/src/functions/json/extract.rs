//! The part of a document to which a path leads.

use datum::Result;
use datum::json::Node;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::Result as PgResult;
use crate::functions::args::text;
use crate::functions::json::access::{as_text as node_as_text, element};
use crate::functions::json::text::{TextPart, as_json, as_text, rest};
use crate::functions::json::{document, of_node, subscript, texts};
use crate::types::json::parse::{Event, Parser};
use crate::types::json::unquoted;
use crate::value::Value;

/// Returns the steps of a path; `None` if one is NULL, since it leads nowhere.
fn steps(values: &[Value]) -> Result<Option<Vec<&str>>> {
    Ok(texts(values, 1)?.collect())
}

/// Returns the node to which a path leads.
pub fn follow<'n>(root: &'n Node, path: &[&str]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, step| match node {
        Node::Object(members) => members.get(step),
        Node::Array(_) => element(node, subscript(step)?.into()),
        _ => None,
    })
}

pub fn jsonb_extract(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let Some(path) = steps(values)? else { return Ok(Value::Null) };
    follow(document(values, 0)?, &path).map_or(Ok(Value::Null), |node| of_node(node.clone()))
}

pub fn jsonb_extract_text(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let Some(path) = steps(values)? else { return Ok(Value::Null) };
    Ok(follow(document(values, 0)?, &path).map_or(Value::Null, node_as_text))
}

/// An object or array on the path whose end has not been read.
struct OnPath {
    /// The element that the path takes of an array; `None` for an object.
    wanted: Option<i64>,
    next: i64,
}

impl OnPath {
    /// Begins a value whose first event has been read.
    fn begin(parser: &Parser<'_>, first: Event<'_>, step: &str) -> PgResult<Option<OnPath>> {
        Ok(match first {
            Event::ObjectStart => Some(OnPath { wanted: None, next: 0 }),
            Event::ArrayStart => {
                let wanted = match subscript(step) {
                    Some(from_end) if from_end < 0 => {
                        let length = elements(parser.clone())?;
                        Some(length + i64::from(from_end)).filter(|wanted| *wanted >= 0)
                    }
                    wanted => wanted.map(i64::from),
                };
                // No element has this place.
                Some(OnPath { wanted: Some(wanted.unwrap_or(i64::MAX)), next: 0 })
            }
            _ => None,
        })
    }
}

/// Counts the elements of the array that the parser has begun.
fn elements(mut parser: Parser<'_>) -> PgResult<i64> {
    let level = parser.depth();
    let mut count = 0;
    loop {
        let before = parser.depth();
        let event = parser.event()?;
        if event == Event::End && parser.depth() < level {
            return Ok(count);
        }
        count += i64::from(before == level && event != Event::End);
    }
}

/// Returns the part to which a path leads. Of several members of one name all are followed, and the last part that is found counts.
fn find<'t>(document: &'t str, path: &[&str]) -> PgResult<Option<TextPart<'t>>> {
    let mut parser = Parser::new(document);
    let first = parser.event()?;
    if path.is_empty() {
        return rest(document, &mut parser, first).map(Some);
    }
    let mut open: Vec<OnPath> = OnPath::begin(&parser, first, path[0])?.into_iter().collect();
    let mut found = None;
    while let Some(container) = open.last_mut() {
        let (value, is_wanted) = match parser.event()? {
            Event::End => {
                open.pop();
                continue;
            }
            Event::Name(name) => (parser.event()?, unquoted(name)? == path[open.len() - 1]),
            value => {
                container.next += 1;
                (value, container.wanted == Some(container.next - 1))
            }
        };
        if is_wanted
            && let Some(step) = path.get(open.len())
            && let Some(inner) = OnPath::begin(&parser, value, step)?
        {
            open.push(inner);
            continue;
        }
        let part = rest(document, &mut parser, value)?;
        if is_wanted && open.len() == path.len() {
            found = Some(part);
        }
    }
    Ok(found)
}

pub fn json_extract(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let Some(path) = steps(values)? else { return Ok(Value::Null) };
    Ok(as_json(find(text(values, 0)?, &path)?))
}

pub fn json_extract_text(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let Some(path) = steps(values)? else { return Ok(Value::Null) };
    Ok(as_text(find(text(values, 0)?, &path)?)?)
}
