//! Tables that are not maps of rows: those of information_schema and related schemas, and the keys of the Redis door.

use datum::Result;

use crate::batch::Row;
use crate::nodes::context::EvalContext;
use crate::types::{Column, Type};

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
    /// The strings of the keyspace: rows that can be locked and changed.
    Keyspace,
}

impl std::fmt::Debug for SystemTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

impl SystemTable {
    /// Returns whether its rows are keys of the Redis door.
    pub fn is_keyspace(&self) -> bool {
        matches!(self.rows, SystemRows::Keyspace)
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
