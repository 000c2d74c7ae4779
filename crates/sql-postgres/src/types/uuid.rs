//! uuid

use crate::error::Result;
use crate::types::io;
use crate::value::Value;

/// Returns the uuid of 32 digits, perhaps in braces, with a hyphen after any four.
pub fn input(text: &str) -> Result<Value> {
    parse(text.as_bytes()).map(Value::bytes).ok_or_else(|| io::invalid_input("uuid", text))
}

fn parse(text: &[u8]) -> Option<[u8; 16]> {
    let (mut rest, is_braced) = match text.strip_prefix(b"{") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let mut out = [0; 16];
    for (at, byte) in out.iter_mut().enumerate() {
        let (digits, after) = rest.split_at_checked(2)?;
        let digit = |at: usize| char::from(digits[at]).to_digit(16).map(|digit| digit as u8);
        *byte = digit(0)? << 4 | digit(1)?;
        rest = match after {
            [b'-', after @ ..] if at % 2 == 1 && at < 15 => after,
            after => after,
        };
    }
    let end: &[u8] = if is_braced { b"}" } else { b"" };
    (rest == end).then_some(out)
}

pub fn output(bytes: &[u8], out: &mut Vec<u8>) {
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        crate::types::bytea::encode_hex(&[*byte], out);
    }
}
