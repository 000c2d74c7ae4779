//! How an import ends.

use std::fmt;

use engine::{DATABASES, Error};

/// The content of an imported file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Keys by database.
    pub keys: [u64; DATABASES as usize],
    /// Keys whose time was over before the import began. They were left out.
    pub expired: u64,
    /// Libraries of functions.
    pub libraries: usize,
    /// Bytes at the end of an append-only file that are no whole command or transaction. They were left out.
    pub cut_bytes: u64,
}

impl Imported {
    pub fn key_count(&self) -> u64 {
        self.keys.iter().sum()
    }
}

/// Why a file was not imported. Nothing has changed.
#[derive(Debug)]
pub enum ImportError {
    /// The file breaks a rule, or has something that is not supported.
    File(String),
    /// It would replace something.
    Conflict(String),
    Engine(Error),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::File(text) | ImportError::Conflict(text) => f.write_str(text),
            ImportError::Engine(error) => write!(f, "{error}"),
        }
    }
}

impl ImportError {
    /// Adds the name of the part in which it was found.
    pub(super) fn in_part(self, name: &str) -> ImportError {
        match self {
            ImportError::File(text) => ImportError::File(format!("{name}: {text}")),
            other => other,
        }
    }
}

impl From<Error> for ImportError {
    fn from(error: Error) -> ImportError {
        ImportError::Engine(error)
    }
}

impl From<rdb::Error> for ImportError {
    fn from(error: rdb::Error) -> ImportError {
        ImportError::File(error.to_string())
    }
}
