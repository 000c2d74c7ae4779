//! Functions, operators and casts: one table each, whose rows are also those of `pg_proc`, `pg_operator` and `pg_cast`, with PostgreSQL's object identifiers.
//!
//! The binder resolves names and operators over these rows; the core calls what they name.

pub mod state;

use query::nodes::aggregate::AggregateFunction;
use query::nodes::comparison::Comparison;
use query::nodes::function::Function;

use crate::types::oid::Oid;

/// A row of `pg_proc`.
#[derive(Debug)]
pub struct PgFunction {
    pub oid: Oid,
    pub name: &'static str,
    pub arguments: &'static [Oid],
    /// The element type of a VARIADIC last argument; 0 if there is none.
    pub variadic: Oid,
    pub result: Oid,
    pub volatility: Volatility,
    /// NULL if an argument is NULL. Of an aggregate: rows with NULL are not added.
    pub is_strict: bool,
    pub body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    Immutable,
    Stable,
    Volatile,
}

/// The code behind a row of `pg_proc`.
#[derive(Debug)]
pub enum Body {
    Scalar(&'static Function),
    Aggregate(&'static AggregateFunction),
    /// A window function that the core computes, by its name.
    Window,
}

/// A row of `pg_operator`.
#[derive(Debug)]
pub struct PgOperator {
    pub oid: Oid,
    pub name: &'static str,
    /// 0 for a prefix operator.
    pub left: Oid,
    pub right: Oid,
    pub result: Oid,
    /// The function's row in `pg_proc`.
    pub function: Oid,
    pub commutator: Oid,
    pub negator: Oid,
    /// The comparison of a btree operator class that it is: the binder makes the core's comparison of it instead of a call, so that it may lead through an index.
    pub comparison: Option<Comparison>,
}

/// A row of `pg_cast`.
#[derive(Debug)]
pub struct PgCast {
    pub source: Oid,
    pub target: Oid,
    /// The function's row in `pg_proc`; 0 where `method` needs none.
    pub function: Oid,
    pub context: CastContext,
    pub method: CastMethod,
}

/// The weakest context in which a cast is applied without being written: `castcontext`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    Implicit,
    Assignment,
    Explicit,
}

/// `castmethod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastMethod {
    Function,
    /// Output of the one type, read as input of the other.
    InOut,
    /// The values have the same form.
    Binary,
}
