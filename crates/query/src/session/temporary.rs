//! Temporary tables: visible to one session, where they hide other tables and views of the same name.
//!
//! The session's catalog snapshot overlays them on the shared definitions (`Snapshot::with_temporary`), so a binder treats them alike. QU-31: a table that is dropped while a transaction may have changed
//! its rows loses its name at once, and its maps when the transaction has ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datum::Result;

use crate::catalog::sequence::Sequence;
use crate::catalog::table::Table;
use crate::catalog::{Catalog, Snapshot};

/// The temporary tables and sequences of one session.
#[derive(Debug, Default)]
pub struct TemporaryTables {
    tables: Vec<Arc<Table>>,
    sequences: Vec<Arc<Sequence>>,
    /// Dropped tables whose maps wait for the end of the transaction (QU-31).
    dropped: Vec<Arc<Table>>,
}

impl TemporaryTables {
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.sequences.is_empty()
    }

    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// Returns the definitions with the temporary tables laid over them.
    pub fn overlay(&self, shared: &Arc<Snapshot>) -> Arc<Snapshot> {
        shared.with_temporary(&self.tables, &self.sequences)
    }

    /// Adopts the temporary tables of definitions that DDL has changed.
    pub fn adopt(&mut self, changed: &Snapshot) {
        self.tables = changed.temporary_tables().cloned().collect();
        self.sequences = changed.temporary_sequences().cloned().collect();
    }

    /// Drops these tables' names and invalidates the plans that use them. `free_dropped` frees the maps.
    pub fn drop_tables(&mut self, gone: &[Arc<Table>]) {
        let is_gone = |id| gone.iter().any(|table| table.id == id);
        self.tables.retain(|table| !is_gone(table.id));
        self.sequences.retain(|sequence| !sequence.owned_by.is_some_and(is_gone));
        for table in gone {
            table.live.version.store(u64::MAX, Ordering::Release);
        }
        self.dropped.extend(gone.iter().cloned());
    }

    /// Frees the maps of dropped tables. No transaction of the session is open. After an error the next start of the server frees the others.
    pub fn free_dropped(&mut self, catalog: &Catalog) -> Result<()> {
        while let Some(table) = self.dropped.pop() {
            catalog.end_temporary(&table)?;
        }
        Ok(())
    }
}
