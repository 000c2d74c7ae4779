//! Queries: blocks, set operations, common table expressions, joins.

use super::{Expr, Ident, Name, OnMissing, OrderItem, Span, Window};

/// A query expression with what applies to its whole result.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Option<With>,
    pub body: QueryBody,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    pub locks: Vec<Locking>,
    /// INTO of the statement's outermost query.
    pub into: Option<Box<Target>>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct With {
    pub recursive: bool,
    pub tables: Vec<CommonTable>,
}

/// `name (columns) AS (query)`
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTable {
    pub name: Ident,
    pub columns: Vec<Ident>,
    pub query: Box<Query>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum QueryBody {
    Select(Box<Select>),
    /// `VALUES ROW(...), ROW(...)`
    Values(Vec<Vec<Expr>>),
    /// `TABLE name`; neither partitions nor an alias nor hints.
    Table(Box<TableName>),
    /// A query in parentheses.
    Query(Box<Query>),
    /// Left-associative operations of equal precedence; INTERSECT binds tighter than UNION and EXCEPT.
    SetOperations {
        first: Box<QueryBody>,
        links: Vec<SetLink>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetLink {
    pub op: SetOp,
    pub all: bool,
    pub operand: QueryBody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    Union,
    Except,
    Intersect,
}

/// A query block.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// The text within `/*+ ... */`.
    pub hints: Vec<String>,
    pub distinct: bool,
    pub straight_join: bool,
    pub calc_found_rows: bool,
    pub items: Vec<SelectItem>,
    /// Empty: no FROM, or FROM DUAL.
    pub from: Vec<Joined>,
    pub selection: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub rollup: bool,
    pub having: Option<Expr>,
    pub windows: Vec<NamedWindow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NamedWindow {
    pub name: Ident,
    pub window: Window,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`
    All(Span),
    /// `table.*`, `schema.table.*`
    AllOf(Name, Span),
    Expr(SelectExpr),
}

#[derive(Clone, Debug)]
pub struct SelectExpr {
    pub expr: Expr,
    pub alias: Option<String>,
    /// The expression as it is written: the name of its column where there is no alias.
    pub text: String,
}

/// Layout does not distinguish trees.
impl PartialEq for SelectExpr {
    fn eq(&self, other: &SelectExpr) -> bool {
        let SelectExpr { expr, alias, text: _ } = self;
        *expr == other.expr && *alias == other.alias
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub count: Expr,
    pub offset: Option<Expr>,
}

/// FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE.
#[derive(Clone, Debug, PartialEq)]
pub struct Locking {
    pub update: bool,
    /// Empty: all tables of the block.
    pub of: Vec<Name>,
    pub wait: LockingWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockingWait {
    Wait,
    NoWait,
    SkipLocked,
}

/// An item of FROM: a table and those joined to it, from left to right.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    pub first: TableRef,
    pub joins: Vec<Join>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    pub kind: JoinKind,
    pub table: TableRef,
    pub constraint: JoinConstraint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// JOIN, INNER JOIN, CROSS JOIN.
    Inner,
    Straight,
    Left,
    Right,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JoinConstraint {
    None,
    On(Expr),
    Using(Vec<Ident>),
    Natural,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    Table(Box<TableName>),
    Derived(Box<Derived>),
    JsonTable(Box<JsonTable>),
    /// Items in parentheses, joined as by commas.
    Nested(Vec<Joined>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableName {
    pub name: Name,
    pub partitions: Vec<Ident>,
    pub alias: Option<Ident>,
    pub hints: Vec<IndexHint>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    pub lateral: bool,
    pub query: Box<Query>,
    pub alias: Option<Ident>,
    pub columns: Vec<Ident>,
}

/// `USE INDEX FOR JOIN (a, b)`
#[derive(Clone, Debug, PartialEq)]
pub struct IndexHint {
    pub action: HintAction,
    /// None: for all.
    pub scope: Option<HintScope>,
    pub indexes: Vec<Ident>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintAction {
    Use,
    Ignore,
    Force,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintScope {
    Join,
    OrderBy,
    GroupBy,
}

/// `JSON_TABLE(document, path COLUMNS (columns)) AS alias`
#[derive(Clone, Debug, PartialEq)]
pub struct JsonTable {
    pub document: Expr,
    pub path: String,
    pub columns: Vec<JsonColumn>,
    pub alias: Option<Ident>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JsonColumn {
    Ordinality(Ident),
    Value(Box<JsonValueColumn>),
    Nested { path: String, columns: Vec<JsonColumn> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct JsonValueColumn {
    pub name: Ident,
    pub ty: super::ColumnType,
    pub exists: bool,
    pub path: String,
    pub on_empty: Option<OnMissing>,
    pub on_error: Option<OnMissing>,
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
