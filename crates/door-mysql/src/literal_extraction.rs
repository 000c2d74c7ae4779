//! Extraction of long literals from a change before it is parsed: each becomes a parameter.
//!
//! A parser copies a literal several times, and a literal whose bytes are not text would be given to it as hexadecimal, twice as long. Extraction leaves a
//! value where it arrived: its escapes are removed in place, and the value is a slice of the packet's bytes. It takes only literals that are certainly values
//! of one INSERT, REPLACE or UPDATE: behind `(`, `,` or `=` and before `,`, `)` or the end, without a character set introducer, an adjacent string or COLLATE.
//! All other text goes to the parser unchanged.

use std::ops::Range;
use std::sync::Arc;

use sql_mysql::charset::decode;
use sql_mysql::types::Charset;
use sql_mysql::value::{Bytes, Value};

use crate::literals::{escaped, line_end, literal_end};

/// Literals up to this length are left to the parser.
const LONG: usize = 64 << 10;

/// The text with `?` for each long literal, and their values.
#[derive(Debug)]
pub struct Extracted {
    pub text: String,
    pub values: Vec<Value>,
}

/// The session's syntax of literals.
#[derive(Clone, Copy)]
pub struct LiteralSyntax {
    pub charset: Charset,
    pub backslash_escapes: bool,
    /// Double quotes enclose names.
    pub ansi_quotes: bool,
}

/// A long literal: its whole extent with its prefix, and the extent between its quotes.
struct Literal {
    whole: Range<usize>,
    body: Range<usize>,
    kind: LiteralKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LiteralKind {
    /// In the client's character set if it is text there, otherwise bytes.
    Plain,
    /// `_binary'...'`
    Bytes,
    /// `x'...'` or `0x...`
    Hex,
}

/// Extracts the long literals of the statement that begins at `from`. Returns the bytes unchanged when there are none, or when a literal may not be a plain
/// value.
pub fn extract(mut bytes: Vec<u8>, from: usize, syntax: LiteralSyntax) -> Result<Extracted, Vec<u8>> {
    // Here a quote or a backslash may be the second byte of a character.
    if syntax.charset.has_own_encoding() && !syntax.charset.is_single_byte() {
        return Err(bytes);
    }
    let Some((literals, text)) = find(&bytes, from, syntax) else { return Err(bytes) };
    let mut parts = Vec::with_capacity(literals.len());
    for literal in &literals {
        let Range { start, end } = literal.body;
        let length = match literal.kind {
            LiteralKind::Hex => undo_hex(&mut bytes[start..end]),
            _ => {
                let quote = bytes[end];
                undo_escapes(&mut bytes[start..end], quote, syntax.backslash_escapes)
            }
        };
        parts.push(start..start + length);
    }
    let bytes = Arc::new(bytes);
    let value = |(literal, part): (&Literal, &Range<usize>)| {
        let is_text = literal.kind == LiteralKind::Plain;
        let text = if is_text { decode(&bytes[part.clone()], syntax.charset) } else { None };
        text.map_or_else(|| Value::Bytes(Bytes::part(&bytes, part.start, part.len())), Value::text)
    };
    let values = literals.iter().zip(&parts).map(value).collect();
    Ok(Extracted { text, values })
}

/// The token before the current position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Previous {
    Start,
    Sign(u8),
    /// A word: where it begins, and whether a value may begin there.
    Word(usize, bool),
    Text,
    Extracted,
}

/// Finds the long literals, and returns them with the text around them. Returns `None` when there are none, or when any token makes it uncertain.
fn find(bytes: &[u8], from: usize, syntax: LiteralSyntax) -> Option<(Vec<Literal>, String)> {
    let (mut at, mut copied, mut before) = (from, from, Previous::Start);
    let (mut literals, mut text): (Vec<Literal>, String) = (Vec::new(), String::new());
    while at < bytes.len() {
        let (end, what) = next(bytes, at, before, syntax)?;
        match what {
            Token::Space => {}
            Token::End if bytes[end..].iter().all(u8::is_ascii_whitespace) => break,
            Token::End => return None,
            Token::Is(now) => {
                if !may_follow(bytes, before, (at, end), now) {
                    return None;
                }
                before = now;
            }
            Token::Long(literal) => {
                if before == Previous::Start {
                    return None;
                }
                text.push_str(&decode(&bytes[copied..literal.whole.start], syntax.charset)?);
                text.push('?');
                copied = literal.whole.end;
                literals.push(literal);
                before = Previous::Extracted;
            }
        }
        at = end;
    }
    text.push_str(&decode(&bytes[copied..], syntax.charset)?);
    (!literals.is_empty()).then_some((literals, text))
}

enum Token {
    /// White space or a comment.
    Space,
    /// `;`
    End,
    Is(Previous),
    Long(Literal),
}

