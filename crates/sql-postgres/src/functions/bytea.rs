//! Functions of bytea, and encodings of bytes as text.

use datum::Result;
use md5::Md5;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::error::{PgError, state};
use crate::functions::args::{bytes, claim, integer, invalid, text};
use crate::functions::session::encoding_number;
use crate::functions::text::strings::{overlay_spans, span};
use crate::types::{bytea, io};
use crate::value::Value;

pub fn concatenate(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = (bytes(values, 0)?, bytes(values, 1)?);
    let _claim = claim(a.len() + b.len())?;
    Ok(Value::from_bytes([a, b].concat()))
}

fn part(bytes: &[u8], (start, end): (usize, usize)) -> &[u8] {
    let end = end.min(bytes.len());
    if start >= end { &[] } else { &bytes[start..end] }
}

pub fn substring(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let length = if values.len() > 2 { Some(integer(values, 2)?) } else { None };
    Ok(Value::bytes(part(bytes(values, 0)?, span(integer(values, 1)?, length)?)))
}

pub fn overlay(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (old, new) = (bytes(values, 0)?, bytes(values, 1)?);
    let length = if values.len() > 3 { integer(values, 3)? } else { new.len() as i64 };
    let (before, behind) = overlay_spans(integer(values, 2)?, length)?;
    Ok(Value::from_bytes([part(old, before), new, part(old, behind)].concat()))
}

pub fn position(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (text, wanted) = (bytes(values, 0)?, bytes(values, 1)?);
    if wanted.is_empty() {
        return Ok(Value::Int(1));
    }
    let at = text.windows(wanted.len()).position(|window| window == wanted);
    Ok(Value::Int(at.map_or(0, |at| at as i64 + 1)))
}

fn trimmed(values: &[Value], start: bool, end: bool) -> Result<Value> {
    let (mut rest, set) = (bytes(values, 0)?, bytes(values, 1)?);
    while let [first, behind @ ..] = rest
        && start
        && set.contains(first)
    {
        rest = behind;
    }
    while let [before @ .., last] = rest
        && end
        && set.contains(last)
    {
        rest = before;
    }
    Ok(Value::bytes(rest))
}

pub fn btrim(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    trimmed(values, true, true)
}

pub fn ltrim(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    trimmed(values, true, false)
}

pub fn rtrim(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    trimmed(values, false, true)
}

/// Returns a place within the bytes, or within their bits.
fn place(values: &[Value], count: usize) -> Result<usize> {
    let at = integer(values, 1)?;
    match usize::try_from(at) {
        Ok(place) if place < count => Ok(place),
        _ => {
            let message = format!("index {at} out of valid range, 0..{}", count as i64 - 1);
            Err(PgError::new(state::ARRAY_SUBSCRIPT_ERROR, message).into())
        }
    }
}

pub fn get_byte(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let bytes = bytes(values, 0)?;
    Ok(Value::Int(bytes[place(values, bytes.len())?].into()))
}

pub fn set_byte(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut bytes = bytes(values, 0)?.to_vec();
    let at = place(values, bytes.len())?;
    bytes[at] = integer(values, 2)? as u8;
    Ok(Value::from_bytes(bytes))
}

pub fn get_bit(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let bytes = bytes(values, 0)?;
    let at = place(values, bytes.len() * 8)?;
    Ok(Value::Int((bytes[at / 8] >> (at % 8) & 1).into()))
}

pub fn set_bit(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut bytes = bytes(values, 0)?.to_vec();
    let at = place(values, bytes.len() * 8)?;
    match integer(values, 2)? {
        0 => bytes[at / 8] &= !(1 << (at % 8)),
        1 => bytes[at / 8] |= 1 << (at % 8),
        _ => return Err(invalid("new bit must be 0 or 1")),
    }
    Ok(Value::from_bytes(bytes))
}

pub fn bit_count(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(bytes(values, 0)?.iter().map(|byte| i64::from(byte.count_ones())).sum()))
}

fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    bytea::encode_hex(bytes, &mut out);
    out.into_iter().map(char::from).collect()
}

pub fn md5(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Text(hex(&Md5::digest(bytes(values, 0)?)).into()))
}

pub fn sha224(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::bytes(Sha224::digest(bytes(values, 0)?)))
}

pub fn sha256(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::bytes(Sha256::digest(bytes(values, 0)?)))
}

pub fn sha384(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::bytes(Sha384::digest(bytes(values, 0)?)))
}

pub fn sha512(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::bytes(Sha512::digest(bytes(values, 0)?)))
}

#[cold]
fn unknown_encoding(name: &str) -> datum::Fault {
    invalid(format!("unrecognized encoding: \"{name}\""))
}

