//! Which operands need no parentheses in pretty text: `isSimpleNode`.

use crate::deparse::node::{Form, Node};

/// Returns whether a node reads the same without parentheses within its parent.
pub fn is_simple(node: &Node, parent: &Node) -> bool {
    match node {
        Node::Column { .. }
        | Node::Const { .. }
        | Node::Array { .. }
        | Node::Row(_)
        | Node::Coalesce(..)
        | Node::Extreme { .. }
        | Node::SqlValue { .. }
        | Node::NullIf(..)
        | Node::Aggregate(_)
        | Node::Window(_)
        | Node::Call { .. }
        | Node::Case { .. } => true,
        Node::Cast { operand, .. } => is_simple(operand, node),
        Node::Operator { .. } => match parent {
            Node::Operator { .. } => binds_tighter(node, parent),
            parent => separates(parent),
        },
        Node::Sublink(_) | Node::NullTest { .. } | Node::BooleanTest { .. } | Node::Distinct(..) => separates(parent),
        Node::And(_) | Node::Not(_) => match parent {
            Node::And(_) | Node::Or(_) => true,
            Node::Not(_) => false,
            parent => separates(parent),
        },
        Node::Or(_) => match parent {
            Node::Or(_) => true,
            Node::And(_) | Node::Not(_) => false,
            parent => separates(parent),
        },
        Node::Quantified { .. } | Node::Collate { .. } => false,
    }
}

/// Returns whether a node has delimiters of its own around its operands, or binds less than any operator.
fn separates(parent: &Node) -> bool {
    match parent {
        Node::Call { form, .. } => *form == Form::Call,
        Node::And(_)
        | Node::Or(_)
        | Node::Not(_)
        | Node::Array { .. }
        | Node::Row(_)
        | Node::Coalesce(..)
        | Node::Extreme { .. }
        | Node::NullIf(..)
        | Node::Aggregate(_)
        | Node::Window(_)
        | Node::Case { .. } => true,
        _ => false,
    }
}

/// Returns the letter of an operator of one letter with two operands.
fn simple_name(node: &Node) -> Option<char> {
    match node {
        Node::Operator { name, operands, .. } if operands.len() == 2 && name.len() == 1 => name.chars().next(),
        _ => None,
    }
}

fn binds_tighter(node: &Node, parent: &Node) -> bool {
    let level = |node: &Node| match simple_name(node) {
        Some('+' | '-') => Some(1),
        Some('*' | '/' | '%') => Some(2),
        _ => None,
    };
    let (Some(own), Some(around)) = (level(node), level(parent)) else { return false };
    let Node::Operator { operands, .. } = parent else { return false };
    // Of equal operators only the left one needs none: (a - b) - c.
    own > around || own == around && std::ptr::eq(node, &raw const operands[0])
}
