//! The syntax tree. It holds the text's meaning for the binder and nothing of its layout, except spans.
//!
//! Chains (`a AND b AND c`, `a + b - c`, `q UNION r UNION s`, joins) are lists, so the height of a tree is bounded by [`HEIGHT_MAX`] however long its text is. Consumers take structs apart without `..`, so that a new
//! field is a compile error in each of them.

pub mod account;
pub mod change;
pub mod expr;
pub mod query;
pub mod statement;
pub mod table;
pub mod types;
pub mod walk;

pub use account::*;
pub use change::*;
pub use expr::*;
pub use query::*;
pub use statement::*;
pub use table::*;
pub use types::*;

/// The largest number of nested constructs (expressions, queries, parenthesised joins) in a statement. Every consumer may recurse that deep.
pub const HEIGHT_MAX: usize = 400;

/// The most SELECTs within each other, as in MySQL.
pub const BLOCKS_MAX: usize = 63;

/// The most tokens of a statement: what bounds the memory that its tree takes.
pub const TOKENS_MAX: u32 = 2_000_000;

/// A range of bytes of the statement's text. Spans never distinguish trees: any two are equal.
#[derive(Clone, Copy, Debug, Default, Eq)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The text of the span; empty if the span is not of this text.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

/// An identifier with its quotes resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ident {
    pub value: String,
    pub span: Span,
}

impl Ident {
    /// An identifier that is not from the text.
    pub fn new(value: impl Into<String>) -> Ident {
        Ident { value: value.into(), span: Span::default() }
    }
}

/// `schema.name`, or a name alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    pub schema: Option<String>,
    pub name: String,
}
