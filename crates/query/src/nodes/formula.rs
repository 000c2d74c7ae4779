//! Expressions of generated columns, bound by the first statement that uses a version of the table.

use datum::{Fault, Result};

use crate::catalog::table::Table;
use crate::nodes::assignment::Assignment;
use crate::nodes::expr::Expr;

/// The expression of a generated column, over the table's columns.
#[derive(Clone, Debug)]
pub struct Formula {
    pub column: usize,
    pub expr: Expr,
    /// Of the dialect that bound the expression.
    pub assignment: &'static Assignment,
    /// The column has the values of the expression, not others that they were converted to.
    pub lossless: bool,
    /// All columns of the row that it follows from, those of generated columns among them counted through.
    pub reads: Vec<usize>,
}

impl Table {
    /// Its formulas, if a statement has bound them.
    pub fn bound_formulas(&self) -> Option<&Vec<Formula>> {
        self.formulas.get().and_then(|formulas| formulas.downcast_ref())
    }

    /// Keeps the formulas with this version of the table; the first ones win.
    pub fn keep_formulas(&self, formulas: Vec<Formula>) {
        let _ = self.formulas.set(Box::new(formulas));
    }

    /// Its formulas, from left to right.
    pub fn formulas(&self) -> Result<&[Formula]> {
        match self.bound_formulas() {
            Some(formulas) => Ok(formulas),
            None if !self.is_generated() => Ok(&[]),
            None => Err(Fault::corrupt("a generated column that nobody has bound")),
        }
    }

    /// These columns, and those that computed ones among them are computed from.
    pub fn with_sources(&self, mut columns: Vec<usize>) -> Vec<usize> {
        let formulas = self.bound_formulas().map_or(&[][..], |formulas| formulas);
        let computed = formulas.iter().filter(|formula| self.columns[formula.column].is_computed());
        let needed: Vec<&Formula> = computed.filter(|formula| columns.contains(&formula.column)).collect();
        if !needed.is_empty() {
            columns.extend(needed.iter().flat_map(|formula| &formula.reads));
            columns.sort_unstable();
            columns.dedup();
        }
        columns
    }
}
