//! Why bytes are no value.

use std::fmt;

pub type Result<T> = std::result::Result<T, Error>;

/// An error in a dump or a file, with its place.
#[derive(Debug)]
pub enum Error {
    /// The bytes at this offset break a rule of the format.
    Bad { at: u64, rule: &'static str },
    /// The input ends within a value that began before this offset.
    Short { at: u64 },
    /// A value of a type that has no meaning here, by its number.
    Unsupported { at: u64, what: &'static str, number: u8 },
    /// The input cannot be read.
    Io(std::io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Bad { at, rule } => write!(f, "at byte {at}: {rule}"),
            Error::Short { at } => write!(f, "the data ends in the middle of a value, at byte {at}"),
            Error::Unsupported { at, what, number } => write!(f, "at byte {at}: {what} {number} is not supported"),
            Error::Io(error) => write!(f, "the data cannot be read: {error}"),
        }
    }
}

impl std::error::Error for Error {}
