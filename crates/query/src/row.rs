//! A row as bytes: `docs/formats/row.md` has the picture.
//!
//! Columns lie in slots, in the order in which they were added to the table; a row ends with the slots that there were when it was written, so adding a column
//! rewrites nothing. R1: a slot is never given to another column. R2: bytes from disk are checked before they are believed.

use std::sync::Arc;

use num_bigint::BigInt;

use crate::batch::Batch;
use crate::error::{Result, SqlError};
use crate::types::{Kind, Type};
use crate::value::{Bytes, Date, DateTime, Decimal, Json, Text, Time, Timestamp, Value};

/// Ends of variable columns take two bytes, or four.
const NARROW: u8 = 1;
const WIDE: u8 = 2;
const HEAD: usize = 3;

/// How a kind is stored: in so many bytes, or at the end.
fn width(kind: Kind) -> Option<usize> {
    Some(match kind {
        Kind::TinyInt => 1,
        Kind::SmallInt | Kind::Year | Kind::Enum => 2,
        Kind::MediumInt | Kind::Int | Kind::Float | Kind::Date => 4,
        Kind::BigInt | Kind::Double | Kind::Bit | Kind::Set | Kind::Time | Kind::DateTime | Kind::Timestamp => 8,
        _ => return None,
    })
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// Behind the null bits, in so many bytes.
    Fixed { offset: usize, width: usize },
    /// The nth of the variable columns.
    Variable(usize),
}

/// Where the slots of a table's rows lie.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    places: Vec<Place>,
    /// Of rows with so many slots: bytes of the fixed part, number of variable columns.
    sizes: Vec<(usize, usize)>,
}

impl Layout {
    pub fn new(slots: &[Kind]) -> Layout {
        let (mut places, mut sizes, mut fixed, mut variable) = (Vec::new(), vec![(0, 0)], 0, 0);
        for kind in slots {
            match width(*kind) {
                Some(width) => {
                    places.push(Place::Fixed { offset: fixed, width });
                    fixed += width;
                }
                None => {
                    places.push(Place::Variable(variable));
                    variable += 1;
                }
            }
            sizes.push((fixed, variable));
        }
        Layout { places, sizes }
    }

