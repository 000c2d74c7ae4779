//! Rows of ordered-set and hypothetical-set aggregates.

use query::nodes::aggregate::AggregateFunction;

use crate::functions::rows::{I, row};
use crate::functions::{Body, OrderedSetBody, PgFunction, ordered_set};
use crate::types::oid::{ANY, ANYARRAY, ANYELEMENT, FLOAT8, FLOAT8_ARRAY, INT8, INTERVAL, INTERVAL_ARRAY};

const fn of_rows(function: &'static AggregateFunction) -> Body {
    Body::OrderedSet(OrderedSetBody { function, is_hypothetical: false })
}

const fn hypothetical(function: &'static AggregateFunction) -> Body {
    Body::OrderedSet(OrderedSetBody { function, is_hypothetical: true })
}

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(3990, "cume_dist", &[ANY], ANY, FLOAT8, I, false, hypothetical(&ordered_set::CUME_DIST)),
    row(3992, "dense_rank", &[ANY], ANY, INT8, I, false, hypothetical(&ordered_set::DENSE_RANK)),
    row(3984, "mode", &[ANYELEMENT], 0, ANYELEMENT, I, false, of_rows(&ordered_set::MODE)),
    row(3988, "percent_rank", &[ANY], ANY, FLOAT8, I, false, hypothetical(&ordered_set::PERCENT_RANK)),
    row(3974, "percentile_cont", &[FLOAT8, FLOAT8], 0, FLOAT8, I, false, of_rows(&ordered_set::PERCENTILE_CONT)),
    row(3976, "percentile_cont", &[FLOAT8, INTERVAL], 0, INTERVAL, I, false, of_rows(&ordered_set::PERCENTILE_CONT)),
    row(3980, "percentile_cont", &[FLOAT8_ARRAY, FLOAT8], 0, FLOAT8_ARRAY, I, false, of_rows(&ordered_set::PERCENTILE_CONT)),
    row(3982, "percentile_cont", &[FLOAT8_ARRAY, INTERVAL], 0, INTERVAL_ARRAY, I, false, of_rows(&ordered_set::PERCENTILE_CONT)),
    row(3972, "percentile_disc", &[FLOAT8, ANYELEMENT], 0, ANYELEMENT, I, false, of_rows(&ordered_set::PERCENTILE_DISC)),
    row(3978, "percentile_disc", &[FLOAT8_ARRAY, ANYELEMENT], 0, ANYARRAY, I, false, of_rows(&ordered_set::PERCENTILE_DISC)),
    row(3986, "rank", &[ANY], ANY, INT8, I, false, hypothetical(&ordered_set::RANK)),
];
