//! INSERT, REPLACE, UPDATE, DELETE, LOAD DATA, and where SELECT ... INTO puts rows.

use super::{ColumnName, Expr, Ident, Joined, Limit, Name, OrderItem, Query, SelectItem, With};

#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub replace: bool,
    pub ignore: bool,
    pub hints: Vec<String>,
    pub table: Name,
    pub partitions: Vec<Ident>,
    /// Empty: all columns.
    pub columns: Vec<ColumnName>,
    pub source: InsertSource,
    /// `AS new (m, n)`
    pub row_alias: Option<RowAlias>,
    pub on_duplicate: Vec<Assignment>,
    pub returning: Option<Vec<SelectItem>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    Values(Vec<Vec<Expr>>),
    Set(Vec<Assignment>),
    Query(Box<Query>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct RowAlias {
    pub name: Ident,
    pub columns: Vec<Ident>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub column: ColumnName,
    pub value: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub with: Option<With>,
    pub hints: Vec<String>,
    pub ignore: bool,
    pub tables: Vec<Joined>,
    pub assignments: Vec<Assignment>,
    pub selection: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    pub returning: Option<Vec<SelectItem>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub with: Option<With>,
    pub hints: Vec<String>,
    pub ignore: bool,
    /// The tables whose rows go. Empty: the one table of `tables`.
    pub targets: Vec<Name>,
    pub tables: Vec<Joined>,
    pub selection: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    pub returning: Option<Vec<SelectItem>>,
}

/// FIELDS and LINES. Bytes as they are in the statement, escapes resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    pub field_end: Vec<u8>,
    pub enclosed: Option<u8>,
    /// Only values of text types are enclosed when they are written.
    pub optionally: bool,
    pub escape: Option<u8>,
    pub line_start: Vec<u8>,
    pub line_end: Vec<u8>,
}

impl Default for Format {
    fn default() -> Format {
        Format {
            field_end: b"\t".to_vec(),
            enclosed: None,
            optionally: false,
            escape: Some(b'\\'),
            line_start: Vec::new(),
            line_end: b"\n".to_vec(),
        }
    }
}

impl Format {
    /// Whether nothing separates fields, so that each is as wide as its column.
    pub fn is_fixed(&self) -> bool {
        self.field_end.is_empty() && self.enclosed.is_none()
    }
}

/// Where a field of the file goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldTarget {
    Column(String),
    Variable(String),
}

/// The treatment of rows whose key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    Fail,
    Ignore,
    Replace,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The client has the file.
    pub is_local: bool,
    pub file: String,
    pub duplicates: Duplicates,
    pub table: Name,
    pub charset: Option<String>,
    pub format: Format,
    pub skip: u64,
    /// Empty: all columns of the table.
    pub fields: Vec<FieldTarget>,
    pub sets: Vec<Assignment>,
}

/// Where SELECT puts its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Variables(Vec<String>),
    /// INTO OUTFILE; without a format INTO DUMPFILE.
    File {
        file: String,
        charset: Option<String>,
        format: Option<Format>,
    },
}
