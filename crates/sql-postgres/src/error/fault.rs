//! PostgreSQL's rendering of `Fault`: SQLSTATE, text, detail and hint of everything that can go wrong in code without a dialect.

use std::sync::Arc;

use datum::Fault;
use datum::fault::{DomainViolation, DuplicateKey, ForeignKeyParts, Raised, SequenceLimit, SequencePosition};
use query::catalog::table::{Part, Table};
use query::exec::host::host;
use query::nodes::context::EvalContext;

use crate::define::hidden_column::is_call;
use crate::define::names::schema_of;
use crate::error::{ErrorObject, PgError, state};
use crate::types::assignment::ASSIGNMENT;
use crate::types::{registry, user};
use crate::value::Value;

/// The message of `Fault::Suspended`, which no client ever sees.
const SUSPENDED: &str = "statement suspended";

impl PgError {
    /// Returns whether the statement is suspended rather than blocked in a wait.
    pub fn is_suspension(&self) -> bool {
        self.state == state::INTERNAL_ERROR && self.message == SUSPENDED
    }
}

impl From<Fault> for PgError {
    #[cold]
    fn from(fault: Fault) -> PgError {
        render(fault, &[])
    }
}

impl From<engine::Error> for PgError {
    #[cold]
    fn from(error: engine::Error) -> PgError {
        query::engine_fault::engine_fault(error).into()
    }
}

