//! Values of results, and the encoding of each type in a row's field and in a chunk's column.
//!
//! The column's type alone determines how its bytes are read; the bytes do not repeat it.

use std::fmt;

use crate::error::Error;
use crate::message::ColumnMetaData;
use crate::proto::{cut_bytes, cut_varint, unzigzag};

/// How a column's values travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Sint,
    Uint,
    Double,
    Float,
    Bytes,
    Time,
    Datetime,
    Set,
    Enum,
    Bit,
    Decimal,
}

impl Kind {
    fn of(number: i32) -> Option<Kind> {
        Some(match number {
            1 => Kind::Sint,
            2 => Kind::Uint,
            5 => Kind::Double,
            6 => Kind::Float,
            7 => Kind::Bytes,
            10 => Kind::Time,
            12 => Kind::Datetime,
            15 => Kind::Set,
            16 => Kind::Enum,
            17 => Kind::Bit,
            18 => Kind::Decimal,
            _ => return None,
        })
    }
}

/// Metadata of a column. Names are empty where the request asked for none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    pub kind: Kind,
    /// MySQL's own number of the type.
    pub mysql_type: u32,
    pub name: String,
    pub original_name: String,
    pub table: String,
    pub original_table: String,
    pub schema: String,
    pub collation: u64,
    pub fractional_digits: u32,
    pub length: u32,
    /// 0x10 NOT NULL, 0x20 PRIMARY, 0x40 UNIQUE, 0x80 MULTIPLE, 0x100 AUTO_INCREMENT; 1 by type.
    pub flags: u32,
    /// 1 GEOMETRY, 2 JSON.
    pub content_type: u32,
}

const COLLATION_BINARY: u64 = 63;
const CONTENT_JSON: u32 = 2;
const MYSQL_DATE: u32 = 10;
const MYSQL_NEWDATE: u32 = 14;

impl Column {
    pub(crate) fn read(payload: &[u8]) -> Result<Column, Error> {
        let meta = <ColumnMetaData as prost::Message>::decode(payload)?;
        let kind = Kind::of(meta.kind).ok_or_else(|| Error::Protocol(format!("a column of type {}", meta.kind)))?;
        let name = |bytes: Option<Vec<u8>>| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        Ok(Column {
            kind,
            mysql_type: meta.original_type,
            name: name(meta.name),
            original_name: name(meta.original_name),
            table: name(meta.table),
            original_table: name(meta.original_table),
            schema: name(meta.schema),
            collation: meta.collation.unwrap_or_default(),
            fractional_digits: meta.fractional_digits.unwrap_or_default(),
            length: meta.length.unwrap_or_default(),
            flags: meta.flags.unwrap_or_default(),
            content_type: meta.content_type.unwrap_or_default(),
        })
    }

    fn is_date(&self) -> bool {
        matches!(self.mysql_type, MYSQL_DATE | MYSQL_NEWDATE)
    }

