//! Window functions in a plan: partitions, their order, frames and the functions over them.
//!
//! One `Window` is one ordering; all functions over it are evaluated in one pass. Its rows are those of its input,
//! followed by the results.

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
    /// The width of the rows that it returns.
    pub width: usize,
}

#[derive(Clone, Debug)]
pub struct WindowCall {
    /// The place of the result.
    pub at: usize,
    pub what: What,
    pub frame: Frame,
    /// The number of NTILE, NTH_VALUE, LAG and LEAD is evaluated for each row, or for NTILE up to the first that is not
    /// NULL. NULL gives NULL, and a negative distance looks the other way.
    pub varies: bool,
}

#[derive(Clone, Debug)]
pub enum What {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile(Expr),
    /// LAG and LEAD: the value `by` rows away, or the default.
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

/// The measure of a frame's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Rows,
    /// Distances of values.
    Range,
    /// Groups of peers.
    Groups,
}

/// The rows around the current one that a frame leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

#[derive(Clone, Debug)]
pub struct Frame {
    pub unit: Unit,
    pub start: Edge,
    pub end: Edge,
    pub exclusion: Exclusion,
    /// The name of the window, for messages.
    pub window: Arc<str>,
}

#[derive(Clone, Debug)]
pub enum Edge {
    /// UNBOUNDED PRECEDING at the start, UNBOUNDED FOLLOWING at the end.
    Far,
    Current,
    Preceding(Distance),
    Following(Distance),
}

#[derive(Clone, Debug)]
pub struct Distance {
    /// The offset, constant for all rows.
    pub amount: Expr,
    /// The comparison of a RANGE bound.
    pub reach: Option<Arc<Reach>>,
}

/// A RANGE bound: the ordering value, the boundary at the offset from it, and whether another row's value is outside.
#[derive(Debug)]
pub struct Reach {
    pub key: Expr,
    pub boundary: Expr,
    /// Over (boundary, key): whether the key is before the start of the frame, or after its end.
    pub outside: Expr,
    pub nulls_first: bool,
}
