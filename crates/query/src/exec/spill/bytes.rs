//! Encoding of rows for spill files. Each value carries its kind, so no types are needed.

use datum::{Fault, Result};

use crate::batch::{Batch, Cell, Row};
use crate::value::{Bytes, Date, DateTime, Decimal, Span, Text, Time, Timestamp, Value};
use datum::json::Json;
use datum::row;

const TEXT: u8 = 7;
const BYTES: u8 = 8;

pub fn encode_row(row: &[Value], out: &mut Vec<u8>) {
    encode_cells(row.iter().map(Cell::Value), out);
}

pub fn encode_cells<'c>(row: impl ExactSizeIterator<Item = Cell<'c>>, out: &mut Vec<u8>) {
    out.extend_from_slice(&(row.len() as u32).to_le_bytes());
    row.for_each(|cell| match cell {
        Cell::Value(value) => encode(value, out),
        Cell::Text(text) => long(TEXT, text.as_bytes(), out),
        Cell::Bytes(bytes) => long(BYTES, bytes, out),
    });
}

fn long(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn encode(value: &Value, out: &mut Vec<u8>) {
    let word = |tag: u8, bits: u64, out: &mut Vec<u8>| {
        out.push(tag);
        out.extend_from_slice(&bits.to_le_bytes());
    };
    match value {
        Value::Null => out.push(0),
        Value::Int(number) => word(1, *number as u64, out),
        Value::UInt(number) => word(2, *number, out),
        Value::Float(number) => word(3, u64::from(number.to_bits()), out),
        Value::Double(number) => word(4, number.to_bits(), out),
        Value::Decimal(decimal) => match decimal.small() {
            Some(small) => {
                out.push(5);
                out.extend_from_slice(&decimal.scale().to_le_bytes());
                out.extend_from_slice(&small.to_le_bytes());
            }
            None => long(6, &row::decimal_bytes(decimal), out),
        },
        Value::Text(text) => long(TEXT, text.as_bytes(), out),
        Value::Bytes(bytes) => long(BYTES, bytes, out),
        Value::Date(date) => {
            out.push(9);
            date_bytes(*date, out);
        }
        Value::Time(time) => word(10, time.micros() as u64, out),
        Value::DateTime(at) => {
            out.push(11);
            date_bytes(at.date, out);
            out.extend_from_slice(&at.micros_of_day().to_le_bytes());
        }
        Value::Timestamp(at) => word(12, at.0 as u64, out),
        Value::Interval(span) => {
            out.push(14);
            out.extend_from_slice(&span.to_bytes());
        }
        Value::Json(json) => {
            let mut bytes = Vec::new();
            json.encode(&mut bytes);
            long(13, &bytes, out);
        }
        Value::Array(array) => {
            let from = out.len();
            long(15, &[], out);
            // The elements have the shape of the array, so each has a stored form.
            let is_stored = row::put_array(array, out).is_ok();
            debug_assert!(is_stored);
            let length = (out.len() - from - 5) as u32;
            out[from + 1..from + 5].copy_from_slice(&length.to_le_bytes());
        }
        Value::Record(record) => {
            let from = out.len();
            long(16, &[], out);
            // Each value has the shape of its field.
            let is_stored = row::put_record(record, out).is_ok();
            debug_assert!(is_stored);
            let length = (out.len() - from - 5) as u32;
            out[from + 1..from + 5].copy_from_slice(&length.to_le_bytes());
        }
    }
}

fn date_bytes(date: Date, out: &mut Vec<u8>) {
    out.extend_from_slice(&date.year.to_le_bytes());
    out.extend_from_slice(&[date.month, date.day]);
}

/// Decodes the row at the front of the bytes.
pub fn decode_row(bytes: &mut &[u8]) -> Result<Row> {
    let mut read = || {
        let count = u32::from_le_bytes(take(bytes)?) as usize;
        (0..count).map(|_| decode(bytes)).collect::<Option<Row>>()
    };
    read().ok_or_else(damaged)
}

/// Decodes the row at the front of the bytes into a batch.
pub fn unpack_row(bytes: &mut &[u8], out: &mut Batch) -> Result<()> {
    let count = u32::from_le_bytes(take(bytes).ok_or_else(damaged)?);
    for _ in 0..count {
        unpack(bytes, out).ok_or_else(damaged)?;
    }
    out.end_row();
    Ok(())
}

fn unpack(bytes: &mut &[u8], out: &mut Batch) -> Option<()> {
    let tag = *bytes.first()?;
    if tag != TEXT && tag != BYTES {
        out.push(decode(bytes)?);
        return Some(());
    }
    *bytes = &bytes[1..];
    let string = stretch(bytes)?;
    if tag == TEXT {
        out.push_text(std::str::from_utf8(string).ok()?)
    } else {
        out.push_bytes(string)
    }
    Some(())
}

fn damaged() -> Fault {
    Fault::corrupt("a row in a temporary file")
}

/// Reads bytes that follow their length.
fn stretch<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = u32::from_le_bytes(take(bytes)?) as usize;
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn date(bytes: &mut &[u8]) -> Option<Date> {
    let [low, high, month, day] = take(bytes)?;
    Some(Date::new(u16::from_le_bytes([low, high]), month, day))
}

fn decode(bytes: &mut &[u8]) -> Option<Value> {
    let [tag] = take(bytes)?;
    Some(match tag {
        0 => Value::Null,
        1 => Value::Int(i64::from_le_bytes(take(bytes)?)),
        2 => Value::UInt(u64::from_le_bytes(take(bytes)?)),
        3 => Value::Float(f32::from_bits(u64::from_le_bytes(take(bytes)?) as u32)),
        4 => Value::Double(f64::from_bits(u64::from_le_bytes(take(bytes)?))),
        5 => {
            let scale = u16::from_le_bytes(take(bytes)?);
            Value::Decimal(Decimal::new(i128::from_le_bytes(take(bytes)?), scale))
        }
        9 => Value::Date(date(bytes)?),
        10 => Value::Time(Time::checked(i64::from_le_bytes(take(bytes)?))?),
        11 => Value::DateTime(DateTime::new(date(bytes)?, i64::from_le_bytes(take(bytes)?))),
        12 => Value::Timestamp(Timestamp(i64::from_le_bytes(take(bytes)?))),
        14 => Value::Interval(Span::from_bytes(take(bytes)?)),
        6 | TEXT | BYTES | 13 | 15 | 16 => {
            let head = stretch(bytes)?;
            match tag {
                6 => Value::Decimal(row::decimal_of_bytes(head).ok()?),
                TEXT => Value::Text(Text::new(std::str::from_utf8(head).ok()?)),
                BYTES => Value::Bytes(Bytes::new(head)),
                15 => Value::Array(row::array_of_bytes(head).ok()?),
                16 => Value::Record(row::record_of_bytes(head).ok()?),
                _ => Value::Json(Json::decode(head)?),
            }
        }
        _ => return None,
    })
}
