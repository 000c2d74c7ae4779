//! The values of tokens: names folded and cut, strings without their escapes, numbers.

use super::error::{Error, Problem, Result};
use super::lexer::{Kind, NAME_BYTES_MAX, Token, continuation};
use super::tree::Const;

/// Returns the name that an unquoted word is: in lower case (ASCII only, as in a UTF-8 database) and cut.
pub(super) fn folded(word: &str) -> String {
    cut(word.to_ascii_lowercase())
}

/// Cuts a name at the last character that ends within the longest name.
pub(super) fn cut(mut name: String) -> String {
    if name.len() > NAME_BYTES_MAX {
        let mut end = NAME_BYTES_MAX;
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        name.truncate(end);
    }
    name
}

/// Returns an integer, or the digits of one that does not fit, without underscores.
pub fn integer(text: &str) -> Const {
    if let Ok(number) = text.parse() {
        return Const::Integer(number);
    }
    let text: String = text.chars().filter(|letter| *letter != '_').collect();
    let number = match text.get(..2) {
        Some("0x" | "0X") => i32::from_str_radix(&text[2..], 16),
        Some("0o" | "0O") => i32::from_str_radix(&text[2..], 8),
        Some("0b" | "0B") => i32::from_str_radix(&text[2..], 2),
        _ => text.parse(),
    };
    number.map_or(Const::Float(text), Const::Integer)
}

/// Calls `part` with the inside of each part of a string and its place in the text.
fn parts<'t>(text: &'t str, token: Token, mut part: impl FnMut(&'t str, usize) -> Result<()>) -> Result<()> {
    let bytes = text.as_bytes();
    let end = token.end as usize;
    let mut at = token.start as usize;
    while bytes[at] != b'\'' {
        at += 1;
    }
    loop {
        let start = at + 1;
        at = start;
        loop {
            match bytes[at] {
                b'\'' if at + 1 < end && bytes[at + 1] == b'\'' => at += 2,
                b'\'' => break,
                b'\\' if token.kind == Kind::EscapeString => at += 2,
                _ => at += 1,
            }
        }
        part(&text[start..at], start)?;
        at += 1;
        if at >= end {
            return Ok(());
        }
        at = continuation(bytes, at).unwrap_or(end);
        if at >= end {
            return Ok(());
        }
    }
}

/// Returns the value of a string of any kind but `U&`, whose escape character stands behind it.
///
/// # Errors
///
/// An escape that is none, or bytes that are no UTF-8.
pub fn string(text: &str, token: Token) -> Result<String> {
    if token.kind == Kind::DollarString {
        let whole = &text[token.start as usize..token.end as usize];
        let tag = 1 + whole[1..].find('$').unwrap_or(0) + 1;
        return Ok(whole[tag..whole.len() - tag].to_owned());
    }
    let mut out = String::new();
    if token.kind == Kind::EscapeString {
        let mut bytes = Vec::new();
        let mut pending = None;
        parts(text, token, |part, at| escapes(part, at, &mut bytes, &mut pending))?;
        if pending.is_some() {
            return Err(near(SURROGATE, token.end as usize - 1, token.end as usize));
        }
        return String::from_utf8(bytes).map_err(|error| {
            let bad = &error.as_bytes()[error.utf8_error().valid_up_to()..];
            let len = error.utf8_error().error_len().unwrap_or(bad.len());
            invalid_bytes(&bad[..len], token)
        });
    }
    parts(text, token, |part, _| {
        doubled(part, '\'', &mut out);
        Ok(())
    })?;
    Ok(out)
}

/// Appends the text, in which the quote stands twice for itself.
fn doubled(part: &str, quote: char, out: &mut String) {
    let mut rest = part;
    while let Some(at) = rest.find(quote) {
        out.push_str(&rest[..=at]);
        rest = rest.get(at + 2..).unwrap_or("");
    }
    out.push_str(rest);
}

