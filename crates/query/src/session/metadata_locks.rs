//! The locks of tables of one session: those of its transaction, of its statement, and of its explicit LOCK TABLES.
//!
//! A transaction holds each table that it uses in some mode to its end (QU-10, QU-11). An explicit lock outlives transactions: a read lock is the mode Share, a write lock AccessExclusive.
//!
//! A wait holds no thread where the statement may be suspended (`may_suspend`): the request stays in the lock's queue, `Fault::Suspended` ends the run, and the restarted statement comes to the same
//! request again. One that asks for another lock gives the place up.
//!
//! DDL that is a transaction of its own holds no exclusive lock while it waits for another for long (`take_apart`), so two of them never deadlock. DDL in a session's transaction holds its exclusive
//! locks to the end (`exclude`). All waits stand in the search for deadlocks (`session/deadlock`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use datum::{Fault, Result};
use stdx::sync::Mutex;

use crate::catalog::table::Table;
use crate::catalog::table_lock::{STEP, TableClaim, TableMode, TableModes, TableTicket};
use crate::catalog::table_state::TableState;
use crate::session::deadlock::{LockHolder, LockedObject, SessionWait};
use crate::session::interrupts::Wake;

pub use crate::catalog::table_lock::Patience;

#[derive(Debug)]
pub struct MetadataLocks {
    /// The session in the search for deadlocks, with the locks of its transaction.
    me: Arc<LockHolder>,
    /// Explicitly locked tables.
    explicit: Vec<(Arc<Table>, ApartLock)>,
    /// A wait may end the run with `Fault::Suspended`: the statement has changed nothing yet.
    may_suspend: AtomicBool,
    pending: Mutex<Option<PendingLock>>,
}

/// A request that waits while its statement is suspended. Dropping it withdraws the request.
#[derive(Debug)]
struct PendingLock {
    me: Arc<LockHolder>,
    object: LockedObject,
    mode: TableMode,
    /// `None`: the lock has been taken over.
    ticket: Option<Arc<TableTicket>>,
    until: Instant,
}

impl PendingLock {
    fn is_granted(&self) -> bool {
        self.ticket.as_ref().is_none_or(|ticket| ticket.is_granted())
    }

    /// Blocks until the lock is granted.
    fn wait(&self, is_interrupted: &dyn Fn() -> bool) -> Result<()> {
        let Some(ticket) = &self.ticket else { return Ok(()) };
        let ends = || is_interrupted() || self.me.is_victim();
        match self.object.live().table_lock.wait(ticket, self.until, &ends) {
            Err(Fault::Interrupted) if self.me.is_victim() => Err(Fault::Deadlock),
            waited => waited,
        }
    }

    /// Returns the error with which the wait ends now, if it does.
    fn end(&self, is_interrupted: &dyn Fn() -> bool) -> Option<Fault> {
        if is_interrupted() {
            return Some(Fault::Interrupted);
        }
        if self.me.is_victim() {
            return Some(Fault::Deadlock);
        }
        (Instant::now() >= self.until).then_some(Fault::LockTimeout)
    }
}

impl Drop for PendingLock {
    fn drop(&mut self) {
        self.me.end_wait();
        if let Some(ticket) = &self.ticket {
            self.object.live().table_lock.withdraw(ticket);
        }
    }
}

/// A lock that a statement or LOCK TABLES holds, released on drop.
#[derive(Debug)]
pub struct ApartLock {
    me: Arc<LockHolder>,
    object: LockedObject,
    mode: TableMode,
}

impl ApartLock {
    fn new(me: &Arc<LockHolder>, object: LockedObject, mode: TableMode) -> ApartLock {
        me.hold_apart(object.clone(), mode);
        ApartLock { me: me.clone(), object, mode }
    }

    pub fn is_exclusive(&self) -> bool {
        self.mode == TableMode::AccessExclusive
    }
}

impl Drop for ApartLock {
    fn drop(&mut self) {
        self.me.let_go_apart(&self.object, self.mode);
        self.object.live().table_lock.release(self.mode);
    }
}

