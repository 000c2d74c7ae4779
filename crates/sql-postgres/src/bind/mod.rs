//! The binder (PostgreSQL's parse analysis): from a syntax tree to a plan of the core with names resolved and types known.
//!
//! ```text
//!   tree::Statement ─► range table, expressions with types ─► QueryBlock, Change ─► BoundStatement
//!                      (this module)                          (query plans them)
//! ```

use std::convert::Infallible;
use std::sync::Arc;

use query::catalog::Snapshot;
use query::nodes::node::Lock;
use query::nodes::system_table::SystemTable;
use query::plan::statistics::Statistics;
use query::session::statement;

use crate::error::Result;
use crate::types::oid::Oid;
use crate::value::Value;

pub type Plan = statement::Plan<Infallible>;
pub type BoundStatement = statement::BoundStatement<Infallible>;

/// The session's answers to questions of the binder.
pub trait Session: Statistics {
    /// Returns an error if the statement was cancelled.
    fn check_interrupts(&self) -> Result<()>;

    /// Returns the computed table of that name: of `pg_catalog` and `information_schema`.
    fn system_table(&self, schema: &str, name: &str) -> Option<&'static SystemTable>;
}

/// The facts that binding reads. All but `session`, `values` and `snapshot` belong to the plan-cache context.
pub struct Environment<'s> {
    pub snapshot: Arc<Snapshot>,
    pub database: &'s str,
    pub role: &'s str,
    /// The schemas of `search_path` that exist, in order, by their PostgreSQL names; `$user` is replaced. `pg_catalog` is searched first unless it is among them.
    pub search_path: &'s [String],
    pub session: &'s dyn Session,
    /// Known values of parameters. Estimates use them, but the plan holds for other values.
    pub values: &'s [Value],
    /// The row lock of plain reads, where the isolation level asks for one.
    pub reads_lock: Option<Lock>,
}

/// A bound statement with what a client is told of it.
#[derive(Debug)]
pub struct Bound {
    pub statement: Arc<BoundStatement>,
    /// The type of each parameter: those that were given, and inferred ones in the place of 0.
    pub parameter_types: Vec<Oid>,
    /// The columns of the result; empty for a statement without RETURNING.
    pub fields: Vec<Field>,
}

/// A column of a result, as RowDescription has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub type_oid: Oid,
    /// -1: none.
    pub type_modifier: i32,
    /// The table that the column is of, by its id in the catalog; `None` for an expression.
    pub table: Option<u64>,
    /// From 1; 0 for an expression.
    pub column: u16,
}
