//! Errors of reading a text, with the token where they are.

use std::borrow::Cow;

/// An error, and the bytes of the token where it is. Both are the text's length at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub problem: Problem,
    pub at: usize,
    pub end: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text does not follow the grammar (42601).
    Syntax,
    /// The lexer's or grammar's own message (42601), to which PostgreSQL adds `at or near "token"`.
    Near(&'static str),
    /// A message of the grammar's rules that stands by itself, with its SQLSTATE.
    Invalid {
        state: &'static str,
        message: Cow<'static, str>,
        detail: Option<Cow<'static, str>>,
        hint: Option<Cow<'static, str>>,
    },
    /// More nested constructs than [`super::tree::HEIGHT_MAX`] (54001).
    TooDeep,
    /// More tokens than [`super::tree::TOKENS_MAX`] (54000).
    TooManyTokens,
    /// Parsing was cancelled (57014).
    Cancelled,
    /// Grammar that is known and refused by name (SY-9; 0A000).
    Unsupported(Cow<'static, str>),
}

/// Parts of messages that PostgreSQL reports without a position.
const UNPLACED: &[&str] = &[
    "WITH TIES",
    "cannot specify both",
    "constraints cannot be marked",
    "hash partition must be specified",
    "STDIN/STDOUT not allowed",
    "invalid byte sequence",
    "unrecognized JSON encoding",
];

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns PostgreSQL's message: `syntax error at or near "x"`, `syntax error at end of input`.
    pub fn message(&self, text: &str) -> String {
        match &self.problem {
            Problem::Syntax => self.near("syntax error", text),
            Problem::Near(message) => self.near(message, text),
            Problem::Invalid { message, .. } => message.clone().into_owned(),
            Problem::TooDeep => "stack depth limit exceeded".to_owned(),
            Problem::TooManyTokens => "statement is too long".to_owned(),
            Problem::Cancelled => "canceling statement due to user request".to_owned(),
            Problem::Unsupported(name) => format!("{name} is not supported"),
        }
    }

    fn near(&self, message: &str, text: &str) -> String {
        match text.get(self.at..self.end) {
            Some(token) if !token.is_empty() => format!("{message} at or near \"{token}\""),
            _ => format!("{message} at end of input"),
        }
    }

    /// Returns the byte that PostgreSQL's error names; None: it names none.
    pub fn position(&self) -> Option<usize> {
        match &self.problem {
            Problem::Syntax | Problem::Near(_) | Problem::Unsupported(_) => Some(self.at),
            Problem::Invalid { message, .. } => {
                let is_placed = !UNPLACED.iter().any(|part| message.contains(part));
                is_placed.then_some(self.at)
            }
            Problem::TooDeep | Problem::TooManyTokens | Problem::Cancelled => None,
        }
    }

    /// Returns the SQLSTATE of the problem.
    pub fn state(&self) -> &'static str {
        match &self.problem {
            Problem::Syntax | Problem::Near(_) => "42601",
            Problem::Invalid { state, .. } => state,
            Problem::TooDeep => "54001",
            Problem::TooManyTokens => "54000",
            Problem::Cancelled => "57014",
            Problem::Unsupported(_) => "0A000",
        }
    }
}
