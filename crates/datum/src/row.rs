//! The row codec: a row as bytes, in the format of `docs/formats/row.md`.
//!
//! Columns lie in slots, in the order in which they were added to the table. A row ends with the last slot that existed when it was written, so adding a
//! column rewrites no row; the owner of the table never gives a slot to another column. Columns of fixed width come first, at offsets that depend on the
//! slots alone; the others follow with their ends in a directory, so any column is found without reading those before it.
//!
//! DA-5: every offset from disk is checked before it is used. Damaged bytes give `Fault::Corrupt`, never a panic.

use std::sync::Arc;

use num_bigint::BigInt;

use crate::batch::Batch;
use crate::collation::Collation;
use crate::decimal::{Decimal, Special};
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::storage::{Shape, Storage};
use crate::temporal::{Date, DateTime, Span, Time, Timestamp};
use crate::value::{Array, Bytes, DIMENSIONS_MAX, Dimension, Record, RecordField, RecordType, Text, Value};

/// Versions of the row format: ends of variable columns take two bytes, or four.
const NARROW: u8 = 1;
const WIDE: u8 = 2;
/// Version, and the number of slots.
const HEAD: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Slot {
    /// Behind the null bitmap.
    Fixed { offset: usize, width: usize },
    /// The index among the variable columns.
    Variable(usize),
}

/// The places of the slots in the rows of a table.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    places: Vec<Slot>,
    /// By the number of slots of a row: bytes of the fixed part, number of variable columns.
    sizes: Vec<(usize, usize)>,
}

impl Layout {
    /// Only the widths of the slots matter.
    pub fn new(slots: impl IntoIterator<Item = Storage>) -> Layout {
        let (mut places, mut sizes, mut fixed, mut variable) = (Vec::new(), vec![(0, 0)], 0, 0);
        for storage in slots {
            match storage.fixed_width() {
                Some(width) => {
                    places.push(Slot::Fixed { offset: fixed, width });
                    fixed += width;
                }
                None => {
                    places.push(Slot::Variable(variable));
                    variable += 1;
                }
            }
            sizes.push((fixed, variable));
        }
        Layout { places, sizes }
    }

