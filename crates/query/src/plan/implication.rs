//! Implication: whether every row that satisfies some conditions satisfies the predicate of a partial index, so that the
//! index has all of their rows.
//!
//! The rules are those of `predtest.c`: conjuncts and arms are taken apart, and of single conditions one implies another
//! if they are equal, if both compare the same expression with constants, or if the condition cannot hold for NULL and the
//! predicate says that there is none. Everything else is not implied, so a wrong "no" costs a plan and no rows.
//!
//! Keeps QU-48.

use std::cmp::Ordering;

use crate::nodes::comparison::{Comparator, Comparison};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::{Compare, Expr};
use crate::plan::generated::is_like_given;
use crate::value::Value;

/// Lists of more candidates imply nothing, and are implied by equal ones alone.
const CANDIDATES: usize = 100;

/// Gives the value of an expression that is the same for all rows, if the plan may depend on it.
pub type Constant<'c> = &'c dyn Fn(&Expr) -> Option<Value>;

/// A comparison of an expression with a constant.
struct ConstantBound<'e> {
    left: &'e Expr,
    op: Comparison,
    right: &'e Expr,
    by: Comparator,
}

/// Returns the conditions that together imply the predicate, by their places; `None` if they do not.
pub fn implying(conditions: &[Expr], predicate: &Expr, constant: Constant<'_>) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in conjuncts(predicate) {
        all.push(conditions.iter().position(|condition| implies(condition, part, constant))?);
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

fn conjuncts(predicate: &Expr) -> Vec<&Expr> {
    match predicate {
        Expr::And(list) => list.iter().flat_map(conjuncts).collect(),
        part => vec![part],
    }
}

/// Returns whether the predicate is true wherever the condition is.
fn implies(condition: &Expr, predicate: &Expr, constant: Constant<'_>) -> bool {
    if is_like_given(condition, predicate, constant) {
        return true;
    }
    match (condition, predicate) {
        (Expr::Or(arms), _) if arms.len() <= CANDIDATES => arms.iter().all(|arm| implies(arm, predicate, constant)),
        (_, Expr::And(parts)) => parts.iter().all(|part| implies(condition, part, constant)),
        (Expr::And(parts), Expr::Or(arms)) if arms.len() <= CANDIDATES => {
            arms.iter().any(|arm| implies(condition, arm, constant))
                || parts.iter().any(|part| implies(part, predicate, constant))
        }
        (Expr::And(parts), _) => parts.iter().any(|part| implies(part, predicate, constant)),
        (_, Expr::Or(arms)) if arms.len() <= CANDIDATES => arms.iter().any(|arm| implies(condition, arm, constant)),
        _ => one_implies(condition, predicate, constant),
    }
}

fn one_implies(condition: &Expr, predicate: &Expr, constant: Constant<'_>) -> bool {
    match (condition, predicate) {
        (Expr::IsTruth(inner, true), _) => implies(inner, predicate, constant),
        (_, Expr::Not(inner)) if matches!(**inner, Expr::IsNull(_)) => {
            let Expr::IsNull(subject) = &**inner else { return false };
            rejects_null(condition, subject, constant)
        }
        // Comparisons of a truth value with a constant.
        (Expr::Compare(compare), _) if is_of_truth(compare, predicate, constant) => true,
        _ => {
            let (known, wanted) = (bounds(condition), bounds(predicate));
            !wanted.is_empty() && wanted.iter().all(|wanted| any_of(wanted, &known, constant))
        }
    }
}

/// Returns the comparisons that a condition consists of: all of them hold, or of a list any does.
fn bounds(condition: &Expr) -> Vec<Vec<ConstantBound<'_>>> {
    match condition {
        Expr::Compare(compare) => {
            let Compare { op, left, right, by } = &**compare;
            let (turned, by) = (op.flipped(), *by);
            let both = [
                ConstantBound { left, op: *op, right, by },
                ConstantBound { left: right, op: turned, right: left, by },
            ];
            vec![both.into_iter().filter(|bound| !bound.left.columns().is_empty()).take(1).collect()]
        }
        Expr::Between(between) if !between.negated => {
            let left = &between.needle;
            let low = ConstantBound { left, op: Comparison::GreaterEqual, right: &between.low, by: between.low_by };
            let high = ConstantBound { left, op: Comparison::LessEqual, right: &between.high, by: between.high_by };
            vec![vec![low], vec![high]]
        }
        Expr::In(list) if !list.negated && list.list.len() <= CANDIDATES => {
            let left = &list.needle;
            let candidates = list.list.iter();
            vec![candidates.map(|(right, by)| ConstantBound { left, op: Comparison::Equal, right, by: *by }).collect()]
        }
        _ => Vec::new(),
    }
}