    /// A string, or bytes where the column is binary.
    fn string(&self, bytes: &[u8]) -> Value {
        if self.collation == COLLATION_BINARY && self.content_type != CONTENT_JSON {
            return Value::Bytes(bytes.to_vec());
        }
        match str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_string()),
            Err(_) => Value::Bytes(bytes.to_vec()),
        }
    }

    /// A row's field.
    pub fn field(&self, mut bytes: &[u8]) -> Result<Value, Error> {
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        let value = match self.kind {
            Kind::Sint => Value::Int(unzigzag(cut_varint(&mut bytes)?)),
            Kind::Uint | Kind::Bit => Value::Uint(cut_varint(&mut bytes)?),
            Kind::Double | Kind::Float => number(self.kind, &mut bytes)?,
            Kind::Bytes | Kind::Enum => return Ok(self.string(without_zero(bytes)?)),
            Kind::Decimal => return decimal(bytes),
            Kind::Set => return set(bytes),
            Kind::Datetime => {
                let mut parts = [0; 7];
                fill(&mut parts, &mut bytes)?;
                self.moment(parts)
            }
            Kind::Time => {
                let is_negative = cut_bytes(&mut bytes, 1)? != [0];
                let mut parts = [0; 4];
                fill(&mut parts, &mut bytes)?;
                Value::Time(Time::of(is_negative, parts))
            }
        };
        if bytes.is_empty() { Ok(value) } else { Err(odd("a field with more than a value")) }
    }

    fn moment(&self, [year, month, day, hour, minute, second, micros]: [u64; 7]) -> Value {
        let date = Date { year: year as u16, month: month as u8, day: day as u8 };
        if self.is_date() {
            return Value::Date(date);
        }
        let (hour, minute, second) = (hour as u8, minute as u8, second as u8);
        Value::DateTime(DateTime { date, hour, minute, second, micros: micros as u32 })
    }

    /// The next value of a chunk's column, which is not NULL.
    pub(crate) fn cut(&self, bytes: &mut &[u8]) -> Result<Value, Error> {
        if matches!(self.kind, Kind::Double | Kind::Float) {
            return number(self.kind, bytes);
        }
        let first = cut_varint(bytes)?;
        Ok(match self.kind {
            Kind::Sint => Value::Int(unzigzag(first)),
            Kind::Uint | Kind::Bit => Value::Uint(first),
            Kind::Datetime => {
                let [micros, second, minute, hour] = clock(first);
                let hour = hour & 31;
                let day = first >> 41;
                let month = day >> 5;
                self.moment([month / 13, month % 13, day & 31, hour, minute, second, micros])
            }
            Kind::Time => {
                let is_negative = first >> 63 == 1;
                let [micros, second, minute, hour] = clock(if is_negative { first.wrapping_neg() } else { first });
                Value::Time(Time::of(is_negative, [hour, minute, second, micros]))
            }
            Kind::Decimal => decimal(cut_bytes(bytes, first)?)?,
            Kind::Set => match cut_bytes(bytes, first)? {
                // No member: written otherwise than in a row.
                [0] => Value::Set(Vec::new()),
                members => set(members)?,
            },
            _ => self.string(without_zero(cut_bytes(bytes, first)?)?),
        })
    }
}

/// Microseconds, seconds, minutes and hours of MySQL's packed number; what is above the hours is still in them.
fn clock(packed: u64) -> [u64; 4] {
    let time = packed >> 24;
    [packed & 0xff_ffff, time & 63, time >> 6 & 63, time >> 12 & 0x3ff]
}

fn odd(what: &str) -> Error {
    Error::Protocol(what.into())
}

fn without_zero(bytes: &[u8]) -> Result<&[u8], Error> {
    bytes.strip_suffix(&[0]).ok_or_else(|| odd("a string without its last zero"))
}

fn number(kind: Kind, bytes: &mut &[u8]) -> Result<Value, Error> {
    let short = |_| odd("half a number");
    if kind == Kind::Float {
        return Ok(Value::Float(f32::from_le_bytes(cut_bytes(bytes, 4)?.try_into().map_err(short)?)));
    }
    Ok(Value::Double(f64::from_le_bytes(cut_bytes(bytes, 8)?.try_into().map_err(short)?)))
}

/// Numbers until the bytes end; parts at the end that are zero are left out.
fn fill(parts: &mut [u64], bytes: &mut &[u8]) -> Result<(), Error> {
    for part in parts {
        if !bytes.is_empty() {
            *part = cut_varint(bytes)?;
        }
    }
    Ok(())
}

