//! Errors, classified by what a caller can do about them.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::message;

/// The server has no text for a digest: the only error that this library recovers from.
pub(crate) const UNKNOWN_DIGEST: u32 = 8000;

/// The reason why a request has no result.
#[derive(Clone, Debug)]
pub enum Error {
    /// An error of the server: the request is wrong, or must be retried. The session continues unless the error is fatal.
    Server(ServerError),
    /// The connection is lost, and all of its sessions with it.
    Lost(Arc<io::Error>),
    /// No answer arrived within `Options::answer_timeout`; the session is ended.
    Timeout,
    /// This session has ended before: by a fatal error, a kill or a timeout.
    Ended,
    /// The server violated the protocol.
    Protocol(String),
}

/// An error reported by the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerError {
    /// MySQL's number, or one of XRPC's own (8000 and up).
    pub code: u32,
    /// Five characters.
    pub sql_state: String,
    pub message: String,
    /// The session has ended.
    pub is_fatal: bool,
}

impl Error {
    /// Returns the server's error number, if the server reported the error.
    pub fn code(&self) -> Option<u32> {
        match self {
            Error::Server(error) => Some(error.code),
            _ => None,
        }
    }

    /// The transaction may be tried again: a deadlock, or a wait for a lock that was too long.
    pub fn is_transient(&self) -> bool {
        matches!(self.code(), Some(1205 | 1213))
    }
}

impl From<message::Error> for ServerError {
    fn from(error: message::Error) -> ServerError {
        let is_fatal = error.severity() == message::Severity::Fatal;
        ServerError { code: error.code, sql_state: error.sql_state, message: error.msg, is_fatal }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.code, self.sql_state, self.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Server(error) => error.fmt(f),
            Error::Lost(error) => write!(f, "the connection is lost: {error}"),
            Error::Timeout => f.write_str("no answer in time; the session is ended"),
            Error::Ended => f.write_str("the session has ended"),
            Error::Protocol(what) => write!(f, "not XRPC: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Lost(Arc::new(error))
    }
}

impl From<prost::DecodeError> for Error {
    fn from(error: prost::DecodeError) -> Error {
        Error::Protocol(error.to_string())
    }
}
