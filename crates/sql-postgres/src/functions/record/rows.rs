//! Rows of functions and operators of records.

use query::nodes::comparison::Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};

use crate::functions::rows::{I, operator, row, strict};
use crate::functions::{PgFunction, PgOperator, compare};
use crate::types::oid::{BOOL, INT4, RECORD};

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(2987, "btrecordcmp", &[RECORD, RECORD], 0, INT4, I, true, strict!("btrecordcmp", compare::compare, I)),
    row(2981, "record_eq", &[RECORD, RECORD], 0, BOOL, I, true, strict!("record_eq", compare::equal, I)),
    row(2986, "record_ge", &[RECORD, RECORD], 0, BOOL, I, true, strict!("record_ge", compare::greater_equal, I)),
    row(2984, "record_gt", &[RECORD, RECORD], 0, BOOL, I, true, strict!("record_gt", compare::greater, I)),
    row(2985, "record_le", &[RECORD, RECORD], 0, BOOL, I, true, strict!("record_le", compare::less_equal, I)),
    row(2983, "record_lt", &[RECORD, RECORD], 0, BOOL, I, true, strict!("record_lt", compare::less, I)),
    row(2982, "record_ne", &[RECORD, RECORD], 0, BOOL, I, true, strict!("record_ne", compare::not_equal, I)),
];

/// Rows of `pg_operator`, by name.
#[rustfmt::skip]
pub static OPERATORS: &[PgOperator] = &[
    operator(2990, "<", (RECORD, RECORD, BOOL), 2983, (2991, 2993), Some(Less)),
    operator(2992, "<=", (RECORD, RECORD, BOOL), 2985, (2993, 2991), Some(LessEqual)),
    operator(2989, "<>", (RECORD, RECORD, BOOL), 2982, (2989, 2988), Some(NotEqual)),
    operator(2988, "=", (RECORD, RECORD, BOOL), 2981, (2988, 2989), Some(Equal)),
    operator(2991, ">", (RECORD, RECORD, BOOL), 2984, (2990, 2992), Some(Greater)),
    operator(2993, ">=", (RECORD, RECORD, BOOL), 2986, (2992, 2990), Some(GreaterEqual)),
];
