//! The catalog: definitions of schemas, tables, views, sequences and types, as records in the engine's catalog map and as a copy in
//! memory that statements read.
//!
//! A statement reads one `Snapshot`. A change of definitions (`writing`) gathers `Changes`, which are laid over the
//! published snapshot when their transaction has committed (`pending`). Until then only its own session sees them.

pub mod access;
mod access_change;
pub mod changes;
mod claim;
pub mod codec;
pub mod comment;
mod comment_change;
pub mod decode;
pub mod default_access;
mod default_access_change;
pub mod foreign;
pub mod foreign_graph;
pub mod foreign_key;
pub mod generated;
pub mod keyspace_rows;
mod load;
pub mod object_id;
pub mod objects;
pub mod pending;
mod persisted;
pub mod record;
pub mod row_type;
pub mod sampling;
pub mod schema;
pub mod schema_name;
pub mod sequence;
mod sequence_change;
pub mod session_default;
mod session_default_change;
pub mod snapshot;
pub mod statistics;
pub mod statistics_record;
pub mod table;
pub mod table_lock;
pub mod table_state;
pub mod temporary;
pub mod temporary_maps;
#[cfg(test)]
mod tests;
pub mod timestamps;
pub mod unseen;
pub mod user_type;
mod user_type_change;
pub mod view;
pub mod writing;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datum::Result;
use engine::Engine;
use engine::rows::{CATALOG, Isolation};
use stdx::sync::{Mutex, RwLock};

use crate::catalog::codec::In;
use crate::catalog::load::Loaded;
use crate::catalog::record::{PIECE, auto_key, put, statistics_key, unchecked_key};
use crate::catalog::statistics::Statistics;
use crate::catalog::statistics_record::encode_statistics;
use crate::catalog::table::{Table, TableId};
use crate::engine_fault::engine_fault;

pub use crate::catalog::changes::Changes;
pub use crate::catalog::schema::Schema;
pub use crate::catalog::snapshot::Snapshot;
pub use crate::catalog::writing::Writing;

pub struct Catalog {
    engine: Arc<Engine>,
    current: RwLock<Arc<Snapshot>>,
    version: AtomicU64,
    /// Held while a transaction that has changed definitions commits and publishes them.
    publishing: Mutex<()>,
    /// The next object id. One that a transaction has taken is not given again, however it ends.
    next_id: AtomicU64,
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
            publishing: Mutex::new(()),
            next_id: AtomicU64::new(next_id),
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
    ///
    /// Those of a table that an open transaction has made are not stored: the table may never be.
    pub fn keep_statistics(&self, table: &Table, statistics: &Statistics) -> Result<engine::Lsn> {
        let published = self.snapshot().table(&table.schema, &table.name).is_ok_and(|known| known.id == table.id);
        if !published {
            return Ok(0);
        }
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
