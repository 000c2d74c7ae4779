//! How the program ends: one line on standard error and a number that a script can tell apart. The numbers are those of sysexits.h.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command line cannot be understood.
    Usage = 64,
    /// The data is damaged, or of a newer format.
    Data = 65,
    /// An address is taken or may not be used.
    Unavailable = 69,
    /// A fault of Beluga.
    Internal = 70,
    /// The data folder cannot be made or written.
    Create = 73,
    /// A device failed.
    Io = 74,
    /// Another process has the data folder: later it may work.
    Busy = 75,
    /// A setting is unknown or has a bad value.
    Config = 78,
}

/// Why the program ends: the line for the person, the number for the script.
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
        // One line, whatever a library said.
        write!(f, "beluga: {}", self.message.replace('\n', " "))
    }
}

/// Prints for the person who started us. Whoever closed the other end (`beluga settings | head`) does not want the rest.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
