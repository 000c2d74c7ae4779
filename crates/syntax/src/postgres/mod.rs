//! PostgreSQL 16's grammar, by recursive descent.

pub mod error;
pub mod tree;

pub use error::{Error, Problem, Result};

use tree::{Expr, RawStatement, TypeName};

/// Parses the statements of a text, which semicolons separate; empty ones are left out. `cancelled` is asked every few thousand tokens; after it has said yes, the answer is [`Problem::Cancelled`].
///
/// # Errors
///
/// An error in any statement refuses the whole text, as in PostgreSQL.
pub fn parse_script(text: &str, cancelled: &dyn Fn() -> bool) -> Result<Vec<RawStatement>> {
    let _ = cancelled;
    Err(unread(text))
}

/// Parses an expression alone, such as a stored default.
pub fn parse_expression(text: &str) -> Result<Expr> {
    Err(unread(text))
}

/// Parses the name of a type alone, such as that of `to_regtype`.
pub fn parse_type_name(text: &str) -> Result<TypeName> {
    Err(unread(text))
}

fn unread(text: &str) -> Error {
    Error { problem: Problem::Unsupported("PostgreSQL's grammar".into()), at: 0, end: text.len() }
}
