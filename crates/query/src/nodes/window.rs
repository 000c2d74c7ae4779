//! Window functions as the plan has them: rows in partitions, in an order, and what is told of each by looking at the others.
//!
//! One `Window` is one way of ordering; all functions over it are made in one pass. Its rows are those of its input, with the results at places behind them.

use std::sync::Arc;

use datum::key::KeyOrder;

use crate::nodes::expr::Expr;
use crate::nodes::node::{AggregateCall, Node};

#[derive(Debug)]
pub struct Window {
    pub input: Arc<Node>,
    pub partition: Vec<Expr>,
    /// Expressions, and whether they descend.
    pub order: Vec<(Expr, KeyOrder)>,
    pub calls: Vec<WindowCall>,
    /// Of the rows it gives.
    pub width: usize,
}

#[derive(Clone, Debug)]
pub struct WindowCall {
    /// Where the result goes.
    pub at: usize,
    pub what: What,
    pub frame: Frame,
}

#[derive(Clone, Debug)]
pub enum What {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile(Expr),
    /// LAG and LEAD: the value so many rows away, or else the other one of this row.
    Shift {
        value: Expr,
        by: Option<Expr>,
        otherwise: Expr,
        ahead: bool,
    },
    First(Expr),
    Last(Expr),
    Nth(Expr, Expr),
    Aggregate(AggregateCall),
}

#[derive(Clone, Debug)]
pub struct Frame {
    /// Counted in rows, not by the distance of values.
    pub counts_rows: bool,
    pub start: Edge,
    pub end: Edge,
    /// For messages.
    pub window: Arc<str>,
}

#[derive(Clone, Debug)]
pub enum Edge {
    /// UNBOUNDED, in the direction of its end.
    Far,
    Current,
    Preceding(Distance),
    Following(Distance),
}

#[derive(Clone, Debug)]
pub struct Distance {
    /// The same for all rows.
    pub amount: Expr,
    /// Of RANGE.
    pub reach: Option<Arc<Reach>>,
}

/// How far by values: the ordering value, what lies the distance away from it, and whether another row's value lies outside.
#[derive(Debug)]
pub struct Reach {
    pub key: Expr,
    pub boundary: Expr,
    /// Over (boundary, key): at the start of a frame that the key comes before it, at its end that it comes after it.
    pub outside: Expr,
    pub descending: bool,
}
