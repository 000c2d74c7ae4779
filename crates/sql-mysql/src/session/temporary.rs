//! Temporary tables: their privileges, and DDL of them (`query::session::temporary` keeps them by QU-31).

use std::sync::Arc;

use crate::error::{self, Result};
use crate::parse::statement::Statement;
use crate::rights::grants::{Grants, OfTable};
use crate::rights::{Privileges, needs};
use crate::session::Session;
use query::catalog::table::Table;
use query::catalog::{Snapshot, Writing};

impl Session {
    /// Takes the newest definitions and overlays the temporary tables.
    pub(super) fn look_anew(&mut self) {
        self.catalog = self.core.temporary.overlay(&self.db.catalog().snapshot());
    }

    /// Adopts the temporary tables that DDL has changed.
    pub(super) fn take_temporary(&mut self, changed: &Snapshot) {
        self.core.temporary.adopt(changed);
        self.follow_temporary();
    }

    /// Brings definitions, privileges and the plan-cache context in step with the temporary tables.
    fn follow_temporary(&mut self) {
        self.leave_context();
        self.look_anew();
        let own = self.rights_of_temporary();
        self.rights = Arc::new(crate::rights::Rights { own, ..crate::rights::Rights::clone(&self.rights) });
    }

    /// Returns grants of all privileges on the session's temporary tables.
    pub(super) fn rights_of_temporary(&self) -> Option<Arc<Grants>> {
        let all = || OfTable { table: Privileges::OF_TABLE, ..OfTable::default() };
        let tables = self.core.temporary.tables().map(|table| ((table.schema.clone(), table.name.clone()), all()));
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
        let is_in_transaction = self.host().txn.is_some();
        let freed = self.core.drop_temporary(gone, is_in_transaction);
        self.follow_temporary();
        Ok(freed?)
    }

    /// Drops all temporary tables when the session ends or is reset. No transaction is open.
    pub(super) fn drop_all_temporary(&mut self) {
        let tables: Vec<_> = self.core.temporary.tables().cloned().collect();
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
