//! Statements whose literals hold bytes that are not text.
//!
//! A client may put any bytes between quotes (`_binary'...'`, as dumps and some drivers write BLOBs), but `query` reads text. Such a literal is rewritten as
//! hexadecimal, `x'...'`, which denotes the same bytes; the rest of the statement is unchanged. Only statements come here that are not valid in the client's character set, or whose text
//! would not give their bytes back.

use sql_mysql::charset::decode;
use sql_mysql::types::Charset;

/// Returns whether a decoded statement gives its bytes back. Some character sets have several codes for a character, or bytes without any.
pub fn is_reversible(text: &str, bytes: &[u8], charset: Charset) -> bool {
    charset.encode(text)[..] == *bytes
}

/// Returns the statement as text, or `None` if bytes outside of literals are not text.
pub fn as_text(bytes: &[u8], charset: Charset, backslash_escapes: bool) -> Option<String> {
    let mut out = String::with_capacity(bytes.len() + 64);
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'\'' | b'"' => {
                let end = literal_end(bytes, at, charset, backslash_escapes)?;
                let literal = &bytes[at..end];
                // Bytes keep their form; text may take a character's other code.
                let is_bytes = ends_with_introducer(&out);
                match decode(literal, charset) {
                    Some(text) if !is_bytes || is_reversible(&text, literal, charset) => out.push_str(&text),
                    _ => put_hex(&mut out, literal, charset, backslash_escapes),
                }
                at = end;
                continue;
            }
            b'`' => at + 2 + find(&bytes[at + 1..], charset, b"`")?,
            b'#' => line_end(bytes, at),
            b'-' if bytes[at..].starts_with(b"-- ") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") && bytes.get(at + 2) != Some(&b'!') => {
                at + 2 + 2 + bytes[at + 2..].windows(2).position(|two| two == b"*/")?
            }
            _ => at + find(&bytes[at..], charset, b"'\"`#-/").map_or(bytes.len() - at, |n| n.max(1)),
        };
        out.push_str(&decode(&bytes[at..end], charset)?);
        at = end;
    }
    Some(out)
}

/// Returns the place of the first character that is one of those bytes.
fn find(bytes: &[u8], charset: Charset, wanted: &[u8]) -> Option<usize> {
    let mut at = 0;
    while !wanted.contains(bytes.get(at)?) {
        at += charset.char_length(&bytes[at..]);
    }
    Some(at)
}

pub fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// Returns the position behind the closing quote. A doubled quote does not close.
pub fn literal_end(bytes: &[u8], start: usize, charset: Charset, backslash_escapes: bool) -> Option<usize> {
    let quote = bytes[start];
    let mut at = start + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' if backslash_escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += charset.char_length(&bytes[at..]),
        }
    }
}

/// Returns whether `_binary` is before the literal that follows.
fn ends_with_introducer(text: &str) -> bool {
    let bytes = text.trim_ascii_end().as_bytes();
    bytes.last_chunk::<7>().is_some_and(|word| word.eq_ignore_ascii_case(b"_binary"))
}

fn put_hex(out: &mut String, literal: &[u8], charset: Charset, backslash_escapes: bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let quote = literal[0];
    let mut rest = &literal[1..literal.len() - 1];
    // A space keeps `_binary` and `x'...'` two words.
    if out.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_') {
        out.push(' ');
    }
    out.push_str("x'");
    let mut put = |byte: u8| {
        out.push(DIGITS[usize::from(byte >> 4)].into());
        out.push(DIGITS[usize::from(byte & 15)].into());
    };
    while let [byte, after @ ..] = rest {
        let (letter, others) = rest.split_at(charset.char_length(rest));
        rest = others;
        match *byte {
            _ if letter.len() > 1 => letter.iter().for_each(|byte| put(*byte)),
            b'\\' if backslash_escapes => {
                let (next, others) = after.split_first().unwrap_or((&b'\\', &[]));
                rest = others;
                if let Some(byte) = escaped(*next) {
                    put(byte);
                } else {
                    put(b'\\');
                    put(*next);
                }
            }
            byte if byte == quote => {
                rest = others.get(1..).unwrap_or(&[]);
                put(quote);
            }
            byte => put(byte),
        }
    }
    out.push('\'');
}

/// Returns the byte that a letter denotes behind a backslash. `None` means that the backslash is kept: `\%` and `\_` are escapes of LIKE.
pub fn escaped(letter: u8) -> Option<u8> {
    Some(match letter {
        b'0' => 0,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'Z' => 26,
        b'%' | b'_' => return None,
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use stdx::prng::Prng;

    use super::*;

    #[test]
    fn only_literals_that_are_no_text_are_written_anew() {
        let statement =
            b"insert into `t` /* ' */ values ('\xc3\xa4', _binary'a\xff\\0\\'\\\\''b', \"\xfe\") -- it's\n, # '\n 'x'";
        let expected = "insert into `t` /* ' */ values ('ä', _binary x'61FF00275C2762', x'FE') -- it's\n, # '\n 'x'";
        assert_eq!(as_text(statement, Charset::Utf8, true).as_deref(), Some(expected));
        assert_eq!(as_text(b"'\xff\\%\\_\\x'", Charset::Utf8, true).as_deref(), Some("x'FF5C255C5F78'"));
        assert_eq!(as_text(b"'\xff\\', 1", Charset::Utf8, false).as_deref(), Some("x'FF5C', 1"));
    }

    #[test]
    fn characters_of_several_bytes_hide_quotes_and_backslashes() {
        // 0x5C ends the second character, 0xFF is none.
        let statement = b"select '\x95\x5c', '\x95\x5c\xff' -- \x83\x5c";
        assert_eq!(as_text(statement, Charset::Sjis, true).as_deref(), Some("select '表', x'955CFF' -- ソ"));
        let twice = b"insert into \x95\x5c values (_binary '\xed\x40', '\xed\x40', _binary'\xfa\x5c')";
        let expected = "insert into 表 values (_binary x'ED40', '纊', _binary'纊')";
        assert_eq!(as_text(twice, Charset::Cp932, true).as_deref(), Some(expected));
        assert_eq!(as_text(b"_binary'\x98', '\xc0'", Charset::Cp1251, true).as_deref(), Some("_binary x'98', 'А'"));
        assert_eq!(as_text(b"`\x95\x60`, '\xff'", Charset::Cp932, true).as_deref(), Some("`描`, x'FF'"));
    }

    #[test]
    fn bytes_outside_of_literals_and_open_literals_are_no_text() {
        for bad in [&b"select \xff"[..], b"select '\xff", b"`\xff`", b"/* \xff */ 1", b"'\xff\\"] {
            assert_eq!(as_text(bad, Charset::Utf8, true), None, "{bad:?}");
        }
    }

    #[test]
    fn random_bytes_never_make_it_stumble() {
        let mut random = Prng::new(20261121);
        let alphabet = b"'\"`\\#-/*! a\n\xff\xc3\xa4x";
        for _ in 0..100_000 {
            let length = random.below(24);
            let bytes: Vec<u8> = (0..length).map(|_| alphabet[random.below(alphabet.len() as u64) as usize]).collect();
            for charset in [Charset::Utf8, Charset::Gbk, Charset::Cp932, Charset::Cp1251] {
                let _ = as_text(&bytes, charset, random.chance(0.5));
            }
        }
    }
}
