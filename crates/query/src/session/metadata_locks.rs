//! The metadata locks of one session: those of its transaction, and those of its explicit table locks.
//!
//! A transaction holds the shared metadata lock of each table that it uses to its end (QU-10), and is registered as a writer of those that it changes (QU-11). An explicit lock outlives transactions: a read
//! lock is a shared metadata lock with a table read lock, a write lock an exclusive metadata lock. Statements that need several exclusive locks hold none while they wait for another for long, so two of
//! them never deadlock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use datum::{Fault, Result};

use crate::catalog::table::Table;
use crate::catalog::table_state::TableState;

pub use crate::catalog::table_read_lock::Patience;

/// The wait for one table before the locks taken so far are released and the attempt starts over.
const STEP: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub struct MetadataLocks {
    /// Tables whose shared metadata locks the transaction holds.
    shared: Vec<Arc<Table>>,
    /// Tables that the transaction writes.
    written: Vec<Arc<Table>>,
    /// Explicitly locked tables, and whether exclusively.
    explicit: Vec<(Arc<Table>, bool)>,
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

    /// Takes the shared metadata locks of these tables for the transaction. Returns false if a definition is stale; then no additional lock is held.
    pub fn share(&mut self, tables: &[Arc<Table>], patience: Patience<'_>) -> Result<bool> {
        let before = self.shared.len();
        for table in tables {
            let is_current = || table.live.version.load(Ordering::Acquire) == table.version;
            if self.shared.iter().any(|held| held.id == table.id) || self.explicit_lock(table).is_some() {
                if is_current() {
                    continue;
                }
                self.release_from(before);
                return Ok(false);
            }
            if let Err(fault) = table.live.metadata_lock.acquire_shared(patience.wait, patience.is_interrupted) {
                self.release_from(before);
                return Err(fault);
            }
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
        for table in self.shared.drain(keep..) {
            table.live.metadata_lock.release_shared();
        }
    }

    /// Registers the transaction as a writer of these tables, once each. Waits for table read locks.
    pub fn write(&mut self, tables: &[Arc<Table>], patience: Patience<'_>) -> Result<()> {
        for table in tables {
            let is_written = self.written.iter().any(|written| written.id == table.id);
            if is_written || self.explicit_lock(table) == Some(true) {
                continue;
            }
            table.live.read_lock.admit_writer(patience.wait, patience.is_interrupted)?;
            self.written.push(table.clone());
        }
        Ok(())
    }

    /// Ends the transaction's part: releases its metadata locks and its registrations as a writer.
    pub fn release(&mut self) {
        for table in self.written.drain(..) {
            table.live.read_lock.release_writer();
        }
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
                    live.read_lock.acquire(wait, is_interrupted).inspect_err(|_| live.metadata_lock.release_shared())
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
            table.live.read_lock.release();
            match keeps_shared {
                true => self.shared.push(table),
                false => table.live.metadata_lock.release_shared(),
            }
        }
    }
}
