//! What the door counts.

use stdx::counter::Counter;
use stdx::histogram::Histogram;

#[derive(Default)]
pub struct Stats {
    /// Commands of all kinds.
    pub commands: Counter,
    /// Statements that were executed, prepared ones too.
    pub statements: Counter,
    /// Error packets.
    pub errors: Counter,
    /// Rows sent.
    pub rows: Counter,
    /// Times that a statement has left for pages rather than hold a thread.
    pub suspensions: Counter,
    /// Logins that were let in, and those that were not.
    pub logins: Counter,
    pub denied: Counter,
    /// Connections with TLS.
    pub tls: Counter,
    /// Prepared statements that exist.
    pub prepared: Counter,
    /// Time from a statement's arrival to its reply in the buffer, or to its first rows; without the wait for the disk.
    pub times: Histogram,
}
