//! Functions that cut, search and build texts. Positions count characters from 1.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, state};
use crate::functions::args::{self, claim, integer, invalid, text};
use crate::value::Value;

pub fn length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(count(text(values, 0)?) as i64))
}

/// Spaces at the end of a bpchar do not count.
pub fn bpchar_length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(count(text(values, 0)?.trim_end_matches(' ')) as i64))
}

pub fn octet_length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(args::bytes(values, 0)?.len() as i64))
}

pub fn bit_length(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(args::bytes(values, 0)?.len() as i64 * 8))
}

fn count(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// Returns the byte at which the character of a number from 0 begins; the end where there are fewer.
pub fn byte_of(text: &str, character: usize) -> usize {
    if text.is_ascii() {
        return character.min(text.len());
    }
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

pub fn concatenate(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (a, b) = (text(values, 0)?, text(values, 1)?);
    let _claim = claim(a.len() + b.len())?;
    Ok(Value::Text([a, b].concat().into()))
}

/// Letters whose other case is one letter; others stay, as C's `towupper` has it.
fn one_for_one(letter: char, mapped: impl Iterator<Item = char> + Clone) -> char {
    let mut all = mapped;
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

fn lower_char(letter: char) -> char {
    if letter == 'İ' { 'i' } else { one_for_one(letter, letter.to_lowercase()) }
}

fn upper_char(letter: char) -> char {
    // Greek letters whose one letter of the other case is the title case.
    let distance = match letter {
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => 8,
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => 9,
        _ => return one_for_one(letter, letter.to_uppercase()),
    };
    char::from_u32(u32::from(letter) + distance).unwrap_or(letter)
}

pub fn lower_text(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(lower_char).collect() }
}

pub fn lower(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Text(lower_text(text(values, 0)?).into()))
}

pub fn upper(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let text = text(values, 0)?;
    let upper = if text.is_ascii() { text.to_ascii_uppercase() } else { text.chars().map(upper_char).collect() };
    Ok(Value::Text(upper.into()))
}

pub fn initcap(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut is_in_word = false;
    let mut one = |letter: char| {
        let mapped = if is_in_word { lower_char(letter) } else { upper_char(letter) };
        is_in_word = letter.is_alphanumeric();
        mapped
    };
    Ok(Value::Text(text(values, 0)?.chars().map(&mut one).collect::<String>().into()))
}

#[cold]
fn negative_length() -> datum::Fault {
    PgError::new(state::SUBSTRING_ERROR, "negative substring length not allowed").into()
}

/// Returns the places, from 0, at which a part begins and ends: of `length` places from `start`, which counts from 1.
pub fn span(start: i64, length: Option<i64>) -> Result<(usize, usize)> {
    let end = match length {
        None => i64::MAX,
        Some(length) if length < 0 => return Err(negative_length()),
        Some(length) => (start + length).max(1) - 1,
    };
    Ok((start.max(1) as usize - 1, end as usize))
}

pub fn substring_text(text: &str, (start, end): (usize, usize)) -> &str {
    if start >= end {
        return "";
    }
    let from = byte_of(text, start);
    &text[from..from + byte_of(&text[from..], end - start)]
}

pub fn substring(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let length = if values.len() > 2 { Some(integer(values, 2)?) } else { None };
    Ok(Value::text(substring_text(text(values, 0)?, span(integer(values, 1)?, length)?)))
}

/// Returns the places of the parts before and behind what OVERLAY replaces.
pub fn overlay_spans(start: i64, length: i64) -> Result<((usize, usize), (usize, usize))> {
    if start <= 0 {
        return Err(negative_length());
    }
    let Ok(end) = i32::try_from(start + length) else {
        return Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range").into());
    };
    Ok((span(1, Some(start - 1))?, span(end.into(), None)?))
}

pub fn overlay(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (old, new) = (text(values, 0)?, text(values, 1)?);
    let length = if values.len() > 3 { integer(values, 3)? } else { count(new) as i64 };
    let (before, behind) = overlay_spans(integer(values, 2)?, length)?;
    Ok(Value::Text([substring_text(old, before), new, substring_text(old, behind)].concat().into()))
}

pub fn left(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (text, wanted) = (text(values, 0)?, integer(values, 1)?);
    let kept = if wanted < 0 { (count(text) as i64 + wanted).max(0) } else { wanted };
    Ok(Value::text(&text[..byte_of(text, kept as usize)]))
}

pub fn right(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (text, wanted) = (text(values, 0)?, integer(values, 1)?);
    let skipped = if wanted < 0 {
        // The least number has no opposite in 32 bits: PostgreSQL skips nothing.
        if wanted == i64::from(i32::MIN) { 0 } else { -wanted }
    } else {
        (count(text) as i64 - wanted).max(0)
    };
    Ok(Value::text(&text[byte_of(text, skipped as usize)..]))
}

pub fn position(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (text, wanted) = (text(values, 0)?, text(values, 1)?);
    Ok(Value::Int(text.find(wanted).map_or(0, |at| count(&text[..at]) as i64 + 1)))
}

fn trim_set(values: &[Value]) -> Result<Vec<char>> {
    Ok(if values.len() > 1 { text(values, 1)?.chars().collect() } else { vec![' '] })
}

pub fn btrim(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(text(values, 0)?.trim_matches(&*trim_set(values)?)))
}

