//! jsonb as a truth value or a number.

use datum::Result;
use datum::json::{JsonbScalar, Node};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::json::access::kind;
use crate::functions::json::{document, invalid};
use crate::types::numeric::float::float_in;
use crate::types::numeric::numeric_out;
use crate::value::{Decimal, Value};

fn number(values: &[Value], ty: &str) -> Result<Decimal> {
    let node = document(values, 0)?;
    match (kind(node), node) {
        ("number", Node::Decimal(number)) => Ok(number.clone()),
        ("number", node) => match node.jsonb_scalar() {
            JsonbScalar::Number(number) => Ok(number),
            JsonbScalar::String(_) => invalid(format!("cannot cast jsonb string to type {ty}")),
        },
        (kind, _) => invalid(format!("cannot cast jsonb {kind} to type {ty}")),
    }
}

pub fn to_bool(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    match document(values, 0)? {
        Node::Bool(truth) => Ok((*truth).into()),
        node => invalid(format!("cannot cast jsonb {} to type boolean", kind(node))),
    }
}

pub fn to_numeric(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Decimal(number(values, "numeric")?))
}

fn integer(values: &[Value], ty: &str, range: std::ops::RangeInclusive<i128>) -> Result<Value> {
    match number(values, ty)?.rounded(0).small() {
        Some(whole) if range.contains(&whole) => Ok(Value::Int(whole as i64)),
        _ => Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range")).into()),
    }
}

pub fn to_int2(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    integer(values, "smallint", i16::MIN.into()..=i16::MAX.into())
}

pub fn to_int4(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    integer(values, "integer", i32::MIN.into()..=i32::MAX.into())
}

pub fn to_int8(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    integer(values, "bigint", i64::MIN.into()..=i64::MAX.into())
}

/// Floats are read from the number's text, as PostgreSQL does.
fn shown(number: &Decimal) -> String {
    let mut out = Vec::new();
    numeric_out(number, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

pub fn to_float4(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Float(float_in(&shown(&number(values, "real")?))?))
}

pub fn to_float8(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Double(float_in(&shown(&number(values, "double precision")?))?))
}
