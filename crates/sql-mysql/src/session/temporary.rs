//! Temporary tables of a session: it alone sees them, before any other table or view of their name, until it drops them or goes.
//!
//! What the session sees is the newest definitions with its own laid over them (`Snapshot::with_temporary`), so binding, DDL and SHOW know of no difference; and plans stand on a
//! ground of its own, which it leaves whenever a temporary table comes or goes (`session/plans`). MY-7: one that is dropped while the transaction may have changed its rows loses its name at once, and its maps when the transaction has ended.

use std::sync::Arc;

use crate::error::{self, Result};
use crate::parse::statement::Statement;
use crate::rights::grants::{Grants, OfTable};
use crate::rights::{Privileges, needs};
use crate::session::Session;
use query::catalog::table::Table;
use query::catalog::{Snapshot, Writing};

/// What a session has of its own.
#[derive(Debug, Default)]
pub(super) struct Temporary {
    tables: Vec<Arc<Table>>,
    /// Without a name already, and not ended yet (MY-7).
    doomed: Vec<Arc<Table>>,
}

impl Session {
    pub(super) fn has_temporary(&self) -> bool {
        !self.temporary.tables.is_empty()
    }

    /// The newest definitions, under the session's own.
    pub(super) fn look_anew(&mut self) {
        self.catalog = self.db.catalog().snapshot().with_temporary(&self.temporary.tables);
    }

    /// Takes over what DDL has made of the session's tables.
    pub(super) fn take_temporary(&mut self, made: &Snapshot) {
        self.set_temporary(made.temporary_tables().cloned().collect());
    }

    fn set_temporary(&mut self, tables: Vec<Arc<Table>>) {
        self.temporary.tables = tables;
        self.leave_ground();
        self.look_anew();
        let own = self.rights_of_temporary();
        self.rights = Arc::new(crate::rights::Rights { own, ..crate::rights::Rights::clone(&self.rights) });
    }

    /// Everything, with each of them.
    pub(super) fn rights_of_temporary(&self) -> Option<Arc<Grants>> {
        let all = || OfTable { table: Privileges::OF_TABLE, ..OfTable::default() };
        let tables = self.temporary.tables.iter().map(|table| ((table.schema.clone(), table.name.clone()), all()));
        let tables: std::collections::BTreeMap<_, _> = tables.collect();
        (!tables.is_empty()).then(|| Arc::new(Grants { tables, ..Grants::default() }))
    }

    /// What the statement needs, but for temporary tables: who has made one may do anything with it. Statements that reach past them are about what all see.
    pub(super) fn check_needs(&self, statement: &Statement) -> Result<()> {
        let reaches_past =
            matches!(statement, Statement::RenameTable(_) | Statement::CreateView(_) | Statement::DropView { .. });
        let own = |schema: &str, name: &str| !reaches_past && self.catalog.is_temporary(schema, name);
        needs::check(statement, &self.rights.shared(), self.database.as_deref(), &own)
    }

    /// A change of this session's tables: no gate but its own, no definitions that others wait for.
    pub(super) fn write_temporary<'c>(&mut self, db: &'c crate::instance::database::Database) -> Writing<'c> {
        self.refresh();
        db.catalog().write_temporary(&self.catalog)
    }

    /// DROP of temporary tables, by their names. No transaction ends by it.
    pub(super) fn drop_temporary(&mut self, gone: &[Arc<Table>]) -> Result<()> {
        if gone.is_empty() {
            return Ok(());
        }
        let is_gone = |table: &Arc<Table>| gone.iter().any(|other| other.id == table.id);
        let stay = self.temporary.tables.iter().filter(|table| !is_gone(table)).cloned().collect();
        for table in gone {
            table.live.version.store(u64::MAX, std::sync::atomic::Ordering::Release);
        }
        self.temporary.doomed.extend(gone.iter().cloned());
        self.set_temporary(stay);
        if self.host().txn.is_none() { self.end_doomed() } else { Ok(()) }
    }

    /// MY-7: after the transaction.
    pub(super) fn end_doomed(&mut self) -> Result<()> {
        while let Some(table) = self.temporary.doomed.pop() {
            self.db.catalog().end_temporary(&table)?;
        }
        Ok(())
    }

    /// The session goes, or begins anew. There is no transaction.
    pub(super) fn drop_all_temporary(&mut self) {
        let tables = std::mem::take(&mut self.temporary.tables);
        if tables.is_empty() {
            return;
        }
        // What cannot be dropped now, the next start drops.
        let _ = self.drop_temporary(&tables);
    }

    /// CREATE TEMPORARY TABLE where one of the name is there.
    pub(super) fn name_is_taken(&self, schema: &str, name: &str, temporary: bool) -> bool {
        if temporary {
            return self.catalog.is_temporary(schema, name);
        }
        let shared = self.catalog.shared();
        shared.table(schema, name).is_ok() || shared.view(schema, name).is_some()
    }
}

/// A view is there for everybody: it cannot be over one session's table.
pub(super) fn refuse_in_view(tables: &[Arc<Table>]) -> Result<()> {
    match tables.iter().find(|table| table.temporary) {
        Some(table) => Err(error::VIEW_SELECT_TMPTABLE.with(&[&table.name])),
        None => Ok(()),
    }
}
