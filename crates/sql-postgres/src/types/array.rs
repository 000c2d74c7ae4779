//! Text and binary forms of arrays: `array_in`, `array_out`, `array_recv`, `array_send`, and those of int2vector and oidvector.
//!
//! The text is read twice, as PostgreSQL does: `Braces` finds the dimensions and whether the braces are balanced, `Elements` the elements. Both accept and refuse what PostgreSQL's do, in its words.

use datum::value::{DIMENSIONS_MAX, Dimension};
use datum::{Array, Shape};

use crate::error::{PgError, Result, state};
use crate::types::io::{self, IoContext};
use crate::types::oid::{self, Oid};
use crate::types::registry::{self, DELIMITER};
use crate::value::Value;

/// The most elements of an array.
pub const ELEMENTS_MAX: usize = 134_217_727;

const DELIMITER_BYTE: u8 = DELIMITER as u8;

/// Returns the value that a text is the form of. `typmod` is the elements'.
pub fn input(array: Oid, typmod: i32, text: &str, io: &IoContext) -> Result<Value> {
    let Some(element) = registry::element_of(array) else {
        return Err(PgError::unsupported(registry::format_type(array, None)));
    };
    if is_vector(array) {
        return vector_input(element.oid, text);
    }
    let ty = registry::column_type(element.oid, typmod, true);
    let (dimensions, rest) = bounds(text)?;
    let Some(dimensions) = dimensions else { return Ok(Value::Array(Array::empty(ty.shape()))) };
    let total = count(&dimensions)?;
    if total == 0 {
        return Ok(Value::Array(Array::empty(ty.shape())));
    }
    let _claim =
        stdx::memory::claim(total * size_of::<Value>()).map_err(|error| PgError::from(datum::Fault::from(error)))?;
    let values = Elements { text, dimensions: &dimensions, total }.read(rest, |text| io::input(&ty, text, io))?;
    Ok(Value::Array(Array::new(ty.shape(), &dimensions, values)))
}

pub fn is_vector(array: Oid) -> bool {
    matches!(array, oid::INT2VECTOR | oid::OIDVECTOR)
}

/// Returns the number of elements, unless it is more than an array may have or subscripts exceed an integer.
pub fn count(dimensions: &[Dimension]) -> Result<usize> {
    let mut total: usize = usize::from(!dimensions.is_empty());
    for dimension in dimensions {
        total = total
            .checked_mul(dimension.length as usize)
            .filter(|total| *total <= i32::MAX as usize)
            .ok_or_else(too_many)?;
    }
    if total > ELEMENTS_MAX {
        return Err(too_many());
    }
    for dimension in dimensions {
        if dimension.lower.checked_add_unsigned(dimension.length).is_none() {
            let text = format!("array lower bound is too large: {}", dimension.lower);
            return Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, text));
        }
    }
    Ok(total)
}

#[cold]
pub fn too_many() -> PgError {
    let text = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
    PgError::new(state::PROGRAM_LIMIT_EXCEEDED, text)
}

#[cold]
pub fn too_many_dimensions(count: i64) -> PgError {
    let text = format!("number of array dimensions ({count}) exceeds the maximum allowed ({DIMENSIONS_MAX})");
    PgError::new(state::PROGRAM_LIMIT_EXCEEDED, text)
}

#[cold]
fn malformed(text: &str) -> PgError {
    PgError::new(state::INVALID_TEXT_REPRESENTATION, format!("malformed array literal: \"{text}\""))
}

/// Spaces between elements, as C's `isspace` has them.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn skip_spaces(text: &str) -> &str {
    let count = text.bytes().take_while(|byte| is_space(*byte)).count();
    &text[count..]
}

/// Reads a number as C's `atoi` does.
fn atoi(digits: &str) -> i32 {
    let (negative, rest) = match digits.as_bytes() {
        [b'-', ..] => (true, &digits[1..]),
        [b'+', ..] => (false, &digits[1..]),
        _ => (false, digits),
    };
    let mut number = 0i64;
    for digit in rest.bytes().take_while(u8::is_ascii_digit) {
        let digit = i64::from(digit - b'0');
        let digit = if negative { -digit } else { digit };
        number = number.saturating_mul(10).saturating_add(digit);
    }
    number as i32
}

/// Returns the digits and signs at the beginning of a text, and the rest.
fn number(text: &str) -> (&str, &str) {
    let count = text.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+')).count();
    text.split_at(count)
}

