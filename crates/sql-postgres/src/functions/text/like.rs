//! LIKE and ILIKE: `%` for any characters, `_` for one, a backslash before either takes its meaning.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::Prefix;

use crate::error::{PgError, state};
use crate::functions::args::{bytes, text, text_of};
use crate::functions::text::strings::lower_text;
use crate::value::Value;

pub fn like(_: &Call, value: &Value, pattern: &Value, _: &mut EvalContext) -> Result<Value> {
    Ok(matches(text_of(value)?.as_bytes(), text_of(pattern)?.as_bytes(), true)?.into())
}

pub fn not_like(_: &Call, value: &Value, pattern: &Value, _: &mut EvalContext) -> Result<Value> {
    Ok((!matches(text_of(value)?.as_bytes(), text_of(pattern)?.as_bytes(), true)?).into())
}

pub fn ilike(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (text, pattern) = (lower_text(text(values, 0)?), lower_text(text(values, 1)?));
    Ok(matches(text.as_bytes(), pattern.as_bytes(), true)?.into())
}

pub fn not_ilike(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (text, pattern) = (lower_text(text(values, 0)?), lower_text(text(values, 1)?));
    Ok((!matches(text.as_bytes(), pattern.as_bytes(), true)?).into())
}

pub fn bytea_like(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(matches(bytes(values, 0)?, bytes(values, 1)?, false)?.into())
}

pub fn bytea_not_like(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok((!matches(bytes(values, 0)?, bytes(values, 1)?, false)?).into())
}

#[cold]
fn unfinished() -> datum::Fault {
    let message = "LIKE pattern must not end with escape character";
    PgError::new(state::INVALID_ESCAPE_SEQUENCE, message).into()
}

/// Returns whether the pattern matches all of the text. `_` is a byte, or a character of UTF-8. Goes back to the last `%` only: what lies before it has matched in the earliest place.
fn matches(text: &[u8], pattern: &[u8], is_characters: bool) -> Result<bool> {
    // A character's first byte is matched by `_`; the bytes that continue it go with it.
    let width = |at: usize| {
        let continues = |byte: &&u8| is_characters && **byte & 0xc0 == 0x80;
        1 + text[at + 1..].iter().take_while(continues).count()
    };
    let (mut at, mut place) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let advanced = match (pattern.get(place), text.get(at)) {
            (None, None) => return Ok(true),
            (Some(b'%'), _) => {
                place += 1;
                if place == pattern.len() {
                    return Ok(true);
                }
                at = next_candidate(text, pattern, place, at);
                retry = Some((place, at));
                continue;
            }
            (Some(b'_'), Some(_)) => Some((1, width(at))),
            (Some(b'\\'), here) => match pattern.get(place + 1) {
                None => return if here.is_some() { Err(unfinished()) } else { Ok(false) },
                Some(wanted) => (here == Some(wanted)).then_some((2, 1)),
            },
            (Some(wanted), Some(byte)) => (wanted == byte).then_some((1, 1)),
            _ => None,
        };
        match (advanced, &mut retry) {
            (Some((used, width)), _) => (place, at) = (place + used, at + width),
            (None, Some((after, from))) if *from < text.len() => {
                *from = next_candidate(text, pattern, *after, *from + width(*from));
                (place, at) = (*after, *from);
            }
            _ => return Ok(false),
        }
    }
}

/// Returns the first position from `at` on where the text may match the pattern behind a `%`; the end if there is none.
fn next_candidate(text: &[u8], pattern: &[u8], place: usize, at: usize) -> usize {
    match pattern[place] {
        b'%' | b'_' | b'\\' => at,
        wanted => memchr::memchr(wanted, &text[at..]).map_or(text.len(), |found| at + found),
    }
}

/// See `Function::prefix`.
pub fn prefix(call: &Call, value: &mut dyn FnMut(&Expr) -> Option<Value>) -> Option<Prefix> {
    let pattern = value(&call.arguments[1])?;
    let mut out = Vec::new();
    let mut rest = pattern.as_string_bytes()?.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' | b'_' => return (!out.is_empty()).then_some(Prefix { bytes: out, is_whole: false }),
            b'\\' => out.push(*rest.next()?),
            other => out.push(*other),
        }
    }
    Some(Prefix { bytes: out, is_whole: true })
}

/// As above, of a text that is given as it is.
pub fn literal_prefix(call: &Call, value: &mut dyn FnMut(&Expr) -> Option<Value>) -> Option<Prefix> {
    let text = value(&call.arguments[1])?;
    let bytes = text.as_string_bytes()?.to_vec();
    (!bytes.is_empty()).then_some(Prefix { bytes, is_whole: false })
}

/// Rewrites a pattern so that the backslash is its escape character: LIKE ... ESCAPE.
pub fn like_escape(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (pattern, escape) = (text(values, 0)?, text(values, 1)?);
    let mut letters = escape.chars();
    let escape = match (letters.next(), letters.next()) {
        (first, None) => first,
        _ => return Err(invalid_escape()),
    };
    if escape == Some('\\') {
        return Ok(values[0].clone());
    }
    let mut out = String::with_capacity(pattern.len());
    let mut is_escaped = false;
    for letter in pattern.chars() {
        if Some(letter) == escape && !is_escaped {
            out.push('\\');
            is_escaped = true;
            continue;
        }
        if letter == '\\' && !is_escaped {
            out.push('\\');
        }
        out.push(letter);
        is_escaped = false;
    }
    Ok(Value::Text(out.into()))
}

pub fn like_escape_bytea(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (pattern, escape) = (bytes(values, 0)?, bytes(values, 1)?);
    let escape = match escape {
        [] => None,
        [b'\\'] => return Ok(values[0].clone()),
        [one] => Some(*one),
        _ => return Err(invalid_escape()),
    };
    let mut out = Vec::with_capacity(pattern.len());
    let mut is_escaped = false;
    for byte in pattern {
        if Some(*byte) == escape && !is_escaped {
            out.push(b'\\');
            is_escaped = true;
            continue;
        }
        if *byte == b'\\' && !is_escaped {
            out.push(b'\\');
        }
        out.push(*byte);
        is_escaped = false;
    }
    Ok(Value::from_bytes(out))
}

#[cold]
fn invalid_escape() -> datum::Fault {
    let hint = "Escape string must be empty or one character.";
    PgError::new(state::INVALID_ESCAPE_SEQUENCE, "invalid escape string").hint(hint).into()
}
