//! A session's transactions, and the metadata locks of the tables they use.
//!
//! The characteristics of SET TRANSACTION obey MY-13.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datum::Fault;
use engine::rows::Isolation;

use crate::error::{self, Result, SqlError};
use crate::instance::count::Count;
use crate::instance::handle::Handle;
use crate::instance::statement::BoundStatement;
use crate::parse::statement::Completion;
use crate::scalar::state::StateOf as _;
use crate::session::{Session, has_ended_transaction};
use crate::value::Value;
use query::catalog::table::Table;
use query::catalog::table_lock::TableMode;
use query::exec::host::host;
use query::nodes::context::Level;
use query::session::metadata_locks::Patience;
use query::session::transaction::Beginning;

impl Session {
    pub(super) fn in_transaction(&self) -> bool {
        let host = self.ctx.host.as_ref().and_then(|host| host.downcast_ref::<query::exec::host::Host>());
        self.core.in_transaction(host)
    }

    /// Begins a transaction if none is open.
    pub(super) fn need_transaction(&mut self) {
        let beginning = Beginning {
            at: self.began,
            lock_wait: self.lock_wait(),
            is_read_only: self.quick.read_only,
            changes: self.handle.counts.changes(),
        };
        self.core.need_transaction(host(&mut self.ctx), beginning);
    }

    pub(super) fn lock_wait(&self) -> Duration {
        Duration::from_secs(self.quick.lock_wait_s)
    }

    /// Returns how long the lock of a table is waited for: no longer than the statement may run.
    pub(super) fn mdl_wait(&self) -> Duration {
        let limit = Duration::from_secs(self.quick.mdl_wait_s);
        match self.ctx.deadline {
            Some(deadline) => limit.min(deadline.saturating_duration_since(Instant::now())),
            None => limit,
        }
    }

    pub(super) fn begin(&mut self, read_only: Option<bool>, snapshot: bool) -> Result<()> {
        // The new transaction keeps the characteristics set for the one that it ends.
        self.commit_chaining()?;
        if !self.locked.is_all {
            self.unlock_tables();
        }
        if read_only.is_some() {
            self.core.transaction.next_read_only = read_only;
            self.track_next();
        }
        self.need_transaction();
        self.core.transaction.is_explicit = true;
        self.core.open.lasts();
        self.track_begin(snapshot);
        if snapshot {
            self.host().txn()?.take_snapshot();
        }
        Ok(())
    }

    /// Drops the characteristics of SET TRANSACTION.
    fn forget_next(&mut self) {
        let transaction = &mut self.core.transaction;
        (transaction.next_isolation, transaction.next_read_only) = (None, None);
        transaction.is_read_only = self.quick.read_only;
        self.track_next();
    }

    pub(super) fn commit(&mut self) -> Result<()> {
        self.track_end();
        let committed = self.commit_chaining();
        self.forget_next();
        committed
    }

    /// Ends an autocommit statement. The characteristics of SET TRANSACTION are used up only if it used a table.
    pub(super) fn commit_statement(&mut self) -> Result<()> {
        if self.has_used_tables { self.commit() } else { self.commit_chaining() }
    }

    /// Returns whether a transaction of the same characteristics follows.
    pub(super) fn chains(&self, said: Completion) -> bool {
        said.chain.unwrap_or(self.quick.completion == CompletionType::Chain)
    }

    /// Marks the session as released if the statement ends it.
    pub(super) fn release_if_asked(&mut self, said: Completion) {
        self.is_released |= said.release.unwrap_or(self.quick.completion == CompletionType::Release);
    }

    /// Commits and keeps the characteristics for the next transaction.
    pub(super) fn commit_chaining(&mut self) -> Result<()> {
        let host = host(&mut self.ctx);
        if host.txn.is_some() {
            self.handle.counts.add(Count::HandlerCommit);
        }
        Ok(self.core.commit(host)?)
    }

    pub(super) fn roll_back(&mut self) {
        self.track_end();
        self.roll_back_chaining();
        self.forget_next();
    }

    /// Rolls back and keeps the characteristics for the next transaction.
    pub(super) fn roll_back_chaining(&mut self) {
        let host = host(&mut self.ctx);
        if host.txn.is_some() {
            self.handle.counts.add(Count::HandlerRollback);
        }
        let handle = &self.handle;
        self.core.roll_back(host, &mut |done, of| tell(handle, done, of));
    }

    /// Takes the shared metadata locks of these tables. Returns false if a definition is stale; then no additional lock
    /// is held.
    pub(super) fn share_tables(&mut self, tables: &[Arc<Table>]) -> Result<bool> {
        self.lock_in_modes(tables.iter().map(|table| (table, TableMode::AccessShare)))
    }

    /// Takes the locks of tables that a plan needs, in the modes that it needs. Returns as `share_tables` does.
    pub(super) fn lock_for(&mut self, statement: &BoundStatement) -> Result<bool> {
        self.lock_in_modes(statement.tables_with_modes())
    }

