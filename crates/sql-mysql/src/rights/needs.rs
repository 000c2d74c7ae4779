//! Privileges that statements require, in one table that is checked before a statement has any effect.
//!
//! Queries and row changes are not here: their privileges depend on the tables and columns that they use, and are
//! checked in the binder. A new kind of statement does not compile without its row.

use syntax::tree::{
    Accounting, Alteration, CreateTable, ForeignKey, Maintenance, Name, Setting, Shown, Statement, TableConstraint,
    TableLock, UserName,
};

use crate::error::{self, Result};
use crate::rights::{Privileges as P, Rights};

/// One thing that must be had.
#[derive(Debug)]
enum Need<'s> {
    /// One of these everywhere: 1227.
    Global(P),
    /// All of these at the database: 1044.
    Database(&'s str, P),
    /// All of these at the table: 1142.
    Table(Name, P),
    /// Something, anything, at the table: 1142.
    SomeOfTable(&'s Name, &'static str),
    /// A right to the table as a whole, not to some of its columns: 1142.
    AnyOfTable(&'s Name, &'static str),
    /// Something in the database: 1044.
    SomeOfDatabase(Option<&'s str>),
}

fn table(name: &Name, set: P) -> Need<'_> {
    Need::Table(name.clone(), set)
}

/// Returns the privileges that the statement requires.
fn needs(statement: &Statement) -> Vec<Need<'_>> {
    match statement {
        // Looked at as they are bound, or when the statement within runs.
        Statement::Query(_)
        | Statement::Load(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Do(_)
        | Statement::Explain { .. }
        | Statement::Prepare { .. }
        | Statement::Execute { .. }
        | Statement::Deallocate(_) => Vec::new(),
        // Everybody's.
        Statement::Nothing
        | Statement::Begin { .. }
        | Statement::Commit(_)
        | Statement::Rollback(_)
        | Statement::Savepoint(_)
        | Statement::RollbackTo(_)
        | Statement::Release(_)
        | Statement::UnlockTables => Vec::new(),
        // Who may end whom depends on the thread.
        Statement::Kill { .. } => Vec::new(),
        // Each procedure has its own.
        Statement::Call { .. } => Vec::new(),
        Statement::CreateSequence { name, .. } => vec![table(name, P::CREATE)],
        Statement::CreateTable(create) => {
            let mut all = vec![table(&create.name, P::CREATE)];
            if create.temporary {
                // Of the database that it is in.
                let name = Name { name: String::new(), ..create.name.clone() };
                all = vec![Need::Table(name, P::CREATE_TEMPORARY_TABLES)];
            }
            all.extend(create.like.iter().map(|like| table(like, P::SELECT)));
            if create.query.is_some() && !create.temporary {
                all.push(table(&create.name, P::INSERT));
            }
            all.extend(parents(create));
            all
        }
        Statement::AlterTable { table: name, operations } => altered(name, operations),
        Statement::CreateIndex(create) => vec![table(&create.table, P::INDEX)],
        Statement::DropIndex { table: name, .. } => vec![table(name, P::INDEX)],
        Statement::DropTable { temporary: true, .. } => Vec::new(),
        Statement::DropTable { tables, .. } => tables.iter().map(|name| table(name, P::DROP)).collect(),
        Statement::CreateView(create) => {
            let replaces = if create.or_replace || create.alter { P::DROP } else { P::NONE };
            vec![table(&create.name, P::CREATE_VIEW | replaces)]
        }
        Statement::DropView { names, .. } => names.iter().map(|name| table(name, P::DROP)).collect(),
        Statement::Truncate(name) => vec![table(name, P::DROP)],
        Statement::RenameTable(pairs) => pairs.iter().flat_map(|(from, to)| renamed(from, to)).collect(),
        Statement::CreateDatabase { name, .. } => vec![Need::Database(name, P::CREATE)],
        Statement::AlterDatabase { name: Some(name), .. } => vec![Need::Database(name, P::ALTER)],
        // Of the current one: `check` fills it in.
        Statement::AlterDatabase { name: None, .. } => vec![Need::Database("", P::ALTER)],
        Statement::DropDatabase { name, .. } => vec![Need::Database(name, P::DROP)],
        Statement::Use(name) => vec![Need::SomeOfDatabase(Some(name))],
        Statement::Set(settings) => set(settings),
        Statement::ResetPersist { .. } => vec![sets_globals()],
        Statement::Show(show) => shown(&show.what),
        Statement::Describe { table, .. } => vec![Need::SomeOfTable(table, "SELECT")],
        Statement::LockTables(list) => {
            let locked = |TableLock { table: name, alias: _, write: _ }: &TableLock| {
                let schema = Need::Table(Name { name: String::new(), ..name.clone() }, P::LOCK_TABLES);
                [schema, Need::Table(name.clone(), P::SELECT)]
            };
            list.iter().flat_map(locked).collect()
        }
        Statement::Maintain { what, tables, .. } => {
            let set = if *what == Maintenance::Check { P::SELECT } else { P::SELECT | P::INSERT };
            tables.iter().map(|name| table(name, set)).collect()
        }
        Statement::Flush(_) | Statement::LockAll => vec![Need::Global(P::RELOAD)],
        Statement::Accounting(what) => accounting(what),
    }
}

