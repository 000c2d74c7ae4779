//! The transactions of one session: whether one is open, its characteristics, its savepoints, its end.
//!
//! The engine's transaction lies in the `Host`, where the executor needs it. `SessionCore` begins and ends it and keeps what depends on it in step: metadata locks are released after the commit, maps of
//! dropped temporary tables are freed after that, and the durability LSN of the reply covers everything that the transaction has read and written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datum::{Fault, Result};
use engine::Lsn;
use engine::rows::{Cancel, Isolation, Savepoint};

use crate::catalog::pending::{Pending, PendingPoint};
use crate::catalog::writing::Lent;
use crate::engine_fault::engine_fault;
use crate::exec::host::Host;
use crate::exec::instance::Instance;
use crate::session::metadata_locks::MetadataLocks;
use crate::session::open_transaction::OpenTransaction;
use crate::session::temporary::{TemporaryPoint, TemporaryTables};

/// Called with the number of changes that are undone, and of all.
pub type UndoProgress<'p> = &'p mut dyn FnMut(u64, u64);

/// The characteristics and savepoints of a session's transactions.
#[derive(Debug)]
pub struct SessionTransaction {
    /// Each statement outside an explicit transaction is a transaction of its own.
    pub autocommit: bool,
    /// A transaction begun by a statement for it is open.
    pub is_explicit: bool,
    /// The open transaction may not write, or the next may not.
    pub is_read_only: bool,
    /// The session's default.
    pub isolation: Isolation,
    /// Characteristics set for the next or current transaction, and for those chained to it.
    pub next_isolation: Option<Isolation>,
    pub next_read_only: Option<bool>,
    savepoints: Vec<(String, SessionPoint)>,
    /// The savepoint to which a failed statement is rolled back.
    pub statement_start: Option<Savepoint>,
    /// The durability LSN of the reply: the WAL must be durable up to it before the reply is sent.
    pub durability_lsn: Lsn,
}

impl SessionTransaction {
    /// Returns the isolation level of the open or the next transaction.
    pub fn effective_isolation(&self) -> Isolation {
        self.next_isolation.unwrap_or(self.isolation)
    }

    /// Raises the reply's durability LSN.
    pub fn raise_durability_lsn(&mut self, lsn: Lsn) {
        self.durability_lsn = self.durability_lsn.max(lsn);
    }
}

impl Default for SessionTransaction {
    fn default() -> SessionTransaction {
        SessionTransaction {
            autocommit: true,
            is_explicit: false,
            is_read_only: false,
            isolation: Isolation::RepeatableRead,
            next_isolation: None,
            next_read_only: None,
            savepoints: Vec::new(),
            statement_start: None,
            durability_lsn: 0,
        }
    }
}

/// A point of a transaction: of its rows, and of the definitions that it has changed.
#[derive(Clone, Debug)]
struct SessionPoint {
    rows: Savepoint,
    definitions: PendingPoint,
    table_locks: usize,
    advisory_locks: usize,
    /// `None`: temporary tables are not part of the session's transactions so far.
    temporary: Option<TemporaryPoint>,
}

/// The state of one session below its dialect.
pub struct SessionCore {
    pub instance: Arc<Instance>,
    /// The open transaction as other sessions see it.
    pub open: Arc<OpenTransaction>,
    pub transaction: SessionTransaction,
    pub locks: MetadataLocks,
    pub temporary: TemporaryTables,
    /// Definitions that the open transaction has changed.
    pub(super) pending: Pending,
    /// The transaction, while a statement that has failed still had it.
    pub(super) lent: Lent,
    /// Tells the engine whether a wait must end.
    pub cancel: Cancel,
}

/// The properties of a transaction that is to begin.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    pub at: Instant,
    pub lock_wait: Duration,
    /// Whether transactions may write unless the next one has its own characteristics.
    pub is_read_only: bool,
    /// The rows that the session has changed so far.
    pub changes: u64,
}

impl SessionCore {
    /// Makes the state of the session of a connection.
    pub fn new(instance: Arc<Instance>, connection: u64, open: Arc<OpenTransaction>, cancel: Cancel) -> SessionCore {
        let locks = MetadataLocks::new(instance.lock_holders().join(connection, open.clone()));
        SessionCore {
            instance,
            open,
            transaction: SessionTransaction::default(),
            locks,
            temporary: TemporaryTables::default(),
            pending: Pending::default(),
            lent: Lent::default(),
            cancel,
        }
    }

    /// Returns whether the session is in a transaction that outlives the current statement.
    pub fn in_transaction(&self, host: Option<&Host>) -> bool {
        let is_open = || host.is_some_and(|host| host.txn.is_some());
        self.transaction.is_explicit || (!self.transaction.autocommit && is_open())
    }

    /// Begins a transaction if none is open.
    pub fn need_transaction(&mut self, host: &mut Host, beginning: Beginning) {
        if host.txn.is_some() {
            return;
        }
        let Beginning { at, lock_wait, is_read_only, changes } = beginning;
        let isolation = self.transaction.effective_isolation();
        let is_read_only = self.transaction.next_read_only.unwrap_or(is_read_only);
        let mut txn = self.instance.engine().rows().begin(isolation);
        txn.set_lock_wait(lock_wait);
        txn.set_cancel(self.cancel.clone());
        txn.set_activity(self.open.activity.clone());
        if host.locks_keys {
            txn.insert_past_locks();
        }
        self.transaction.is_read_only = is_read_only;
        self.open.begin(at, isolation, is_read_only, changes);
        if !self.transaction.autocommit {
            self.open.lasts();
        }
        host.txn = Some(txn);
        host.isolation = isolation;
    }

