//! The settings with which the server opens the door.

use std::sync::Arc;

use reactor::TlsConfig;

/// The door's settings.
#[derive(Clone)]
pub struct Options {
    /// Refuses connections from other machines while the account `default` needs no password.
    pub protected_mode: bool,
    /// The TLS configuration; without one, TLS is not offered.
    pub tls: Option<Arc<TlsConfig>>,
    /// Refuses clients that do not request TLS.
    pub require_secure_transport: bool,
    /// The limit of prepared statements of all clients together.
    pub statements_max: u64,
    /// The limit of bytes of long packets and values in flight, of all clients together.
    pub memory_budget_max: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            protected_mode: false,
            tls: None,
            require_secure_transport: false,
            statements_max: 16_382,
            memory_budget_max: 4 << 30,
        }
    }
}