pub fn encode(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (bytes, form) = (bytes(values, 0)?, text(values, 1)?);
    let _claim = claim(bytes.len().saturating_mul(2))?;
    let encoded = match &*form.to_ascii_lowercase() {
        "hex" => hex(bytes),
        "base64" => base64(bytes),
        "escape" => escape(bytes),
        _ => return Err(unknown_encoding(form)),
    };
    Ok(Value::Text(encoded.into()))
}

pub fn decode(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (encoded, form) = (text(values, 0)?, text(values, 1)?);
    let decoded = match &*form.to_ascii_lowercase() {
        "hex" => bytea::decode_hex(encoded)?,
        "base64" => from_base64(encoded)?,
        "escape" => bytea::decode_escape(encoded.as_bytes())
            .ok_or_else(|| PgError::new(state::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea"))?,
        _ => return Err(unknown_encoding(form)),
    };
    Ok(Value::from_bytes(decoded))
}

/// Zero bytes and bytes beyond ASCII become octal escapes.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0 | 0x80.. => out.push_str(&format!("\\{byte:03o}")),
            b'\\' => out.push_str("\\\\"),
            other => out.push(char::from(*other)),
        }
    }
    out
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// The most characters of a line.
const LINE_MAX: usize = 76;

fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() / 3 * 4 + bytes.len() / 57 + 4);
    let mut line = 0;
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            out.push(if digit > group.len() { '=' } else { char::from(DIGITS[value as usize]) });
        }
        line += 4;
        if line >= LINE_MAX {
            out.push('\n');
            line = 0;
        }
    }
    out
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let (mut out, mut bits, mut place, mut end) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0, 0);
    for letter in text.chars() {
        if matches!(letter, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        let value = if letter == '=' {
            // Padding is the third or the fourth of a group.
            if end == 0 {
                end = match place {
                    2 => 1,
                    3 => 2,
                    _ => return Err(invalid("unexpected \"=\" while decoding base64 sequence")),
                };
            }
            0
        } else {
            let known = u8::try_from(letter).ok().and_then(|byte| DIGITS.iter().position(|digit| *digit == byte));
            let message = || format!("invalid symbol \"{letter}\" found while decoding base64 sequence");
            known.ok_or_else(|| invalid(message()))? as u32
        };
        bits = bits << 6 | value;
        place += 1;
        if place == 4 {
            out.push((bits >> 16) as u8);
            if end == 0 || end > 1 {
                out.push((bits >> 8) as u8);
            }
            if end == 0 || end > 2 {
                out.push(bits as u8);
            }
            (bits, place) = (0, 0);
        }
    }
    if place != 0 {
        let hint = "Input data is missing padding, is truncated, or is otherwise corrupted.";
        return Err(PgError::new(state::INVALID_PARAMETER_VALUE, "invalid base64 end sequence").hint(hint).into());
    }
    Ok(out)
}

/// The encodings between which texts are converted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Latin1,
    /// Bytes that are taken as they are.
    Ascii,
}

fn encoding(name: &str, role: &str) -> Result<Encoding> {
    match encoding_number(name) {
        Some(0) => Ok(Encoding::Ascii),
        Some(6) => Ok(Encoding::Utf8),
        Some(8) => Ok(Encoding::Latin1),
        Some(_) => {
            let message = format!("conversion of encoding \"{name}\" is not supported");
            Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message).into())
        }
        None => Err(invalid(format!("invalid {role}encoding name \"{name}\""))),
    }
}

pub fn convert_from(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let bytes = bytes(values, 0)?;
    match encoding(text(values, 1)?, "source ")? {
        Encoding::Latin1 => Ok(Value::Text(bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into())),
        Encoding::Utf8 | Encoding::Ascii => Ok(Value::text(io::utf8(bytes)?)),
    }
}

pub fn convert_to(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let text_in = text(values, 0)?;
    match encoding(text(values, 1)?, "destination ")? {
        Encoding::Latin1 => {
            let one = |letter: char| u8::try_from(letter).map_err(|_| untranslatable(letter, "LATIN1"));
            Ok(Value::from_bytes(text_in.chars().map(one).collect::<Result<Vec<u8>>>()?))
        }
        Encoding::Utf8 | Encoding::Ascii => Ok(Value::bytes(text_in.as_bytes())),
    }
}

#[cold]
fn untranslatable(letter: char, to: &str) -> datum::Fault {
    let bytes: Vec<String> = letter.to_string().bytes().map(|byte| format!("0x{byte:02x}")).collect();
    let message = format!(
        "character with byte sequence {} in encoding \"UTF8\" has no equivalent in encoding \"{to}\"",
        bytes.join(" ")
    );
    PgError::new(state::UNTRANSLATABLE_CHARACTER, message).into()
}

pub fn length_in(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let bytes = bytes(values, 0)?;
    Ok(Value::Int(match encoding(text(values, 1)?, "")? {
        Encoding::Utf8 => io::utf8(bytes)?.chars().count() as i64,
        Encoding::Latin1 | Encoding::Ascii => bytes.len() as i64,
    }))
}