    /// Appends a row of all slots. `value_of` gives the value of a slot, NULL for slots whose column was dropped. `Fault::Corrupt` for a value of another
    /// storage type than its slot's.
    pub fn encode<'v>(&self, value_of: impl Fn(usize) -> &'v Value, out: &mut Vec<u8>) -> Result<()> {
        let count = self.places.len();
        let start = out.len();
        let (fixed, variable) = self.sizes[count];
        let nulls = start + HEAD;
        let base = nulls + count.div_ceil(8);
        // Reserved at once, so that a long string is copied once.
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
                Slot::Fixed { .. } if value.is_null() => {}
                Slot::Fixed { offset, width } => {
                    put_fixed(value, &mut out[base + offset..base + offset + width])?;
                }
                Slot::Variable(nth) => {
                    append(value, out)?;
                    let end = out.len() - data;
                    let at = base + fixed + 2 * nth;
                    out[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
                    if end > usize::from(u16::MAX) || !ends.is_empty() {
                        // Rare: the directory was written with narrow ends and is replaced below.
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

    /// Checks the head of a row and returns a view that reads its columns.
    #[inline]
    pub fn open<'r>(&self, row: impl Into<RowBytes<'r>>) -> Result<RowView<'r>> {
        let RowBytes { bytes: row, owner } = row.into();
        let damaged = || Fault::corrupt("a row's head");
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
        Ok(RowView { row, owner, count, base, ends, step, data })
    }

    /// Appends the value of a slot to a batch, or `initial` where the row is older than the slot. Strings are copied into the batch's buffers, or share
    /// the row's.
    #[inline]
    pub fn append(
        &self,
        row: &RowView<'_>,
        slot: usize,
        (storage, initial): (Storage, &Value),
        out: &mut Batch,
    ) -> Result<()> {
        if let Some(Slot::Variable(nth)) = self.places.get(slot)
            && slot < row.count
            && !row.is_null(slot)
            && storage.is_string()
        {
            let bytes = row.variable(*nth)?;
            if storage == Storage::Bytes {
                match row.owner {
                    Some(owner) => out.push(Value::Bytes(Bytes::within(owner, bytes))),
                    None => out.push_bytes(bytes),
                }
            } else {
                out.push_text(text_of_bytes(bytes)?);
            }
            return Ok(());
        }
        out.push(self.value(row, slot, storage)?.unwrap_or_else(|| initial.clone()));
        Ok(())
    }

    /// Returns the value of a slot; `None` where the row is older than the slot.
    #[inline]
    pub fn value(&self, row: &RowView<'_>, slot: usize, storage: Storage) -> Result<Option<Value>> {
        if slot >= row.count {
            return Ok(None);
        }
        let mut value = Value::Null;
        Ok(row.read(&self.place(slot, storage), &mut value)?.then_some(value))
    }

    /// Returns where rows keep the values of a slot, for `RowView::read`.
    pub fn place(&self, slot: usize, storage: Storage) -> ColumnPlace {
        ColumnPlace { slot, at: self.places[slot], storage }
    }
}

/// Where rows keep the values of one column, and in which form. It is looked up once for many rows.
#[derive(Clone, Copy, Debug)]
pub struct ColumnPlace {
    slot: usize,
    at: Slot,
    storage: Storage,
}

/// In a decimal's first byte: the byte is the upper part of a scale of two bytes, or a special value.
const LONG_SCALE: u8 = 0x80;
const NEGATIVE_INFINITY: u8 = 0xFD;
const INFINITY: u8 = 0xFE;
const NAN: u8 = 0xFF;

/// Returns the coefficient and the scale of a decimal whose coefficient takes at most 8 bytes, and whose scale one.
#[inline]
fn short_decimal(bytes: &[u8]) -> Option<(i64, u16)> {
    let [scale, digits @ ..] = bytes else { return None };
    if digits.is_empty() || digits.len() > 8 || *scale >= LONG_SCALE {
        return None;
    }
    let bits = digits.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    let unused = 64 - 8 * digits.len() as u32;
    Some(((bits << unused) as i64 >> unused, u16::from(*scale)))
}

/// The bytes of a row. Where they are shared (`Arc`), long values become parts of them instead of copies.
#[derive(Clone, Copy)]
pub struct RowBytes<'r> {
    bytes: &'r [u8],
    owner: Option<&'r Arc<Vec<u8>>>,
}

impl RowBytes<'_> {
    pub fn is_shared(self) -> bool {
        self.owner.is_some()
    }
}

impl<'r> From<&'r [u8]> for RowBytes<'r> {
    fn from(bytes: &'r [u8]) -> RowBytes<'r> {
        RowBytes { bytes, owner: None }
    }
}

impl<'r> From<&'r Vec<u8>> for RowBytes<'r> {
    fn from(bytes: &'r Vec<u8>) -> RowBytes<'r> {
        RowBytes { bytes, owner: None }
    }
}

impl<'r> From<&'r Arc<Vec<u8>>> for RowBytes<'r> {
    fn from(owner: &'r Arc<Vec<u8>>) -> RowBytes<'r> {
        RowBytes { bytes: owner, owner: Some(owner) }
    }
}

/// A row whose head has been checked.
pub struct RowView<'r> {
    row: &'r [u8],
    owner: Option<&'r Arc<Vec<u8>>>,
    count: usize,
    base: usize,
    ends: usize,
    step: usize,
    data: usize,
}

impl<'r> RowView<'r> {
    /// `slot` is one that the row has.
    #[inline]
    fn is_null(&self, slot: usize) -> bool {
        self.row[HEAD + slot / 8] & (1 << (slot % 8)) != 0
    }

