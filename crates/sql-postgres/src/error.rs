//! Errors as PostgreSQL reports them: an SQLSTATE, a message, and optional fields.
//!
//! Code below the session makes a [`PgError`] and returns it as a `Fault` where the core calls it; [`PgError::from`] unwraps it again and renders the core's own faults.

use datum::{Fault, Raised};

pub mod fault;

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
    /// Where the error happened, as the line of a file: CONTEXT.
    pub context: Option<Box<str>>,
    /// Names of the objects that the error is about; `None` for most errors.
    pub object: Option<Box<ErrorObject>>,
    /// PostgreSQL's function, where drivers recognise the error by it.
    pub routine: Option<&'static str>,
}

/// The names in an error of a constraint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorObject {
    pub schema: Option<Box<str>>,
    pub table: Option<Box<str>>,
    pub column: Option<Box<str>>,
    pub constraint: Option<Box<str>>,
    /// A domain. Until the error leaves the session it stands for the name by its OID.
    pub datatype: Option<Box<str>>,
}

impl PgError {
    #[cold]
    pub fn new(state: SqlState, message: impl Into<String>) -> PgError {
        PgError {
            state,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            context: None,
            object: None,
            routine: None,
        }
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

    /// Says where the error happened, unless that is known. The line of a document is a place within another.
    #[must_use]
    pub fn within(mut self, context: impl FnOnce() -> String) -> PgError {
        self.context = match self.context.take() {
            None => Some(context().into()),
            Some(known) if known.starts_with("JSON data") && !known.contains('\n') => {
                Some(format!("{known}\n{}", context()).into())
            }
            known => known,
        };
        self
    }

    /// Names the objects that the error is about.
    #[must_use]
    pub fn about(mut self, object: ErrorObject) -> PgError {
        self.object = Some(Box::new(object));
        self
    }

    /// Returns the error for something that PostgreSQL has and this server has not.
    #[cold]
    pub fn unsupported(what: impl std::fmt::Display) -> PgError {
        PgError::new(state::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
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
        let PgError { state, message, detail, hint, .. } = error;
        let (detail, hint) = (detail.unwrap_or_default(), hint.unwrap_or_default());
        Fault::Dialect(Box::new(Raised { code: 0, state, message, detail, hint }))
    }
}

/// SQLSTATEs by PostgreSQL's names (appendix A of its manual).
pub mod state {
    use super::SqlState;

    pub const DATA_EXCEPTION: SqlState = "22000";
    pub const NULL_VALUE_NOT_ALLOWED: SqlState = "22004";
    pub const SUBSTRING_ERROR: SqlState = "22011";
    pub const INVALID_USE_OF_ESCAPE_CHARACTER: SqlState = "2200C";
    pub const INVALID_ESCAPE_SEQUENCE: SqlState = "22025";
    pub const INVALID_REGULAR_EXPRESSION: SqlState = "2201B";
    pub const ARRAY_SUBSCRIPT_ERROR: SqlState = "2202E";
    pub const INVALID_TABLESAMPLE_REPEAT: SqlState = "2202G";
    pub const INVALID_TABLESAMPLE_ARGUMENT: SqlState = "2202H";
    pub const PROTOCOL_VIOLATION: SqlState = "08P01";
    pub const FEATURE_NOT_SUPPORTED: SqlState = "0A000";
    pub const NUMERIC_VALUE_OUT_OF_RANGE: SqlState = "22003";
    pub const INVALID_ARGUMENT_FOR_LOGARITHM: SqlState = "2201E";
    pub const INVALID_ARGUMENT_FOR_POWER_FUNCTION: SqlState = "2201F";
    pub const INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION: SqlState = "2201G";
    pub const DIVISION_BY_ZERO: SqlState = "22012";
    pub const STRING_DATA_LENGTH_MISMATCH: SqlState = "22026";
    pub const STRING_DATA_RIGHT_TRUNCATION: SqlState = "22001";
    pub const CHARACTER_NOT_IN_REPERTOIRE: SqlState = "22021";
    pub const UNTRANSLATABLE_CHARACTER: SqlState = "22P05";
    pub const INVALID_TEXT_REPRESENTATION: SqlState = "22P02";
    pub const INVALID_BINARY_REPRESENTATION: SqlState = "22P03";
    pub const INVALID_PARAMETER_VALUE: SqlState = "22023";
    pub const DATETIME_FIELD_OVERFLOW: SqlState = "22008";
    pub const INVALID_TIME_ZONE_DISPLACEMENT_VALUE: SqlState = "22009";
    pub const INTERVAL_FIELD_OVERFLOW: SqlState = "22015";
    pub const INVALID_DATETIME_FORMAT: SqlState = "22007";
    pub const INVALID_SCHEMA_NAME: SqlState = "3F000";
    pub const NAME_TOO_LONG: SqlState = "42622";
    pub const SYNTAX_ERROR: SqlState = "42601";
    pub const UNDEFINED_FUNCTION: SqlState = "42883";
    pub const UNDEFINED_COLUMN: SqlState = "42703";
    pub const UNDEFINED_TABLE: SqlState = "42P01";
    pub const UNDEFINED_OBJECT: SqlState = "42704";
    pub const UNSAFE_NEW_ENUM_VALUE_USAGE: SqlState = "55P04";
    pub const DATATYPE_MISMATCH: SqlState = "42804";
    pub const STATEMENT_TOO_COMPLEX: SqlState = "54001";
    pub const PROGRAM_LIMIT_EXCEEDED: SqlState = "54000";
    pub const TOO_MANY_COLUMNS: SqlState = "54011";
    pub const TOO_MANY_ARGUMENTS: SqlState = "54023";
    pub const CARDINALITY_VIOLATION: SqlState = "21000";
    pub const SEQUENCE_GENERATOR_LIMIT_EXCEEDED: SqlState = "2200H";
    pub const INVALID_PRECEDING_OR_FOLLOWING_SIZE: SqlState = "22013";
    pub const INVALID_ARGUMENT_FOR_NTILE: SqlState = "22014";
    pub const INVALID_ARGUMENT_FOR_NTH_VALUE: SqlState = "22016";
    pub const INVALID_ROW_COUNT_IN_LIMIT_CLAUSE: SqlState = "2201W";
    pub const BAD_COPY_FILE_FORMAT: SqlState = "22P04";
    pub const NOT_NULL_VIOLATION: SqlState = "23502";
    pub const FOREIGN_KEY_VIOLATION: SqlState = "23503";
    pub const UNIQUE_VIOLATION: SqlState = "23505";
    pub const CHECK_VIOLATION: SqlState = "23514";
    pub const INVALID_CURSOR_STATE: SqlState = "24000";
    pub const ACTIVE_SQL_TRANSACTION: SqlState = "25001";
    pub const READ_ONLY_SQL_TRANSACTION: SqlState = "25006";
    pub const NO_ACTIVE_SQL_TRANSACTION: SqlState = "25P01";
    pub const IN_FAILED_SQL_TRANSACTION: SqlState = "25P02";
    pub const IDLE_IN_TRANSACTION_SESSION_TIMEOUT: SqlState = "25P03";
    pub const INVALID_SQL_STATEMENT_NAME: SqlState = "26000";
    pub const INVALID_GRANT_OPERATION: SqlState = "0LP01";
    pub const INVALID_AUTHORIZATION_SPECIFICATION: SqlState = "28000";
    pub const DEPENDENT_OBJECTS_STILL_EXIST: SqlState = "2BP01";
    pub const INVALID_TRANSACTION_TERMINATION: SqlState = "2D000";
    pub const INVALID_CURSOR_NAME: SqlState = "34000";
    pub const INVALID_SAVEPOINT_SPECIFICATION: SqlState = "3B001";
    pub const INVALID_CATALOG_NAME: SqlState = "3D000";
    pub const SERIALIZATION_FAILURE: SqlState = "40001";
    pub const DEADLOCK_DETECTED: SqlState = "40P01";
    pub const INSUFFICIENT_PRIVILEGE: SqlState = "42501";
    pub const INVALID_NAME: SqlState = "42602";
    pub const DUPLICATE_COLUMN: SqlState = "42701";
    pub const AMBIGUOUS_COLUMN: SqlState = "42702";
    pub const DUPLICATE_ALIAS: SqlState = "42712";
    pub const AMBIGUOUS_FUNCTION: SqlState = "42725";
    pub const GROUPING_ERROR: SqlState = "42803";
    pub const CANNOT_COERCE: SqlState = "42846";
    pub const AMBIGUOUS_PARAMETER: SqlState = "42P08";
    pub const AMBIGUOUS_ALIAS: SqlState = "42P09";
    pub const INVALID_RECURSION: SqlState = "42P19";
    pub const WINDOWING_ERROR: SqlState = "42P20";
    pub const DUPLICATE_OBJECT: SqlState = "42710";
    pub const WRONG_OBJECT_TYPE: SqlState = "42809";
    pub const INVALID_FOREIGN_KEY: SqlState = "42830";
    pub const GENERATED_ALWAYS: SqlState = "428C9";
    pub const RESERVED_NAME: SqlState = "42939";
    pub const UNDEFINED_PARAMETER: SqlState = "42P02";
    pub const INVALID_CURSOR_DEFINITION: SqlState = "42P11";
    pub const DUPLICATE_CURSOR: SqlState = "42P03";
    pub const DUPLICATE_DATABASE: SqlState = "42P04";
    pub const DUPLICATE_PREPARED_STATEMENT: SqlState = "42P05";
    pub const DUPLICATE_SCHEMA: SqlState = "42P06";
    pub const DUPLICATE_TABLE: SqlState = "42P07";
    pub const INVALID_COLUMN_REFERENCE: SqlState = "42P10";
    pub const INVALID_TABLE_DEFINITION: SqlState = "42P16";
    pub const INVALID_SCHEMA_DEFINITION: SqlState = "42P15";
    pub const INVALID_OBJECT_DEFINITION: SqlState = "42P17";
    pub const INDETERMINATE_DATATYPE: SqlState = "42P18";
    pub const WITH_CHECK_OPTION_VIOLATION: SqlState = "44000";
    pub const INSUFFICIENT_RESOURCES: SqlState = "53000";
    pub const TOO_MANY_CONNECTIONS: SqlState = "53300";
    pub const DISK_FULL: SqlState = "53100";
    pub const OUT_OF_MEMORY: SqlState = "53200";
    pub const DUPLICATE_JSON_OBJECT_KEY_VALUE: SqlState = "22030";
    pub const INVALID_SQL_JSON_SUBSCRIPT: SqlState = "22033";
    pub const NON_NUMERIC_SQL_JSON_ITEM: SqlState = "22036";
    pub const SINGLETON_SQL_JSON_ITEM_REQUIRED: SqlState = "22038";
    pub const SQL_JSON_ARRAY_NOT_FOUND: SqlState = "22039";
    pub const SQL_JSON_MEMBER_NOT_FOUND: SqlState = "2203A";
    pub const SQL_JSON_NUMBER_NOT_FOUND: SqlState = "2203B";
    pub const SQL_JSON_OBJECT_NOT_FOUND: SqlState = "2203C";
    pub const OBJECT_NOT_IN_PREREQUISITE_STATE: SqlState = "55000";
    pub const OBJECT_IN_USE: SqlState = "55006";
    pub const CANT_CHANGE_RUNTIME_PARAM: SqlState = "55P02";
    pub const LOCK_NOT_AVAILABLE: SqlState = "55P03";
    pub const QUERY_CANCELED: SqlState = "57014";
    pub const ADMIN_SHUTDOWN: SqlState = "57P01";
    pub const IO_ERROR: SqlState = "58030";
    pub const SNAPSHOT_TOO_OLD: SqlState = "72000";
    pub const INTERNAL_ERROR: SqlState = "XX000";
    pub const DATA_CORRUPTED: SqlState = "XX001";
}
