//! Temporary tables: visible to one session, where they hide other tables and views of the same name.
//!
//! The session's catalog snapshot overlays them on the shared definitions (`Snapshot::with_temporary`), so a binder treats them alike. QU-31: a table that is dropped while a transaction may have changed
//! its rows loses its name at once, and its maps when the transaction has ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use datum::Result;

use crate::catalog::sequence::Sequence;
use crate::catalog::table::{Table, TableId};
use crate::catalog::{Catalog, Snapshot};

/// The fate of a temporary table at the commit of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtCommit {
    Empty,
    Drop,
}

/// The temporary tables of a session at a point of its transaction.
#[derive(Clone, Debug, Default)]
pub struct TemporaryPoint {
    tables: Vec<Arc<Table>>,
    sequences: Vec<Arc<Sequence>>,
    at_commit: BTreeMap<TableId, AtCommit>,
}

/// The temporary tables and sequences of one session.
#[derive(Debug, Default)]
pub struct TemporaryTables {
    tables: Vec<Arc<Table>>,
    sequences: Vec<Arc<Sequence>>,
    /// Tables that do not simply stay at a commit.
    at_commit: BTreeMap<TableId, AtCommit>,
    /// The tables before the first change of the open transaction, if that undoes changes of them.
    before: Option<TemporaryPoint>,
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
        let tables = &self.tables;
        self.at_commit.retain(|id, _| tables.iter().any(|table| table.id == *id));
    }

    /// Notes the tables as they are before a change in the session's transaction.
    pub fn begin_change(&mut self) {
        if self.before.is_none() {
            self.before = Some(self.point());
        }
    }

    /// Returns whether the open transaction has changed temporary tables, and undoes that when it is undone.
    pub fn is_transactional(&self) -> bool {
        self.before.is_some()
    }

    /// Goes back to the tables from before the transaction's first change of them.
    pub fn undo_all(&mut self) {
        if let Some(before) = self.before.take() {
            self.undo_to(&before);
        }
    }

    pub fn point(&self) -> TemporaryPoint {
        let TemporaryTables { tables, sequences, at_commit, .. } = self;
        TemporaryPoint { tables: tables.clone(), sequences: sequences.clone(), at_commit: at_commit.clone() }
    }

    /// Goes back to the tables from a point of the transaction, whose records and rows have been undone (QU-46).
    pub fn undo_to(&mut self, point: &TemporaryPoint) {
        for table in &self.tables {
            table.live.put_in_force(u64::MAX);
        }
        for table in &point.tables {
            table.live.put_in_force(table.version);
            *table.live.row_id.lock() = 0;
        }
        let TemporaryPoint { tables, sequences, at_commit } = point.clone();
        (self.tables, self.sequences, self.at_commit) = (tables, sequences, at_commit);
    }

    /// Ends the transaction. Returns whether changes of the tables were undone.
    pub fn end_changes(&mut self, is_committed: bool) -> bool {
        let Some(before) = self.before.take() else { return false };
        if !is_committed {
            self.undo_to(&before);
        }
        !is_committed
    }

    /// Sets what becomes of a table at each commit.
    pub fn set_at_commit(&mut self, table: TableId, what: AtCommit) {
        self.at_commit.insert(table, what);
    }

    /// Returns the tables that a commit empties or drops.
    pub fn due_at_commit(&self, what: AtCommit) -> Vec<Arc<Table>> {
        let is_due = |table: &&Arc<Table>| self.at_commit.get(&table.id) == Some(&what);
        self.tables.iter().filter(is_due).cloned().collect()
    }

    /// Drops these tables' names and invalidates the plans that use them. `free_dropped` frees the maps.
    pub fn drop_tables(&mut self, gone: &[Arc<Table>]) {
        let is_gone = |id| gone.iter().any(|table| table.id == id);
        self.tables.retain(|table| !is_gone(table.id));
        self.sequences.retain(|sequence| !sequence.owned_by.is_some_and(is_gone));
        for table in gone {
            table.live.put_in_force(u64::MAX);
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