/// Returns whether some list of `known`, one of whose bounds holds, leaves only what one of `wanted` accepts.
fn any_of(wanted: &[ConstantBound<'_>], known: &[Vec<ConstantBound<'_>>], constant: Constant<'_>) -> bool {
    let accepts = |bound: &ConstantBound<'_>| wanted.iter().any(|wanted| is_within(bound, wanted, constant));
    known.iter().any(|list| !list.is_empty() && list.iter().all(accepts))
}

/// Returns whether the one comparison holds wherever the other does.
fn is_within(known: &ConstantBound<'_>, wanted: &ConstantBound<'_>, constant: Constant<'_>) -> bool {
    use Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual, NullSafeEqual};
    if known.by != wanted.by || !is_like_given(known.left, wanted.left, constant) {
        return false;
    }
    let (Some(a), Some(b)) = (constant(known.right), constant(wanted.right)) else { return false };
    if a.is_null() || b.is_null() {
        return false;
    }
    let Ok(order) = known.by.order(&a, &b, &mut EvalContext::new()) else { return false };
    match (known.op, wanted.op) {
        (Equal | NullSafeEqual, op) => op.accepts(order),
        (Less, Less | LessEqual | NotEqual) | (LessEqual, LessEqual) => order != Ordering::Greater,
        (LessEqual, Less | NotEqual) => order == Ordering::Less,
        (Greater, Greater | GreaterEqual | NotEqual) | (GreaterEqual, GreaterEqual) => order != Ordering::Less,
        (GreaterEqual, Greater | NotEqual) => order == Ordering::Greater,
        (NotEqual, NotEqual) => order == Ordering::Equal,
        _ => false,
    }
}

/// Returns whether `x = TRUE` or `x = FALSE` implies the predicate, which is x or its negation.
fn is_of_truth(compare: &Compare, predicate: &Expr, constant: Constant<'_>) -> bool {
    let (wanted, subject) = match predicate {
        Expr::Not(inner) => (Value::FALSE, &**inner),
        subject => (Value::TRUE, subject),
    };
    let mut sides = [(&compare.left, &compare.right), (&compare.right, &compare.left)].into_iter();
    compare.op == Comparison::Equal
        && sides.any(|(x, other)| {
            is_like_given(x, subject, constant) && constant(other).is_some_and(|value| value == wanted)
        })
}

/// Returns whether the condition cannot be true where the subject is NULL.
fn rejects_null(condition: &Expr, subject: &Expr, constant: Constant<'_>) -> bool {
    match condition {
        Expr::Not(inner) if matches!(**inner, Expr::IsNull(_)) => {
            matches!(&**inner, Expr::IsNull(of) if gives_null(of, subject, constant))
        }
        condition => gives_null(condition, subject, constant),
    }
}

/// Returns whether the expression is NULL where the subject is.
fn gives_null(expr: &Expr, subject: &Expr, constant: Constant<'_>) -> bool {
    if is_like_given(expr, subject, constant) {
        return true;
    }
    let given = |expr: &Expr| gives_null(expr, subject, constant);
    match expr {
        Expr::Compare(compare) => {
            compare.op != Comparison::NullSafeEqual && (given(&compare.left) || given(&compare.right))
        }
        Expr::Not(inner) => !matches!(**inner, Expr::IsNull(_)) && given(inner),
        // NOT BETWEEN may be true by its other end.
        Expr::Between(between) => given(&between.needle),
        Expr::In(list) => {
            let may_be_empty = list.list.iter().any(|(candidate, _)| matches!(candidate, Expr::Elements(_)));
            let may_hold = list.list.is_empty() || (list.negated && may_be_empty);
            !may_hold && given(&list.needle)
        }
        Expr::Call(call) => call.function.strict && call.arguments.iter().any(given),
        _ => false,
    }
}
