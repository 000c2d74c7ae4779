//! A session's transactions, and the metadata locks of the tables they use.
//!
//! The characteristics of SET TRANSACTION obey MY-13.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datum::Fault;
use engine::rows::{Isolation, Savepoint};

use crate::error::{self, Result, SqlError};
use crate::instance::count::Count;
use crate::instance::handle::Handle;
use crate::parse::statement::Completion;
use crate::scalar::state::StateOf as _;
use crate::session::{Session, has_ended_transaction};
use crate::value::Value;
use query::catalog::table::Table;
use query::nodes::context::Level;

impl Session {
    pub(super) fn in_transaction(&self) -> bool {
        let host = self.ctx.host.as_ref().and_then(|host| host.downcast_ref::<query::exec::host::Host>());
        self.explicit || (!self.autocommit && host.is_some_and(|host| host.txn.is_some()))
    }

    /// Begins a transaction if none is open.
    pub(super) fn need_transaction(&mut self) {
        if self.host().txn.is_some() {
            return;
        }
        let isolation = self.next_isolation.unwrap_or(self.isolation);
        self.read_only = self.next_read_only.unwrap_or(self.quick.read_only);
        let mut txn = self.db.engine().rows().begin(isolation);
        txn.set_lock_wait(self.lock_wait());
        txn.set_cancel(self.cancel.clone());
        txn.set_activity(self.handle.open.activity.clone());
        self.handle.open.begin(self.began, isolation, self.read_only, &self.handle.counts);
        if !self.autocommit {
            self.handle.open.lasts();
        }
        let host = self.host();
        host.txn = Some(txn);
        host.isolation = isolation;
    }

    pub(super) fn lock_wait(&self) -> Duration {
        Duration::from_secs(self.quick.lock_wait_s)
    }

    pub(super) fn mdl_wait(&self) -> Duration {
        Duration::from_secs(self.quick.mdl_wait_s)
    }

    pub(super) fn begin(&mut self, read_only: Option<bool>, snapshot: bool) -> Result<()> {
        // The new transaction keeps the characteristics set for the one that it ends.
        self.commit_chaining()?;
        if !self.locked.is_all {
            self.unlock_tables();
        }
        if read_only.is_some() {
            self.next_read_only = read_only;
            self.track_next();
        }
        self.need_transaction();
        self.explicit = true;
        self.handle.open.lasts();
        self.track_begin(snapshot);
        if snapshot {
            self.host().txn()?.take_snapshot();
        }
        Ok(())
    }

    /// Drops the characteristics of SET TRANSACTION.
    fn forget_next(&mut self) {
        (self.next_isolation, self.next_read_only) = (None, None);
        self.read_only = self.quick.read_only;
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
        self.explicit = false;
        self.savepoints.clear();
        self.statement_start = None;
        self.note_durability_lsn();
        let txn = self.host().txn.take();
        let committed = match txn {
            Some(txn) => {
                self.durability_lsn = self.durability_lsn.max(txn.durability_lsn());
                self.handle.counts.add(Count::HandlerCommit);
                txn.commit()
            }
            None => Ok(0),
        };
        self.handle.open.end();
        self.release();
        self.durability_lsn = self.durability_lsn.max(committed?);
        self.end_dropped()
    }

    pub(super) fn roll_back(&mut self) {
        self.track_end();
        self.roll_back_chaining();
        self.forget_next();
    }

    /// Rolls back and keeps the characteristics for the next transaction.
    pub(super) fn roll_back_chaining(&mut self) {
        self.explicit = false;
        self.savepoints.clear();
        self.statement_start = None;
        self.note_durability_lsn();
        if let Some(txn) = self.host().txn.take() {
            self.durability_lsn = self.durability_lsn.max(txn.durability_lsn());
            self.handle.counts.add(Count::HandlerRollback);
            let handle = self.handle.clone();
            txn.rollback_with_progress(&mut |done, of| tell(&handle, done, of));
        }
        self.handle.open.end();
        self.release();
        // The next start drops the remaining ones.
        let _ = self.end_dropped();
    }

    /// Releases the metadata locks and the writer registrations.
    fn release(&mut self) {
        for table in self.written.drain(..) {
            table.live.read_lock.release_writer();
        }
        for table in self.held.drain(..) {
            table.live.metadata_lock.release_shared();
        }
    }