/// Returns the dimensions of an array's text and what begins with its braces. No dimensions: the array is empty.
fn bounds(text: &str) -> Result<(Option<Vec<Dimension>>, &str)> {
    let fail = |detail: &str| Err(malformed(text).detail(detail));
    let mut given: Vec<Dimension> = Vec::new();
    let mut rest = skip_spaces(text);
    while let Some(inside) = rest.strip_prefix('[') {
        if given.len() >= DIMENSIONS_MAX {
            return Err(too_many_dimensions(given.len() as i64 + 1));
        }
        let (first, mut after) = number(inside);
        if first.is_empty() {
            return fail("\"[\" must introduce explicitly-specified array dimensions.");
        }
        let (mut lower, mut upper) = (1, first);
        if let Some(behind) = after.strip_prefix(':') {
            lower = atoi(first);
            (upper, after) = number(behind);
            if upper.is_empty() {
                return fail("Missing array dimension value.");
            }
        }
        let Some(after) = after.strip_prefix(']') else { return fail("Missing \"]\" after array dimensions.") };
        given.push(dimension(lower, atoi(upper))?);
        rest = skip_spaces(after);
    }
    if given.is_empty() {
        if !rest.starts_with('{') {
            return fail("Array value must start with \"{\" or dimension information.");
        }
        let lengths = Braces::default().read(rest)?;
        let dimensions = lengths.into_iter().map(|length| Dimension { length, lower: 1 }).collect::<Vec<_>>();
        return Ok(((!dimensions.is_empty()).then_some(dimensions), rest));
    }
    let Some(after) = rest.strip_prefix('=') else { return fail("Missing \"=\" after array dimensions.") };
    let rest = skip_spaces(after);
    if !rest.starts_with('{') {
        return fail("Array contents must start with \"{\".");
    }
    let lengths = Braces::default().read(rest)?;
    if !lengths.into_iter().eq(given.iter().map(|dimension| dimension.length)) {
        return fail("Specified array dimensions do not match array contents.");
    }
    Ok((Some(given), rest))
}

