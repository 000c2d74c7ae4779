//! Generated columns as definitions: the columns that they depend on, and whether rows store them.
//!
//! QU-8: a row stores the values of a STORED column, and of a VIRTUAL one that a key contains. Any other VIRTUAL column
//! has NULL in its slot and is computed when it is read. So an index entry is determined by the bytes of its row, and
//! never by the session that reads it; an expression over a TIMESTAMP, for example, depends on the time zone. QU-9: a
//! generated column reads plain columns and generated ones before it, so a computation from left to right finds its
//! operands.

use crate::catalog::table::{Table, TableColumn};

impl TableColumn {
    pub fn is_hidden(&self) -> bool {
        self.generated.as_ref().is_some_and(|generated| generated.hidden)
    }

    /// Returns whether the column is computed when it is read.
    pub fn is_computed(&self) -> bool {
        self.generated.as_ref().is_some_and(|generated| !generated.kept)
    }
}

impl Table {
    /// Marks the VIRTUAL columns that rows store because a key contains them (QU-8).
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
        let mut parts = self.primary.iter().flatten();
        let mut indexes = self.indexes.iter();
        parts.any(|part| part.column == column) || indexes.any(|index| index.columns().any(|at| at == column))
    }

    pub fn is_generated(&self) -> bool {
        self.columns.iter().any(|column| column.generated.is_some())
    }

    /// Iterates over the columns that are not hidden.
    pub fn named(&self) -> impl Iterator<Item = (usize, &TableColumn)> {
        self.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden())
    }

    /// Returns the expression of a functional key part, as SHOW CREATE TABLE prints it.
    pub fn expression_of(&self, column: usize) -> Option<&str> {
        self.columns[column].generated.as_ref().filter(|generated| generated.hidden).map(|generated| &*generated.text)
    }
}
