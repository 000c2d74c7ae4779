//! Views' queries, which the catalog keeps as text.

use syntax::tree::Query;

use crate::error::{Result, SqlError};
use crate::parse::statement::Statement;
use crate::scalar::modes::SqlMode;

/// Returns the query of a view's text and the number of its parameters. Spans are of `text`.
pub fn query(text: &str, mode: SqlMode) -> Result<(Box<Query>, usize)> {
    let parsed = crate::parse::parse(text, mode)?;
    match parsed.statement {
        Statement::Query(query) if query.into.is_none() => Ok((query, parsed.parameters)),
        _ => Err(SqlError::parse(format!("'{text}' at line 1"))),
    }
}
