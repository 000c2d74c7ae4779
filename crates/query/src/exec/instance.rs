//! The database instance below every session, of whatever dialect: the engine, the catalog, and the folder of spilled rows.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use engine::Engine;

use crate::catalog::Catalog;
use crate::catalog::table_state::TableState;
use crate::exec::spill::Spill;
use crate::session::advisory_locks::AdvisoryLocks;
use crate::session::deadlock::{DeadlockSearch, LockHolders};
use crate::session::registry::Registry;
use datum::Result;

pub struct Instance {
    engine: Arc<Engine>,
    catalog: Catalog,
    /// Registers changes of definitions, and holds them off while a session reads all tables under one lock.
    definitions: Arc<TableState>,
    /// The sessions of all dialects.
    sessions: Registry,
    lock_holders: Arc<LockHolders>,
    advisory_locks: Arc<AdvisoryLocks>,
    _search: DeadlockSearch,
    /// Unset: nothing is spilled, and a statement that would need more memory fails.
    spill: OnceLock<Arc<Spill>>,
}

impl Instance {
    /// Loads the catalog. `system` are the names of schemas whose tables are computed. An error if the catalog is damaged or of an unknown version.
    pub fn open(engine: Arc<Engine>, system: &'static [&'static str]) -> Result<Instance> {
        let catalog = Catalog::open(engine.clone(), system)?;
        let (lock_holders, advisory_locks) = (Arc::default(), Arc::default());
        Ok(Instance {
            catalog,
            definitions: Arc::default(),
            sessions: Registry::default(),
            _search: DeadlockSearch::start(&lock_holders, &advisory_locks, &engine),
            engine,
            lock_holders,
            advisory_locks,
            spill: OnceLock::new(),
        })
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub fn definitions(&self) -> &Arc<TableState> {
        &self.definitions
    }

    pub fn sessions(&self) -> &Registry {
        &self.sessions
    }

    /// Returns the sessions in the search for deadlocks.
    pub fn lock_holders(&self) -> &LockHolders {
        &self.lock_holders
    }

    pub fn advisory_locks(&self) -> &AdvisoryLocks {
        &self.advisory_locks
    }

    pub fn spill(&self) -> Option<&Arc<Spill>> {
        self.spill.get()
    }

    /// Lets statements spill rows beyond `memory_max` bytes into the folder, which is emptied. Called before the first session begins.
    pub fn spill_to(&self, folder: &Path, memory_max: usize) -> std::io::Result<()> {
        let spill = Arc::new(Spill::open(folder, memory_max)?);
        let _ = self.spill.set(spill);
        Ok(())
    }
}
