//! Definitions of tables, indexes, sequences, views.

use super::{
    AnyName, DefElem, Expr, Ident, IntoClause, Location, NullsOrder, RangeVar, SelectStmt, SortDirection, TypeName,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    Permanent,
    Temporary,
    Unlogged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCommit {
    /// None is written.
    Default,
    PreserveRows,
    DeleteRows,
    Drop,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateStmt {
    pub relation: RangeVar,
    pub persistence: Persistence,
    pub if_not_exists: bool,
    pub elements: Vec<TableElement>,
    /// `OF type`
    pub of_type: Option<TypeName>,
    pub inherits: Vec<RangeVar>,
    pub partition_of: Option<Box<PartitionOf>>,
    pub partition_by: Option<Box<PartitionSpec>>,
    pub access_method: Option<Ident>,
    /// WITH (...).
    pub options: Vec<DefElem>,
    pub on_commit: OnCommit,
    pub tablespace: Option<Ident>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableElement {
    Column(Box<ColumnDef>),
    Constraint(Box<Constraint>),
    Like(Box<TableLikeClause>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    pub name: Ident,
    /// None in a typed table or a partition, whose column has its type from elsewhere.
    pub ty: Option<TypeName>,
    pub storage: Option<String>,
    pub compression: Option<String>,
    pub collation: Option<AnyName>,
    pub constraints: Vec<Constraint>,
}

/// A constraint of a table or column, with the attributes that follow it.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    pub name: Option<Ident>,
    pub kind: ConstraintKind,
    pub deferrable: bool,
    pub initially_deferred: bool,
    pub not_valid: bool,
    pub no_inherit: bool,
    pub at: Location,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConstraintKind {
    /// NULL of a column, which forbids NOT NULL beside it.
    Null,
    NotNull,
    Default(Expr),
    Check(Expr),
    Unique(IndexConstraint),
    PrimaryKey(IndexConstraint),
    Foreign(Box<ForeignKey>),
    Exclusion(Box<Exclusion>),
    Identity {
        always: bool,
        options: Vec<DefElem>,
    },
    /// `GENERATED ALWAYS AS (expression) STORED`
    Generated(Expr),
}

/// The index of a UNIQUE or PRIMARY KEY constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexConstraint {
    /// Empty for a constraint of a column, and with `using_index`.
    pub columns: Vec<Ident>,
    pub nulls_not_distinct: bool,
    pub include: Vec<Ident>,
    pub options: Vec<DefElem>,
    pub tablespace: Option<Ident>,
    /// `USING INDEX name`, in ALTER TABLE.
    pub using_index: Option<Ident>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKey {
    /// Empty for a constraint of a column.
    pub columns: Vec<Ident>,
    pub references: RangeVar,
    /// Empty: the primary key.
    pub referenced: Vec<Ident>,
    pub matching: MatchType,
    pub on_update: ForeignKeyAction,
    pub on_delete: ForeignKeyAction,
    /// The columns of `ON DELETE SET NULL (columns)`.
    pub on_delete_columns: Vec<Ident>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchType {
    Simple,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignKeyAction {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Exclusion {
    pub access_method: Option<Ident>,
    pub elements: Vec<ExclusionElement>,
    pub include: Vec<Ident>,
    pub options: Vec<DefElem>,
    pub tablespace: Option<Ident>,
    pub selection: Option<Expr>,
}

/// `element WITH operator`
#[derive(Clone, Debug, PartialEq)]
pub struct ExclusionElement {
    pub element: IndexElem,
    pub op: super::Operator,
}

/// `LIKE table INCLUDING ... EXCLUDING ...`
#[derive(Clone, Debug, PartialEq)]
pub struct TableLikeClause {
    pub relation: RangeVar,
    /// INCLUDING or EXCLUDING of each kind in the order of the text, of which the last counts.
    pub options: Vec<LikeOption>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LikeOption {
    pub including: bool,
    pub kind: LikeOptionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikeOptionKind {
    Comments,
    Compression,
    Constraints,
    Defaults,
    Generated,
    Identity,
    Indexes,
    Statistics,
    Storage,
    All,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartitionOf {
    pub parent: RangeVar,
    pub bound: PartitionBound,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PartitionBound {
    Default,
    In(Vec<Expr>),
    /// MINVALUE and MAXVALUE are columns of these names, as PostgreSQL has it.
    Range {
        from: Vec<Expr>,
        to: Vec<Expr>,
    },
    Hash {
        modulus: i32,
        remainder: i32,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartitionSpec {
    /// In lower case: `list`, `range`, `hash`, or a word that is none.
    pub strategy: String,
    pub elements: Vec<IndexElem>,
    pub at: Location,
}

/// CREATE TABLE AS, CREATE MATERIALIZED VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableAsStmt {
    pub into: IntoClause,
    pub if_not_exists: bool,
    pub materialized_view: bool,
    pub source: CreateTableAsSource,
    pub query_span: super::Span,
    /// Not WITH NO DATA.
    pub with_data: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CreateTableAsSource {
    Query(Box<SelectStmt>),
    Execute(super::ExecuteStmt),
}

/// CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexStmt {
    pub name: Option<Ident>,
    pub relation: RangeVar,
    pub unique: bool,
    pub concurrently: bool,
    pub if_not_exists: bool,
    pub access_method: Option<Ident>,
    pub elements: Vec<IndexElem>,
    pub include: Vec<IndexElem>,
    pub nulls_not_distinct: bool,
    pub options: Vec<DefElem>,
    pub tablespace: Option<Ident>,
    pub selection: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexElem {
    pub key: IndexKey,
    pub collation: Option<AnyName>,
    pub opclass: Option<AnyName>,
    pub opclass_options: Vec<DefElem>,
    /// Never USING.
    pub direction: SortDirection,
    pub nulls: NullsOrder,
}

#[derive(Clone, Debug, PartialEq)]
pub enum IndexKey {
    Column(Ident),
    Expr(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateSeqStmt {
    pub sequence: RangeVar,
    pub persistence: Persistence,
    pub if_not_exists: bool,
    /// As, cache, cycle, increment, maxvalue, minvalue, owned_by, restart, start.
    pub options: Vec<DefElem>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterSeqStmt {
    pub sequence: RangeVar,
    pub missing_ok: bool,
    pub options: Vec<DefElem>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ViewStmt {
    pub view: RangeVar,
    pub persistence: Persistence,
    pub replace: bool,
    /// RECURSIVE; the columns are then given, and the query is the view's body without its WITH.
    pub recursive: bool,
    pub columns: Vec<Ident>,
    pub options: Vec<DefElem>,
    pub query: SelectStmt,
    /// The bytes of the query in the text.
    pub query_span: super::Span,
    pub check_option: Option<CheckOption>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOption {
    Local,
    Cascaded,
}
