//! Functions of pg_lsn: positions of the WAL, and arithmetic with them.
//!
//! A position is the engine's LSN, which is its time too: the number of a commit is the end of its record.

use datum::Result;
use query::exec::host::host;
use query::nodes::comparison::Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::args::{integer, invalid};
use crate::functions::rows::{I, V, folded, operator, row, strict};
use crate::functions::{PgFunction, PgOperator, aggregate, compare};
use crate::types::oid::{BOOL, INT4, NUMERIC, PG_LSN};
use crate::value::{Decimal, Value};

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(4189, "max", &[PG_LSN], 0, PG_LSN, I, true, folded(&aggregate::MAX)),
    row(4190, "min", &[PG_LSN], 0, PG_LSN, I, true, folded(&aggregate::MIN)),
    row(5023, "numeric_pl_pg_lsn", &[NUMERIC, PG_LSN], 0, PG_LSN, I, true, strict!("numeric_pl_pg_lsn", number_plus, I)),
    row(3330, "pg_current_wal_flush_lsn", &[], 0, PG_LSN, V, true, strict!("pg_current_wal_flush_lsn", durable, V)),
    row(2852, "pg_current_wal_insert_lsn", &[], 0, PG_LSN, V, true, strict!("pg_current_wal_insert_lsn", head, V)),
    row(2849, "pg_current_wal_lsn", &[], 0, PG_LSN, V, true, strict!("pg_current_wal_lsn", durable, V)),
    row(6103, "pg_lsn", &[NUMERIC], 0, PG_LSN, I, true, strict!("pg_lsn", of_numeric, I)),
    row(3251, "pg_lsn_cmp", &[PG_LSN, PG_LSN], 0, INT4, I, true, strict!("pg_lsn_cmp", compare::compare, I)),
    row(3233, "pg_lsn_eq", &[PG_LSN, PG_LSN], 0, BOOL, I, true, strict!("pg_lsn_eq", compare::equal, I)),
    row(3234, "pg_lsn_ge", &[PG_LSN, PG_LSN], 0, BOOL, I, true, strict!("pg_lsn_ge", compare::greater_equal, I)),
    row(3235, "pg_lsn_gt", &[PG_LSN, PG_LSN], 0, BOOL, I, true, strict!("pg_lsn_gt", compare::greater, I)),
    row(4187, "pg_lsn_larger", &[PG_LSN, PG_LSN], 0, PG_LSN, I, true, strict!("pg_lsn_larger", compare::larger, I)),
    row(3232, "pg_lsn_le", &[PG_LSN, PG_LSN], 0, BOOL, I, true, strict!("pg_lsn_le", compare::less_equal, I)),
    row(3231, "pg_lsn_lt", &[PG_LSN, PG_LSN], 0, BOOL, I, true, strict!("pg_lsn_lt", compare::less, I)),
    row(3237, "pg_lsn_mi", &[PG_LSN, PG_LSN], 0, NUMERIC, I, true, strict!("pg_lsn_mi", distance, I)),
    row(5024, "pg_lsn_mii", &[PG_LSN, NUMERIC], 0, PG_LSN, I, true, strict!("pg_lsn_mii", minus, I)),
    row(3236, "pg_lsn_ne", &[PG_LSN, PG_LSN], 0, BOOL, I, true, strict!("pg_lsn_ne", compare::not_equal, I)),
    row(5022, "pg_lsn_pli", &[PG_LSN, NUMERIC], 0, PG_LSN, I, true, strict!("pg_lsn_pli", plus, I)),
    row(4188, "pg_lsn_smaller", &[PG_LSN, PG_LSN], 0, PG_LSN, I, true, strict!("pg_lsn_smaller", compare::smaller, I)),
    row(3165, "pg_wal_lsn_diff", &[PG_LSN, PG_LSN], 0, NUMERIC, I, true, strict!("pg_wal_lsn_diff", distance, I)),
];

/// Rows of `pg_operator`, by name.
#[rustfmt::skip]
pub static OPERATORS: &[PgOperator] = &[
    operator(5025, "+", (PG_LSN, NUMERIC, PG_LSN), 5022, (5026, 0), None),
    operator(5026, "+", (NUMERIC, PG_LSN, PG_LSN), 5023, (5025, 0), None),
    operator(3228, "-", (PG_LSN, PG_LSN, NUMERIC), 3237, (0, 0), None),
    operator(5027, "-", (PG_LSN, NUMERIC, PG_LSN), 5024, (0, 0), None),
    operator(3224, "<", (PG_LSN, PG_LSN, BOOL), 3231, (3225, 3227), Some(Less)),
    operator(3226, "<=", (PG_LSN, PG_LSN, BOOL), 3232, (3227, 3225), Some(LessEqual)),
    operator(3223, "<>", (PG_LSN, PG_LSN, BOOL), 3236, (3223, 3222), Some(NotEqual)),
    operator(3222, "=", (PG_LSN, PG_LSN, BOOL), 3233, (3222, 3223), Some(Equal)),
    operator(3225, ">", (PG_LSN, PG_LSN, BOOL), 3235, (3224, 3226), Some(Greater)),
    operator(3227, ">=", (PG_LSN, PG_LSN, BOOL), 3234, (3226, 3224), Some(GreaterEqual)),
];

/// The position up to which the WAL is on disk: nothing is written that is not flushed at once.
fn durable(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::UInt(host(ctx).instance.engine().durable().get()))
}

fn head(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::UInt(host(ctx).instance.engine().pager().wal_head()))
}

fn lsn(values: &[Value], at: usize) -> Result<u64> {
    Ok(integer(values, at)? as u64)
}

fn number(values: &[Value], at: usize) -> Decimal {
    match &values[at] {
        Value::Decimal(number) => number.clone(),
        Value::Int(number) => Decimal::from(*number),
        _ => Decimal::NAN,
    }
}

fn distance(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let bytes = i128::from(lsn(values, 0)?) - i128::from(lsn(values, 1)?);
    Ok(Value::Decimal(Decimal::new(bytes, 0)))
}

fn plus(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    moved(lsn(values, 0)?, &number(values, 1), "add NaN to")
}

fn number_plus(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    moved(lsn(values, 1)?, &number(values, 0), "add NaN to")
}

fn minus(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    moved(lsn(values, 0)?, &number(values, 1).negated(), "subtract NaN from")
}

fn moved(lsn: u64, by: &Decimal, what: &str) -> Result<Value> {
    if by.is_nan() {
        return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, format!("cannot {what} pg_lsn")).into());
    }
    whole(&Decimal::from(lsn).plus(by))
}

fn of_numeric(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    whole(&number(values, 0))
}

/// Rounds a number to a position.
fn whole(number: &Decimal) -> Result<Value> {
    let refused = |what: &str| PgError::new(state::FEATURE_NOT_SUPPORTED, format!("cannot convert {what} to pg_lsn"));
    if number.is_nan() {
        return Err(refused("NaN").into());
    }
    if number.is_infinite() {
        return Err(refused("infinity").into());
    }
    let rounded = number.rounded(0).small().and_then(|number| u64::try_from(number).ok());
    match rounded {
        Some(lsn) => Ok(Value::UInt(lsn)),
        None => Err(invalid("pg_lsn out of range")),
    }
}
