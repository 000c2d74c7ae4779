//! The settings with which the server opens the door.

use std::sync::Arc;

use reactor::TlsConfig;

/// How the door is opened.
#[derive(Clone)]
pub struct Options {
    /// Connections from beyond loopback are refused while the account `default` needs no password.
    pub protected_mode: bool,
    /// Connections that ask for it get TLS. None: it is not offered.
    pub tls: Option<Arc<TlsConfig>>,
    /// Who does not ask for TLS is refused.
    pub require_secure_transport: bool,
    /// Prepared statements of all clients together.
    pub statements_max: u64,
    /// Bytes of long packets and values under way, of all clients together.
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