/// Tables that foreign keys refer to.
fn parents(create: &CreateTable) -> impl Iterator<Item = Need<'_>> {
    create.constraints.iter().filter_map(|constraint| parent(&create.name, constraint))
}

/// A parent without a schema is in the child's.
fn parent<'s>(child: &Name, constraint: &TableConstraint) -> Option<Need<'s>> {
    let TableConstraint::Foreign(ForeignKey { references, .. }) = constraint else { return None };
    let parent = references.table.clone();
    Some(Need::Table(Name { schema: parent.schema.or_else(|| child.schema.clone()), ..parent }, P::REFERENCES))
}

fn altered<'s>(name: &'s Name, operations: &'s [Alteration]) -> Vec<Need<'s>> {
    let mut all = vec![table(name, P::ALTER)];
    for operation in operations {
        match operation {
            Alteration::RenameTable(to) => all.extend(renamed(name, to)),
            Alteration::Add(constraint) => all.extend(parent(name, constraint)),
            _ => {}
        }
    }
    all
}

fn renamed<'s>(from: &'s Name, to: &'s Name) -> [Need<'s>; 2] {
    [table(from, P::ALTER | P::DROP), table(to, P::CREATE | P::INSERT)]
}

fn sets_globals() -> Need<'static> {
    Need::Global(P::SUPER | P::SYSTEM_VARIABLES_ADMIN)
}

fn set(settings: &[Setting]) -> Vec<Need<'_>> {
    let is_global = |setting: &Setting| match setting {
        Setting::System { scope, .. }
        | Setting::Default { scope, .. }
        | Setting::Isolation { scope, .. }
        | Setting::Access { scope, .. } => scope.is_global(),
        Setting::User { .. } | Setting::Names { .. } | Setting::CharacterSet(_) => false,
    };
    if settings.iter().any(is_global) { vec![sets_globals()] } else { Vec::new() }
}

fn shown(what: &Shown) -> Vec<Need<'_>> {
    match what {
        // Everybody's, or cut down to what one may see.
        Shown::Databases
        | Shown::Variables { .. }
        | Shown::Status { .. }
        | Shown::Warnings { .. }
        | Shown::Engines
        | Shown::Collation
        | Shown::Charset
        | Shown::Processlist
        | Shown::Privileges
        | Shown::Plugins
        | Shown::OpenTables
        | Shown::FunctionStatus
        | Shown::ProcedureStatus
        | Shown::Profiles => Vec::new(),
        Shown::EngineStatus(_) => vec![Need::Global(P::PROCESS)],
        Shown::Tables { schema, .. } | Shown::TableStatus { schema } => vec![Need::SomeOfDatabase(schema.as_deref())],
        Shown::Triggers | Shown::Events => Vec::new(),
        Shown::Columns { table, .. } | Shown::Index { table } => vec![Need::SomeOfTable(table, "SELECT")],
        // What exactly depends on whether it is a view.
        Shown::CreateView(name) => vec![Need::SomeOfTable(name, "SHOW VIEW")],
        Shown::CreateTable(name) => vec![Need::AnyOfTable(name, "SHOW")],
        Shown::CreateDatabase { name, .. } => vec![Need::SomeOfDatabase(Some(name))],
        Shown::MasterStatus | Shown::ReplicaStatus | Shown::Replicas | Shown::BinaryLogs => {
            vec![Need::Global(P::SUPER | P::REPLICATION_CLIENT)]
        }
        Shown::Grants { of: None | Some(UserName::Current), .. } | Shown::CreateUser(UserName::Current) => Vec::new(),
        // One's own by name is seen by everybody: `session` compares first.
        Shown::Grants { .. } | Shown::CreateUser(_) => Vec::new(),
    }
}

