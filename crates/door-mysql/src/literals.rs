//! Statements whose literals hold bytes that are not text.
//!
//! A client may put any bytes between quotes (`_binary'...'`, as dumps and some drivers write BLOBs), but `query` reads text. Such a literal is rewritten as
//! hexadecimal, `x'...'`, which denotes the same bytes; the rest of the statement is unchanged. Only statements that are not valid UTF-8 come here.

/// Returns the statement as text, or `None` if bytes outside of literals are not text.
pub fn as_text(bytes: &[u8], backslash_escapes: bool) -> Option<String> {
    let mut out = String::with_capacity(bytes.len() + 64);
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'\'' | b'"' => {
                let end = literal_end(bytes, at, backslash_escapes)?;
                match std::str::from_utf8(&bytes[at..end]) {
                    Ok(text) => out.push_str(text),
                    Err(_) => put_hex(&mut out, &bytes[at..end], backslash_escapes),
                }
                at = end;
                continue;
            }
            b'`' => 1 + at + 1 + bytes[at + 1..].iter().position(|byte| *byte == b'`')?,
            b'#' => line_end(bytes, at),
            b'-' if bytes[at..].starts_with(b"-- ") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") && bytes.get(at + 2) != Some(&b'!') => {
                at + 2 + 2 + bytes[at + 2..].windows(2).position(|two| two == b"*/")?
            }
            _ => {
                at + bytes[at..]
                    .iter()
                    .position(|byte| b"'\"`#-/".contains(byte))
                    .map_or(bytes.len() - at, |n| n.max(1))
            }
        };
        out.push_str(std::str::from_utf8(&bytes[at..end]).ok()?);
        at = end;
    }
    Some(out)
}

pub fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// Returns the position behind the closing quote. A doubled quote does not close.
pub fn literal_end(bytes: &[u8], start: usize, backslash_escapes: bool) -> Option<usize> {
    let quote = bytes[start];
    let mut at = start + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' if backslash_escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

fn put_hex(out: &mut String, literal: &[u8], backslash_escapes: bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let quote = literal[0];
    let mut rest = literal[1..literal.len() - 1].iter().copied();
    // A space keeps `_binary` and `x'...'` two words.
    if out.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_') {
        out.push(' ');
    }
    out.push_str("x'");
    let mut put = |byte: u8| {
        out.push(DIGITS[usize::from(byte >> 4)].into());
        out.push(DIGITS[usize::from(byte & 15)].into());
    };
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' if backslash_escapes => {
                let next = rest.next().unwrap_or(b'\\');
                if let Some(byte) = escaped(next) {
                    put(byte);
                } else {
                    put(b'\\');
                    put(next);
                }
            }
            byte if byte == quote => {
                rest.next();
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
        assert_eq!(as_text(statement, true).as_deref(), Some(expected));
        assert_eq!(as_text(b"'\xff\\%\\_\\x'", true).as_deref(), Some("x'FF5C255C5F78'"));
        assert_eq!(as_text(b"'\xff\\', 1", false).as_deref(), Some("x'FF5C', 1"));
    }

    #[test]
    fn bytes_outside_of_literals_and_open_literals_are_no_text() {
        for bad in [&b"select \xff"[..], b"select '\xff", b"`\xff`", b"/* \xff */ 1", b"'\xff\\"] {
            assert_eq!(as_text(bad, true), None, "{bad:?}");
        }
    }

    #[test]
    fn random_bytes_never_make_it_stumble() {
        let mut random = Prng::new(20261121);
        let alphabet = b"'\"`\\#-/*! a\n\xff\xc3\xa4x";
        for _ in 0..100_000 {
            let length = random.below(24);
            let bytes: Vec<u8> = (0..length).map(|_| alphabet[random.below(alphabet.len() as u64) as usize]).collect();
            let _ = as_text(&bytes, random.chance(0.5));
        }
    }
}