    #[inline]
    fn variable(&self, nth: usize) -> Result<&'r [u8]> {
        let from = if nth == 0 { 0 } else { self.end(nth - 1) };
        let bytes = self.row.get(self.data + from..self.data + self.end(nth));
        bytes.ok_or_else(|| Fault::corrupt("a column's end"))
    }

    /// Decodes the value of a column in place, because a value that is returned through several calls is copied by each. False: the row is older than the
    /// column's slot, and `out` is unchanged.
    #[inline]
    pub fn read(&self, from: &ColumnPlace, out: &mut Value) -> Result<bool> {
        if from.slot >= self.count {
            return Ok(false);
        }
        if self.is_null(from.slot) {
            *out = Value::Null;
            return Ok(true);
        }
        *out = match from.at {
            Slot::Fixed { offset, width } => {
                let bytes = &self.row[self.base + offset..][..width];
                match (bytes, from.storage) {
                    ([a, b, c, d], Storage::Int { signed: true, .. }) => {
                        Value::Int(i32::from_le_bytes([*a, *b, *c, *d]).into())
                    }
                    (_, storage) => fixed_value_of(bytes, storage)?,
                }
            }
            Slot::Variable(nth) => {
                let bytes = self.variable(nth)?;
                match (from.storage, self.owner) {
                    (Storage::Decimal, _) => match short_decimal(bytes) {
                        Some((coefficient, scale)) => Value::Decimal(Decimal::new(coefficient.into(), scale)),
                        None => variable_value(bytes, Storage::Decimal)?,
                    },
                    (Storage::Text, _) => Value::Text(Text::new(text_of_bytes(bytes)?)),
                    (Storage::Bytes | Storage::Keyed, Some(owner)) => Value::Bytes(Bytes::within(owner, bytes)),
                    (storage, _) => variable_value(bytes, storage)?,
                }
            }
        };
        Ok(true)
    }

    #[inline]
    fn end(&self, nth: usize) -> usize {
        let at = self.ends + nth * self.step;
        match self.step {
            2 => usize::from(u16::from_le_bytes([self.row[at], self.row[at + 1]])),
            _ => u32::from_le_bytes([self.row[at], self.row[at + 1], self.row[at + 2], self.row[at + 3]]) as usize,
        }
    }
}

fn misfit(value: &Value) -> Fault {
    Fault::corrupt(format!("a value that its column cannot hold: {value:?}"))
}

/// Writes a value into the bytes of its slot.
#[inline]
fn put_fixed(value: &Value, out: &mut [u8]) -> Result<()> {
    let width = out.len();
    match value {
        Value::Interval(span) if width == Span::BYTES => out.copy_from_slice(&span.to_bytes()),
        _ if width > 8 => return Err(misfit(value)),
        _ => out.copy_from_slice(&fixed_bits(value)?.to_le_bytes()[..width]),
    }
    Ok(())
}

/// Returns a value of a slot of fixed width.
fn fixed_value_of(bytes: &[u8], storage: Storage) -> Result<Value> {
    let bits = match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => return wide_value(bytes, storage),
    };
    fixed_value(bits, bytes.len(), storage)
}

/// Returns a value of more than eight bytes.
fn wide_value(bytes: &[u8], storage: Storage) -> Result<Value> {
    match (bytes.try_into(), storage) {
        (Ok(bytes), Storage::Interval) => Ok(Value::Interval(Span::from_bytes(bytes))),
        _ => Err(damaged_column()),
    }
}

fn fixed_bits(value: &Value) -> Result<u64> {
    Ok(match value {
        Value::Int(number) => *number as u64,
        Value::UInt(number) => *number,
        Value::Float(number) => u64::from(number.to_bits()),
        Value::Double(number) => number.to_bits(),
        Value::Date(date) => u64::from(date.to_bits()),
        Value::Time(time) => time.micros() as u64,
        Value::DateTime(reading) => reading.to_bits(),
        Value::Timestamp(at) => at.0 as u64,
        value => return Err(misfit(value)),
    })
}

#[inline]
fn fixed_value(bits: u64, width: usize, storage: Storage) -> Result<Value> {
    Ok(match storage {
        Storage::Float4 => Value::Float(f32::from_bits(bits as u32)),
        Storage::Float8 => Value::Double(f64::from_bits(bits)),
        Storage::Date => Value::Date(Date::from_bits(bits as u32)),
        Storage::Time => Value::Time(Time::from_micros(bits as i64)),
        Storage::Timestamp => Value::DateTime(DateTime::from_bits(bits).ok_or_else(damaged_column)?),
        Storage::TimestampTz => Value::Timestamp(Timestamp(bits as i64)),
        Storage::Enum | Storage::Set | Storage::Bit | Storage::Int { signed: false, .. } => Value::UInt(bits),
        _ => {
            let unused = 64 - 8 * width as u32;
            Value::Int((bits << unused) as i64 >> unused)
        }
    })
}

/// Returns the bytes of a decimal in a row.
pub fn decimal_bytes(decimal: &Decimal) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_decimal(decimal, &mut bytes);
    bytes
}