    /// Appends the row. `value_of` gives each slot's value; NULL for slots whose column is gone.
    pub fn encode<'v>(&self, value_of: impl Fn(usize) -> &'v Value, out: &mut Vec<u8>) -> Result<()> {
        let count = self.places.len();
        let start = out.len();
        let (fixed, variable) = self.sizes[count];
        let nulls = start + HEAD;
        let base = nulls + count.div_ceil(8);
        // Strings in one piece: a long one is to be copied once.
        let strings: usize = (0..count).map(|slot| value_of(slot).as_string_bytes().map_or(0, <[u8]>::len)).sum();
        out.reserve_exact(base + fixed + 4 * variable + strings - start);
        out.resize(base + fixed + 2 * variable, 0);
        out[start] = NARROW;
        out[start + 1..start + 3].copy_from_slice(&(count as u16).to_le_bytes());
        let data = out.len();
        let mut ends: Vec<usize> = Vec::new();
        for slot in 0..count {
            let value = value_of(slot);
            if value.is_null() {
                out[nulls + slot / 8] |= 1 << (slot % 8);
            }
            match self.places[slot] {
                Place::Fixed { .. } if value.is_null() => {}
                Place::Fixed { offset, width } => {
                    let bits = fixed_bits(value)?;
                    out[base + offset..base + offset + width].copy_from_slice(&bits.to_le_bytes()[..width]);
                }
                Place::Variable(nth) => {
                    append(value, out)?;
                    let end = out.len() - data;
                    let at = base + fixed + 2 * nth;
                    out[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
                    if end > usize::from(u16::MAX) || !ends.is_empty() {
                        // Rare: what was written narrow is written again below.
                        if ends.is_empty() {
                            let narrow = &out[base + fixed..at];
                            ends = narrow
                                .chunks_exact(2)
                                .map(|end| usize::from(u16::from_le_bytes([end[0], end[1]])))
                                .collect();
                        }
                        ends.push(end);
                    }
                }
            }
        }
        if !ends.is_empty() {
            out[start] = WIDE;
            let wide: Vec<u8> = ends.iter().flat_map(|end| (*end as u32).to_le_bytes()).collect();
            out.splice(base + fixed..data, wide);
        }
        Ok(())
    }

    /// Looks at a row's head.
    pub fn open<'r>(&self, row: impl Into<Source<'r>>) -> Result<Opened<'r>> {
        let Source { bytes: row, owner } = row.into();
        let damaged = || SqlError::corrupt("a row's head");
        let [version, low, high, ..] = *row else { return Err(damaged()) };
        let count = usize::from(u16::from_le_bytes([low, high]));
        let (fixed, variable) = *self.sizes.get(count).ok_or_else(damaged)?;
        let step = match version {
            NARROW => 2,
            WIDE => 4,
            _ => return Err(damaged()),
        };
        let base = HEAD + count.div_ceil(8);
        let ends = base + fixed;
        let data = ends + step * variable;
        if row.len() < data {
            return Err(damaged());
        }
        Ok(Opened { row, owner, count, base, ends, step, data })
    }

    /// Appends the value of a slot to a batch, or `initial` where the row is older than the slot.
    pub fn append(&self, row: &Opened<'_>, slot: usize, (ty, initial): (&Type, &Value), out: &mut Batch) -> Result<()> {
        if let Some(Place::Variable(nth)) = self.places.get(slot)
            && slot < row.count
            && !row.is_null(slot)
            && ty.is_string()
        {
            let bytes = row.variable(*nth)?;
            if ty.kind.is_bytes() {
                match row.owner {
                    Some(owner) => out.push(Value::Bytes(Bytes::within(owner, bytes))),
                    None => out.push_bytes(bytes),
                }
            } else {
                out.push_text(std::str::from_utf8(bytes).map_err(|_| damaged_column())?);
            }
            return Ok(());
        }
        out.push(self.value(row, slot, ty)?.unwrap_or_else(|| initial.clone()));
        Ok(())
    }

    /// The value of a slot; None: the row is older than the slot.
    pub fn value(&self, row: &Opened<'_>, slot: usize, ty: &Type) -> Result<Option<Value>> {
        let mut value = Value::Null;
        Ok(self.put(row, slot, ty, &mut value)?.then_some(value))
    }

    /// Puts the value of a slot where it belongs: one that is handed on is copied at each step. False: the row is older than the slot.
    #[inline]
    pub fn put(&self, row: &Opened<'_>, slot: usize, ty: &Type, out: &mut Value) -> Result<bool> {
        if slot >= row.count {
            return Ok(false);
        }
        if row.is_null(slot) {
            *out = Value::Null;
            return Ok(true);
        }
        match self.places[slot] {
            Place::Fixed { offset, width } => {
                let from = row.base + offset;
                let bits = match row.row[from..from + width] {
                    [a] => u64::from(a),
                    [a, b] => u64::from(u16::from_le_bytes([a, b])),
                    [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
                    [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
                    _ => return Err(damaged_column()),
                };
                *out = fixed_value(bits, width, ty);
            }
            Place::Variable(nth) => {
                let bytes = row.variable(nth)?;
                match (row.owner, ty.kind) {
                    (Some(owner), kind) if kind.is_bytes() => *out = Value::Bytes(Bytes::within(owner, bytes)),
                    (_, Kind::Decimal) => match short_decimal(bytes) {
                        Some((coefficient, scale)) => *out = Value::Decimal(Decimal::new(coefficient.into(), scale)),
                        None => *out = parse(bytes, ty)?,
                    },
                    _ => *out = parse(bytes, ty)?,
                }
            }
        }
        Ok(true)
    }
}

/// The coefficient and the scale, if the coefficient takes no more than 8 bytes.
#[inline]
fn short_decimal(bytes: &[u8]) -> Option<(i64, u8)> {
    let [scale, digits @ ..] = bytes else { return None };
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    let bits = digits.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    let unused = 64 - 8 * digits.len() as u32;
    Some(((bits << unused) as i64 >> unused, *scale))
}

/// The bytes of a row. If they are long and others may share them, values are parts of them.
#[derive(Clone, Copy)]
pub struct Source<'r> {
    bytes: &'r [u8],
    owner: Option<&'r Arc<Vec<u8>>>,
}

impl Source<'_> {
    pub fn is_shared(self) -> bool {
        self.owner.is_some()
    }
}

impl<'r> From<&'r [u8]> for Source<'r> {
    fn from(bytes: &'r [u8]) -> Source<'r> {
        Source { bytes, owner: None }
    }
}

impl<'r> From<&'r Vec<u8>> for Source<'r> {
    fn from(bytes: &'r Vec<u8>) -> Source<'r> {
        Source { bytes, owner: None }
    }
}

impl<'r> From<&'r Arc<Vec<u8>>> for Source<'r> {
    fn from(owner: &'r Arc<Vec<u8>>) -> Source<'r> {
        Source { bytes: owner, owner: Some(owner) }
    }
}

/// A row whose head has been read.
pub struct Opened<'r> {
    row: &'r [u8],
    owner: Option<&'r Arc<Vec<u8>>>,
    count: usize,
    base: usize,
    ends: usize,
    step: usize,
    data: usize,
}

