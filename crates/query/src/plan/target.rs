//! A table for which an access path is chosen.

use crate::catalog::table::Table;
use crate::nodes::expr::Expr;
use crate::nodes::relation::Allowed;
use crate::plan::generated::is_like;
use crate::plan::selectivity::StatisticsView;

/// The table as the planner needs to know it.
pub struct Target<'t> {
    pub table: &'t Table,
    pub offset: usize,
    /// May this place of the row be read before the table's row is?
    pub is_bound: &'t dyn Fn(usize) -> bool,
    /// Do the entries of this index show all that is read of a row?
    pub covers: &'t dyn Fn(usize) -> bool,
    /// Can the condition be looked at before the row is read that an entry of this index leads to?
    pub pushes: &'t dyn Fn(usize, &Expr) -> bool,
    /// Indexes that hints allow; None: all.
    pub allowed: Option<&'t Allowed>,
    pub rows: f64,
    /// Columns of its keys that are computed, by which expressions over the wide row.
    pub formulas: Vec<(usize, Expr)>,
    pub sight: StatisticsView<'t>,
}

impl Target<'_> {
    pub(super) fn column_of(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Column(at, _) if (self.offset..self.offset + self.table.columns.len()).contains(at) => {
                Some(at - self.offset)
            }
            Expr::Column(..) => None,
            // What a generated column holds, the index of that column finds.
            expr => self.formulas.iter().find(|(_, formula)| is_like(expr, formula, false)).map(|(column, _)| *column),
        }
    }

    /// Is it about a column itself, not about what a generated one is computed by?
    pub(super) fn is_direct(&self, condition: &Expr) -> bool {
        let mut found = false;
        condition.walk(&mut |expr| found |= self.formulas.iter().any(|(_, formula)| is_like(expr, formula, false)));
        !found
    }

    pub(super) fn is_known(&self, expr: &Expr) -> bool {
        expr.columns().into_iter().all(|at| (self.is_bound)(at)) && !crate::nodes::walk::is_volatile(expr)
    }
}
