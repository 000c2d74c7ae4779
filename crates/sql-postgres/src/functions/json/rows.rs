//! Rows of `pg_proc`, `pg_operator` and `pg_cast` of json and jsonb.

use query::nodes::comparison::Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};

use crate::functions::CastContext::{Assignment, Explicit};
use crate::functions::CastMethod::{Function, InOut};
use crate::functions::json::{access, aggregate, cast as casts, change, contain, make, path, text};
use crate::functions::rows::{I, S, cast, folded, operator, row, strict, values};
use crate::functions::{PgCast, PgFunction, PgOperator, compare};
use crate::types::oid::{
    ANY, ANYELEMENT, BOOL, FLOAT4, FLOAT8, INT2, INT4, INT8, JSON, JSONB, JSONPATH, NUMERIC, TEXT,
};

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(3556, "bool", &[JSONB], 0, BOOL, I, true, strict!("bool", casts::to_bool, I)),
    row(3453, "float4", &[JSONB], 0, FLOAT4, I, true, strict!("float4", casts::to_float4, I)),
    row(2580, "float8", &[JSONB], 0, FLOAT8, I, true, strict!("float8", casts::to_float8, I)),
    row(3450, "int2", &[JSONB], 0, INT2, I, true, strict!("int2", casts::to_int2, I)),
    row(3451, "int4", &[JSONB], 0, INT4, I, true, strict!("int4", casts::to_int4, I)),
    row(3452, "int8", &[JSONB], 0, INT8, I, true, strict!("int8", casts::to_int8, I)),
    row(3175, "json_agg", &[ANYELEMENT], 0, JSON, S, false, folded(&aggregate::JSON_AGG)),
    row(6276, "json_agg_strict", &[ANYELEMENT], 0, JSON, S, false, folded(&aggregate::JSON_AGG_STRICT)),
    row(3949, "json_array_element", &[JSON, INT4], 0, JSON, I, true, strict!("json_array_element", text::array_element, I)),
    row(3950, "json_array_element_text", &[JSON, INT4], 0, TEXT, I, true, strict!("json_array_element_text", text::array_element_text, I)),
    row(3956, "json_array_length", &[JSON], 0, INT4, I, true, strict!("json_array_length", text::array_length, I)),
    row(3198, "json_build_array", &[ANY], ANY, JSON, S, false, values!("json_build_array", make::json_build_array, S)),
    row(3199, "json_build_array", &[], 0, JSON, S, false, values!("json_build_array", make::json_build_array, S)),
    row(3200, "json_build_object", &[ANY], ANY, JSON, S, false, values!("json_build_object", make::json_build_object, S)),
    row(3201, "json_build_object", &[], 0, JSON, S, false, values!("json_build_object", make::json_build_object, S)),
    row(3197, "json_object_agg", &[ANY, ANY], 0, JSON, S, false, folded(&aggregate::JSON_OBJECT_AGG)),
    row(6280, "json_object_agg_strict", &[ANY, ANY], 0, JSON, S, false, folded(&aggregate::JSON_OBJECT_AGG_STRICT)),
    row(6281, "json_object_agg_unique", &[ANY, ANY], 0, JSON, S, false, folded(&aggregate::JSON_OBJECT_AGG_UNIQUE)),
    row(6282, "json_object_agg_unique_strict", &[ANY, ANY], 0, JSON, S, false, folded(&aggregate::JSON_OBJECT_AGG_UNIQUE_STRICT)),
    row(3947, "json_object_field", &[JSON, TEXT], 0, JSON, I, true, strict!("json_object_field", text::object_field, I)),
    row(3948, "json_object_field_text", &[JSON, TEXT], 0, TEXT, I, true, strict!("json_object_field_text", text::object_field_text, I)),
    row(3261, "json_strip_nulls", &[JSON], 0, JSON, I, true, strict!("json_strip_nulls", text::strip_nulls, I)),
    row(3968, "json_typeof", &[JSON], 0, TEXT, I, true, strict!("json_typeof", text::json_typeof, I)),
    row(3267, "jsonb_agg", &[ANYELEMENT], 0, JSONB, S, false, folded(&aggregate::JSONB_AGG)),
    row(6284, "jsonb_agg_strict", &[ANYELEMENT], 0, JSONB, S, false, folded(&aggregate::JSONB_AGG_STRICT)),
    row(3215, "jsonb_array_element", &[JSONB, INT4], 0, JSONB, I, true, strict!("jsonb_array_element", access::array_element, I)),
    row(3216, "jsonb_array_element_text", &[JSONB, INT4], 0, TEXT, I, true, strict!("jsonb_array_element_text", access::array_element_text, I)),
    row(3207, "jsonb_array_length", &[JSONB], 0, INT4, I, true, strict!("jsonb_array_length", access::array_length, I)),
    row(3271, "jsonb_build_array", &[ANY], ANY, JSONB, S, false, values!("jsonb_build_array", make::jsonb_build_array, S)),
    row(3272, "jsonb_build_array", &[], 0, JSONB, S, false, values!("jsonb_build_array", make::jsonb_build_array, S)),
    row(3273, "jsonb_build_object", &[ANY], ANY, JSONB, S, false, values!("jsonb_build_object", make::jsonb_build_object, S)),
    row(3274, "jsonb_build_object", &[], 0, JSONB, S, false, values!("jsonb_build_object", make::jsonb_build_object, S)),
    row(4044, "jsonb_cmp", &[JSONB, JSONB], 0, INT4, I, true, strict!("jsonb_cmp", compare::compare, I)),
    row(3301, "jsonb_concat", &[JSONB, JSONB], 0, JSONB, I, true, strict!("jsonb_concat", change::concat, I)),
    row(4050, "jsonb_contained", &[JSONB, JSONB], 0, BOOL, I, true, strict!("jsonb_contained", contain::contained, I)),
    row(4046, "jsonb_contains", &[JSONB, JSONB], 0, BOOL, I, true, strict!("jsonb_contains", contain::contains, I)),
    row(3302, "jsonb_delete", &[JSONB, TEXT], 0, JSONB, I, true, strict!("jsonb_delete", change::delete, I)),
    row(3303, "jsonb_delete", &[JSONB, INT4], 0, JSONB, I, true, strict!("jsonb_delete", change::delete_element, I)),
    row(4043, "jsonb_eq", &[JSONB, JSONB], 0, BOOL, I, true, strict!("jsonb_eq", compare::equal, I)),
    row(4047, "jsonb_exists", &[JSONB, TEXT], 0, BOOL, I, true, strict!("jsonb_exists", access::exists, I)),
    row(4042, "jsonb_ge", &[JSONB, JSONB], 0, BOOL, I, true, strict!("jsonb_ge", compare::greater_equal, I)),
    row(4040, "jsonb_gt", &[JSONB, JSONB], 0, BOOL, I, true, strict!("jsonb_gt", compare::greater, I)),
    row(4041, "jsonb_le", &[JSONB, JSONB], 0, BOOL, I, true, strict!("jsonb_le", compare::less_equal, I)),
    row(4039, "jsonb_lt", &[JSONB, JSONB], 0, BOOL, I, true, strict!("jsonb_lt", compare::less, I)),
    row(4038, "jsonb_ne", &[JSONB, JSONB], 0, BOOL, I, true, strict!("jsonb_ne", compare::not_equal, I)),
    row(3270, "jsonb_object_agg", &[ANY, ANY], 0, JSONB, I, false, folded(&aggregate::JSONB_OBJECT_AGG)),
    row(6288, "jsonb_object_agg_strict", &[ANY, ANY], 0, JSONB, I, false, folded(&aggregate::JSONB_OBJECT_AGG_STRICT)),
    row(6289, "jsonb_object_agg_unique", &[ANY, ANY], 0, JSONB, I, false, folded(&aggregate::JSONB_OBJECT_AGG_UNIQUE)),
    row(6290, "jsonb_object_agg_unique_strict", &[ANY, ANY], 0, JSONB, I, false, folded(&aggregate::JSONB_OBJECT_AGG_UNIQUE_STRICT)),
    row(3478, "jsonb_object_field", &[JSONB, TEXT], 0, JSONB, I, true, strict!("jsonb_object_field", access::object_field, I)),
    row(3214, "jsonb_object_field_text", &[JSONB, TEXT], 0, TEXT, I, true, strict!("jsonb_object_field_text", access::object_field_text, I)),
    row(4005, "jsonb_path_exists", &[JSONB, JSONPATH, JSONB, BOOL], 0, BOOL, I, true, strict!("jsonb_path_exists", path::exists, I)),
    row(4010, "jsonb_path_exists_opr", &[JSONB, JSONPATH], 0, BOOL, I, true, strict!("jsonb_path_exists_opr", path::exists_operator, I)),
    row(4009, "jsonb_path_match", &[JSONB, JSONPATH, JSONB, BOOL], 0, BOOL, I, true, strict!("jsonb_path_match", path::matches, I)),
    row(4011, "jsonb_path_match_opr", &[JSONB, JSONPATH], 0, BOOL, I, true, strict!("jsonb_path_match_opr", path::match_operator, I)),
    row(4007, "jsonb_path_query_array", &[JSONB, JSONPATH, JSONB, BOOL], 0, JSONB, I, true, strict!("jsonb_path_query_array", path::query_array, I)),
    row(4008, "jsonb_path_query_first", &[JSONB, JSONPATH, JSONB, BOOL], 0, JSONB, I, true, strict!("jsonb_path_query_first", path::query_first, I)),
    row(3306, "jsonb_pretty", &[JSONB], 0, TEXT, I, true, strict!("jsonb_pretty", change::pretty, I)),
    row(3262, "jsonb_strip_nulls", &[JSONB], 0, JSONB, I, true, strict!("jsonb_strip_nulls", change::strip_nulls, I)),
    row(3210, "jsonb_typeof", &[JSONB], 0, TEXT, I, true, strict!("jsonb_typeof", access::jsonb_typeof, I)),
    row(3449, "numeric", &[JSONB], 0, NUMERIC, I, true, strict!("numeric", casts::to_numeric, I)),
    row(3176, "to_json", &[ANYELEMENT], 0, JSON, S, true, strict!("to_json", make::to_json, S)),
    row(3787, "to_jsonb", &[ANYELEMENT], 0, JSONB, S, true, strict!("to_jsonb", make::to_jsonb, S)),
];

