//! Temporary tables: visible to one session, where they hide other tables and views of the same name, until dropped or
//! the session ends.
//!
//! The session's catalog snapshot overlays them on the shared definitions (`Snapshot::with_temporary`), so binding, DDL
//! and SHOW treat them alike. The session has a plan-cache context of its own (`session/plans`), replaced whenever a
//! temporary table is created or dropped. MY-7: a table dropped while the transaction may have changed its rows loses its
//! name at once and its maps when the transaction ends.

use std::sync::Arc;

use crate::error::{self, Result};
use crate::parse::statement::Statement;
use crate::rights::grants::{Grants, OfTable};
use crate::rights::{Privileges, needs};
use crate::session::Session;
use query::catalog::table::Table;
use query::catalog::{Snapshot, Writing};

/// A session's temporary tables.
#[derive(Debug, Default)]
pub(super) struct Temporary {
    tables: Vec<Arc<Table>>,
    /// Dropped tables that await the transaction's end (MY-7).
    dropped: Vec<Arc<Table>>,
}

impl Session {
    pub(super) fn has_temporary(&self) -> bool {
        !self.temporary.tables.is_empty()
    }

    /// Takes the newest definitions and overlays the temporary tables.
    pub(super) fn look_anew(&mut self) {
        self.catalog = self.db.catalog().snapshot().with_temporary(&self.temporary.tables);
    }

    /// Adopts the temporary tables that DDL has changed.
    pub(super) fn take_temporary(&mut self, made: &Snapshot) {
        self.set_temporary(made.temporary_tables().cloned().collect());
    }

    fn set_temporary(&mut self, tables: Vec<Arc<Table>>) {
        self.temporary.tables = tables;
        self.leave_context();
        self.look_anew();
        let own = self.rights_of_temporary();
        self.rights = Arc::new(crate::rights::Rights { own, ..crate::rights::Rights::clone(&self.rights) });
    }

    /// Returns grants of all privileges on the session's temporary tables.
    pub(super) fn rights_of_temporary(&self) -> Option<Arc<Grants>> {
        let all = || OfTable { table: Privileges::OF_TABLE, ..OfTable::default() };
        let tables = self.temporary.tables.iter().map(|table| ((table.schema.clone(), table.name.clone()), all()));
        let tables: std::collections::BTreeMap<_, _> = tables.collect();
        (!tables.is_empty()).then(|| Arc::new(Grants { tables, ..Grants::default() }))
    }

    /// Checks the statement's privileges. A session has all privileges on its temporary tables; RENAME TABLE, CREATE
    /// VIEW and DROP VIEW refer to shared objects.
    pub(super) fn check_needs(&self, statement: &Statement) -> Result<()> {
        let reaches_past =
            matches!(statement, Statement::RenameTable(_) | Statement::CreateView(_) | Statement::DropView { .. });
        let own = |schema: &str, name: &str| !reaches_past && self.catalog.is_temporary(schema, name);
        needs::check(statement, &self.rights.shared(), self.database.as_deref(), &own)
    }

    /// Begins a change of temporary tables, without metadata locks or the shared catalog's lock.
    pub(super) fn write_temporary<'c>(&mut self, db: &'c crate::instance::database::Database) -> Writing<'c> {
        self.refresh();
        db.catalog().write_temporary(&self.catalog)
    }

    /// Drops temporary tables. It does not commit.
    pub(super) fn drop_temporary(&mut self, gone: &[Arc<Table>]) -> Result<()> {
        if gone.is_empty() {
            return Ok(());
        }
        let is_gone = |table: &Arc<Table>| gone.iter().any(|other| other.id == table.id);
        let stay = self.temporary.tables.iter().filter(|table| !is_gone(table)).cloned().collect();
        for table in gone {
            table.live.version.store(u64::MAX, std::sync::atomic::Ordering::Release);
        }
        self.temporary.dropped.extend(gone.iter().cloned());
        self.set_temporary(stay);
        if self.host().txn.is_none() { self.end_dropped() } else { Ok(()) }
    }

    /// Frees dropped tables after the transaction (MY-7).
    pub(super) fn end_dropped(&mut self) -> Result<()> {
        while let Some(table) = self.temporary.dropped.pop() {
            self.db.catalog().end_temporary(&table)?;
        }
        Ok(())
    }

    /// Drops all temporary tables when the session ends or is reset. No transaction is open.
    pub(super) fn drop_all_temporary(&mut self) {
        let tables = std::mem::take(&mut self.temporary.tables);
        if tables.is_empty() {
            return;
        }
        // The next start drops the remaining ones.
        let _ = self.drop_temporary(&tables);
    }

    /// Returns whether a table of that name exists among the temporary or the shared ones.
    pub(super) fn name_is_taken(&self, schema: &str, name: &str, temporary: bool) -> bool {
        if temporary {
            return self.catalog.is_temporary(schema, name);
        }
        let shared = self.catalog.shared();
        shared.table(schema, name).is_ok() || shared.view(schema, name).is_some()
    }
}

/// Refuses a view over temporary tables, since a view is visible to all sessions.
pub(super) fn refuse_in_view(tables: &[Arc<Table>]) -> Result<()> {
    match tables.iter().find(|table| table.temporary) {
        Some(table) => Err(error::VIEW_SELECT_TMPTABLE.with(&[&table.name])),
        None => Ok(()),
    }
}