/// Scans the next token; returns its end and its kind.
fn next(bytes: &[u8], at: usize, before: Previous, syntax: LiteralSyntax) -> Option<(usize, Token)> {
    Some(match bytes[at] {
        byte if byte.is_ascii_whitespace() => (at + 1, Token::Space),
        b';' => (at + 1, Token::End),
        b'?' | b'{' | b'}' | b'\\' => return None,
        b'#' => (line_end(bytes, at), Token::Space),
        b'-' if bytes[at..].starts_with(b"-- ") => (line_end(bytes, at), Token::Space),
        b'/' if bytes[at..].starts_with(b"/*!") => return None,
        b'/' if bytes[at..].starts_with(b"/*") => {
            (at + 4 + bytes[at + 2..].windows(2).position(|two| two == b"*/")?, Token::Space)
        }
        b'`' => (at + 2 + bytes[at + 1..].iter().position(|byte| *byte == b'`')?, Token::Is(Previous::Word(at, false))),
        b'"' if syntax.ansi_quotes => {
            (at + 2 + bytes[at + 1..].iter().position(|byte| *byte == b'"')?, Token::Is(Previous::Word(at, false)))
        }
        b'\'' | b'"' => {
            let end = literal_end(bytes, at, syntax.charset, syntax.backslash_escapes)?;
            if end - at <= LONG {
                (end, Token::Is(Previous::Text))
            } else {
                (end, Token::Long(quoted(bytes, at..end, before)?))
            }
        }
        byte if is_word(byte) => {
            let end = at + bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
            if end - at <= LONG {
                return Some((end, Token::Is(Previous::Word(at, before.takes_value()))));
            }
            let body = at + 2..end;
            let is_hex = bytes[at..].starts_with(b"0x") && before.takes_value() && is_hex(&bytes[body.clone()]);
            (end, Token::Long(is_hex.then_some(Literal { whole: at..end, body, kind: LiteralKind::Hex })?))
        }
        sign => (at + 1, Token::Is(Previous::Sign(sign))),
    })
}

impl Previous {
    fn takes_value(self) -> bool {
        matches!(self, Previous::Sign(b'(' | b',' | b'='))
    }
}

/// Classifies a long literal between quotes; returns `None` if its kind is uncertain.
fn quoted(bytes: &[u8], whole: Range<usize>, before: Previous) -> Option<Literal> {
    let body = whole.start + 1..whole.end - 1;
    let (start, kind) = match before {
        Previous::Sign(_) if before.takes_value() => (whole.start, LiteralKind::Plain),
        Previous::Word(from, true) => {
            let word = &bytes[from..whole.start];
            let is_hex = word.eq_ignore_ascii_case(b"x") && bytes[whole.start] == b'\'' && is_hex(&bytes[body.clone()]);
            let is_binary = word.trim_ascii_end().eq_ignore_ascii_case(b"_binary");
            (from, if is_hex { LiteralKind::Hex } else { is_binary.then_some(LiteralKind::Bytes)? })
        }
        _ => return None,
    };
    Some(Literal { whole: start..whole.end, body, kind })
}

/// Returns whether a token may follow the previous one. The first word must be that of a change; no modifier may follow an extracted literal.
fn may_follow(bytes: &[u8], before: Previous, (at, end): (usize, usize), now: Previous) -> bool {
    let is_one_of = |words: &[&str]| words.iter().any(|word| bytes[at..end].eq_ignore_ascii_case(word.as_bytes()));
    match before {
        Previous::Start => is_one_of(&["insert", "replace", "update"]),
        Previous::Extracted => match now {
            Previous::Sign(sign) => matches!(sign, b',' | b')'),
            Previous::Word(..) => is_one_of(&["where", "on", "as", "order", "limit"]),
            _ => false,
        },
        _ => true,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@' | b'.' | 0x80..)
}

fn is_hex(digits: &[u8]) -> bool {
    digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit)
}

/// Decodes hexadecimal digits in place; returns the number of bytes.
fn undo_hex(digits: &mut [u8]) -> usize {
    let value = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
    for at in 0..digits.len() / 2 {
        digits[at] = value(digits[2 * at]) << 4 | value(digits[2 * at + 1]);
    }
    digits.len() / 2
}

/// Removes the escapes of a literal in place; returns the number of bytes left.
fn undo_escapes(bytes: &mut [u8], quote: u8, backslash_escapes: bool) -> usize {
    let (mut read, mut write) = (0, 0);
    while read < bytes.len() {
        let is_plain = |byte: &u8| *byte != quote && !(*byte == b'\\' && backslash_escapes);
        let plain = bytes[read..].iter().take_while(|byte| is_plain(byte)).count();
        bytes.copy_within(read..read + plain, write);
        (read, write) = (read + plain, write + plain);
        let Some(next) = bytes.get(read + 1).copied() else { break };
        if bytes[read] == quote {
            bytes[write] = quote;
        } else {
            match escaped(next) {
                Some(byte) => bytes[write] = byte,
                None => {
                    bytes[write] = b'\\';
                    bytes[write + 1] = next;
                    write += 1;
                }
            }
        }
        (read, write) = (read + 2, write + 1);
    }
    write
}

#[cfg(test)]
mod tests;
