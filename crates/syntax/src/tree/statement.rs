//! Statements.

use super::{
    Accounting, Alteration, CreateIndex, CreateTable, CreateView, Delete, Expr, Ident, Insert, Load, Name, Query,
    Scope, Update, UserName,
};

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// With INTO: its one row goes to user variables, or its rows to a file.
    Query(Box<Query>),
    Load(Box<Load>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Do(Vec<Expr>),
    CreateTable(Box<CreateTable>),
    AlterTable {
        table: Name,
        operations: Vec<Alteration>,
    },
    CreateIndex(Box<CreateIndex>),
    DropIndex {
        table: Name,
        index: Ident,
    },
    DropTable {
        tables: Vec<Name>,
        if_exists: bool,
        temporary: bool,
    },
    Truncate(Name),
    RenameTable(Vec<(Name, Name)>),
    CreateDatabase {
        name: String,
        if_not_exists: bool,
        charset: Option<String>,
        collation: Option<String>,
    },
    AlterDatabase {
        name: Option<String>,
        charset: Option<String>,
        collation: Option<String>,
    },
    DropDatabase {
        name: String,
        if_exists: bool,
    },
    Use(String),
    Set(Vec<Setting>),
    Show(Show),
    Describe {
        table: Name,
        like: Option<String>,
    },
    Explain {
        statement: Box<Statement>,
        analyze: bool,
        format: Option<String>,
    },
    Begin {
        read_only: Option<bool>,
        snapshot: bool,
    },
    Commit(Completion),
    Rollback(Completion),
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    LockTables(Vec<TableLock>),
    /// FLUSH TABLES WITH READ LOCK.
    LockAll,
    UnlockTables,
    /// RESET PERSIST. None: of all variables.
    ResetPersist {
        name: Option<String>,
        if_exists: bool,
    },
    Kill {
        query: bool,
        id: Expr,
    },
    Prepare {
        name: String,
        source: PrepareSource,
    },
    Execute {
        name: String,
        using: Vec<String>,
    },
    Deallocate(String),
    /// ANALYZE, CHECK, OPTIMIZE, REPAIR, CHECKSUM TABLE.
    Maintain {
        what: Maintenance,
        tables: Vec<Name>,
        histograms: Option<Histograms>,
    },
    Flush(Vec<String>),
    Call {
        name: Name,
        arguments: Vec<Expr>,
    },
    CreateSequence {
        name: Name,
        if_not_exists: bool,
        is_timestamp: bool,
    },
    CreateView(Box<CreateView>),
    DropView {
        names: Vec<Name>,
        if_exists: bool,
    },
    /// Users, roles, privileges.
    Accounting(Box<Accounting>),
    /// A comment alone.
    Nothing,
}

/// An item of LOCK TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLock {
    pub table: Name,
    pub alias: Option<String>,
    pub write: bool,
}

/// The text of PREPARE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrepareSource {
    Text(String),
    Variable(String),
}

/// The continuation after the end of a transaction: another one like it, the end of the session. None: as `completion_type` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub chain: Option<bool>,
    pub release: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maintenance {
    Analyze,
    Check,
    Optimize,
    Repair,
    /// True: QUICK, only what is known without reading.
    Checksum(bool),
}

/// Histograms of ANALYZE TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Histograms {
    /// Of these columns, with so many buckets.
    Update(Vec<String>, u32),
    Drop(Vec<String>),
}

impl Histograms {
    pub fn columns(&self) -> &[String] {
        match self {
            Histograms::Update(columns, _) | Histograms::Drop(columns) => columns,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    System {
        scope: Scope,
        name: String,
        value: Expr,
    },
    /// `DEFAULT` as the value.
    Default {
        scope: Scope,
        name: String,
    },
    User {
        name: String,
        value: Expr,
    },
    Names {
        charset: Option<String>,
        collation: Option<String>,
    },
    /// SET CHARACTER SET. None: DEFAULT.
    CharacterSet(Option<String>),
    Isolation {
        scope: Scope,
        level: String,
    },
    Access {
        scope: Scope,
        read_only: bool,
    },
}

/// The condition on SHOW's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    Like(String),
    Where(Box<Expr>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Show {
    pub what: Shown,
    pub pattern: Option<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    Databases,
    Tables {
        schema: Option<String>,
        full: bool,
    },
    TableStatus {
        schema: Option<String>,
    },
    Columns {
        table: Name,
        full: bool,
    },
    Index {
        table: Name,
    },
    CreateTable(Name),
    CreateDatabase {
        name: String,
        if_not_exists: bool,
    },
    Variables {
        global: bool,
    },
    Status {
        global: bool,
    },
    Warnings {
        errors: bool,
        count: bool,
        limit: Option<(u64, u64)>,
    },
    Engines,
    Collation,
    Charset,
    Processlist,
    /// None: the session's own, with the roles that are active.
    Grants {
        of: Option<UserName>,
        using: Vec<UserName>,
    },
    CreateUser(UserName),
    CreateView(Name),
    Privileges,
    /// SHOW ENGINE ... STATUS of this engine.
    EngineStatus(String),
    Plugins,
    OpenTables,
    Triggers,
    Events,
    FunctionStatus,
    ProcedureStatus,
    MasterStatus,
    ReplicaStatus,
    Replicas,
    BinaryLogs,
    Profiles,
}
