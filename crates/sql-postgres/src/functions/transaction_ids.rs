//! Functions of transaction ids: xid8, pg_snapshot, and their older forms with bigint and txid_snapshot.
//!
//! An id is that of the engine's transaction, which gets one with its first change or lock, or when one of these functions asks for it. Ids are given to other things too, so those of transactions are not gapless.

use datum::Result;
use engine::rows::TransactionOutcome;
use query::batch::Row;
use query::exec::host::host;
use query::nodes::comparison::Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::table_function::SetFunction;

use crate::functions::CastContext::Explicit;
use crate::functions::CastMethod::Function;
use crate::functions::args::{bytes, integer, invalid};
use crate::functions::rows::set::rows_of;
use crate::functions::rows::{I, S, V, cast, folded, operator, row, strict};
use crate::functions::set::known_rows;
use crate::functions::{PgCast, PgFunction, PgOperator, aggregate, compare};
use crate::types::oid::{BOOL, INT4, INT8, PG_SNAPSHOT, TEXT, TXID_SNAPSHOT, XID, XID8};
use crate::types::snapshot::{TransactionSnapshot, corrupt};
use crate::value::Value;

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(5099, "max", &[XID8], 0, XID8, I, true, folded(&aggregate::MAX)),
    row(5100, "min", &[XID8], 0, XID8, I, true, folded(&aggregate::MIN)),
    row(5061, "pg_current_snapshot", &[], 0, PG_SNAPSHOT, S, true, strict!("pg_current_snapshot", current_snapshot, S)),
    row(5059, "pg_current_xact_id", &[], 0, XID8, S, true, strict!("pg_current_xact_id", current_id, S)),
    row(5060, "pg_current_xact_id_if_assigned", &[], 0, XID8, S, true, strict!("pg_current_xact_id_if_assigned", current_id_if_assigned, S)),
    row(5064, "pg_snapshot_xip", &[PG_SNAPSHOT], 0, XID8, I, true, rows_of(&XIP, &[])),
    row(5063, "pg_snapshot_xmax", &[PG_SNAPSHOT], 0, XID8, I, true, strict!("pg_snapshot_xmax", xmax, I)),
    row(5062, "pg_snapshot_xmin", &[PG_SNAPSHOT], 0, XID8, I, true, strict!("pg_snapshot_xmin", xmin, I)),
    row(5065, "pg_visible_in_snapshot", &[XID8, PG_SNAPSHOT], 0, BOOL, I, true, strict!("pg_visible_in_snapshot", is_visible, I)),
    row(5066, "pg_xact_status", &[XID8], 0, TEXT, V, true, strict!("pg_xact_status", status, V)),
    row(2943, "txid_current", &[], 0, INT8, S, true, strict!("txid_current", current_txid, S)),
    row(3348, "txid_current_if_assigned", &[], 0, INT8, S, true, strict!("txid_current_if_assigned", current_txid_if_assigned, S)),
    row(2944, "txid_current_snapshot", &[], 0, TXID_SNAPSHOT, S, true, strict!("txid_current_snapshot", current_snapshot, S)),
    row(2947, "txid_snapshot_xip", &[TXID_SNAPSHOT], 0, INT8, I, true, rows_of(&TXID_XIP, &[])),
    row(2946, "txid_snapshot_xmax", &[TXID_SNAPSHOT], 0, INT8, I, true, strict!("txid_snapshot_xmax", txid_xmax, I)),
    row(2945, "txid_snapshot_xmin", &[TXID_SNAPSHOT], 0, INT8, I, true, strict!("txid_snapshot_xmin", txid_xmin, I)),
    row(3360, "txid_status", &[INT8], 0, TEXT, V, true, strict!("txid_status", status, V)),
    row(2948, "txid_visible_in_snapshot", &[INT8, TXID_SNAPSHOT], 0, BOOL, I, true, strict!("txid_visible_in_snapshot", is_visible, I)),
    row(5071, "xid", &[XID8], 0, XID, I, true, strict!("xid", xid_of_xid8, I)),
    row(5097, "xid8_larger", &[XID8, XID8], 0, XID8, I, true, strict!("xid8_larger", compare::larger, I)),
    row(5098, "xid8_smaller", &[XID8, XID8], 0, XID8, I, true, strict!("xid8_smaller", compare::smaller, I)),
    row(5096, "xid8cmp", &[XID8, XID8], 0, INT4, I, true, strict!("xid8cmp", compare::compare, I)),
    row(5084, "xid8eq", &[XID8, XID8], 0, BOOL, I, true, strict!("xid8eq", compare::equal, I)),
    row(5037, "xid8ge", &[XID8, XID8], 0, BOOL, I, true, strict!("xid8ge", compare::greater_equal, I)),
    row(5035, "xid8gt", &[XID8, XID8], 0, BOOL, I, true, strict!("xid8gt", compare::greater, I)),
    row(5036, "xid8le", &[XID8, XID8], 0, BOOL, I, true, strict!("xid8le", compare::less_equal, I)),
    row(5034, "xid8lt", &[XID8, XID8], 0, BOOL, I, true, strict!("xid8lt", compare::less, I)),
    row(5085, "xid8ne", &[XID8, XID8], 0, BOOL, I, true, strict!("xid8ne", compare::not_equal, I)),
];

