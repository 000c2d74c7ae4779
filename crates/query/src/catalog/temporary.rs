//! Temporary tables: definitions that one session sees, layered over the shared ones.
//!
//! Their rows lie in ordinary maps, so transactions, savepoints, indexes and recovery treat them alike. The catalog
//! records only their maps, from the transaction that creates them to the one that drops them, and a start after a
//! crash drops the maps that it finds. QU-12: a map of a temporary table has its record in the catalog, or does not
//! exist.

use std::ops::Bound;
use std::sync::Arc;

use datum::Result;
use engine::rows::{CATALOG, Isolation, MapId, RowBatch};

use crate::catalog::record::temporary_key;
use crate::catalog::sequence::Sequence;
use crate::catalog::table::Table;
use crate::catalog::temporary_maps::{drop_left, drop_maps, maps_as_bytes, maps_of};
use crate::catalog::{Catalog, Snapshot};
use crate::engine_fault::engine_fault;

impl Catalog {
    /// Drops the maps of temporary tables from before a crash, unless a transaction in them is still being rolled back.
    pub fn drop_left(&self) -> Result<()> {
        let mut left = self.left.lock();
        *left = drop_left(&self.engine, std::mem::take(&mut *left))?;
        Ok(())
    }

    /// Returns the maps of all sessions' temporary tables.
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

    /// Drops a temporary table that no transaction uses any more.
    pub fn end_temporary(&self, table: &Table) -> Result<()> {
        let mut txn = self.engine.rows().begin(Isolation::ReadCommitted);
        drop_maps(&mut txn, &maps_as_bytes(table))?;
        txn.delete(CATALOG, &temporary_key(table.id)).map_err(engine_fault)?;
        txn.commit().map_err(engine_fault)?;
        Ok(())
    }
}

impl Snapshot {
    /// Returns these definitions with temporary tables and sequences layered over them, which hide those of the same
    /// names, and tables views.
    pub fn with_temporary(self: &Arc<Snapshot>, tables: &[Arc<Table>], sequences: &[Arc<Sequence>]) -> Arc<Snapshot> {
        if tables.is_empty() && sequences.is_empty() {
            return self.clone();
        }
        let mut over = Snapshot::clone(self);
        over.below = Some(self.clone());
        for table in tables {
            // A temporary table survives the drop of its database, but can no longer be named.
            let Some(schema) = over.schemas.get_mut(&table.schema) else { continue };
            let schema = Arc::make_mut(schema);
            schema.views.remove(&table.name);
            schema.tables.insert(table.name.clone(), table.clone());
        }
        for sequence in sequences {
            let Some(schema) = over.schemas.get_mut(&sequence.schema) else { continue };
            Arc::make_mut(schema).sequences.insert(sequence.name.clone(), sequence.clone());
        }
        Arc::new(over)
    }

    /// Returns the shared definitions.
    pub fn shared(&self) -> &Snapshot {
        self.below.as_deref().unwrap_or(self)
    }

    pub fn temporary_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let tables = self.schemas.values().flat_map(|schema| schema.tables.values());
        tables.filter(|table| table.temporary)
    }

    pub fn temporary_sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        let sequences = self.schemas.values().flat_map(|schema| schema.sequences.values());
        sequences.filter(|sequence| sequence.temporary)
    }

    pub fn is_temporary(&self, schema: &str, name: &str) -> bool {
        let table = self.schemas.get(schema).and_then(|schema| schema.tables.get(name));
        table.is_some_and(|table| table.temporary)
    }
}
