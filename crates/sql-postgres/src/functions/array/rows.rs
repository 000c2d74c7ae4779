//! Rows of functions and operators of arrays.

use query::nodes::comparison::Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};

use crate::functions::array::{aggregate as gathering, construct, elements, measure, search, sets, text};
use crate::functions::rows::{I, S, V, folded, operator, row, strict, values};
use crate::functions::text::regexp;
use crate::functions::{Body, PgFunction, PgOperator, aggregate, compare};
use crate::types::oid::{
    ANYARRAY, ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYELEMENT, ANYNONARRAY, BOOL, INT4, INT4_ARRAY, TEXT, TEXT_ARRAY,
};

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(2335, "array_agg", &[ANYNONARRAY], 0, ANYARRAY, I, false, folded(&gathering::ARRAY_AGG)),
    row(4053, "array_agg", &[ANYARRAY], 0, ANYARRAY, I, false, folded(&gathering::ARRAY_AGG)),
    row(378, "array_append", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE], 0, ANYCOMPATIBLEARRAY, I, false, values!("array_append", elements::append, I)),
    row(383, "array_cat", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLEARRAY], 0, ANYCOMPATIBLEARRAY, I, false, values!("array_cat", elements::cat, I)),
    row(747, "array_dims", &[ANYARRAY], 0, TEXT, I, true, strict!("array_dims", measure::dims, I)),
    row(744, "array_eq", &[ANYARRAY, ANYARRAY], 0, BOOL, I, true, strict!("array_eq", compare::equal, I)),
    row(1193, "array_fill", &[ANYELEMENT, INT4_ARRAY], 0, ANYARRAY, I, false, values!("array_fill", construct::fill, I)),
    row(1286, "array_fill", &[ANYELEMENT, INT4_ARRAY, INT4_ARRAY], 0, ANYARRAY, I, false, values!("array_fill", construct::fill, I)),
    row(396, "array_ge", &[ANYARRAY, ANYARRAY], 0, BOOL, I, true, strict!("array_ge", compare::greater_equal, I)),
    row(392, "array_gt", &[ANYARRAY, ANYARRAY], 0, BOOL, I, true, strict!("array_gt", compare::greater, I)),
    row(515, "array_larger", &[ANYARRAY, ANYARRAY], 0, ANYARRAY, I, true, strict!("array_larger", compare::larger, I)),
    row(393, "array_le", &[ANYARRAY, ANYARRAY], 0, BOOL, I, true, strict!("array_le", compare::less_equal, I)),
    row(2176, "array_length", &[ANYARRAY, INT4], 0, INT4, I, true, strict!("array_length", measure::length, I)),
    row(2091, "array_lower", &[ANYARRAY, INT4], 0, INT4, I, true, strict!("array_lower", measure::lower, I)),
    row(391, "array_lt", &[ANYARRAY, ANYARRAY], 0, BOOL, I, true, strict!("array_lt", compare::less, I)),
    row(748, "array_ndims", &[ANYARRAY], 0, INT4, I, true, strict!("array_ndims", measure::ndims, I)),
    row(390, "array_ne", &[ANYARRAY, ANYARRAY], 0, BOOL, I, true, strict!("array_ne", compare::not_equal, I)),
    row(3277, "array_position", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE], 0, INT4, I, false, values!("array_position", search::position, I)),
    row(3278, "array_position", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, INT4], 0, INT4, I, false, values!("array_position", search::position, I)),
    row(3279, "array_positions", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE], 0, INT4_ARRAY, I, false, values!("array_positions", search::positions, I)),
    row(379, "array_prepend", &[ANYCOMPATIBLE, ANYCOMPATIBLEARRAY], 0, ANYCOMPATIBLEARRAY, I, false, values!("array_prepend", elements::prepend, I)),
    row(3167, "array_remove", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE], 0, ANYCOMPATIBLEARRAY, I, false, values!("array_remove", elements::remove, I)),
    row(3168, "array_replace", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, ANYCOMPATIBLE], 0, ANYCOMPATIBLEARRAY, I, false, values!("array_replace", elements::replace, I)),
    row(6216, "array_sample", &[ANYARRAY, INT4], 0, ANYARRAY, V, true, strict!("array_sample", elements::sample, V)),
    row(6215, "array_shuffle", &[ANYARRAY], 0, ANYARRAY, V, true, strict!("array_shuffle", elements::shuffle, V)),
    row(516, "array_smaller", &[ANYARRAY, ANYARRAY], 0, ANYARRAY, I, true, strict!("array_smaller", compare::smaller, I)),
    row(384, "array_to_string", &[ANYARRAY, TEXT, TEXT], 0, TEXT, S, false, values!("array_to_string", text::joined, S)),
    row(395, "array_to_string", &[ANYARRAY, TEXT], 0, TEXT, S, true, strict!("array_to_string", text::joined, S)),
    row(2092, "array_upper", &[ANYARRAY, INT4], 0, INT4, I, true, strict!("array_upper", measure::upper, I)),
    row(2749, "arraycontained", &[ANYARRAY, ANYARRAY], 0, BOOL, I, true, strict!("arraycontained", elements::contained, I; IsHeldBy)),
    row(2748, "arraycontains", &[ANYARRAY, ANYARRAY], 0, BOOL, I, true, strict!("arraycontains", elements::contains, I; Holds)),
    row(2747, "arrayoverlap", &[ANYARRAY, ANYARRAY], 0, BOOL, I, true, strict!("arrayoverlap", elements::overlap, I; Overlaps)),
    row(382, "btarraycmp", &[ANYARRAY, ANYARRAY], 0, INT4, I, true, strict!("btarraycmp", compare::compare, I)),
    row(3179, "cardinality", &[ANYARRAY], 0, INT4, I, true, strict!("cardinality", measure::cardinality, I)),
    row(1191, "generate_subscripts", &[ANYARRAY, INT4, BOOL], 0, INT4, I, true, Body::Set(sets::rows_of(&sets::GENERATE_SUBSCRIPTS))),
    row(1192, "generate_subscripts", &[ANYARRAY, INT4], 0, INT4, I, true, Body::Set(sets::rows_of(&sets::GENERATE_SUBSCRIPTS))),
    row(2050, "max", &[ANYARRAY], 0, ANYARRAY, I, true, folded(&aggregate::MAX)),
    row(2051, "min", &[ANYARRAY], 0, ANYARRAY, I, true, folded(&aggregate::MIN)),
    row(3396, "regexp_match", &[TEXT, TEXT], 0, TEXT_ARRAY, I, true, strict!("regexp_match", regexp::regexp_match, I)),
    row(3397, "regexp_match", &[TEXT, TEXT, TEXT], 0, TEXT_ARRAY, I, true, strict!("regexp_match", regexp::regexp_match, I)),
    row(2763, "regexp_matches", &[TEXT, TEXT], 0, TEXT_ARRAY, I, true, Body::Set(sets::rows_of(&sets::REGEXP_MATCHES))),
    row(2764, "regexp_matches", &[TEXT, TEXT, TEXT], 0, TEXT_ARRAY, I, true, Body::Set(sets::rows_of(&sets::REGEXP_MATCHES))),
    row(2767, "regexp_split_to_array", &[TEXT, TEXT], 0, TEXT_ARRAY, I, true, strict!("regexp_split_to_array", regexp::split_to_array, I)),
    row(2768, "regexp_split_to_array", &[TEXT, TEXT, TEXT], 0, TEXT_ARRAY, I, true, strict!("regexp_split_to_array", regexp::split_to_array, I)),
    row(376, "string_to_array", &[TEXT, TEXT, TEXT], 0, TEXT_ARRAY, I, false, values!("string_to_array", text::split, I)),
    row(394, "string_to_array", &[TEXT, TEXT], 0, TEXT_ARRAY, I, false, values!("string_to_array", text::split, I)),
    row(6172, "trim_array", &[ANYARRAY, INT4], 0, ANYARRAY, I, true, strict!("trim_array", elements::trim, I)),
    row(2331, "unnest", &[ANYARRAY], 0, ANYELEMENT, I, true, Body::Set(sets::rows_of(&sets::UNNEST))),
    row(3218, "width_bucket", &[ANYCOMPATIBLE, ANYCOMPATIBLEARRAY], 0, INT4, I, true, strict!("width_bucket", search::width_bucket, I)),
];

