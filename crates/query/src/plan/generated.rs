//! Access paths through generated columns: an expression equal to that of an indexed column can use the index.

use crate::catalog::table::Table;
use crate::nodes::expr::Expr;
use crate::value::Value;

/// Returns the generated columns in keys, with their formulas over the wide row.
pub fn indexed(table: &Table, offset: usize) -> Vec<(usize, Expr)> {
    let formulas = table.bound_formulas().into_iter().flatten();
    let useful = formulas.filter(|formula| {
        is_part(table, formula.column) && formula.lossless && !matches!(formula.expr, Expr::Column(..))
    });
    useful.map(|formula| (formula.column, shifted(&formula.expr, offset))).collect()
}

fn is_part(table: &Table, column: usize) -> bool {
    let keys = table.primary.iter().chain(table.indexes.iter().map(|index| &index.parts));
    keys.flatten().any(|part| part.column == column)
}

/// Returns the condition for a row to be in a partial index, over the wide row.
pub fn predicate(table: &Table, column: usize, offset: usize) -> Option<Expr> {
    let formula = table.bound_formulas()?.iter().find(|formula| formula.column == column)?;
    Some(shifted(&formula.expr, offset))
}

fn shifted(expr: &Expr, offset: usize) -> Expr {
    let mut expr = expr.clone();
    expr.rewrite(&mut |expr| {
        if let Expr::Column(at, _) = expr {
            *at += offset;
        }
    });
    expr
}

/// Returns whether the expression equals the formula over the same columns. `loosely`: a parameter may match a literal.
pub fn is_like(expr: &Expr, formula: &Expr, loosely: bool) -> bool {
    is_like_where(expr, formula, &|_, _| loosely)
}

/// Returns the same, where a parameter matches a literal that is its value.
pub fn is_like_given(expr: &Expr, formula: &Expr, constant: &dyn Fn(&Expr) -> Option<Value>) -> bool {
    is_like_where(expr, formula, &|parameter, literal| constant(parameter).is_some_and(|value| value == *literal))
}

fn is_like_where(expr: &Expr, formula: &Expr, stands_for: &dyn Fn(&Expr, &Value) -> bool) -> bool {
    let same_head = match (expr, formula) {
        // A literal has the collation of the connection, which yields to that of columns.
        (Expr::Literal(a, s), Expr::Literal(b, t)) => a == b && s.storage == t.storage,
        (Expr::Parameter(..), Expr::Literal(value, _)) => stands_for(expr, value),
        (expr, formula) => expr.has_same_head(formula),
    };
    if !same_head {
        return false;
    }
    let (ours, theirs) = (expr.children(), formula.children());
    ours.len() == theirs.len() && ours.into_iter().zip(theirs).all(|(a, b)| is_like_where(a, b, stands_for))
}