impl<'r> Opened<'r> {
    /// Of a slot that the row has.
    fn is_null(&self, slot: usize) -> bool {
        self.row[HEAD + slot / 8] & (1 << (slot % 8)) != 0
    }

    fn variable(&self, nth: usize) -> Result<&'r [u8]> {
        let from = if nth == 0 { 0 } else { self.end(nth - 1) };
        let bytes = self.row.get(self.data + from..self.data + self.end(nth));
        bytes.ok_or_else(|| SqlError::corrupt("a column's end"))
    }

    fn end(&self, nth: usize) -> usize {
        let at = self.ends + nth * self.step;
        match self.step {
            2 => usize::from(u16::from_le_bytes([self.row[at], self.row[at + 1]])),
            _ => u32::from_le_bytes([self.row[at], self.row[at + 1], self.row[at + 2], self.row[at + 3]]) as usize,
        }
    }
}

fn misfit(value: &Value) -> SqlError {
    SqlError::corrupt(&format!("a value that its column cannot hold: {value:?}"))
}

fn fixed_bits(value: &Value) -> Result<u64> {
    Ok(match value {
        Value::Int(number) => *number as u64,
        Value::UInt(number) => *number,
        Value::Float(number) => u64::from(number.to_bits()),
        Value::Double(number) => number.to_bits(),
        Value::Date(date) => u64::from(pack_date(*date)),
        Value::Time(time) => time.micros() as u64,
        Value::DateTime(reading) => {
            // A day has fewer than 2^37 microseconds.
            u64::from(pack_date(reading.date)) << 37 | reading.micros_of_day() as u64
        }
        Value::Timestamp(at) => at.0 as u64,
        value => return Err(misfit(value)),
    })
}

fn pack_date(date: Date) -> u32 {
    u32::from(date.year) << 9 | u32::from(date.month) << 5 | u32::from(date.day)
}

fn unpack_date(packed: u32) -> Date {
    Date::new((packed >> 9) as u16, (packed >> 5 & 15) as u8, (packed & 31) as u8)
}

#[inline]
fn fixed_value(bits: u64, width: usize, ty: &Type) -> Value {
    match ty.kind {
        Kind::Float => Value::Float(f32::from_bits(bits as u32)),
        Kind::Double => Value::Double(f64::from_bits(bits)),
        Kind::Date => Value::Date(unpack_date(bits as u32)),
        Kind::Time => Value::Time(Time::from_micros(bits as i64)),
        Kind::DateTime => {
            Value::DateTime(DateTime::new(unpack_date((bits >> 37) as u32), (bits & ((1 << 37) - 1)) as i64))
        }
        Kind::Timestamp => Value::Timestamp(Timestamp(bits as i64)),
        Kind::Year | Kind::Enum | Kind::Set | Kind::Bit => Value::UInt(bits),
        _ if ty.unsigned => Value::UInt(bits),
        _ => {
            let unused = 64 - 8 * width as u32;
            Value::Int((bits << unused) as i64 >> unused)
        }
    }
}

fn append(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Value::Null => {}
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::Decimal(decimal) => {
            out.push(decimal.scale());
            match decimal.small() {
                Some(small) => {
                    let bytes = small.to_be_bytes();
                    let sign = if small < 0 { 0xFF } else { 0 };
                    // The first byte kept carries the sign.
                    let skip =
                        (0..15).take_while(|at| bytes[*at] == sign && bytes[at + 1] & 0x80 == sign & 0x80).count();
                    out.extend_from_slice(&bytes[skip..]);
                }
                None => out.extend_from_slice(&decimal.coefficient().to_signed_bytes_be()),
            }
        }
        Value::Json(json) => json.encode(out),
        value => return Err(misfit(value)),
    }
    Ok(())
}

fn damaged_column() -> SqlError {
    SqlError::corrupt("a column's bytes")
}

fn parse(bytes: &[u8], ty: &Type) -> Result<Value> {
    let damaged = damaged_column;
    Ok(match ty.kind {
        Kind::Decimal => {
            let [scale, digits @ ..] = bytes else { return Err(damaged()) };
            if digits.is_empty() {
                return Err(damaged());
            }
            if digits.len() <= 16 {
                let mut full = [if digits[0] & 0x80 != 0 { 0xFF } else { 0 }; 16];
                full[16 - digits.len()..].copy_from_slice(digits);
                Value::Decimal(Decimal::new(i128::from_be_bytes(full), *scale))
            } else {
                Value::Decimal(Decimal::from_big(BigInt::from_signed_bytes_be(digits), *scale))
            }
        }
        Kind::Json => Value::Json(Json::decode(bytes).ok_or_else(damaged)?),
        kind if kind.is_bytes() => Value::Bytes(Bytes::new(bytes)),
        _ => Value::Text(Text::new(std::str::from_utf8(bytes).map_err(|_| damaged())?)),
    })
}

