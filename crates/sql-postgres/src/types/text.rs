//! The types of characters: text, varchar, bpchar, name and "char".

use crate::error::{PgError, Result, state};
use crate::types::io;
use crate::types::oid;
use crate::types::registry::{self, length_max};
use crate::value::Value;

/// The most bytes of a name.
pub const NAME_MAX: usize = 63;

pub fn input(text: &str) -> Result<Value> {
    io::check_no_zero(text)?;
    Ok(Value::text(text))
}

pub fn name_input(text: &str) -> Result<Value> {
    io::check_no_zero(text)?;
    Ok(Value::text(truncated_name(text)))
}

pub fn name_receive(text: &str) -> Result<Value> {
    if text.len() > NAME_MAX {
        let detail = "Identifier must be less than 64 characters.";
        return Err(PgError::new(state::NAME_TOO_LONG, "identifier too long").detail(detail));
    }
    Ok(Value::text(text))
}

/// Returns the characters of a name that fit.
pub fn truncated_name(text: &str) -> &str {
    let mut end = text.len().min(NAME_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

pub fn varchar_input(text: &str, typmod: i32) -> Result<Value> {
    io::check_no_zero(text)?;
    let kept = match length_max(typmod) {
        Some(max) => fit(text, max, oid::VARCHAR, false)?,
        None => text,
    };
    Ok(Value::text(kept))
}

pub fn bpchar_input(text: &str, typmod: i32) -> Result<Value> {
    io::check_no_zero(text)?;
    bpchar(text, typmod, false)
}

/// Returns a text as a varchar of a length: cut where the cast is explicit or what is cut are spaces.
pub fn varchar(text: &str, typmod: i32, is_explicit: bool) -> Result<Value> {
    match length_max(typmod) {
        Some(max) => Ok(Value::text(fit(text, max, oid::VARCHAR, is_explicit)?)),
        None => Ok(Value::text(text)),
    }
}

/// Returns a text as a bpchar of a length, with spaces up to it.
pub fn bpchar(text: &str, typmod: i32, is_explicit: bool) -> Result<Value> {
    let Some(max) = length_max(typmod) else { return Ok(Value::text(text)) };
    let kept = fit(text, max, oid::BPCHAR, is_explicit)?;
    let count = if kept.is_ascii() { kept.len() } else { kept.chars().count() };
    if count == max {
        return Ok(Value::text(kept));
    }
    let mut padded = String::with_capacity(kept.len() + max - count);
    padded.push_str(kept);
    padded.extend(std::iter::repeat_n(' ', max - count));
    Ok(Value::Text(padded.into()))
}

fn fit(text: &str, max: usize, oid: oid::Oid, is_explicit: bool) -> Result<&str> {
    if text.len() <= max {
        return Ok(text);
    }
    let Some((end, _)) = text.char_indices().nth(max) else { return Ok(text) };
    if !is_explicit && text[end..].bytes().any(|byte| byte != b' ') {
        let message = format!("value too long for type {}({max})", registry::format_type(oid, None));
        return Err(PgError::new(state::STRING_DATA_RIGHT_TRUNCATION, message));
    }
    Ok(&text[..end])
}

/// Returns the first byte of the text, or the one that an octal escape names; 0 for an empty text.
pub fn char_input(text: &str) -> Value {
    let byte = match *text.as_bytes() {
        [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7'] => (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'),
        [first, ..] => first,
        [] => 0,
    };
    Value::UInt(byte.into())
}

pub fn char_output(byte: u8, out: &mut Vec<u8>) {
    match byte {
        0 => {}
        0x80.. => out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
        _ => out.push(byte),
    }
}
