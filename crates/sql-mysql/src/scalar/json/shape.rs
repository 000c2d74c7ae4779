//! JSON_TABLE, bound: which parts of a document become rows and columns.

use crate::scalar::json::path::Path;
use crate::types::Type;
use crate::value::Value;

#[derive(Debug)]
pub struct JsonTable {
    pub root: Level,
    /// How many columns it has in all.
    pub width: usize,
}

/// Each value that the path selects yields one row, or the concatenated rows of the nested levels.
#[derive(Debug)]
pub struct Level {
    pub path: Path,
    pub columns: Vec<JsonColumn>,
    pub nested: Vec<Level>,
}

#[derive(Debug)]
pub struct JsonColumn {
    /// Its place among all columns.
    pub at: usize,
    pub name: String,
    pub ty: Type,
    pub holds: Holds,
}

#[derive(Debug)]
pub enum Holds {
    /// The number of the row among those of its level, from 1.
    Ordinality,
    /// Whether the path selects a value.
    Exists(Path),
    Value {
        path: Path,
        on_empty: Otherwise,
        on_error: Otherwise,
    },
}

/// The substitute for a missing or invalid value, of ON EMPTY or ON ERROR.
#[derive(Clone, Debug)]
pub enum Otherwise {
    /// In the column's form.
    Default(Value),
    Error,
}
