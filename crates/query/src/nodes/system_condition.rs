//! Conditions that lead to the rows of a searched system table.

use crate::nodes::comparison::Comparison;
use crate::nodes::expr::Expr;
use crate::nodes::system_table::{SystemRows, SystemTable};
use crate::nodes::walk::{has_subquery, is_volatile};

/// Returns whether the condition gives a key column of the table, at this offset, a value that is known before the table is read.
pub fn is_key_condition(table: &SystemTable, condition: &Expr, offset: usize) -> bool {
    key_condition(table, condition, offset).is_some()
}

/// Returns the key column of the condition, and the expression that it equals.
pub fn key_condition<'e>(table: &SystemTable, condition: &'e Expr, offset: usize) -> Option<(usize, &'e Expr)> {
    let SystemRows::Searched { keys, .. } = table.rows else { return None };
    let Expr::Compare(compare) = condition else { return None };
    let own = offset..offset + table.columns.len();
    let key_of = |mine: &Expr, other: &Expr| match mine {
        Expr::Column(place, _) if !other.columns().iter().any(|place| own.contains(place)) => {
            place.checked_sub(offset).filter(|column| keys.contains(column))
        }
        _ => None,
    };
    if compare.op != Comparison::Equal || has_subquery(condition) || is_volatile(condition) {
        return None;
    }
    let sides = [(&compare.left, &compare.right), (&compare.right, &compare.left)];
    sides.into_iter().find_map(|(mine, other)| Some((key_of(mine, other)?, other)))
}
