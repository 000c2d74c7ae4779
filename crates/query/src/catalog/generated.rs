//! Generated columns as definitions: what their values follow from, and which of them a row holds.
//!
//! G1: a row holds the values of a STORED column, and of a VIRTUAL one that a key contains; any other VIRTUAL column has NULL in its slot and is computed when it is read. So the entry of an
//! index follows from the bytes of its row alone, and never from the session that happens to look: an expression over a TIMESTAMP, say, depends on the time zone.
//! G2: a generated column looks at columns that are no generated ones, or stand before it: computed from left to right, each finds what it needs.

use crate::catalog::table::{Table, TableColumn};
use crate::error::{Result, SqlError};
use crate::nodes::expr::Expr;

/// GENERATED ALWAYS AS (text).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    pub text: String,
    pub stored: bool,
    /// It stands behind a part of a functional index, and no name reaches it.
    pub hidden: bool,
    /// Rows hold its values. Follows from the definition.
    pub kept: bool,
}

/// The expression of a generated column, over the table's columns.
#[derive(Clone, Debug)]
pub struct Formula {
    pub column: usize,
    pub expr: Expr,
    /// All columns of the row that it follows from, those of generated columns among them counted through.
    pub reads: Vec<usize>,
}

impl TableColumn {
    pub fn is_hidden(&self) -> bool {
        self.generated.as_ref().is_some_and(|generated| generated.hidden)
    }

    /// Is it computed whenever it is read?
    pub fn is_computed(&self) -> bool {
        self.generated.as_ref().is_some_and(|generated| !generated.kept)
    }
}

impl Table {
    /// G1.
    pub(super) fn keep_what_keys_need(&mut self) {
        for at in 0..self.columns.len() {
            let in_key = self.is_in_key(at);
            if let Some(generated) = &mut self.columns[at].generated {
                generated.kept = generated.stored || in_key;
            }
        }
        self.computes = self.columns.iter().any(TableColumn::is_computed);
    }

    pub fn is_in_key(&self, column: usize) -> bool {
        let keys = self.primary.iter().chain(self.indexes.iter().map(|index| &index.parts));
        keys.flatten().any(|part| part.column == column)
    }

    pub fn is_generated(&self) -> bool {
        self.columns.iter().any(|column| column.generated.is_some())
    }

    /// Columns that have a name.
    pub fn named(&self) -> impl Iterator<Item = (usize, &TableColumn)> {
        self.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden())
    }

    /// Its formulas, from left to right.
    pub fn formulas(&self) -> Result<&[Formula]> {
        match self.formulas.get() {
            Some(formulas) => Ok(formulas),
            None if !self.is_generated() => Ok(&[]),
            None => Err(SqlError::corrupt("a generated column that nobody has bound")),
        }
    }

    /// These columns, and those that computed ones among them are computed from.
    pub fn with_sources(&self, mut columns: Vec<usize>) -> Vec<usize> {
        let formulas = self.formulas.get().map_or(&[][..], |formulas| formulas);
        let computed = formulas.iter().filter(|formula| self.columns[formula.column].is_computed());
        let needed: Vec<&Formula> = computed.filter(|formula| columns.contains(&formula.column)).collect();
        if !needed.is_empty() {
            columns.extend(needed.iter().flat_map(|formula| &formula.reads));
            columns.sort_unstable();
            columns.dedup();
        }
        columns
    }

    /// The word for a part of a key, as SHOW CREATE TABLE has it: a name, or an expression in brackets.
    pub fn expression_of(&self, column: usize) -> Option<&str> {
        self.columns[column].generated.as_ref().filter(|generated| generated.hidden).map(|generated| &*generated.text)
    }
}
