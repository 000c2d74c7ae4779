//! A bound query block, and the rewrites that turn its subqueries into joins before it is planned.
//!
//! A dialect's binder resolves names and makes a `QueryBlock` of what it found: tables with places for their columns, the joins of FROM, conditions, select list, order. The rewrites work on that alone, so all
//! dialects share them: `semi_join` (IN and EXISTS become semi-joins and antijoins), `unique_semi_join` (a semi-join with one match becomes an inner join), `decorrelated_aggregate` (a scalar aggregate becomes a
//! join with groups), `hashed_subquery` (a set of keys that is tested for membership). `shape` has the nodes above the joins.

use crate::nodes::expr::Expr;
use crate::nodes::node::SortKey;
use crate::nodes::relation::{ScopeTable, Source};
use crate::plan::estimate::{asking, estimate};
use crate::plan::planner::{Part, Planner};
use crate::plan::selectivity::StatisticsView;
use crate::plan::statistics::Statistics;
use crate::value::Value;

pub mod decorrelated_aggregate;
pub mod hashed_subquery;
pub mod locked_rows;
pub mod semi_join;
pub mod shape;
pub mod unique_semi_join;

/// The maximum number of tables of a block that takes in subqueries.
pub const TABLES_MAX: usize = 30;

/// A query block to be planned.
#[derive(Clone, Debug)]
pub struct QueryBlock {
    pub tables: Vec<ScopeTable>,
    /// The number of places of its wide rows.
    pub width: usize,
    /// The places that an expression reads.
    pub used: Vec<bool>,
    pub source: Source,
    pub conditions: Vec<Expr>,
    /// The select list, if the rows are not grouped, and the sort expressions.
    pub exprs: Vec<Expr>,
    pub sorts: Vec<(Expr, bool)>,
}

/// The inputs of planning besides the block.
#[derive(Clone, Copy)]
pub struct PlanningInputs<'w> {
    pub depth: usize,
    /// The order that is wanted of a single table.
    pub order: &'w [SortKey],
    /// Only the first rows are wanted.
    pub limited: bool,
    pub statistics: &'w dyn Statistics,
    /// Known values of parameters, for estimates.
    pub values: &'w [Value],
}

impl QueryBlock {
    /// Plans the block as it is.
    pub fn plan(&self, inputs: PlanningInputs<'_>) -> Part {
        let PlanningInputs { order, limited, statistics, values, depth: _ } = inputs;
        let (tables, used, width) = (&self.tables[..], &self.used[..], self.width);
        let estimates = StatisticsView { tables, statistics, values };
        Planner { tables, used, width, order, limited, estimates }.plan(&self.source, self.conditions.clone())
    }

    /// Returns the total cost, with subqueries evaluated above the joins.
    fn cost(&self, part: &Part) -> f64 {
        estimate(&part.node).cost + asking(&self.exprs, part.rows)
    }

    /// Plans the block, with subqueries decorrelated or hashed where that is cheaper and `may_join` permits it.
    pub fn planned(&mut self, inputs: PlanningInputs<'_>, may_join: bool) -> Part {
        let mut part = self.plan(inputs);
        if !may_join {
            return part;
        }
        for query in self.candidates(inputs.depth) {
            let Some(other) = self.joined(&query, inputs) else { continue };
            let other_part = other.plan(inputs);
            if other.cost(&other_part) < self.cost(&part) {
                (*self, part) = (other, other_part);
            }
        }
        self.with_lists(&mut part, inputs);
        part
    }

    fn all(&self) -> impl Iterator<Item = &Expr> {
        self.conditions.iter().chain(&self.exprs).chain(self.sorts.iter().map(|(expr, _)| expr))
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.conditions.iter_mut().chain(&mut self.exprs).chain(self.sorts.iter_mut().map(|(expr, _)| expr))
    }
}
