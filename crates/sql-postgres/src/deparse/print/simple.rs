//! Which operands need no parentheses in pretty text: `isSimpleNode`.

use crate::deparse::node::{SqlForm, SqlNode};

/// Returns whether a node reads the same without parentheses within its parent.
pub fn is_simple(node: &SqlNode, parent: &SqlNode) -> bool {
    match node {
        SqlNode::Column { .. }
        | SqlNode::Const { .. }
        | SqlNode::Array { .. }
        | SqlNode::Row(_)
        | SqlNode::Element { .. }
        | SqlNode::Coalesce(..)
        | SqlNode::Extreme { .. }
        | SqlNode::SqlValue { .. }
        | SqlNode::NullIf(..)
        | SqlNode::Aggregate(_)
        | SqlNode::Window(_)
        | SqlNode::Call { .. }
        | SqlNode::JsonConstructor { .. }
        | SqlNode::Case { .. } => true,
        SqlNode::Cast { operand, .. } => is_simple(operand, node),
        // It appears simple since its notation is a postfix, but for another one around it.
        SqlNode::Field { .. } => !matches!(parent, SqlNode::Field { .. }),
        SqlNode::Operator { .. } => match parent {
            SqlNode::Operator { .. } => binds_tighter(node, parent),
            parent => separates(parent),
        },
        SqlNode::Sublink(_)
        | SqlNode::NullTest { .. }
        | SqlNode::BooleanTest { .. }
        | SqlNode::JsonTest { .. }
        | SqlNode::Distinct(..) => separates(parent),
        SqlNode::And(_) | SqlNode::Not(_) => match parent {
            SqlNode::And(_) | SqlNode::Or(_) => true,
            SqlNode::Not(_) => false,
            parent => separates(parent),
        },
        SqlNode::Or(_) => match parent {
            SqlNode::Or(_) => true,
            SqlNode::And(_) | SqlNode::Not(_) => false,
            parent => separates(parent),
        },
        SqlNode::Quantified { .. } | SqlNode::Collate { .. } | SqlNode::JsonValue { .. } => false,
    }
}

/// Returns whether a node has delimiters of its own around its operands, or binds less than any operator.
fn separates(parent: &SqlNode) -> bool {
    match parent {
        SqlNode::Call { form, .. } => matches!(form, SqlForm::Call | SqlForm::Variadic),
        SqlNode::And(_)
        | SqlNode::Or(_)
        | SqlNode::Not(_)
        | SqlNode::Array { .. }
        | SqlNode::Row(_)
        | SqlNode::Coalesce(..)
        | SqlNode::Extreme { .. }
        | SqlNode::NullIf(..)
        | SqlNode::Aggregate(_)
        | SqlNode::Window(_)
        | SqlNode::JsonConstructor { .. }
        | SqlNode::Case { .. } => true,
        _ => false,
    }
}

/// Returns the letter of an operator of one letter with two operands.
fn simple_name(node: &SqlNode) -> Option<char> {
    match node {
        SqlNode::Operator { name, operands, .. } if operands.len() == 2 && name.len() == 1 => name.chars().next(),
        _ => None,
    }
}

fn binds_tighter(node: &SqlNode, parent: &SqlNode) -> bool {
    let level = |node: &SqlNode| match simple_name(node) {
        Some('+' | '-') => Some(1),
        Some('*' | '/' | '%') => Some(2),
        _ => None,
    };
    let (Some(own), Some(around)) = (level(node), level(parent)) else { return false };
    let SqlNode::Operator { operands, .. } = parent else { return false };
    // Of equal operators only the left one needs none: (a - b) - c.
    own > around || own == around && std::ptr::eq(node, &raw const operands[0])
}
