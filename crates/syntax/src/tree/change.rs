//! INSERT, REPLACE, UPDATE, DELETE, LOAD DATA, and where SELECT ... INTO puts rows.

use super::{ColumnName, Expr, Format, Ident, Joined, Limit, Name, OrderItem, Query, SelectItem, With};

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
