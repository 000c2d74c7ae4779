//! Access paths through generated columns: an expression equal to that of an indexed column can use the index.

use crate::catalog::table::Table;
use crate::nodes::expr::Expr;

/// Returns the generated columns in keys, with their formulas over the wide row.
pub fn indexed(table: &Table, offset: usize) -> Vec<(usize, Expr)> {
    let formulas = table.bound_formulas().into_iter().flatten();
    let useful = formulas.filter(|formula| {
        table.is_in_key(formula.column) && formula.lossless && !matches!(formula.expr, Expr::Column(..))
    });
    let shifted = useful.map(|formula| {
        let mut expr = formula.expr.clone();
        expr.rewrite(&mut |expr| {
            if let Expr::Column(at, _) = expr {
                *at += offset;
            }
        });
        (formula.column, expr)
    });
    shifted.collect()
}

/// Returns whether the expression equals the formula over the same columns. `loosely`: a parameter may match a literal.
pub fn is_like(expr: &Expr, formula: &Expr, loosely: bool) -> bool {
    let same_head = match (expr, formula) {
        // A literal has the collation of the connection, which yields to that of columns.
        (Expr::Literal(a, s), Expr::Literal(b, t)) => a == b && s.storage == t.storage,
        (Expr::Parameter(..), Expr::Literal(..)) => loosely,
        (expr, formula) => expr.has_same_head(formula),
    };
    if !same_head {
        return false;
    }
    let (ours, theirs) = (expr.children(), formula.children());
    ours.len() == theirs.len() && ours.into_iter().zip(theirs).all(|(a, b)| is_like(a, b, loosely))
}
