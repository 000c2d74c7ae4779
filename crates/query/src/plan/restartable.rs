//! Whether a plan may be dropped and restarted without a difference in its result.
//!
//! A plan is restartable if it reads one table, and none of its expressions is volatile or has a side effect: no
//! RAND(), no GET_LOCK(), no assignment of a variable, no subquery. An INSERT of such values is restartable too
//! (`nodes::change::Insert`). A restarted plan acquires the same locks again.

use crate::nodes::expr::Expr;
use crate::nodes::node::Node;
use crate::nodes::walk::{self, is_steady};

pub fn is_restartable(node: &Node) -> bool {
    match node {
        Node::Scan(scan) => scan.access.exprs().chain(&scan.conditions).all(is_steady),
        Node::Filter { input, conditions } => is_restartable(input) && conditions.iter().all(is_steady),
        Node::Project { input, exprs } => is_restartable(input) && exprs.iter().all(is_steady),
        Node::LockRows(lock) => is_restartable(&lock.input) && lock.conditions.iter().all(is_steady),
        Node::Strip { input, .. } | Node::Distinct { input, .. } => is_restartable(input),
        Node::Sort { input, limit, .. } => {
            let limits = limit.iter().flat_map(|(limit, offset)| std::iter::once(limit).chain(offset));
            is_restartable(input) && limits.into_iter().all(is_steady)
        }
        Node::Limit { input, limit, offset, counts: false } => {
            is_restartable(input) && limit.iter().chain(offset).all(is_steady)
        }
        Node::Group(group) => {
            let arguments = group.calls.iter().flat_map(|call| &call.arguments);
            is_restartable(&group.input) && group.keys.iter().chain(arguments).all(is_steady)
        }
        _ => false,
    }
}

/// Returns whether the plan does nothing but compute a row with sleeps, which need no thread.
pub fn only_sleeps(node: &Node) -> bool {
    let mut sleeps = false;
    computes_one_row(node, &mut |expr| sleeps |= has_sleep(expr)) && sleeps
}

/// Returns the same for expressions that are evaluated alone.
pub fn only_sleep(exprs: &[Expr]) -> bool {
    exprs.iter().all(is_steady_but_sleep) && exprs.iter().any(has_sleep)
}

fn computes_one_row(node: &Node, see: &mut dyn FnMut(&Expr)) -> bool {
    let mut are_steady = |exprs: &[Expr]| {
        exprs.iter().for_each(&mut *see);
        exprs.iter().all(is_steady_but_sleep)
    };
    match node {
        Node::One { .. } => true,
        Node::Project { input, exprs } => are_steady(exprs) && computes_one_row(input, see),
        Node::Filter { input, conditions } => are_steady(conditions) && computes_one_row(input, see),
        Node::Strip { input, .. } => computes_one_row(input, see),
        Node::Limit { input, limit, offset, counts: false } => {
            limit.iter().chain(offset).all(is_steady) && computes_one_row(input, see)
        }
        _ => false,
    }
}

fn has_sleep(expr: &Expr) -> bool {
    let mut has = false;
    expr.walk(&mut |expr| has |= matches!(expr, Expr::Call(call) if call.function.sleeps));
    has
}

/// Returns whether a restarted evaluation gives the same result: completed sleeps keep theirs, and nothing else is volatile.
fn is_steady_but_sleep(expr: &Expr) -> bool {
    let mut is_volatile = false;
    expr.walk(&mut |expr| {
        is_volatile |= matches!(expr, Expr::Call(call) if call.function.volatile && !call.function.sleeps);
    });
    !is_volatile && !walk::has_subquery(expr)
}