impl MetadataLocks {
    pub fn new(me: Arc<LockHolder>) -> MetadataLocks {
        MetadataLocks { me, explicit: Vec::new(), may_suspend: AtomicBool::new(false), pending: Mutex::default() }
    }

    /// Returns the session in the search for deadlocks.
    pub fn holder(&self) -> &Arc<LockHolder> {
        &self.me
    }

    /// Says whether waits may suspend the statement from now on, rather than block.
    pub fn suspend(&self, may_suspend: bool) {
        self.may_suspend.store(may_suspend, Ordering::Relaxed);
    }

    /// Returns until when the suspended statement waits for a lock, if it does.
    pub fn suspended_until(&self) -> Option<Instant> {
        self.pending.lock().as_ref().map(|pending| pending.until)
    }

    /// Calls `wake` when the lock is granted, or the wait is to end.
    pub fn park(&self, wake: Wake) {
        self.me.wake_when_chosen(wake.clone());
        let ticket = self.pending.lock().as_ref().and_then(|pending| pending.ticket.clone());
        match ticket {
            Some(ticket) => ticket.wake_when_granted(wake),
            None => wake(),
        }
    }

    /// Returns whether the statement that waits for a lock may go on.
    pub fn is_ready(&self) -> bool {
        self.pending.lock().as_ref().is_none_or(PendingLock::is_granted) || self.me.is_victim()
    }

    /// Ends the wait of a suspended statement, without the lock.
    pub fn end_suspension(&self) {
        drop(self.pending.lock().take());
    }

    /// Returns the explicitly locked tables, and whether exclusively.
    pub fn explicit(&self) -> impl ExactSizeIterator<Item = (&Arc<Table>, bool)> {
        self.explicit.iter().map(|(table, lock)| (table, lock.is_exclusive()))
    }

    pub fn has_explicit(&self) -> bool {
        !self.explicit.is_empty()
    }

    /// Returns whether the table is locked explicitly, and `Some(true)` if exclusively.
    pub fn explicit_lock(&self, table: &Table) -> Option<bool> {
        self.explicit().find(|(locked, _)| locked.id == table.id).map(|(_, is_exclusive)| is_exclusive)
    }

    /// Removes explicit locks of tables that the session has dropped.
    pub fn forget_explicit(&mut self, gone: &[Arc<Table>]) {
        self.explicit.retain(|(table, _)| !gone.iter().any(|gone| gone.id == table.id));
    }

    /// Takes the lock of an object in a mode that the session does not hold.
    fn take(&self, object: &LockedObject, mode: TableMode, patience: Patience<'_>) -> Result<()> {
        let may_suspend = self.may_suspend.load(Ordering::Relaxed);
        let Some(mut pending) = self.begin_to_take(object, mode, patience.wait) else { return Ok(()) };
        if may_suspend && !pending.is_granted() {
            match pending.end(patience.is_interrupted) {
                Some(fault) => return Err(fault),
                None => {
                    *self.pending.lock() = Some(pending);
                    return Err(Fault::Suspended);
                }
            }
        }
        pending.wait(patience.is_interrupted)?;
        pending.ticket = None;
        Ok(())
    }

    /// Takes the lock, or returns the request for it that waits. It is that of the run before, if that was for the same.
    fn begin_to_take(&self, object: &LockedObject, mode: TableMode, wait: Duration) -> Option<PendingLock> {
        let lock = &object.live().table_lock;
        let is_same =
            |pending: &mut PendingLock| pending.mode == mode && Arc::ptr_eq(pending.object.live(), object.live());
        if let Some(pending) = self.pending.lock().take_if(is_same) {
            return Some(pending);
        }
        if lock.try_weak(mode) {
            return None;
        }
        let claim = TableClaim { owner: self.me.id, own: self.me.modes_of(object.live()) };
        let ticket = lock.request(mode, claim)?;
        // A session waits for one lock.
        self.end_suspension();
        self.me.begin_wait(SessionWait::Table { object: object.clone(), mode, since: SystemTime::now() });
        let until = Instant::now().checked_add(wait).unwrap_or_else(far_away);
        Some(PendingLock { me: self.me.clone(), object: object.clone(), mode, ticket: Some(ticket), until })
    }

