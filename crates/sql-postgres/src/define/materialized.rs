//! Materialized views: tables that keep the rows of a query, as of their last REFRESH.
//!
//! The query is a part of the table's definition (QU-61). Where a view is wanted, `view_of` makes one of it. REFRESH gives the table new maps under its exclusive metadata lock; CONCURRENTLY replaces the rows in place, so that readers go on with those of before.

use std::sync::Arc;

use query::catalog::Snapshot;
use query::catalog::table::{KeptQuery, Table};
use query::catalog::table_lock::TableMode;
use query::catalog::view::View;
use query::exec::change::{self, Tally};
use query::exec::rebuild::replace_maps;
use query::session::definitions::RelatedTables;
use syntax::postgres::tree::{AlterTableCmd, Persistence, RawStatement, RefreshMatViewStmt};

use crate::bind::{self, Bound, Plan};
use crate::define::create_as::filling;
use crate::define::names::{Relation, not_a, schema_of};
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::session::{Session, quoted};

/// Returns the word of messages for a stored relation.
pub fn kind_of(table: &Table) -> &'static str {
    if table.query.is_some() { "materialized view" } else { "table" }
}

/// Returns a materialized view as a view; `None` for a table.
pub fn view_of(table: &Table) -> Option<View> {
    let KeptQuery { text, modes, is_populated: _ } = table.query.as_deref()?;
    let (columns, types) = table.named().map(|(_, column)| (column.name.clone(), column.ty.clone())).unzip();
    Some(View {
        id: table.id,
        maker: table.maker,
        schema: table.schema.clone(),
        name: table.name.clone(),
        columns,
        types,
        text: text.clone(),
        modes: modes.clone(),
        ..View::default()
    })
}

/// Fails if one of the tables of a statement is a materialized view without rows.
pub fn check_populated(tables: &[Arc<Table>]) -> Result<()> {
    let is_empty = |table: &&Arc<Table>| table.query.as_ref().is_some_and(|query| !query.is_populated);
    match tables.iter().find(is_empty) {
        None => Ok(()),
        Some(table) => {
            let message = format!("materialized view \"{}\" has not been populated", table.name);
            let error = PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
            Err(error.hint("Use the REFRESH MATERIALIZED VIEW command."))
        }
    }
}

/// Fails if a statement changes the rows of a materialized view.
pub fn check_changeable(tables: &[Arc<Table>]) -> Result<()> {
    match tables.iter().find(|table| table.query.is_some()) {
        None => Ok(()),
        Some(table) => {
            let message = format!("cannot change materialized view \"{}\"", table.name);
            Err(PgError::new(state::WRONG_OBJECT_TYPE, message))
        }
    }
}

/// Fails for a query whose rows cannot be kept.
pub(super) fn check_kept(bound: &Bound, persistence: Persistence) -> Result<()> {
    let refused = |message: &str| Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
    if !matches!(bound.statement.plan, Plan::Query { .. }) {
        return refused("materialized views must not use data-modifying statements in WITH");
    }
    let bindings = &bound.statement.bindings;
    let reads_temporary = bindings.tables.iter().any(|table| table.temporary);
    if reads_temporary || bindings.views.iter().any(|view| view.temporary) || !bound.temporaries.is_empty() {
        return refused("materialized views must not use temporary tables or views");
    }
    if persistence == Persistence::Unlogged {
        return refused("materialized views cannot be unlogged");
    }
    Ok(())
}