pub(crate) fn put_decimal(decimal: &Decimal, out: &mut Vec<u8>) {
    match decimal.special() {
        None => put_scale(decimal.scale(), out),
        Some(Special::NegativeInfinity) => return out.push(NEGATIVE_INFINITY),
        Some(Special::Infinity) => return out.push(INFINITY),
        Some(Special::NotANumber) => return out.push(NAN),
    }
    match decimal.small() {
        Some(small) => {
            let bytes = small.to_be_bytes();
            let sign = if small < 0 { 0xFF } else { 0 };
            // The first byte kept carries the sign.
            let skip = (0..15).take_while(|at| bytes[*at] == sign && bytes[at + 1] & 0x80 == sign & 0x80).count();
            out.extend_from_slice(&bytes[skip..]);
        }
        None => out.extend_from_slice(&decimal.coefficient().to_signed_bytes_be()),
    }
}

fn append(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Value::Null => {}
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::Decimal(decimal) => put_decimal(decimal, out),
        Value::Json(json) => json.encode(out),
        Value::Array(array) => put_array(array, out)?,
        Value::Record(record) => put_record(record, out)?,
        value => return Err(misfit(value)),
    }
    Ok(())
}

#[inline]
fn text_of_bytes(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| damaged_column())
}

#[cold]
fn damaged_column() -> Fault {
    Fault::corrupt("a column's bytes")
}

/// Writes one byte up to 127, else two, the upper one from 0x80 on. No dialect has a scale of more than 0x3FFF.
fn put_scale(scale: u16, out: &mut Vec<u8>) {
    debug_assert!(scale <= 0x3FFF);
    match scale.to_be_bytes() {
        [0, low @ ..LONG_SCALE] => out.push(low),
        [high, low] => out.extend_from_slice(&[LONG_SCALE | high & 0x3F, low]),
    }
}

/// Returns the decimal that `decimal_bytes` wrote.
pub fn decimal_of_bytes(bytes: &[u8]) -> Result<Decimal> {
    let (scale, digits) = match bytes {
        [NEGATIVE_INFINITY] => return Ok(Decimal::NEGATIVE_INFINITY),
        [INFINITY] => return Ok(Decimal::INFINITY),
        [NAN] => return Ok(Decimal::NAN),
        [scale @ ..LONG_SCALE, digits @ ..] => (u16::from(*scale), digits),
        [high @ ..0xC0, low, digits @ ..] => (u16::from_be_bytes([high & !LONG_SCALE, *low]), digits),
        _ => return Err(damaged_column()),
    };
    if digits.is_empty() {
        return Err(damaged_column());
    }
    if digits.len() > 16 {
        return Ok(Decimal::from_big(BigInt::from_signed_bytes_be(digits), scale));
    }
    let mut full = [if digits[0] & 0x80 != 0 { 0xFF } else { 0 }; 16];
    full[16 - digits.len()..].copy_from_slice(digits);
    Ok(Decimal::new(i128::from_be_bytes(full), scale))
}

fn variable_value(bytes: &[u8], storage: Storage) -> Result<Value> {
    let damaged = damaged_column;
    Ok(match storage {
        Storage::Decimal => Value::Decimal(decimal_of_bytes(bytes)?),
        Storage::Json | Storage::Jsonb => Value::Json(Json::decode(bytes).ok_or_else(damaged)?),
        Storage::Bytes | Storage::Keyed => Value::Bytes(Bytes::new(bytes)),
        Storage::Array => Value::Array(array_of_bytes(bytes)?),
        Storage::Record => Value::Record(record_of_bytes(bytes)?),
        _ => Value::Text(Text::new(text_of_bytes(bytes)?)),
    })
}

/// Appends one value by itself: a byte that is 0 for NULL and 1 otherwise, then the column's bytes. For defaults and bounds in definitions.
pub fn encode_value(value: &Value, storage: Storage, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        out.push(0);
        return Ok(());
    }
    out.push(1);
    match storage.fixed_width() {
        Some(width) => {
            let from = out.len();
            out.resize(from + width, 0);
            put_fixed(value, &mut out[from..])?;
        }
        None => append(value, out)?,
    }
    Ok(())
}

