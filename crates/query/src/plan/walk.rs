//! What an expression is made of.

use std::sync::Arc;

use crate::scalar::Expr;

/// The places of the row that it reads.
pub fn columns(expr: &Expr) -> Vec<usize> {
    expr.columns()
}

/// Does it answer anew each time it is asked, like RAND()?
pub fn is_volatile(expr: &Expr) -> bool {
    let mut volatile = false;
    expr.walk(&mut |expr| volatile |= matches!(expr, Expr::Call(call) if call.function.volatile));
    volatile
}

/// The parts that must all hold.
pub fn conjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::And(list) => list.into_iter().for_each(|item| conjuncts(item, out)),
        expr => out.push(expr),
    }
}

/// The same expression read: equal texts mean equal expressions, but for subqueries.
pub fn same(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Column(a, _), Expr::Column(b, _)) => a == b,
        (Expr::Hosted(a, _), Expr::Hosted(b, _)) => Arc::ptr_eq(a, b) || format!("{a:?}") == format!("{b:?}"),
        (Expr::Column(..), _) | (_, Expr::Column(..)) => false,
        _ => format!("{a:?}") == format!("{b:?}"),
    }
}
