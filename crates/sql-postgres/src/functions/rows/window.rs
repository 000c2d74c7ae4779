//! Rows of window functions, which the core computes.

use crate::functions::rows::{I, row};
use crate::functions::{Body, PgFunction};
use crate::types::oid::{ANYCOMPATIBLE, ANYELEMENT, FLOAT8, INT4, INT8};

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(3104, "cume_dist", &[], 0, FLOAT8, I, false, Body::Window),
    row(3102, "dense_rank", &[], 0, INT8, I, false, Body::Window),
    row(3112, "first_value", &[ANYELEMENT], 0, ANYELEMENT, I, true, Body::Window),
    row(3106, "lag", &[ANYELEMENT], 0, ANYELEMENT, I, true, Body::Window),
    row(3107, "lag", &[ANYELEMENT, INT4], 0, ANYELEMENT, I, true, Body::Window),
    row(3108, "lag", &[ANYCOMPATIBLE, INT4, ANYCOMPATIBLE], 0, ANYCOMPATIBLE, I, true, Body::Window),
    row(3113, "last_value", &[ANYELEMENT], 0, ANYELEMENT, I, true, Body::Window),
    row(3109, "lead", &[ANYELEMENT], 0, ANYELEMENT, I, true, Body::Window),
    row(3110, "lead", &[ANYELEMENT, INT4], 0, ANYELEMENT, I, true, Body::Window),
    row(3111, "lead", &[ANYCOMPATIBLE, INT4, ANYCOMPATIBLE], 0, ANYCOMPATIBLE, I, true, Body::Window),
    row(3114, "nth_value", &[ANYELEMENT, INT4], 0, ANYELEMENT, I, true, Body::Window),
    row(3105, "ntile", &[INT4], 0, INT4, I, true, Body::Window),
    row(3103, "percent_rank", &[], 0, FLOAT8, I, false, Body::Window),
    row(3101, "rank", &[], 0, INT8, I, false, Body::Window),
    row(3100, "row_number", &[], 0, INT8, I, false, Body::Window),
];
