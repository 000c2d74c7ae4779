//! jsonpath: a language of paths and conditions in documents. A value is the text that its output shows; functions parse it once and keep the tree.

mod lexer;
mod parser;
mod print;

pub use parser::parse;

use crate::error::{PgError, Result, state};
use crate::types::io;
use crate::value::{Decimal, Value};

/// A path.
#[derive(Debug, PartialEq)]
pub struct JsonPath {
    /// `lax`: arrays are unwrapped where their elements are meant, and missing parts are no errors.
    pub is_lax: bool,
    pub root: Expr,
}

/// An expression or a condition.
#[derive(Debug, PartialEq)]
pub enum Expr {
    Null,
    Bool(bool),
    Number(Decimal),
    String(Box<str>),
    Variable(Box<str>),
    /// `$`
    Root,
    /// `@`, the item that a filter looks at.
    Current,
    /// The greatest subscript of the array around it.
    Last,
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// A sign before an expression; true for minus.
    Signed(bool, Box<Expr>),
    Compare(Compare, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    IsUnknown(Box<Expr>),
    Exists(Box<Expr>),
    StartsWith(Box<Expr>, Box<Expr>),
    LikeRegex {
        operand: Box<Expr>,
        pattern: Box<str>,
        flags: Flags,
    },
    /// An expression and the parts of its result.
    Access(Box<Expr>, Vec<Accessor>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// XQuery's flags of a regular expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `i`
    pub ignores_case: bool,
    /// `s`
    pub dot_matches_newline: bool,
    /// `m`
    pub multiline: bool,
    /// `x`, which only a literal pattern may have.
    pub is_expanded: bool,
    /// `q`
    pub is_literal: bool,
}

#[derive(Debug, PartialEq)]
pub enum Accessor {
    Key(Box<str>),
    AnyKey,
    AnyElement,
    /// Subscripts and ranges of them.
    Elements(Vec<(Expr, Option<Expr>)>),
    /// The levels of `.**{first to last}`; `LAST_LEVEL` for the deepest.
    AnyLevel(u32, u32),
    Filter(Expr),
    Method(Method),
}

pub const LAST_LEVEL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Type,
    Size,
    Abs,
    Floor,
    Ceiling,
    Double,
    Datetime,
    KeyValue,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Type => "type",
            Method::Size => "size",
            Method::Abs => "abs",
            Method::Floor => "floor",
            Method::Ceiling => "ceiling",
            Method::Double => "double",
            Method::Datetime => "datetime",
            Method::KeyValue => "keyvalue",
        }
    }
}

impl Arithmetic {
    pub fn sign(self) -> char {
        match self {
            Arithmetic::Add => '+',
            Arithmetic::Subtract => '-',
            Arithmetic::Multiply => '*',
            Arithmetic::Divide => '/',
            Arithmetic::Modulo => '%',
        }
    }
}

impl Expr {
    /// Returns whether it is a condition, whose result is true, false or unknown.
    pub fn is_predicate(&self) -> bool {
        use Expr::{And, Compare, Exists, IsUnknown, LikeRegex, Not, Or, StartsWith};
        matches!(
            self,
            Compare(..) | And(..) | Or(..) | Not(_) | IsUnknown(_) | Exists(_) | StartsWith(..) | LikeRegex { .. }
        )
    }

    /// Returns the expressions directly below it in the tree, those of its accessors too.
    pub fn operands(&self) -> impl Iterator<Item = &Expr> {
        use Expr::{Access, And, Arithmetic, Compare, Exists, IsUnknown, LikeRegex, Not, Or, Signed, StartsWith};
        let (operands, accessors): ([Option<&Expr>; 2], &[Accessor]) = match self {
            Arithmetic(_, left, right)
            | Compare(_, left, right)
            | And(left, right)
            | Or(left, right)
            | StartsWith(left, right) => ([Some(left), Some(right)], &[]),
            Signed(_, inner) | Not(inner) | IsUnknown(inner) | Exists(inner) | LikeRegex { operand: inner, .. } => {
                ([Some(inner), None], &[])
            }
            Access(base, accessors) => ([Some(base), None], accessors),
            _ => ([None, None], &[]),
        };
        operands.into_iter().flatten().chain(accessors.iter().flat_map(Accessor::operands))
    }
}

impl Accessor {
    fn operands(&self) -> impl Iterator<Item = &Expr> {
        let (filter, elements): (Option<&Expr>, &[(Expr, Option<Expr>)]) = match self {
            Accessor::Filter(condition) => (Some(condition), &[]),
            Accessor::Elements(ranges) => (None, ranges),
            _ => (None, &[]),
        };
        filter.into_iter().chain(elements.iter().flat_map(|(from, to)| std::iter::once(from).chain(to)))
    }
}

pub fn input(text: &str) -> Result<Value> {
    io::check_no_zero(text)?;
    Ok(Value::Text(parse(text)?.to_string().into()))
}

/// The version of the binary form: the text follows.
const VERSION: u8 = 1;

pub fn receive(bytes: &[u8]) -> Result<Value> {
    match bytes {
        [VERSION, text @ ..] => input(io::utf8(text)?),
        [version, ..] => {
            Err(PgError::new(state::INTERNAL_ERROR, format!("unsupported jsonpath version number: {version}")))
        }
        [] => Err(PgError::new(state::PROTOCOL_VIOLATION, "no data left in message")),
    }
}

pub fn send(text: &str, out: &mut Vec<u8>) {
    out.push(VERSION);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests;
