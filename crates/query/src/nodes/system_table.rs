//! Tables that are not maps of rows: those of information_schema and related schemas, and the keys of the Redis door.

use datum::Result;

use crate::batch::Row;
use crate::catalog::keyspace_rows::KeyspaceTable;
use crate::nodes::context::EvalContext;
use crate::nodes::table_function::Give;
use crate::types::{Column, Type};
use crate::value::Value;

pub struct SystemTable {
    pub schema: &'static str,
    pub name: &'static str,
    pub columns: &'static [(&'static str, Type)],
    pub rows: SystemRows,
}

/// The source of the rows of a system table.
pub enum SystemRows {
    /// Computed when the table is read.
    Computed(fn(&mut EvalContext) -> Result<Vec<Row>>),
    /// Computed when the table is read, those with given values of `keys` (columns) at less cost than all.
    Searched { keys: &'static [usize], rows: fn(&Search, &mut EvalContext, &mut Give<'_>) -> Result<()> },
    /// Keys of the Redis door: rows that can be locked and changed.
    Keyspace(&'static KeyspaceTable),
}

/// The part of a searched table to read. Rows beyond it may be given too: the conditions are evaluated above.
#[derive(Debug, Default)]
pub struct Search {
    pub table: Option<&'static SystemTable>,
    /// Key columns and the values that they equal. A NULL equals nothing.
    pub equal: Vec<(usize, Value)>,
}

impl Search {
    /// Returns the value that a column equals.
    pub fn of(&self, column: usize) -> Option<&Value> {
        self.equal.iter().find(|(known, _)| *known == column).map(|(_, value)| value)
    }
}

impl std::fmt::Debug for SystemTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

impl SystemTable {
    /// Returns whether its rows are keys of the Redis door.
    pub fn is_keyspace(&self) -> bool {
        self.keyspace().is_some()
    }

    /// Returns the keys that are its rows.
    pub fn keyspace(&self) -> Option<&'static KeyspaceTable> {
        match self.rows {
            SystemRows::Keyspace(keys) => Some(keys),
            _ => None,
        }
    }

    pub fn columns_as(&self, alias: &str) -> Vec<Column> {
        let column = |(name, ty): &(&'static str, Type)| Column {
            schema: self.schema.to_owned(),
            table: alias.to_owned(),
            org_table: self.name.to_owned(),
            org_name: (*name).to_owned(),
            ..Column::computed(*name, ty.clone())
        };
        self.columns.iter().map(column).collect()
    }
}