fn dimension(lower: i32, upper: i32) -> Result<Dimension> {
    if upper < lower {
        let text = "upper bound cannot be less than lower bound";
        return Err(PgError::new(state::ARRAY_SUBSCRIPT_ERROR, text));
    }
    Ok(Dimension { length: (i64::from(upper) - i64::from(lower) + 1) as u32, lower })
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Parsing {
    #[default]
    NoLevel,
    LevelStarted,
    ElementStarted,
    QuotedElementStarted,
    QuotedElementCompleted,
    ElementDelimited,
    LevelCompleted,
    LevelDelimited,
}

/// PostgreSQL's `ArrayCount`: the lengths of the dimensions by the structure of braces.
#[derive(Debug, Default)]
struct Braces {
    parsing: Parsing,
    level: usize,
    dimensions: usize,
    lengths: [u32; DIMENSIONS_MAX],
    /// By level: items so far less one, and items of the last group that was completed.
    items: [u32; DIMENSIONS_MAX],
    items_last: [u32; DIMENSIONS_MAX],
    in_quotes: bool,
    has_elements: bool,
}

impl Braces {
    fn read(mut self, text: &str) -> Result<Vec<u32>> {
        let fail = |detail: &str| malformed(text).detail(detail);
        let bytes = text.as_bytes();
        self.dimensions = 1;
        self.items = [1; DIMENSIONS_MAX];
        let mut at = 0;
        loop {
            if matches!(self.parsing, Parsing::ElementStarted | Parsing::QuotedElementStarted) {
                self.has_elements = true;
            }
            let Some(byte) = bytes.get(at) else { return Err(fail("Unexpected end of input.")) };
            if *byte == b'\\' && at + 1 == bytes.len() && self.may_escape() {
                return Err(fail("Unexpected end of input."));
            }
            let ends_item = self.step(*byte).map_err(|detail| match detail {
                Refusal::Detail(detail) => fail(&detail),
                Refusal::Dimensions(count) => too_many_dimensions(count),
            })?;
            at += if *byte == b'\\' { 2 } else { 1 };
            if ends_item {
                self.lengths[self.dimensions - 1] += 1;
                if self.level == 0 {
                    break;
                }
            }
        }
        if bytes[at..].iter().any(|byte| !is_space(*byte)) {
            return Err(fail("Junk after closing right brace."));
        }
        Ok(if self.has_elements { self.lengths[..self.dimensions].to_vec() } else { Vec::new() })
    }

    fn may_escape(&self) -> bool {
        use Parsing::{ElementDelimited, ElementStarted, LevelStarted, QuotedElementStarted};
        matches!(self.parsing, LevelStarted | ElementStarted | QuotedElementStarted | ElementDelimited)
    }

    /// Takes a byte. Returns whether an item ends with it.
    fn step(&mut self, byte: u8) -> std::result::Result<bool, Refusal> {
        use Parsing::{
            ElementDelimited, ElementStarted, LevelCompleted, LevelDelimited, LevelStarted, NoLevel,
            QuotedElementCompleted, QuotedElementStarted,
        };
        let unexpected = |byte: u8| Err(Refusal::Detail(format!("Unexpected \"{}\" character.", char::from(byte))));
        let parsing = self.parsing;
        match byte {
            b'\\' => {
                if !self.may_escape() {
                    return unexpected(byte);
                }
                if parsing != QuotedElementStarted {
                    self.parsing = ElementStarted;
                }
            }
            b'"' => {
                if !matches!(parsing, LevelStarted | QuotedElementStarted | ElementDelimited) {
                    return Err(Refusal::Detail("Unexpected array element.".to_owned()));
                }
                self.in_quotes = !self.in_quotes;
                self.parsing = if self.in_quotes { QuotedElementStarted } else { QuotedElementCompleted };
            }
            _ if self.in_quotes => {}
            b'{' => {
                if !matches!(parsing, NoLevel | LevelStarted | LevelDelimited) {
                    return unexpected(byte);
                }
                self.parsing = LevelStarted;
                if self.level >= DIMENSIONS_MAX {
                    return Err(Refusal::Dimensions(self.level as i64 + 1));
                }
                self.lengths[self.level] = 0;
                self.level += 1;
                self.dimensions = self.dimensions.max(self.level);
            }
            b'}' => {
                let is_empty = self.level == 1 && parsing == LevelStarted;
                if !matches!(parsing, ElementStarted | QuotedElementCompleted | LevelCompleted) && !is_empty {
                    return unexpected(byte);
                }
                return self.close();
            }
            DELIMITER_BYTE => {
                if !matches!(parsing, ElementStarted | QuotedElementCompleted | LevelCompleted) {
                    return unexpected(byte);
                }
                self.parsing = if parsing == LevelCompleted { LevelDelimited } else { ElementDelimited };
                self.items[self.level - 1] += 1;
                return Ok(true);
            }
            _ if is_space(byte) => {}
            _ => {
                if !matches!(parsing, LevelStarted | ElementStarted | ElementDelimited) {
                    return Err(Refusal::Detail("Unexpected array element.".to_owned()));
                }
                self.parsing = ElementStarted;
            }
        }
        Ok(false)
    }

    fn close(&mut self) -> std::result::Result<bool, Refusal> {
        self.parsing = Parsing::LevelCompleted;
        self.level -= 1;
        let (items, last) = (self.items[self.level], self.items_last[self.level]);
        if last != 0 && items != last {
            let detail = "Multidimensional arrays must have sub-arrays with matching dimensions.";
            return Err(Refusal::Detail(detail.to_owned()));
        }
        self.items_last[self.level] = items;
        self.items[self.level] = 1;
        if self.level > 0 {
            self.lengths[self.level - 1] += 1;
        }
        Ok(self.level == 0)
    }
}

enum Refusal {
    Detail(String),
    Dimensions(i64),
}

/// PostgreSQL's `ReadArrayStr`: the elements of a text whose braces `Braces` has accepted.
struct Elements<'t> {
    /// The whole text, for messages.
    text: &'t str,
    dimensions: &'t [Dimension],
    total: usize,
}