    /// Takes shared metadata locks. Returns false if a definition is stale; then no additional lock is held.
    pub(super) fn hold(&mut self, tables: &[Arc<Table>]) -> Result<bool> {
        let before = self.held.len();
        let patience = self.mdl_wait();
        let handle = self.handle.clone();
        let is_killed = || handle.is_interrupted();
        for table in tables {
            let known = self.held.iter().find(|held| held.id == table.id);
            let is_locked = self.locked.tables.iter().any(|(locked, _)| locked.id == table.id);
            let is_current = table.live.version.load(std::sync::atomic::Ordering::Acquire) == table.version;
            if known.is_some() || is_locked {
                if is_current {
                    continue;
                }
                self.let_go(before);
                return Ok(false);
            }
            if let Err(fault) = table.live.metadata_lock.acquire_shared(patience, &is_killed) {
                self.let_go(before);
                return Err(fault.into());
            }
            self.held.push(table.clone());
            // The version cannot change any more.
            if table.live.version.load(std::sync::atomic::Ordering::Acquire) != table.version {
                self.let_go(before);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn let_go(&mut self, keep: usize) {
        for table in self.held.drain(keep..) {
            table.live.metadata_lock.release_shared();
        }
    }

    /// Raises the reply's durability LSN to that of the data read.
    pub(super) fn note_durability_lsn(&mut self) {
        let host = self.host();
        let durability_lsn = host.txn.as_ref().map_or(0, |txn| txn.durability_lsn()).max(host.seen);
        self.durability_lsn = self.durability_lsn.max(durability_lsn);
    }

    /// Counts a slow statement.
    fn note_slowness(&mut self) {
        if self.began.elapsed() > self.quick.long_query {
            self.handle.counts.add(Count::SlowQueries);
        }
    }

    /// Ends a successful statement; commits it under autocommit.
    pub(super) fn end_statement(&mut self) -> Result<()> {
        self.note_slowness();
        self.is_open = false;
        self.statement_start = None;
        // Parameters may be large.
        self.ctx.parameters.clear();
        self.handle.show(crate::instance::handle::Shown::end);
        if self.explicit || (!self.autocommit && !self.is_bare) {
            self.note_durability_lsn();
            return Ok(());
        }
        self.commit_statement()
    }

    /// Ends a failed statement and rolls its changes back.
    pub(super) fn fail(&mut self, error: SqlError) -> SqlError {
        self.note_slowness();
        self.is_open = false;
        self.suspension.is_allowed = false;
        self.forget_suspended();
        self.ctx.parameters.clear();
        let start = self.statement_start.take();
        let keeps = self.in_transaction() && !has_ended_transaction(&error);
        let undone = match (keeps, start) {
            (true, Some(start)) => self.take_back_to(start).is_ok(),
            (true, None) => true,
            (false, _) => false,
        };
        if !undone && !self.has_used_tables && !self.in_transaction() {
            self.roll_back_chaining();
        } else if !undone {
            self.roll_back();
        } else {
            self.note_durability_lsn();
        }
        // The process list shows the statement until the rollback is done.
        self.handle.show(crate::instance::handle::Shown::end);
        self.ctx.state_mut().session.row_count = -1;
        self.ctx.warnings.push(Level::Error, error.clone());
        error
    }

    pub(super) fn savepoint(&mut self, name: &str) -> Result<()> {
        if self.autocommit && !self.explicit {
            return Ok(());
        }
        self.need_transaction();
        self.is_bare = false;
        let point = self.host().txn()?.savepoint();
        self.handle.counts.add(Count::HandlerSavepoint);
        self.savepoints.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.savepoints.push((name.to_owned(), point));
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        let at = self.savepoints.iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
        at.ok_or_else(|| error::SP_DOES_NOT_EXIST.with(&[&"SAVEPOINT", &name]))
    }

    pub(super) fn rollback_to(&mut self, name: &str) -> Result<()> {
        let at = self.find_savepoint(name)?;
        let point = self.savepoints[at].1;
        self.handle.counts.add(Count::HandlerSavepointRollback);
        self.savepoints.truncate(at + 1);
        if let Err(error) = self.take_back_to(point) {
            self.roll_back();
            return Err(error);
        }
        Ok(())
    }

    fn take_back_to(&mut self, point: Savepoint) -> Result<()> {
        let handle = self.handle.clone();
        Ok(self.host().txn()?.rollback_to_with_progress(point, &mut |done, of| tell(&handle, done, of))?)
    }

    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<()> {
        let at = self.find_savepoint(name)?;
        self.savepoints.truncate(at);
        Ok(())
    }

    /// Takes exclusive metadata locks for DDL. None is held while waiting for another: the holder of that one may want
    /// it next.
    pub(super) fn lock_exclusively(&self, tables: &[Arc<Table>]) -> Result<Vec<ExclusiveLock>> {
        const TRY: Duration = Duration::from_millis(100);
        let until = Instant::now() + self.mdl_wait();
        let mut order: Vec<&Arc<Table>> = tables.iter().collect();
        order.sort_by_key(|table| table.id);
        order.dedup_by_key(|table| table.id);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut closed = Vec::new();
            let mut in_the_way = None;
            for (nth, table) in order.iter().enumerate() {
                match self.lock_table_exclusively(table, if nth == 0 { left } else { left.min(TRY) }) {
                    Ok(durability_lsn) => closed.push(durability_lsn),
                    Err(Fault::LockTimeout) if nth > 0 && left > TRY => {
                        in_the_way = Some(nth);
                        break;
                    }
                    Err(fault) => return Err(fault.into()),
                }
            }
            match in_the_way {
                None => return Ok(closed),
                Some(nth) => order.swap(0, nth),
            }
        }
    }

    fn lock_table_exclusively(&self, table: &Table, patience: Duration) -> datum::Result<ExclusiveLock> {
        match self.locked.tables.iter().find(|(locked, _)| locked.id == table.id) {
            Some((_, true)) => return Ok(ExclusiveLock(None)),
            Some((_, false)) => return Err(super::locks::read_locked(table).into()),
            None => {}
        }
        let handle = self.handle.clone();
        table.live.metadata_lock.acquire_exclusive(patience, &|| handle.is_interrupted())?;
        Ok(ExclusiveLock(Some(table.live.clone())))
    }
}

/// An exclusive metadata lock, released on drop.
pub(super) struct ExclusiveLock(Option<Arc<query::catalog::table_state::TableState>>);

impl Drop for ExclusiveLock {
    fn drop(&mut self) {
        if let Some(live) = &self.0 {
            live.metadata_lock.release_exclusive();
        }
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
