//! Rows: each value in a field of its own, in the form of its column's type; NULL is a field without bytes.

use sql_mysql::batch::{Cell, Cells};
use sql_mysql::error::{self, Result, SqlError};
use sql_mysql::scalar::convert::write_text;
use sql_mysql::types::{Column, Kind, MysqlType as _};
use sql_mysql::value::{Date, DateTime, Decimal, Time, Value};

use crate::encode::column::WireKind;
use crate::proto::{put_measured, put_varint, zigzag};
use sql_mysql::charset::Results;

/// Appends the payload of a row.
#[inline]
pub fn put_row(out: &mut Vec<u8>, columns: &[Column], row: Cells<'_>, results: Results) -> Result<()> {
    assert_eq!(columns.len(), row.len());
    columns.iter().zip(row.iter()).try_for_each(|(column, cell)| {
        put_measured(out, 1, |out| if cell.is_null() { Ok(()) } else { put_value(out, column, cell, results) })
    })
}

/// Appends a value that is not NULL.
#[inline]
pub fn put_value(out: &mut Vec<u8>, column: &Column, cell: Cell<'_>, results: Results) -> Result<()> {
    let written = match WireKind::of(&column.ty) {
        WireKind::Sint => whole(cell).map(|number| put_varint(out, zigzag(number as i64))),
        WireKind::Uint => whole(cell).map(|number| put_varint(out, number)),
        WireKind::Bit => bits(cell).map(|number| put_varint(out, number)),
        WireKind::Double => double(cell).map(|number| out.extend_from_slice(&number.to_le_bytes())),
        WireKind::Float => double(cell).map(|number| out.extend_from_slice(&(number as f32).to_le_bytes())),
        WireKind::Decimal => decimal(cell).map(|number| put_decimal(out, &number)),
        WireKind::DateTime => moment(cell, column.ty.kind()).map(|at| put_moment(out, at, column.ty.kind())),
        WireKind::Time => time(cell).map(|time| put_time(out, time)),
        WireKind::Bytes | WireKind::Enum => {
            put_string(out, column, cell, results);
            out.push(0);
            Some(())
        }
        WireKind::Set => text(cell).map(|members| put_set(out, &results.encode(members))),
    };
    written.ok_or_else(|| not_of_its_kind(column))
}

/// The error of a value that does not match its column's type (DX-6).
#[cold]
pub fn not_of_its_kind(column: &Column) -> SqlError {
    error::UNKNOWN_ERROR.with(&[&format!("column '{}' is {}, and its value is not", column.name, column.ty.name())])
}

/// Returns the bits of an integer.
#[inline]
pub fn whole(cell: Cell<'_>) -> Option<u64> {
    match cell {
        Cell::Value(Value::Int(number)) => Some(*number as u64),
        Cell::Value(Value::UInt(number)) => Some(*number),
        _ => None,
    }
}

/// Returns a BIT value as a number; the first byte is the highest.
pub fn bits(cell: Cell<'_>) -> Option<u64> {
    match cell {
        Cell::Bytes(bytes) => number_of(bytes),
        Cell::Value(Value::Bytes(bytes)) => number_of(bytes),
        cell => whole(cell),
    }
}

