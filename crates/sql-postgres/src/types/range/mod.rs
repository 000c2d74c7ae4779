//! Ranges and multiranges: two bounds over the values of a subtype, and sets of such ranges.
//!
//! A value has the form `Keyed`. Its key orders ranges as PostgreSQL does, an empty one before all others, and is made of the keys of the bounds' values (`datum::key`):
//!
//! ```text
//!   range        00                          empty
//!                01 lower upper
//!   multirange   (01 lower upper)* 00
//!   lower        00                          none: less than every value
//!                key of the value, 00        inclusive; 01 exclusive
//!   upper        key of the value, 00        exclusive; 01 inclusive
//!                02                          none: greater than every value
//! ```
//!
//! Since keys compare as values do (DA-2), all that compares and combines ranges works on these bytes, for any subtype. Only forms of values, `lower` and `upper`, and canonical forms need the values. Where a key
//! does not give its value back (numeric), the values follow the key, each behind its length.

mod stored;
mod text;
mod wire;

use std::borrow::Cow;
use std::cmp::Ordering;

use datum::key::{self, KeyOrder};
use datum::{Shape, row};

pub use stored::{GatheredRanges, RangeSpans};
pub use text::{input, multirange_input, multirange_output, output};
pub use wire::{multirange_receive, multirange_send, receive, send};

use crate::error::{PgError, Result, state};
use crate::types::oid::{self, Oid};
use crate::types::registry;
use crate::types::temporal::{DATE_EARLY, DATE_LATE, is_valid_date, overflow};
use crate::value::Value;

/// A row of `pg_range`.
#[derive(Clone, Copy, Debug)]
pub struct RangeType {
    pub oid: Oid,
    pub multirange: Oid,
    pub subtype: Oid,
    /// Whether the values have successors, so that bounds have a canonical form: lower inclusive, upper exclusive.
    is_discrete: bool,
}

#[rustfmt::skip]
pub static RANGE_TYPES: &[RangeType] = &[
    RangeType { oid: oid::INT4RANGE, multirange: oid::INT4MULTIRANGE, subtype: oid::INT4, is_discrete: true },
    RangeType { oid: oid::NUMRANGE, multirange: oid::NUMMULTIRANGE, subtype: oid::NUMERIC, is_discrete: false },
    RangeType { oid: oid::TSRANGE, multirange: oid::TSMULTIRANGE, subtype: oid::TIMESTAMP, is_discrete: false },
    RangeType { oid: oid::TSTZRANGE, multirange: oid::TSTZMULTIRANGE, subtype: oid::TIMESTAMPTZ, is_discrete: false },
    RangeType { oid: oid::DATERANGE, multirange: oid::DATEMULTIRANGE, subtype: oid::DATE, is_discrete: true },
    RangeType { oid: oid::INT8RANGE, multirange: oid::INT8MULTIRANGE, subtype: oid::INT8, is_discrete: true },
];

/// Returns the row of a range type.
pub fn of_range(range: Oid) -> Option<RangeType> {
    RANGE_TYPES.iter().find(|ty| ty.oid == range).copied()
}

/// Returns the row of the range type whose values a multirange type holds.
pub fn of_multirange(multirange: Oid) -> Option<RangeType> {
    RANGE_TYPES.iter().find(|ty| ty.multirange == multirange).copied()
}

/// Returns the row of a range type, or of that of a multirange type.
pub fn of(ty: Oid) -> Option<RangeType> {
    of_range(ty).or_else(|| of_multirange(ty))
}

/// The end of a range. It owns its bytes only where it was made of a value.
#[derive(Clone, Debug)]
pub struct RangeEnd<'v> {
    /// `None`: there is no end.
    key: Option<Cow<'v, [u8]>>,
    /// The stored value, where its key does not give it back.
    stored: Cow<'v, [u8]>,
    pub is_inclusive: bool,
    pub is_lower: bool,
}

