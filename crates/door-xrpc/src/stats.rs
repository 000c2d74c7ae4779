//! The door's counters.

use stdx::counter::Counter;
use stdx::histogram::Histogram;

#[derive(Default)]
pub struct Stats {
    /// Frames of all kinds.
    pub requests: Counter,
    /// Executed statements.
    pub statements: Counter,
    /// Error frames.
    pub errors: Counter,
    /// Sent rows.
    pub rows: Counter,
    /// Successful logins, and denied ones.
    pub logins: Counter,
    pub denied: Counter,
    /// Connections with TLS.
    pub tls: Counter,
    /// Connections that spoke another protocol, or broke this one.
    pub foreign_connections: Counter,
    pub malformed: Counter,
    /// Sessions that clients have begun and not ended.
    pub sessions: Counter,
    /// Sessions of the pool that run a single statement.
    pub borrowed: Counter,
    /// Open connections, and closed ones whose sessions are still running.
    pub connections: Counter,
    pub closing: Counter,
    /// Times that a statement was stopped because its tokens were used up.
    pub token_waits: Counter,
    /// Statements suspended on a page miss instead of blocking their thread.
    pub suspensions: Counter,
    /// Time from a statement's start to its reply in the buffer, or to its first rows; without the wait for durability.
    pub times: Histogram,
    /// Time to cut the received frames of a connection.
    pub decode: Histogram,
    /// Time of one message of a login.
    pub auth: Histogram,
    /// Time of a cleanup of idle sessions.
    pub cleanup: Histogram,
}

impl Stats {
    /// Returns the histograms by the names that XRPC has for them.
    pub fn named(&self) -> [(&'static str, &Histogram); 4] {
        [("run", &self.times), ("decode", &self.decode), ("auth", &self.auth), ("cleanup", &self.cleanup)]
    }
}