/// Rows of `pg_operator`, by name.
#[rustfmt::skip]
pub static OPERATORS: &[PgOperator] = &[
    operator(2750, "&&", (ANYARRAY, ANYARRAY, BOOL), 2747, (2750, 0), None),
    operator(1072, "<", (ANYARRAY, ANYARRAY, BOOL), 391, (1073, 1075), Some(Less)),
    operator(1074, "<=", (ANYARRAY, ANYARRAY, BOOL), 393, (1075, 1073), Some(LessEqual)),
    operator(1071, "<>", (ANYARRAY, ANYARRAY, BOOL), 390, (1071, 1070), Some(NotEqual)),
    operator(2752, "<@", (ANYARRAY, ANYARRAY, BOOL), 2749, (2751, 0), None),
    operator(1070, "=", (ANYARRAY, ANYARRAY, BOOL), 744, (1070, 1071), Some(Equal)),
    operator(1073, ">", (ANYARRAY, ANYARRAY, BOOL), 392, (1072, 1074), Some(Greater)),
    operator(1075, ">=", (ANYARRAY, ANYARRAY, BOOL), 396, (1074, 1072), Some(GreaterEqual)),
    operator(2751, "@>", (ANYARRAY, ANYARRAY, BOOL), 2748, (2752, 0), None),
    operator(349, "||", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, ANYCOMPATIBLEARRAY), 378, (0, 0), None),
    operator(374, "||", (ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYCOMPATIBLEARRAY), 379, (0, 0), None),
    operator(375, "||", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLEARRAY, ANYCOMPATIBLEARRAY), 383, (0, 0), None),
];
