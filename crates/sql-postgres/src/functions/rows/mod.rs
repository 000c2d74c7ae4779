//! Rows of `pg_proc`, `pg_operator` and `pg_cast` by topic, and what they are written with.
//!
//! Facts and object identifiers are those of the real server; the integration tests compare each row with a recorded extract of its catalogs.

use query::nodes::aggregate::AggregateFunction;
use query::nodes::comparison::Comparison;
use query::nodes::function::{Finish, Folding, Function, PrefixOf, Run};

use crate::functions::{Body, CastContext, CastMethod, PgCast, PgFunction, PgOperator, Volatility};
use crate::types::oid::Oid;

pub mod bytea;
pub mod casts;
pub mod compare;
pub mod misc;
pub mod operators;
pub mod ordered_set;
pub mod set;
pub mod text;
pub mod window;

pub const I: Volatility = Volatility::Immutable;
pub const S: Volatility = Volatility::Stable;
pub const V: Volatility = Volatility::Volatile;

/// A row of `pg_proc`: OID, name, arguments, variadic element, result, volatility, strict, body.
#[allow(clippy::too_many_arguments)]
pub const fn row(
    oid: Oid,
    name: &'static str,
    arguments: &'static [Oid],
    variadic: Oid,
    result: Oid,
    volatility: Volatility,
    is_strict: bool,
    body: Body,
) -> PgFunction {
    PgFunction { oid, name, arguments, variadic, result, volatility, is_strict, body }
}

/// The body of an aggregate.
pub const fn folded(function: &'static AggregateFunction) -> Body {
    Body::Aggregate(function)
}

/// A row of `pg_operator`: OID, name, operands and result, function, commutator and negator, comparison.
pub const fn operator(
    oid: Oid,
    name: &'static str,
    (left, right, result): (Oid, Oid, Oid),
    function: Oid,
    (commutator, negator): (Oid, Oid),
    comparison: Option<Comparison>,
) -> PgOperator {
    PgOperator { oid, name, left, right, result, function, commutator, negator, comparison }
}

/// A row of `pg_cast`.
pub const fn cast(source: Oid, target: Oid, function: Oid, context: CastContext, method: CastMethod) -> PgCast {
    PgCast { source, target, function, context, method }
}

/// The body of a function of `Run::Strict`: name, body, volatility, and the prefix of a pattern match, or the test of terms that it is.
macro_rules! strict {
    ($name:literal, $body:expr, $volatility:ident; $test:ident $(($parts:path))?) => {
        $crate::functions::Body::Scalar(
            const {
                &query::nodes::function::Function {
                    term_test: Some(query::nodes::term_test::TermTest::$test $(($parts))?),
                    ..$crate::functions::rows::function(
                        &[$name],
                        query::nodes::function::Run::Strict($body),
                        $volatility,
                        None,
                    )
                }
            },
        )
    };
    ($name:literal, $body:expr, $volatility:ident $(, $prefix:expr)?) => {
        $crate::functions::rows::scalar!(Strict, $name, $body, $volatility $(, $prefix)?)
    };
}

/// The same of `Run::Values`.
macro_rules! values {
    ($name:literal, $body:expr, $volatility:ident $(, $prefix:expr)?) => {
        $crate::functions::rows::scalar!(Values, $name, $body, $volatility $(, $prefix)?)
    };
}

/// The same of `Run::Pair`.
macro_rules! pair {
    ($name:literal, $body:expr, $volatility:ident $(, $prefix:expr)?) => {
        $crate::functions::rows::scalar!(Pair, $name, $body, $volatility $(, $prefix)?)
    };
}

macro_rules! scalar {
    ($run:ident, $name:literal, $body:expr, $volatility:ident) => {
        $crate::functions::Body::Scalar(
            const {
                &$crate::functions::rows::function(
                    &[$name],
                    query::nodes::function::Run::$run($body),
                    $volatility,
                    None,
                )
            },
        )
    };
    ($run:ident, $name:literal, $body:expr, $volatility:ident, $prefix:expr) => {
        $crate::functions::Body::Scalar(
            const {
                &$crate::functions::rows::function(
                    &[$name],
                    query::nodes::function::Run::$run($body),
                    $volatility,
                    Some($prefix),
                )
            },
        )
    };
}

pub(crate) use {pair, scalar, strict, values};

/// A function of the core. Immutable ones are folded; a result is left as the body gives it.
pub const fn function(
    names: &'static [&'static str],
    run: Run,
    volatility: Volatility,
    prefix: Option<PrefixOf>,
) -> Function {
    Function {
        volatile: matches!(volatility, Volatility::Volatile),
        folding: if matches!(volatility, Volatility::Immutable) { Folding::Operator } else { Folding::None },
        finish: Finish::Unchanged,
        prefix,
        ..Function::new(names, run)
    }
}
