//! The door's counters.

use stdx::counter::Counter;
use stdx::histogram::Histogram;

#[derive(Default)]
pub struct Stats {
    /// Messages of all kinds after the login.
    pub messages: Counter,
    /// Executed statements: those of simple queries, and Execute.
    pub statements: Counter,
    /// Error messages.
    pub errors: Counter,
    /// Statements suspended on a page miss or a lock instead of blocking their thread.
    pub suspensions: Counter,
    /// Successful logins, and denied ones.
    pub logins: Counter,
    pub denied: Counter,
    /// Cancel requests with the right key, and others.
    pub cancels: Counter,
    pub wrong_cancels: Counter,
    /// Connections with TLS.
    pub tls: Counter,
    /// Time from a statement's arrival to its reply in the buffer, or to its first rows; without the wait for durability.
    pub times: Histogram,
}
