//! Expressions that definitions keep as text: written so that they mean the same under the default `sql_mode`, whatever the mode of who wrote them. So the catalog can read them without asking
//! who that was, and SHOW CREATE TABLE can show them to anybody.

use std::fmt::Write;

use sqlparser::ast;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::{Result, SqlError};
use crate::parse::dialect::Grammar;
use crate::scalar::SqlMode;

/// Words that must not stand in the expression of a generated column, and what was found of them.
#[derive(Debug, PartialEq, Eq)]
pub enum Disallowed {
    Subquery,
    Variable,
    Function(String),
}

/// The expression's text.
pub fn stored_text(node: &ast::Expr, mode: SqlMode) -> Result<String> {
    // The parser shows strings with doubled quotes and everything else in them as it is.
    let text = node.to_string();
    let grammar = Grammar::new(mode.with(SqlMode::NO_BACKSLASH_ESCAPES));
    let tokens = Tokenizer::new(&grammar, &text).tokenize();
    let tokens = tokens.map_err(|_| SqlError::parse(format!("'{text}' at line 1")))?;
    let mut out = String::new();
    for token in tokens {
        match &token {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => quote(text, &mut out),
            Token::Word(word) if word.quote_style.is_some() => {
                let _ = write!(out, "`{}`", word.value.replace('`', "``"));
            }
            Token::StringConcat => return Err(SqlError::unsupported("|| for CONCAT in a definition")),
            token => {
                let _ = write!(out, "{token}");
            }
        }
    }
    Ok(out)
}

fn quote(text: &str, out: &mut String) {
    out.push('\'');
    for letter in text.chars() {
        match letter {
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{1a}' => out.push_str("\\Z"),
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("''"),
            other => out.push(other),
        }
    }
    out.push('\'');
}

/// Functions whose answer is not decided by their arguments.
const CHANGING: &[&str] = &[
    "benchmark",
    "connection_id",
    "curdate",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "curtime",
    "database",
    "found_rows",
    "get_lock",
    "is_free_lock",
    "is_used_lock",
    "last_insert_id",
    "load_file",
    "localtime",
    "localtimestamp",
    "name_const",
    "now",
    "rand",
    "random_bytes",
    "release_all_locks",
    "release_lock",
    "row_count",
    "schema",
    "session_user",
    "sleep",
    "sysdate",
    "system_user",
    "user",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "uuid",
    "uuid_short",
    "values",
    "version",
];
/// Those of them that need no brackets.
const BARE: &[&str] = &[
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "utc_date",
    "utc_time",
    "utc_timestamp",
];

/// What the text of an expression has that no generated column may look at.
pub fn disallowed(text: &str) -> Option<Disallowed> {
    let grammar = Grammar::new(SqlMode::DEFAULT);
    let tokens = Tokenizer::new(&grammar, text).tokenize().ok()?;
    let tokens: Vec<&Token> = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        if word.quote_style.is_some() {
            continue;
        }
        let name = word.value.to_ascii_lowercase();
        let opens = tokens.get(at + 1) == Some(&&Token::LParen);
        let is_empty = opens && tokens.get(at + 2) == Some(&&Token::RParen);
        match &*name {
            "select" => return Some(Disallowed::Subquery),
            _ if name.starts_with('@') => return Some(Disallowed::Variable),
            "unix_timestamp" if is_empty => return Some(Disallowed::Function(name)),
            _ if opens && CHANGING.contains(&&*name) || BARE.contains(&&*name) => {
                return Some(Disallowed::Function(name));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_expression;

    #[test]
    fn what_is_kept_reads_as_what_was_written() {
        for text in [r"a REGEXP '\\\\d+'", r"CONCAT(a, '\\n', 'it''s', `b c`)", "a + 1 > 2 OR b", "j -> '$.\"x\"'"] {
            let node = parse_expression(text).expect("it parses");
            let kept = stored_text(&node, SqlMode::DEFAULT).expect("it can be kept");
            assert_eq!(parse_expression(&kept).expect("it parses again").to_string(), node.to_string(), "{kept}");
        }
    }

    #[test]
    fn what_depends_on_more_than_the_row_is_seen() {
        assert_eq!(disallowed("a + 1"), None);
        assert_eq!(disallowed("a + `now`"), None);
        assert_eq!(disallowed("NOW(6)"), Some(Disallowed::Function("now".to_owned())));
        assert_eq!(disallowed("a + @x"), Some(Disallowed::Variable));
        assert_eq!(disallowed("(SELECT 1)"), Some(Disallowed::Subquery));
        assert_eq!(disallowed("UNIX_TIMESTAMP(a)"), None);
    }
}
