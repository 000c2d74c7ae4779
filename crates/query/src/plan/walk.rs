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

/// Is a subquery asked in it?
pub fn has_subquery(expr: &Expr) -> bool {
    let mut has = false;
    expr.walk(&mut |expr| has |= matches!(expr, Expr::Hosted(..)));
    has
}

/// The parts of an arm of an OR.
pub fn parts_of(arm: &Expr) -> Vec<Expr> {
    let mut parts = Vec::new();
    conjuncts(arm.clone(), &mut parts);
    parts
}

/// The parts that must all hold.
pub fn conjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::And(list) => list.into_iter().for_each(|item| conjuncts(item, out)),
        Expr::Or(arms) => {
            let common = common_of(&arms);
            let rest = if common.is_empty() { Some(Expr::Or(arms)) } else { without(&arms, &common) };
            out.extend(rest);
            out.extend(common);
        }
        expr => out.push(expr),
    }
}

/// The OR of what its arms ask for besides; None if one of them asks for nothing else: (a and b) or a is a, whatever is NULL.
fn without(arms: &[Expr], common: &[Expr]) -> Option<Expr> {
    let rest = |arm: &Expr| {
        let mut parts = parts_of(arm);
        parts.retain(|part| !common.iter().any(|known| same(known, part)));
        (!parts.is_empty()).then(|| Expr::and(parts))
    };
    arms.iter().map(rest).collect::<Option<Vec<Expr>>>().map(Expr::or)
}

/// What every arm of an OR asks for. Only conditions on their own lead to rows and join tables.
fn common_of(arms: &[Expr]) -> Vec<Expr> {
    let [first, rest @ ..] = arms else { return Vec::new() };
    let mut common = parts_of(first);
    common.retain(|part| matches!(part, Expr::Compare(_) | Expr::Between(_) | Expr::In(_)) && !is_volatile(part));
    for arm in rest {
        if common.is_empty() {
            break;
        }
        let others = parts_of(arm);
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
