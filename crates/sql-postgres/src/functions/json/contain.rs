//! Containment of one jsonb in another: `JsonbDeepContains`.

use datum::Result;
use datum::json::Node;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::functions::json::document;
use crate::value::Value;

/// Pairs of nodes between two looks for a cancel request.
const PAIRS: u32 = 4096;

pub fn contains(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    whole(document(values, 0)?, document(values, 1)?, ctx)
}

pub fn contained(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    whole(document(values, 1)?, document(values, 0)?, ctx)
}

fn is_scalar(node: &Node) -> bool {
    !matches!(node, Node::Array(_) | Node::Object(_))
}

/// An array contains a document that is one of its scalars; a scalar contains its equal alone.
fn whole(holder: &Node, part: &Node, ctx: &mut EvalContext) -> Result<Value> {
    let mut search = Search { pairs: 0, ctx };
    let found = match (holder, part) {
        (Node::Array(elements), part) if is_scalar(part) => search.has_scalar(elements, part)?,
        (holder, part) if is_scalar(holder) && is_scalar(part) => holder.compare_jsonb(part).is_eq(),
        (holder, part) => search.contains(holder, part)?,
    };
    Ok(found.into())
}

struct Search<'c> {
    pairs: u32,
    ctx: &'c mut EvalContext,
}

impl Search<'_> {
    fn tick(&mut self) -> Result<()> {
        self.pairs = self.pairs.wrapping_add(1);
        if self.pairs.is_multiple_of(PAIRS) { self.ctx.check_killed() } else { Ok(()) }
    }

    fn has_scalar(&mut self, elements: &[Node], scalar: &Node) -> Result<bool> {
        for element in elements {
            self.tick()?;
            if is_scalar(element) && element.compare_jsonb(scalar).is_eq() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Documents nest as deep as `datum::json::DEPTH_MAX`, and so does this.
    fn contains(&mut self, holder: &Node, part: &Node) -> Result<bool> {
        self.tick()?;
        match (holder, part) {
            (Node::Object(holder), Node::Object(part)) => {
                if holder.len() < part.len() {
                    return Ok(false);
                }
                for (name, part) in part.iter() {
                    let Some(own) = holder.get(name) else { return Ok(false) };
                    let holds = match is_scalar(part) {
                        true => is_scalar(own) && own.compare_jsonb(part).is_eq(),
                        false => self.contains(own, part)?,
                    };
                    if !holds {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Node::Array(holder), Node::Array(part)) => {
                for part in part {
                    let holds = match is_scalar(part) {
                        true => self.has_scalar(holder, part)?,
                        false => self.any_contains(holder, part)?,
                    };
                    if !holds {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn any_contains(&mut self, holders: &[Node], part: &Node) -> Result<bool> {
        for holder in holders {
            if self.contains(holder, part)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
