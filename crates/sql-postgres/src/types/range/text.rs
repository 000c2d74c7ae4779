//! Text forms: `[1,10)`, `empty`, `{[1,3), [5,7)}`.

use super::stored::claim;
use super::{GatheredRanges, RangeEnd, RangeSpan, RangeType, of_multirange, of_range};
use crate::error::{PgError, Result, state};
use crate::types::array::is_space;
use crate::types::io::{self, IoContext};
use crate::types::oid::Oid;
use crate::types::registry;
use crate::value::Value;

const EMPTY: &[u8] = b"empty";

/// Returns whether a text begins with `empty`, in letters of any case.
fn begins_with_empty(text: &[u8]) -> bool {
    text.get(..EMPTY.len()).is_some_and(|word| word.eq_ignore_ascii_case(EMPTY))
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let count = text.iter().take_while(|byte| is_space(**byte)).count();
    &text[count..]
}

/// The text of a range that is read, with what is left of it.
struct RangeReading<'t> {
    /// The whole, for errors.
    text: &'t str,
    rest: &'t [u8],
}

/// The parts of a range's text: the texts of its bounds, `None` for infinite ones, and whether they are inclusive.
type BoundTexts = [(Option<String>, bool); 2];

impl RangeReading<'_> {
    #[cold]
    fn malformed(&self, detail: &str) -> PgError {
        let text = format!("malformed range literal: \"{}\"", self.text);
        PgError::new(state::INVALID_TEXT_REPRESENTATION, text).detail(detail)
    }

    /// Takes a byte if it is one of two; returns whether it is the second.
    fn take(&mut self, first: u8, second: u8) -> Option<bool> {
        let byte = *self.rest.first().filter(|byte| **byte == first || **byte == second)?;
        self.rest = &self.rest[1..];
        Some(byte == second)
    }

    /// Returns the parts; `None` for the empty range.
    fn parts(mut self) -> Result<Option<BoundTexts>> {
        self.rest = skip_spaces(self.rest);
        if begins_with_empty(self.rest) {
            return match skip_spaces(&self.rest[EMPTY.len()..]) {
                [] => Ok(None),
                _ => Err(self.malformed("Junk after \"empty\" key word.")),
            };
        }
        let Some(has_lower) = self.take(b'(', b'[') else {
            return Err(self.malformed("Missing left parenthesis or bracket."));
        };
        let lower = self.bound()?;
        if self.take(b',', b',').is_none() {
            return Err(self.malformed("Missing comma after lower bound."));
        }
        let upper = self.bound()?;
        let Some(has_upper) = self.take(b')', b']') else { return Err(self.malformed("Too many commas.")) };
        if !skip_spaces(self.rest).is_empty() {
            return Err(self.malformed("Junk after right parenthesis or bracket."));
        }
        Ok(Some([(lower, has_lower), (upper, has_upper)]))
    }

    /// Reads up to the end of a bound, and takes quotes and escapes away. `None`: there is no text, which is an infinite bound.
    fn bound(&mut self) -> Result<Option<String>> {
        let ends = |byte: u8| matches!(byte, b',' | b')' | b']');
        if self.rest.first().is_some_and(|byte| ends(*byte)) {
            return Ok(None);
        }
        let (mut out, mut in_quotes) = (Vec::new(), false);
        loop {
            match self.rest {
                [byte, ..] if !in_quotes && ends(*byte) => break,
                [] | [b'\\'] => return Err(self.malformed("Unexpected end of input.")),
                [b'\\', byte, rest @ ..] => {
                    out.push(*byte);
                    self.rest = rest;
                }
                [b'"', b'"', rest @ ..] if in_quotes => {
                    out.push(b'"');
                    self.rest = rest;
                }
                [b'"', rest @ ..] => {
                    in_quotes = !in_quotes;
                    self.rest = rest;
                }
                [byte, rest @ ..] => {
                    out.push(*byte);
                    self.rest = rest;
                }
            }
        }
        // An escape cannot divide a character, for its bytes follow each other.
        Ok(Some(String::from_utf8_lossy(&out).into_owned()))
    }
}

/// Reads a range; `None` is the empty one.
fn span_of(ty: RangeType, text: &str, io: &IoContext) -> Result<Option<RangeSpan<'static>>> {
    let Some([lower, upper]) = (RangeReading { text, rest: text.as_bytes() }).parts()? else { return Ok(None) };
    let subtype = registry::column_type(ty.subtype, -1, true);
    let value = |text: Option<String>| text.map(|text| io::input(&subtype, &text, io)).transpose();
    let values = [(value(lower.0)?, lower.1), (value(upper.0)?, upper.1)];
    let [lower, upper] = values;
    let lower = RangeEnd::new(ty, lower.0.as_ref(), true, lower.1)?;
    ty.range(lower, RangeEnd::new(ty, upper.0.as_ref(), false, upper.1)?)
}

