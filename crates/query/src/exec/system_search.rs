//! The part of a computed table that conditions ask for.

use std::sync::Arc;

use crate::batch::Row;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::system_condition::key_condition;
use crate::nodes::system_table::{Search, SystemTable};

/// Returns the values that the conditions give to key columns. A value that cannot be computed narrows nothing: the condition is evaluated above, for the rows that reach it.
pub fn searched(
    table: &'static SystemTable,
    conditions: &[Expr],
    offset: usize,
    base: Option<&Arc<Row>>,
    ctx: &mut EvalContext,
) -> Search {
    let base: &[_] = base.map_or(&[], |row| row);
    let mut search = Search { table: Some(table), equal: Vec::new() };
    for condition in conditions {
        let Some((column, other)) = key_condition(table, condition, offset) else { continue };
        let is_known = other.columns().iter().all(|place| *place < base.len());
        if is_known && let Ok(value) = other.eval(base, ctx) {
            search.equal.push((column, value));
        }
    }
    search
}