pub fn ltrim(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(text(values, 0)?.trim_start_matches(&*trim_set(values)?)))
}

pub fn rtrim(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::text(text(values, 0)?.trim_end_matches(&*trim_set(values)?)))
}

/// Returns the part of the text that is kept, and the text that fills it up to the length.
fn padding(values: &[Value]) -> Result<(&str, String)> {
    let wanted = integer(values, 1)?.max(0) as usize;
    let text = text(values, 0)?;
    let fill = if values.len() > 2 { args::text(values, 2)? } else { " " };
    let kept = &text[..byte_of(text, wanted)];
    let missing = wanted - count(kept);
    if fill.is_empty() || missing == 0 {
        return Ok((kept, String::new()));
    }
    let longest = fill.chars().map(char::len_utf8).max().unwrap_or(1);
    let _claim = claim(missing.saturating_mul(longest).saturating_add(kept.len()))?;
    Ok((kept, fill.chars().cycle().take(missing).collect()))
}

pub fn lpad(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (kept, fill) = padding(values)?;
    Ok(Value::Text((fill + kept).into()))
}

pub fn rpad(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (kept, mut fill) = padding(values)?;
    fill.insert_str(0, kept);
    Ok(Value::Text(fill.into()))
}

pub fn repeat(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (text, times) = (text(values, 0)?, integer(values, 1)?.max(0) as usize);
    let _claim = claim(text.len().saturating_mul(times))?;
    Ok(Value::Text(text.repeat(times).into()))
}

pub fn replace(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (text, from, to) = (text(values, 0)?, text(values, 1)?, text(values, 2)?);
    if from.is_empty() || !text.contains(from) {
        return Ok(values[0].clone());
    }
    let grown = text.matches(from).count().saturating_mul(to.len()).saturating_add(text.len());
    let _claim = claim(grown)?;
    Ok(Value::Text(text.replace(from, to).into()))
}

pub fn translate(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let from: Vec<char> = text(values, 1)?.chars().collect();
    let to: Vec<char> = text(values, 2)?.chars().collect();
    let one = |letter: char| match from.iter().position(|wanted| *wanted == letter) {
        Some(at) => to.get(at).copied(),
        None => Some(letter),
    };
    Ok(Value::Text(text(values, 0)?.chars().filter_map(one).collect::<String>().into()))
}

pub fn reverse(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Text(text(values, 0)?.chars().rev().collect::<String>().into()))
}