/// The scale, digits two in a byte, a sign.
fn decimal(bytes: &[u8]) -> Result<Value, Error> {
    let (scale, packed) = bytes.split_first().ok_or_else(|| odd("a decimal without a scale"))?;
    let mut digits = String::new();
    let mut sign = None;
    for nibble in packed.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
        match nibble {
            0..=9 if sign.is_none() => digits.push(char::from(b'0' + nibble)),
            0xc | 0xd if sign.is_none() => sign = Some(nibble),
            0 => {}
            _ => return Err(odd("a decimal with a wrong digit")),
        }
    }
    let sign = sign.ok_or_else(|| odd("a decimal without a sign"))?;
    let scale = usize::from(*scale);
    let whole = digits.trim_start_matches('0');
    let mut text = if sign == 0xd { "-".to_string() } else { String::new() };
    let padded = format!("{whole:0>width$}", width = scale + 1);
    let (before, after) = padded.split_at(padded.len() - scale);
    text += before;
    if scale > 0 {
        text.push('.');
        text += after;
    }
    Ok(Value::Decimal(text))
}

/// Decodes a set: each member after its length. The single byte 1 is the empty set, the single byte 0 a set of one empty member.
fn set(mut bytes: &[u8]) -> Result<Value, Error> {
    let mut members = Vec::new();
    if bytes != [1] {
        while !bytes.is_empty() {
            let length = cut_varint(&mut bytes)?;
            members.push(String::from_utf8_lossy(cut_bytes(&mut bytes, length)?).into_owned());
        }
    }
    Ok(Value::Set(members))
}

/// A value of a row.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Null,
    Int(i64),
    /// Of unsigned columns, YEAR and BIT.
    Uint(u64),
    Double(f64),
    Float(f32),
    /// All digits of its scale, as `-12.3401`.
    Decimal(String),
    Text(String),
    /// Of binary columns.
    Bytes(Vec<u8>),
    Date(Date),
    DateTime(DateTime),
    Time(Time),
    Set(Vec<String>),
}

/// A day; MySQL's zero dates have zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

/// A moment of a day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DateTime {
    pub date: Date,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub micros: u32,
}

/// A span of up to 838 hours, forwards or backwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Time {
    pub is_negative: bool,
    pub hours: u16,
    pub minutes: u8,
    pub seconds: u8,
    pub micros: u32,
}

impl Time {
    fn of(is_negative: bool, [hours, minutes, seconds, micros]: [u64; 4]) -> Time {
        let (minutes, seconds) = (minutes as u8, seconds as u8);
        Time { is_negative, hours: hours as u16, minutes, seconds, micros: micros as u32 }
    }
}

impl Value {
    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }

    /// An integer of either sign that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Uint(number) => i64::try_from(*number).ok(),
            _ => None,
        }
    }

    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Uint(number) => Some(*number),
            Value::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Any number; of decimals the nearest.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Double(number) => Some(*number),
            Value::Float(number) => Some(f64::from(*number)),
            Value::Int(number) => Some(*number as f64),
            Value::Uint(number) => Some(*number as f64),
            Value::Decimal(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The text of strings, enums, JSON and decimals.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) | Value::Decimal(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            Value::Text(text) => Some(text.as_bytes()),
            _ => None,
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

fn fraction(f: &mut fmt::Formatter<'_>, micros: u32) -> fmt::Result {
    if micros == 0 { Ok(()) } else { write!(f, ".{micros:06}") }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02}:{:02}:{:02}", self.date, self.hour, self.minute, self.second)?;
        fraction(f, self.micros)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        write!(f, "{sign}{:02}:{:02}:{:02}", self.hours, self.minutes, self.seconds)?;
        fraction(f, self.micros)
    }
}

/// As MySQL's text protocol has it, but for fractions of a second: without zeros if there are none, with six digits if there are.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Int(number) => number.fmt(f),
            Value::Uint(number) => number.fmt(f),
            Value::Double(number) => number.fmt(f),
            Value::Float(number) => number.fmt(f),
            Value::Decimal(text) | Value::Text(text) => f.write_str(text),
            Value::Bytes(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Value::Date(date) => date.fmt(f),
            Value::DateTime(moment) => moment.fmt(f),
            Value::Time(time) => time.fmt(f),
            Value::Set(members) => f.write_str(&members.join(",")),
        }
    }
}
