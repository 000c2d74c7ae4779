//! Documents made of values of any types.

use datum::json::{Members, Node};
use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::args::truth;
use crate::functions::array::{array, element_type};
use crate::functions::json::{invalid, of_node, subscript_error, texts};
use crate::functions::state::StateOf as _;
use crate::types::json::{encode, write_string};
use crate::types::registry::column_type;
use crate::value::Value;

pub fn to_json(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let mut out = String::new();
    encode::append(&values[0], &call.arguments[0].ty(), &ctx.state().io, &mut out)?;
    Ok(Value::Text(out.into()))
}

pub fn to_jsonb(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_node(encode::node(&values[0], &call.arguments[0].ty(), &ctx.state().io)?)
}

/// `array_to_json` with line feeds between the elements of the first dimension, if its second argument says so.
pub fn array_to_json(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let array = array(values, 0)?;
    let element = column_type(element_type(call, 0)?, -1, true);
    let between = if truth(values, 1)? { ",\n " } else { "," };
    let mut out = String::new();
    encode::append_array(array, &element, &ctx.state().io, between, &mut out)?;
    Ok(Value::Text(out.into()))
}

/// `row_to_json`: with line feeds between the members, if its second argument says so.
pub fn row_to_json(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Value::Record(record) = &values[0] else { return Err(Fault::corrupt("a record in the form of another type")) };
    let is_pretty = values.len() > 1 && truth(values, 1)?;
    let mut out = String::new();
    encode::append_record(record, &ctx.state().io, if is_pretty { ",\n " } else { "," }, &mut out)?;
    Ok(Value::Text(out.into()))
}

/// Names and values of `json_object` and `jsonb_object`: of one array by turns or in two columns, or of two arrays.
fn pairs(values: &[Value]) -> Result<Vec<(&str, Option<&str>)>> {
    let dimensions = array(values, 0)?.dimensions();
    let null = || -> Fault { null_name().into() };
    let mut names = texts(values, 0)?;
    if values.len() > 1 {
        let others = array(values, 1)?.dimensions();
        if dimensions.len() > 1 || dimensions.len() != others.len() {
            return Err(subscript_error("wrong number of array subscripts"));
        }
        if array(values, 0)?.len() != array(values, 1)?.len() {
            return Err(subscript_error("mismatched array dimensions"));
        }
        return names.zip(texts(values, 1)?).map(|(name, value)| Ok((name.ok_or_else(null)?, value))).collect();
    }
    match dimensions {
        [] => {}
        [dimension] if dimension.length.is_multiple_of(2) => {}
        [_] => return Err(subscript_error("array must have even number of elements")),
        [_, columns] if columns.length == 2 => {}
        [_, _] => return Err(subscript_error("array must have two columns")),
        _ => return Err(subscript_error("wrong number of array subscripts")),
    }
    let mut pairs = Vec::new();
    while let (Some(name), Some(value)) = (names.next(), names.next()) {
        pairs.push((name.ok_or_else(null)?, value));
    }
    Ok(pairs)
}

pub fn json_object(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut out = "{".to_owned();
    for (at, (name, value)) in pairs(values)?.into_iter().enumerate() {
        out.push_str(if at == 0 { "" } else { ", " });
        write_string(name, &mut out);
        out.push_str(" : ");
        match value {
            Some(value) => write_string(value, &mut out),
            None => out.push_str("null"),
        }
    }
    out.push('}');
    Ok(Value::Text(out.into()))
}

pub fn jsonb_object(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let node = |value: Option<&str>| value.map_or(Node::Null, |value| Node::String(value.into()));
    let members = pairs(values)?.into_iter().map(|(name, value)| (name.into(), node(value)));
    of_node(Node::Object(Members::new(members.collect())))
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
