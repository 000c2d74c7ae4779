//! Functions, operators and casts: one table each, whose rows are also those of `pg_proc`, `pg_operator` and `pg_cast`, with PostgreSQL's object identifiers.
//!
//! The binder resolves names and operators over these rows; the core calls what they name.

pub mod aggregate;
pub mod args;
pub mod array;
pub mod bits;
pub mod bytea;
pub mod cast;
pub mod compare;
pub mod domain;
pub mod enums;
pub mod in_range;
pub mod json;
pub mod network;
pub mod numbers;
pub mod numeric;
pub mod ordered_set;
pub mod parameters;
pub mod range;
pub mod record;
pub mod rows;
pub mod send;
pub mod session;
pub mod set;
pub mod state;
pub mod temporal;
pub mod text;
pub mod transaction_ids;
pub mod volatility;
pub mod wal_position;

use std::collections::HashMap;
use std::sync::LazyLock;

use query::nodes::aggregate::AggregateFunction;
use query::nodes::comparison::Comparison;
use query::nodes::function::Function;
use query::nodes::table_function::SetFunction;

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
    OrderedSet(OrderedSetBody),
    /// A window function that the core computes, by its name.
    Window,
    Set(SetBody),
}

/// An aggregate with WITHIN GROUP: its arguments are the direct ones and the expressions of ORDER BY.
#[derive(Clone, Copy, Debug)]
pub struct OrderedSetBody {
    pub function: &'static AggregateFunction,
    /// The direct arguments are a row that the group does not have.
    pub is_hypothetical: bool,
}

/// A set-returning function.
#[derive(Clone, Copy, Debug)]
pub struct SetBody {
    pub function: &'static SetFunction,
    /// The names and types of its OUT columns; none for a function with one column of its result type.
    pub columns: &'static [(&'static str, Oid)],
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

/// The tables of all topics.
static FUNCTIONS: &[&[PgFunction]] = &[
    rows::text::FUNCTIONS,
    rows::bytea::FUNCTIONS,
    rows::misc::FUNCTIONS,
    rows::compare::FUNCTIONS,
    rows::window::FUNCTIONS,
    rows::ordered_set::FUNCTIONS,
    rows::set::FUNCTIONS,
    array::rows::FUNCTIONS,
    enums::FUNCTIONS,
    bits::rows::FUNCTIONS,
    network::rows::FUNCTIONS,
    numeric::FUNCTIONS,
    temporal::rows::FUNCTIONS,
    temporal::rows::COMPARISONS,
    json::rows::FUNCTIONS,
    range::rows::FUNCTIONS,
    record::rows::FUNCTIONS,
    send::FUNCTIONS,
    transaction_ids::FUNCTIONS,
    wal_position::FUNCTIONS,
    crate::session::advisory::FUNCTIONS,
    crate::session::functions::FUNCTIONS,
    crate::system::functions::FUNCTIONS,
    crate::system::functions::privilege::FUNCTIONS,
];
static OPERATORS: &[&[PgOperator]] = &[
    rows::operators::OPERATORS,
    array::rows::OPERATORS,
    enums::OPERATORS,
    bits::rows::OPERATORS,
    network::rows::OPERATORS,
    numeric::OPERATORS,
    temporal::rows::OPERATORS,
    json::rows::OPERATORS,
    range::rows::OPERATORS,
    record::rows::OPERATORS,
    transaction_ids::OPERATORS,
    wal_position::OPERATORS,
];
static CASTS: &[&[PgCast]] = &[
    rows::casts::CASTS,
    bits::rows::CASTS,
    network::rows::CASTS,
    numeric::CASTS,
    temporal::rows::CASTS,
    json::rows::CASTS,
    range::rows::CASTS,
    transaction_ids::CASTS,
];

/// The rows by OID and by name.
struct Index {
    functions: HashMap<Oid, &'static PgFunction>,
    function_names: HashMap<&'static str, Vec<&'static PgFunction>>,
    operators: HashMap<Oid, &'static PgOperator>,
    operator_names: HashMap<&'static str, Vec<&'static PgOperator>>,
    casts: HashMap<(Oid, Oid), &'static PgCast>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut function_names: HashMap<_, Vec<_>> = HashMap::new();
    functions().for_each(|row| function_names.entry(row.name).or_default().push(row));
    let mut operator_names: HashMap<_, Vec<_>> = HashMap::new();
    operators().for_each(|row| operator_names.entry(row.name).or_default().push(row));
    Index {
        functions: functions().map(|row| (row.oid, row)).collect(),
        function_names,
        operators: operators().map(|row| (row.oid, row)).collect(),
        operator_names,
        casts: casts().map(|row| ((row.source, row.target), row)).collect(),
    }
});

/// The rows of `pg_proc`.
pub fn functions() -> impl Iterator<Item = &'static PgFunction> {
    FUNCTIONS.iter().copied().flatten()
}

/// The rows of `pg_operator`.
pub fn operators() -> impl Iterator<Item = &'static PgOperator> {
    OPERATORS.iter().copied().flatten()
}

/// The rows of `pg_cast`.
pub fn casts() -> impl Iterator<Item = &'static PgCast> {
    CASTS.iter().copied().flatten()
}

pub fn function(oid: Oid) -> Option<&'static PgFunction> {
    INDEX.functions.get(&oid).copied()
}

/// Returns the functions of a name, which differ in their arguments.
pub fn functions_named(name: &str) -> &'static [&'static PgFunction] {
    INDEX.function_names.get(name).map_or(&[], |rows| rows)
}

pub fn operator(oid: Oid) -> Option<&'static PgOperator> {
    INDEX.operators.get(&oid).copied()
}

/// Returns the operators of a name, which differ in their operands.
pub fn operators_named(name: &str) -> &'static [&'static PgOperator] {
    INDEX.operator_names.get(name).map_or(&[], |rows| rows)
}

/// Returns the cast between two types; `None` if there is no row for it.
pub fn cast_between(source: Oid, target: Oid) -> Option<&'static PgCast> {
    INDEX.casts.get(&(source, target)).copied()
}

#[cfg(test)]
mod tests;