/// Returns the value that `encode_value` wrote.
pub fn decode_value(bytes: &[u8], storage: Storage) -> Result<Value> {
    let [present, rest @ ..] = bytes else { return Err(Fault::corrupt("a default's bytes")) };
    if *present == 0 {
        return Ok(Value::Null);
    }
    element(rest, storage)
}

/// Returns the value of a storage type that bytes alone hold.
fn element(rest: &[u8], storage: Storage) -> Result<Value> {
    match storage.fixed_width() {
        Some(width) if rest.len() == width && width > 8 => wide_value(rest, storage),
        Some(width) if rest.len() == width => {
            let mut bits = [0; 8];
            bits[..width].copy_from_slice(rest);
            fixed_value(u64::from_le_bytes(bits), width, storage)
        }
        Some(_) => Err(Fault::corrupt("a default's length")),
        None => variable_value(rest, storage),
    }
}

/// Appends the stored form of an array: storage type (1), collation (2) and dimensions (1), of each its length (4) and lower bound (4), a bit for each element that is NULL, then the others: fixed ones by width, others behind their length (4).
pub fn put_array(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    out.push(array.element().storage.code());
    out.extend_from_slice(&array.element().collation.code().to_le_bytes());
    out.push(array.dimensions().len() as u8);
    for Dimension { length, lower } in array.dimensions() {
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&lower.to_le_bytes());
    }
    let nulls = out.len();
    out.resize(nulls + array.len().div_ceil(8), 0);
    for (at, value) in array.values().iter().enumerate() {
        if value.is_null() {
            out[nulls + at / 8] |= 1 << (at % 8);
            continue;
        }
        match array.element().storage.fixed_width() {
            Some(width) => {
                let from = out.len();
                out.resize(from + width, 0);
                put_fixed(value, &mut out[from..])?;
            }
            None => {
                let from = out.len();
                out.extend_from_slice(&[0; 4]);
                append(value, out)?;
                let length = (out.len() - from - 4) as u32;
                out[from..from + 4].copy_from_slice(&length.to_le_bytes());
            }
        }
    }
    Ok(())
}

/// Returns the array whose stored form the bytes are. `Fault::Corrupt` for others.
pub fn array_of_bytes(bytes: &[u8]) -> Result<Array> {
    read_array(bytes).ok_or_else(|| Fault::corrupt("the bytes of an array"))
}

fn read_array(mut bytes: &[u8]) -> Option<Array> {
    let rest = &mut bytes;
    let [storage, low, high, count] = take(rest)?;
    let storage = Storage::of_code(storage)?;
    let shape = Shape { storage, collation: Collation::of_code(u16::from_le_bytes([low, high]))? };
    if usize::from(count) > DIMENSIONS_MAX || storage == Storage::Array {
        return None;
    }
    let mut dimensions = Vec::with_capacity(count.into());
    let mut total = usize::from(count > 0);
    for _ in 0..count {
        let (length, lower) = (u32::from_le_bytes(take(rest)?), i32::from_le_bytes(take(rest)?));
        total = total.checked_mul(length as usize)?;
        dimensions.push(Dimension { length, lower });
    }
    let nulls = stretch(rest, total.div_ceil(8))?;
    let mut values = Vec::with_capacity(total);
    for at in 0..total {
        if nulls[at / 8] & 1 << (at % 8) != 0 {
            values.push(Value::Null);
            continue;
        }
        let width = match storage.fixed_width() {
            Some(width) => width,
            None => u32::from_le_bytes(take(rest)?) as usize,
        };
        values.push(element(stretch(rest, width)?, storage).ok()?);
    }
    (rest.is_empty() && values.is_empty() == dimensions.is_empty()).then(|| Array::new(shape, &dimensions, values))
}