fn accounting(what: &Accounting) -> Vec<Need<'_>> {
    match what {
        Accounting::CreateUser { .. } | Accounting::DropUser { roles: false, .. } | Accounting::RenameUser(_) => {
            vec![Need::Global(P::CREATE_USER)]
        }
        Accounting::CreateRole { .. } => vec![Need::Global(P::CREATE_USER | P::CREATE_ROLE)],
        Accounting::DropUser { roles: true, .. } => vec![Need::Global(P::CREATE_USER | P::DROP_ROLE)],
        // One's own password is one's own business; what may be passed on depends on the level.
        Accounting::AlterUser { .. }
        | Accounting::SetPassword { .. }
        | Accounting::Grant { .. }
        | Accounting::Revoke { .. }
        | Accounting::RevokeAll { .. }
        | Accounting::GrantRoles { .. }
        | Accounting::RevokeRoles { .. }
        | Accounting::SetDefaultRole { .. }
        | Accounting::SetRole(_) => Vec::new(),
    }
}

/// Everything that the statement needs, or the first error.
pub fn check(
    statement: &Statement,
    rights: &Rights,
    current: Option<&str>,
    own: &dyn Fn(&str, &str) -> bool,
) -> Result<()> {
    let is_own = |name: &Name| {
        let schema = name.schema.as_deref().or(current);
        schema.is_some_and(|schema| own(schema, &name.name))
    };
    for need in needs(statement) {
        let of_own = match &need {
            Need::Table(name, set) => !set.has(P::CREATE) && is_own(name),
            Need::SomeOfTable(name, _) | Need::AnyOfTable(name, _) => is_own(name),
            _ => false,
        };
        if of_own {
            continue;
        }
        check_one(need, rights, current)?;
    }
    Ok(())
}

fn check_one(need: Need<'_>, rights: &Rights, current: Option<&str>) -> Result<()> {
    let schema_of = |name: &Name| {
        let schema = name.schema.clone().or_else(|| current.map(str::to_owned));
        schema.ok_or_else(|| error::NO_DB.bare())
    };
    match need {
        Need::Global(some) => rights.need_global(some),
        Need::Database(schema, all) => match (schema, current) {
            ("", None) => Err(error::NO_DB.bare()),
            ("", Some(current)) => rights.need_database(current, all),
            (schema, _) => rights.need_database(schema, all),
        },
        // Of the whole database that the table is in.
        Need::Table(name, all) if name.name.is_empty() => rights.need_database(&schema_of(&name)?, all),
        Need::Table(name, all) => rights.need_table(&schema_of(&name)?, &name.name, all),
        Need::SomeOfTable(name, command) => {
            let schema = schema_of(name)?;
            if rights.sees_table(&schema, &name.name) { Ok(()) } else { Err(rights.no_table(command, &name.name)) }
        }
        Need::AnyOfTable(name, command) => {
            let schema = schema_of(name)?;
            if rights.has_table(&schema, &name.name) { Ok(()) } else { Err(rights.no_table(command, &name.name)) }
        }
        Need::SomeOfDatabase(schema) => {
            let schema = schema.or(current).ok_or_else(|| error::NO_DB.bare())?;
            if rights.sees_database(schema) { Ok(()) } else { Err(rights.no_database(schema)) }
        }
    }
}
