//! Queries: SELECT, set operations, common table expressions, FROM.

use super::{Alias, AnyName, Expr, Ident, Location, RangeVar, SortBy, Span, TypeName, WindowDef};

/// A query with what applies to its whole result. Parentheses around it leave no trace.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectStmt {
    pub with: Option<WithClause>,
    pub body: SelectBody,
    pub order_by: Vec<SortBy>,
    pub limit: Option<Box<Limit>>,
    pub locking: Vec<LockingClause>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WithClause {
    pub recursive: bool,
    pub tables: Vec<CommonTableExpr>,
    pub at: Location,
}

/// `name (columns) AS (statement)`. The statement is a query, INSERT, UPDATE, DELETE or MERGE.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTableExpr {
    pub name: Ident,
    pub columns: Vec<Ident>,
    /// AS [NOT] MATERIALIZED.
    pub materialized: Option<bool>,
    pub statement: super::Statement,
    pub search: Option<Box<SearchClause>>,
    pub cycle: Option<Box<CycleClause>>,
}

/// `SEARCH DEPTH FIRST BY columns SET sequence`
#[derive(Clone, Debug, PartialEq)]
pub struct SearchClause {
    pub breadth_first: bool,
    pub columns: Vec<Ident>,
    pub sequence: Ident,
    pub at: Location,
}

/// `CYCLE columns SET mark TO value DEFAULT otherwise USING path`
#[derive(Clone, Debug, PartialEq)]
pub struct CycleClause {
    pub columns: Vec<Ident>,
    pub mark: Ident,
    /// A constant, as `otherwise` is: true and false if none are written.
    pub value: Expr,
    pub otherwise: Expr,
    pub path: Ident,
    pub at: Location,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SelectBody {
    /// SELECT; `TABLE t` is `SELECT * FROM t`.
    Select(Box<Select>),
    /// VALUES; rows of at least one expression each.
    Values(Vec<Vec<Expr>>),
    /// Left-associative operations of equal precedence; INTERSECT binds tighter than UNION and EXCEPT.
    SetOperations { first: Box<SelectBody>, links: Vec<SetLink> },
    /// An operand in parentheses that has clauses of its own or is a set operation.
    Nested(Box<SelectStmt>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetLink {
    pub op: SetOp,
    pub all: bool,
    pub operand: SelectBody,
    pub at: Location,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    Union,
    Except,
    Intersect,
}

/// One SELECT.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub distinct: Option<Distinct>,
    /// May be empty.
    pub targets: Vec<ResTarget>,
    pub into: Option<Box<IntoClause>>,
    pub from: Vec<FromItem>,
    pub selection: Option<Expr>,
    pub group_by: Vec<GroupItem>,
    /// GROUP BY DISTINCT.
    pub group_distinct: bool,
    pub having: Option<Expr>,
    pub windows: Vec<NamedWindow>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Distinct {
    Rows,
    /// `DISTINCT ON (a, b)`
    On(Vec<Expr>),
}

/// An item of a select list or RETURNING. `*` and `t.*` are columns with a star.
#[derive(Clone, Debug, PartialEq)]
pub struct ResTarget {
    pub expr: Expr,
    pub alias: Option<Ident>,
}

/// The table that SELECT INTO or CREATE TABLE AS makes.
#[derive(Clone, Debug, PartialEq)]
pub struct IntoClause {
    pub relation: RangeVar,
    pub persistence: super::Persistence,
    pub columns: Vec<Ident>,
    pub access_method: Option<Ident>,
    pub options: Vec<super::DefElem>,
    pub on_commit: super::OnCommit,
    pub tablespace: Option<Ident>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NamedWindow {
    pub name: Ident,
    pub window: WindowDef,
}

#[derive(Clone, Debug, PartialEq)]
pub enum GroupItem {
    Expr(Expr),
    /// `()`
    Empty(Location),
    Rollup(Vec<Expr>, Location),
    Cube(Vec<Expr>, Location),
    GroupingSets(Vec<GroupItem>, Location),
}

/// LIMIT, OFFSET and FETCH.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// None: neither LIMIT nor FETCH. LIMIT ALL is NULL.
    pub count: Option<Expr>,
    pub with_ties: bool,
    pub offset: Option<Expr>,
}

/// FOR UPDATE and the like.
#[derive(Clone, Debug, PartialEq)]
pub struct LockingClause {
    pub strength: LockStrength,
    /// Empty: all tables of the query.
    pub of: Vec<RangeVar>,
    pub wait: LockWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockStrength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    Wait,
    NoWait,
    SkipLocked,
}

/// An item of FROM: a table and those joined to it, from left to right.
#[derive(Clone, Debug, PartialEq)]
pub struct FromItem {
    pub first: TableRef,
    pub joins: Vec<Join>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    pub kind: JoinKind,
    pub right: FromItem,
    pub qual: JoinQual,
    pub at: Location,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// JOIN, INNER JOIN, CROSS JOIN; the last has no condition.
    Inner,
    Left,
    Right,
    Full,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JoinQual {
    /// CROSS JOIN.
    Cross,
    On(Expr),
    /// `USING (columns) AS alias`
    Using {
        columns: Vec<Ident>,
        alias: Option<Ident>,
    },
    Natural,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    Relation(Box<Relation>),
    Subselect(Box<RangeSubselect>),
    Function(Box<RangeFunction>),
    /// Joined tables in parentheses.
    Joined(Box<JoinedTable>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    pub name: RangeVar,
    pub alias: Option<Alias>,
    pub sample: Option<TableSample>,
}

/// TABLESAMPLE.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSample {
    pub method: AnyName,
    pub arguments: Vec<Expr>,
    pub repeatable: Option<Expr>,
    pub at: Location,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RangeSubselect {
    pub lateral: bool,
    pub query: SelectStmt,
    pub alias: Option<Alias>,
    /// Of its parenthesis.
    pub at: Location,
}

/// A function in FROM, or several in ROWS FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeFunction {
    pub lateral: bool,
    /// Written as ROWS FROM.
    pub rows_from: bool,
    pub functions: Vec<RowsFromItem>,
    pub ordinality: bool,
    pub alias: Option<Alias>,
    /// The column definition list of a function alone that returns records.
    pub columns: Vec<TableFuncColumn>,
    pub at: Location,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RowsFromItem {
    pub call: Expr,
    pub columns: Vec<TableFuncColumn>,
}

/// A column of a column definition list.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFuncColumn {
    pub name: Ident,
    pub ty: TypeName,
    pub collation: Option<AnyName>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JoinedTable {
    pub item: FromItem,
    pub alias: Option<Alias>,
}
