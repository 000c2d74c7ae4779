//! bytea: the hexadecimal and the escape form.

use crate::error::{PgError, Result, state};
use crate::types::io::ByteaOutput;
use crate::value::Value;

pub fn input(text: &str) -> Result<Value> {
    match text.strip_prefix("\\x") {
        Some(digits) => decode_hex(digits).map(Value::from_bytes),
        None => decode_escape(text.as_bytes())
            .map(Value::from_bytes)
            .ok_or_else(|| PgError::new(state::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea")),
    }
}

pub fn output(bytes: &[u8], form: ByteaOutput, out: &mut Vec<u8>) {
    match form {
        ByteaOutput::Hex => {
            out.extend_from_slice(b"\\x");
            encode_hex(bytes, out);
        }
        ByteaOutput::Escape => {
            for byte in bytes {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    0x20..=0x7e => out.push(*byte),
                    _ => out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
                }
            }
        }
    }
}

pub fn encode_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Returns the bytes of pairs of digits, between which there may be spaces.
pub fn decode_hex(text: &str) -> Result<Vec<u8>> {
    let invalid = |text: String| PgError::new(state::INVALID_PARAMETER_VALUE, text);
    let digit = |c: char| {
        let digit = c.to_digit(16).map(|digit| digit as u8);
        digit.ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{c}\"")))
    };
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut rest = text.chars();
    while let Some(first) = rest.next() {
        if matches!(first, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = digit(first)?;
        let second = rest.next().ok_or_else(|| invalid("invalid hexadecimal data: odd number of digits".into()))?;
        out.push(high << 4 | digit(second)?);
    }
    Ok(out)
}

/// Returns the bytes of a text in which a backslash precedes another one or three octal digits.
pub fn decode_escape(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Some(out),
            [b'\\', b'\\', rest @ ..] => {
                out.push(b'\\');
                rest
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest
            }
            [b'\\', ..] => return None,
            [byte, rest @ ..] => {
                out.push(*byte);
                rest
            }
        };
    }
}
