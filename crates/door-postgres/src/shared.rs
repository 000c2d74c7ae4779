//! The state that all connections of the door share. It lies below connections and sessions, so that neither imports the door.

use std::sync::Arc;

use os::Clock;
use stdx::sync::atomic::{AtomicBool, AtomicUsize};

use crate::auth::Decoys;
use crate::clients::Clients;
use crate::options::Tls;
use crate::sql::Database;
use crate::stats::Stats;

pub(crate) struct Shared {
    pub database: Arc<Database>,
    pub clock: Arc<dyn Clock>,
    pub stats: Stats,
    pub clients: Arc<Clients>,
    pub decoys: Decoys,
    pub protected_mode: AtomicBool,
    pub tls: Option<Tls>,
    /// The hash of the certificate for SCRAM-SHA-256-PLUS; `None` if there is nothing to bind to.
    pub channel: Option<Vec<u8>>,
    pub require_secure_transport: bool,
    pub message_max: AtomicUsize,
}
