//! The account of a logged-in connection.

use crate::frame::Mode;

/// The account that a connection has logged in as, and the framing of its replies.
#[derive(Debug)]
pub struct Identity {
    pub user: String,
    pub host: String,
    pub account: String,
    pub mode: Mode,
}
