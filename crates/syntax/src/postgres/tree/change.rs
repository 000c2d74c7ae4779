//! Statements that change rows.

use super::{DefElem, Expr, FromItem, Ident, Indirection, Location, RangeVar, ResTarget, SelectStmt, WithClause};

#[derive(Clone, Debug, PartialEq)]
pub struct InsertStmt {
    pub with: Option<WithClause>,
    pub relation: RangeVar,
    pub alias: Option<Ident>,
    /// Empty: all columns in order.
    pub columns: Vec<InsertColumn>,
    pub overriding: Option<Overriding>,
    /// None: DEFAULT VALUES.
    pub source: Option<SelectStmt>,
    pub on_conflict: Option<OnConflictClause>,
    pub returning: Vec<ResTarget>,
}

/// A column that gets a value, perhaps only an element or field of it.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertColumn {
    pub name: Ident,
    pub indirection: Vec<Indirection>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    User,
    System,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OnConflictClause {
    pub target: Option<ConflictTarget>,
    pub action: ConflictAction,
    pub at: Location,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConflictTarget {
    /// The arbiter's columns and expressions, and the predicate of a partial index.
    Columns {
        elements: Vec<super::IndexElem>,
        selection: Option<Expr>,
        at: Location,
    },
    Constraint(Ident),
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConflictAction {
    Nothing,
    Update { set: Vec<SetClause>, selection: Option<Expr> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct UpdateStmt {
    pub with: Option<WithClause>,
    pub relation: RangeVar,
    pub alias: Option<Ident>,
    pub set: Vec<SetClause>,
    pub from: Vec<FromItem>,
    /// Perhaps CURRENT OF.
    pub selection: Option<Expr>,
    pub returning: Vec<ResTarget>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SetClause {
    Single {
        target: InsertColumn,
        value: Expr,
    },
    /// `(a, b) = source`; the source is a row, a query or another expression.
    Multiple {
        targets: Vec<InsertColumn>,
        source: Expr,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct DeleteStmt {
    pub with: Option<WithClause>,
    pub relation: RangeVar,
    pub alias: Option<Ident>,
    pub using: Vec<FromItem>,
    /// Perhaps CURRENT OF.
    pub selection: Option<Expr>,
    pub returning: Vec<ResTarget>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MergeStmt {
    pub with: Option<WithClause>,
    pub relation: RangeVar,
    pub alias: Option<Ident>,
    pub source: FromItem,
    pub condition: Expr,
    pub whens: Vec<MergeWhenClause>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MergeWhenClause {
    pub matched: bool,
    pub condition: Option<Expr>,
    pub action: MergeAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MergeAction {
    Nothing,
    Update(Vec<SetClause>),
    Delete,
    Insert {
        columns: Vec<InsertColumn>,
        overriding: Option<Overriding>,
        /// Empty: DEFAULT VALUES.
        values: Vec<Expr>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct TruncateStmt {
    pub relations: Vec<RangeVar>,
    pub restart_identity: bool,
    pub cascade: bool,
}

/// COPY. Options of the syntax before 9.0 are turned into those of today.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyStmt {
    pub source: CopySource,
    /// COPY FROM: rows go into the table.
    pub from: bool,
    pub endpoint: CopyEndpoint,
    pub options: Vec<DefElem>,
    pub selection: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CopySource {
    Table { relation: RangeVar, columns: Vec<Ident> },
    Query(Box<super::Statement>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyEndpoint {
    /// STDIN, STDOUT.
    Client,
    File(String),
    Program(String),
}
