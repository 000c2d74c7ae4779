//! From text to a statement, by the grammar of `syntax`, whose errors become MySQL's here.
//!
//! `lexical`, `parameterise` and `bulk` work on text alone.

pub mod bulk;
pub mod lexical;
pub mod parameterise;
pub mod statement;
pub mod stored;
pub mod view;

#[cfg(test)]
mod tests;

use syntax::tree::Expr;
use syntax::{Mode, Problem};

pub use syntax::Parsed;

use crate::error::{self, Result, SqlError};
use crate::scalar::modes::SqlMode;

/// Of the stack that the parser takes for one level of a tree, in a build without optimisation.
const LEVEL_BYTES: usize = 6 << 10;

/// The parts of `sql_mode` that the grammar obeys.
pub fn grammar_mode(mode: SqlMode) -> Mode {
    Mode {
        ansi_quotes: mode.has(SqlMode::ANSI_QUOTES),
        pipes_as_concat: mode.has(SqlMode::PIPES_AS_CONCAT),
        no_backslash_escapes: mode.has(SqlMode::NO_BACKSLASH_ESCAPES),
        high_not_precedence: mode.has(SqlMode::HIGH_NOT_PRECEDENCE),
        ignore_space: mode.has(SqlMode::IGNORE_SPACE),
        real_as_float: mode.has(SqlMode::REAL_AS_FLOAT),
    }
}

/// Parses the one statement of the text. A trailing `;` is allowed, a second statement is not: `lexical::split` cuts before.
pub fn parse(text: &str, mode: SqlMode) -> Result<Parsed> {
    parse_unless(text, mode, &|| false)
}

/// Parses as [`parse`] does, until `cancelled` says yes: error 1317.
pub fn parse_unless(text: &str, mode: SqlMode, cancelled: &dyn Fn() -> bool) -> Result<Parsed> {
    let parsed = syntax::parse_unless(text, grammar_mode(mode), cancelled).map_err(|error| error_of(error, text))?;
    stdx::stack::note_use(parsed.height * LEVEL_BYTES);
    Ok(parsed)
}

/// Parses an expression alone, such as a stored default. Stored expressions are written for the default mode.
pub fn parse_expression(text: &str) -> Result<Expr> {
    syntax::parse_expression(text, grammar_mode(SqlMode::DEFAULT)).map_err(|error| error_of(error, text))
}

/// The error of MySQL for an error of the grammar.
fn error_of(error: syntax::Error, text: &str) -> SqlError {
    let (near, line) = error.near(text);
    match error.problem {
        Problem::Syntax => SqlError::parse(format!("'{near}' at line {line}")),
        Problem::Empty => error::EMPTY_QUERY.bare(),
        Problem::TooDeep => {
            let what = format!("a statement nested deeper than {}", syntax::tree::HEIGHT_MAX);
            error::STACK_OVERRUN.with(&[&what])
        }
        Problem::TooManyBlocks => error::TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT.with(&[&syntax::tree::BLOCKS_MAX]),
        Problem::TooManyTokens => error::TOO_MANY_TOKENS.with(&[&syntax::tree::TOKENS_MAX]),
        Problem::Cancelled => error::QUERY_INTERRUPTED.bare(),
        Problem::TooManyParameters => error::PS_MANY_PARAM.bare(),
        Problem::Unsupported(what) => SqlError::unsupported(what),
        Problem::IllegalDouble(number) => error::ILLEGAL_VALUE_FOR_TYPE.with(&[&"double", &number]),
        Problem::AliasedArgument(name) => error::WRONG_PARAMETERS_TO_NATIVE_FCT.with(&[&name]),
        Problem::UndeclaredVariable(name) => error::SP_UNDECLARED_VAR.with(&[&name]),
        Problem::WrongUsage(one, other) => error::WRONG_USAGE.with(&[&one, &other]),
        Problem::FieldTerminators => error::WRONG_FIELD_TERMINATORS.bare(),
        Problem::UnknownAlgorithm(word) => error::UNKNOWN_ALTER_ALGORITHM.with(&[&word]),
        Problem::UnknownLock(word) => error::UNKNOWN_ALTER_LOCK.with(&[&word]),
        Problem::OutOfRange(what, statement) => error::DATA_OUT_OF_RANGE.with(&[&what, &statement]),
    }
}