/// Appends the stored form of a record: the number of its type (4) and of its fields (2), of each its name behind its length (2), number (4), modifier (4), storage type (1) and collation (2); then each value as `encode_value` writes it, behind its length (4).
pub fn put_record(record: &Record, out: &mut Vec<u8>) -> Result<()> {
    let ty = record.ty();
    out.extend_from_slice(&ty.number.to_le_bytes());
    out.extend_from_slice(&(ty.fields.len() as u16).to_le_bytes());
    for RecordField { name, number, length, shape, record: _ } in &ty.fields {
        out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.push(shape.storage.code());
        out.extend_from_slice(&shape.collation.code().to_le_bytes());
    }
    for (field, value) in record.fields() {
        let from = out.len();
        out.extend_from_slice(&[0; 4]);
        encode_value(value, field.shape.storage, out)?;
        let length = (out.len() - from - 4) as u32;
        out[from..from + 4].copy_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

/// Returns the record whose stored form the bytes are. `Fault::Corrupt` for others.
pub fn record_of_bytes(bytes: &[u8]) -> Result<Record> {
    read_record(bytes).ok_or_else(|| Fault::corrupt("the bytes of a record"))
}

fn read_record(mut bytes: &[u8]) -> Option<Record> {
    let rest = &mut bytes;
    let number = u32::from_le_bytes(take(rest)?);
    let count = u16::from_le_bytes(take(rest)?);
    let mut fields = Vec::new();
    for _ in 0..count {
        let length = u16::from_le_bytes(take(rest)?).into();
        let name = std::str::from_utf8(stretch(rest, length)?).ok()?.into();
        let (number, length) = (u32::from_le_bytes(take(rest)?), u32::from_le_bytes(take(rest)?));
        let [storage, low, high] = take(rest)?;
        let collation = Collation::of_code(u16::from_le_bytes([low, high]))?;
        let shape = Shape { storage: Storage::of_code(storage)?, collation };
        fields.push(RecordField { name, number, length, shape, record: None });
    }
    let mut values = Vec::with_capacity(fields.len());
    for field in &fields {
        let length = u32::from_le_bytes(take(rest)?) as usize;
        values.push(decode_value(stretch(rest, length)?, field.shape.storage).ok()?);
    }
    let ty = Arc::new(RecordType { number, fields: fields.into() });
    if rest.is_empty() { Record::new(ty, values) } else { None }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn stretch<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: Storage = Storage::Int { bytes: 4, signed: true };

    fn round_trip(cells: &[(Value, Storage)]) {
        let layout = Layout::new(cells.iter().map(|(_, storage)| *storage));
        let mut bytes = Vec::new();
        layout.encode(|slot| &cells[slot].0, &mut bytes).expect("it fits");
        let row = layout.open(&bytes).expect("it opens");
        for (slot, (value, storage)) in cells.iter().enumerate() {
            assert_eq!(layout.value(&row, slot, *storage).expect("it parses").as_ref(), Some(value));
        }
    }

    #[test]
    fn every_value_comes_back_as_it_went_in() {
        let int = |bytes, signed| Storage::Int { bytes, signed };
        round_trip(&[
            (Value::Int(-5), int(1, true)),
            (Value::Null, Storage::Text),
            (Value::text("héllo"), Storage::Text),
            (Value::Int(-8_388_608), int(4, true)),
            (Value::UInt(u64::MAX), int(8, false)),
            (Value::Int(i64::MIN), int(8, true)),
            (Value::Null, INT),
            (Value::Double(-0.5), Storage::Float8),
            (Value::Float(1.5), Storage::Float4),
            (Value::Date(Date::new(9999, 12, 31)), Storage::Date),
            (Value::Time(Time::from_micros(-5)), Storage::Time),
            (Value::DateTime(DateTime::at(Date::new(9999, 12, 31), 23, 59, 59, 999_999)), Storage::Timestamp),
            (Value::Timestamp(Timestamp(1_700_000_000_000_001)), Storage::TimestampTz),
            (Value::bytes([0, 255]), Storage::Bytes),
            (Value::text(""), Storage::Text),
            (Value::Decimal(Decimal::new(-128, 2)), Storage::Decimal),
            (Value::Decimal(Decimal::new(128, 0)), Storage::Decimal),
            (Value::Decimal(Decimal::new(i128::MIN, 30)), Storage::Decimal),
        ]);
    }

    #[test]
    fn a_long_value_makes_its_row_wide() {
        let long = "x".repeat(70_000);
        round_trip(&[
            (Value::text("a"), Storage::Text),
            (Value::text(&long), Storage::Text),
            (Value::text("b"), Storage::Text),
        ]);
    }

    #[test]
    fn a_row_that_is_older_than_a_slot_says_so() {
        let (old, new) = (Layout::new([INT]), Layout::new([INT, Storage::Text]));
        let mut bytes = Vec::new();
        old.encode(|_| &Value::Int(7), &mut bytes).expect("it fits");
        let row = new.open(&bytes).expect("it opens");
        assert_eq!(new.value(&row, 0, INT).expect("a value"), Some(Value::Int(7)));
        assert_eq!(new.value(&row, 1, Storage::Text).expect("no value"), None);
    }

    /// DA-5.
    #[test]
    fn damaged_bytes_are_refused() {
        let layout = Layout::new([INT, Storage::Text]);
        for bytes in [&[][..], &[9, 2, 0, 0], &[1, 9, 0, 0], &[1, 2, 0, 0, 1]] {
            assert!(layout.open(bytes).is_err());
        }
        let more_than_a_day = [&[1][..], &[0xFF; 8]].concat();
        assert!(decode_value(&more_than_a_day, Storage::Timestamp).is_err());
        assert!(crate::key::decode(&more_than_a_day, Storage::Timestamp, crate::key::KeyOrder::ASCENDING).is_none());
    }

    const INTEGERS: Shape = Shape { storage: Storage::Int { bytes: 4, signed: true }, collation: Collation::Binary };

    fn arrays() -> Vec<Array> {
        let text = Shape::from(Storage::Text);
        let lines = [Dimension { length: 2, lower: -1 }, Dimension::of(3)];
        vec![
            Array::empty(INTEGERS),
            Array::list(INTEGERS, vec![Value::Int(1), Value::Null, Value::Int(-7)]),
            Array::new(INTEGERS, &lines, (0..6).map(Value::Int).collect()),
            Array::list(text, vec![Value::text(""), Value::text("a".repeat(70_000)), Value::Null]),
        ]
    }

    #[test]
    fn a_record_comes_back_from_its_stored_form_and_damaged_bytes_are_refused() {
        let field = |name: &str, number: u32, storage: Storage| RecordField {
            name: name.into(),
            number,
            length: u32::MAX,
            shape: storage.into(),
            record: None,
        };
        let fields = [field("a", 23, Storage::Int { bytes: 4, signed: true }), field("", 25, Storage::Text)];
        let inner = Arc::new(RecordType { number: 2249, fields: fields.into() });
        let inner = Record::new(inner, vec![Value::Int(-5), Value::Null]).expect("it is flat");
        let fields = [field("r", 2249, Storage::Record), field("l", 1007, Storage::Array)];
        let outer = Arc::new(RecordType { number: 7, fields: fields.into() });
        let list = Array::list(INTEGERS, vec![Value::Int(1), Value::Null]);
        let outer = Record::new(outer, vec![Value::Record(inner), Value::Array(list)]).expect("it has two levels");
        let value = Value::Record(outer);
        let mut bytes = Vec::new();
        encode_value(&value, Storage::Record, &mut bytes).expect("it fits");
        assert_eq!(decode_value(&bytes, Storage::Record).expect("it parses"), value);
        for end in 1..bytes.len() {
            assert!(decode_value(&bytes[..end], Storage::Record).is_err());
        }
    }

    #[test]
    fn records_nest_up_to_their_bound() {
        let ty = Arc::new(RecordType {
            number: 2249,
            fields: [RecordField {
                name: "f1".into(),
                number: 2249,
                length: 0,
                shape: Storage::Record.into(),
                record: None,
            }]
            .into(),
        });
        let mut value = Value::Null;
        for _ in 0..crate::value::RECORD_DEPTH_MAX {
            value = Value::Record(Record::new(ty.clone(), vec![value]).expect("it is within the bound"));
        }
        assert!(Record::new(ty, vec![value]).is_none());
    }

    #[test]
    fn an_array_comes_back_from_its_stored_form() {
        for array in arrays() {
            let value = Value::Array(array);
            let mut bytes = Vec::new();
            encode_value(&value, Storage::Array, &mut bytes).expect("it fits");
            assert_eq!(decode_value(&bytes, Storage::Array).expect("it parses"), value);
        }
    }

    /// DA-5.
    #[test]
    fn damaged_bytes_of_an_array_are_refused() {
        for array in arrays() {
            let mut bytes = Vec::new();
            put_array(&array, &mut bytes).expect("it fits");
            for end in 0..bytes.len().min(64) {
                assert!(array_of_bytes(&bytes[..end]).is_err());
            }
            for at in 0..bytes.len().min(64) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0xFF;
                let _ = array_of_bytes(&damaged);
            }
        }
    }
}
