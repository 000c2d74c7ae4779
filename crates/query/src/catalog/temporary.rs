//! Temporary tables: definitions that one session sees, laid over those that all see.
//!
//! Their rows are in maps like any other, so transactions, savepoints, indexes and recovery know nothing of them. What the catalog keeps is only which maps they are, from the transaction that makes
//! them to the one that drops them: a start after a crash drops what it finds. QU-12: a map of a temporary table has its record in the catalog, or does not exist.

use std::ops::Bound;
use std::sync::Arc;

use datum::Result;
use engine::rows::{CATALOG, Isolation, MapId, RowBatch};

use crate::catalog::record::temporary_key;
use crate::catalog::table::Table;
use crate::catalog::temporary_maps::{drop_left, drop_maps, maps_as_bytes, maps_of};
use crate::catalog::{Catalog, Snapshot, Writing};
use crate::engine_fault::engine_fault;

impl Catalog {
    /// Begins a change of temporary tables, given what their session sees.
    pub fn write_temporary(&self, seen: &Snapshot) -> Writing<'_> {
        let txn = self.engine.rows().begin(Isolation::ReadCommitted);
        Writing { catalog: self, next_id: None, snapshot: seen.clone(), txn, temporary: true }
    }

    /// Drops what a crash has left of temporary tables, as far as no transaction is rolled back in it any more.
    pub fn drop_left(&self) -> Result<()> {
        let mut left = self.left.lock();
        *left = drop_left(&self.engine, std::mem::take(&mut *left))?;
        Ok(())
    }

    /// The maps of all sessions' temporary tables.
    pub fn temporary_maps(&self) -> Result<Vec<MapId>> {
        let mut txn = self.engine.rows().begin(Isolation::ReadCommitted);
        let mut cursor =
            txn.scan(CATALOG, Bound::Included(b"p"), Bound::Excluded(b"q"), false).map_err(engine_fault)?;
        let (mut batch, mut found) = (RowBatch::new(), Vec::new());
        while cursor.next(&mut txn, &mut batch).map_err(engine_fault)? {
            for (_, maps) in batch.iter() {
                found.extend(maps_of(maps)?);
            }
        }
        txn.rollback();
        Ok(found)
    }

    /// Ends a temporary table that no transaction uses any more.
    pub fn end_temporary(&self, table: &Table) -> Result<()> {
        let mut txn = self.engine.rows().begin(Isolation::ReadCommitted);
        drop_maps(&mut txn, &maps_as_bytes(table))?;
        txn.delete(CATALOG, &temporary_key(table.id)).map_err(engine_fault)?;
        txn.commit().map_err(engine_fault)?;
        Ok(())
    }
}

impl Snapshot {
    /// These definitions with temporary tables over them. Whatever has the name of one is not to be seen.
    pub fn with_temporary(self: &Arc<Snapshot>, tables: &[Arc<Table>]) -> Arc<Snapshot> {
        if tables.is_empty() {
            return self.clone();
        }
        let mut over = Snapshot::clone(self);
        over.below = Some(self.clone());
        for table in tables {
            // A database that was dropped meanwhile takes none of them with it, but nobody gets there any more.
            let Some(schema) = over.schemas.get_mut(&table.schema) else { continue };
            let schema = Arc::make_mut(schema);
            schema.views.remove(&table.name);
            schema.tables.insert(table.name.clone(), table.clone());
        }
        Arc::new(over)
    }

    /// What all sessions see.
    pub fn shared(&self) -> &Snapshot {
        self.below.as_deref().unwrap_or(self)
    }

    pub fn temporary_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let tables = self.schemas.values().flat_map(|schema| schema.tables.values());
        tables.filter(|table| table.temporary)
    }

    pub fn is_temporary(&self, schema: &str, name: &str) -> bool {
        let table = self.schemas.get(schema).and_then(|schema| schema.tables.get(name));
        table.is_some_and(|table| table.temporary)
    }
}
