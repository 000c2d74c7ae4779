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
    pub strangers: Counter,
    pub malformed: Counter,
    /// Sessions that clients have begun and not ended.
    pub sessions: Counter,
    /// Statements that ended their turn for want of the client's leave to send more.
    pub token_waits: Counter,
    /// Statements that left their thread until pages had been read.
    pub leaves: Counter,
    /// Time from a statement's start to its reply in the buffer, or to its first rows; without the wait for the disk.
    pub times: Histogram,
}
