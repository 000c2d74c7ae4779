//! Assignment: a value that goes into a column takes the column's form, by the rules of a dialect.

use crate::nodes::context::EvalContext;
use crate::types::Type;
use crate::value::Value;
use datum::Result;

/// The column and the row that a value goes to, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    pub column: &'p str,
    /// From 1.
    pub row: u64,
}

/// A dialect's rules of assignment. Values that a statement gives follow those of its session, values of generated columns those of the dialect that bound
/// their expressions.
#[derive(Debug)]
pub struct Assignment {
    /// Returns the stored form of the value in a column of the type. An error for a value that does not fit, and for NULL where the type has none, unless the
    /// context's statement is lenient.
    pub store: fn(Value, &Type, Place<'_>, &mut EvalContext) -> Result<Value>,
    /// NULL in a column that has none is an error of the complete row, like a violated check, and not of the value.
    pub checks_rows: bool,
    /// Returns the value of a column that has no default and is not NULL, for a statement that is lenient.
    pub implicit_default: fn(&Type) -> Value,
    /// Returns a stored value as messages show it.
    pub text: fn(&Value, &Type, &mut EvalContext) -> String,
}
