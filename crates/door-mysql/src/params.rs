//! Decodes the parameters of COM_STMT_EXECUTE and the query attributes of statements.

use std::sync::Arc;

use sql_mysql::charset::decode;
use sql_mysql::mysql_column::code as kind;
use sql_mysql::types::Charset;
use sql_mysql::value::{Bytes, Date, DateTime, Decimal, Time, Value};

use crate::wire::Reader;

/// The type of a parameter, and whether it is unsigned. An attribute also has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    kind: u8,
    unsigned: bool,
    name: String,
}

/// The name and value of a query attribute.
pub type Attribute = (String, Value);

/// The limit of parameters and attributes of a statement.
const COUNT_MAX: u64 = 65_535;

/// The reader, and the buffer that it reads from if values may share it.
pub type Source<'r, 'p> = (&'r mut Reader<'p>, Option<&'r Arc<Vec<u8>>>);

/// Reads the values behind the statement's id, flags and iteration count. `long` holds parameters that arrived through COM_STMT_SEND_LONG_DATA; `bound` the
/// types, which a client sends once and may then omit. Returns `None` for a malformed payload or an unknown type.
pub fn read(
    source: Source<'_, '_>,
    bound: &mut Vec<Bound>,
    long: &mut [Option<Vec<u8>>],
    charset: Charset,
) -> Option<Vec<Value>> {
    all(source, (long.len(), false), bound, long, charset)
}

/// Reads values with names, as clients with CLIENT_QUERY_ATTRIBUTES send them: their number comes first, and those behind the statement's own parameters are
/// attributes.
pub fn read_named(
    (reader, owner): Source<'_, '_>,
    bound: &mut Vec<Bound>,
    long: &mut [Option<Vec<u8>>],
    charset: Charset,
) -> Option<(Vec<Value>, Vec<Attribute>)> {
    let count = reader.length().filter(|count| *count <= COUNT_MAX)? as usize;
    if count < long.len() {
        return None;
    }
    let mut values = all((reader, owner), (count, true), bound, long, charset)?;
    let behind = values.split_off(long.len());
    let names = bound[long.len().min(bound.len())..].iter().map(|bound| bound.name.clone());
    Some((values, names.zip(behind).collect()))
}

/// Reads the query attributes before the text of COM_QUERY.
pub fn read_attributes(reader: &mut Reader<'_>, charset: Charset) -> Option<Vec<Attribute>> {
    let count = reader.length().filter(|count| *count <= COUNT_MAX)? as usize;
    // The protocol has a count of parameter sets, which is always one.
    if reader.length()? != 1 {
        return None;
    }
    let mut bound = Vec::new();
    let values = all((reader, None), (count, true), &mut bound, &mut [], charset)?;
    Some(bound.into_iter().map(|bound| bound.name).zip(values).collect())
}

fn all(
    (reader, owner): Source<'_, '_>,
    (count, named): (usize, bool),
    bound: &mut Vec<Bound>,
    long: &mut [Option<Vec<u8>>],
    charset: Charset,
) -> Option<Vec<Value>> {
    if count == 0 {
        return Some(Vec::new());
    }
    let nulls = reader.bytes(count.div_ceil(8))?;
    if reader.u8()? == 1 {
        let mut kinds = Vec::with_capacity(count);
        for _ in 0..count {
            let (kind, unsigned) = (reader.u8()?, reader.u8()? & 0x80 != 0);
            let name = if named { decode(reader.measured()?, charset)?.into_owned() } else { String::new() };
            kinds.push(Bound { kind, unsigned, name });
        }
        *bound = kinds;
    }
    if bound.len() != count {
        return None;
    }
    let mut values = Vec::with_capacity(count);
    for (at, bound) in bound.iter().enumerate() {
        let value = match long.get_mut(at).and_then(Option::take) {
            Some(bytes) => {
                let bytes = Arc::new(bytes);
                string(&bytes, bound.kind, charset, Some(&bytes))
            }
            None if nulls[at / 8] & (1 << (at % 8)) != 0 => Value::Null,
            None => value((reader, owner), bound, charset)?,
        };
        values.push(value);
    }
    Some(values)
}

fn value((reader, owner): Source<'_, '_>, bound: &Bound, charset: Charset) -> Option<Value> {
    let (kind, unsigned) = (bound.kind, bound.unsigned);
    let integer = |signed: i64, bits: u64| if unsigned { Value::UInt(bits) } else { Value::Int(signed) };
    Some(match kind {
        kind::NULL => Value::Null,
        kind::TINY | kind::BOOL => reader.u8().map(|bits| integer(i64::from(bits as i8), bits.into()))?,
        kind::SHORT | kind::YEAR => reader.u16().map(|bits| integer(i64::from(bits as i16), bits.into()))?,
        kind::LONG | kind::INT24 => reader.u32().map(|bits| integer(i64::from(bits as i32), bits.into()))?,
        kind::LONGLONG => reader.u64().map(|bits| integer(bits as i64, bits))?,
        kind::FLOAT => Value::Float(f32::from_le_bytes(reader.array()?)),
        kind::DOUBLE => Value::Double(f64::from_le_bytes(reader.array()?)),
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => moment(reader, kind)?,
        kind::TIME => time(reader)?,
        _ => {
            return string_kind(kind)
                .then(|| reader.measured())
                .flatten()
                .map(|bytes| string(bytes, kind, charset, owner));
        }
    })
}

fn string_kind(kind: u8) -> bool {
    matches!(
        kind,
        kind::DECIMAL
            | kind::NEWDECIMAL
            | kind::VARCHAR
            | kind::BIT
            | kind::JSON
            | kind::ENUM
            | kind::SET
            | kind::TINY_BLOB..=kind::STRING
    )
}

/// Decodes a string: text if it is valid in the client's character set, bytes otherwise. A BLOB parameter may be meant as text in MySQL, so the type alone does
/// not decide.
fn string(bytes: &[u8], kind: u8, charset: Charset, owner: Option<&Arc<Vec<u8>>>) -> Value {
    let is_blob = matches!(kind, kind::TINY_BLOB..=kind::BLOB | kind::BIT);
    let text = if is_blob { None } else { decode(bytes, charset) };
    match text {
        Some(text) if matches!(kind, kind::DECIMAL | kind::NEWDECIMAL) => {
            Decimal::parse(&text).map_or_else(|| Value::text(text), Value::Decimal)
        }
        Some(text) => Value::text(text),
        None => match owner {
            Some(owner) => Value::Bytes(Bytes::within(owner, bytes)),
            None => Value::bytes(bytes),
        },
    }
}

fn moment(reader: &mut Reader<'_>, kind: u8) -> Option<Value> {
    let length = reader.u8()?;
    if !matches!(length, 0 | 4 | 7 | 11) {
        return None;
    }
    let mut part =
        |from: u8, read: fn(&mut Reader<'_>) -> Option<u32>| if length > from { read(reader) } else { Some(0) };
    let byte = |reader: &mut Reader<'_>| reader.u8().map(u32::from);
    let year = part(0, |reader| reader.u16().map(u32::from))?;
    let (month, day) = (part(0, byte)?, part(0, byte)?);
    let (hour, minute, second) = (part(4, byte)?, part(4, byte)?, part(4, byte)?);
    let micros = part(7, |reader| reader.u32())?;
    if month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 || micros > 999_999 || year > 9999 {
        return None;
    }
    let date = Date::new(year as u16, month as u8, day as u8);
    let has_clock = length > 4;
    Some(if kind == kind::DATE && !has_clock {
        Value::Date(date)
    } else {
        Value::DateTime(DateTime::at(date, hour, minute, second, micros))
    })
}

fn time(reader: &mut Reader<'_>) -> Option<Value> {
    let length = reader.u8()?;
    if length == 0 {
        return Some(Value::Time(Time::default()));
    }
    if !matches!(length, 8 | 12) {
        return None;
    }
    let negative = reader.u8()? != 0;
    let (days, hours, minutes, seconds) = (reader.u32()?, reader.u8()?, reader.u8()?, reader.u8()?);
    let micros = if length == 12 { reader.u32()? } else { 0 };
    if hours > 23 || minutes > 59 || seconds > 59 || micros > 999_999 {
        return None;
    }
    // Longer times are beyond the range of TIME anyway.
    let whole =
        i64::from(days.min(100)) * 86_400 + i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds);
    let all = whole * 1_000_000 + i64::from(micros);
    Some(Value::Time(Time::from_micros(if negative { -all } else { all })))
}

#[cfg(test)]
mod tests {
    use stdx::prng::Prng;

    use super::*;

    fn read_all(bytes: &[u8], count: usize, bound: &mut Vec<Bound>) -> Option<Vec<Value>> {
        read((&mut Reader(bytes), None), bound, &mut vec![None; count], Charset::Utf8)
    }

    fn one(kind: u8, flags: u8, value: &[u8]) -> Option<Value> {
        let bytes = [&[0, 1, kind, flags][..], value].concat();
        read_all(&bytes, 1, &mut Vec::new()).and_then(|mut values| values.pop())
    }

    #[test]
    fn each_kind_is_read() {
        let decimal = Decimal::parse("1.50").unwrap();
        let date = Date::new(2026, 11, 21);
        for (kind, flags, bytes, value) in [
            (kind::TINY, 0, &[255][..], Value::Int(-1)),
            (kind::TINY, 0x80, &[255], Value::UInt(255)),
            (kind::SHORT, 0, &[0xfe, 0xff], Value::Int(-2)),
            (kind::LONG, 0x80, &[0, 0, 0, 0x80], Value::UInt(0x8000_0000)),
            (kind::LONGLONG, 0, &[255; 8], Value::Int(-1)),
            (kind::FLOAT, 0, &1.5f32.to_le_bytes(), Value::Float(1.5)),
            (kind::DOUBLE, 0, &1.5f64.to_le_bytes(), Value::Double(1.5)),
            (kind::VAR_STRING, 0, b"\x03abc", Value::text("abc")),
            (kind::STRING, 0, b"\x01\xff", Value::bytes([255])),
            (kind::BLOB, 0, b"\x03abc", Value::bytes(b"abc")),
            (kind::NEWDECIMAL, 0, b"\x041.50", Value::Decimal(decimal)),
            (kind::DATE, 0, &[4, 0xea, 7, 11, 21], Value::Date(date)),
            (kind::DATETIME, 0, &[4, 0xea, 7, 11, 21], Value::DateTime(date.into())),
            (kind::DATETIME, 0, &[0], Value::DateTime(DateTime::ZERO)),
            (
                kind::TIMESTAMP,
                0,
                &[11, 0xea, 7, 11, 21, 8, 5, 4, 1, 0, 0, 0],
                Value::DateTime(DateTime::at(date, 8, 5, 4, 1)),
            ),
            (kind::TIME, 0, &[8, 1, 1, 0, 0, 0, 1, 1, 1], Value::Time(Time::from_micros(-90_061_000_000))),
            (kind::NULL, 0, &[], Value::Null),
        ] {
            assert_eq!(one(kind, flags, bytes), Some(value), "kind {kind}");
        }
        for (kind, bytes) in [
            (kind::DATE, &[5, 1, 1, 1, 1, 1][..]),
            (kind::DATETIME, &[7, 0xea, 7, 13, 1, 0, 0, 0]),
            (kind::TIME, &[8, 0, 0, 0, 0, 0, 24, 0, 0]),
            (kind::LONG, &[1, 2]),
            (200, &[1, 2]),
        ] {
            assert_eq!(one(kind, 0, bytes), None, "kind {kind}");
        }
    }

    #[test]
    fn kinds_are_kept_for_the_executions_after() {
        let mut bound = Vec::new();
        let values = read_all(&[0b10, 1, kind::TINY, 0, kind::TINY, 0, 5], 2, &mut bound);
        assert_eq!(values, Some(vec![Value::Int(5), Value::Null]));
        assert_eq!(read_all(&[0, 0, 6, 7], 2, &mut bound), Some(vec![Value::Int(6), Value::Int(7)]));
        assert_eq!(read_all(&[0, 0, 6, 7], 2, &mut Vec::new()), None, "types were never sent");
    }

    #[test]
    fn what_came_in_pieces_is_used_once() {
        let mut long = vec![Some(b"pieces".to_vec()), None];
        let mut reader = Reader(&[0, 1, kind::STRING, 0, kind::TINY, 0, 9]);
        let values = read((&mut reader, None), &mut Vec::new(), &mut long, Charset::Utf8);
        assert_eq!(values, Some(vec![Value::text("pieces"), Value::Int(9)]));
        assert_eq!(long, [None, None]);
    }

    #[test]
    fn random_bytes_never_make_the_reader_stumble() {
        let mut random = Prng::new(20261121);
        for _ in 0..100_000 {
            let count = 1 + random.below(5) as usize;
            let mut bytes = vec![0; random.below(60) as usize];
            random.fill(&mut bytes);
            if random.chance(0.8) && bytes.len() > 1 + 2 * count {
                bytes[0] = 0;
                bytes[1] = 1;
                for at in 0..count {
                    bytes[2 + 2 * at] = [1, 2, 3, 4, 5, 7, 8, 10, 11, 12, 246, 253, 252][random.below(13) as usize];
                }
            }
            let _ = read_all(&bytes, count, &mut Vec::new());
        }
    }
}
