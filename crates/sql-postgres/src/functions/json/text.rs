//! Parts of a json, which is a text.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::Result as PgResult;
use crate::functions::args::{integer, text};
use crate::functions::json::{invalid, place};
use crate::types::json::parse::{Event, Parser};
use crate::types::json::{unquoted, write_string};
use crate::value::Value;

/// A value within a document: its text, and its first event.
pub struct TextPart<'t> {
    pub text: &'t str,
    pub first: Event<'t>,
}

/// Reads the value that begins with this event, to its end.
pub fn rest<'t>(document: &'t str, parser: &mut Parser<'t>, first: Event<'t>) -> PgResult<TextPart<'t>> {
    let from = match first {
        Event::ObjectStart | Event::ArrayStart => parser.at() - 1,
        Event::String(text) | Event::Number(text) => parser.at() - text.len(),
        Event::True | Event::Null => parser.at() - 4,
        _ => parser.at() - 5,
    };
    if matches!(first, Event::ObjectStart | Event::ArrayStart) {
        let level = parser.depth();
        while parser.depth() >= level {
            parser.event()?;
        }
    }
    Ok(TextPart { text: &document[from..parser.at()], first })
}

/// Calls a function with the name and the value of each member, or with no name and each element. Returns the event that begins the document.
pub fn each<'t>(
    document: &'t str,
    mut of: impl FnMut(Option<&'t str>, TextPart<'t>) -> PgResult<()>,
) -> PgResult<Event<'t>> {
    let mut parser = Parser::new(document);
    let first = parser.event()?;
    if !matches!(first, Event::ObjectStart | Event::ArrayStart) {
        return Ok(first);
    }
    loop {
        match parser.event()? {
            Event::End => return Ok(first),
            Event::Name(name) => {
                let value = parser.event()?;
                let part = rest(document, &mut parser, value)?;
                of(Some(name), part)?;
            }
            value => {
                let part = rest(document, &mut parser, value)?;
                of(None, part)?;
            }
        }
    }
}

/// Returns the member of a name. Of several the last one counts.
pub fn member<'t>(document: &'t str, wanted: &str) -> PgResult<Option<TextPart<'t>>> {
    let mut found = None;
    each(document, |name, part| {
        if let Some(name) = name
            && unquoted(name)? == wanted
        {
            found = Some(part);
        }
        Ok(())
    })?;
    Ok(found)
}

pub fn element(document: &str, subscript: i64) -> PgResult<Option<TextPart<'_>>> {
    let mut parts = Vec::new();
    let first = each(document, |_, part| {
        parts.push(part);
        Ok(())
    })?;
    if first != Event::ArrayStart {
        return Ok(None);
    }
    Ok(place(parts.len(), subscript).map(|place| parts.swap_remove(place)))
}

pub fn as_json(part: Option<TextPart<'_>>) -> Value {
    part.map_or(Value::Null, |part| Value::text(part.text))
}

/// Returns a part as `->>` gives it: strings without quotes, nulls as NULL.
pub fn as_text(part: Option<TextPart<'_>>) -> PgResult<Value> {
    Ok(match part {
        None => Value::Null,
        Some(TextPart { first: Event::Null, .. }) => Value::Null,
        Some(TextPart { first: Event::String(text), .. }) => Value::Text(unquoted(text)?.into()),
        Some(part) => Value::text(part.text),
    })
}

pub fn object_field(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(as_json(member(text(values, 0)?, text(values, 1)?)?))
}

pub fn object_field_text(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(as_text(member(text(values, 0)?, text(values, 1)?)?)?)
}

pub fn array_element(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(as_json(element(text(values, 0)?, integer(values, 1)?)?))
}

pub fn array_element_text(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(as_text(element(text(values, 0)?, integer(values, 1)?)?)?)
}

pub fn array_length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut count = 0;
    let first = each(text(values, 0)?, |_, _| {
        count += 1;
        Ok(())
    })?;
    match first {
        Event::ArrayStart => Ok(Value::Int(count)),
        Event::ObjectStart => invalid("cannot get array length of a non-array"),
        _ => invalid("cannot get array length of a scalar"),
    }
}

pub fn json_typeof(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(match Parser::new(text(values, 0)?).event()? {
        Event::ObjectStart => "object",
        Event::ArrayStart => "array",
        Event::String(_) => "string",
        Event::Number(_) => "number",
        Event::True | Event::False => "boolean",
        _ => "null",
    }))
}

/// Leaves out members that are null, and spaces.
pub fn strip_nulls(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let document = text(values, 0)?;
    let mut parser = Parser::new(document);
    let mut out = String::with_capacity(document.len());
    let mut open = Vec::new();
    let mut name = None;
    loop {
        let event = parser.event()?;
        let word = match event {
            Event::Finished => return Ok(Value::Text(out.into())),
            Event::End => {
                out.push(open.pop().unwrap_or(']'));
                continue;
            }
            Event::Name(text) => {
                name = Some(text);
                continue;
            }
            Event::Null if name.take().is_some() => continue,
            Event::ObjectStart => "{",
            Event::ArrayStart => "[",
            Event::String(text) => text,
            Event::Number(text) => text,
            Event::True => "true",
            Event::False => "false",
            Event::Null => "null",
        };
        if !open.is_empty() && !out.ends_with(['{', '[']) {
            out.push(',');
        }
        if let Some(name) = name.take() {
            write_string(&unquoted(name)?, &mut out);
            out.push(':');
        }
        match event {
            Event::ObjectStart => open.push('}'),
            Event::ArrayStart => open.push(']'),
            _ => {}
        }
        match event {
            Event::String(text) => write_string(&unquoted(text)?, &mut out),
            _ => out.push_str(word),
        }
    }
}
