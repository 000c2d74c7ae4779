//! Statements of sessions and transactions, and of upkeep.

use super::{DefElem, Expr, Ident, Location, RangeVar, SelectStmt, Statement, TypeName};

#[derive(Clone, Debug, PartialEq)]
pub enum TransactionStmt {
    /// BEGIN, START TRANSACTION.
    Begin {
        start: bool,
        modes: Vec<TransactionMode>,
    },
    /// COMMIT, END. `chain`: AND CHAIN.
    Commit {
        chain: bool,
    },
    /// ROLLBACK, ABORT.
    Rollback {
        chain: bool,
    },
    Savepoint(Ident),
    Release(Ident),
    RollbackTo(Ident),
    Prepare(String),
    CommitPrepared(String),
    RollbackPrepared(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionMode {
    Isolation(IsolationLevel),
    ReadOnly(bool),
    Deferrable(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// SET and RESET.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableSetStmt {
    /// SET LOCAL.
    pub local: bool,
    pub action: VariableSet,
}

#[derive(Clone, Debug, PartialEq)]
pub enum VariableSet {
    /// `name = values`. TIME ZONE, NAMES, SCHEMA, CATALOG, ROLE, SESSION AUTHORIZATION, XML OPTION are settings of PostgreSQL's own names: timezone, client_encoding, search_path, role, session_authorization, xmloption.
    Value {
        name: SettingName,
        values: Vec<SettingValue>,
    },
    /// `name = DEFAULT`
    Default(SettingName),
    /// `name FROM CURRENT`
    Current(SettingName),
    /// RESET.
    Reset(SettingName),
    ResetAll,
    /// SET TRANSACTION.
    Transaction(Vec<TransactionMode>),
    /// `SET TRANSACTION SNAPSHOT 'id'`
    Snapshot(String),
    /// SET SESSION CHARACTERISTICS AS TRANSACTION.
    SessionCharacteristics(Vec<TransactionMode>),
}

/// The name of a setting, dots included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingName {
    pub value: String,
    pub at: Location,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// A string, or a word.
    String(String, Location),
    Integer(i32, Location),
    /// As written.
    Float(String, Location),
    /// `interval '...' hour to minute`, of TIME ZONE.
    Interval(Box<TypeName>, String, Location),
}

#[derive(Clone, Debug, PartialEq)]
pub enum VariableShow {
    All,
    Name(SettingName),
}

/// SET CONSTRAINTS.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstraintsSetStmt {
    /// Empty: ALL.
    pub constraints: Vec<RangeVar>,
    pub deferred: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    All,
    Plans,
    Sequences,
    Temporary,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PrepareStmt {
    pub name: Ident,
    pub types: Vec<TypeName>,
    pub statement: Box<Statement>,
    /// The bytes of the statement that is prepared.
    pub span: super::Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExecuteStmt {
    pub name: Ident,
    pub arguments: Vec<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DeclareCursorStmt {
    pub name: Ident,
    pub binary: bool,
    /// None: neither SCROLL nor NO SCROLL.
    pub scroll: Option<bool>,
    /// None: neither INSENSITIVE nor ASENSITIVE; true: INSENSITIVE.
    pub insensitive: Option<bool>,
    pub hold: bool,
    pub query: SelectStmt,
}

/// FETCH and MOVE.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchStmt {
    pub is_move: bool,
    pub direction: FetchDirection,
    /// None: ALL, which only Forward and Backward have.
    pub count: Option<i64>,
    pub cursor: Ident,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchDirection {
    Forward,
    Backward,
    Absolute,
    Relative,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExplainStmt {
    /// ANALYZE and VERBOSE before the statement are options too.
    pub options: Vec<DefElem>,
    pub statement: Box<Statement>,
}

/// VACUUM and ANALYZE.
#[derive(Clone, Debug, PartialEq)]
pub struct VacuumStmt {
    /// Not ANALYZE.
    pub is_vacuum: bool,
    pub options: Vec<DefElem>,
    /// Empty: all.
    pub relations: Vec<VacuumRelation>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct VacuumRelation {
    pub relation: RangeVar,
    pub columns: Vec<Ident>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ClusterStmt {
    pub options: Vec<DefElem>,
    pub relation: Option<RangeVar>,
    pub index: Option<Ident>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReindexStmt {
    pub options: Vec<DefElem>,
    pub target: ReindexTarget,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ReindexTarget {
    Index(RangeVar),
    Table(RangeVar),
    Schema(Ident),
    /// None: the current one.
    System(Option<Ident>),
    Database(Option<Ident>),
}

/// LOCK TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct LockStmt {
    pub relations: Vec<RangeVar>,
    pub mode: LockMode,
    pub nowait: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyStmt {
    pub channel: Ident,
    pub payload: Option<String>,
}

/// DO. The options are `as` and `language`.
#[derive(Clone, Debug, PartialEq)]
pub struct DoStmt {
    pub options: Vec<DefElem>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RefreshMatViewStmt {
    pub relation: RangeVar,
    pub concurrently: bool,
    pub with_data: bool,
}