/// Rows of `pg_operator`, by name.
#[rustfmt::skip]
pub static OPERATORS: &[PgOperator] = &[
    operator(3285, "-", (JSONB, TEXT, JSONB), 3302, (0, 0), None),
    operator(3286, "-", (JSONB, INT4, JSONB), 3303, (0, 0), None),
    operator(3211, "->", (JSONB, TEXT, JSONB), 3478, (0, 0), None),
    operator(3212, "->", (JSONB, INT4, JSONB), 3215, (0, 0), None),
    operator(3962, "->", (JSON, TEXT, JSON), 3947, (0, 0), None),
    operator(3964, "->", (JSON, INT4, JSON), 3949, (0, 0), None),
    operator(3477, "->>", (JSONB, TEXT, TEXT), 3214, (0, 0), None),
    operator(3481, "->>", (JSONB, INT4, TEXT), 3216, (0, 0), None),
    operator(3963, "->>", (JSON, TEXT, TEXT), 3948, (0, 0), None),
    operator(3965, "->>", (JSON, INT4, TEXT), 3950, (0, 0), None),
    operator(3242, "<", (JSONB, JSONB, BOOL), 4039, (3243, 3245), Some(Less)),
    operator(3244, "<=", (JSONB, JSONB, BOOL), 4041, (3245, 3243), Some(LessEqual)),
    operator(3241, "<>", (JSONB, JSONB, BOOL), 4038, (3241, 3240), Some(NotEqual)),
    operator(3250, "<@", (JSONB, JSONB, BOOL), 4050, (3246, 0), None),
    operator(3240, "=", (JSONB, JSONB, BOOL), 4043, (3240, 3241), Some(Equal)),
    operator(3243, ">", (JSONB, JSONB, BOOL), 4040, (3242, 3244), Some(Greater)),
    operator(3245, ">=", (JSONB, JSONB, BOOL), 4042, (3244, 3242), Some(GreaterEqual)),
    operator(3247, "?", (JSONB, TEXT, BOOL), 4047, (0, 0), None),
    operator(3246, "@>", (JSONB, JSONB, BOOL), 4046, (3250, 0), None),
    operator(3284, "||", (JSONB, JSONB, JSONB), 3301, (0, 0), None),
    operator(4012, "@?", (JSONB, JSONPATH, BOOL), 4010, (0, 0), None),
    operator(4013, "@@", (JSONB, JSONPATH, BOOL), 4011, (0, 0), None),
];

/// Rows of `pg_cast`, by source and target.
pub static CASTS: &[PgCast] = &[
    cast(JSON, JSONB, 0, Assignment, InOut),
    cast(JSONB, BOOL, 3556, Explicit, Function),
    cast(JSONB, INT8, 3452, Explicit, Function),
    cast(JSONB, INT2, 3450, Explicit, Function),
    cast(JSONB, INT4, 3451, Explicit, Function),
    cast(JSONB, JSON, 0, Assignment, InOut),
    cast(JSONB, FLOAT4, 3453, Explicit, Function),
    cast(JSONB, FLOAT8, 2580, Explicit, Function),
    cast(JSONB, NUMERIC, 3449, Explicit, Function),
];
