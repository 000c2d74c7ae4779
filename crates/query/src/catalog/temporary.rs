//! Temporary tables: definitions that one session sees, layered over the shared ones.
//!
//! Their rows lie in ordinary maps, so transactions, savepoints, indexes and recovery treat them alike. The catalog
//! records only their maps, from the transaction that creates them to the one that drops them, and a start after a
//! crash drops the maps that it finds. QU-12: a map of a temporary table has its record in the catalog, or does not
//! exist.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datum::Result;
use engine::rows::{CATALOG, Isolation, MapId, RowBatch};

use crate::catalog::foreign::add_children;
use crate::catalog::record::temporary_key;
use crate::catalog::schema::Schema;
use crate::catalog::sequence::Sequence;
use crate::catalog::table::{Table, TableId};
use crate::catalog::temporary_maps::{drop_left, drop_maps, maps_as_bytes, maps_of};
use crate::catalog::view::View;
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

    /// Returns a number for a temporary object.
    pub fn new_temporary_id(&self) -> TableId {
        self.next_temporary.fetch_add(1, Ordering::Relaxed)
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

/// The temporary objects of a session. Those of a dialect without a schema for them hide shared ones of their names.
#[derive(Clone, Debug, Default)]
pub struct TemporaryObjects {
    /// The session's schema of temporary objects, with these.
    pub schema: Option<Arc<Schema>>,
    /// Tables and sequences that lie among the shared ones.
    pub tables: Vec<Arc<Table>>,
    pub sequences: Vec<Arc<Sequence>>,
}

impl TemporaryObjects {
    /// Returns whether there are no objects. The schema may be there.
    pub fn is_empty(&self) -> bool {
        let is_empty =
            |schema: &Arc<Schema>| schema.tables.is_empty() && schema.views.is_empty() && schema.sequences.is_empty();
        self.tables.is_empty() && self.sequences.is_empty() && self.schema.as_ref().is_none_or(is_empty)
    }

    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.iter().chain(self.schema.iter().flat_map(|schema| schema.tables.values()))
    }

    /// Removes tables, with the sequences that they own.
    pub fn remove_tables(&mut self, is_gone: impl Fn(TableId) -> bool) {
        let owner_is_gone = |sequence: &Sequence| sequence.owned_by.is_some_and(&is_gone);
        self.tables.retain(|table| !is_gone(table.id));
        self.sequences.retain(|sequence| !owner_is_gone(sequence));
        if let Some(schema) = &mut self.schema {
            let schema = Arc::make_mut(schema);
            schema.tables.retain(|_, table| !is_gone(table.id));
            schema.sequences.retain(|_, sequence| !owner_is_gone(sequence));
        }
    }
}

impl Snapshot {
    /// Returns these definitions with temporary objects layered over them. Tables and sequences beside their schema hide
    /// those of the same names, and tables views.
    pub fn with_temporary(self: &Arc<Snapshot>, temporary: &TemporaryObjects) -> Arc<Snapshot> {
        let TemporaryObjects { schema, tables, sequences } = temporary;
        if schema.is_none() && tables.is_empty() && sequences.is_empty() {
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
        if let Some(schema) = schema {
            over.temporary_schema = Some(schema.name.as_str().into());
            over.schemas.insert(schema.name.clone(), schema.clone());
            if schema.tables.values().any(|table| !table.foreign_keys.is_empty()) {
                add_children(Arc::make_mut(&mut over.children), schema.tables.values());
            }
        }
        Arc::new(over)
    }

    /// Returns the shared definitions.
    pub fn shared(&self) -> &Snapshot {
        self.below.as_deref().unwrap_or(self)
    }

    /// Returns the schema of the session's temporary objects.
    pub fn temporary(&self) -> Option<&Arc<Schema>> {
        self.schemas.get(&**self.temporary_schema.as_ref()?)
    }

    /// Returns the definitions that a view sees: the shared ones, and the temporary relations that a temporary view reads.
    pub fn seen_by_view(self: &Arc<Snapshot>, view: &View) -> Arc<Snapshot> {
        let Some(below) = &self.below else { return self.clone() };
        let Some(schema) = self.temporary().filter(|_| view.temporary) else { return below.clone() };
        let reads = |id: TableId| view.reads.contains(&id);
        let mut seen = Schema::clone(schema);
        seen.tables.retain(|_, table| reads(table.id));
        seen.views.retain(|_, view| reads(view.id));
        seen.sequences.retain(|_, sequence| reads(sequence.id));
        below.with_temporary(&TemporaryObjects { schema: Some(Arc::new(seen)), ..TemporaryObjects::default() })
    }

    /// Returns the temporary objects of these definitions.
    pub fn temporary_objects(&self) -> TemporaryObjects {
        if let Some(schema) = self.temporary() {
            return TemporaryObjects { schema: Some(schema.clone()), ..TemporaryObjects::default() };
        }
        let sequences = self.schemas.values().flat_map(|schema| schema.sequences.values());
        TemporaryObjects {
            schema: None,
            tables: self.temporary_tables().cloned().collect(),
            sequences: sequences.filter(|sequence| sequence.temporary).cloned().collect(),
        }
    }

    pub fn temporary_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let own = self.temporary();
        let shared = own.is_none().then(|| self.schemas.values()).into_iter().flatten();
        let tables = own.into_iter().chain(shared).flat_map(|schema| schema.tables.values());
        tables.filter(|table| table.temporary)
    }

    pub fn is_temporary(&self, schema: &str, name: &str) -> bool {
        let table = self.schemas.get(schema).and_then(|schema| schema.tables.get(name));
        table.is_some_and(|table| table.temporary)
    }
}
