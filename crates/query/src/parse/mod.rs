//! From text to a statement. Queries, changes and table definitions are the parser's (`dialect` mends its grammar); what only MySQL has is read here, from the same tokens.
//!
//! Files: `lexical` and `normal` work on text alone; `dialect` is the grammar; `statement` what comes out; `cursor` reads it, `alter`, `set` and `show` its longest chapters.

pub mod account;
mod alter;
pub mod bulk;
mod commas;
mod cursor;
mod dialect;
pub mod lexical;
pub mod limits;
pub mod load;
pub mod normal;
mod notation;
mod rewrite;
mod set;
mod show;
pub mod statement;
pub mod stored;
pub mod view;

#[cfg(test)]
mod tests;

use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::error::{self, Result, SqlError};
use crate::parse::cursor::Cursor;
pub use crate::parse::dialect::{DIV, SOUNDS_LIKE};

use crate::parse::dialect::Grammar;
use crate::parse::rewrite::{Rewritten, is_hint, rewrite};
use crate::parse::statement::Statement;
use crate::scalar::SqlMode;

/// A statement, and how many `?` it has. They are named `?0`, `?1` and so on, in the order of the text.
#[derive(Debug)]
pub struct Parsed {
    pub statement: Statement,
    pub parameters: usize,
    /// The items of the outermost select list, as they are written.
    pub names: Vec<String>,
}

/// How deep the parser's own recursion goes: three of its rules for each level that `limits` lets through, and some.
const DEPTH: usize = 3 * limits::NESTING_MAX + 60;

/// The one statement of the text. A trailing `;` is allowed, a second statement is not: `lexical::split` cuts before.
pub fn parse(text: &str, mode: SqlMode) -> Result<Parsed> {
    if lexical::is_blank(text) {
        return blank(text);
    }
    let opened = lexical::open_version_comments(text, mode);
    let text = opened.as_deref().unwrap_or(text);
    if opened.is_some() && lexical::is_blank(text) {
        return Ok(Parsed { statement: Statement::Nothing, parameters: 0, names: Vec::new() });
    }
    stdx::stack::expect(limits::check(text, mode)?);
    let grammar = Grammar::new(mode);
    let tokens = tokens(&grammar, text)?;
    let Rewritten { tokens, parameters, into, duplicates } = rewrite(tokens, &grammar, text)?;
    let names = item_texts(text, &tokens);
    let parser = Parser::new(&grammar).with_recursion_limit(DEPTH).with_tokens_with_locations(tokens);
    let mut cursor = Cursor { parser, text, duplicates };
    let mut statement = cursor.statement()?;
    if let (Statement::Query(query), Some(target)) = (&statement, into) {
        statement = Statement::SelectInto(query.clone(), Box::new(target));
    }
    if let Statement::CreateTable(create) = &mut statement {
        create.names.clone_from(&names);
    }
    while cursor.parser.consume_token(&Token::SemiColon) {}
    match cursor.parser.peek_token_ref().token {
        Token::EOF => Ok(Parsed { statement, parameters, names }),
        _ => Err(cursor.error_here()),
    }
}

/// A comment is a statement that does nothing; nothing at all is an error.
fn blank(text: &str) -> Result<Parsed> {
    if text.chars().all(|letter| letter.is_whitespace() || letter == ';') {
        return Err(error::EMPTY_QUERY.bare());
    }
    Ok(Parsed { statement: Statement::Nothing, parameters: 0, names: Vec::new() })
}

/// An expression alone: a stored default.
pub fn parse_expression(text: &str) -> Result<sqlparser::ast::Expr> {
    limits::check(text, SqlMode::DEFAULT)?;
    let grammar = Grammar::new(SqlMode::DEFAULT);
    let tokens = tokens(&grammar, text).map_err(|_| SqlError::parse(format!("'{text}' at line 1")))?;
    let mut parser = Parser::new(&grammar).with_recursion_limit(DEPTH).with_tokens_with_locations(tokens);
    parser.parse_expr().map_err(|_| SqlError::parse(format!("'{text}' at line 1")))
}

/// The tokens of a text, with MySQL's escapes in its strings.
///
/// The tokenizer resolves escapes that MySQL does not have (`\a`, `\f`), so strings and quoted names are taken as they were written and
/// resolved here.
fn tokens(grammar: &Grammar, text: &str) -> Result<Vec<TokenWithSpan>> {
    let tokens = Tokenizer::new(grammar, text).with_unescape(false).tokenize_with_location();
    let mut tokens = tokens.map_err(|error| syntax(text, error.location.line, error.location.column))?;
    for token in &mut tokens {
        match &mut token.token {
            Token::SingleQuotedString(text) | Token::NationalStringLiteral(text) => {
                lexical::unescape(text, '\'', grammar.backslash_escapes());
            }
            Token::DoubleQuotedString(text) => lexical::unescape(text, '"', grammar.backslash_escapes()),
            Token::Word(word) => {
                if let Some(quote) = word.quote_style {
                    lexical::unescape(&mut word.value, quote, false);
                }
            }
            _ => {}
        }
    }
    Ok(tokens)
}

