//! How the program ends: one line on standard error and an exit code that a script can distinguish. The codes are those of sysexits.h.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use engine::StorageError;

use crate::log;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command line is wrong.
    Usage = 64,
    /// The data is damaged or has a newer format.
    Data = 65,
    /// An address is in use or not permitted.
    Unavailable = 69,
    /// A bug of Beluga.
    Internal = 70,
    /// The data folder cannot be created or written.
    Create = 73,
    /// A device failed.
    Io = 74,
    /// Another process uses the data folder. A later try may succeed.
    Busy = 75,
    /// Another node has taken over the shared database. This one may start again, and waits then.
    Fenced = 76,
    /// A setting is unknown or has an invalid value.
    Config = 78,
}

/// Why the program ends: the message for the operator and the exit code for scripts (SV-3).
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: message.into() }
    }

    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Always one line, whatever text a library gave.
        write!(f, "beluga: {}", self.message.replace('\n', " "))
    }
}

/// Prints to standard output. Ignores errors: a reader that closed the pipe (`beluga settings | head`) does not want the rest.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Ends the process after an error that nothing can be done about: what is acknowledged is in the WAL, and nothing more can be written.
pub fn end_of_opening(error: &StorageError) -> ! {
    let (exit, what) = match error {
        StorageError::Fenced { .. } => {
            (Exit::Fenced, "another node has taken over; the process ends, and what was acknowledged is in the log")
        }
        _ => (Exit::Io, "the log's device failed; the server stops, and what was acknowledged is on disk"),
    };
    log::error(what, &[("error", error)]);
    os::process::end_now(exit as i32)
}
