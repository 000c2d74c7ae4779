//! The parts of a session that statements which change definitions use.

use std::sync::Arc;

use query::catalog::Snapshot;
use query::catalog::table::Table;
use query::exec::host::host;
use query::nodes::context::EvalContext;

use crate::bind::Plan;
use crate::error::{PgError, Result, state};
use crate::instance::database::Database;
use crate::session::Session;
use crate::session::facts::FactsOf as _;
use crate::session::transact::Block;

impl Session {
    pub(crate) fn database(&self) -> &Arc<Database> {
        &self.db
    }

    pub(crate) fn context(&mut self) -> &mut EvalContext {
        &mut self.ctx
    }

    /// Returns whether the open transaction would have to undo a change of definitions, or an earlier change of it.
    pub(crate) fn has_changed_before(&self) -> bool {
        self.transaction.block == Block::Explicit || self.transaction.has_changed
    }

    /// Ends the reads of an implicit block, which goes on.
    pub(crate) fn commit_reads(&mut self) -> Result<()> {
        self.put_aside()?;
        Ok(self.core.commit(host(&mut self.ctx))?)
    }

    pub(crate) fn note_lsn(&mut self, lsn: engine::Lsn) {
        self.core.transaction.raise_durability_lsn(lsn);
    }

    pub(crate) fn tell(&mut self, severity: &'static str, error: PgError) {
        self.ctx.facts().notice(severity, error);
    }

    pub(crate) fn adopt_temporary(&mut self, made: &Snapshot) {
        self.core.temporary.adopt(made);
        self.context_id = None;
        self.look_anew();
    }

    pub(crate) fn forget_temporary(&mut self, tables: &[Arc<Table>]) -> Result<()> {
        self.core.temporary.drop_tables(tables);
        self.core.temporary.free_dropped(self.db.catalog())?;
        self.context_id = None;
        self.look_anew();
        Ok(())
    }

    pub(crate) fn forget_locks(&mut self, tables: &[Arc<Table>]) {
        self.core.locks.forget_explicit(tables);
    }

    /// Sets the effective `search_path` and returns the one before.
    pub(crate) fn replace_search_path(&mut self, path: Vec<String>) -> Vec<String> {
        std::mem::replace(&mut self.ctx.facts().search_path, path)
    }

    /// Runs a statement of the session's own that gives no rows, within the current block.
    pub(crate) fn run_text(&mut self, text: &Arc<str>) -> Result<()> {
        let mut statements = self.parse_text(text)?;
        let raw = statements.pop().ok_or_else(|| PgError::new(state::INTERNAL_ERROR, "no statement"))?;
        let mut bind = |session: &mut Session| session.bind_raw(&raw, text, &[], &[]).map(|bound| bound.statement);
        let statement = bind(self)?;
        let statement = self.start(&statement, Vec::new(), &mut bind)?;
        let changed = match &statement.plan {
            Plan::Delete(delete) => query::exec::change::delete(delete, &mut self.ctx),
            _ => return Err(PgError::new(state::INTERNAL_ERROR, "a statement of another kind")),
        };
        changed.map(drop).map_err(|fault| self.error_of(fault, &statement.written))
    }
}
