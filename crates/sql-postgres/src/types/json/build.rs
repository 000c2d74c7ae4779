//! Texts as trees.

use datum::json::{DEPTH_MAX, Members, Node};

use crate::error::{PgError, Result, state};
use crate::types::json::parse::{Event, Parser};
use crate::types::json::string::unquoted;
use crate::types::numeric::numeric_in;

/// An array or an object whose end has not been read.
enum Open {
    Array(Vec<Node>),
    /// The members, and the name of the next one.
    Object(Vec<(Box<str>, Node)>, Box<str>),
}

/// Memory is claimed each time so many nodes have been made.
const CLAIMED_NODES: usize = 1024;

/// Returns the tree of a document.
pub fn build(text: &str) -> Result<Node> {
    let mut parser = Parser::new(text);
    let mut open: Vec<Open> = Vec::new();
    let mut whole = Node::Null;
    let mut nodes = 0_usize;
    loop {
        let event = parser.event()?;
        let node = match event {
            Event::Finished => return Ok(whole),
            Event::ObjectStart | Event::ArrayStart => {
                if open.len() == DEPTH_MAX {
                    return Err(too_deep());
                }
                open.push(match event {
                    Event::ArrayStart => Open::Array(Vec::new()),
                    _ => Open::Object(Vec::new(), Box::default()),
                });
                continue;
            }
            Event::Name(name) => {
                if let Some(Open::Object(_, next)) = open.last_mut() {
                    *next = unquoted(name)?.into();
                }
                continue;
            }
            Event::End => match open.pop() {
                Some(Open::Array(elements)) => Node::Array(elements),
                Some(Open::Object(members, _)) => Node::Object(Members::new(members)),
                None => continue,
            },
            scalar => node_of(scalar)?,
        };
        nodes += 1;
        if nodes.is_multiple_of(CLAIMED_NODES) {
            // Twice the size, because a growing vector doubles its capacity.
            drop(stdx::memory::claim(2 * nodes * size_of::<Node>()).map_err(out_of_memory)?);
        }
        match open.last_mut() {
            Some(Open::Array(elements)) => elements.push(node),
            Some(Open::Object(members, name)) => members.push((std::mem::take(name), node)),
            None => whole = node,
        }
    }
}

/// Returns the node of a scalar. An error for a number beyond numeric.
fn node_of(scalar: Event<'_>) -> Result<Node> {
    Ok(match scalar {
        Event::String(text) => Node::String(unquoted(text)?.into()),
        Event::Number(text) => Node::Decimal(numeric_in(text, -1)?),
        Event::True => Node::Bool(true),
        Event::False => Node::Bool(false),
        _ => Node::Null,
    })
}

#[cold]
pub fn too_deep() -> PgError {
    PgError::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        .detail(format!("A jsonb value nests at most {DEPTH_MAX} levels deep."))
}

#[cold]
fn out_of_memory<E>(_: E) -> PgError {
    PgError::new(state::OUT_OF_MEMORY, "out of memory")
}