    /// Raises the reply's durability LSN to that of the data read. A change that returns a count alone does not call it while its transaction goes on (QU-64).
    pub fn note_reads(&mut self, host: &Host) {
        let read = host.txn.as_ref().map_or(0, |txn| txn.durability_lsn()).max(host.seen);
        self.transaction.raise_durability_lsn(read);
    }

    /// Commits the open transaction, if there is one, and releases all that it held. An error means that nothing was committed.
    pub fn commit(&mut self, host: &mut Host) -> Result<()> {
        self.leave_transaction(host);
        let catalog = self.instance.catalog();
        let committed = host.txn.take().map_or(Ok(0), |txn| self.pending.commit(txn, catalog));
        self.temporary.end_changes(committed.is_ok());
        self.open.end();
        self.locks.release();
        host.advisory.release_from(0);
        self.transaction.raise_durability_lsn(committed?);
        self.temporary.free_dropped(self.instance.catalog())
    }

    /// Rolls the open transaction back, if there is one, and releases all that it held.
    pub fn roll_back(&mut self, host: &mut Host, progress: UndoProgress<'_>) {
        self.leave_transaction(host);
        if let Some(txn) = host.txn.take() {
            txn.rollback_with_progress(progress);
        }
        self.pending.undo_all(self.instance.catalog());
        self.temporary.end_changes(false);
        self.open.end();
        self.locks.release();
        host.advisory.release_from(0);
        // The next start frees those that are left.
        let _ = self.temporary.free_dropped(self.instance.catalog());
    }

    fn leave_transaction(&mut self, host: &mut Host) {
        host.deferring.clear();
        self.note_reads(host);
        self.transaction.is_explicit = false;
        self.transaction.savepoints.clear();
        self.transaction.statement_start = None;
    }

    /// Sets a savepoint, which replaces one of the same name. `is_same` compares names as the dialect does.
    pub fn set_savepoint(&mut self, host: &mut Host, name: &str, is_same: fn(&str, &str) -> bool) -> Result<()> {
        let point = SessionPoint {
            rows: host.txn()?.savepoint(),
            definitions: self.pending.point(),
            table_locks: self.locks.held_count(),
            advisory_locks: host.advisory.point(),
            temporary: self.temporary.is_transactional().then(|| self.temporary.point()),
        };
        self.transaction.savepoints.retain(|(known, _)| !is_same(known, name));
        self.transaction.savepoints.push((name.to_owned(), point));
        Ok(())
    }

    /// Returns the position of a savepoint; `None` if there is none of that name.
    pub fn find_savepoint(&self, name: &str, is_same: fn(&str, &str) -> bool) -> Option<usize> {
        self.transaction.savepoints.iter().position(|(known, _)| is_same(known, name))
    }

    /// Rolls back to a savepoint, which stays. After an error the transaction can only be rolled back.
    pub fn roll_back_to(&mut self, host: &mut Host, position: usize, progress: UndoProgress<'_>) -> Result<()> {
        let point = self.transaction.savepoints[position].1.clone();
        self.transaction.savepoints.truncate(position + 1);
        undo_to(host, point.rows, progress)?;
        self.undo_definitions_to(&point);
        host.advisory.release_from(point.advisory_locks);
        Ok(())
    }

    /// Goes back to the definitions of the point, whose records have been undone (QU-46).
    fn undo_definitions_to(&mut self, point: &SessionPoint) {
        self.pending.undo_to(&point.definitions, self.instance.catalog());
        match &point.temporary {
            Some(point) => self.temporary.undo_to(point),
            None => self.temporary.undo_all(),
        }
    }

    /// Does the same, and gives back the locks of tables that were taken since, and the row locks, but for those of rows that were changed since.
    pub fn roll_back_to_and_unlock(
        &mut self,
        host: &mut Host,
        position: usize,
        progress: UndoProgress<'_>,
    ) -> Result<()> {
        let point = self.transaction.savepoints[position].1.clone();
        self.transaction.savepoints.truncate(position + 1);
        host.txn()?.rollback_to_and_unlock(point.rows, progress).map_err(engine_fault)?;
        self.undo_definitions_to(&point);
        // Behind the undo of what they have kept to the session.
        self.locks.release_from(point.table_locks);
        host.advisory.release_from(point.advisory_locks);
        Ok(())
    }

    /// Forgets a savepoint and those after it.
    pub fn release_savepoint(&mut self, position: usize) {
        self.transaction.savepoints.truncate(position);
    }

    /// Rolls back the changes of the failed statement. Returns false if the transaction must be rolled back.
    pub fn undo_statement(&mut self, host: &mut Host, keeps_transaction: bool, progress: UndoProgress<'_>) -> bool {
        match (keeps_transaction, self.transaction.statement_start.take()) {
            (true, Some(start)) => undo_to(host, start, progress).is_ok(),
            (keeps, _) => keeps,
        }
    }
}

fn undo_to(host: &mut Host, point: Savepoint, progress: UndoProgress<'_>) -> Result<(), Fault> {
    host.txn()?.rollback_to_with_progress(point, progress).map_err(engine_fault)
}
