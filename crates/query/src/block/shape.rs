//! The nodes above the joins of a block: projection, grouping, limits.

use std::sync::Arc;

use crate::nodes::expr::Expr;
use crate::nodes::node::{AggregateCall, Group, Node};
use crate::plan::selectivity::StatisticsView;

/// The limit and the offset of a query.
pub type Limits = (Option<Expr>, Option<Expr>);

/// The grouping of a block: its keys and what is computed for each group.
#[derive(Clone, Copy)]
pub struct Grouping<'g> {
    pub keys: &'g [Expr],
    pub calls: &'g [AggregateCall],
    /// WITH ROLLUP
    pub rollup: bool,
    /// See `Group::sets`.
    pub sets: &'g [Vec<usize>],
    /// The call whose result is the grouping level.
    pub level: Option<usize>,
}

/// Projects the expressions. A scan yields plain columns by itself.
pub fn projected(mut input: Arc<Node>, exprs: Vec<Expr>) -> Arc<Node> {
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
pub fn group_count(rows: f64, grouped: Grouping<'_>, estimates: StatisticsView<'_>) -> f64 {
    let known: Option<f64> = grouped.keys.iter().map(|key| estimates.distinct(key)).product();
    known.map_or(rows / 10.0, |known| known.min(rows)).max(1.0) * grouped.sets.len().max(1) as f64
}

/// Returns the grouping node, with an estimate of its groups.
pub fn group_node(mut input: Arc<Node>, grouped: Grouping<'_>, estimate: f64) -> Arc<Node> {
    if let Some(Node::Scan(scan)) = Arc::get_mut(&mut input) {
        scan.narrow(grouped.keys.iter().chain(grouped.calls.iter().flat_map(|call| &call.arguments)));
    }
    Arc::new(Node::Group(Group {
        estimate,
        input,
        types: grouped.keys.iter().map(Expr::ty).collect(),
        keys: grouped.keys.to_vec(),
        calls: grouped.calls.to_vec(),
        is_whole: grouped.keys.is_empty() && grouped.sets.is_empty(),
        rollup: grouped.rollup,
        sets: grouped.sets.to_vec(),
        level: grouped.level,
    }))
}

/// Returns the outermost projection of a plan.
pub fn outermost(node: &mut Arc<Node>) -> Option<&mut Vec<Expr>> {
    match Arc::get_mut(node)? {
        Node::Project { exprs, .. } => Some(exprs),
        Node::Limit { input, .. } | Node::Ties { input, .. } | Node::Strip { input, .. } | Node::Sort { input, .. } => {
            outermost(input)
        }
        _ => None,
    }
}

/// Limits the rows, if there is a limit.
pub fn limited(input: Arc<Node>, (limit, offset): Limits) -> Arc<Node> {
    match limit.is_none() && offset.is_none() {
        true => input,
        false => Arc::new(Node::Limit { input, limit, offset, counts: false }),
    }
}

/// Limits the rows and counts those beyond the limit.
pub fn counted(input: Arc<Node>, (limit, offset): Limits) -> Arc<Node> {
    Arc::new(Node::Limit { input, limit, offset, counts: true })
}