/// A range that is not empty.
#[derive(Clone, Debug)]
pub struct RangeSpan<'v> {
    pub lower: RangeEnd<'v>,
    pub upper: RangeEnd<'v>,
}

impl<'v> RangeEnd<'v> {
    /// Returns the end at a value; `None` is that of an infinite range.
    pub fn new(ty: RangeType, value: Option<&Value>, is_lower: bool, is_inclusive: bool) -> Result<RangeEnd<'static>> {
        let shape = ty.shape();
        let key = value.map(|value| Cow::Owned(key_of(value, shape)));
        let mut stored = Vec::new();
        if let Some(value) = value.filter(|_| !key::is_lossless(shape.storage)) {
            row::encode_value(value, shape.storage, &mut stored).map_err(PgError::from)?;
        }
        Ok(RangeEnd { key, stored: Cow::Owned(stored), is_inclusive, is_lower })
    }

    pub fn is_infinite(&self) -> bool {
        self.key.is_none()
    }

    /// Returns the value; `None` if the end is infinite.
    pub fn value(&self, ty: RangeType) -> Result<Option<Value>> {
        let Some(key) = &self.key else { return Ok(None) };
        let storage = ty.shape().storage;
        let value = match key::is_lossless(storage) {
            true => key::decode(key, storage, KeyOrder::ASCENDING).map(|(value, _)| value),
            false => row::decode_value(&self.stored, storage).ok(),
        };
        value.map(Some).ok_or_else(corrupt)
    }

    /// Compares the values alone, an infinite lower end as less than all, an infinite upper one as greater.
    pub fn compare_value(&self, other: &RangeEnd) -> Ordering {
        match (&self.key, &other.key) {
            (Some(a), Some(b)) => a.cmp(b),
            (None, None) => other.is_lower.cmp(&self.is_lower),
            (None, Some(_)) if self.is_lower => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) if other.is_lower => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
        }
    }

    /// Compares ends: at one value an exclusive upper end is before an inclusive one, and that before an exclusive lower end.
    pub fn compare(&self, other: &RangeEnd) -> Ordering {
        let place = |end: &RangeEnd| match (end.is_inclusive || end.key.is_none(), end.is_lower) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => -1,
        };
        self.compare_value(other).then_with(|| place(self).cmp(&place(other)))
    }

    /// Returns the end where a range begins or ends that this one leaves.
    pub fn turned(&self) -> RangeEnd<'v> {
        RangeEnd { is_inclusive: !self.is_inclusive, is_lower: !self.is_lower, ..self.clone() }
    }
}

/// Returns the key of a bound's value, as it is compared with those in ranges.
pub fn key_of(value: &Value, shape: Shape) -> Vec<u8> {
    let mut key = Vec::new();
    key::encode(value, shape, KeyOrder::ASCENDING, &mut key);
    key
}

#[cold]
pub fn corrupt() -> PgError {
    PgError::new(state::DATA_CORRUPTED, "bytes that are no range")
}

impl RangeType {
    /// Returns the shape of the bounds' values.
    pub fn shape(self) -> Shape {
        registry::shape_of(self.subtype)
    }

    /// Makes a range of two ends, in its canonical form; `None` is the empty range.
    pub fn range<'v>(self, lower: RangeEnd<'v>, upper: RangeEnd<'v>) -> Result<Option<RangeSpan<'v>>> {
        match self.plain_range(lower, upper)? {
            Some(span) if self.is_discrete => self.canonical(span),
            made => Ok(made),
        }
    }

    fn plain_range<'v>(self, mut lower: RangeEnd<'v>, mut upper: RangeEnd<'v>) -> Result<Option<RangeSpan<'v>>> {
        match lower.compare_value(&upper) {
            Ordering::Greater => {
                let text = "range lower bound must be less than or equal to range upper bound";
                return Err(PgError::new(state::DATA_EXCEPTION, text));
            }
            Ordering::Equal if !(lower.is_inclusive && upper.is_inclusive) => return Ok(None),
            _ => {}
        }
        lower.is_inclusive &= !lower.is_infinite();
        upper.is_inclusive &= !upper.is_infinite();
        Ok(Some(RangeSpan { lower, upper }))
    }

