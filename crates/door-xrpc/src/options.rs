//! The settings with which the server opens the door. `runtime_settings` has those that may change while it is open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reactor::TlsConfig;

use crate::digests::Limits;
use crate::frame::Mode;

/// Told what a connection looks like, and where it comes from.
pub type OnForeignProtocol = dyn Fn(&str, SocketAddr) + Send + Sync;
/// Told whose session is killed, and whether as a whole.
pub type OnKill = dyn Fn(&str, u64, bool) + Send + Sync;

/// How the door is opened.
#[derive(Clone)]
pub struct Options {
    pub mode: Mode,
    /// What the length in a frame may say, of who has logged in.
    pub length_max: usize,
    /// Requests that may wait in one session.
    pub queue_max: usize,
    /// Sessions of all connections together.
    pub sessions_max: u64,
    pub digests: Limits,
    /// How long a session for single statements waits for the next one.
    pub idle_session_lifetime: Duration,
    /// Between two looks at which of them have waited for so long.
    pub idle_session_check: Duration,
    /// Half as many pages of 4 KiB are handed over at a time while rows are sent.
    pub output_pages: usize,
    /// The histograms of `Stats` are filled. That of statements is in any case.
    pub measures: bool,
    /// Connections from beyond loopback are refused while the account `default` needs no password.
    pub protected_mode: bool,
    /// Connections that begin with TLS get it. None: it is not offered.
    pub tls: Option<Arc<TlsConfig>>,
    /// Who does not begin with TLS is refused.
    pub require_secure_transport: bool,
    /// Hears of connections that are none of ours.
    pub on_foreign_protocol: Option<Arc<OnForeignProtocol>>,
    /// Hears of SESS_KILL.
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