/// Returns the range that a text is the form of.
pub fn input(range: Oid, text: &str, io: &IoContext) -> Result<Value> {
    let ty = of_range(range).ok_or_else(super::corrupt)?;
    Ok(ty.value(span_of(ty, text, io)?.as_ref()))
}

/// The places in the text of a multirange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MultirangePlace {
    BeforeRange,
    InRange,
    InQuotes,
    AfterRange,
}

/// Returns the multirange that a text is the form of.
pub fn multirange_input(multirange: Oid, text: &str, io: &IoContext) -> Result<Value> {
    let ty = of_multirange(multirange).ok_or_else(super::corrupt)?;
    let malformed = |detail: &str| {
        let message = format!("malformed multirange literal: \"{text}\"");
        Err(PgError::new(state::INVALID_TEXT_REPRESENTATION, message).detail(detail))
    };
    let bytes = text.as_bytes();
    let Some(mut rest) = skip_spaces(bytes).strip_prefix(b"{") else { return malformed("Missing left brace.") };
    let (mut place, mut begin, mut is_first, mut is_escaped) = (MultirangePlace::BeforeRange, 0, true, false);
    // The bytes of a range are at most six times those of its text.
    let _claim = claim(text.len().saturating_mul(6))?;
    let mut ranges = GatheredRanges::default();
    loop {
        let at = bytes.len() - rest.len();
        let Some((byte, behind)) = rest.split_first() else { return malformed("Unexpected end of input.") };
        rest = behind;
        // Spaces end no escape.
        if is_space(*byte) {
            continue;
        }
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match (place, byte) {
            (MultirangePlace::BeforeRange, b'[' | b'(') => (begin, place) = (at, MultirangePlace::InRange),
            (MultirangePlace::BeforeRange, b'}') if is_first => break,
            (MultirangePlace::BeforeRange, _) if begins_with_empty(&bytes[at..]) => {
                rest = &bytes[at + EMPTY.len()..];
                (is_first, place) = (false, MultirangePlace::AfterRange);
            }
            (MultirangePlace::BeforeRange, _) => return malformed("Expected range start."),
            (MultirangePlace::InRange, b']' | b')') => {
                if let Some(span) = span_of(ty, &text[begin..=at], io)? {
                    ranges.push(&span);
                }
                (is_first, place) = (false, MultirangePlace::AfterRange);
            }
            (MultirangePlace::InRange, b'"') => place = MultirangePlace::InQuotes,
            (MultirangePlace::InQuotes, b'"') => match rest.strip_prefix(b"\"") {
                Some(behind) => rest = behind,
                None => place = MultirangePlace::InRange,
            },
            (MultirangePlace::InRange | MultirangePlace::InQuotes, b'\\') => is_escaped = true,
            (MultirangePlace::InRange | MultirangePlace::InQuotes, _) => {}
            (MultirangePlace::AfterRange, b',') => place = MultirangePlace::BeforeRange,
            (MultirangePlace::AfterRange, b'}') => break,
            (MultirangePlace::AfterRange, _) => return malformed("Expected comma or end of multirange."),
        }
    }
    if !skip_spaces(rest).is_empty() {
        return malformed("Junk after closing right brace.");
    }
    ty.multirange(&ranges)
}

/// Appends a bound, within quotes where it could be read otherwise.
fn quoted(bound: &[u8], out: &mut Vec<u8>) {
    let is_special = |byte: &u8| matches!(*byte, b'"' | b'\\' | b'(' | b')' | b'[' | b']' | b',') || is_space(*byte);
    let needs = bound.is_empty() || bound.iter().any(is_special);
    if needs {
        out.push(b'"');
    }
    for byte in bound {
        if matches!(byte, b'"' | b'\\') {
            out.push(*byte);
        }
        out.push(*byte);
    }
    if needs {
        out.push(b'"');
    }
}

fn show(ty: RangeType, span: &RangeSpan<'_>, io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let subtype = registry::column_type(ty.subtype, -1, true);
    let mut bound = Vec::new();
    for (end, marks) in [(&span.lower, b"(["), (&span.upper, b")]")] {
        let mark = marks[usize::from(end.is_inclusive)];
        if end.is_lower {
            out.push(mark);
        }
        if let Some(value) = end.value(ty)? {
            bound.clear();
            io::output(&value, &subtype, io, &mut bound)?;
            quoted(&bound, out);
        }
        out.push(if end.is_lower { b',' } else { mark });
    }
    Ok(())
}

/// Appends the text form of a range.
pub fn output(range: Oid, bytes: &[u8], io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let ty = of_range(range).ok_or_else(super::corrupt)?;
    match ty.span(bytes)? {
        Some(span) => show(ty, &span, io, out)?,
        None => out.extend_from_slice(EMPTY),
    }
    Ok(())
}

/// Appends the text form of a multirange.
pub fn multirange_output(multirange: Oid, bytes: &[u8], io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let ty = of_multirange(multirange).ok_or_else(super::corrupt)?;
    out.push(b'{');
    for (at, span) in ty.spans(bytes).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        show(ty, &span?, io, out)?;
    }
    out.push(b'}');
    Ok(())
}
