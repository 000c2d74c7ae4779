//! Documents made of values of any types.

use datum::Result;
use datum::json::{Members, Node};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::json::{invalid, of_node};
use crate::functions::state::StateOf as _;
use crate::types::json::{encode, write_string};
use crate::value::Value;

pub fn to_json(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let mut out = String::new();
    encode::append(&values[0], &call.arguments[0].ty(), &ctx.state().io, &mut out)?;
    Ok(Value::Text(out.into()))
}

pub fn to_jsonb(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_node(encode::node(&values[0], &call.arguments[0].ty(), &ctx.state().io)?)
}

pub fn json_build_array(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let mut out = "[".to_owned();
    for (at, value) in values.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { ", " });
        encode::append(value, &call.arguments[at].ty(), &ctx.state().io, &mut out)?;
    }
    out.push(']');
    Ok(Value::Text(out.into()))
}

pub fn jsonb_build_array(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let io = &ctx.state().io;
    let nodes = values.iter().zip(&call.arguments).map(|(value, argument)| encode::node(value, &argument.ty(), io));
    of_node(Node::Array(nodes.collect::<crate::error::Result<_>>()?))
}

fn check_pairs(values: &[Value], name: &str) -> Result<()> {
    if values.len().is_multiple_of(2) {
        return Ok(());
    }
    let text = "argument list must have even number of elements";
    let hint = format!("The arguments of {name}() must consist of alternating keys and values.");
    Err(PgError::new(state::INVALID_PARAMETER_VALUE, text).hint(hint).into())
}

#[cold]
pub fn null_name() -> PgError {
    PgError::new(state::NULL_VALUE_NOT_ALLOWED, "null value not allowed for object key")
}

pub fn json_build_object(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    check_pairs(values, "json_build_object")?;
    let io = &ctx.state().io;
    let mut out = "{".to_owned();
    for at in (0..values.len()).step_by(2) {
        out.push_str(if at == 0 { "" } else { ", " });
        if values[at].is_null() {
            return Err(null_name().into());
        }
        write_string(&encode::name(&values[at], &call.arguments[at].ty(), io)?, &mut out);
        out.push_str(" : ");
        encode::append(&values[at + 1], &call.arguments[at + 1].ty(), io, &mut out)?;
    }
    out.push('}');
    Ok(Value::Text(out.into()))
}

pub fn jsonb_build_object(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    check_pairs(values, "jsonb_build_object")?;
    let io = &ctx.state().io;
    let mut members = Vec::with_capacity(values.len() / 2);
    for at in (0..values.len()).step_by(2) {
        if values[at].is_null() {
            return invalid(format!("argument {}: key must not be null", at + 1));
        }
        let name = encode::name(&values[at], &call.arguments[at].ty(), io)?;
        members.push((name.into(), encode::node(&values[at + 1], &call.arguments[at + 1].ty(), io)?));
    }
    of_node(Node::Object(Members::new(members)))
}
