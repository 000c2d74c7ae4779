//! Binary forms: a byte of flags and the bounds behind their lengths; of a multirange the ranges behind their lengths.

use super::stored::claim;
use super::{GatheredRanges, RangeEnd, RangeSpan, RangeType, of_multirange, of_range};
use crate::error::{PgError, Result, state};
use crate::types::io::{self, IoContext};
use crate::types::oid::Oid;
use crate::types::registry;
use crate::value::Value;

mod flag {
    pub const EMPTY: u8 = 1;
    pub const LOWER_INCLUSIVE: u8 = 2;
    pub const UPPER_INCLUSIVE: u8 = 4;
    pub const LOWER_INFINITE: u8 = 8;
    pub const UPPER_INFINITE: u8 = 16;
}

#[cold]
fn short() -> PgError {
    PgError::new(state::PROTOCOL_VIOLATION, "insufficient data left in message")
}

/// Takes bytes behind their length.
fn item<'m>(bytes: &mut &'m [u8]) -> Result<&'m [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let (item, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(short)?;
    *bytes = rest;
    Ok(item)
}

fn check_end(bytes: &[u8]) -> Result<()> {
    match bytes.is_empty() {
        true => Ok(()),
        false => Err(PgError::new(state::PROTOCOL_VIOLATION, "invalid message format")),
    }
}

fn span_of(ty: RangeType, bytes: &[u8], io: &IoContext) -> Result<Option<RangeSpan<'static>>> {
    let (flags, mut rest) =
        bytes.split_first().ok_or_else(|| PgError::new(state::PROTOCOL_VIOLATION, "no data left in message"))?;
    let is_empty = flags & flag::EMPTY != 0;
    let subtype = registry::column_type(ty.subtype, -1, true);
    let mut value = |infinite: u8| match is_empty || flags & infinite != 0 {
        true => Ok(None),
        false => io::receive(&subtype, item(&mut rest)?, io).map(Some),
    };
    let (lower, upper) = (value(flag::LOWER_INFINITE)?, value(flag::UPPER_INFINITE)?);
    check_end(rest)?;
    if is_empty {
        return Ok(None);
    }
    ty.range(
        RangeEnd::new(ty, lower.as_ref(), true, flags & flag::LOWER_INCLUSIVE != 0)?,
        RangeEnd::new(ty, upper.as_ref(), false, flags & flag::UPPER_INCLUSIVE != 0)?,
    )
}

/// Returns the range that bytes are the binary form of.
pub fn receive(range: Oid, bytes: &[u8], io: &IoContext) -> Result<Value> {
    let ty = of_range(range).ok_or_else(super::corrupt)?;
    Ok(ty.value(span_of(ty, bytes, io)?.as_ref()))
}

/// Returns the multirange that bytes are the binary form of.
pub fn multirange_receive(multirange: Oid, bytes: &[u8], io: &IoContext) -> Result<Value> {
    let ty = of_multirange(multirange).ok_or_else(super::corrupt)?;
    let (count, mut rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let count = u32::from_be_bytes(*count);
    // The bytes of a range are at most three times those of its binary form.
    let _claim = claim(rest.len().saturating_mul(3))?;
    let mut ranges = GatheredRanges::default();
    for _ in 0..count {
        if let Some(span) = span_of(ty, item(&mut rest)?, io)? {
            ranges.push(&span);
        }
    }
    check_end(rest)?;
    ty.multirange(&ranges)
}

/// Appends what `append` appends, behind its length.
fn behind_length(out: &mut Vec<u8>, append: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let from = out.len();
    out.extend_from_slice(&[0; 4]);
    append(out)?;
    let length = (out.len() - from - 4) as u32;
    out[from..from + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn put(ty: RangeType, span: Option<&RangeSpan<'_>>, io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let Some(RangeSpan { lower, upper }) = span else {
        out.push(flag::EMPTY);
        return Ok(());
    };
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    out.push(
        flag(lower.is_inclusive, flag::LOWER_INCLUSIVE)
            | flag(upper.is_inclusive, flag::UPPER_INCLUSIVE)
            | flag(lower.is_infinite(), flag::LOWER_INFINITE)
            | flag(upper.is_infinite(), flag::UPPER_INFINITE),
    );
    let subtype = registry::column_type(ty.subtype, -1, true);
    for end in [lower, upper] {
        if let Some(value) = end.value(ty)? {
            behind_length(out, |out| io::send(&value, &subtype, io, out))?;
        }
    }
    Ok(())
}

/// Appends the binary form of a range.
pub fn send(range: Oid, bytes: &[u8], io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let ty = of_range(range).ok_or_else(super::corrupt)?;
    put(ty, ty.span(bytes)?.as_ref(), io, out)
}

/// Appends the binary form of a multirange.
pub fn multirange_send(multirange: Oid, bytes: &[u8], io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let ty = of_multirange(multirange).ok_or_else(super::corrupt)?;
    let from = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut count = 0u32;
    for span in ty.spans(bytes) {
        let span = span?;
        behind_length(out, |out| put(ty, Some(&span), io, out))?;
        count += 1;
    }
    out[from..from + 4].copy_from_slice(&count.to_be_bytes());
    Ok(())
}