    fn lock_in_modes<'t>(&mut self, tables: impl Iterator<Item = (&'t Arc<Table>, TableMode)>) -> Result<bool> {
        let (wait, handle) = (self.mdl_wait(), &self.handle);
        let shared = self.core.locks.share(tables, Patience { wait, is_interrupted: &|| handle.is_interrupted() });
        let is_late = self.ctx.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        match shared {
            Err(Fault::LockTimeout) if is_late => Err(Fault::StatementTimeout.into()),
            shared => Ok(shared?),
        }
    }

    /// Raises the reply's durability LSN to that of the data read.
    pub(super) fn note_durability_lsn(&mut self) {
        self.core.note_reads(host(&mut self.ctx));
    }

    /// Counts a slow statement.
    fn note_slowness(&mut self) {
        if self.began.elapsed() > self.quick.long_query {
            self.handle.counts.add(Count::SlowQueries);
        }
    }

    /// Ends a successful statement; commits it under autocommit.
    pub(super) fn end_statement(&mut self) -> Result<()> {
        if !self.finish_statement()? {
            self.note_durability_lsn();
        }
        Ok(())
    }

    /// Ends a successful change that returns a count alone. In a transaction that goes on, its reply does not wait for what it has read (QU-64).
    pub(super) fn end_counted(&mut self) -> Result<()> {
        self.finish_statement().map(drop)
    }

    /// Ends a successful statement. Returns true if that ended its transaction too.
    fn finish_statement(&mut self) -> Result<bool> {
        self.note_slowness();
        self.is_open = false;
        self.core.transaction.statement_start = None;
        // Parameters may be large.
        self.ctx.parameters.clear();
        self.handle.show(crate::instance::handle::ProcessListRow::end);
        if self.core.transaction.is_explicit || (!self.core.transaction.autocommit && !self.is_bare) {
            return Ok(false);
        }
        self.commit_statement()?;
        Ok(true)
    }

    /// Ends a failed statement and rolls its changes back.
    pub(super) fn fail(&mut self, error: SqlError) -> SqlError {
        self.note_slowness();
        self.is_open = false;
        self.suspension.is_allowed = false;
        self.forget_suspended();
        self.ctx.parameters.clear();
        let keeps = self.in_transaction() && !has_ended_transaction(&error);
        let handle = &self.handle;
        let undone = self.core.undo_statement(host(&mut self.ctx), keeps, &mut |done, of| tell(handle, done, of));
        if !undone && !self.has_used_tables && !self.in_transaction() {
            self.roll_back_chaining();
        } else if !undone {
            self.roll_back();
        } else {
            self.note_durability_lsn();
        }
        // The process list shows the statement until the rollback is done.
        self.handle.show(crate::instance::handle::ProcessListRow::end);
        self.ctx.state_mut().session.row_count = -1;
        self.ctx.warnings.push(Level::Error, error.clone());
        error
    }

    pub(super) fn savepoint(&mut self, name: &str) -> Result<()> {
        if self.core.transaction.autocommit && !self.core.transaction.is_explicit {
            return Ok(());
        }
        self.need_transaction();
        self.is_bare = false;
        self.core.set_savepoint(host(&mut self.ctx), name, str::eq_ignore_ascii_case)?;
        self.handle.counts.add(Count::HandlerSavepoint);
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        let position = self.core.find_savepoint(name, str::eq_ignore_ascii_case);
        position.ok_or_else(|| error::SP_DOES_NOT_EXIST.with(&[&"SAVEPOINT", &name]))
    }

    pub(super) fn rollback_to(&mut self, name: &str) -> Result<()> {
        let position = self.find_savepoint(name)?;
        self.handle.counts.add(Count::HandlerSavepointRollback);
        let handle = &self.handle;
        let undone = self.core.roll_back_to(host(&mut self.ctx), position, &mut |done, of| tell(handle, done, of));
        if undone.is_err() {
            self.roll_back();
        }
        Ok(undone?)
    }

    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<()> {
        let position = self.find_savepoint(name)?;
        self.core.release_savepoint(position);
        Ok(())
    }
}

/// `completion_type`: the default for AND CHAIN and RELEASE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CompletionType {
    #[default]
    NoChain,
    Chain,
    Release,
}

impl CompletionType {
    const ALL: [(CompletionType, &str); 3] =
        [(CompletionType::NoChain, "NO_CHAIN"), (CompletionType::Chain, "CHAIN"), (CompletionType::Release, "RELEASE")];

    /// Parses a name or a number.
    pub(super) fn named(value: &Value) -> Option<CompletionType> {
        let number = match value {
            Value::Int(number) => usize::try_from(*number).ok(),
            Value::UInt(number) => usize::try_from(*number).ok(),
            Value::Text(text) => Self::ALL.iter().position(|(_, name)| name.eq_ignore_ascii_case(text)),
            _ => None,
        };
        number.and_then(|number| Self::ALL.get(number)).map(|(completion, _)| *completion)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

pub(super) fn isolation_of(name: &str) -> Option<Isolation> {
    Some(match name.to_ascii_uppercase().replace(' ', "-").as_str() {
        "READ-UNCOMMITTED" => Isolation::ReadUncommitted,
        "READ-COMMITTED" => Isolation::ReadCommitted,
        "REPEATABLE-READ" => Isolation::RepeatableRead,
        "SERIALIZABLE" => Isolation::Serializable,
        _ => return None,
    })
}

/// Shows the progress of a rollback in the process list.
fn tell(handle: &Handle, done: u64, of: u64) {
    handle.show(|shown| shown.state = Some(format!("rolling back ({done} of {of} changes)")));
}
