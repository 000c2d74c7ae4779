//! A table for which an access path is chosen.

use crate::catalog::table::{Index, Table};
use crate::nodes::expr::Expr;
use crate::nodes::relation::Allowed;
use crate::plan::generated::{is_like_given, predicate};
use crate::plan::implication::implying;
use crate::plan::selectivity::StatisticsView;

/// The planner's view of the table.
pub struct Target<'t> {
    pub table: &'t Table,
    pub offset: usize,
    /// Returns whether this slot is bound before the row of the table is read.
    pub is_bound: &'t dyn Fn(usize) -> bool,
    /// Returns whether entries of this index contain all columns that are read.
    pub covers: &'t dyn Fn(usize) -> bool,
    /// Returns whether the condition can be evaluated on an entry of this index.
    pub pushes: &'t dyn Fn(usize, &Expr) -> bool,
    /// The indexes that hints allow. None: all.
    pub allowed: Option<&'t Allowed>,
    pub rows: f64,
    /// The generated columns of its keys, with their expressions over the wide row.
    pub formulas: Vec<(usize, Expr)>,
    pub estimates: StatisticsView<'t>,
}

impl Target<'_> {
    pub(super) fn column_of(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Column(at, _) if (self.offset..self.offset + self.table.columns.len()).contains(at) => {
                Some(at - self.offset)
            }
            Expr::Column(..) => None,
            // An expression equal to that of a generated column can use its index.
            expr => self.formulas.iter().find(|(_, formula)| self.is_formula(expr, formula)).map(|(column, _)| *column),
        }
    }

    /// Returns whether the condition is on a column itself, and not on the expression of a generated one.
    pub(super) fn is_direct(&self, condition: &Expr) -> bool {
        let mut found = false;
        condition.walk(&mut |expr| found |= self.formulas.iter().any(|(_, formula)| self.is_formula(expr, formula)));
        !found
    }

    fn is_formula(&self, expr: &Expr, formula: &Expr) -> bool {
        is_like_given(expr, formula, &|expr| self.estimates.decisive(expr))
    }

    /// Returns the conditions, by their places, from which it follows that the index has all rows that they keep; `None` if
    /// it does not (QU-48).
    pub(super) fn holding_all(&self, index: &Index, conditions: &[Expr]) -> Option<Vec<usize>> {
        let Some(column) = index.predicate else { return Some(Vec::new()) };
        let predicate = predicate(self.table, column, self.offset)?;
        implying(conditions, &predicate, &|expr| self.estimates.decisive(expr))
    }

    pub(super) fn is_known(&self, expr: &Expr) -> bool {
        expr.columns().into_iter().all(|at| (self.is_bound)(at)) && !crate::nodes::walk::is_volatile(expr)
    }
}