fn number_of(bytes: &[u8]) -> Option<u64> {
    (bytes.len() <= 8).then(|| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

pub fn double(cell: Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Value(Value::Double(number)) => Some(*number),
        Cell::Value(Value::Float(number)) => Some(f64::from(*number)),
        Cell::Value(Value::Int(number)) => Some(*number as f64),
        Cell::Value(Value::UInt(number)) => Some(*number as f64),
        Cell::Value(Value::Decimal(number)) => Some(number.to_f64()),
        _ => None,
    }
}

/// Returns a number that the wire has a form for: finite, with a scale of one byte.
pub fn decimal(cell: Cell<'_>) -> Option<Decimal> {
    match cell {
        Cell::Value(Value::Decimal(number)) => {
            (number.is_finite() && number.scale() <= u8::MAX.into()).then(|| number.clone())
        }
        Cell::Value(Value::Int(number)) => Some(Decimal::from(*number)),
        Cell::Value(Value::UInt(number)) => Some(Decimal::from(*number)),
        _ => None,
    }
}

/// Returns a date or a moment. A date is its midnight; in a DATE column only the date of a moment counts.
pub fn moment(cell: Cell<'_>, kind: Kind) -> Option<DateTime> {
    match cell {
        Cell::Value(Value::DateTime(at)) if kind == Kind::Date => Some(DateTime::from(at.date)),
        Cell::Value(Value::DateTime(at)) => Some(*at),
        Cell::Value(Value::Date(date)) => Some(DateTime::from(*date)),
        _ => None,
    }
}

pub fn time(cell: Cell<'_>) -> Option<Time> {
    match cell {
        Cell::Value(Value::Time(time)) => Some(*time),
        _ => None,
    }
}

pub fn text(cell: Cell<'_>) -> Option<&str> {
    match cell {
        Cell::Text(text) => Some(text),
        Cell::Value(Value::Text(text)) => Some(text),
        _ => None,
    }
}

/// Appends any value as a string, without the terminating zero.
pub fn put_string(out: &mut Vec<u8>, column: &Column, cell: Cell<'_>, results: Results) {
    match cell {
        Cell::Text(text) => out.extend_from_slice(&results.encode(text)),
        Cell::Bytes(bytes) => out.extend_from_slice(bytes),
        Cell::Value(Value::Text(text)) => out.extend_from_slice(&results.encode(text)),
        Cell::Value(Value::Bytes(bytes)) => out.extend_from_slice(bytes),
        Cell::Value(value) => {
            let mut shown = String::new();
            write_text(value, &column.ty, &mut shown);
            out.extend_from_slice(&results.encode(&shown));
        }
    }
}

/// Appends the scale, two digits a byte, and the sign in the half byte behind them.
pub fn put_decimal(out: &mut Vec<u8>, number: &Decimal) {
    const PLUS: u8 = 0xc;
    const MINUS: u8 = 0xd;
    let shown = number.abs().to_string();
    out.push(number.bounded_scale());
    let sign = if number.is_negative() { MINUS } else { PLUS };
    let mut high = None;
    let digits = shown.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0');
    for half in digits.chain([sign]) {
        match high.take() {
            None => high = Some(half),
            Some(high) => out.push(high << 4 | half),
        }
    }
    if let Some(high) = high {
        out.push(high << 4);
    }
}

/// Appends year, month, day, and the clock without trailing zeros.
fn put_moment(out: &mut Vec<u8>, at: DateTime, kind: Kind) {
    let Date { year, month, day } = at.date;
    let (hours, minutes, seconds, micros) = at.clock();
    let clock = [hours, minutes, seconds, micros];
    for part in [u32::from(year), month.into(), day.into()] {
        put_varint(out, part.into());
    }
    if kind != Kind::Date {
        put_to_last(out, &clock);
    }
}

/// Appends the sign, then hours, minutes, seconds and microseconds without trailing zeros.
fn put_time(out: &mut Vec<u8>, time: Time) {
    let (hours, minutes, seconds, micros) = time.parts();
    out.push(u8::from(time.is_negative()));
    put_to_last(out, &[hours, minutes, seconds, micros]);
}

fn put_to_last(out: &mut Vec<u8>, parts: &[u32]) {
    let count = parts.iter().rposition(|part| *part != 0).map_or(0, |last| last + 1);
    parts[..count].iter().for_each(|part| put_varint(out, u64::from(*part)));
}

/// Appends the members, each behind its length. An empty set has a byte of its own, which tells it from a set with one empty member.
pub fn put_set(out: &mut Vec<u8>, members: &[u8]) {
    const NONE: u8 = 1;
    if members.is_empty() {
        return out.push(NONE);
    }
    for member in members.split(|byte| *byte == b',') {
        put_varint(out, member.len() as u64);
        out.extend_from_slice(member);
    }
}

#[cfg(test)]
mod tests {
    use sql_mysql::batch::Batch;
    use sql_mysql::types::{Collation, Type};

    use super::*;
    use sql_mysql::types::CollationName as _;

    fn row(ty: Type, value: Value) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let columns = [Column::computed("x", ty)];
        put_row(&mut out, &columns, Batch::from(vec![vec![value]]).row(0), Results::UTF8)?;
        Ok(out)
    }

    fn value(ty: Type, held: Value) -> Vec<u8> {
        let out = row(ty, held).unwrap();
        assert_eq!((out[0], usize::from(out[1])), (0x0a, out.len() - 2));
        out[2..].to_vec()
    }

    fn at(hour: u32, minute: u32, second: u32, micros: u32) -> Value {
        Value::DateTime(DateTime::at(Date::new(2024, 2, 29), hour, minute, second, micros))
    }

    fn time(text: &str) -> Value {
        let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let parts: Vec<i64> = rest.split(':').map(|part| part.parse().unwrap()).collect();
        Value::Time(Time::from_micros(sign * (parts[0] * 3600 + parts[1] * 60 + parts[2]) * 1_000_000))
    }

    #[test]
    fn the_reference_points_of_the_protocol_come_out() {
        assert_eq!(row(Type::integer(), Value::Int(1)).unwrap(), b"\x0a\x01\x02");
        let decimal = Decimal::parse("-12.3401").unwrap();
        assert_eq!(value(Type::decimal(6, 4), Value::Decimal(decimal)), b"\x04\x12\x34\x01\xd0");
        let datetime = value(Type::temporal(Kind::DateTime, 6), at(13, 7, 0, 123_456));
        assert_eq!(datetime, b"\xe8\x0f\x02\x1d\x0d\x07\x00\xc0\xc4\x07");
        let date = value(Type::of_kind(Kind::Date), Value::Date(Date::new(1999, 12, 31)));
        assert_eq!(date, b"\xcf\x0f\x0c\x1f");
        assert_eq!(value(Type::of_kind(Kind::Time), time("-838:59:59")), b"\x01\xc6\x06\x3b\x3b");
        assert_eq!(value(Type::of_kind(Kind::Set), Value::text("FOO,BAR")), b"\x03FOO\x03BAR");
        assert_eq!(value(Type::of_kind(Kind::Bit), Value::bytes([3, 255])), b"\xff\x07");
    }

    #[test]
    fn each_kind_has_its_form() {
        for (ty, held, bytes) in [
            (Type::integer(), Value::Int(-3), &b"\x05"[..]),
            (Type::integer(), Value::Int(i64::MIN), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            (Type::unsigned(), Value::UInt(u64::MAX), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            (Type::of_kind(Kind::Year), Value::UInt(2024), b"\xe8\x0f"),
            (Type::of_kind(Kind::Bit), Value::UInt(5), b"\x05"),
            (Type::double(), Value::Double(1.5), b"\x00\x00\x00\x00\x00\x00\xf8\x3f"),
            (Type::of_kind(Kind::Float), Value::Float(1.5), b"\x00\x00\xc0\x3f"),
            (Type::decimal(4, 2), Value::Decimal(Decimal::new(5, 2)), b"\x02\x00\x5c"),
            (Type::decimal(4, 0), Value::Decimal(Decimal::new(12, 0)), b"\x00\x12\xc0"),
            (Type::text(9, Collation::DEFAULT), Value::text("Wal"), b"Wal\x00"),
            (Type::text(9, Collation::DEFAULT), Value::text(""), b"\x00"),
            (Type::bytes(2), Value::bytes([0, 255]), b"\x00\xff\x00"),
            (Type::of_kind(Kind::Enum), Value::text("a"), b"a\x00"),
            (Type::of_kind(Kind::Set), Value::text(""), b"\x01"),
            (Type::of_kind(Kind::Time), time("0:0:0"), b"\x00"),
            (Type::of_kind(Kind::Time), time("1:0:0"), b"\x00\x01"),
            (Type::of_kind(Kind::DateTime), at(0, 0, 0, 0), b"\xe8\x0f\x02\x1d"),
            (Type::of_kind(Kind::DateTime), at(0, 7, 0, 0), b"\xe8\x0f\x02\x1d\x00\x07"),
            (Type::of_kind(Kind::Date), at(13, 7, 0, 0), b"\xe8\x0f\x02\x1d"),
        ] {
            assert_eq!(value(ty.clone(), held), bytes, "{}", ty.name());
        }
    }

    #[test]
    fn null_is_a_field_without_bytes_whatever_its_type() {
        for kind in [Kind::Null, Kind::Int, Kind::VarChar, Kind::DateTime, Kind::Set] {
            assert_eq!(row(Type::of_kind(kind), Value::Null).unwrap(), b"\x0a\x00");
        }
    }

    #[test]
    fn a_decimal_beyond_128_bits_has_all_its_digits() {
        let digits = "1234567890".repeat(6);
        let out = value(Type::decimal(65, 0), Value::Decimal(Decimal::parse(&digits).unwrap()));
        let shown: String = out[1..31].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((out[0], &shown[..], out[31]), (0, &digits[..], 0xc0));
    }

    #[test]
    fn a_long_string_has_a_long_length() {
        let out = row(Type::text(200, Collation::DEFAULT), Value::text("x".repeat(200))).unwrap();
        assert_eq!((&out[..3], out.len()), (&b"\x0a\xc9\x01"[..], 204));
    }

    #[test]
    fn a_value_of_another_kind_is_an_error() {
        for (ty, held) in [
            (Type::integer(), Value::text("7")),
            (Type::double(), Value::text("7")),
            (Type::decimal(2, 0), Value::Double(1.0)),
            (Type::of_kind(Kind::DateTime), Value::Int(1)),
            (Type::of_kind(Kind::Time), Value::Int(1)),
            (Type::of_kind(Kind::Set), Value::Int(1)),
            (Type::of_kind(Kind::Bit), Value::bytes([0; 9])),
        ] {
            assert_eq!(row(ty, held).unwrap_err().code, 1105);
        }
    }
}
