//! The planner of one query block: its tables, and the requirements of the plan. `join` plans with `order`,
//! `equivalence` and `predicate_extraction`.

use std::sync::Arc;

use crate::nodes::expr::Expr;
use crate::nodes::node::{Node, SortKey};
use crate::nodes::relation::{Origin, ScopeTable, Source};
use crate::plan::selectivity::StatisticsView;

pub struct Planner<'p> {
    pub tables: &'p [ScopeTable],
    pub used: &'p [bool],
    pub width: usize,
    /// For a single table: the requested order, and whether a limit makes it valuable.
    pub order: &'p [SortKey],
    pub limited: bool,
    pub estimates: StatisticsView<'p>,
}

/// A partial plan: its node, its tables, its estimated rows, and whether they are in the requested order.
pub struct Part {
    pub node: Arc<Node>,
    pub tables: Vec<usize>,
    pub rows: f64,
    pub ordered: bool,
}

impl Planner<'_> {
    /// Returns the number of tables without merged views, which have no rows of their own.
    pub(super) fn real_tables(&self) -> usize {
        self.tables.iter().filter(|table| !matches!(table.origin, Origin::View(_))).count()
    }

    pub(super) fn owns(&self, tables: &[usize], place: usize) -> bool {
        tables.iter().any(|table| {
            let table = &self.tables[*table];
            (table.offset..table.offset + table.columns.len()).contains(&place) || table.key_at == Some(place)
        })
    }

    pub(super) fn covers(&self, tables: &[usize], expr: &Expr) -> bool {
        expr.columns().into_iter().all(|place| self.owns(tables, place))
    }
}

pub fn tables_of(source: &Source, out: &mut Vec<usize>) {
    match source {
        Source::Table(table) => out.push(*table),
        Source::Semi(inner, ..) => tables_of(inner, out),
        Source::Inner(items, _) => items.iter().for_each(|item| tables_of(item, out)),
        Source::Left(left, right, _) => {
            tables_of(left, out);
            tables_of(right, out);
        }
    }
}
