//! Errors of code that serves every SQL dialect.
//!
//! A `Fault` names what went wrong and carries its parts. It has no error number, no SQLSTATE and no text: each dialect renders its own, in one place.
//! A dialect's error can still pass through dialect-free code, because an expression of that dialect may fail below a shared operator; it travels as an
//! opaque `Raised` and its dialect unwraps it unchanged.

use std::fmt;

use stdx::memory::Full;

pub type Result<T> = std::result::Result<T, Fault>;

/// An error without a dialect. At most 24 bytes, so that a `Result` of a small value stays in registers or near them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Bytes from disk or from a spill file that no version of this program writes, and where they were found.
    Corrupt(Box<str>),
    /// The memory limit refused a claim.
    OutOfMemory(Full),
    /// Neither the name of a time zone nor an offset from UTC.
    InvalidZone(Box<str>),
    /// Text that is not a JSON document. `position` is the byte offset of the error.
    JsonSyntax { message: &'static str, position: u32 },
    /// A JSON document with more than `json::DEPTH_MAX` levels.
    JsonDepth,
    /// An error that a dialect made.
    Dialect(Box<Raised>),
}

/// A dialect's own error on its way through dialect-free code, which neither reads nor changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// The dialect's number of the error; 0 where the dialect has none.
    pub code: u16,
    /// Class and subclass of the SQL standard, five bytes.
    pub state: &'static str,
    pub message: String,
}

const _: () = assert!(size_of::<Fault>() == 24);

impl Fault {
    /// `what` names the damaged structure, as in "a row's head".
    pub fn corrupt(what: impl Into<Box<str>>) -> Fault {
        Fault::Corrupt(what.into())
    }
}

/// For logs and assertions. A client sees the rendering of its dialect instead.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Corrupt(what) => write!(f, "corrupt data: {what}"),
            Fault::OutOfMemory(full) => write!(f, "out of memory: {full}"),
            Fault::InvalidZone(name) => write!(f, "unknown time zone '{name}'"),
            Fault::JsonSyntax { message, position } => write!(f, "invalid JSON at byte {position}: {message}"),
            Fault::JsonDepth => f.write_str("JSON document nested too deeply"),
            Fault::Dialect(raised) => write!(f, "{} ({}): {}", raised.code, raised.state, raised.message),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Full> for Fault {
    fn from(full: Full) -> Fault {
        Fault::OutOfMemory(full)
    }
}
