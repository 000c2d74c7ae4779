//! Send functions of types: the binary form of a value as bytea.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::functions::PgFunction;
use crate::functions::rows::{I, S, row, strict};
use crate::functions::state::StateOf as _;
use crate::types::io;
use crate::types::oid::{
    BIT, BOOL, BPCHAR, BYTEA, CHAR, CIDR, DATE, FLOAT4, FLOAT8, INET, INT2, INT4, INT8, INTERVAL, JSON, JSONB,
    JSONPATH, MACADDR, MACADDR8, NAME, NUMERIC, OID, PG_LSN, PG_SNAPSHOT, REGCLASS, REGCOLLATION, REGNAMESPACE,
    REGOPER, REGOPERATOR, REGPROC, REGPROCEDURE, REGROLE, REGTYPE, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ,
    TXID_SNAPSHOT, UUID, VARBIT, VARCHAR, XID, XID8,
};
use crate::value::Value;

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(2457, "bit_send", &[BIT], 0, BYTEA, I, true, strict!("bit_send", send, I)),
    row(2437, "boolsend", &[BOOL], 0, BYTEA, I, true, strict!("boolsend", send, I)),
    row(2431, "bpcharsend", &[BPCHAR], 0, BYTEA, S, true, strict!("bpcharsend", send, S)),
    row(2413, "byteasend", &[BYTEA], 0, BYTEA, I, true, strict!("byteasend", send, I)),
    row(2435, "charsend", &[CHAR], 0, BYTEA, I, true, strict!("charsend", send, I)),
    row(2499, "cidr_send", &[CIDR], 0, BYTEA, I, true, strict!("cidr_send", send, I)),
    row(2469, "date_send", &[DATE], 0, BYTEA, I, true, strict!("date_send", send, I)),
    row(2425, "float4send", &[FLOAT4], 0, BYTEA, I, true, strict!("float4send", send, I)),
    row(2427, "float8send", &[FLOAT8], 0, BYTEA, I, true, strict!("float8send", send, I)),
    row(2497, "inet_send", &[INET], 0, BYTEA, I, true, strict!("inet_send", send, I)),
    row(2405, "int2send", &[INT2], 0, BYTEA, I, true, strict!("int2send", send, I)),
    row(2407, "int4send", &[INT4], 0, BYTEA, I, true, strict!("int4send", send, I)),
    row(2409, "int8send", &[INT8], 0, BYTEA, I, true, strict!("int8send", send, I)),
    row(2479, "interval_send", &[INTERVAL], 0, BYTEA, I, true, strict!("interval_send", send, I)),
    row(324, "json_send", &[JSON], 0, BYTEA, I, true, strict!("json_send", send, I)),
    row(3803, "jsonb_send", &[JSONB], 0, BYTEA, I, true, strict!("jsonb_send", send, I)),
    row(4004, "jsonpath_send", &[JSONPATH], 0, BYTEA, I, true, strict!("jsonpath_send", send, I)),
    row(3447, "macaddr8_send", &[MACADDR8], 0, BYTEA, I, true, strict!("macaddr8_send", send, I)),
    row(2495, "macaddr_send", &[MACADDR], 0, BYTEA, I, true, strict!("macaddr_send", send, I)),
    row(2423, "namesend", &[NAME], 0, BYTEA, S, true, strict!("namesend", send, S)),
    row(2461, "numeric_send", &[NUMERIC], 0, BYTEA, I, true, strict!("numeric_send", send, I)),
    row(2419, "oidsend", &[OID], 0, BYTEA, I, true, strict!("oidsend", send, I)),
    row(3239, "pg_lsn_send", &[PG_LSN], 0, BYTEA, I, true, strict!("pg_lsn_send", send, I)),
    row(5058, "pg_snapshot_send", &[PG_SNAPSHOT], 0, BYTEA, I, true, strict!("pg_snapshot_send", send, I)),
    row(2453, "regclasssend", &[REGCLASS], 0, BYTEA, I, true, strict!("regclasssend", send, I)),
    row(4197, "regcollationsend", &[REGCOLLATION], 0, BYTEA, I, true, strict!("regcollationsend", send, I)),
    row(4088, "regnamespacesend", &[REGNAMESPACE], 0, BYTEA, I, true, strict!("regnamespacesend", send, I)),
    row(2451, "regoperatorsend", &[REGOPERATOR], 0, BYTEA, I, true, strict!("regoperatorsend", send, I)),
    row(2449, "regopersend", &[REGOPER], 0, BYTEA, I, true, strict!("regopersend", send, I)),
    row(2447, "regproceduresend", &[REGPROCEDURE], 0, BYTEA, I, true, strict!("regproceduresend", send, I)),
    row(2445, "regprocsend", &[REGPROC], 0, BYTEA, I, true, strict!("regprocsend", send, I)),
    row(4095, "regrolesend", &[REGROLE], 0, BYTEA, I, true, strict!("regrolesend", send, I)),
    row(2455, "regtypesend", &[REGTYPE], 0, BYTEA, I, true, strict!("regtypesend", send, I)),
    row(2415, "textsend", &[TEXT], 0, BYTEA, S, true, strict!("textsend", send, S)),
    row(2471, "time_send", &[TIME], 0, BYTEA, I, true, strict!("time_send", send, I)),
    row(2475, "timestamp_send", &[TIMESTAMP], 0, BYTEA, I, true, strict!("timestamp_send", send, I)),
    row(2477, "timestamptz_send", &[TIMESTAMPTZ], 0, BYTEA, I, true, strict!("timestamptz_send", send, I)),
    row(2473, "timetz_send", &[TIMETZ], 0, BYTEA, I, true, strict!("timetz_send", send, I)),
    row(2942, "txid_snapshot_send", &[TXID_SNAPSHOT], 0, BYTEA, I, true, strict!("txid_snapshot_send", send, I)),
    row(2962, "uuid_send", &[UUID], 0, BYTEA, I, true, strict!("uuid_send", send, I)),
    row(2459, "varbit_send", &[VARBIT], 0, BYTEA, I, true, strict!("varbit_send", send, I)),
    row(2433, "varcharsend", &[VARCHAR], 0, BYTEA, S, true, strict!("varcharsend", send, S)),
    row(5083, "xid8send", &[XID8], 0, BYTEA, I, true, strict!("xid8send", send, I)),
    row(2441, "xidsend", &[XID], 0, BYTEA, I, true, strict!("xidsend", send, I)),
];

/// Returns the form in which a client gets the value that asks for binary results.
fn send(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let mut bytes = Vec::new();
    io::send(&values[0], &call.arguments[0].ty(), &ctx.state().io, &mut bytes)?;
    Ok(Value::bytes(bytes))
}
