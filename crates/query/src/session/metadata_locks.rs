//! The metadata locks of one session: those of its transaction, and those of its explicit table locks.
//!
//! A transaction holds the shared metadata lock of each table that it uses to its end (QU-10), and table locks of those whose rows it locks or changes (QU-11). An explicit lock outlives transactions: a read
//! lock is a shared metadata lock with the table lock in mode Share, a write lock an exclusive metadata lock.
//!
//! DDL that is a transaction of its own holds no exclusive lock while it waits for another for long (`exclusive`), so two of
//! them never deadlock. DDL in a session's transaction holds its exclusive locks to the end (`exclude`); its session stands
//! in the search for deadlocks (`session/deadlock`).

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use datum::{Fault, Result};
use engine::rows::Activity;

use crate::catalog::table::Table;
use crate::catalog::table_lock::{TableClaim, TableMode, TableModes};
use crate::catalog::table_state::TableState;
use crate::exec::instance::Instance;
use crate::session::deadlock::{Awaited, LockHolder, TableRequest};

pub use crate::catalog::table_lock::Patience;

/// The wait for one table before the locks taken so far are released and the attempt starts over.
const STEP: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub struct MetadataLocks {
    /// Tables whose shared metadata locks the transaction holds.
    shared: Vec<Arc<Table>>,
    /// Table locks of the transaction, in the order in which it took them, each once.
    modes: Vec<(Arc<Table>, TableMode)>,
    /// Tables whose exclusive metadata locks the transaction holds to its end, since it has changed their definitions.
    exclusive: Vec<Arc<Table>>,
    /// Explicitly locked tables, and whether exclusively.
    explicit: Vec<(Arc<Table>, bool)>,
    /// The session in the search for deadlocks, and the engine whose waits are a part of it.
    search: Option<DeadlockSearch>,
}

struct DeadlockSearch {
    me: Arc<LockHolder>,
    instance: Arc<Instance>,
}

impl fmt::Debug for DeadlockSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.me.fmt(f)
    }
}

impl DeadlockSearch {
    /// Waits for a metadata lock. The wait ends with `Fault::Deadlock` if its session is found to wait for itself.
    fn wait(
        &self,
        awaited: Awaited,
        patience: Patience<'_>,
        acquire: impl FnOnce(Patience<'_>) -> Result<()>,
    ) -> Result<()> {
        self.me.set_awaited(Some(awaited));
        let (is_found, is_victim) = (Cell::new(false), Cell::new(false));
        let waits = (&**self.instance.engine().rows(), self.instance.advisory_locks());
        let end_wait = || self.me.set_awaited(None);
        let is_interrupted = || {
            if (patience.is_interrupted)() {
                return true;
            }
            let found = self.instance.lock_holders().search(&self.me, is_found.get(), waits, end_wait);
            is_victim.set(found && is_found.replace(found));
            is_victim.get()
        };
        let done = acquire(Patience { is_interrupted: &is_interrupted, ..patience });
        self.me.set_awaited(None);
        match done {
            Err(Fault::Interrupted) if is_victim.get() => Err(Fault::Deadlock),
            done => done,
        }
    }
}

/// An exclusive metadata lock, released on drop. Empty if an explicit lock of the session covers the table.
pub struct ExclusiveLock(Option<Arc<TableState>>);

impl Drop for ExclusiveLock {
    fn drop(&mut self) {
        if let Some(live) = &self.0 {
            live.metadata_lock.release_exclusive();
        }
    }
}

impl MetadataLocks {
    /// Returns the explicitly locked tables, and whether exclusively.
    pub fn explicit(&self) -> &[(Arc<Table>, bool)] {
        &self.explicit
    }

    /// Returns whether the table is locked explicitly, and `Some(true)` if exclusively.
    pub fn explicit_lock(&self, table: &Table) -> Option<bool> {
        let locked = self.explicit.iter().find(|(locked, _)| locked.id == table.id);
        locked.map(|(_, exclusive)| *exclusive)
    }

    /// Removes explicit locks of tables that the session has dropped.
    pub fn forget_explicit(&mut self, gone: &[Arc<Table>]) {
        self.explicit.retain(|(table, _)| !gone.iter().any(|gone| gone.id == table.id));
    }

    /// Lets the session of a connection take part in the search for deadlocks.
    pub fn join_search(
        &mut self,
        instance: &Arc<Instance>,
        connection: u64,
        activity: &Arc<Activity>,
    ) -> Arc<LockHolder> {
        let me = instance.lock_holders().join(connection, activity.clone());
        self.search = Some(DeadlockSearch { me: me.clone(), instance: instance.clone() });
        me
    }

