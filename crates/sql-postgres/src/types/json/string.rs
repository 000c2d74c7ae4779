//! Strings of documents without quotes and escapes.

use crate::error::{PgError, Result, state};
use crate::types::json::parse::invalid;

/// Returns the characters of a string that the parser has found, in quotes. An error for a zero character, and for halves of surrogate pairs.
pub fn unquoted(quoted: &str) -> Result<String> {
    let inner = &quoted[1..quoted.len() - 1];
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let letter = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        out.push(match letter {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let (letter, after) = unicode(rest)?;
                rest = after;
                letter
            }
            // A quote, a slash or a backslash.
            other => char::from(other),
        });
    }
    out.push_str(rest);
    Ok(out)
}

/// Reads four hexadecimal digits, and those of the low surrogate that must follow a high one.
fn unicode(text: &str) -> Result<(char, &str)> {
    let (unit, rest) = unit(text);
    match unit {
        0 => {
            let detail = "\\u0000 cannot be converted to text.";
            Err(PgError::new(state::UNTRANSLATABLE_CHARACTER, "unsupported Unicode escape sequence").detail(detail))
        }
        0xd800..=0xdbff => {
            let Some((low, rest)) = rest.strip_prefix("\\u").map(self::unit) else { return Err(lonely()) };
            match low {
                0xd800..=0xdbff => Err(invalid("Unicode high surrogate must not follow a high surrogate.".to_owned())),
                0xdc00..=0xdfff => {
                    let point = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    Ok((char::from_u32(point).ok_or_else(lonely)?, rest))
                }
                _ => Err(lonely()),
            }
        }
        unit => Ok((char::from_u32(unit).ok_or_else(lonely)?, rest)),
    }
}

fn unit(text: &str) -> (u32, &str) {
    // The parser has seen four digits.
    let (digits, rest) = text.split_at(4);
    (u32::from_str_radix(digits, 16).unwrap_or_default(), rest)
}

#[cold]
fn lonely() -> PgError {
    invalid("Unicode low surrogate must follow a high surrogate.".to_owned())
}
