//! Temporary tables, views and sequences: visible to one session, where they hide other objects of the same name.
//!
//! QU-69: a dialect that has a schema for them makes it with the session's first temporary object (`need_schema`); the others lay them among the shared objects of their schemas.
//! The session's catalog snapshot overlays them on the shared definitions (`Snapshot::with_temporary`), so a binder treats them alike. QU-31: a table that is dropped while a transaction may have changed
//! its rows loses its name at once, and its maps when the transaction has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datum::Result;

use crate::catalog::object_id::Maker;
use crate::catalog::schema::Schema;
use crate::catalog::table::{Table, TableId};
use crate::catalog::temporary::TemporaryObjects;
use crate::catalog::{Catalog, Snapshot};

/// The fate of a temporary table at the commit of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtCommit {
    Empty,
    Drop,
}

/// The temporary objects of a session at a point of its transaction.
#[derive(Clone, Debug, Default)]
pub struct TemporaryPoint {
    objects: TemporaryObjects,
    at_commit: BTreeMap<TableId, AtCommit>,
}

/// The temporary objects of one session.
#[derive(Debug, Default)]
pub struct TemporaryTables {
    objects: TemporaryObjects,
    /// Tables that do not simply stay at a commit.
    at_commit: BTreeMap<TableId, AtCommit>,
    /// The objects before the first change of the open transaction, if that undoes changes of them.
    before: Option<TemporaryPoint>,
    /// Dropped tables whose maps wait for the end of the transaction (QU-31).
    dropped: Vec<Arc<Table>>,
}

impl TemporaryTables {
    /// Returns whether the session has no temporary objects. It may have their schema.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.objects.tables()
    }

    /// Returns the session's schema of temporary objects, once it has one.
    pub fn schema(&self) -> Option<&Arc<Schema>> {
        self.objects.schema.as_ref()
    }

    /// Gives the session a schema for its temporary objects, unless it has one (QU-69).
    pub fn need_schema(&mut self, name: &str, maker: Maker, catalog: &Catalog) {
        let objects = &mut self.objects;
        objects.schema.get_or_insert_with(|| Arc::new(Schema::temporary(name, maker, catalog.new_temporary_id())));
    }

    /// Returns the definitions with the temporary objects laid over them.
    pub fn overlay(&self, shared: &Arc<Snapshot>) -> Arc<Snapshot> {
        shared.with_temporary(&self.objects)
    }

    /// Adopts the temporary objects of definitions that DDL has changed.
    pub fn adopt(&mut self, changed: &Snapshot) {
        self.objects = changed.temporary_objects();
        if !self.at_commit.is_empty() {
            let known: BTreeSet<TableId> = self.objects.tables().map(|table| table.id).collect();
            self.at_commit.retain(|id, _| known.contains(id));
        }
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
        TemporaryPoint { objects: self.objects.clone(), at_commit: self.at_commit.clone() }
    }

    /// Goes back to the objects from a point of the transaction, whose records and rows have been undone (QU-46).
    pub fn undo_to(&mut self, point: &TemporaryPoint) {
        for table in self.objects.tables() {
            table.live.put_in_force(u64::MAX);
        }
        for table in point.objects.tables() {
            table.live.put_in_force(table.version);
            *table.live.row_id.lock() = 0;
        }
        let TemporaryPoint { objects, at_commit } = point.clone();
        (self.objects, self.at_commit) = (objects, at_commit);
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
        if self.at_commit.is_empty() {
            return Vec::new();
        }
        self.tables().filter(is_due).cloned().collect()
    }

    /// Drops these tables' names and invalidates the plans that use them. `free_dropped` frees the maps.
    pub fn drop_tables(&mut self, gone: &[Arc<Table>]) {
        let ids: BTreeSet<TableId> = gone.iter().map(|table| table.id).collect();
        self.objects.remove_tables(|id| ids.contains(&id));
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