    fn canonical(self, span: RangeSpan<'_>) -> Result<Option<RangeSpan<'_>>> {
        let RangeSpan { mut lower, mut upper } = span;
        if !lower.is_infinite() && !lower.is_inclusive {
            lower = self.successor(lower, true)?;
        }
        if !upper.is_infinite() && upper.is_inclusive {
            upper = self.successor(upper, false)?;
        }
        self.plain_range(lower, upper)
    }

    /// Returns the end at the next value, with the other inclusion. Dates without an end have none.
    fn successor<'v>(self, end: RangeEnd<'v>, is_inclusive: bool) -> Result<RangeEnd<'v>> {
        let Some(Value::Int(number)) = end.value(self)? else { return Err(corrupt()) };
        let beyond = |name: &str| PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"));
        let next = match self.subtype {
            oid::DATE if number == DATE_EARLY.into() || number == DATE_LATE.into() => return Ok(end),
            oid::DATE if !is_valid_date(number + 1) => return Err(overflow("date out of range")),
            oid::INT4 if number == i32::MAX.into() => return Err(beyond("integer")),
            _ => number.checked_add(1).ok_or_else(|| beyond("bigint"))?,
        };
        RangeEnd::new(self, Some(&Value::Int(next)), end.is_lower, is_inclusive)
    }

    /// Returns whether an upper and a lower end touch: no value is between them, and none is in both ranges.
    pub fn touches(self, upper: &RangeEnd<'_>, lower: &RangeEnd<'_>) -> Result<bool> {
        match upper.compare_value(lower) {
            Ordering::Less if self.is_discrete => Ok(self.range(upper.turned(), lower.turned())?.is_none()),
            Ordering::Equal => Ok(upper.is_inclusive != lower.is_inclusive),
            _ => Ok(false),
        }
    }

    /// Returns whether two ranges, the first of which begins first, overlap or touch.
    fn joins(self, first: &RangeSpan<'_>, second: &RangeSpan<'_>) -> Result<bool> {
        Ok(first.overlaps(second) || self.touches(&first.upper, &second.lower)?)
    }
}

impl<'v> RangeSpan<'v> {
    /// Returns the range from the lesser lower end to the greater upper one. Of equal ends it has those of the other range, which may show other digits.
    pub fn joined(self, other: RangeSpan<'v>) -> RangeSpan<'v> {
        let lower = if self.lower.compare(&other.lower).is_lt() { self.lower } else { other.lower };
        let upper = if self.upper.compare(&other.upper).is_gt() { self.upper } else { other.upper };
        RangeSpan { lower, upper }
    }

    pub fn overlaps(&self, other: &RangeSpan<'_>) -> bool {
        self.lower.compare(&other.upper).is_le() && other.lower.compare(&self.upper).is_le()
    }

    pub fn contains(&self, other: &RangeSpan<'_>) -> bool {
        self.lower.compare(&other.lower).is_le() && self.upper.compare(&other.upper).is_ge()
    }

    /// Returns whether the value of a key (`key_of`) is in the range.
    pub fn contains_key(&self, key: &[u8]) -> bool {
        let is_above = |end: &RangeEnd<'_>| match &end.key {
            Some(lower) => (**lower).cmp(key).is_lt() || (end.is_inclusive && **lower == *key),
            None => true,
        };
        let is_below = |end: &RangeEnd<'_>| match &end.key {
            Some(upper) => (**upper).cmp(key).is_gt() || (end.is_inclusive && **upper == *key),
            None => true,
        };
        is_above(&self.lower) && is_below(&self.upper)
    }
}

#[cfg(test)]
mod tests;
