//! The engine's errors in MySQL's words.

use crate::error::{self, SqlError};

impl SqlError {
    /// What is on disk is not what was written.
    pub fn corrupt(what: &str) -> SqlError {
        error::UNKNOWN_ERROR.with(&[&format!("Corrupt data: {what}")])
    }
}

impl From<engine::Error> for SqlError {
    fn from(trouble: engine::Error) -> SqlError {
        use engine::Error;
        match trouble {
            Error::WouldBlock => error::SUSPENDED.bare(),
            Error::LockTimeout => error::LOCK_WAIT_TIMEOUT.bare(),
            Error::Cancelled => error::QUERY_INTERRUPTED.bare(),
            Error::LockNotAvailable => error::LOCK_NOWAIT.bare(),
            Error::Deadlock => error::LOCK_DEADLOCK.bare(),
            Error::DiskFull => error::DISK_FULL.with(&[&"beluga"]),
            Error::ShuttingDown => error::SERVER_SHUTDOWN.bare(),
            Error::TooLarge { limit, .. } => error::TOO_BIG_ROWSIZE.with(&[&limit]),
            other => error::UNKNOWN_ERROR.with(&[&other]),
        }
    }
}