/// Error 1064 with the text from there on.
fn syntax(text: &str, line: u64, column: u64) -> SqlError {
    let rest = text.split('\n').skip(line.saturating_sub(1) as usize).collect::<Vec<_>>().join("\n");
    let near: String = rest.chars().skip(column.saturating_sub(1) as usize).take(80).collect();
    SqlError::parse(format!("'{near}' at line {}", line.max(1)))
}

/// Finds byte offsets of lines and columns without counting a long line's characters again for each of its tokens.
struct Places {
    /// For each line, the index of its first checkpoint.
    lines: Vec<usize>,
    /// Byte offsets of every `STRIDE`th character of each line.
    checkpoints: Vec<usize>,
}

impl Places {
    const STRIDE: usize = 64;

    fn of(text: &str) -> Places {
        let (mut lines, mut checkpoints, mut column) = (Vec::new(), Vec::new(), 0);
        for (at, letter) in text.char_indices() {
            if column == 0 {
                lines.push(checkpoints.len());
            }
            if column % Places::STRIDE == 0 {
                checkpoints.push(at);
            }
            column = if letter == '\n' { 0 } else { column + 1 };
        }
        if column == 0 {
            lines.push(checkpoints.len());
            checkpoints.push(text.len());
        }
        Places { lines, checkpoints }
    }

    /// The byte offset of a 1-based line and column; beyond the line's end it is within the next one, beyond the text's its length.
    fn offset(&self, text: &str, line: u64, column: u64) -> Option<usize> {
        let first = *self.lines.get((line as usize).checked_sub(1)?)?;
        let column = (column as usize).checked_sub(1)?;
        let next = self.lines.get(line as usize).map_or(self.checkpoints.len(), |next| *next);
        let checkpoint = (first + column / Places::STRIDE).min(next - 1);
        let start = self.checkpoints[checkpoint];
        let rest = &text[start..];
        let behind = column - (checkpoint - first) * Places::STRIDE;
        Some(start + rest.char_indices().nth(behind).map_or(rest.len(), |(at, _)| at))
    }
}

/// What stands between SELECT and FROM, or after the RETURNING of a change, cut at its commas.
fn item_texts(text: &str, tokens: &[TokenWithSpan]) -> Vec<String> {
    let word = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let mut depth = 0usize;
    let depths: Vec<usize> = tokens
        .iter()
        .map(|token| {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth
        })
        .collect();
    let first = tokens.iter().find(|token| !matches!(token.token, Token::Whitespace(_)));
    let is_change = matches!(first.map(word).as_deref(), Some("insert" | "replace" | "update" | "delete"));
    let returning = (0..tokens.len()).rfind(|at| is_change && depths[*at] == 0 && word(&tokens[*at]) == "returning");
    let named = if returning.is_some() { "returning" } else { "select" };
    let selects: Vec<usize> = (0..tokens.len()).filter(|at| word(&tokens[*at]) == named).collect();
    let Some(first) = selects.iter().min_by_key(|at| depths[**at]) else { return Vec::new() };
    let level = depths[*first];
    let places = Places::of(text);
    let offset = |line: u64, column: u64| places.offset(text, line, column);
    let modifiers = [
        "sql_calc_found_rows",
        "sql_buffer_result",
        "distinct",
        "all",
        "distinctrow",
        "high_priority",
        "straight_join",
        "sql_no_cache",
        "sql_small_result",
        "sql_big_result",
    ];
    let (mut names, mut start) = (Vec::new(), None);
    // Comments behind the last word are no part of it.
    let item = |from: usize, last: usize, to: usize| {
        let last = &tokens[last].span.end;
        let end = offset(last.line, last.column).filter(|end| (from..to).contains(end));
        let end = end.filter(|end| lexical::is_blank(&text[*end..to])).unwrap_or(to);
        text[from..end].trim().to_owned()
    };
    for at in first + 1..tokens.len() {
        let token = &tokens[at];
        let ends = depths[at] < level
            || depths[at] == level
                && matches!(word(token).as_str(), "from" | "limit" | "union" | "where" | "for" | "order");
        let is_comma = depths[at] == level && token.token == Token::Comma;
        if start.is_none() && (is_hint(token) || modifiers.contains(&word(token).as_str())) {
            continue;
        }
        let here = offset(token.span.start.line, token.span.start.column);
        if (ends || is_comma || matches!(token.token, Token::EOF | Token::SemiColon))
            && let (Some(from), Some(to)) = (start, here)
        {
            names.push(item(from, at - 1, to));
            start = None;
        } else if start.is_none() {
            start = here;
        }
        if ends {
            return names;
        }
    }
    if let Some(from) = start {
        names.push(item(from, tokens.len() - 1, text.len()).trim_end_matches(';').to_owned());
    }
    names
}
