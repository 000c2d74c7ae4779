//! Statements.

use super::*;

/// A statement of a script and the bytes that it takes there, without the semicolon and the space around it.
#[derive(Clone, Debug, PartialEq)]
pub struct RawStatement {
    pub statement: Statement,
    pub start: usize,
    pub end: usize,
    /// The largest number of a `$n`; 0 without parameters.
    pub parameters: u32,
    /// Of the tree: how deep its consumers recurse.
    pub height: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    // Queries and changes.
    Select(Box<SelectStmt>),
    Insert(Box<InsertStmt>),
    Update(Box<UpdateStmt>),
    Delete(Box<DeleteStmt>),
    Merge(Box<MergeStmt>),
    Truncate(TruncateStmt),
    Copy(Box<CopyStmt>),
    Call(Box<FuncCall>),
    Do(DoStmt),
    // Definitions.
    CreateTable(Box<CreateStmt>),
    CreateTableAs(Box<CreateTableAsStmt>),
    CreateIndex(Box<IndexStmt>),
    CreateSequence(Box<CreateSeqStmt>),
    CreateView(Box<ViewStmt>),
    CreateSchema(Box<CreateSchemaStmt>),
    CreateDatabase(CreatedbStmt),
    CreateEnum(CreateEnumStmt),
    CreateComposite(CreateCompositeStmt),
    CreateDomain(Box<CreateDomainStmt>),
    CreateRole(CreateRoleStmt),
    CreateExtension(CreateExtensionStmt),
    AlterTable(Box<AlterTableStmt>),
    AlterSequence(Box<AlterSeqStmt>),
    AlterEnum(Box<AlterEnumStmt>),
    AlterComposite(Box<AlterCompositeStmt>),
    AlterDomain(Box<AlterDomainStmt>),
    AlterDatabase(AlterDatabaseStmt),
    AlterDatabaseSet(Box<AlterDatabaseSetStmt>),
    AlterRole(AlterRoleStmt),
    AlterRoleSet(Box<AlterRoleSetStmt>),
    AlterDefaultPrivileges(Box<AlterDefaultPrivilegesStmt>),
    AlterObjectSchema(Box<AlterObjectSchemaStmt>),
    AlterOwner(Box<AlterOwnerStmt>),
    Rename(Box<RenameStmt>),
    Drop(DropStmt),
    DropDatabase(DropdbStmt),
    DropRole(DropRoleStmt),
    DropOwned(DropOwnedStmt),
    ReassignOwned(ReassignOwnedStmt),
    Comment(Box<CommentStmt>),
    Grant(Box<GrantStmt>),
    GrantRole(Box<GrantRoleStmt>),
    RefreshMaterializedView(RefreshMatViewStmt),
    // Sessions and transactions.
    Transaction(TransactionStmt),
    Set(VariableSetStmt),
    Show(VariableShow),
    SetConstraints(ConstraintsSetStmt),
    Discard(Discard),
    Prepare(Box<PrepareStmt>),
    Execute(ExecuteStmt),
    /// None: ALL.
    Deallocate(Option<Ident>),
    DeclareCursor(Box<DeclareCursorStmt>),
    Fetch(FetchStmt),
    /// CLOSE. None: ALL.
    ClosePortal(Option<Ident>),
    Listen(Ident),
    /// None: `*`.
    Unlisten(Option<Ident>),
    Notify(NotifyStmt),
    Lock(LockStmt),
    // Upkeep.
    Explain(Box<ExplainStmt>),
    Vacuum(VacuumStmt),
    Cluster(ClusterStmt),
    Reindex(Box<ReindexStmt>),
    Checkpoint,
    /// `LOAD 'file'`
    Load(String),
}

/// CREATE EXTENSION.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateExtensionStmt {
    pub name: Ident,
    pub if_not_exists: bool,
    /// schema, new_version, cascade.
    pub options: Vec<DefElem>,
}
