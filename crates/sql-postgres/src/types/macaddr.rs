//! macaddr and macaddr8: addresses of 6 and 8 bytes, which order as their bytes do.

use crate::error::{PgError, Result, state};
use crate::types::io;
use crate::value::Value;

/// The bytes between which one of 6 bytes becomes one of 8.
pub const FILLER: [u8; 2] = [0xff, 0xfe];

/// The forms of a macaddr: the most digits of an octet, and the separator behind each octet but the last.
const FORMS: [(usize, [&str; 5]); 7] = [
    (usize::MAX, [":"; 5]),
    (usize::MAX, ["-"; 5]),
    (2, ["", "", ":", "", ""]),
    (2, ["", "", "-", "", ""]),
    (2, ["", ".", "", ".", ""]),
    (2, ["", "-", "", "-", ""]),
    (2, [""; 5]),
];

pub fn input(text: &str) -> Result<Value> {
    let octets = FORMS.iter().find_map(|(digits, separators)| octets(text.as_bytes(), *digits, separators));
    let octets = octets.ok_or_else(|| io::invalid_input("macaddr", text))?;
    let mut bytes = [0; 6];
    for (byte, octet) in bytes.iter_mut().zip(octets) {
        *byte = u8::try_from(octet).map_err(|_| {
            let message = format!("invalid octet value in \"macaddr\" value: \"{text}\"");
            PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message)
        })?;
    }
    Ok(Value::bytes(bytes))
}

/// Returns the octets of a text in a form, behind which nothing but spaces follows.
fn octets(text: &[u8], digits: usize, separators: &[&str; 5]) -> Option<[i32; 6]> {
    let mut rest = text;
    let mut octets = [0; 6];
    for (at, octet) in octets.iter_mut().enumerate() {
        let (number, behind) = hex(rest, digits)?;
        *octet = number;
        rest = match separators.get(at) {
            Some(separator) => behind.strip_prefix(separator.as_bytes())?,
            None => behind,
        };
    }
    rest.iter().all(is_space).then_some(octets)
}

/// The spaces of C.
fn is_space(letter: &u8) -> bool {
    matches!(letter, b' ' | b'\t'..=b'\r')
}

/// Reads a number as `%x` of scanf with a width does: spaces, a sign and `0x` may precede it.
fn hex(text: &[u8], width: usize) -> Option<(i32, &[u8])> {
    let mut rest = after_spaces(text);
    let mut left = width;
    let mut take = |rest: &mut &[u8], is_wanted: &dyn Fn(u8) -> bool| -> Option<u8> {
        let (letter, behind) = rest.split_first().filter(|(letter, _)| left > 0 && is_wanted(**letter))?;
        left -= 1;
        *rest = behind;
        Some(*letter)
    };
    let sign = take(&mut rest, &|letter| matches!(letter, b'-' | b'+'));
    let zero = take(&mut rest, &|letter| letter == b'0');
    if zero.is_some() {
        take(&mut rest, &|letter| matches!(letter, b'x' | b'X'));
    }
    let (mut number, mut has_digits) = (0u64, zero.is_some());
    while let Some(digit) = take(&mut rest, &|letter| letter.is_ascii_hexdigit()) {
        let digit = u64::from(char::from(digit).to_digit(16)?);
        number = if number >> 60 == 0 { number << 4 | digit } else { u64::MAX };
        has_digits = true;
    }
    let number = if sign == Some(b'-') && number != u64::MAX { number.wrapping_neg() } else { number };
    has_digits.then_some((number as i32, rest))
}

fn after_spaces(text: &[u8]) -> &[u8] {
    let from = text.iter().position(|letter| !is_space(letter)).unwrap_or(text.len());
    &text[from..]
}

/// Reads pairs of digits with one separator between them, of 6 or 8 bytes. A single letter behind the last pair is not looked at, as in PostgreSQL.
pub fn input8(text: &str) -> Result<Value> {
    let found = pairs(text.as_bytes()).and_then(|bytes| widened(&bytes));
    found.map(Value::bytes).ok_or_else(|| io::invalid_input("macaddr8", text))
}

fn pairs(text: &[u8]) -> Option<Vec<u8>> {
    let mut rest = after_spaces(text);
    let mut bytes = Vec::with_capacity(8);
    let mut spacer = None;
    while let [high, low, behind @ ..] = rest {
        let digit = |letter: &u8| char::from(*letter).to_digit(16).map(|digit| digit as u8);
        if bytes.len() == 8 {
            return None;
        }
        bytes.push(digit(high)? << 4 | digit(low)?);
        rest = behind;
        if let [letter @ (b':' | b'-' | b'.'), behind @ ..] = rest {
            if *spacer.get_or_insert(*letter) != *letter {
                return None;
            }
            rest = behind;
        }
        if matches!(bytes.len(), 6 | 8) && rest.first().is_some_and(is_space) {
            rest = after_spaces(rest);
            if !rest.is_empty() {
                return None;
            }
        }
    }
    Some(bytes)
}

/// Returns an address of 8 bytes from one of 6 or 8.
pub fn widened(bytes: &[u8]) -> Option<[u8; 8]> {
    match *bytes {
        [a, b, c, d, e, f] => Some([a, b, c, FILLER[0], FILLER[1], d, e, f]),
        _ => bytes.try_into().ok(),
    }
}

pub fn output(bytes: &[u8], out: &mut Vec<u8>) {
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 {
            out.push(b':');
        }
        crate::types::bytea::encode_hex(&[*byte], out);
    }
}

pub fn receive8(bytes: &[u8]) -> Result<Value> {
    match bytes.len() {
        6 => Ok(Value::bytes(widened(bytes).unwrap_or_default())),
        _ => Ok(Value::bytes(io::fixed::<8>(bytes)?)),
    }
}
