//! The door's counters.

use stdx::counter::Counter;
use stdx::histogram::Histogram;

#[derive(Default)]
pub struct Stats {
    /// Commands of all kinds.
    pub commands: Counter,
    /// Executed statements, including prepared ones.
    pub statements: Counter,
    /// Error packets.
    pub errors: Counter,
    /// Sent rows.
    pub rows: Counter,
    /// Statements suspended on a page miss instead of blocking their thread.
    pub suspensions: Counter,
    /// Successful logins, and denied ones.
    pub logins: Counter,
    pub denied: Counter,
    /// Connections with TLS.
    pub tls: Counter,
    /// Existing prepared statements.
    pub prepared: Counter,
    /// Time from a statement's arrival to its reply in the buffer, or to its first rows; without the wait for durability.
    pub times: Histogram,
}