/// Fails for a command of ALTER TABLE that materialized views do not have.
pub(super) fn check_of_materialized(command: &AlterTableCmd, table: &Table) -> Result<()> {
    let action = match command {
        AlterTableCmd::AddColumn { .. } => "ADD COLUMN",
        AlterTableCmd::DropColumn { .. } => "DROP COLUMN",
        AlterTableCmd::SetDefault { .. } | AlterTableCmd::DropDefault { .. } => "ALTER COLUMN ... SET DEFAULT",
        AlterTableCmd::SetNotNull { .. } => "ALTER COLUMN ... SET NOT NULL",
        AlterTableCmd::DropNotNull { .. } => "ALTER COLUMN ... DROP NOT NULL",
        AlterTableCmd::DropExpression { .. } => "ALTER COLUMN ... DROP EXPRESSION",
        AlterTableCmd::SetType { .. } => "ALTER COLUMN ... SET DATA TYPE",
        AlterTableCmd::AddIdentity { .. } => "ALTER COLUMN ... ADD IDENTITY",
        AlterTableCmd::SetIdentity { .. } => "ALTER COLUMN ... SET",
        AlterTableCmd::DropIdentity { .. } => "ALTER COLUMN ... DROP IDENTITY",
        AlterTableCmd::AddConstraint(_) => "ADD CONSTRAINT",
        AlterTableCmd::AlterConstraint { .. } => "ALTER CONSTRAINT",
        AlterTableCmd::ValidateConstraint { .. } => "VALIDATE CONSTRAINT",
        AlterTableCmd::DropConstraint { .. } => "DROP CONSTRAINT",
        AlterTableCmd::SetLogged(true) => "SET LOGGED",
        AlterTableCmd::SetLogged(false) => "SET UNLOGGED",
        AlterTableCmd::EnableTrigger(_) => "ENABLE TRIGGER",
        AlterTableCmd::DisableTrigger(_) => "DISABLE TRIGGER",
        AlterTableCmd::RowSecurity { enabled: true } => "ENABLE ROW SECURITY",
        AlterTableCmd::RowSecurity { enabled: false } => "DISABLE ROW SECURITY",
        AlterTableCmd::ForceRowSecurity { forced: true } => "FORCE ROW SECURITY",
        AlterTableCmd::ForceRowSecurity { forced: false } => "NO FORCE ROW SECURITY",
        AlterTableCmd::Inherit(_) => "INHERIT",
        AlterTableCmd::NoInherit(_) => "NO INHERIT",
        AlterTableCmd::OfType(_) => "OF",
        AlterTableCmd::NotOfType => "NOT OF",
        AlterTableCmd::AttachPartition(_) => "ATTACH PARTITION",
        AlterTableCmd::DetachPartition { .. } => "DETACH PARTITION",
        _ => return Ok(()),
    };
    let message = format!("ALTER action {action} cannot be performed on relation \"{}\"", table.name);
    let error = PgError::new(state::WRONG_OBJECT_TYPE, message);
    Err(error.detail("This operation is not supported for materialized views."))
}

/// Returns whether the rows of the table can be told apart: a unique index over columns, of all rows.
fn has_whole_key(table: &Table) -> bool {
    let is_plain = |at: usize| !table.columns[at].is_hidden();
    table.indexes.iter().any(|index| index.is_key() && index.parts.iter().all(|part| is_plain(part.column)))
}

impl Session {
    pub(super) fn refresh_materialized_view(&mut self, refresh: &RefreshMatViewStmt) -> Result<()> {
        let RefreshMatViewStmt { relation, concurrently, with_data } = refresh;
        let table = match self.relation(relation)? {
            Some(Relation::Table(table)) => table,
            Some(_) => return Err(not_a(&relation.name, "table or materialized view")),
            None => return Err(self.missing_relation(relation, None)),
        };
        self.check_owns(&Object::table(&table))?;
        let Some(view) = view_of(&table) else {
            let message = format!("\"{}\" is not a materialized view", table.name);
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
        };
        let is_populated = table.query.as_ref().is_some_and(|query| query.is_populated);
        if *concurrently && !is_populated {
            let message = "CONCURRENTLY cannot be used when the materialized view is not populated";
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        if *concurrently && !with_data {
            let message = "CONCURRENTLY and WITH NO DATA options cannot be used together";
            return Err(PgError::new(state::SYNTAX_ERROR, message));
        }
        if *concurrently && !has_whole_key(&table) {
            let name = format!("{}.{}", quoted(schema_of(&table.schema)), quoted(&table.name));
            let message = format!("cannot refresh materialized view \"{name}\" concurrently");
            let hint = "Create a unique index with no WHERE clause on one or more columns of the materialized view.";
            return Err(PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message).hint(hint));
        }
        let bound = self.bound_kept(&Arc::new(view), *with_data)?;
        match concurrently {
            true => self.replace_rows(&table, &bound),
            false => self.refill(&table, bound),
        }
    }

