//! The settings of the door.

use std::sync::Arc;

use reactor::TlsConfig;

#[derive(Clone)]
pub struct Options {
    /// Refuses connections from other machines while the account of `postgres` needs no password.
    pub protected_mode: bool,
    /// TLS on the door's port, and the server's certificate in DER; `None` refuses SSLRequest.
    pub tls: Option<Tls>,
    /// Refuses clients without TLS.
    pub require_secure_transport: bool,
    /// The longest message of a client, in bytes.
    pub message_max: usize,
}

#[derive(Clone)]
pub struct Tls {
    pub config: Arc<TlsConfig>,
    /// The certificate that clients see, to which SCRAM-SHA-256-PLUS binds.
    pub certificate: Vec<u8>,
}

impl Default for Options {
    fn default() -> Options {
        Options { protected_mode: false, tls: None, require_secure_transport: false, message_max: 64 << 20 }
    }
}
