//! What the door counts.

use stdx::counter::Counter;
use stdx::histogram::Histogram;

#[derive(Default)]
pub struct Stats {
    /// Frames of all kinds.
    pub requests: Counter,
    /// Statements that were executed.
    pub statements: Counter,
    /// Error frames.
    pub errors: Counter,
    /// Rows sent.
    pub rows: Counter,
    /// Logins that were let in, and those that were not.
    pub logins: Counter,
    pub denied: Counter,
    /// Connections with TLS.
    pub tls: Counter,
    /// Connections that spoke something else, or broke the protocol.
    pub foreign_connections: Counter,
    pub malformed: Counter,
    /// Sessions that clients have begun and not ended.
    pub sessions: Counter,
    /// Sessions of the door that run a single statement.
    pub borrowed: Counter,
    /// Connections that are open; and those that are closed while sessions of them are at work.
    pub connections: Counter,
    pub closing: Counter,
    /// Statements that ended their turn for want of the client's leave to send more.
    pub token_waits: Counter,
    /// Statements that left their thread until pages had been read.
    pub suspensions: Counter,
    /// Time from a statement's start to its reply in the buffer, or to its first rows; without the wait for the disk.
    pub times: Histogram,
    /// Time that it takes to take apart what has come on a connection.
    pub decode: Histogram,
    /// Time of one message of a login.
    pub auth: Histogram,
    /// Time of a look at the spare sessions.
    pub cleanup: Histogram,
}

impl Stats {
    /// By the names that XRPC has for them.
    pub fn named(&self) -> [(&'static str, &Histogram); 4] {
        [("run", &self.times), ("decode", &self.decode), ("auth", &self.auth), ("cleanup", &self.cleanup)]
    }
}
