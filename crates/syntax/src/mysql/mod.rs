//! MySQL's grammar, by recursive descent.
//!
//! Text goes through [`lexer`] as tokens without copies, and through [`parser::Parser`] as trees. Parsing takes time linear in the text, and stack for at most `HEIGHT_MAX` nested constructs.

mod account;
mod alter;
mod call;
mod change;
mod expr;
pub mod keyword;
pub mod lexer;
mod mode;
mod parser;
mod query;
mod set;
mod show;
mod statement;
mod table;
mod types;

use crate::error::{Error, Problem, Result};
use crate::tree::{Expr, Statement};

pub use mode::Mode;

use lexer::Kind;
use parser::Parser;

/// A statement and the number of its `?`.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub statement: Statement,
    pub parameters: usize,
    /// Of the tree: how deep its consumers recurse.
    pub height: usize,
}

/// Parses the one statement of the text. A trailing `;` is allowed.
///
/// # Errors
///
/// [`Problem::Empty`] for a text of space alone; comments alone are [`Statement::Nothing`].
pub fn parse(text: &str, mode: Mode) -> Result<Parsed> {
    parse_unless(text, mode, &|| false)
}

/// Parses as [`parse`] does. `cancelled` is asked every few thousand tokens; after it has said yes, the answer is [`Problem::Cancelled`].
pub fn parse_unless(text: &str, mode: Mode, cancelled: &dyn Fn() -> bool) -> Result<Parsed> {
    if text.len() > u32::MAX as usize - 1 {
        return Err(Error { problem: Problem::Syntax, at: 0 });
    }
    let mut parser = Parser::new(text, mode, cancelled);
    if parser.at_end() {
        return nothing(text, &mut parser);
    }
    let statement = match parser.statement() {
        Ok(statement) => statement,
        Err(error) => return Err(parser.final_error(error)),
    };
    while parser.accept(Kind::Semicolon) {}
    match parser.kind() {
        Kind::End => Ok(Parsed { statement, parameters: parser.parameters as usize, height: parser.height() }),
        _ => Err(parser.final_error(parser.error())),
    }
}

/// A comment is a statement that does nothing; nothing at all is an error.
fn nothing(text: &str, parser: &mut Parser<'_>) -> Result<Parsed> {
    while parser.accept(Kind::Semicolon) {}
    if parser.kind() != Kind::End {
        return Err(parser.error());
    }
    if text.chars().all(|letter| letter.is_whitespace() || letter == ';') {
        return Err(Error { problem: Problem::Empty, at: 0 });
    }
    Ok(Parsed { statement: Statement::Nothing, parameters: 0, height: 0 })
}

/// Parses an expression alone, such as a stored default.
pub fn parse_expression(text: &str, mode: Mode) -> Result<Expr> {
    let mut parser = Parser::new(text, mode, &|| false);
    parser.is_outermost = false;
    let expr = parser.expr()?;
    match parser.kind() {
        Kind::End => Ok(expr),
        _ => Err(parser.error()),
    }
}
