//! The catalog: definitions of schemas, tables, views and sequences, as records in the engine's catalog map and as a copy in
//! memory that statements read.
//!
//! A statement reads one `Snapshot`. DDL builds the next one and publishes it after its transaction has committed. One
//! DDL statement writes at a time (`writing`).

pub mod codec;
pub mod decode;
pub mod foreign;
pub mod foreign_graph;
pub mod foreign_key;
pub mod generated;
mod load;
pub mod metadata_lock;
pub mod object_id;
pub mod objects;
mod persisted;
pub mod record;
pub mod sampling;
pub mod schema;
pub mod schema_name;
pub mod sequence;
mod sequence_change;
pub mod snapshot;
pub mod statistics;
pub mod statistics_record;
pub mod table;
pub mod table_read_lock;
pub mod table_state;
mod temporary;
mod temporary_maps;
#[cfg(test)]
mod tests;
pub mod timestamps;
pub mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datum::{Fault, Result};
use engine::Engine;
use engine::rows::{CATALOG, Isolation, Transaction};
use stdx::sync::{Mutex, MutexGuard, RwLock};

use crate::catalog::codec::In;
use crate::catalog::load::Loaded;
use crate::catalog::object_id::{Maker, UNNUMBERED};
use crate::catalog::objects::Objects;
use crate::catalog::record::{
    PIECE, auto_key, forget_pieces, put, put_table_record, schema_key, statistics_key, temporary_key, unchecked_key,
};
use crate::catalog::schema::encode_schema;
use crate::catalog::sequence::HeldCounter;
use crate::catalog::statistics::Statistics;
use crate::catalog::statistics_record::encode_statistics;
use crate::catalog::table::{Table, TableId};
use crate::catalog::view::{View, encode_view, view_key};
use crate::engine_fault::engine_fault;
use crate::types::Collation;

pub use crate::catalog::schema::Schema;
pub use crate::catalog::snapshot::Snapshot;

pub struct Catalog {
    engine: Arc<Engine>,
    current: RwLock<Arc<Snapshot>>,
    version: AtomicU64,
    writing: Mutex<u64>,
    /// The next number of a temporary table; they have numbers of their own.
    next_temporary: AtomicU64,
    /// Temporary tables from before the last start that could not be dropped yet.
    left: Mutex<temporary_maps::Left>,
}

impl Catalog {
    /// Loads the definitions from the records.
    pub fn open(engine: Arc<Engine>, system: &'static [&'static str]) -> Result<Catalog> {
        let Loaded { snapshot, next_id, left } = load::load(&engine, system)?;
        let left = temporary_maps::drop_left(&engine, left)?;
        Ok(Catalog {
            engine,
            version: AtomicU64::new(snapshot.version),
            current: RwLock::new(Arc::new(snapshot)),
            writing: Mutex::new(next_id),
            next_temporary: AtomicU64::new(temporary_maps::first_number(&left)?),
            left: Mutex::new(left),
        })
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.read().clone()
    }

    /// Begins a change of definitions. The caller holds the tables' metadata locks exclusively.
    pub fn write(&self) -> Result<Writing<'_>> {
        let next_id = self.writing.lock();
        let snapshot = Snapshot::clone(&self.snapshot());
        let txn = self.engine.rows().begin(Isolation::ReadCommitted);
        Ok(Writing { catalog: self, next_id: Some(next_id), snapshot, txn, counters: Vec::new(), temporary: false })
    }

    /// Returns the bound below which AUTO_INCREMENT numbers of a table are reserved.
    pub fn auto_reserved(&self, id: TableId) -> Result<u64> {
        if id >= temporary_maps::FIRST {
            return Ok(0);
        }
        let mut txn = self.engine.rows().begin(Isolation::ReadCommitted);
        let mut out = Vec::new();
        let present = txn.get(CATALOG, &auto_key(id), &mut out).map_err(engine_fault)?;
        txn.rollback();
        if present { In(&out).number() } else { Ok(0) }
    }

    /// Records, in a transaction of its own, that foreign keys of the table are not checked. Called before the first
    /// unchecked row (QU-7).
    pub fn note_unchecked(&self, table: &Table) -> Result<()> {
        if table.live.unchecked.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut txn = self.engine.rows().begin(Isolation::ReadCommitted);
        put(&mut txn, &unchecked_key(table.id), &[])?;
        txn.commit().map_err(engine_fault)?;
        table.live.unchecked.store(true, Ordering::Release);
        Ok(())
    }

    /// Stores the statistics of a table in a transaction of its own. Returns its durability LSN.
    pub fn keep_statistics(&self, table: &Table, statistics: &Statistics) -> Result<engine::Lsn> {
        let mut txn = self.engine.rows().begin(Isolation::ReadCommitted);
        let bytes = encode_statistics(statistics, table)?;
        let mut pieces = 0;
        for bytes in bytes.chunks(PIECE) {
            put(&mut txn, &statistics_key(table.id, pieces), bytes)?;
            pieces += 1;
        }
        while txn.delete(CATALOG, &statistics_key(table.id, pieces)).map_err(engine_fault)? {
            pieces += 1;
        }
        txn.commit().map_err(engine_fault)
    }

    /// Reserves the numbers below `below` in a transaction of its own. A transaction that uses one of them commits
    /// later, so its durability LSN covers the reservation. Numbers of temporary tables are not recorded.
    pub fn reserve_auto(&self, id: TableId, below: u64) -> Result<()> {
        if id >= temporary_maps::FIRST {
            return Ok(());
        }
        let mut txn = self.engine.rows().begin(Isolation::ReadCommitted);
        put(&mut txn, &auto_key(id), &below.to_le_bytes())?;
        txn.commit().map_err(engine_fault)?;
        Ok(())
    }
}

