//! Rows of set-returning functions.

use query::nodes::table_function::SetFunction;

use crate::functions::rows::{I, S, V, row};
use crate::functions::{Body, PgFunction, SetBody, set};
use crate::types::oid::{INT4, INT8, INTERVAL, NUMERIC, Oid, RECORD, REGCLASS, TEXT, TIMESTAMP, TIMESTAMPTZ};

/// The body of a function with these OUT columns; none for one column of its result type.
pub const fn rows_of(function: &'static SetFunction, columns: &'static [(&'static str, Oid)]) -> Body {
    Body::Set(SetBody { function, columns })
}

/// The type `text[]`.
const TEXTS: Oid = 1009;

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(938, "generate_series", &[TIMESTAMP, TIMESTAMP, INTERVAL], 0, TIMESTAMP, I, true, rows_of(&set::SERIES_TIMESTAMP, &[])),
    row(939, "generate_series", &[TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL], 0, TIMESTAMPTZ, S, true, rows_of(&set::SERIES_TIMESTAMPTZ, &[])),
    row(1066, "generate_series", &[INT4, INT4, INT4], 0, INT4, I, true, rows_of(&set::SERIES_4, &[])),
    row(1067, "generate_series", &[INT4, INT4], 0, INT4, I, true, rows_of(&set::SERIES_4, &[])),
    row(1068, "generate_series", &[INT8, INT8, INT8], 0, INT8, I, true, rows_of(&set::SERIES_8, &[])),
    row(1069, "generate_series", &[INT8, INT8], 0, INT8, I, true, rows_of(&set::SERIES_8, &[])),
    row(3259, "generate_series", &[NUMERIC, NUMERIC, NUMERIC], 0, NUMERIC, I, true, rows_of(&set::SERIES_NUMERIC, &[])),
    row(3260, "generate_series", &[NUMERIC, NUMERIC], 0, NUMERIC, I, true, rows_of(&set::SERIES_NUMERIC, &[])),
    row(6274, "generate_series", &[TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL, TEXT], 0, TIMESTAMPTZ, I, true, rows_of(&set::SERIES_TIMESTAMPTZ, &[])),
    row(3035, "pg_listening_channels", &[], 0, TEXT, S, true, rows_of(&set::LISTENING_CHANNELS, &[])),
    row(2289, "pg_options_to_table", &[TEXTS], 0, RECORD, S, true, rows_of(&set::OPTIONS, &[("option_name", TEXT), ("option_value", TEXT)])),
    row(3425, "pg_partition_ancestors", &[REGCLASS], 0, REGCLASS, V, true, rows_of(&set::PARTITION_ANCESTORS, &[])),
    row(2765, "regexp_split_to_table", &[TEXT, TEXT], 0, TEXT, I, true, rows_of(&set::REGEXP_SPLIT, &[])),
    row(2766, "regexp_split_to_table", &[TEXT, TEXT, TEXT], 0, TEXT, I, true, rows_of(&set::REGEXP_SPLIT, &[])),
    row(6160, "string_to_table", &[TEXT, TEXT], 0, TEXT, I, false, rows_of(&set::STRING_TO_TABLE, &[])),
    row(6161, "string_to_table", &[TEXT, TEXT, TEXT], 0, TEXT, I, false, rows_of(&set::STRING_TO_TABLE, &[])),
];
