//! Names and default values of parameters: `proargnames` and `proargdefaults`, of the functions that have them.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::types::oid::Oid;

/// The parameters of a function.
#[derive(Debug)]
pub struct Parameters {
    pub oid: Oid,
    /// One for each input; empty for one without a name.
    pub names: &'static [&'static str],
    /// The values of the last parameters, as SQL writes them.
    pub defaults: &'static [&'static str],
}

const fn of(oid: Oid, names: &'static [&'static str], defaults: &'static [&'static str]) -> Parameters {
    Parameters { oid, names, defaults }
}

/// By OID. Functions that are not served yet are among them.
#[rustfmt::skip]
pub static PARAMETERS: &[Parameters] = &[
    of(1177, &["target", "path", "vars", "silent"], &["'{}'::jsonb", "false"]), // jsonb_path_exists_tz
    of(1179, &["target", "path", "vars", "silent"], &["'{}'::jsonb", "false"]), // jsonb_path_query_tz
    of(1180, &["target", "path", "vars", "silent"], &["'{}'::jsonb", "false"]), // jsonb_path_query_array_tz
    of(1268, &["str", "strict"], &["true"]), // parse_ident
    of(2023, &["target", "path", "vars", "silent"], &["'{}'::jsonb", "false"]), // jsonb_path_query_first_tz
    of(2030, &["target", "path", "vars", "silent"], &["'{}'::jsonb", "false"]), // jsonb_path_match_tz
    of(2096, &["pid", "timeout"], &["0"]), // pg_terminate_backend
    of(3208, &["from_json"], &[]), // jsonb_each
    of(3214, &["from_json", "field_name"], &[]), // jsonb_object_field_text
    of(3215, &["from_json", "element_index"], &[]), // jsonb_array_element
    of(3216, &["from_json", "element_index"], &[]), // jsonb_array_element_text
    of(3217, &["from_json", "path_elems"], &[]), // jsonb_extract_path
    of(3219, &["from_json"], &[]), // jsonb_array_elements
    of(3305, &["jsonb_in", "path", "replacement", "create_if_missing"], &["true"]), // jsonb_set
    of(3322, &["tsvector"], &[]), // unnest
    of(3343, &["from_json", "path_elems"], &[]), // jsonb_delete
    of(3382, &["classid", "objid", "objsubid"], &[]), // pg_identify_object_as_address
    of(3423, &["rootrelid"], &[]), // pg_partition_tree
    of(3425, &["partitionid"], &[]), // pg_partition_ancestors
    of(3427, &["mcv_list"], &[]), // pg_mcv_list_items
    of(3461, &["year", "month", "mday", "hour", "min", "sec"], &[]), // make_timestamp
    of(3462, &["year", "month", "mday", "hour", "min", "sec"], &[]), // make_timestamptz
    of(3463, &["year", "month", "mday", "hour", "min", "sec", "timezone"], &[]), // make_timestamptz
    of(3464, &["years", "months", "weeks", "days", "hours", "mins", "secs"], &["0", "0", "0", "0", "0", "0", "0.0"]), // make_interval
    of(3465, &["from_json"], &[]), // jsonb_array_elements_text
    of(3478, &["from_json", "field_name"], &[]), // jsonb_object_field
    of(3579, &["jsonb_in", "path", "replacement", "insert_after"], &["false"]), // jsonb_insert
    of(3689, &["query"], &[]), // ts_stat
    of(3690, &["query", "weights"], &[]), // ts_stat
    of(3713, &["parser_oid"], &[]), // ts_token_type
    of(3714, &["parser_name"], &[]), // ts_token_type
    of(3715, &["parser_oid", "txt"], &[]), // ts_parse
    of(3716, &["parser_name", "txt"], &[]), // ts_parse
    of(3819, &["multixid"], &[]), // pg_get_multixact_members
    of(3839, &["classid", "objid", "objsubid"], &[]), // pg_identify_object
    of(3846, &["year", "month", "day"], &[]), // make_date
    of(3847, &["hour", "min", "sec"], &[]), // make_time
    of(3932, &["from_json"], &[]), // jsonb_each_text
    of(3940, &["from_json", "path_elems"], &[]), // jsonb_extract_path_text
    of(3947, &["from_json", "field_name"], &[]), // json_object_field
    of(3948, &["from_json", "field_name"], &[]), // json_object_field_text
    of(3949, &["from_json", "element_index"], &[]), // json_array_element
    of(3950, &["from_json", "element_index"], &[]), // json_array_element_text
    of(3951, &["from_json", "path_elems"], &[]), // json_extract_path
    of(3953, &["from_json", "path_elems"], &[]), // json_extract_path_text
    of(3954, &["type", "object_names", "object_args"], &[]), // pg_get_object_address
    of(3955, &["from_json"], &[]), // json_array_elements
    of(3958, &["from_json"], &[]), // json_each
    of(3959, &["from_json"], &[]), // json_each_text
    of(3960, &["base", "from_json", "use_json_as_text"], &["false"]), // json_populate_record
    of(3961, &["base", "from_json", "use_json_as_text"], &["false"]), // json_populate_recordset
    of(3969, &["from_json"], &[]), // json_array_elements_text
    of(4005, &["target", "path", "vars", "silent"], &["'{}'::jsonb", "false"]), // jsonb_path_exists
    of(4006, &["target", "path", "vars", "silent"], &["'{}'::jsonb", "false"]), // jsonb_path_query
    of(4007, &["target", "path", "vars", "silent"], &["'{}'::jsonb", "false"]), // jsonb_path_query_array
    of(4008, &["target", "path", "vars", "silent"], &["'{}'::jsonb", "false"]), // jsonb_path_query_first
    of(4009, &["target", "path", "vars", "silent"], &["'{}'::jsonb", "false"]), // jsonb_path_match
    of(4350, &["", ""], &["'NFC'::text"]), // normalize
    of(4351, &["", ""], &["'NFC'::text"]), // is_normalized
    of(5030, &["tablespace"], &[]), // pg_ls_tmpdir
    of(5054, &["jsonb_in", "path", "replacement", "create_if_missing", "null_value_treatment"], &["true", "'use_json_null'::text"]), // jsonb_set_lax
    of(6119, &["pubname"], &[]), // pg_get_publication_tables
    of(6168, &["xid"], &[]), // pg_xact_commit_timestamp_origin
    of(6183, &["config", "document"], &[]), // ts_debug
    of(6184, &["document"], &[]), // ts_debug
    of(6211, &["value", "type_name"], &[]), // pg_input_error_info
    of(6212, &["mean", "stddev"], &["0", "1"]), // random_normal
    of(6272, &["slot_name"], &[]), // pg_ls_replslotdir
    of(12409, &["typid", "typmod"], &[]), // _pg_char_max_length
    of(12410, &["typid", "typmod"], &[]), // _pg_char_octet_length
    of(12412, &["typid", "typmod"], &[]), // _pg_numeric_precision
    of(12413, &["typid", "typmod"], &[]), // _pg_numeric_precision_radix
    of(12414, &["typid", "typmod"], &[]), // _pg_numeric_scale
    of(12415, &["typid", "typmod"], &[]), // _pg_datetime_precision
    of(12416, &["typid", "mod"], &[]), // _pg_interval_type
];

static BY_OID: LazyLock<HashMap<Oid, &'static Parameters>> =
    LazyLock::new(|| PARAMETERS.iter().map(|row| (row.oid, row)).collect());

/// Returns the named parameters and the defaults of a function; `None` if it has neither.
pub fn parameters(function: Oid) -> Option<&'static Parameters> {
    BY_OID.get(&function).copied()
}
