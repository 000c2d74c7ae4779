//! Statements, as `syntax` has them, and how the session treats their kinds.

pub use syntax::tree::{
    Accounting, Alteration, Assignment, Completion, CreateTable, Duplicates, FieldTarget, Format, Given, Histograms,
    Level, Load, Maintenance, Name, Options, Pattern, RoleChoice, Scope, Secret, Setting, Show, Shown, Statement,
    TableLock, Target, User, UserName,
};

/// Properties of statements that MySQL gives to their kinds.
pub trait StatementKind {
    /// Returns whether the statement is bound, planned and run as a plan. Others are commands.
    fn has_plan(&self) -> bool;

    /// Returns whether the statement commits the open transaction before it begins.
    fn commits_implicitly(&self) -> bool;
}

impl StatementKind for Statement {
    fn has_plan(&self) -> bool {
        match self {
            Statement::Query(query) => query.into.is_none(),
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Do(_) => true,
            _ => false,
        }
    }

    fn commits_implicitly(&self) -> bool {
        match self {
            Statement::CreateTable(create) => !create.temporary,
            Statement::DropTable { tables: _, if_exists: _, temporary } => !temporary,
            Statement::Maintain { what, tables: _, histograms: _ } => !matches!(what, Maintenance::Checksum(_)),
            Statement::Accounting(what) => !matches!(**what, Accounting::SetRole(_)),
            Statement::AlterTable { .. }
            | Statement::CreateIndex(_)
            | Statement::DropIndex { .. }
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
            | Statement::Flush(_) => true,
            _ => false,
        }
    }
}
