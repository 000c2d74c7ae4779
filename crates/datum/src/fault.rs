//! Errors of code that serves every SQL dialect.
//!
//! A `Fault` names what went wrong and carries its parts. It has no error number, no SQLSTATE and no text: each dialect renders its own, in one place.
//! A dialect's error can still pass through dialect-free code, because an expression of that dialect may fail below a shared operator; it travels as an
//! opaque `Raised` and its dialect unwraps it unchanged.

use std::fmt;

use stdx::memory::Full;

pub type Result<T, E = Fault> = std::result::Result<T, E>;

/// An error without a dialect. At most 24 bytes, so that a `Result` of a small value stays in registers or near them: several parts are in a box.
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

    /// No database has this name.
    UnknownDatabase(Box<str>),
    /// The schema has no table of this name.
    UnknownTable(Box<TableName>),

    /// Another row has the same unique key.
    DuplicateKey(Box<DuplicateKey>),
    /// NULL for a column that is declared NOT NULL.
    NotNull { column: Box<str> },
    /// No value for a column that is declared NOT NULL and has no default.
    NoDefault { column: Box<str> },
    /// A value for a generated column.
    GeneratedColumnGiven(Box<ColumnName>),
    /// The value of a column is beyond the range of its type.
    OutOfRange(Box<CellPosition>),
    /// The value of a column is longer than its type allows.
    TooLong(Box<CellPosition>),
    /// A key of the Redis door holds a value of another type than the table shows.
    KeyOfOtherType(Box<KeyOfOtherType>),
    /// A change of the Redis door's keys that SQL does not make.
    KeyChange(&'static str),
    /// The expression of an index could not be computed or stored for a row.
    IndexExpression(Box<IndexExpression>),
    /// A row breaks a CHECK constraint.
    CheckViolated { constraint: Box<str> },
    /// A value that is none of a domain.
    DomainViolated(Box<DomainViolation>),
    /// A row that is written through a view would not be visible in it: WITH CHECK OPTION. `view` is its qualified name.
    ViewCheckFailed { view: Box<str> },
    /// A child row whose foreign key matches no parent row.
    ParentMissing(Box<ForeignKeyParts>),
    /// A parent row that child rows still refer to.
    ParentReferenced(Box<ForeignKeyParts>),
    /// Cascades of foreign keys reach deeper than this.
    CascadeDepth { max: u32 },
    /// The counter behind a column has no number left.
    SequenceExhausted,
    /// A sequence that does not cycle has given the value at its bound.
    SequenceLimit(Box<SequenceLimit>),
    /// A position outside the bounds of a sequence.
    SequencePosition(Box<SequencePosition>),
    /// A row is longer than the storage engine allows, in bytes.
    RowTooLarge { max: u64 },
    /// A key of a former form is longer than the storage engine allows, in bytes. Keys of the rebuilt table are not bounded so.
    KeyTooLong { table: Box<str>, max: u32 },

    /// A foreign key names a column that its parent does not have.
    ReferencedColumnMissing(Box<ReferencedColumn>),
    /// A column of a foreign key and the one that it refers to cannot be compared by key.
    ReferencedColumnType(Box<ReferencedType>),
    /// The parent has no key that begins with the referenced columns.
    ReferencedKeyMissing(Box<ReferencedKey>),

    /// A scalar or row subquery returned more than one row.
    CardinalityViolation,
    /// A recursive common table expression did not end within the limit; the number of rounds begun.
    RecursionLimit { rounds: u64 },
    /// The row count of LIMIT or OFFSET is not a whole number from 0.
    InvalidLimit,
    /// A constant argument of this window function is out of its range.
    InvalidArgument { function: &'static str },
    /// The distance of a window's frame is negative, NULL or of a type that does not fit.
    InvalidFrame { window: Box<str> },
    /// The input of JSON_TABLE is neither a document nor text.
    JsonTableInput,
    /// A document has no value for a column of JSON_TABLE that is declared ERROR ON EMPTY.
    JsonTableMissing { column: Box<str> },

    /// The statement is suspended rather than blocked in a wait, and will be restarted. No client ever sees it.
    Suspended,
    /// The statement was cancelled.
    Interrupted,
    /// The statement has run longer than its limit.
    StatementTimeout,
    /// The lock wait timeout has passed.
    LockTimeout,
    /// Another transaction holds the lock, and the statement asked not to wait.
    LockNotAvailable {
        /// The table whose row is locked, where it is known.
        table: Option<Box<str>>,
    },
    /// The wait would have closed a cycle in the wait graph. The transaction has been rolled back.
    Deadlock,
    /// All sessions together hold as many locks of a kind as they may.
    TooManyLocks { max: u64 },
    /// No thread is left for one more blocking wait.
    TooManyWaits,
    /// No thread is left for one more long computation.
    TooManyComputations,
    /// The transaction's snapshot was given up, because it kept too many row versions.
    SnapshotTooOld,
    /// A row was changed after the transaction's snapshot, and the transaction's isolation forbids to write over it.
    SerializationFailure {
        /// The row was deleted, and not changed.
        is_deleted: bool,
    },
    /// Another transaction has changed what this serializable one has read.
    ReadWriteDependency,
    /// A serializable transaction reads keys of the Redis door that it does not name, and its commit cannot validate that.
    KeyRangeRead,
    /// Another transaction has made an object of that name, or a schema, while this one waited.
    NameTaken(Box<TableName>),
    /// Another transaction has changed or dropped a definition while this one waited.
    ConcurrentChange,
    /// The rows of a table were written anew, though they are the same, and the transaction's snapshot is older.
    RowsMoved,
    /// The keys of the keyspace follow another server, so no statement changes them.
    KeysFollow,
    /// The server is stopping.
    ShuttingDown,

    /// A statement needs more memory than it may hold; the bytes that it holds.
    MemoryLimit { bytes: u64 },
    /// No space for data, WAL or spill files. The folder is given where it is not the data folder.
    DiskFull { folder: Option<Box<str>> },
    /// A file could not be read.
    FileRead(Box<FileError>),
    /// A file could not be written.
    FileWrite(Box<FileError>),
    /// Any other error of the storage engine, in its own words.
    Storage(Box<str>),

    /// An error that a dialect made.
    Dialect(Box<Raised>),
}

/// The qualified name of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    pub schema: Box<str>,
    pub table: Box<str>,
}

