//! PostgreSQL 16's grammar, by recursive descent.
//!
//! Text goes through [`lexer`] as tokens without copies, and through [`parser::Parser`] as trees. Parsing takes time linear in the text, and stack for at most `HEIGHT_MAX` nested constructs.

mod alter;
mod call;
mod change;
mod define;
pub mod error;
mod expr;
mod from;
mod json;
pub mod keyword;
pub mod lexer;
pub mod literal;
mod object;
mod parser;
mod primary;
pub mod print;
mod query;
mod statement;
mod table;
pub mod tree;
mod types;
mod user_type;
mod utility;

pub use error::{Error, Problem, Result};

use lexer::Kind;
use parser::Parser;
use tree::{Expr, RawStatement, TypeName};

/// Parses the statements of a text, which semicolons separate; empty ones are left out. `cancelled` is asked every few thousand tokens; after it has said yes, the answer is [`Problem::Cancelled`].
///
/// # Errors
///
/// An error in any statement refuses the whole text, as in PostgreSQL.
pub fn parse_script(text: &str, cancelled: &dyn Fn() -> bool) -> Result<Vec<RawStatement>> {
    let mut parser = parser_of(text, cancelled)?;
    script(&mut parser).map_err(|error| parser.final_error(error))
}

fn script(parser: &mut Parser<'_>) -> Result<Vec<RawStatement>> {
    let mut statements = Vec::new();
    loop {
        while parser.accept(Kind::Semicolon) {}
        if parser.kind() == Kind::End {
            return Ok(statements);
        }
        parser.begin_statement();
        let start = parser.token().start as usize;
        let statement = parser.statement()?;
        if !parser.at_end() {
            return Err(parser.error());
        }
        let end = parser.last_end as usize;
        let (parameters, height) = (parser.parameters, parser.height());
        statements.push(RawStatement { statement, start, end, parameters, height });
    }
}

/// Parses an expression alone, such as a stored default.
///
/// # Errors
///
/// As [`parse_script`]; also if anything follows the expression.
pub fn parse_expression(text: &str) -> Result<Expr> {
    alone(text, |parser| parser.expr())
}

/// Parses the name of a type alone, such as that of `to_regtype`.
///
/// # Errors
///
/// As [`parse_expression`].
pub fn parse_type_name(text: &str) -> Result<TypeName> {
    alone(text, |parser| parser.type_name())
}

fn alone<T>(text: &str, rule: impl FnOnce(&mut Parser<'_>) -> Result<T>) -> Result<T> {
    let mut parser = parser_of(text, &|| false)?;
    let parsed = rule(&mut parser).map_err(|error| parser.final_error(error))?;
    match parser.kind() {
        Kind::End => Ok(parsed),
        _ => Err(parser.final_error(parser.error())),
    }
}

/// Positions are 32 bits wide; a longer text is refused.
fn parser_of<'t>(text: &'t str, cancelled: &'t dyn Fn() -> bool) -> Result<Parser<'t>> {
    if text.len() > u32::MAX as usize - 1 {
        return Err(Error { problem: Problem::TooManyTokens, at: 0, end: 0 });
    }
    Ok(Parser::new(text, cancelled))
}
