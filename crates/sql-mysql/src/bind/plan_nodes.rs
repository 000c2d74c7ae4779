//! Constructors of plan nodes that several parts of the binder use.

use std::sync::Arc;

use crate::bind::scope::Grouped;
use query::nodes::expr::Expr;
use query::nodes::node::{Group, Node};
use query::plan::selectivity::StatisticsView;

/// The limit and the offset of a query.
pub type Limits = (Option<Expr>, Option<Expr>);

/// Projects the expressions. A scan yields plain columns by itself.
pub(super) fn projected(mut input: Arc<Node>, exprs: Vec<Expr>) -> Arc<Node> {
    let places: Option<Vec<usize>> =
        exprs.iter().map(|expr| if let Expr::Column(at, _) = expr { Some(*at) } else { None }).collect();
    if let (Some(Node::Scan(scan)), Some(places)) = (Arc::get_mut(&mut input), places)
        && (0..places.len()).all(|at| !places[..at].contains(&places[at]))
        && !scan.needed.is_empty()
    {
        scan.narrow(exprs.iter());
        scan.output = Some(places);
        return input;
    }
    Arc::new(Node::Project { input, exprs })
}

/// Estimates the number of groups in `rows` rows.
pub fn group_count(rows: f64, grouped: &Grouped, sight: StatisticsView<'_>) -> f64 {
    let known: Option<f64> = grouped.keys.iter().map(|key| sight.distinct(key)).product();
    known.map_or(rows / 10.0, |known| known.min(rows)).max(1.0)
}

/// Returns the grouping node, with an estimate of its groups.
pub fn group_node(mut input: Arc<Node>, grouped: &Grouped, estimate: f64) -> Arc<Node> {
    if let Some(Node::Scan(scan)) = Arc::get_mut(&mut input) {
        scan.narrow(grouped.keys.iter().chain(grouped.calls.iter().flat_map(|call| &call.arguments)));
    }
    Arc::new(Node::Group(Group {
        estimate,
        input,
        types: grouped.keys.iter().map(Expr::ty).collect(),
        keys: grouped.keys.clone(),
        calls: grouped.calls.clone(),
        is_whole: grouped.keys.is_empty(),
        rollup: grouped.rollup,
        level: grouped.level,
    }))
}

/// Returns the outermost projection of a plan.
pub fn outermost(node: &mut Arc<Node>) -> Option<&mut Vec<Expr>> {
    match Arc::get_mut(node)? {
        Node::Project { exprs, .. } => Some(exprs),
        Node::Limit { input, .. } | Node::Strip { input, .. } | Node::Sort { input, .. } => outermost(input),
        _ => None,
    }
}

pub fn limited(input: Arc<Node>, (limit, offset): Limits) -> Arc<Node> {
    match limit.is_none() && offset.is_none() {
        true => input,
        false => Arc::new(Node::Limit { input, limit, offset, counts: false }),
    }
}

pub(super) fn counted(input: Arc<Node>, (limit, offset): Limits) -> Arc<Node> {
    Arc::new(Node::Limit { input, limit, offset, counts: true })
}
