//! Ranges in the bytes of a value.

use std::borrow::Cow;

use datum::key::{self, KeyOrder};
use datum::{Fault, Shape, keyed};
use stdx::memory::Claim;

use super::{RangeEnd, RangeSpan, RangeType, corrupt};
use crate::error::{PgError, Result, state};
use crate::types::io::VALUE_BYTES_MAX;
use crate::value::Value;

const EMPTY: u8 = 0;
const SPAN: u8 = 1;
/// Instead of the key of a lower or an upper end.
const NO_LOWER: u8 = 0;
const NO_UPPER: u8 = 2;

/// Ranges in the form of a value's bytes, in any order.
#[derive(Clone, Debug, Default)]
pub struct GatheredRanges {
    count: usize,
    key: Vec<u8>,
    stored: Vec<u8>,
}

/// Claims memory.
pub fn claim(bytes: usize) -> Result<Claim> {
    stdx::memory::claim(bytes).map_err(|error| PgError::from(Fault::from(error)))
}

impl GatheredRanges {
    /// Returns how many bytes the ranges take.
    pub fn bytes(&self) -> usize {
        self.key.len() + self.stored.len()
    }

    fn places(&self, ty: RangeType) -> Result<Vec<GatheredPlace>> {
        let mut spans = RangeSpans { shape: ty.shape(), key: &self.key, stored: &self.stored };
        let mut places = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            let [key, stored] = spans.left();
            spans.next().unwrap_or_else(|| Err(corrupt()))?;
            let from = self.key.len() - key;
            places.push(GatheredPlace {
                key: from..self.key.len() - spans.left()[0],
                stored: self.stored.len() - stored,
            });
        }
        Ok(places)
    }

    pub fn push(&mut self, span: &RangeSpan<'_>) {
        let GatheredRanges { count, key, stored } = self;
        *count += 1;
        key.push(SPAN);
        match &span.lower.key {
            Some(lower) => {
                key.extend_from_slice(lower);
                key.push((!span.lower.is_inclusive).into());
            }
            None => key.push(NO_LOWER),
        }
        match &span.upper.key {
            Some(upper) => {
                key.extend_from_slice(upper);
                key.push(span.upper.is_inclusive.into());
            }
            None => key.push(NO_UPPER),
        }
        for end in [&span.lower, &span.upper].into_iter().filter(|end| !end.stored.is_empty()) {
            stored.extend_from_slice(&(end.stored.len() as u32).to_le_bytes());
            stored.extend_from_slice(&end.stored);
        }
    }
}

impl RangeType {
    /// Returns the ranges of a value: of a range at most one, of a multirange all in their order.
    pub fn spans(self, bytes: &[u8]) -> RangeSpans<'_> {
        let (key, stored) = keyed::parts(bytes);
        RangeSpans { shape: self.shape(), key, stored }
    }

    /// Returns the range of a value; `None` is the empty range.
    pub fn span(self, bytes: &[u8]) -> Result<Option<RangeSpan<'_>>> {
        self.spans(bytes).next().transpose()
    }

    /// Returns the value of a range.
    pub fn value(self, range: Option<&RangeSpan<'_>>) -> Value {
        let mut gathered = GatheredRanges::default();
        match range {
            Some(span) => gathered.push(span),
            None => gathered.key.push(EMPTY),
        }
        keyed::value(&gathered.key, &gathered.stored)
    }

    /// Returns the multirange of ranges in any order, which may overlap: those that overlap or touch are joined.
    pub fn multirange(self, ranges: &GatheredRanges) -> Result<Value> {
        let _claim = claim(ranges.count.saturating_mul(2 * size_of::<GatheredPlace>()))?;
        let mut places = ranges.places(self)?;
        places.sort_by(|a, b| ranges.key[a.key.clone()].cmp(&ranges.key[b.key.clone()]));
        let mut made = GatheredRanges::default();
        let mut last: Option<RangeSpan<'_>> = None;
        for GatheredPlace { key, stored } in places {
            let mut at = RangeSpans { shape: self.shape(), key: &ranges.key[key], stored: &ranges.stored[stored..] };
            let span = at.next().unwrap_or_else(|| Err(corrupt()))?;
            last = Some(match last {
                Some(last) if self.joins(&last, &span)? => last.joined(span),
                Some(last) => {
                    made.push(&last);
                    span
                }
                None => span,
            });
        }
        last.iter().for_each(|span| made.push(span));
        made.key.push(EMPTY);
        match made.bytes() > VALUE_BYTES_MAX {
            true => Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "requested length too large")),
            false => Ok(keyed::value(&made.key, &made.stored)),
        }
    }
}

/// Where the bytes of a gathered range are. The keys of ranges compare as the ranges do.
struct GatheredPlace {
    key: std::ops::Range<usize>,
    stored: usize,
}

/// The ranges in the bytes of a value, one after another.
#[derive(Clone, Debug)]
pub struct RangeSpans<'v> {
    shape: Shape,
    key: &'v [u8],
    stored: &'v [u8],
}

impl<'v> RangeSpans<'v> {
    /// Returns how many bytes are left, for `behind`.
    pub fn left(&self) -> [usize; 2] {
        [self.key.len(), self.stored.len()]
    }

    /// Returns the ranges from where others had so many bytes left.
    pub fn behind(self, [key, stored]: [usize; 2]) -> RangeSpans<'v> {
        let tail = |bytes: &'v [u8], left: usize| &bytes[bytes.len().saturating_sub(left)..];
        RangeSpans { key: tail(self.key, key), stored: tail(self.stored, stored), ..self }
    }

    fn end(&mut self, is_lower: bool) -> Option<RangeEnd<'v>> {
        let none = if is_lower { NO_LOWER } else { NO_UPPER };
        if *self.key.first()? == none {
            self.key = &self.key[1..];
            return Some(RangeEnd { key: None, stored: Cow::Borrowed(&[]), is_inclusive: false, is_lower });
        }
        let length = key::length(self.key, self.shape, KeyOrder::ASCENDING)?;
        let (key, rest) = self.key.split_at_checked(length)?;
        let (mark, rest) = rest.split_first()?;
        self.key = rest;
        let mut stored: &[u8] = &[];
        if !key::is_lossless(self.shape.storage) {
            let (length, rest) = self.stored.split_first_chunk::<4>()?;
            (stored, self.stored) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        }
        let is_inclusive = (*mark == 0) == is_lower;
        Some(RangeEnd { key: Some(Cow::Borrowed(key)), stored: Cow::Borrowed(stored), is_inclusive, is_lower })
    }

    fn span(&mut self) -> Option<RangeSpan<'v>> {
        Some(RangeSpan { lower: self.end(true)?, upper: self.end(false)? })
    }
}

impl<'v> Iterator for RangeSpans<'v> {
    type Item = Result<RangeSpan<'v>>;

    fn next(&mut self) -> Option<Result<RangeSpan<'v>>> {
        match self.key {
            [] | [EMPTY, ..] => None,
            [SPAN, rest @ ..] => {
                self.key = rest;
                let span = self.span();
                if span.is_none() {
                    self.key = &[];
                }
                Some(span.ok_or_else(corrupt))
            }
            _ => {
                self.key = &[];
                Some(Err(corrupt()))
            }
        }
    }
}