/// Returns the error. `written` are the tables whose rows the statement changes: definitions that the fault names only in part.
#[cold]
pub fn render(fault: Fault, written: &[Arc<Table>]) -> PgError {
    let relation = || written.first().map_or("", |table| &*table.name);
    let about_row =
        || written.first().map_or_else(ErrorObject::default, |table| about_table(&table.schema, &table.name));
    match fault {
        Fault::Corrupt(what) => PgError::new(state::DATA_CORRUPTED, format!("corrupt data: {what}")),
        Fault::OutOfMemory(full) => PgError::new(state::OUT_OF_MEMORY, "out of memory").detail(full.to_string()),
        Fault::InvalidZone(name) => {
            PgError::new(state::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized"))
        }
        Fault::JsonSyntax { message, position } => {
            let detail = format!("{message} at byte {position}.");
            PgError::new(state::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json").detail(detail)
        }
        Fault::JsonDepth => PgError::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"),
        Fault::UnknownDatabase(name) => match name.split_once('.') {
            Some((_, schema)) => {
                PgError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"))
            }
            None => PgError::new(state::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist")),
        },
        Fault::UnknownTable(name) => {
            PgError::new(state::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", name.table))
        }
        Fault::SequenceLimit(reached) => {
            let bound = if reached.is_max { "maximum" } else { "minimum" };
            let SequenceLimit { sequence, limit, .. } = *reached;
            let message = format!("nextval: reached {bound} value of sequence \"{sequence}\" ({limit})");
            PgError::new(state::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, message)
        }
        Fault::SequencePosition(position) => {
            let SequencePosition { sequence, value, min, max } = *position;
            let message = format!("setval: value {value} is out of bounds for sequence \"{sequence}\" ({min}..{max})");
            PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message)
        }
        Fault::DuplicateKey(key) => duplicate_key(&key, written),
        Fault::NotNull { column } | Fault::NoDefault { column } => {
            let message = format!(
                "null value in column \"{column}\" of relation \"{}\" violates not-null constraint",
                relation()
            );
            PgError::new(state::NOT_NULL_VIOLATION, message).about(ErrorObject { column: Some(column), ..about_row() })
        }
        Fault::GeneratedColumnGiven(name) => {
            let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", name.column);
            let detail = format!("Column \"{}\" is a generated column.", name.column);
            PgError::new(state::GENERATED_ALWAYS, message).detail(detail)
        }
        Fault::KeyOfOtherType(key) => {
            PgError::new(state::WRONG_OBJECT_TYPE, format!("key \"{}\" is not {}", key.key, key.wanted))
        }
        Fault::KeyChange(change) => PgError::unsupported(change),
        Fault::OutOfRange(_) => PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range"),
        Fault::TooLong(_) => PgError::new(state::STRING_DATA_RIGHT_TRUNCATION, "value too long for its type"),
        Fault::IndexExpression(failed) => render(failed.cause, written),
        Fault::DomainViolated(domain) => {
            let DomainViolation { number, constraint } = *domain;
            let datatype = Some(user::unnamed(number).into());
            let name = registry::format_type(number, None);
            let error = match &constraint {
                Some(constraint) => {
                    let message = format!("value for domain {name} violates check constraint \"{constraint}\"");
                    PgError::new(state::CHECK_VIOLATION, message)
                }
                None => PgError::new(state::NOT_NULL_VIOLATION, format!("domain {name} does not allow null values")),
            };
            error.about(ErrorObject { constraint, datatype, ..ErrorObject::default() })
        }
        Fault::CheckViolated { constraint } => {
            let message = format!("new row for relation \"{}\" violates check constraint \"{constraint}\"", relation());
            PgError::new(state::CHECK_VIOLATION, message)
                .about(ErrorObject { constraint: Some(constraint), ..about_row() })
        }
        Fault::ViewCheckFailed { view } => {
            let view = view.rsplit('.').next().unwrap_or_default();
            PgError::new(
                state::WITH_CHECK_OPTION_VIOLATION,
                format!("new row violates check option for view \"{view}\""),
            )
        }
        Fault::ParentMissing(key) => parent_missing(&key),
        Fault::ParentReferenced(key) => parent_referenced(&key),
        Fault::CascadeDepth { max } => {
            PgError::new(state::STATEMENT_TOO_COMPLEX, format!("foreign keys cascade deeper than {max} levels"))
        }
        Fault::SequenceExhausted => {
            PgError::new(state::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "nextval: reached maximum value of sequence")
        }
        Fault::RowTooLarge { max } => {
            PgError::new(state::PROGRAM_LIMIT_EXCEEDED, format!("row is too big: maximum size {max}"))
        }
        Fault::KeyTooLong { table, max } => PgError::new(
            state::PROGRAM_LIMIT_EXCEEDED,
            format!("index row size exceeds maximum {max} for table \"{table}\""),
        ),
        Fault::ReferencedColumnMissing(missing) => PgError::new(
            state::UNDEFINED_COLUMN,
            format!("column \"{}\" referenced in foreign key constraint does not exist", missing.column),
        ),
        Fault::ReferencedColumnType(types) => PgError::new(
            state::DATATYPE_MISMATCH,
            format!("foreign key constraint \"{}\" cannot be implemented", types.constraint),
        )
        .detail(format!("Key columns \"{}\" and \"{}\" are of incompatible types.", types.column, types.referenced)),
        Fault::ReferencedKeyMissing(key) => PgError::new(
            state::INVALID_FOREIGN_KEY,
            format!("there is no unique constraint matching given keys for referenced table \"{}\"", key.parent),
        ),
        Fault::CardinalityViolation => {
            PgError::new(state::CARDINALITY_VIOLATION, "more than one row returned by a subquery used as an expression")
        }
        Fault::RecursionLimit { rounds } => {
            PgError::new(state::STATEMENT_TOO_COMPLEX, format!("recursive query did not end within {rounds} rounds"))
        }
        Fault::InvalidLimit => PgError::new(state::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT must not be negative"),
        Fault::InvalidArgument { function } => {
            let function = function.to_ascii_lowercase();
            let state = match &*function {
                "nth_value" => state::INVALID_ARGUMENT_FOR_NTH_VALUE,
                _ => state::INVALID_ARGUMENT_FOR_NTILE,
            };
            PgError::new(state, format!("argument of {function} must be greater than zero"))
        }
        Fault::InvalidFrame { .. } => {
            PgError::new(state::INVALID_PRECEDING_OR_FOLLOWING_SIZE, "frame offset must not be null or negative")
        }
        Fault::JsonTableInput | Fault::JsonTableMissing { .. } => {
            PgError::new(state::INVALID_PARAMETER_VALUE, "invalid input of JSON_TABLE")
        }
        // It exists only between a plan and the session, which looks for it before it renders.
        Fault::Suspended => PgError::new(state::INTERNAL_ERROR, SUSPENDED),
        Fault::Interrupted => PgError::new(state::QUERY_CANCELED, "canceling statement due to user request"),
        Fault::StatementTimeout => PgError::new(state::QUERY_CANCELED, "canceling statement due to statement timeout"),
        Fault::LockTimeout => PgError::new(state::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout"),
        Fault::LockNotAvailable { table } => {
            let table = table.map_or_else(|| relation().to_owned(), String::from);
            let text = format!("could not obtain lock on row in relation \"{table}\"");
            PgError::new(state::LOCK_NOT_AVAILABLE, text)
        }
        Fault::Deadlock => PgError::new(state::DEADLOCK_DETECTED, "deadlock detected"),
        Fault::NameTaken(name) if name.table.is_empty() => {
            let schema = crate::define::names::schema_of(&name.schema);
            PgError::new(state::DUPLICATE_SCHEMA, format!("schema \"{schema}\" already exists"))
        }
        Fault::NameTaken(name) => {
            PgError::new(state::DUPLICATE_TABLE, format!("relation \"{}\" already exists", name.table))
        }
        Fault::ConcurrentChange => PgError::new(state::INTERNAL_ERROR, "tuple concurrently updated"),
        Fault::SerializationFailure { is_deleted } => {
            let what = if is_deleted { "delete" } else { "update" };
            PgError::new(state::SERIALIZATION_FAILURE, format!("could not serialize access due to concurrent {what}"))
        }
        Fault::ReadWriteDependency => PgError::new(
            state::SERIALIZATION_FAILURE,
            "could not serialize access due to read/write dependencies among transactions",
        )
        .detail("Reason code: Canceled on identification as a pivot, during commit attempt.")
        .hint("The transaction might succeed if retried."),
        Fault::KeyRangeRead => PgError::unsupported("scans of keys in a SERIALIZABLE transaction")
            .hint("Name the keys with = or IN, or use REPEATABLE READ."),
        Fault::TooManyLocks { max } => PgError::new(state::OUT_OF_MEMORY, "out of shared memory")
            .hint(format!("All sessions together hold at most {max} advisory locks.")),
        Fault::TooManyWaits => PgError::new(state::INSUFFICIENT_RESOURCES, "too many statements wait at once"),
        Fault::TooManyComputations => {
            PgError::new(state::INSUFFICIENT_RESOURCES, "too many statements compute for long at once")
        }
        Fault::RowsMoved => PgError::new(
            state::SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent change of the table's definition",
        )
        .hint("The transaction might succeed if retried."),
        Fault::SnapshotTooOld => PgError::new(state::SNAPSHOT_TOO_OLD, "snapshot too old"),
        Fault::KeysFollow => PgError::new(
            state::READ_ONLY_SQL_TRANSACTION,
            "cannot change keys of the Redis door while they follow another server",
        ),
        Fault::ShuttingDown => {
            PgError::new(state::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
        }
        Fault::MemoryLimit { bytes } => PgError::new(state::OUT_OF_MEMORY, "out of memory").detail(format!(
            "The statement needs {bytes} bytes at once, more than the setting \"statement_memory\" allows."
        )),
        Fault::DiskFull { folder } => {
            let folder = folder.as_deref().unwrap_or("the data directory");
            PgError::new(state::DISK_FULL, format!("could not write to {folder}: No space left on device"))
                .hint("Check free disk space.")
        }
        Fault::FileRead(failed) => {
            PgError::new(state::IO_ERROR, format!("could not read file \"{}\": {}", failed.path, failed.cause))
        }
        Fault::FileWrite(failed) => {
            PgError::new(state::IO_ERROR, format!("could not write file \"{}\": {}", failed.path, failed.cause))
        }
        Fault::Storage(what) => PgError::new(state::INTERNAL_ERROR, what),
        Fault::Dialect(raised) => {
            let Raised { code: _, state, message, detail, hint } = *raised;
            let known = |text: Box<str>| (!text.is_empty()).then_some(text);
            PgError {
                state,
                message,
                detail: known(detail),
                hint: known(hint),
                position: None,
                context: None,
                object: None,
                routine: None,
            }
        }
    }
}

/// The most bytes of a value in the description of a row.
const SHOWN_BYTES_MAX: usize = 64;

/// Returns the error of a statement under way, with the row that has violated a constraint.
#[cold]
pub fn render_in(fault: Fault, written: &[Arc<Table>], ctx: &mut EvalContext) -> PgError {
    let failing = host(ctx).failing_row.take();
    let shown = hidden::detail_of(&fault, written, ctx);
    match (&fault, failing) {
        (Fault::NotNull { .. } | Fault::CheckViolated { .. } | Fault::ViewCheckFailed { .. }, Some((table, row))) => {
            if !hidden::may_read(&table, None, ctx) {
                return render(fault, &[table]);
            }
            let detail = format!("Failing row contains ({}).", shown_row(&table, &row, ctx));
            render(fault, &[table]).detail(detail)
        }
        _ => match shown {
            None => render(fault, written),
            Some(detail) => PgError { detail, ..render(fault, written) },
        },
    }
}

fn shown_row(table: &Table, row: &[Value], ctx: &mut EvalContext) -> String {
    let mut shown = Vec::with_capacity(row.len());
    for (column, value) in table.columns.iter().zip(row).filter(|(column, _)| !column.is_hidden()) {
        let mut text = (ASSIGNMENT.text)(value, &column.ty, ctx);
        if text.len() > SHOWN_BYTES_MAX {
            let end = (0..=SHOWN_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push_str("...");
        }
        shown.push(text);
    }
    shown.join(", ")
}

/// Returns the columns of a key as messages list them.
pub fn column_names(table: &Table, parts: &[Part]) -> String {
    let names = parts.iter().map(|part| match table.expression_of(part.column) {
        Some(text) if is_call(text) => text.to_owned(),
        Some(text) => format!("({text})"),
        None => table.columns[part.column].name.clone(),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn duplicate_key(key: &DuplicateKey, written: &[Arc<Table>]) -> PgError {
    let table = written.iter().find(|table| *table.name == *key.table);
    let index = match &key.index {
        Some(index) => index.to_string(),
        None => primary_name(table.map(|table| &**table), &key.table),
    };
    let parts = table.and_then(|table| match &key.index {
        Some(index) => table.index(index).map(|at| &*table.indexes[at].parts),
        None => table.primary.as_deref(),
    });
    let error =
        PgError::new(state::UNIQUE_VIOLATION, format!("duplicate key value violates unique constraint \"{index}\""));
    let error = match (table, parts) {
        (Some(table), Some(parts)) => {
            error.detail(format!("Key ({})=({}) already exists.", column_names(table, parts), key.values.join(", ")))
        }
        _ => error,
    };
    let schema = table.and_then(|table| about_table(&table.schema, &table.name).schema);
    error.about(ErrorObject {
        schema,
        table: Some(key.table.clone()),
        constraint: Some(index.into()),
        ..ErrorObject::default()
    })
}

/// Returns the fields of an error about a table. `schema` is the stored name, with its database.
pub fn about_table(schema: &str, table: &str) -> ErrorObject {
    ErrorObject { schema: Some(schema_of(schema).into()), table: Some(table.into()), ..ErrorObject::default() }
}

/// Returns the name of a table's primary key, which tables of another dialect do not name.
pub fn primary_name(table: Option<&Table>, name: &str) -> String {
    match table {
        Some(table) if !table.primary_name.is_empty() => table.primary_name.clone(),
        _ => format!("{name}_pkey"),
    }
}

fn about_key(key: &ForeignKeyParts) -> ErrorObject {
    ErrorObject { constraint: Some(key.constraint.clone()), ..about_table(&key.schema, &key.table) }
}

/// Adds `Key (a)=(1)` and what is said of it, where the values are known.
fn with_key(error: PgError, key: &ForeignKeyParts, columns: &[Box<str>], rest: &str) -> PgError {
    let error = error.about(about_key(key));
    if key.values.is_empty() {
        return error;
    }
    error.detail(format!("Key ({})=({}) {rest}.", columns.join(", "), key.values.join(", ")))
}

fn parent_missing(key: &ForeignKeyParts) -> PgError {
    let (table, constraint) = (&key.table, &key.constraint);
    let message = format!("insert or update on table \"{table}\" violates foreign key constraint \"{constraint}\"");
    let rest = format!("is not present in table \"{}\"", key.parent_table);
    with_key(PgError::new(state::FOREIGN_KEY_VIOLATION, message), key, &key.columns, &rest)
}

fn parent_referenced(key: &ForeignKeyParts) -> PgError {
    let (parent, table, constraint) = (&key.parent_table, &key.table, &key.constraint);
    let message = format!(
        "update or delete on table \"{parent}\" violates foreign key constraint \"{constraint}\" on table \"{table}\""
    );
    let rest = format!("is still referenced from table \"{table}\"");
    with_key(PgError::new(state::FOREIGN_KEY_VIOLATION, message), key, &key.parent_columns, &rest)
}

mod hidden;
#[cfg(test)]
mod tests;
