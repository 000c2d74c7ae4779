//! MySQL's rendering of `Fault`: the number, SQLSTATE and text of everything that can go wrong in code without a dialect.

use std::fmt::Write;

use datum::fault::{ForeignKeyParts, Raised, ReferencedColumn, ReferencedType};
use datum::{Fault, fault};

use crate::error::{self, SqlError};
use query::engine_fault::engine_fault;

impl From<Fault> for SqlError {
    #[cold]
    fn from(fault: Fault) -> SqlError {
        match fault {
            Fault::Corrupt(what) => error::UNKNOWN_ERROR.with(&[&format!("Corrupt data: {what}")]),
            Fault::OutOfMemory(full) => full.into(),
            Fault::InvalidZone(name) => error::UNKNOWN_TIME_ZONE.with(&[&name]),
            Fault::JsonSyntax { message, position } => error::INVALID_JSON_TEXT.with(&[&message, &position, &""]),
            Fault::JsonDepth => error::JSON_DOCUMENT_TOO_DEEP.bare(),
            Fault::UnknownDatabase(name) => error::BAD_DB.with(&[&name]),
            Fault::UnknownTable(name) => unknown_table(&name),
            Fault::DuplicateKey(key) => {
                let index = key.index.as_deref().unwrap_or("PRIMARY");
                error::DUP_ENTRY.with(&[&key.values.join("-"), &format!("{}.{index}", key.table)])
            }
            Fault::NotNull { column } => error::BAD_NULL.with(&[&column]),
            Fault::NoDefault { column } => error::NO_DEFAULT_FOR_FIELD.with(&[&column]),
            Fault::GeneratedColumnGiven(name) => error::GENERATED_COLUMN_NOT_ALLOWED.with(&[&name.column, &name.table]),
            Fault::KeyOfOtherType(key) => error::WRONG_OBJECT.with(&[&"redis", &key.key, &key.wanted]),
            Fault::KeyChange(change) => SqlError::unsupported(change),
            Fault::OutOfRange(at) => error::WARN_DATA_OUT_OF_RANGE.with(&[&at.column, &at.row]),
            Fault::TooLong(at) => error::DATA_TOO_LONG.with(&[&at.column, &at.row]),
            Fault::IndexExpression(failed) => index_expression(*failed),
            Fault::DomainViolated(domain) => {
                error::CHECK_CONSTRAINT_VIOLATED.with(&[&domain.constraint.as_deref().unwrap_or("NOT NULL")])
            }
            Fault::CheckViolated { constraint } => error::CHECK_CONSTRAINT_VIOLATED.with(&[&constraint]),
            Fault::ViewCheckFailed { view } => error::VIEW_CHECK_FAILED.with(&[&view]),
            Fault::ParentMissing(key) => error::NO_REFERENCED_ROW_2.with(&[&child_text(&key)]),
            Fault::ParentReferenced(key) => error::ROW_IS_REFERENCED_2.with(&[&child_text(&key)]),
            Fault::CascadeDepth { max } => error::FK_DEPTH_EXCEEDED.with(&[&max]),
            Fault::SequenceExhausted => {
                error::UNKNOWN_ERROR.with(&[&"Failed to read auto-increment value from storage engine"])
            }
            Fault::SequenceLimit(at) => error::UNKNOWN_ERROR.with(&[&Fault::SequenceLimit(at)]),
            Fault::SequencePosition(at) => error::UNKNOWN_ERROR.with(&[&Fault::SequencePosition(at)]),
            Fault::RowTooLarge { max } => error::TOO_BIG_ROWSIZE.with(&[&max]),
            Fault::KeyTooLong { table, max } => {
                let mut error = error::TOO_LONG_KEY.with(&[&max]);
                error.message += &format!("; ALTER TABLE `{table}` FORCE makes keys for longer values");
                error
            }
            Fault::ReferencedColumnMissing(missing) => {
                let ReferencedColumn { constraint, parent, column } = *missing;
                error::FK_NO_COLUMN_PARENT.with(&[&column, &constraint, &parent])
            }
            Fault::ReferencedColumnType(types) => {
                let ReferencedType { constraint, column, referenced } = *types;
                error::FK_INCOMPATIBLE_COLUMNS.with(&[&column, &referenced, &constraint])
            }
            Fault::ReferencedKeyMissing(key) => error::FK_NO_INDEX_PARENT.with(&[&key.constraint, &key.parent]),
            Fault::CardinalityViolation => error::SUBQUERY_NO_1_ROW.bare(),
            Fault::RecursionLimit { rounds } => error::CTE_MAX_RECURSION_DEPTH.with(&[&rounds]),
            Fault::InvalidLimit => error::WRONG_ARGUMENTS.with(&[&"LIMIT"]),
            Fault::InvalidArgument { function } => error::WRONG_ARGUMENTS.with(&[&function]),
            Fault::InvalidFrame { window } => error::WINDOW_FRAME_ILLEGAL.with(&[&window]),
            Fault::JsonTableInput => error::INVALID_TYPE_FOR_JSON.with(&[&1, &"json_table"]),
            Fault::JsonTableMissing { column } => error::MISSING_JSON_TABLE_VALUE.with(&[&column]),
            Fault::Suspended => error::SUSPENDED.bare(),
            Fault::Interrupted => error::QUERY_INTERRUPTED.bare(),
            Fault::StatementTimeout => error::QUERY_TIMEOUT.bare(),
            Fault::LockTimeout => error::LOCK_WAIT_TIMEOUT.bare(),
            Fault::LockNotAvailable { .. } => error::LOCK_NOWAIT.bare(),
            Fault::Deadlock => error::LOCK_DEADLOCK.bare(),
            Fault::TooManyLocks { .. } => error::LOCK_TABLE_FULL.bare(),
            Fault::TooManyWaits => error::CANT_CREATE_THREAD.bare(),
            Fault::TooManyComputations => error::TOO_MANY_COMPUTATIONS.bare(),
            Fault::ReadWriteDependency => error::UNKNOWN_ERROR.with(&[&engine::Error::ReadWriteDependency]),
            Fault::KeyRangeRead => SqlError::unsupported("scans of keys in a serializable transaction"),
            Fault::SnapshotTooOld => error::UNKNOWN_ERROR.with(&[&engine::Error::SnapshotTooOld]),
            Fault::SerializationFailure { is_deleted } => {
                error::UNKNOWN_ERROR.with(&[&engine::Error::SerializationFailure { is_deleted }])
            }
            Fault::NameTaken(name) if name.table.is_empty() => error::DB_CREATE_EXISTS.with(&[&name.schema]),
            Fault::NameTaken(name) => error::TABLE_EXISTS.with(&[&name.table]),
            Fault::ConcurrentChange | Fault::RowsMoved => error::TABLE_DEF_CHANGED.bare(),
            Fault::KeysFollow => error::OPTION_PREVENTS_STATEMENT.with(&[&"REPLICAOF"]),
            Fault::ShuttingDown => error::SERVER_SHUTDOWN.bare(),
            Fault::MemoryLimit { bytes } => error::OUT_OF_MEMORY.with(&[&bytes]),
            Fault::DiskFull { folder } => error::DISK_FULL.with(&[&folder.as_deref().unwrap_or("beluga")]),
            Fault::FileRead(failed) => file_error(&error::ERROR_ON_READ, &failed),
            Fault::FileWrite(failed) => file_error(&error::ERROR_ON_WRITE, &failed),
            Fault::Storage(what) => error::UNKNOWN_ERROR.with(&[&what]),
            Fault::Dialect(raised) => {
                let Raised { code, state: sqlstate, message, detail: _, hint: _ } = *raised;
                SqlError { code, sqlstate, message }
            }
        }
    }
}