pub fn split_part(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (text, delimiter, wanted) = (text(values, 0)?, text(values, 1)?, integer(values, 2)?);
    let part = match wanted {
        0 => return Err(invalid("field position must not be zero")),
        1 | -1 if delimiter.is_empty() => Some(text),
        _ if delimiter.is_empty() => None,
        1.. => text.split(delimiter).nth(wanted as usize - 1),
        _ => {
            // Parts are counted from the end, but delimiters are found from the start.
            let parts: Vec<&str> = text.split(delimiter).collect();
            parts.len().checked_sub(wanted.unsigned_abs() as usize).map(|at| parts[at])
        }
    };
    Ok(Value::text(part.unwrap_or_default()))
}

pub fn starts_with(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(text(values, 0)?.starts_with(text(values, 1)?).into())
}

pub fn ascii(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Int(text(values, 0)?.chars().next().map_or(0, |first| i64::from(u32::from(first)))))
}

pub fn chr(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let code = integer(values, 0)?;
    let refused = |message: String| PgError::new(state::PROGRAM_LIMIT_EXCEEDED, message);
    let message = match code {
        ..0 => return Err(invalid("character number must be positive")),
        0 => "null character not permitted".to_owned(),
        0x11_0000.. => format!("requested character too large for encoding: {code}"),
        _ => match char::from_u32(code as u32) {
            Some(letter) => return Ok(Value::text(letter.encode_utf8(&mut [0; 4]))),
            None => format!("requested character not valid for encoding: {code}"),
        },
    };
    Err(refused(message).into())
}

pub fn to_hex_4(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Text(format!("{:x}", integer(values, 0)? as u32).into()))
}

pub fn to_hex_8(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    Ok(Value::Text(format!("{:x}", integer(values, 0)? as u64).into()))
}

/// Replaces a backslash with four hexadecimal digits, `\+` with six, `\u` with four and `\U` with eight by the characters of these numbers.
pub fn unistr(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let mut rest = text(values, 0)?;
    let mut out = String::with_capacity(rest.len());
    let wrong = |state, message: &str| PgError::new(state, message);
    let mut high: Option<u32> = None;
    while let Some(first) = rest.chars().next() {
        if first != '\\' || rest.starts_with("\\\\") {
            if high.is_some() {
                return Err(wrong(state::SYNTAX_ERROR, "invalid Unicode surrogate pair").into());
            }
            out.push(first);
            rest = &rest[if first == '\\' { 2 } else { first.len_utf8() }..];
            continue;
        }
        let (skipped, digits) = match rest.as_bytes().get(1) {
            Some(b'+') => (2, 6),
            Some(b'u') => (2, 4),
            Some(b'U') => (2, 8),
            _ => (1, 4),
        };
        let number = rest.get(skipped..skipped + digits).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(number) = number.and_then(|text| u32::from_str_radix(text, 16).ok()) else {
            let four = "X".repeat(4);
            let hint = format!("Unicode escapes must be \\{four}, \\+{four}XX, \\u{four}, or \\U{four}{four}.");
            return Err(wrong(state::SYNTAX_ERROR, "invalid Unicode escape").hint(hint).into());
        };
        rest = &rest[skipped + digits..];
        let code = match (high.take(), number) {
            (Some(high), 0xdc00..=0xdfff) => 0x1_0000 + ((high - 0xd800) << 10) + (number - 0xdc00),
            (Some(_), _) | (None, 0xdc00..=0xdfff) => {
                return Err(wrong(state::SYNTAX_ERROR, "invalid Unicode surrogate pair").into());
            }
            (None, 0xd800..=0xdbff) => {
                high = Some(number);
                continue;
            }
            (None, number) => number,
        };
        match char::from_u32(code) {
            Some(letter) if code != 0 => out.push(letter),
            _ => {
                let message = format!("invalid Unicode code point: {code:04X}");
                return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message).into());
            }
        }
    }
    if high.is_some() {
        return Err(wrong(state::SYNTAX_ERROR, "invalid Unicode surrogate pair").into());
    }
    Ok(Value::Text(out.into()))
}