/// Rows of `pg_operator`, by name.
#[rustfmt::skip]
pub static OPERATORS: &[PgOperator] = &[
    operator(5073, "<", (XID8, XID8, BOOL), 5034, (5074, 5076), Some(Less)),
    operator(5075, "<=", (XID8, XID8, BOOL), 5036, (5076, 5074), Some(LessEqual)),
    operator(5072, "<>", (XID8, XID8, BOOL), 5085, (5072, 5068), Some(NotEqual)),
    operator(5068, "=", (XID8, XID8, BOOL), 5084, (5068, 5072), Some(Equal)),
    operator(5074, ">", (XID8, XID8, BOOL), 5035, (5073, 5075), Some(Greater)),
    operator(5076, ">=", (XID8, XID8, BOOL), 5037, (5075, 5073), Some(GreaterEqual)),
];

/// Rows of `pg_cast`.
pub static CASTS: &[PgCast] = &[cast(XID8, XID, 5071, Explicit, Function)];

static XIP: SetFunction = SetFunction {
    name: "pg_snapshot_xip",
    strict: true,
    volatile: false,
    start: |_, values, _| Ok(known_rows(xip(values, Value::UInt)?)),
};
static TXID_XIP: SetFunction = SetFunction {
    name: "txid_snapshot_xip",
    strict: true,
    volatile: false,
    start: |_, values, _| Ok(known_rows(xip(values, |id| Value::Int(id as i64))?)),
};

fn snapshot(values: &[Value], at: usize) -> Result<TransactionSnapshot> {
    Ok(TransactionSnapshot::of_bytes(bytes(values, at)?).ok_or_else(corrupt)?)
}

fn xip(values: &[Value], shown: fn(u64) -> Value) -> Result<Vec<Row>> {
    Ok(snapshot(values, 0)?.xip.into_iter().map(|id| vec![shown(id)]).collect())
}

fn xmin(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::UInt(snapshot(values, 0)?.xmin))
}

fn xmax(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::UInt(snapshot(values, 0)?.xmax))
}

fn txid_xmin(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(snapshot(values, 0)?.xmin as i64))
}

fn txid_xmax(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(snapshot(values, 0)?.xmax as i64))
}

fn is_visible(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(snapshot(values, 1)?.sees(integer(values, 0)? as u64).into())
}

fn xid_of_xid8(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::UInt(integer(values, 0)? as u64 & u64::from(u32::MAX)))
}

fn id_of_transaction(ctx: &mut EvalContext) -> Result<u64> {
    host(ctx).txn()?.assigned_id().map_err(query::engine_fault::engine_fault)
}

fn current_id(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    id_of_transaction(ctx).map(Value::UInt)
}

fn current_txid(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(id_of_transaction(ctx)? as i64))
}

fn current_id_if_assigned(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(host(ctx).txn()?.id().map_or(Value::Null, Value::UInt))
}

fn current_txid_if_assigned(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(host(ctx).txn()?.id().map_or(Value::Null, |id| Value::Int(id as i64)))
}

fn current_snapshot(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let seen = host(ctx).txn()?.seen_ids();
    host(ctx).seen = host(ctx).seen.max(seen.durability_lsn);
    Ok(TransactionSnapshot { xmin: seen.first, xmax: seen.end, xip: seen.unseen }.to_value())
}

/// Returns how a transaction has ended; NULL if that is no longer known.
fn status(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let id = integer(values, 0)? as u64;
    let outcome = host(ctx).instance.engine().rows().outcome(id);
    Ok(match outcome {
        TransactionOutcome::Open => Value::text("in progress"),
        TransactionOutcome::Committed(lsn) => {
            host(ctx).seen = host(ctx).seen.max(lsn);
            Value::text("committed")
        }
        TransactionOutcome::Aborted => Value::text("aborted"),
        TransactionOutcome::Forgotten => Value::Null,
        TransactionOutcome::Unborn => return Err(invalid(format!("transaction ID {id} is in the future"))),
    })
}
