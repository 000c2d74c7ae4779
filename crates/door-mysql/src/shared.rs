//! The state that all connections of the door share. It lies below connections and sessions, so that neither imports the door.

use std::sync::Arc;

use engine::Engine;
use os::Clock;
use reactor::TlsConfig;
use sql_mysql::Database;
use stdx::sync::atomic::{AtomicBool, AtomicU64};

use crate::auth::DigestCache;
use crate::clients::Clients;
use crate::memory_budget::MemoryBudget;
use crate::rsa::RsaKey;
use crate::stats::Stats;

/// The state shared by the connections of a door.
pub(crate) struct Shared {
    pub database: Arc<Database>,
    pub clock: Arc<dyn Clock>,
    pub stats: Stats,
    pub clients: Arc<Clients>,
    pub digest_cache: DigestCache,
    pub rsa_key: RsaKey,
    pub protected_mode: AtomicBool,
    pub tls: Option<Arc<TlsConfig>>,
    pub require_secure_transport: bool,
    pub statements_max: AtomicU64,
    pub memory_budget: Arc<MemoryBudget>,
    pub started_ns: u64,
}

impl Shared {
    pub fn engine(&self) -> &Arc<Engine> {
        self.database.engine()
    }
}
