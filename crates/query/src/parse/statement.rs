//! What a text says: the parser's trees for queries, changes and tables, and our own for what only MySQL has.

use sqlparser::ast;

use crate::parse::account::{Accounting, UserName};
use crate::parse::load::{Duplicates, Load, Target};
use crate::parse::view::CreateView;

/// `schema.name`, or a name alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    pub schema: Option<String>,
    pub name: String,
}

/// The parser's tree of a change, and whether the statement says IGNORE: rows that cannot be changed are left, with a warning.
#[derive(Clone, Debug)]
pub struct Ignoring<T> {
    pub node: T,
    pub ignore: bool,
}

impl<T> std::ops::Deref for Ignoring<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.node
    }
}

/// The parser's tree of CREATE TABLE, and what becomes of rows of its query that are in each other's way.
#[derive(Clone, Debug)]
pub struct CreateTable {
    pub node: ast::CreateTable,
    pub duplicates: Duplicates,
    /// How the query writes the items of its select list.
    pub names: Vec<String>,
}

impl std::ops::Deref for CreateTable {
    type Target = ast::CreateTable;

    fn deref(&self) -> &ast::CreateTable {
        &self.node
    }
}

#[derive(Clone, Debug)]
pub enum Statement {
    Query(Box<ast::Query>),
    /// Its one row goes to user variables, or its rows to a file.
    SelectInto(Box<ast::Query>, Box<Target>),
    Load(Box<Load>),
    Insert(Box<ast::Insert>),
    Update(Box<Ignoring<ast::Update>>),
    Delete(Box<Ignoring<ast::Delete>>),
    Do(Vec<ast::Expr>),
    CreateTable(Box<CreateTable>),
    AlterTable {
        table: Name,
        operations: Vec<Alteration>,
    },
    CreateIndex(Box<ast::CreateIndex>),
    DropIndex {
        table: Name,
        index: String,
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
    LockTables(Vec<(Name, bool)>),
    /// FLUSH TABLES WITH READ LOCK.
    LockAll,
    UnlockTables,
    /// RESET PERSIST; None: of all variables.
    ResetPersist {
        name: Option<String>,
        if_exists: bool,
    },
    Kill {
        query: bool,
        id: ast::Expr,
    },
    Prepare {
        name: String,
        source: ast::Expr,
    },
    Execute {
        name: String,
        using: Vec<String>,
    },
    Deallocate(String),
    /// ANALYZE, CHECK, OPTIMIZE TABLE.
    Maintain {
        what: Maintenance,
        tables: Vec<Name>,
        histograms: Option<Histograms>,
    },
    Flush(Vec<String>),
    Call {
        name: Name,
        arguments: Vec<ast::Expr>,
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

/// What follows the end of a transaction: another one like it, the end of the session. None: as `completion_type` has it.
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

/// What ANALYZE TABLE does to histograms instead.
#[derive(Clone, Debug)]
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

/// One part of ALTER TABLE: the parser's, or one that it does not know.
#[derive(Clone, Debug)]
pub enum Alteration {
    /// FORCE: all rows are written anew.
    Rebuild,
    Parsed(Box<ast::AlterTableOperation>),
    RenameIndex {
        from: String,
        to: String,
    },
    RenameTable(Name),
    DropCheck(String),
    /// ALTER CHECK ... [NOT] ENFORCED.
    EnforceCheck {
        name: String,
        enforced: bool,
    },
    IndexVisible {
        name: String,
        visible: bool,
    },
    /// ENGINE=, COMMENT=, ROW_FORMAT= and their like.
    Option {
        name: String,
        value: Box<ast::Expr>,
    },
    /// CONVERT TO CHARACTER SET, [DEFAULT] CHARACTER SET.
    Charset {
        convert: bool,
        charset: String,
        collation: Option<String>,
    },
    /// Accepted and without meaning here: DISABLE KEYS, ENABLE KEYS, FORCE, ALGORITHM, LOCK.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Session,
    Global,
    /// The same, and for later starts.
    Persist,
    /// SET TRANSACTION without a scope: the next one only.
    Next,
}

impl Scope {
    /// Is it the server's value?
    pub fn is_global(self) -> bool {
        matches!(self, Scope::Global | Scope::Persist)
    }
}

#[derive(Clone, Debug)]
pub enum Setting {
    System {
        scope: Scope,
        name: String,
        value: ast::Expr,
    },
    /// `DEFAULT` as the value.
    Default {
        scope: Scope,
        name: String,
    },
    User {
        name: String,
        value: ast::Expr,
    },
    Names {
        charset: Option<String>,
        collation: Option<String>,
    },
    Isolation {
        scope: Scope,
        level: String,
    },
    Access {
        scope: Scope,
        read_only: bool,
    },
}

/// What SHOW's rows are cut down by.
#[derive(Clone, Debug)]
pub enum Pattern {
    Like(String),
    Where(Box<ast::Expr>),
}

#[derive(Clone, Debug)]
pub struct Show {
    pub what: Shown,
    pub pattern: Option<Pattern>,
}

#[derive(Clone, Debug)]
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
    CreateDatabase(String),
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
    /// SHOW ENGINE ... STATUS.
    EngineStatus,
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

impl Statement {
    /// Is it bound, planned and run as a plan? Others are commands.
    pub fn has_plan(&self) -> bool {
        matches!(
            self,
            Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Do(_)
        )
    }

    /// Is it one that commits what is open before it begins?
    pub fn commits_implicitly(&self) -> bool {
        if matches!(self, Statement::CreateTable(create) if create.temporary)
            || matches!(self, Statement::DropTable { temporary: true, .. })
            || matches!(self, Statement::Maintain { what: Maintenance::Checksum(_), .. })
        {
            return false;
        }
        matches!(
            self,
            Statement::CreateTable(_)
                | Statement::AlterTable { .. }
                | Statement::CreateIndex(_)
                | Statement::DropIndex { .. }
                | Statement::DropTable { .. }
                | Statement::Truncate(_)
                | Statement::RenameTable(_)
                | Statement::CreateView(_)
                | Statement::DropView { .. }
                | Statement::CreateDatabase { .. }
                | Statement::AlterDatabase { .. }
                | Statement::DropDatabase { .. }
                | Statement::Begin { .. }
                | Statement::LockTables(_)
                | Statement::LockAll
                | Statement::Maintain { .. }
                | Statement::Flush(_)
        ) || matches!(self, Statement::Accounting(what) if !matches!(**what, Accounting::SetRole(_)))
    }
}