/// A value alone, for the catalog.
pub fn encode_value(value: &Value, ty: &Type, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        out.push(0);
        return Ok(());
    }
    out.push(1);
    match width(ty.kind) {
        Some(width) => out.extend_from_slice(&fixed_bits(value)?.to_le_bytes()[..width]),
        None => append(value, out)?,
    }
    Ok(())
}

pub fn decode_value(bytes: &[u8], ty: &Type) -> Result<Value> {
    let [present, rest @ ..] = bytes else { return Err(SqlError::corrupt("a default's bytes")) };
    if *present == 0 {
        return Ok(Value::Null);
    }
    match width(ty.kind) {
        Some(width) if rest.len() == width => {
            let mut bits = [0; 8];
            bits[..width].copy_from_slice(rest);
            Ok(fixed_value(u64::from_le_bytes(bits), width, ty))
        }
        Some(_) => Err(SqlError::corrupt("a default's length")),
        None => parse(rest, ty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(cells: &[(Value, Type)]) {
        let kinds: Vec<Kind> = cells.iter().map(|(_, ty)| ty.kind).collect();
        let layout = Layout::new(&kinds);
        let mut bytes = Vec::new();
        layout.encode(|slot| &cells[slot].0, &mut bytes).expect("it fits");
        let row = layout.open(&bytes).expect("it opens");
        for (slot, (value, ty)) in cells.iter().enumerate() {
            assert_eq!(layout.value(&row, slot, ty).expect("it parses").as_ref(), Some(value));
        }
    }

    #[test]
    fn every_kind_comes_back_as_it_went_in() {
        let unsigned = Type { unsigned: true, ..Type::new(Kind::BigInt) };
        round_trip(&[
            (Value::Int(-5), Type::new(Kind::TinyInt)),
            (Value::Null, Type::new(Kind::VarChar)),
            (Value::text("héllo"), Type::new(Kind::VarChar)),
            (Value::Int(-8_388_608), Type::new(Kind::MediumInt)),
            (Value::UInt(u64::MAX), unsigned),
            (Value::Int(i64::MIN), Type::new(Kind::BigInt)),
            (Value::Null, Type::new(Kind::Int)),
            (Value::Double(-0.5), Type::new(Kind::Double)),
            (Value::Float(1.5), Type::new(Kind::Float)),
            (Value::Date(Date::new(9999, 12, 31)), Type::new(Kind::Date)),
            (Value::Time(Time::from_micros(-5)), Type::new(Kind::Time)),
            (Value::DateTime(DateTime::at(Date::new(9999, 12, 31), 23, 59, 59, 999_999)), Type::new(Kind::DateTime)),
            (Value::Timestamp(Timestamp(1_700_000_000_000_001)), Type::new(Kind::Timestamp)),
            (Value::bytes([0, 255]), Type::new(Kind::Blob)),
            (Value::text(""), Type::new(Kind::Char)),
            (Value::Decimal(Decimal::new(-128, 2)), Type::new(Kind::Decimal)),
            (Value::Decimal(Decimal::new(128, 0)), Type::new(Kind::Decimal)),
            (Value::Decimal(Decimal::new(i128::MIN, 30)), Type::new(Kind::Decimal)),
        ]);
    }

    #[test]
    fn a_long_value_makes_its_row_wide() {
        let long = "x".repeat(70_000);
        round_trip(&[
            (Value::text("a"), Type::new(Kind::Text)),
            (Value::text(&long), Type::new(Kind::Text)),
            (Value::text("b"), Type::new(Kind::Text)),
        ]);
    }

    #[test]
    fn a_row_that_is_older_than_a_slot_says_so() {
        let (old, new) = (Layout::new(&[Kind::Int]), Layout::new(&[Kind::Int, Kind::VarChar]));
        let mut bytes = Vec::new();
        old.encode(|_| &Value::Int(7), &mut bytes).expect("it fits");
        let row = new.open(&bytes).expect("it opens");
        assert_eq!(new.value(&row, 0, &Type::new(Kind::Int)).expect("a value"), Some(Value::Int(7)));
        assert_eq!(new.value(&row, 1, &Type::new(Kind::VarChar)).expect("no value"), None);
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let layout = Layout::new(&[Kind::Int, Kind::VarChar]);
        for bytes in [&[][..], &[9, 2, 0, 0], &[1, 9, 0, 0], &[1, 2, 0, 0, 1]] {
            assert!(layout.open(bytes).is_err());
        }
    }
}