/// The constraint of a domain that a value violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainViolation {
    /// The number of the type.
    pub number: u32,
    /// `None`: the value is NULL.
    pub constraint: Option<Box<str>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    pub table: Box<str>,
    pub column: Box<str>,
}

/// A key of the Redis door, the type that a statement wants, and the one that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyOfOtherType {
    pub key: Box<str>,
    pub wanted: &'static str,
    pub holds: &'static str,
}

/// A column of one of a statement's rows, which are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellPosition {
    pub column: Box<str>,
    pub row: u64,
}

/// A unique key that another row has already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    pub table: Box<str>,
    /// The name of the unique index; `None` for the primary key.
    pub index: Option<Box<str>>,
    /// The key's values as text, in the order of its columns.
    pub values: Box<[Box<str>]>,
}

/// A sequence and the bound that it has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceLimit {
    pub sequence: Box<str>,
    /// The bound is the greatest value, otherwise the least.
    pub is_max: bool,
    pub limit: i64,
}

/// A sequence, its bounds, and a position outside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequencePosition {
    pub sequence: Box<str>,
    pub value: i64,
    pub min: i64,
    pub max: i64,
}

/// A row for which the expression of an index failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexExpression {
    pub index: Box<str>,
    /// Counted from 1.
    pub row: u64,
    pub cause: Fault,
}

