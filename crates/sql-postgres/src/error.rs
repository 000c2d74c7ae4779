//! Errors as PostgreSQL reports them: an SQLSTATE, a message, and optional fields.
//!
//! Code below the session makes a [`PgError`] and returns it as a `Fault` where the core calls it; [`PgError::from`] unwraps it again and renders the core's own faults.

use datum::{Fault, Raised};

pub type Result<T, E = PgError> = std::result::Result<T, E>;

/// The five characters of an SQLSTATE. PostgreSQL's names of them are the constants of `state`.
pub type SqlState = &'static str;

/// An error with the fields of an ErrorResponse message, but for severity, file, line and routine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PgError {
    pub state: SqlState,
    pub message: String,
    pub detail: Option<Box<str>>,
    pub hint: Option<Box<str>>,
    /// The character of the statement's text where the error is, from 1.
    pub position: Option<u32>,
    /// Names of the objects that the error is about; `None` for most errors.
    pub object: Option<Box<ErrorObject>>,
}

/// The names in an error of a constraint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorObject {
    pub schema: Option<Box<str>>,
    pub table: Option<Box<str>>,
    pub column: Option<Box<str>>,
    pub constraint: Option<Box<str>>,
}

impl PgError {
    #[cold]
    pub fn new(state: SqlState, message: impl Into<String>) -> PgError {
        PgError { state, message: message.into(), detail: None, hint: None, position: None, object: None }
    }

    #[must_use]
    pub fn detail(mut self, detail: impl Into<Box<str>>) -> PgError {
        self.detail = Some(detail.into());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<Box<str>>) -> PgError {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the position where the error has none yet: a byte of the statement's text.
    #[must_use]
    pub fn at(mut self, text: &str, byte: usize) -> PgError {
        if self.position.is_none() {
            let before = text.get(..byte).map_or(0, |before| before.chars().count());
            self.position = Some(before as u32 + 1);
        }
        self
    }
}

impl From<PgError> for Fault {
    fn from(error: PgError) -> Fault {
        let PgError { state, message, detail, hint, position: _, object: _ } = error;
        let (detail, hint) = (detail.unwrap_or_default(), hint.unwrap_or_default());
        Fault::Dialect(Box::new(Raised { code: 0, state, message, detail, hint }))
    }
}

/// SQLSTATEs by PostgreSQL's names (appendix A of its manual).
pub mod state {
    use super::SqlState;

    pub const PROTOCOL_VIOLATION: SqlState = "08P01";
    pub const FEATURE_NOT_SUPPORTED: SqlState = "0A000";
    pub const NUMERIC_VALUE_OUT_OF_RANGE: SqlState = "22003";
    pub const INVALID_ARGUMENT_FOR_LOGARITHM: SqlState = "2201E";
    pub const INVALID_ARGUMENT_FOR_POWER_FUNCTION: SqlState = "2201F";
    pub const INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION: SqlState = "2201G";
    pub const DIVISION_BY_ZERO: SqlState = "22012";
    pub const STRING_DATA_RIGHT_TRUNCATION: SqlState = "22001";
    pub const INVALID_TEXT_REPRESENTATION: SqlState = "22P02";
    pub const INVALID_BINARY_REPRESENTATION: SqlState = "22P03";
    pub const INVALID_PARAMETER_VALUE: SqlState = "22023";
    pub const DATETIME_FIELD_OVERFLOW: SqlState = "22008";
    pub const INVALID_DATETIME_FORMAT: SqlState = "22007";
    pub const SYNTAX_ERROR: SqlState = "42601";
    pub const UNDEFINED_FUNCTION: SqlState = "42883";
    pub const UNDEFINED_COLUMN: SqlState = "42703";
    pub const UNDEFINED_TABLE: SqlState = "42P01";
    pub const UNDEFINED_OBJECT: SqlState = "42704";
    pub const DATATYPE_MISMATCH: SqlState = "42804";
    pub const PROGRAM_LIMIT_EXCEEDED: SqlState = "54000";
}