impl Elements<'_> {
    fn read(&self, braces: &str, mut value_of: impl FnMut(&str) -> Result<Value>) -> Result<Vec<Value>> {
        let dimensions = self.dimensions.len();
        let mut values = vec![Value::Null; self.total];
        let (mut at, mut level) = ([0usize; DIMENSIONS_MAX], 0);
        let mut rest = braces.as_bytes();
        let mut item = Vec::new();
        let mut is_done = false;
        while !is_done {
            item.clear();
            let (mut end, mut in_quotes, mut has_quotes, mut is_leading) = (0, false, false, true);
            let mut place = None;
            loop {
                let [byte, behind @ ..] = rest else { return Err(malformed(self.text)) };
                rest = behind;
                match *byte {
                    b'\\' => {
                        let [escaped, behind @ ..] = rest else { return Err(malformed(self.text)) };
                        rest = behind;
                        item.push(*escaped);
                        (is_leading, end, has_quotes) = (false, item.len(), true);
                    }
                    b'"' => {
                        in_quotes = !in_quotes;
                        has_quotes = true;
                        if in_quotes {
                            is_leading = false;
                        } else {
                            end = item.len();
                        }
                    }
                    byte if in_quotes => item.push(byte),
                    b'{' => {
                        if level >= dimensions {
                            return Err(malformed(self.text));
                        }
                        level += 1;
                        at[level - 1] = 0;
                    }
                    b'}' => {
                        if level == 0 {
                            return Err(malformed(self.text));
                        }
                        place.get_or_insert_with(|| self.offset(&at));
                        level -= 1;
                        at[level] = 0;
                        if level == 0 {
                            is_done = true;
                            break;
                        }
                        at[level - 1] += 1;
                    }
                    DELIMITER_BYTE => {
                        place.get_or_insert_with(|| self.offset(&at));
                        at[dimensions - 1] += 1;
                        break;
                    }
                    byte if is_space(byte) => {
                        if !is_leading {
                            item.push(byte);
                        }
                    }
                    byte => {
                        item.push(byte);
                        (is_leading, end) = (false, item.len());
                    }
                }
            }
            item.truncate(end);
            let place = place.and_then(|place| values.get_mut(place)).ok_or_else(|| malformed(self.text))?;
            *place = match !has_quotes && item.eq_ignore_ascii_case(b"null") {
                true => Value::Null,
                // An escape cannot divide a character, for its bytes follow each other.
                false => value_of(&String::from_utf8_lossy(&item))?,
            };
        }
        Ok(values)
    }

    /// Returns the place of an element in row-major order.
    fn offset(&self, at: &[usize; DIMENSIONS_MAX]) -> usize {
        self.dimensions.iter().zip(at).fold(0, |offset, (dimension, at)| offset * dimension.length as usize + at)
    }
}

/// Reads numbers between spaces.
fn vector_input(element: Oid, text: &str) -> Result<Value> {
    let ty = registry::column_type(element, -1, true);
    let io = IoContext::default();
    let mut values = Vec::new();
    let mut rest = text.trim_start_matches(|letter: char| letter.is_ascii() && is_space(letter as u8));
    while !rest.is_empty() {
        let digits = number(rest).0.len();
        let end = if digits == 0 { rest.len() } else { digits };
        match &rest.as_bytes()[end..] {
            [] | [b' ', ..] => values.push(io::input(&ty, &rest[..end], &io)?),
            _ if element == oid::INT2 => return Err(io::invalid_input("smallint", rest)),
            _ => return Err(io::invalid_input("oid", rest)),
        }
        rest = skip_spaces(&rest[end..]);
    }
    Ok(vector(element, values))
}

/// Returns an int2vector or an oidvector of these elements.
pub fn vector(element: Oid, values: Vec<Value>) -> Value {
    let dimension = Dimension { length: values.len() as u32, lower: 0 };
    Value::Array(Array::new(registry::shape_of(element), &[dimension], values))
}

/// Returns an array of one dimension, whose elements have the type.
pub fn list(element: Oid, values: Vec<Value>) -> Value {
    Value::Array(Array::list(registry::shape_of(element), values))
}

