//! The parts of a session that statements which change definitions use.

use std::sync::Arc;

use query::catalog::table::Table;
use query::catalog::table_lock::TableMode;
use query::catalog::{Snapshot, Writing};
use query::exec::host::host;
use query::nodes::context::EvalContext;
use query::session::definitions::{RelatedTables, Waits};
use query::session::metadata_locks::Patience;
use query::session::temporary::AtCommit;

use crate::error::{PgError, Result};
use crate::instance::database::Database;
use crate::session::Session;
use crate::session::facts::FactsOf as _;

impl Session {
    pub(crate) fn database(&self) -> &Arc<Database> {
        &self.db
    }

    pub(crate) fn context(&mut self) -> &mut EvalContext {
        &mut self.ctx
    }

    /// Begins a statement that changes definitions: makes sure of the transaction, in which it reads what is committed now.
    pub(crate) fn begin_change_of_definitions(&mut self) -> Result<()> {
        self.put_aside()?;
        self.need_transaction()?;
        (self.transaction.has_queried, self.transaction.has_changed) = (true, true);
        self.host().txn()?.begin_statement();
        Ok(())
    }

    /// Returns the definitions that the session sees, without its temporary tables.
    pub(crate) fn shared_definitions(&self) -> Arc<Snapshot> {
        self.catalog.below.clone().unwrap_or_else(|| self.catalog.clone())
    }

    /// Takes locks of tables to the end of the transaction (`SessionCore::lock_definitions`).
    pub(crate) fn lock_definitions(&mut self, related: &RelatedTables, mode: TableMode) -> Result<()> {
        let (wait, handle) = (self.lock_wait(), self.handle.clone());
        let waits = Waits { metadata: Patience { wait, is_interrupted: &|| handle.is_interrupted() }, rows: wait };
        Ok(self.core.lock_definitions(related, mode, waits)?)
    }

    /// Holds a table that the transaction makes exclusively, to its end.
    pub(crate) fn hold_new(&self, table: &Arc<Table>) {
        self.core.locks.hold_new(table);
    }

    pub(crate) fn begin_change<'c>(
        &mut self,
        db: &'c Database,
        seen: &Snapshot,
        temporary: bool,
    ) -> Result<Writing<'c>> {
        Ok(self.core.begin_change(host(&mut self.ctx), db.instance(), seen, temporary)?)
    }

    pub(crate) fn end_change(&mut self, writing: Writing<'_>) {
        self.core.end_change(host(&mut self.ctx), writing);
        self.look_anew();
    }

    /// Takes back the transaction from a change that has failed.
    pub(crate) fn take_back(&mut self) {
        self.core.take_back(host(&mut self.ctx));
    }

    /// Gives the session a schema for temporary objects, unless it has one.
    pub(crate) fn need_temporary_schema(&mut self) -> Result<()> {
        if self.core.temporary.schema().is_none() {
            let stored = self.stored_schema(&self.temporary_schema_name())?;
            self.core.temporary.begin_change();
            self.core.temporary.need_schema(&stored, crate::MAKER, self.db.catalog());
            self.look_anew();
        }
        Ok(())
    }

    /// Sets what becomes of a new temporary table at each commit.
    pub(crate) fn set_at_commit(&mut self, table: &Table, what: AtCommit) {
        self.core.temporary.set_at_commit(table.id, what);
    }

    pub(crate) fn tell(&mut self, severity: &'static str, error: PgError) {
        let error = self.with_type_names(error);
        self.ctx.facts().notice(severity, error);
    }
}