    fn holds_exclusive(&self, table: &Table) -> bool {
        self.exclusive.iter().any(|held| held.id == table.id)
    }

    /// Takes the exclusive metadata locks of these tables for the transaction, to its end. It keeps what it holds of them
    /// shared.
    pub fn exclude(&mut self, tables: &[Arc<Table>], patience: Patience<'_>) -> Result<()> {
        let until = Instant::now() + patience.wait;
        let mut order: Vec<&Arc<Table>> = tables.iter().collect();
        order.sort_by_key(|table| table.id);
        order.dedup_by_key(|table| table.id);
        for table in order {
            if self.holds_exclusive(table) || self.explicit_lock(table) == Some(true) {
                continue;
            }
            let own = self.shared.iter().filter(|held| held.id == table.id).count() as u64;
            let (live, me) = (&table.live, self.search.as_ref().map_or(0, |search| search.me.id));
            let acquire = |patience: Patience<'_>| {
                live.metadata_lock.acquire_exclusive_beside(own, me, patience.wait, patience.is_interrupted)
            };
            let patience = Patience { wait: until.saturating_duration_since(Instant::now()), ..patience };
            match &self.search {
                Some(search) => search.wait(Awaited::new(table, TableRequest::Exclusive), patience, acquire)?,
                None => acquire(patience)?,
            }
            self.search.iter().for_each(|search| search.me.exclude(table));
            self.exclusive.push(table.clone());
        }
        Ok(())
    }

    /// Returns a point to which exclusive locks of the transaction are released when its changes are undone.
    pub fn exclusive_count(&self) -> usize {
        self.exclusive.len()
    }

    /// Releases the exclusive locks that were taken behind the first `keep`.
    pub fn release_exclusive_from(&mut self, keep: usize) {
        if self.exclusive.len() > keep {
            self.search.iter().for_each(|search| search.me.release_exclusive_from(keep));
        }
        for table in self.exclusive.drain(keep.min(self.exclusive.len())..) {
            table.live.metadata_lock.release_exclusive();
        }
    }

    fn acquire_shared(&self, table: &Arc<Table>, patience: Patience<'_>) -> Result<()> {
        let live = &table.live;
        if live.metadata_lock.try_acquire_shared() {
            return Ok(());
        }
        let acquire =
            |patience: Patience<'_>| live.metadata_lock.acquire_shared(patience.wait, patience.is_interrupted);
        match &self.search {
            Some(search) => search.wait(Awaited::new(table, TableRequest::Shared), patience, acquire),
            None => acquire(patience),
        }
    }

