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
        Expr::Or(arms) => {
            let common = common_of(&arms);
            out.push(Expr::Or(arms));
            out.extend(common);
        }
        expr => out.push(expr),
    }
}

/// What every arm of an OR asks for. The OR stands as it is; but only conditions on their own lead to rows and join tables.
fn common_of(arms: &[Expr]) -> Vec<Expr> {
    let parts = |arm: &Expr| {
        let mut parts = Vec::new();
        conjuncts(arm.clone(), &mut parts);
        parts
    };
    let [first, rest @ ..] = arms else { return Vec::new() };
    let mut common = parts(first);
    common.retain(|part| matches!(part, Expr::Compare(_) | Expr::Between(_) | Expr::In(_)) && !is_volatile(part));
    for arm in rest {
        if common.is_empty() {
            break;
        }
        let others = parts(arm);
        common.retain(|part| others.iter().any(|other| same(part, other)));
    }
    common
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