/// A foreign key as it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKeyParts {
    pub constraint: Box<str>,
    pub schema: Box<str>,
    pub table: Box<str>,
    pub columns: Box<[Box<str>]>,
    pub parent_schema: Box<str>,
    pub parent_table: Box<str>,
    pub parent_columns: Box<[Box<str>]>,
    /// The referential actions in SQL's words; `None` for NO ACTION.
    pub on_delete: Option<&'static str>,
    pub on_update: Option<&'static str>,
    /// The key's values as text, in the order of its columns; empty where no row is meant.
    pub values: Box<[Box<str>]>,
}

/// A column that a foreign key names and its parent lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedColumn {
    pub constraint: Box<str>,
    pub parent: Box<str>,
    pub column: Box<str>,
}

/// The two columns of a foreign key whose types do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedType {
    pub constraint: Box<str>,
    pub column: Box<str>,
    pub referenced: Box<str>,
}

/// A foreign key and the parent that has no key for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedKey {
    pub constraint: Box<str>,
    pub parent: Box<str>,
}

/// An error of the operating system and the file that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    pub path: Box<str>,
    /// `errno`; 0 where the error has none.
    pub os_error: i32,
    pub cause: Box<str>,
}

/// A dialect's own error on its way through dialect-free code, which neither reads nor changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// The dialect's number of the error; 0 where the dialect has none.
    pub code: u16,
    /// Class and subclass of the SQL standard, five bytes.
    pub state: &'static str,
    pub message: String,
    /// Further facts for the client, and what it may do about the error. Empty where the dialect has none.
    pub detail: Box<str>,
    pub hint: Box<str>,
}

const _: () = assert!(size_of::<Fault>() == 24);

impl Fault {
    /// `what` names the damaged structure, as in "a row's head".
    #[cold]
    pub fn corrupt(what: impl Into<Box<str>>) -> Fault {
        Fault::Corrupt(what.into())
    }

