//! Integers as Redis reads and prints them.
//!
//! Redis accepts exactly the text that its own printer would produce: no `+`, no leading zero, no blank, no `-0`. Whether a string is an integer therefore
//! depends on its bytes alone, so INCR, OBJECT ENCODING and BITFIELD offsets always agree.

/// Parses a number. Returns None if the bytes are not its one canonical text or if it does not fit.
pub fn parse(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'0'] => return Some(0),
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 19 || digits[0] == b'0' {
        return None;
    }
    // Nineteen digits stay below 10^19 < 2^64, so the sum below cannot overflow.
    let mut magnitude = 0u64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit - b'0');
    }
    match (negative, magnitude) {
        (true, m) if m <= 1 << 63 => Some((m as i64).wrapping_neg()),
        (false, m) if m < 1 << 63 => Some(m as i64),
        _ => None,
    }
}

/// Parses an unsigned number in the few places where Redis reads one (SCAN cursors): `strtoull` over the whole text, which also accepts a sign and leading
/// zeros, but no leading blank.
pub fn parse_cursor(text: &[u8]) -> Option<u64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        // `strtoull` reads the empty string as zero, and Redis accepts that.
        return if text.is_empty() { Some(0) } else { None };
    }
    let mut value = 0u64;
    for &digit in digits {
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    Some(if negative { value.wrapping_neg() } else { value })
}

/// Returns the number at the start of a text, as C's `strtod` reads it; 0 if there is none, or none that is finite.
pub fn leading_float(text: &[u8]) -> f64 {
    let text = &text.trim_ascii_start()[..text.trim_ascii_start().len().min(64)];
    let number = |end: usize| std::str::from_utf8(&text[..end]).ok()?.parse::<f64>().ok();
    (0..=text.len()).rev().find_map(number).filter(|number| number.is_finite()).unwrap_or(0.0)
}

/// Size of the buffer for any printed 64-bit number.
pub type Digits = [u8; 20];

/// Prints without allocating. The text is the returned slice of `room`.
pub fn print(value: i64, room: &mut Digits) -> &[u8] {
    let start = print_magnitude(value.unsigned_abs(), room);
    if value < 0 {
        room[start - 1] = b'-';
        return &room[start - 1..];
    }
    &room[start..]
}

/// Writes the digits at the end of `room` and returns their start. There is always space for a sign before an i64.
fn print_magnitude(mut value: u64, room: &mut Digits) -> usize {
    const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
                                5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
    let mut at = room.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        room[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        room[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        room[at] = b'0' + value as u8;
    }
    at
}

/// Appends the number's text.
pub fn append(out: &mut Vec<u8>, value: i64) {
    let mut room = Digits::default();
    out.extend_from_slice(print(value, &mut room));
}

/// Appends an unsigned number's text.
pub fn append_unsigned(out: &mut Vec<u8>, value: u64) {
    let mut room = Digits::default();
    let start = print_magnitude(value, &mut room);
    out.extend_from_slice(&room[start..]);
}

/// Parses the number of a database.
pub fn database(text: &[u8]) -> Option<u8> {
    parse(text).filter(|db| (0..i64::from(engine::DATABASES)).contains(db)).map(|db| db as u8)
}

/// Parses `100`, `1k` (1000), `1kb` (1024), and so on.
pub fn memory_size(text: &str) -> Option<i64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let factor = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    text[..digits].parse::<i64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_takes_the_canonical_spelling_only() {
        for value in [0, 1, -1, 9, 10, 99, 100, 12345, i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1] {
            assert_eq!(parse(value.to_string().as_bytes()), Some(value));
        }
        let refused = [
            "",
            "-",
            "+1",
            "01",
            "-0",
            "00",
            " 1",
            "1 ",
            "1a",
            "0x1",
            "1.0",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "-",
            "--1",
        ];
        for text in refused {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn print_agrees_with_the_standard_library() {
        let mut value = 1i64;
        for step in 0..200u32 {
            for v in [value, value.wrapping_neg(), value.wrapping_add(i64::from(step)), 0, i64::MIN, i64::MAX] {
                let mut out = Vec::new();
                append(&mut out, v);
                assert_eq!(out, v.to_string().as_bytes());
                out.clear();
                append_unsigned(&mut out, v as u64);
                assert_eq!(out, (v as u64).to_string().as_bytes());
            }
            value = value.wrapping_mul(3).wrapping_add(7);
        }
    }

    #[test]
    fn cursor_follows_strtoull() {
        assert_eq!(parse_cursor(b"0"), Some(0));
        assert_eq!(parse_cursor(b""), Some(0));
        assert_eq!(parse_cursor(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_cursor(b"18446744073709551616"), None);
        assert_eq!(parse_cursor(b"-1"), Some(u64::MAX));
        assert_eq!(parse_cursor(b"007"), Some(7));
        assert_eq!(parse_cursor(b"abc"), None);
        assert_eq!(parse_cursor(b"1 "), None);
    }
}