    /// Takes the locks of these tables for the transaction. Returns false if a definition is stale; then no additional lock is held.
    pub fn share<'t>(
        &self,
        tables: impl Iterator<Item = (&'t Arc<Table>, TableMode)>,
        patience: Patience<'_>,
    ) -> Result<bool> {
        let before = self.held_count();
        for (table, mode) in tables {
            let is_current = || table.live.is_current(table.version);
            if self.covers(table, mode) {
                if is_current() {
                    continue;
                }
                self.release_from(before);
                return Ok(false);
            }
            match self.take(&LockedObject::Table(table.clone()), mode, patience) {
                Ok(()) => self.me.held(|held| held.push((table.clone(), mode))),
                // The restarted statement finds its locks.
                Err(Fault::Suspended) => return Err(Fault::Suspended),
                Err(fault) => {
                    self.release_from(before);
                    return Err(fault);
                }
            }
            // The version cannot change any more.
            if !is_current() {
                self.release_from(before);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether the session holds the table in this mode, or exclusively.
    fn covers(&self, table: &Table, mode: TableMode) -> bool {
        let is_held = |held: &mut Vec<(Arc<Table>, TableMode)>| {
            held.iter().any(|(known, own)| known.id == table.id && (*own == mode || *own == TableMode::AccessExclusive))
        };
        match self.explicit_lock(table) {
            Some(true) => true,
            Some(false) if mode == TableMode::AccessShare => true,
            _ => self.me.held(is_held),
        }
    }

    /// Takes locks of these tables in one mode for the transaction, to its end, whatever their versions. It keeps what it holds of them.
    pub fn exclude(&self, tables: &[Arc<Table>], mode: TableMode, patience: Patience<'_>) -> Result<()> {
        let until = Instant::now() + patience.wait;
        let mut order: Vec<&Arc<Table>> = tables.iter().collect();
        order.sort_by_key(|table| table.id);
        order.dedup_by_key(|table| table.id);
        for table in order {
            if self.covers(table, mode) {
                continue;
            }
            let wait = until.saturating_duration_since(Instant::now());
            self.take(&LockedObject::Table(table.clone()), mode, Patience { wait, ..patience })?;
            self.me.held(|held| held.push((table.clone(), mode)));
        }
        Ok(())
    }

    /// Holds a table that the transaction has made, which nobody else sees.
    pub fn hold_new(&self, table: &Arc<Table>) {
        if table.live.table_lock.request(TableMode::AccessExclusive, TableClaim::default()).is_none() {
            self.me.held(|held| held.push((table.clone(), TableMode::AccessExclusive)));
        }
    }

    /// Returns a point to which locks of the transaction are released when a part of it is undone.
    pub fn held_count(&self) -> usize {
        self.me.held(|held| held.len())
    }

    /// Releases the locks that were taken behind the first `keep`.
    pub fn release_from(&self, keep: usize) {
        let gone = self.me.held(|held| held.split_off(keep.min(held.len())));
        gone.iter().for_each(|(table, mode)| table.live.table_lock.release(*mode));
    }

    /// Ends the transaction's part: releases its locks.
    pub fn release(&self) {
        // One at a time, so that the list keeps its memory for the next transaction.
        while let Some((table, mode)) = self.me.held(Vec::pop) {
            table.live.table_lock.release(mode);
        }
    }

    /// Takes a lock of all definitions for the statement.
    pub fn take_definitions(
        &self,
        definitions: &Arc<TableState>,
        mode: TableMode,
        patience: Patience<'_>,
    ) -> Result<ApartLock> {
        let object = LockedObject::Definitions(definitions.clone());
        self.take(&object, mode, patience)?;
        Ok(ApartLock::new(&self.me, object, mode))
    }

    /// Uses the definition of a table for the statement.
    pub fn use_apart(&self, table: &Arc<Table>, patience: Patience<'_>) -> Result<ApartLock> {
        let object = LockedObject::Table(table.clone());
        self.take(&object, TableMode::AccessShare, patience)?;
        Ok(ApartLock::new(&self.me, object, TableMode::AccessShare))
    }

    /// Takes locks of a mode for DDL. No table may be read-locked by the session itself; those that are write-locked need no other lock.
    pub fn apart(&self, tables: &[Arc<Table>], mode: TableMode, patience: Patience<'_>) -> Result<Vec<ApartLock>> {
        let wanted = tables.iter().filter(|table| {
            let explicit = self.explicit_lock(table);
            assert!(explicit != Some(false), "DDL of a table that the session has locked for reading");
            explicit.is_none()
        });
        let mut order: Vec<_> = wanted.map(|table| (table.clone(), mode)).collect();
        self.take_apart(&mut order, patience)
    }

    /// Takes these locks, and sorts them in the order in which it did. None is held while another is waited for longer than a step, since its holder may want it next.
    fn take_apart(&self, order: &mut Vec<(Arc<Table>, TableMode)>, patience: Patience<'_>) -> Result<Vec<ApartLock>> {
        let until = Instant::now() + patience.wait;
        order.sort_by_key(|(table, mode)| (table.id, *mode != TableMode::AccessExclusive));
        order.dedup_by_key(|(table, _)| table.id);
        if let Some(pending) = &*self.pending.lock() {
            let is_it = |(table, _): &(Arc<Table>, _)| Arc::ptr_eq(&table.live, pending.object.live());
            order.iter().position(is_it).into_iter().for_each(|at| order.swap(0, at));
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut locks = Vec::with_capacity(order.len());
            let mut busy = None;
            for (nth, (table, mode)) in order.iter().enumerate() {
                let object = LockedObject::Table(table.clone());
                let taken = match nth {
                    0 => self.take(&object, *mode, Patience { wait: left, ..patience }),
                    _ => self.take_soon(&object, *mode, Patience { wait: left.min(STEP), ..patience }),
                };
                match taken {
                    Ok(()) => locks.push(ApartLock::new(&self.me, object, *mode)),
                    Err(Fault::LockTimeout | Fault::TooManyWaits) if nth > 0 && left > STEP => {
                        busy = Some(nth);
                        break;
                    }
                    Err(fault) => return Err(fault),
                }
            }
            match busy {
                None => return Ok(locks),
                // The busy table is waited for first, without any other.
                Some(nth) => order.swap(0, nth),
            }
        }
    }

    /// Takes a lock within a step, and blocks meanwhile.
    fn take_soon(&self, object: &LockedObject, mode: TableMode, patience: Patience<'_>) -> Result<()> {
        let Some(mut pending) = self.begin_to_take(object, mode, patience.wait) else { return Ok(()) };
        pending.wait(patience.is_interrupted)?;
        pending.ticket = None;
        Ok(())
    }

    /// Takes explicit locks on all of these tables or none; `true` means exclusively. The session holds no explicit lock.
    pub fn lock_tables(&mut self, tables: Vec<(Arc<Table>, bool)>, patience: Patience<'_>) -> Result<()> {
        assert!(self.explicit.is_empty());
        let mode = |is_exclusive| if is_exclusive { TableMode::AccessExclusive } else { TableMode::Share };
        let mut order: Vec<_> = tables.into_iter().map(|(table, exclusive)| (table, mode(exclusive))).collect();
        let locks = self.take_apart(&mut order, patience)?;
        self.explicit = order.into_iter().map(|(table, _)| table).zip(locks).collect();
        Ok(())
    }

    /// Releases the explicit locks. With `keeps_shared` the transaction goes on to use read-locked tables, since it may have read them.
    pub fn unlock_tables(&mut self, keeps_shared: bool) {
        for (table, lock) in std::mem::take(&mut self.explicit) {
            let mut own = TableModes::default();
            own.add(lock.mode);
            let claim = TableClaim { owner: self.me.id, own };
            // Nothing is in the way of the holder.
            if keeps_shared
                && !lock.is_exclusive()
                && table.live.table_lock.request(TableMode::AccessShare, claim).is_none()
            {
                self.me.held(|held| held.push((table, TableMode::AccessShare)));
            }
        }
    }
}

/// A time at which nobody waits any more.
fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(100 * 365 * 86_400)
}