    #[cold]
    pub fn unknown_table(schema: &str, table: &str) -> Fault {
        Fault::UnknownTable(Box::new(TableName { schema: schema.into(), table: table.into() }))
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
            Fault::UnknownDatabase(name) => write!(f, "unknown database '{name}'"),
            Fault::UnknownTable(name) => write!(f, "unknown table '{}.{}'", name.schema, name.table),
            Fault::DuplicateKey(key) => {
                let index = key.index.as_deref().unwrap_or("the primary key");
                write!(f, "duplicate key ({}) in {index} of '{}'", key.values.join(", "), key.table)
            }
            Fault::NotNull { column } => write!(f, "NULL in column '{column}', which is NOT NULL"),
            Fault::NoDefault { column } => write!(f, "no value for column '{column}', which has no default"),
            Fault::GeneratedColumnGiven(name) => {
                write!(f, "value for generated column '{}' of '{}'", name.column, name.table)
            }
            Fault::OutOfRange(at) => write!(f, "value out of range for column '{}' in row {}", at.column, at.row),
            Fault::TooLong(at) => write!(f, "value too long for column '{}' in row {}", at.column, at.row),
            Fault::KeyOfOtherType(key) => write!(f, "the key '{}' holds {}, not {}", key.key, key.holds, key.wanted),
            Fault::KeyChange(change) => write!(f, "{change}"),
            Fault::IndexExpression(failed) => {
                write!(f, "expression of index '{}' in row {}: {}", failed.index, failed.row, failed.cause)
            }
            Fault::DomainViolated(domain) => match &domain.constraint {
                Some(constraint) => write!(f, "check '{constraint}' of the domain {} violated", domain.number),
                None => write!(f, "NULL is no value of the domain {}", domain.number),
            },
            Fault::CheckViolated { constraint } => write!(f, "check constraint '{constraint}' violated"),
            Fault::ViewCheckFailed { view } => write!(f, "check option of view '{view}' failed"),
            Fault::ParentMissing(key) => {
                write!(f, "no parent row for foreign key '{}' of '{}.{}'", key.constraint, key.schema, key.table)
            }
            Fault::ParentReferenced(key) => {
                write!(f, "row referenced by foreign key '{}' of '{}.{}'", key.constraint, key.schema, key.table)
            }
            Fault::CascadeDepth { max } => write!(f, "foreign keys cascade deeper than {max} levels"),
            Fault::SequenceExhausted => f.write_str("sequence exhausted"),
            Fault::SequenceLimit(at) => write!(f, "sequence '{}' has reached its bound {}", at.sequence, at.limit),
            Fault::SequencePosition(at) => {
                write!(f, "{} is outside the bounds {} and {} of sequence '{}'", at.value, at.min, at.max, at.sequence)
            }
            Fault::RowTooLarge { max } => write!(f, "row longer than {max} bytes"),
            Fault::KeyTooLong { table, max } => {
                write!(f, "key longer than {max} bytes in '{table}', which is to be rebuilt")
            }
            Fault::ReferencedColumnMissing(missing) => {
                let ReferencedColumn { constraint, parent, column } = &**missing;
                write!(f, "foreign key '{constraint}' refers to unknown column '{column}' of '{parent}'")
            }
            Fault::ReferencedColumnType(types) => {
                let ReferencedType { constraint, column, referenced } = &**types;
                write!(f, "columns '{column}' and '{referenced}' of foreign key '{constraint}' are incompatible")
            }
            Fault::ReferencedKeyMissing(key) => {
                write!(f, "foreign key '{}' refers to columns of '{}' without a key", key.constraint, key.parent)
            }
            Fault::CardinalityViolation => f.write_str("subquery returned more than one row"),
            Fault::RecursionLimit { rounds } => write!(f, "recursive query aborted after {rounds} rounds"),
            Fault::InvalidLimit => f.write_str("invalid row count in LIMIT"),
            Fault::InvalidArgument { function } => write!(f, "invalid argument of {function}"),
            Fault::InvalidFrame { window } => write!(f, "invalid frame of window '{window}'"),
            Fault::JsonTableInput => f.write_str("input of JSON_TABLE is not a document"),
            Fault::JsonTableMissing { column } => write!(f, "no value for column '{column}' of JSON_TABLE"),
            Fault::Suspended => f.write_str("statement suspended"),
            Fault::Interrupted => f.write_str("statement cancelled"),
            Fault::StatementTimeout => f.write_str("statement timeout"),
            Fault::LockTimeout => f.write_str("lock wait timeout"),
            Fault::LockNotAvailable { .. } => f.write_str("lock not available"),
            Fault::Deadlock => f.write_str("deadlock"),
            Fault::TooManyLocks { max } => write!(f, "more than {max} locks"),
            Fault::TooManyWaits => f.write_str("too many blocking waits"),
            Fault::TooManyComputations => f.write_str("too many long computations"),
            Fault::SerializationFailure { .. } => f.write_str("row changed after the snapshot"),
            Fault::ReadWriteDependency => f.write_str("rows that were read have changed"),
            Fault::KeysFollow => f.write_str("keys follow another server"),
            Fault::SnapshotTooOld => f.write_str("snapshot too old"),
            Fault::NameTaken(name) => write!(f, "name {}.{} is taken", name.schema, name.table),
            Fault::ConcurrentChange => f.write_str("definition was changed concurrently"),
            Fault::RowsMoved => f.write_str("rows were written anew after the snapshot"),
            Fault::ShuttingDown => f.write_str("server is stopping"),
            Fault::MemoryLimit { bytes } => write!(f, "memory limit of the statement reached at {bytes} bytes"),
            Fault::DiskFull { folder: Some(folder) } => write!(f, "disk full: {folder}"),
            Fault::DiskFull { folder: None } => f.write_str("disk full"),
            Fault::FileRead(failed) => write!(f, "cannot read '{}': {}", failed.path, failed.cause),
            Fault::FileWrite(failed) => write!(f, "cannot write '{}': {}", failed.path, failed.cause),
            Fault::Storage(what) => f.write_str(what),
            Fault::KeyRangeRead => f.write_str("a serializable transaction reads keys that it does not name"),
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
