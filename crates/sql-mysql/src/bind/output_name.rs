//! Names of result columns, and references to them by name or number in ORDER BY and GROUP BY.

use syntax::tree::{self, ExprKind, Literal, SelectExpr, UnaryOp};

use crate::error::{self, Result};

/// Returns an unqualified column's name.
pub(super) fn bare_name(expr: &tree::Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Column(column) if column.table.is_none() => Some(&column.name),
        _ => None,
    }
}

/// Truncates a generated name to the maximum length.
fn shortened(name: String) -> String {
    const NAME_MAX: usize = 256;
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => name[..end].to_owned(),
        None => name,
    }
}

/// Returns an item's column name: its alias, or its text.
pub(super) fn name_of_item(item: &SelectExpr) -> String {
    let SelectExpr { expr, alias, text } = item;
    if let Some(alias) = alias {
        return alias.clone();
    }
    shortened(name_of_expr(expr, text))
}

fn name_of_expr(expr: &tree::Expr, text: &str) -> String {
    match &expr.kind {
        ExprKind::Column(column) => column.name.clone(),
        ExprKind::Unary { op: UnaryOp::Plus, operand } => {
            name_of_expr(operand, text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '+'))
        }
        ExprKind::Introduced { charset: _, literal: Literal::String(content) } => content.clone(),
        ExprKind::Literal(literal) => match literal {
            Literal::String(content) | Literal::National(content) => {
                first_of(text).unwrap_or(content.as_str()).trim_start().to_owned()
            }
            Literal::Null => "NULL".to_owned(),
            // As written, without enclosing parentheses.
            Literal::Bool(_) | Literal::Integer(_) | Literal::Decimal(_) | Literal::Float(_) => {
                text.trim_matches(|letter: char| letter.is_whitespace() || matches!(letter, '(' | ')')).to_owned()
            }
            Literal::Hex(_) | Literal::Bits(_) | Literal::Temporal(..) => text.to_owned(),
        },
        ExprKind::Parameter(_) => "?".to_owned(),
        _ => text.to_owned(),
    }
}

/// Returns the first of adjacent string literals, if it has no escapes.
fn first_of(text: &str) -> Option<&str> {
    let mark = text.chars().next().filter(|mark| matches!(mark, '\'' | '"'))?;
    let (first, rest) = text[1..].split_once(mark)?;
    let is_plain = !first.contains('\\') && !rest.is_empty() && !rest.starts_with(mark);
    is_plain.then_some(first)
}

/// Resolves an ORDER BY number to a select-list item.
pub(super) fn position(expr: &tree::Expr, count: usize) -> Result<Option<usize>> {
    position_in(expr, count, "order clause")
}

/// Resolves a number to a select-list item; errors name the clause.
pub(super) fn position_in(expr: &tree::Expr, count: usize, clause: &str) -> Result<Option<usize>> {
    let ExprKind::Literal(Literal::Integer(number)) = &expr.kind else { return Ok(None) };
    match usize::try_from(*number) {
        Ok(at) if (1..=count).contains(&at) => Ok(Some(at - 1)),
        _ => Err(error::BAD_FIELD.with(&[number, &clause])),
    }
}
