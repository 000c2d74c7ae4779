//! Arrays and texts: array_to_string, string_to_array, string_to_table.

use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::functions::args;
use crate::functions::array::{array, element_type};
use crate::functions::state::StateOf as _;
use crate::types::array::list;
use crate::types::{io, oid, registry};
use crate::value::Value;

/// array_to_string(array, delimiter [, text of NULLs])
pub fn joined(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if values[0].is_null() || values[1].is_null() {
        return Ok(Value::Null);
    }
    let of = array(values, 0)?;
    let delimiter = args::text(values, 1)?.as_bytes();
    let null = match values.get(2) {
        Some(Value::Text(text)) => Some(text.as_bytes()),
        _ => None,
    };
    let ty = registry::column_type(element_type(call, 0)?, -1, true);
    let _claim = args::claim(of.len().saturating_mul(delimiter.len()).saturating_add(of.heap_bytes()))?;
    let mut out = Vec::new();
    let mut is_first = true;
    for (at, value) in of.values().iter().enumerate() {
        if value.is_null() && null.is_none() {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.extend_from_slice(delimiter);
        }
        match null.filter(|_| value.is_null()) {
            Some(null) => out.extend_from_slice(null),
            None => io::output(value, &ty, &ctx.state().io, &mut out)?,
        }
        if at % 4096 == 4095 {
            ctx.check_killed()?;
        }
    }
    let text = String::from_utf8(out).map_err(|_| Fault::corrupt("a text that is not UTF-8"))?;
    Ok(Value::Text(text.into()))
}

/// Returns the parts of a text between delimiters; `None` for a text that is NULL. A NULL delimiter divides it into its characters.
pub fn parts(values: &[Value]) -> Result<Option<Vec<Value>>> {
    if values[0].is_null() {
        return Ok(None);
    }
    let text = args::text(values, 0)?;
    if text.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let null = match values.get(2) {
        Some(Value::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let value = |part: &str| if null == Some(part) { Value::Null } else { Value::text(part) };
    let mut buffer = [0; 4];
    let claim = |count: usize| super::claim(count);
    Ok(Some(match &values[1] {
        Value::Text(delimiter) if delimiter.is_empty() => vec![value(text)],
        Value::Text(delimiter) => {
            let _claim = claim(text.len() / delimiter.len())?;
            text.split(delimiter.as_str()).map(value).collect()
        }
        _ => {
            let _claim = claim(text.len())?;
            text.chars().map(|letter| value(letter.encode_utf8(&mut buffer))).collect()
        }
    }))
}

/// string_to_array(text, delimiter [, text of NULLs])
pub fn split(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(parts(values)?.map_or(Value::Null, |parts| list(oid::TEXT, parts)))
}