/// Carries an error through dialect-free code; `SqlError::from` returns it unchanged. A suspension has no number of
/// MySQL and remains one.
impl From<SqlError> for Fault {
    #[cold]
    fn from(error: SqlError) -> Fault {
        if error::SUSPENDED.is(&error) {
            return Fault::Suspended;
        }
        let SqlError { code, sqlstate, message } = error;
        let (detail, hint) = (Box::default(), Box::default());
        Fault::Dialect(Box::new(Raised { code, state: sqlstate, message, detail, hint }))
    }
}

impl From<engine::Error> for SqlError {
    #[cold]
    fn from(error: engine::Error) -> SqlError {
        engine_fault(error).into()
    }
}

fn unknown_table(name: &fault::TableName) -> SqlError {
    const INFORMATION_SCHEMA: &str = "information_schema";
    match name.schema.eq_ignore_ascii_case(INFORMATION_SCHEMA) {
        true => error::UNKNOWN_TABLE.with(&[&name.table, &INFORMATION_SCHEMA]),
        false => error::NO_SUCH_TABLE.with(&[&name.schema, &name.table]),
    }
}

/// Returns the error of a value that an index's expression gave: it names the index, since the column behind it has no name.
fn index_expression(failed: fault::IndexExpression) -> SqlError {
    let fault::IndexExpression { index, row, cause } = failed;
    let cause = SqlError::from(cause);
    let is = |codes: &[error::Code]| codes.iter().any(|code| code.is(&cause));
    if is(&[error::WARN_DATA_OUT_OF_RANGE]) {
        error::DATA_OUT_OF_RANGE_FUNCTIONAL_INDEX.with(&[&index, &row])
    } else if is(&[error::WARN_DATA_TRUNCATED, error::TRUNCATED_WRONG_VALUE_FOR_FIELD, error::DATA_TOO_LONG]) {
        error::DATA_TRUNCATED_FUNCTIONAL_INDEX.with(&[&index, &row])
    } else {
        cause
    }
}

fn file_error(code: &error::Code, failed: &fault::FileError) -> SqlError {
    code.with(&[&failed.path, &failed.os_error, &failed.cause])
}

/// Returns the child's name and its constraint, as the errors of broken foreign keys show them.
fn child_text(key: &ForeignKeyParts) -> String {
    format!("`{}`.`{}`, {}", key.schema, key.table, foreign_key_text(key))
}

/// Returns a foreign key as SHOW CREATE TABLE shows it.
pub fn foreign_key_text(key: &ForeignKeyParts) -> String {
    let quoted = |names: &[Box<str>]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let schema = if key.parent_schema == key.schema { String::new() } else { format!("`{}`.", key.parent_schema) };
    let mut text = format!(
        "CONSTRAINT `{}` FOREIGN KEY ({}) REFERENCES {schema}`{}` ({})",
        key.constraint,
        quoted(&key.columns),
        key.parent_table,
        quoted(&key.parent_columns)
    );
    for (event, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
        if let Some(action) = action {
            let _ = write!(text, " ON {event} {action}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