/// A change of definitions: one transaction, and the snapshot that results from it. Dropping it undoes the change.
pub struct Writing<'c> {
    catalog: &'c Catalog,
    pub snapshot: Snapshot,
    pub txn: Transaction,
    /// Counters of changed and dropped sequences. Behind the transaction, so that they are released when it is undone.
    counters: Vec<HeldCounter>,
    /// Held while shared definitions are changed. Behind the counters, which one change at a time holds.
    next_id: Option<MutexGuard<'c, u64>>,
    /// Only temporary tables change, so nothing is published.
    pub temporary: bool,
}

impl Writing<'_> {
    pub fn new_id(&mut self) -> TableId {
        match &mut self.next_id {
            None => self.catalog.next_temporary.fetch_add(1, Ordering::Relaxed),
            Some(next) => {
                **next += 1;
                **next - 1
            }
        }
    }

    /// Stores a schema, new or with another collation. The maker is that of a new one.
    pub fn put_schema(&mut self, name: &str, collation: Collation, maker: Maker) -> Result<()> {
        let old = self.snapshot.schemas.get(name).map(|old| Schema::clone(old));
        let mut schema = old.unwrap_or_else(|| Schema { maker, ..Schema::new(name) });
        schema.collation = collation;
        if schema.id == UNNUMBERED {
            schema.id = self.new_id();
        }
        put(&mut self.txn, &schema_key(name), &encode_schema(&schema))?;
        self.snapshot.schemas.insert(name.to_owned(), Arc::new(schema));
        self.snapshot.objects = Objects::default();
        Ok(())
    }

    /// Drops a schema whose tables, views and sequences have been dropped.
    pub fn drop_schema(&mut self, name: &str) -> Result<()> {
        self.txn.delete(CATALOG, &schema_key(name)).map_err(engine_fault)?;
        self.snapshot.schemas.remove(name);
        self.snapshot.objects = Objects::default();
        Ok(())
    }

    /// Stores a table's definition, new or changed. Numbers its new parts, and drops the sequences of columns that the
    /// changed one no longer has.
    pub fn put_table(&mut self, mut table: Table) -> Result<Arc<Table>> {
        let old = self.snapshot.schemas.get(&table.schema).and_then(|schema| schema.tables.get(&table.name));
        let old = old.filter(|old| old.id == table.id).cloned();
        table.number_parts(old.as_deref(), || self.new_id());
        let table = Arc::new(table.with_derived_fields());
        let owned =
            |table: &Table| table.columns.iter().flat_map(|column| column.sequences.clone()).collect::<Vec<_>>();
        let (mut gone, kept) = (old.as_deref().map_or_else(Vec::new, owned), owned(&table));
        gone.retain(|id| !kept.contains(id));
        self.drop_owned(table.id, &gone)?;
        if table.temporary {
            put(&mut self.txn, &temporary_key(table.id), &temporary_maps::maps_as_bytes(&table))?;
            self.schema_mut(&table.schema)?.tables.insert(table.name.clone(), table.clone());
            return Ok(table);
        }
        put_table_record(&mut self.txn, &table)?;
        self.schema_mut(&table.schema)?.tables.insert(table.name.clone(), table.clone());
        Ok(table)
    }

    /// Removes a table's name before a drop or a rename.
    pub fn forget_name(&mut self, table: &Table) -> Result<()> {
        self.schema_mut(&table.schema)?.tables.remove(&table.name);
        Ok(())
    }

    pub fn drop_table(&mut self, table: &Table) -> Result<()> {
        self.forget_name(table)?;
        if table.temporary {
            self.txn.delete(CATALOG, &temporary_key(table.id)).map_err(engine_fault)?;
        }
        for column in &table.columns {
            self.drop_owned(table.id, &column.sequences)?;
        }
        forget_pieces(&mut self.txn, table.id)?;
        let mut piece = 0;
        while self.txn.delete(CATALOG, &statistics_key(table.id, piece)).map_err(engine_fault)? {
            piece += 1;
        }
        self.txn.delete(CATALOG, &auto_key(table.id)).map_err(engine_fault)?;
        self.txn.delete(CATALOG, &unchecked_key(table.id)).map_err(engine_fault)?;
        self.txn.drop_map(table.map).map_err(engine_fault)?;
        for index in &table.indexes {
            self.txn.drop_map(index.map).map_err(engine_fault)?;
        }
        Ok(())
    }

    /// Stores a view, new or in place of the one of that name.
    pub fn put_view(&mut self, view: View) -> Result<()> {
        if let Some(old) = self.snapshot.view(&view.schema, &view.name).cloned() {
            self.drop_view(&old)?;
        }
        for (piece, bytes) in encode_view(&view).chunks(PIECE).enumerate() {
            put(&mut self.txn, &view_key(view.id, piece as u16), bytes)?;
        }
        self.schema_mut(&view.schema)?.views.insert(view.name.clone(), Arc::new(view));
        Ok(())
    }

    pub fn drop_view(&mut self, view: &View) -> Result<()> {
        let mut piece = 0;
        while self.txn.delete(CATALOG, &view_key(view.id, piece)).map_err(engine_fault)? {
            piece += 1;
        }
        self.schema_mut(&view.schema)?.views.remove(&view.name);
        Ok(())
    }

    fn schema_mut(&mut self, name: &str) -> Result<&mut Schema> {
        let schema = self.snapshot.schemas.get_mut(name).ok_or_else(|| Fault::UnknownDatabase(name.into()))?;
        self.snapshot.objects = Objects::default();
        Ok(Arc::make_mut(schema))
    }

    /// Commits and publishes the change. Returns its durability LSN.
    pub fn commit(mut self) -> Result<engine::Lsn> {
        if self.temporary {
            let lsn = self.txn.commit().map_err(engine_fault)?;
            self.counters.iter_mut().for_each(|held| held.apply(lsn));
            for table in self.snapshot.temporary_tables() {
                table.live.version.store(table.version, Ordering::Release);
            }
            return Ok(lsn);
        }
        self.snapshot.version += 1;
        self.snapshot.children = Arc::new(self.snapshot.children_by_parent());
        let lsn = self.txn.commit().map_err(engine_fault)?;
        self.counters.iter_mut().for_each(|held| held.apply(lsn));
        for table in self.snapshot.schemas.values().flat_map(|schema| schema.tables.values()) {
            table.live.version.store(table.version, Ordering::Release);
        }
        self.catalog.version.store(self.snapshot.version, Ordering::Release);
        *self.catalog.current.write() = Arc::new(self.snapshot);
        Ok(lsn)
    }
}
