//! The settings with which the server opens the door. `runtime_settings` has those that may change while it is open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reactor::TlsConfig;

use crate::digests::Limits;
use crate::frame::Mode;

/// Called with the detected protocol of a foreign connection, and its address.
pub type OnForeignProtocol = dyn Fn(&str, SocketAddr) + Send + Sync;
/// Called with the user and the number of a killed session, and whether the whole session is killed.
pub type OnKill = dyn Fn(&str, u64, bool) + Send + Sync;

/// The door's settings.
#[derive(Clone)]
pub struct Options {
    pub mode: Mode,
    /// The limit of a frame's length field after the login.
    pub length_max: usize,
    /// Requests that may wait in one session.
    pub queue_max: usize,
    /// The limit of sessions of all connections together.
    pub sessions_max: u64,
    pub digests: Limits,
    /// How long an idle session for single statements is kept.
    pub idle_session_lifetime: Duration,
    /// The interval between two checks for such sessions.
    pub idle_session_check: Duration,
    /// While rows are sent, half of this many pages of 4 KiB are handed over at a time.
    pub output_pages: usize,
    /// Whether the histograms of `Stats` are filled. That of statements always is.
    pub measures: bool,
    /// Refuses connections from other machines while the account `default` needs no password.
    pub protected_mode: bool,
    /// The TLS configuration for connections that begin with TLS; without one, TLS is not offered.
    pub tls: Option<Arc<TlsConfig>>,
    /// Refuses connections that do not begin with TLS.
    pub require_secure_transport: bool,
    /// Called for connections that speak another protocol.
    pub on_foreign_protocol: Option<Arc<OnForeignProtocol>>,
    /// Called for SESS_KILL.
    pub on_kill: Option<Arc<OnKill>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mode: Mode::Legacy,
            length_max: 64 << 20,
            queue_max: 128,
            sessions_max: 16_384,
            digests: Limits { entries: 1024, shards: 16, bytes_max: 1 << 20 },
            idle_session_lifetime: Duration::from_secs(60),
            idle_session_check: Duration::from_secs(10),
            output_pages: 10,
            measures: true,
            protected_mode: false,
            tls: None,
            require_secure_transport: false,
            on_foreign_protocol: None,
            on_kill: None,
        }
    }
}