/// Appends the text form.
pub fn output(array: &Array, ty: Oid, io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let Some(element) = registry::element_of(ty) else {
        return Err(PgError::unsupported(registry::format_type(ty, None)));
    };
    let element = registry::column_type(element.oid, -1, true);
    if is_vector(ty) {
        for (at, value) in array.values().iter().enumerate() {
            if at > 0 {
                out.push(b' ');
            }
            io::output(value, &element, io, out)?;
        }
        return Ok(());
    }
    if array.is_empty() {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    if array.dimensions().iter().any(|dimension| dimension.lower != 1) {
        for dimension in array.dimensions() {
            out.extend_from_slice(format!("[{}:{}]", dimension.lower, dimension.upper()).as_bytes());
        }
        out.push(b'=');
    }
    let mut item = Vec::new();
    for (at, value) in array.values().iter().enumerate() {
        let opened = opened_at(array.dimensions(), at);
        if at > 0 {
            out.extend(std::iter::repeat_n(b'}', opened));
            out.push(DELIMITER_BYTE);
        }
        out.extend(std::iter::repeat_n(b'{', opened));
        if value.is_null() {
            out.extend_from_slice(b"NULL");
            continue;
        }
        item.clear();
        io::output(value, &element, io, &mut item)?;
        quoted(&item, out);
    }
    out.extend(std::iter::repeat_n(b'}', array.dimensions().len()));
    Ok(())
}

/// Returns how many dimensions begin at an element.
fn opened_at(dimensions: &[Dimension], at: usize) -> usize {
    let mut span = 1;
    let begins = |dimension: &&Dimension| {
        span *= dimension.length as usize;
        at.is_multiple_of(span)
    };
    dimensions.iter().rev().take_while(begins).count()
}

/// Appends an element, within quotes where it could be read otherwise.
fn quoted(item: &[u8], out: &mut Vec<u8>) {
    let is_special = |byte: &u8| matches!(*byte, b'"' | b'\\' | b'{' | b'}' | DELIMITER_BYTE) || is_space(*byte);
    if !item.is_empty() && !item.eq_ignore_ascii_case(b"null") && !item.iter().any(is_special) {
        return out.extend_from_slice(item);
    }
    out.push(b'"');
    for byte in item {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// Returns the value that bytes are the binary form of.
pub fn receive(array: Oid, typmod: i32, mut bytes: &[u8], io: &IoContext) -> Result<Value> {
    let Some(element) = registry::element_of(array) else {
        return Err(PgError::unsupported(registry::format_type(array, None)));
    };
    let invalid = |text: String| PgError::new(state::INVALID_BINARY_REPRESENTATION, text);
    let count = word(&mut bytes)?;
    if count < 0 {
        return Err(invalid(format!("invalid number of dimensions: {count}")));
    }
    if count as usize > DIMENSIONS_MAX {
        return Err(too_many_dimensions(count.into()));
    }
    if !matches!(word(&mut bytes)?, 0 | 1) {
        return Err(invalid("invalid array flags".to_owned()));
    }
    let sent = word(&mut bytes)? as Oid;
    if sent != element.oid {
        let (sent_name, name) = (registry::format_type(sent, None), registry::format_type(element.oid, None));
        let text = format!(
            "binary data has array element type {sent} ({sent_name}) instead of expected {} ({name})",
            element.oid
        );
        return Err(PgError::new(state::DATATYPE_MISMATCH, text));
    }
    let mut dimensions = Vec::new();
    for _ in 0..count {
        let (length, lower) = (word(&mut bytes)?, word(&mut bytes)?);
        dimensions.push(Dimension { length: u32::try_from(length).map_err(|_| too_many())?, lower });
    }
    let total = self::count(&dimensions)?;
    // Each element takes four bytes at least, so a count beyond the message reserves nothing.
    let mut values = Vec::with_capacity(total.min(bytes.len() / 4));
    let ty = registry::column_type(element.oid, typmod, true);
    for at in 0..total {
        let length = word(&mut bytes)?;
        if length == -1 {
            values.push(Value::Null);
            continue;
        }
        let split = usize::try_from(length).ok().and_then(|length| bytes.split_at_checked(length));
        let Some((item, rest)) = split else {
            return Err(invalid("insufficient data left in message".to_owned()));
        };
        bytes = rest;
        let value = io::receive(&ty, item, io).map_err(|error| match error.state {
            state::INVALID_BINARY_REPRESENTATION if error.message == "incorrect binary data format" => {
                invalid(format!("improper binary format in array element {}", at + 1))
            }
            _ => error,
        })?;
        values.push(value);
    }
    if !bytes.is_empty() {
        return Err(invalid("incorrect binary data format".to_owned()));
    }
    Ok(Value::Array(Array::new(Shape { ..ty.shape() }, &dimensions, values)))
}

fn word(bytes: &mut &[u8]) -> Result<i32> {
    let Some((head, rest)) = bytes.split_first_chunk::<4>() else {
        return Err(PgError::new(state::PROTOCOL_VIOLATION, "insufficient data left in message"));
    };
    *bytes = rest;
    Ok(i32::from_be_bytes(*head))
}

/// Appends the binary form.
pub fn send(array: &Array, ty: Oid, io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let Some(element) = registry::element_of(ty) else {
        return Err(PgError::unsupported(registry::format_type(ty, None)));
    };
    let ty = registry::column_type(element.oid, -1, true);
    let has_null = array.values().iter().any(Value::is_null);
    out.extend_from_slice(&(array.dimensions().len() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(has_null).to_be_bytes());
    out.extend_from_slice(&element.oid.to_be_bytes());
    for dimension in array.dimensions() {
        out.extend_from_slice(&dimension.length.to_be_bytes());
        out.extend_from_slice(&dimension.lower.to_be_bytes());
    }
    for value in array.values() {
        if value.is_null() {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            continue;
        }
        let from = out.len();
        out.extend_from_slice(&[0; 4]);
        io::send(value, &ty, io, out)?;
        let length = (out.len() - from - 4) as i32;
        out[from..from + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
