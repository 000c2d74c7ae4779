//! Estimates of a node's rows and cost.

use std::sync::Arc;

use crate::nodes::expr::Expr;
use crate::nodes::node::{JoinKind, Node};
use crate::nodes::subquery::{Question, Subquery};
use crate::plan::cost::kept;
use crate::plan::cost::{FOUND, HASH, KEPT, OPEN, PROBE, ROWS, STEP};
use crate::value::Value;

/// The assumed number of rows of a set-returning function.
const SET_ROWS: f64 = 100.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub rows: f64,
    pub cost: f64,
}

/// Estimates the most row combinations of any join below: the figure that `max_join_size` bounds.
pub fn joined_rows(node: &Arc<Node>) -> f64 {
    match &**node {
        Node::Scan(scan) => scan.estimate,
        Node::Loop { left, right, .. } => {
            let rows = estimate(left).rows * estimate(right).rows.max(1.0);
            rows.max(joined_rows(left)).max(joined_rows(right))
        }
        Node::Hash(join) => join.estimate.max(joined_rows(&join.left)).max(joined_rows(&join.right)),
        Node::Filter { input, .. }
        | Node::Sort { input, .. }
        | Node::Distinct { input, .. }
        | Node::Project { input, .. }
        | Node::Strip { input, .. }
        | Node::Derived { input, .. }
        | Node::Lateral { input, .. }
        | Node::Limit { input, .. }
        | Node::Ties { input, .. } => joined_rows(input),
        Node::LockRows(lock) => joined_rows(&lock.input),
        Node::Group(group) => joined_rows(&group.input),
        Node::Window(window) => joined_rows(&window.input),
        Node::ProjectSet(set) => joined_rows(&set.input),
        Node::Union { inputs } => inputs.iter().map(joined_rows).fold(0.0, f64::max),
        Node::SetOperation { left, right, .. } => joined_rows(left).max(joined_rows(right)),
        Node::Common { source, .. } => joined_rows(source),
        Node::One { .. }
        | Node::TableFunction(_)
        | Node::LastRound { .. }
        | Node::System { .. }
        | Node::Rows { .. } => 0.0,
    }
}

pub fn estimate(node: &Arc<Node>) -> Estimate {
    let of = |rows: f64, cost: f64| Estimate { rows, cost };
    match &**node {
        Node::One { .. } => of(1.0, 0.0),
        Node::Scan(scan) => of(scan.estimate, scan.cost),
        Node::Loop { left, right, kind, .. } => {
            let (left, right) = (estimate(left), estimate(right));
            let rows = match kind {
                JoinKind::Inner => left.rows * right.rows,
                JoinKind::Left => left.rows * right.rows.max(1.0),
                JoinKind::Semi => left.rows * kept(right.rows.min(1.0), false),
                JoinKind::Anti => left.rows * kept(right.rows.min(1.0), true),
            };
            of(rows, left.cost + left.rows * (OPEN + right.cost))
        }
        Node::Hash(join) => {
            let (left, right) = (estimate(&join.left), estimate(&join.right));
            of(join.estimate, left.cost + right.cost + right.rows * HASH + left.rows * PROBE + join.estimate * STEP)
        }
        Node::Filter { input, conditions } => {
            let input = estimate(input);
            let rows = input.rows * KEPT.powi(conditions.len().min(3) as i32);
            of(rows, input.cost + input.rows * STEP + asking(conditions, input.rows))
        }
        Node::Group(group) => {
            let input = estimate(&group.input);
            let rows = if group.is_whole { 1.0 } else { group.estimate };
            of(rows, input.cost + input.rows * STEP)
        }
        Node::Window(window) => sorted(estimate(&window.input)),
        Node::Sort { input, .. } => sorted(estimate(input)),
        Node::Distinct { input, .. } => {
            let input = estimate(input);
            of((input.rows / 2.0).max(1.0), input.cost + input.rows * STEP)
        }
        Node::Project { input, exprs } => {
            let input = estimate(input);
            of(input.rows, input.cost + asking(exprs, input.rows))
        }
        Node::LockRows(lock) => estimate(&lock.input),
        Node::Strip { input, .. } | Node::Derived { input, .. } | Node::Lateral { input, .. } => estimate(input),
        Node::Ties { input, limit, .. } => {
            let input = estimate(input);
            let limit = if let Expr::Literal(Value::Int(limit), _) = limit { *limit as f64 } else { f64::INFINITY };
            of(input.rows.min(limit), input.cost)
        }
        Node::Limit { input, limit, .. } => {
            let input = estimate(input);
            let limit = match limit {
                Some(Expr::Literal(Value::Int(limit), _)) => *limit as f64,
                _ => f64::INFINITY,
            };
            of(input.rows.min(limit), input.cost)
        }
        Node::Union { inputs } => {
            inputs.iter().map(estimate).fold(of(0.0, 0.0), |sum, next| of(sum.rows + next.rows, sum.cost + next.cost))
        }
        Node::SetOperation { left, right, .. } => {
            let (left, right) = (estimate(left), estimate(right));
            of(left.rows / 2.0, left.cost + right.cost + (left.rows + right.rows) * STEP)
        }
        Node::Common { source, recursion, .. } => {
            let source = estimate(source);
            of(if recursion.is_some() { source.rows * 10.0 } else { source.rows }, source.cost)
        }
        Node::ProjectSet(set) => {
            let input = estimate(&set.input);
            let is_one_row = set.calls.iter().all(|call| call.function.is_none());
            let rows = input.rows * if is_one_row { 1.0 } else { SET_ROWS };
            of(rows, input.cost + rows * STEP)
        }
        // As MySQL assumes.
        Node::TableFunction(_) => of(2.0, 1.0),
        Node::LastRound { .. } => of(1.0, 1.0),
        Node::System { table, wanted, .. } if !table.is_keyspace() && !wanted.is_empty() => of(FOUND, FOUND),
        Node::System { .. } => of(ROWS, ROWS),
        Node::Rows { rows } => of(rows.len() as f64, rows.len() as f64 * STEP),
    }
}

/// Estimates the cost of evaluating the subqueries in these expressions for `rows` rows. An uncorrelated one runs once
/// in any plan and does not count.
pub fn asking<'e>(exprs: impl IntoIterator<Item = &'e Expr>, rows: f64) -> f64 {
    let mut cost = 0.0;
    for expr in exprs {
        expr.walk(&mut |expr| {
            let Some(query) = expr.subquery() else { return };
            cost += rows * PROBE;
            if query.is_correlated {
                // With a hashed alternative, evaluation row by row stops at the cost of building the set.
                let by_list = query.list.as_ref().map_or(f64::INFINITY, |list| 2.0 * list.cost);
                cost += (rows.min(query.kinds) * subquery_cost(query)).min(by_list);
            }
        });
    }
    cost
}

fn sorted(input: Estimate) -> Estimate {
    Estimate { rows: input.rows, cost: input.cost + input.rows * input.rows.max(2.0).log2() * STEP }
}

/// Estimates the cost of evaluating the subquery for one row.
pub fn subquery_cost(query: &Subquery) -> f64 {
    let each = estimate(&query.node);
    // EXISTS stops at the first row.
    let part = if matches!(query.question, Question::Exists) { each.rows.max(1.0) } else { 1.0 };
    OPEN + each.cost / part
}
