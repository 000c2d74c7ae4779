//! PostgreSQL's syntax tree: what its raw parser yields, before any name is resolved.
//!
//! Nodes have the names of PostgreSQL's parse nodes, and are made as its grammar makes them: `AT TIME ZONE` is a call of `pg_catalog.timezone`, `date '...'` a cast, `int` the type `pg_catalog.int4`, a minus sign before a number part of the number.
//! The one difference is that chains (`a AND b AND c`, `a + b - c`, joins, set operations) are lists, so that the height of a tree is at most [`HEIGHT_MAX`] however long its text is (SY-2, SY-3). Consumers take structs apart without `..`.

pub mod alter;
pub mod change;
pub mod expr;
pub mod object;
pub mod query;
pub mod statement;
pub mod table;
pub mod types;
pub mod user_type;
pub mod utility;

pub use crate::tree::{HEIGHT_MAX, Span, TOKENS_MAX};
pub use alter::*;
pub use change::*;
pub use expr::*;
pub use object::*;
pub use query::*;
pub use statement::*;
pub use table::*;
pub use types::*;
pub use user_type::*;
pub use utility::*;

/// A byte of the text to which errors point. Locations never distinguish trees: any two are equal.
#[derive(Clone, Copy, Debug, Default, Eq)]
pub struct Location(pub u32);

impl PartialEq for Location {
    fn eq(&self, _: &Location) -> bool {
        true
    }
}

/// An identifier: folded to lower case unless it was quoted, at most 63 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ident {
    pub value: String,
    pub at: Location,
}

impl Ident {
    /// Returns an identifier that is not from the text.
    pub fn new(value: impl Into<String>) -> Ident {
        Ident { value: value.into(), at: Location::default() }
    }
}

/// A possibly qualified name of a function, type, collation, operator class or another object that is no relation; at least one part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnyName {
    pub parts: Vec<String>,
    pub at: Location,
}

impl AnyName {
    /// Returns the name without its qualification.
    pub fn last(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }

    /// Returns the parts joined by dots, as errors show them.
    pub fn dotted(&self) -> String {
        self.parts.join(".")
    }
}

/// The name of a relation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeVar {
    pub catalog: Option<String>,
    pub schema: Option<String>,
    pub name: String,
    /// ONLY: without the tables that inherit from it.
    pub only: bool,
    pub at: Location,
}

impl RangeVar {
    /// Returns the parts joined by dots, as errors show them.
    pub fn dotted(&self) -> String {
        let mut text = String::new();
        for part in [&self.catalog, &self.schema].into_iter().flatten() {
            text.push_str(part);
            text.push('.');
        }
        text + &self.name
    }
}

/// A name for a table in a query, with names for its first columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    pub name: Ident,
    pub columns: Vec<Ident>,
}

/// An option of an open list: of COPY, EXPLAIN, a table's storage, a role.
#[derive(Clone, Debug, PartialEq)]
pub struct DefElem {
    /// The qualification of storage options: `toast.autovacuum_enabled`.
    pub namespace: Option<String>,
    /// Lower case, unless quoted.
    pub name: String,
    pub value: Option<DefArg>,
    pub at: Location,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum DefArg {
    /// A string in quotes, or a bare word where the option takes both as the same.
    String(String),
    /// A type name, which a bare word is too where a definition is meant.
    Type(Box<TypeName>),
    Integer(i32),
    /// A number with a point, an exponent or more than 31 bits, as written.
    Float(String),
    Bool(bool),
    /// `*`
    Star,
    /// A keyword that can be no name, such as `on`.
    Keyword(String),
    Operator(Box<Operator>),
    List(Vec<DefArg>),
    /// The name of a column, sequence or other object.
    Name(AnyName),
    Roles(Vec<RoleSpec>),
}

/// The name of a role, or a word in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleSpec {
    pub kind: RoleSpecKind,
    pub at: Location,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleSpecKind {
    Name(String),
    Public,
    CurrentRole,
    CurrentUser,
    SessionUser,
}