fn invalid_bytes(bytes: &[u8], token: Token) -> Error {
    let list: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    let message = format!("invalid byte sequence for encoding \"UTF8\": {}", list.join(" "));
    // The error of a conversion has no position in PostgreSQL; the token is where the caller looks.
    invalid("22021", message, None, token.start as usize, token.end as usize)
}

pub(super) fn invalid(
    state: &'static str,
    message: impl Into<std::borrow::Cow<'static, str>>,
    hint: Option<&'static str>,
    at: usize,
    end: usize,
) -> Error {
    let hint = hint.map(std::borrow::Cow::Borrowed);
    Error { problem: Problem::Invalid { state, message: message.into(), detail: None, hint }, at, end }
}

const SURROGATE: &str = "invalid Unicode surrogate pair";

/// The error of a string that the lexer refuses: it names the text at the place.
fn near(message: &'static str, at: usize, end: usize) -> Error {
    Error { problem: Problem::Near(message), at, end }
}

/// The error of a string that is read behind the lexer, once its escape character is known.
fn behind_lexer(message: &'static str, at: usize, end: usize) -> Error {
    invalid("42601", message, None, at, end)
}

/// Resolves the escapes of `E'...'`. `pending`: a first surrogate that waits for its second.
fn escapes(part: &str, at: usize, out: &mut Vec<u8>, pending: &mut Option<u32>) -> Result<()> {
    let bytes = part.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let start = i;
        let byte = bytes[i];
        i += 1;
        let is_unicode = byte == b'\\' && matches!(bytes.get(i), Some(b'u' | b'U'));
        if pending.is_some() && !is_unicode {
            return Err(near(SURROGATE, at + start, at + start + 1));
        }
        match byte {
            b'\'' => {
                out.push(b'\'');
                i += 1;
            }
            b'\\' if is_unicode => {
                let digits = if bytes[i] == b'u' { 4 } else { 8 };
                i += 1;
                let code = part.get(i..i + digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
                let Some(code) = code.and_then(|code| u32::from_str_radix(code, 16).ok()) else {
                    let hint = Some("Unicode escapes must be \\uXX\u{58}X or \\UXX\u{58}XX\u{58}XX.");
                    return Err(invalid("22025", "invalid Unicode escape", hint, at + start, at + i));
                };
                i += digits;
                let letter = unicode(code, pending);
                let letter = letter.map_err(|message| near(message, at + start, at + i))?;
                if let Some(letter) = letter {
                    out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
            b'\\' => i += escape(&bytes[i..], out),
            byte => out.push(byte),
        }
    }
    if out.contains(&0) {
        return Err(invalid("22021", "invalid byte sequence for encoding \"UTF8\": 0x00", None, at, at + bytes.len()));
    }
    Ok(())
}

/// Appends the byte of a simple escape; returns how many bytes it has after the backslash.
fn escape(rest: &[u8], out: &mut Vec<u8>) -> usize {
    let count = |digits: &[u8], most: usize, is_digit: fn(&u8) -> bool| {
        digits.iter().take(most).take_while(|byte| is_digit(byte)).count()
    };
    let number = |digits: &[u8], base: u32| {
        digits.iter().fold(0u32, |sum, digit| sum * base + (*digit as char).to_digit(base).unwrap_or(0)) as u8
    };
    match rest.first() {
        Some(b'b') => out.push(8),
        Some(b'f') => out.push(12),
        Some(b'n') => out.push(b'\n'),
        Some(b'r') => out.push(b'\r'),
        Some(b't') => out.push(b'\t'),
        Some(b'v') => out.push(11),
        Some(b'0'..=b'7') => {
            let digits = count(rest, 3, |byte| matches!(byte, b'0'..=b'7'));
            out.push(number(&rest[..digits], 8));
            return digits;
        }
        Some(b'x') => {
            let digits = count(&rest[1..], 2, u8::is_ascii_hexdigit);
            out.push(if digits == 0 { b'x' } else { number(&rest[1..=digits], 16) });
            return 1 + digits;
        }
        Some(other) => out.push(*other),
        None => return 0,
    }
    1
}

/// Returns the character of a code, or keeps a first surrogate. The error is its message.
fn unicode(code: u32, pending: &mut Option<u32>) -> std::result::Result<Option<char>, &'static str> {
    let code = match (pending.take(), code) {
        (Some(first), 0xdc00..=0xdfff) => 0x10000 + ((first & 0x3ff) << 10) + (code & 0x3ff),
        (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(SURROGATE),
        (None, 0xd800..=0xdbff) => {
            *pending = Some(code);
            return Ok(None);
        }
        (None, code) => code,
    };
    let letter = char::from_u32(code).filter(|letter| *letter != '\0');
    letter.map(Some).ok_or("invalid Unicode escape value")
}

/// Returns the value of `U&'...'` or `U&"..."` with its escape character.
///
/// # Errors
///
/// As [`string`].
pub fn unicode_string(text: &str, token: Token, escape: char) -> Result<String> {
    let mut raw = String::new();
    let start = token.start as usize;
    if token.kind == Kind::UnicodeQuoted {
        raw.push_str(&quoted(&text[start + 2..token.end as usize]));
    } else {
        parts(text, token, |part, _| {
            doubled(part, '\'', &mut raw);
            Ok(())
        })?;
    }
    let mut out = String::new();
    let mut pending = None;
    let mut rest = raw.as_str();
    let end = token.end as usize;
    while let Some(letter) = rest.chars().next() {
        let at = start + 3 + (raw.len() - rest.len());
        rest = &rest[letter.len_utf8()..];
        if letter == escape && rest.starts_with(escape) {
            rest = &rest[escape.len_utf8()..];
        } else if letter == escape {
            let (skip, digits) = if rest.starts_with('+') { (1, 6) } else { (0, 4) };
            let code = rest.get(skip..skip + digits).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let Some(code) = code.and_then(|code| u32::from_str_radix(code, 16).ok()) else {
                let hint = Some("Unicode escapes must be \\XX\u{58}X or \\+XX\u{58}XX\u{58}.");
                return Err(invalid("42601", "invalid Unicode escape", hint, at, end));
            };
            rest = &rest[skip + digits..];
            out.extend(unicode(code, &mut pending).map_err(|message| behind_lexer(message, at, end))?);
            continue;
        }
        if pending.is_some() {
            return Err(behind_lexer(SURROGATE, at, end));
        }
        out.push(letter);
    }
    match pending {
        Some(_) => Err(behind_lexer(SURROGATE, start + 3 + raw.len(), end)),
        None => Ok(out),
    }
}

/// Returns the name in double quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::new();
    doubled(&text[1..text.len() - 1], '"', &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::lexer::Lexer;

    fn value(text: &str) -> String {
        string(text, Lexer::new(text).advance()).unwrap()
    }

    #[test]
    fn strings_lose_their_quotes_and_escapes() {
        assert_eq!(value("'a''b'"), "a'b");
        assert_eq!(value("'a' \n 'b''c'"), "ab'c");
        assert_eq!(value("E'a\\n\\'\\x41\\101\\u0042\\q'\n'\\t'"), "a\n'AABq\t");
        assert_eq!(value("E'\\ud83d\\ude00'"), "😀");
        assert_eq!(value("E'\\xc3\\xa4'"), "ä");
        assert_eq!(value("$$a'b$$"), "a'b");
        assert_eq!(value("$x$a$$b$x$"), "a$$b");
        let text = "U&'d\\0061t\\+000061'";
        assert_eq!(unicode_string(text, Lexer::new(text).advance(), '\\').unwrap(), "data");
    }

    #[test]
    fn numbers_beyond_31_bits_keep_their_digits() {
        assert_eq!(integer("2147483647"), Const::Integer(i32::MAX));
        assert_eq!(integer("2_147_483_648"), Const::Float("2147483648".to_owned()));
        assert_eq!(integer("0x7fffffff"), Const::Integer(i32::MAX));
        assert_eq!(integer("0b101"), Const::Integer(5));
    }
}