    /// Binds the query of a materialized view with the rights of its owner, and keeps its tables as they are. Without data it is not read.
    fn bound_kept(&mut self, view: &Arc<View>, with_data: bool) -> Result<Option<Bound>> {
        if !with_data {
            return Ok(None);
        }
        loop {
            let mut bound =
                self.with_environment(&[], |environment, ctx| bind::bind_kept_query(environment, ctx, view))?;
            if let Some(denied) = bound.denied.take() {
                return Err(denied);
            }
            if self.share_tables(&bound.statement.bindings.locked)? {
                check_populated(&bound.statement.bindings.tables)?;
                return Ok(Some(bound));
            }
            self.refresh();
        }
    }

    /// Gives a materialized view new maps, with the rows of its query; without it, with none.
    fn refill(&mut self, table: &Arc<Table>, bound: Option<Bound>) -> Result<()> {
        let db = self.database().clone();
        let needs = |snapshot: &Snapshot| {
            let changed = vec![snapshot.table(&table.schema, &table.name)?.clone()];
            Ok(RelatedTables { changed, tied: Vec::new() })
        };
        let mut writing = self.lock_and_write(&db, TableMode::AccessExclusive, needs)?;
        let old = writing.snapshot.table(&table.schema, &table.name)?.clone();
        let mut new = old.copy();
        replace_maps(&mut writing, &old, &mut new)?;
        // As in PostgreSQL, whose rows are frozen: a reader sees those of before or these, however old its snapshot is.
        new.maps().into_iter().try_for_each(|map| writing.txn.show_to_all(map))?;
        if let Some(query) = &mut new.query {
            query.is_populated = bound.is_some();
        }
        let settled = writing.put_table(new)?;
        if let Some(bound) = bound {
            self.bind_formulas(&settled)?;
            // The indexes are filled when all rows are there.
            let mut bare = settled.copy().with_derived_fields();
            bare.version = settled.version;
            bare.indexes.clear();
            let bare = Arc::new(bare);
            self.bind_formulas(&bare)?;
            let insert = filling(&bare, &bound)?;
            self.within_writing(&mut writing, |session, _| {
                let ctx = session.context();
                let tally = change::insert(&insert, Tally::default(), ctx)?;
                change::inserted(&insert, tally, ctx)?;
                Ok(())
            })?;
            let every: Vec<usize> = (0..settled.indexes.len()).collect();
            super::rebuild::fill(&mut writing.txn, &settled, &every, self.context())?;
        }
        self.finish(writing)
    }

    /// Replaces the rows of a materialized view by those of its query. Readers see those of before until the commit.
    fn replace_rows(&mut self, table: &Arc<Table>, bound: &Option<Bound>) -> Result<()> {
        let Some(bound) = bound else { return Ok(()) };
        let name = format!("{}.{}", quoted(schema_of(&table.schema)), quoted(&table.name));
        let text: Arc<str> = format!("DELETE FROM {name}").into();
        let raw = self.parse_text(&text)?.pop().ok_or_else(|| PgError::unsupported("this statement"))?;
        let bind_delete = |session: &mut Session, raw: &RawStatement| {
            session.bind_internally(|session| session.bind_unchecked(raw, &text, &[], &[]))
        };
        let delete = bind_delete(self, &raw)?.statement;
        let delete = self.start(&delete, Vec::new(), &mut |session| Ok(bind_delete(session, &raw)?.statement))?;
        let Plan::Delete(rows) = &delete.plan else { return Err(PgError::unsupported("this statement")) };
        let Some(target) = delete.written.first().cloned() else { return Ok(()) };
        self.lock_in_mode(std::slice::from_ref(&target), TableMode::Exclusive)?;
        let insert = filling(&target, bound)?;
        let ctx = self.context();
        let replaced = change::delete(rows, ctx).and_then(|_| {
            let tally = change::insert(&insert, Tally::default(), ctx)?;
            change::inserted(&insert, tally, ctx)
        });
        replaced.map_err(|fault| self.error_of(fault, &delete.written))?;
        self.end_statement()
    }
}