    /// Takes the shared metadata locks of these tables for the transaction. Returns false if a definition is stale; then no additional lock is held.
    pub fn share(&mut self, tables: &[Arc<Table>], patience: Patience<'_>) -> Result<bool> {
        let before = self.shared.len();
        for table in tables {
            let is_current = || table.live.version.load(Ordering::Acquire) == table.version;
            let is_held = self.shared.iter().chain(&self.exclusive).any(|held| held.id == table.id);
            if is_held || self.explicit_lock(table).is_some() {
                if is_current() {
                    continue;
                }
                self.release_from(before);
                return Ok(false);
            }
            if let Err(fault) = self.acquire_shared(table, patience) {
                self.release_from(before);
                return Err(fault);
            }
            self.search.iter().for_each(|search| search.me.share(table));
            self.shared.push(table.clone());
            // The version cannot change any more.
            if !is_current() {
                self.release_from(before);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn release_from(&mut self, keep: usize) {
        if self.shared.len() > keep {
            self.search.iter().for_each(|search| search.me.release_from(keep));
        }
        for table in self.shared.drain(keep..) {
            table.live.metadata_lock.release_shared();
        }
    }

    /// Takes the table locks of these tables in a mode for the transaction. It holds their metadata locks shared.
    pub fn lock(&mut self, tables: &[Arc<Table>], mode: TableMode, patience: Patience<'_>) -> Result<()> {
        for table in tables {
            let own = self.modes_of(table);
            if own.has(mode) || self.explicit_lock(table) == Some(true) {
                continue;
            }
            let claim = TableClaim { owner: self.search.as_ref().map_or(0, |search| search.me.id), own };
            let lock = &table.live.table_lock;
            let acquire = |patience: Patience<'_>| lock.acquire(mode, claim, patience);
            match &self.search {
                _ if lock.try_acquire(mode) => {}
                Some(search) => search.wait(Awaited::new(table, TableRequest::Mode(mode)), patience, acquire)?,
                None => acquire(patience)?,
            }
            self.search.iter().for_each(|search| search.me.lock(table, mode));
            self.modes.push((table.clone(), mode));
        }
        Ok(())
    }

    fn modes_of(&self, table: &Table) -> TableModes {
        let mut own = TableModes::default();
        self.modes.iter().filter(|(held, _)| held.id == table.id).for_each(|(_, mode)| own.add(*mode));
        own
    }

    /// Returns a point to which table locks of the transaction are given back.
    pub fn mode_count(&self) -> usize {
        self.modes.len()
    }

    /// Gives back the table locks that were taken behind the first `keep`. The metadata locks stay.
    pub fn unlock_from(&mut self, keep: usize) {
        if self.modes.len() <= keep {
            return;
        }
        self.search.iter().for_each(|search| search.me.unlock_from(keep));
        for (table, mode) in self.modes.drain(keep..) {
            table.live.table_lock.release(mode);
        }
    }

    /// Ends the transaction's part: releases its metadata locks and its table locks.
    pub fn release(&mut self) {
        self.unlock_from(0);
        self.release_exclusive_from(0);
        self.release_from(0);
    }

    /// Takes exclusive metadata locks for DDL. None is held while another is waited for longer than a step, since its holder may want it next. No table may be read-locked by the session itself.
    pub fn exclusive(&self, tables: &[Arc<Table>], patience: Patience<'_>) -> Result<Vec<ExclusiveLock>> {
        let until = Instant::now() + patience.wait;
        let mut order: Vec<&Arc<Table>> = tables.iter().collect();
        order.sort_by_key(|table| table.id);
        order.dedup_by_key(|table| table.id);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut locks = Vec::new();
            let mut busy = None;
            for (nth, table) in order.iter().enumerate() {
                let wait = if nth == 0 { left } else { left.min(STEP) };
                match self.exclusive_one(table, Patience { wait, ..patience }) {
                    Ok(lock) => locks.push(lock),
                    Err(Fault::LockTimeout) if nth > 0 && left > STEP => {
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

    fn exclusive_one(&self, table: &Table, patience: Patience<'_>) -> Result<ExclusiveLock> {
        let explicit = self.explicit_lock(table);
        assert!(explicit != Some(false), "DDL of a table that the session has locked for reading");
        if explicit == Some(true) {
            return Ok(ExclusiveLock(None));
        }
        table.live.metadata_lock.acquire_exclusive(patience.wait, patience.is_interrupted)?;
        Ok(ExclusiveLock(Some(table.live.clone())))
    }

    /// Takes explicit locks on all of these tables or none; `true` means exclusively. The session holds no explicit lock.
    pub fn lock_tables(&mut self, mut tables: Vec<(Arc<Table>, bool)>, patience: Patience<'_>) -> Result<()> {
        assert!(self.explicit.is_empty());
        tables.sort_by_key(|(table, exclusive)| (table.id, !exclusive));
        tables.dedup_by_key(|(table, _)| table.id);
        let until = Instant::now() + patience.wait;
        loop {
            match self.try_lock_tables(&tables, Patience { wait: STEP, ..patience }) {
                Err(Fault::LockTimeout) if Instant::now() < until => {}
                done => return done,
            }
        }
    }

    fn try_lock_tables(&mut self, tables: &[(Arc<Table>, bool)], patience: Patience<'_>) -> Result<()> {
        let Patience { wait, is_interrupted } = patience;
        for (table, exclusive) in tables {
            let live = &table.live;
            let locked = match exclusive {
                true => live.metadata_lock.acquire_exclusive(wait, is_interrupted),
                false => live.metadata_lock.acquire_shared(wait, is_interrupted).and_then(|()| {
                    let taken = live.table_lock.acquire(TableMode::Share, TableClaim::default(), patience);
                    taken.inspect_err(|_| live.metadata_lock.release_shared())
                }),
            };
            if let Err(fault) = locked {
                self.unlock_tables(false);
                return Err(fault);
            }
            self.explicit.push((table.clone(), *exclusive));
        }
        Ok(())
    }

    /// Releases the explicit locks. With `keeps_shared` the transaction takes over the shared metadata locks of read-locked tables, since it may have read them.
    pub fn unlock_tables(&mut self, keeps_shared: bool) {
        for (table, exclusive) in std::mem::take(&mut self.explicit) {
            if exclusive {
                table.live.metadata_lock.release_exclusive();
                continue;
            }
            table.live.table_lock.release(TableMode::Share);
            match keeps_shared {
                true => self.shared.push(table),
                false => table.live.metadata_lock.release_shared(),
            }
        }
    }
}
