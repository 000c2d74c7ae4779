//! The constructors JSON_OBJECT and JSON_ARRAY, and IS JSON.

use std::collections::HashSet;

use datum::Result;
use datum::json::{Members, Node};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Finish, Function, Run};
use syntax::postgres::tree::JsonKind;

use crate::error::{PgError, state};
use crate::functions::json::invalid;
use crate::functions::json::make::null_name;
use crate::functions::json::of_node;
use crate::functions::state::StateOf as _;
use crate::types::json::encode;
use crate::types::json::parse::{Event, Parser};
use crate::types::json::unquoted;
use crate::types::json::write_string;
use crate::types::oid;
use crate::types::registry::oid_of;
use crate::value::Value;

/// ABSENT ON NULL and WITH UNIQUE KEYS, in the first word of a call.
pub const ABSENT: u8 = 1;
pub const UNIQUE: u8 = 2;

/// Keys and values by turns.
pub static OBJECT: Function = Function {
    typed: true,
    finish: Finish::Unchanged,
    ..Function::new(&["json_object constructor"], Run::Values(object))
};

pub static ARRAY: Function = Function {
    typed: true,
    finish: Finish::Unchanged,
    ..Function::new(&["json_array constructor"], Run::Values(array))
};

/// The words of the call: the kind of document, and whether keys must be unique.
pub static IS_JSON: Function =
    Function { typed: true, finish: Finish::Unchanged, ..Function::new(&["is json"], Run::Strict(is_json)) };

/// Returns the word for a kind of document in a call of `IS_JSON`.
pub fn word_of_kind(kind: JsonKind) -> u8 {
    match kind {
        JsonKind::Any => 0,
        JsonKind::Scalar => 1,
        JsonKind::Array => 2,
        JsonKind::Object => 3,
    }
}

fn duplicate(name: Option<&str>) -> PgError {
    let mut text = "duplicate JSON object key value".to_owned();
    if let Some(name) = name {
        text.push_str(": ");
        write_string(name, &mut text);
    }
    PgError::new(state::DUPLICATE_JSON_OBJECT_KEY_VALUE, text)
}

fn is_binary(call: &Call) -> bool {
    oid_of(&call.ty) == oid::JSONB
}

fn object(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    if is_binary(call) {
        return binary_object(call, values, ctx);
    }
    let io = &ctx.state().io;
    let (absent, unique) = (call.extra.word[0] & ABSENT != 0, call.extra.word[0] & UNIQUE != 0);
    let (mut out, mut names, mut is_first) = ("{".to_owned(), HashSet::new(), true);
    for at in (0..values.len()).step_by(2) {
        let is_left_out = absent && values[at + 1].is_null();
        if is_left_out && !unique {
            continue;
        }
        if values[at].is_null() {
            return Err(null_name().into());
        }
        let name = encode::name(&values[at], &call.arguments[at].ty(), io)?;
        if !is_left_out {
            out.push_str(if is_first { "" } else { ", " });
            is_first = false;
            write_string(&name, &mut out);
            out.push_str(" : ");
            encode::append(&values[at + 1], &call.arguments[at + 1].ty(), io, &mut out)?;
        }
        if unique {
            let name: Box<str> = name.into();
            if names.contains(&name) {
                return Err(duplicate(Some(&name)).into());
            }
            names.insert(name);
        }
    }
    out.push('}');
    Ok(Value::Text(out.into()))
}

fn binary_object(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let io = &ctx.state().io;
    let (absent, unique) = (call.extra.word[0] & ABSENT != 0, call.extra.word[0] & UNIQUE != 0);
    let (mut members, mut names) = (Vec::with_capacity(values.len() / 2), HashSet::new());
    for at in (0..values.len()).step_by(2) {
        if values[at].is_null() {
            return invalid(format!("argument {}: key must not be null", at + 1));
        }
        if absent && values[at + 1].is_null() && !unique {
            continue;
        }
        let name: Box<str> = encode::name(&values[at], &call.arguments[at].ty(), io)?.into();
        if unique {
            names.insert(name.clone());
        }
        members.push((name, encode::node(&values[at + 1], &call.arguments[at + 1].ty(), io)?));
    }
    if unique && names.len() < members.len() {
        return Err(duplicate(None).into());
    }
    // PostgreSQL leaves out the null of a document too.
    members.retain(|(_, node)| !absent || !matches!(node, Node::Null));
    of_node(Node::Object(Members::new(members)))
}

fn array(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let io = &ctx.state().io;
    let absent = call.extra.word[0] & ABSENT != 0;
    let kept = values.iter().zip(&call.arguments).filter(|(value, _)| !absent || !value.is_null());
    if is_binary(call) {
        let nodes = kept.map(|(value, argument)| encode::node(value, &argument.ty(), io));
        return of_node(Node::Array(nodes.collect::<crate::error::Result<_>>()?));
    }
    let mut out = "[".to_owned();
    for (nth, (value, argument)) in kept.enumerate() {
        out.push_str(if nth == 0 { "" } else { ", " });
        encode::append(value, &argument.ty(), io, &mut out)?;
    }
    out.push(']');
    Ok(Value::Text(out.into()))
}

fn is_json(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let [kind, unique] = call.extra.word;
    let is_it = match &values[0] {
        Value::Json(document) => match document.node() {
            Node::Array(_) => kind == 0 || kind == word_of_kind(JsonKind::Array),
            Node::Object(_) => kind == 0 || kind == word_of_kind(JsonKind::Object),
            _ => kind == 0 || kind == word_of_kind(JsonKind::Scalar),
        },
        Value::Text(text) => {
            let is_text = call.arguments.first().is_some_and(|argument| oid_of(&argument.ty()) != oid::JSON);
            is_kind(text, kind) && (unique == 0 && !is_text || is_valid(text, unique != 0)?)
        }
        _ => return Err(datum::Fault::corrupt("a document in the form of another type")),
    };
    Ok(Value::from(is_it))
}

/// Returns whether the first token of a text begins a document of the kind.
fn is_kind(text: &str, kind: u8) -> bool {
    kind == 0
        || match Parser::new(text).event() {
            Ok(Event::ObjectStart) => kind == word_of_kind(JsonKind::Object),
            Ok(Event::ArrayStart) => kind == word_of_kind(JsonKind::Array),
            Ok(_) => kind == word_of_kind(JsonKind::Scalar),
            Err(_) => false,
        }
}

/// Returns whether a text is a document, whose objects have no name twice if they must not.
fn is_valid(text: &str, unique: bool) -> Result<bool> {
    let mut parser = Parser::new(text);
    // The names of each open object; none of an open array.
    let mut open: Vec<Option<HashSet<String>>> = Vec::new();
    loop {
        match parser.event() {
            Ok(Event::Finished) => return Ok(true),
            Ok(Event::ObjectStart) => open.push(unique.then(HashSet::new)),
            Ok(Event::ArrayStart) => open.push(None),
            Ok(Event::End) => drop(open.pop()),
            Ok(Event::Name(name)) => {
                if let Some(Some(names)) = open.last_mut() {
                    let Ok(name) = unquoted(name) else { return Ok(false) };
                    if !names.insert(name) {
                        return Ok(false);
                    }
                }
            }
            Ok(Event::String(text)) if unique && unquoted(text).is_err() => return Ok(false),
            Ok(_) => {}
            Err(error) if error.state == state::INVALID_TEXT_REPRESENTATION => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}
