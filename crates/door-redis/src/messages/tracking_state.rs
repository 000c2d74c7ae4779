//! The state of a client's CLIENT TRACKING.

use std::collections::BTreeSet;

/// The options that a client has given to CLIENT TRACKING, and what has become of them.
#[derive(Clone, Default)]
pub struct TrackingState {
    pub is_on: bool,
    pub is_broadcast: bool,
    /// Keys are entered only for the commands behind CLIENT CACHING YES.
    pub is_opt_in: bool,
    /// Keys are entered but for the commands behind CLIENT CACHING NO.
    pub is_opt_out: bool,
    pub is_no_loop: bool,
    /// CLIENT CACHING was given for the next command.
    pub is_caching: bool,
    /// The client that gets the messages has gone.
    pub is_broken: bool,
    /// The client that gets the messages; 0 for this one.
    pub redirect: u64,
    pub prefixes: BTreeSet<Box<[u8]>>,
}

impl TrackingState {
    /// Returns whether the keys of a command that reads are entered.
    pub fn enters_keys(&self) -> bool {
        let is_excepted = if self.is_opt_in { !self.is_caching } else { self.is_opt_out && self.is_caching };
        self.is_on && !self.is_broadcast && !is_excepted
    }

    /// Returns the client that gets the messages: -1 without tracking, 0 without a redirection.
    pub fn redirection(&self) -> i64 {
        if self.is_on { self.redirect as i64 } else { -1 }
    }
}
