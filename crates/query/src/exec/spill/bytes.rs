//! A row as bytes and back, without its types: each value says what it is.

use crate::error::{Result, SqlError};
use crate::scalar::json::Json;
use crate::session::Row;
use crate::value::{Bytes, Date, DateTime, Decimal, Text, Time, Timestamp, Value};

pub fn encode_row(row: &[Value], out: &mut Vec<u8>) {
    out.extend_from_slice(&(row.len() as u32).to_le_bytes());
    row.iter().for_each(|value| encode(value, out));
}

fn encode(value: &Value, out: &mut Vec<u8>) {
    let long = |tag: u8, bytes: &[u8], out: &mut Vec<u8>| {
        out.push(tag);
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    };
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
                out.extend_from_slice(&[5, decimal.scale()]);
                out.extend_from_slice(&small.to_le_bytes());
            }
            None => long(6, decimal.to_string().as_bytes(), out),
        },
        Value::Text(text) => long(7, text.as_bytes(), out),
        Value::Bytes(bytes) => long(8, bytes, out),
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
        Value::Json(json) => {
            let mut bytes = Vec::new();
            json.encode(&mut bytes);
            long(13, &bytes, out);
        }
    }
}

fn date_bytes(date: Date, out: &mut Vec<u8>) {
    out.extend_from_slice(&date.year.to_le_bytes());
    out.extend_from_slice(&[date.month, date.day]);
}

/// Takes the row off the front of the bytes.
pub fn decode_row(bytes: &mut &[u8]) -> Result<Row> {
    let mut read = || {
        let count = u32::from_le_bytes(take(bytes)?) as usize;
        (0..count).map(|_| decode(bytes)).collect::<Option<Row>>()
    };
    read().ok_or_else(|| SqlError::corrupt("a row in a temporary file"))
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
            let [scale] = take(bytes)?;
            Value::Decimal(Decimal::new(i128::from_le_bytes(take(bytes)?), scale))
        }
        9 => Value::Date(date(bytes)?),
        10 => Value::Time(Time::checked(i64::from_le_bytes(take(bytes)?))?),
        11 => Value::DateTime(DateTime::new(date(bytes)?, i64::from_le_bytes(take(bytes)?))),
        12 => Value::Timestamp(Timestamp(i64::from_le_bytes(take(bytes)?))),
        6 | 7 | 8 | 13 => {
            let length = u32::from_le_bytes(take(bytes)?) as usize;
            let (head, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            match tag {
                6 => Value::Decimal(Decimal::parse(std::str::from_utf8(head).ok()?)?),
                7 => Value::Text(Text::new(std::str::from_utf8(head).ok()?)),
                8 => Value::Bytes(Bytes::new(head)),
                _ => Value::Json(Json::decode(head)?),
            }
        }
        _ => return None,
    })
}
