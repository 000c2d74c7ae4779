//! Generated columns as definitions: what their values follow from, and which of them a row holds.
//!
//! QU-8: a row holds the values of a STORED column, and of a VIRTUAL one that a key contains; any other VIRTUAL column has NULL in its slot and is computed when it is read. So the entry of an
//! index follows from the bytes of its row alone, and never from the session that happens to look: an expression over a TIMESTAMP, say, depends on the time zone.
//! QU-9: a generated column looks at columns that are no generated ones, or stand before it: computed from left to right, each finds what it needs.

use crate::catalog::table::{Table, TableColumn};

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
    /// QU-8.
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

    /// The word for a part of a key, as SHOW CREATE TABLE has it: a name, or an expression in brackets.
    pub fn expression_of(&self, column: usize) -> Option<&str> {
        self.columns[column].generated.as_ref().filter(|generated| generated.hidden).map(|generated| &*generated.text)
    }
}
