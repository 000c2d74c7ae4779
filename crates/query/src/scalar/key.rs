//! Bytes in the order of values: memcomparable keys of indexes, sorts and groups.
//!
//! K1: for a type, `encode(a) < encode(b)` as bytes exactly where `a` comes before `b`, and the bytes are equal exactly where the values are.
//! K2: no encoding is the beginning of another of the same type, so that parts may follow one another.
//! K3: of integers, YEAR, ENUM, SET, BIT, DATE, TIME, DATETIME and TIMESTAMP `decode` gives the very value (`is_kept`). Of other types what is equal need not be the same: a zero has a sign, a text its case.
//! A value begins with a byte: NULL comes first. Descending turns every bit over. Numbers of different variants (a key's value may be wider than its column) must not meet in one
//! key space: the type decides the form, not the value.
//!
//! | kind | after the first byte |
//! |---|---|
//! | integers, YEAR, ENUM, SET, BIT | 8 bytes, big-endian, the sign bit turned over where signed |
//! | DECIMAL | class, exponent, digits in pairs, end |
//! | FLOAT, DOUBLE | 8 bytes of the double, turned so that they order |
//! | strings | the collation's sort key |
//! | DATE | 4 bytes; TIME, DATETIME, TIMESTAMP: 8 bytes |
//! | JSON | rank of the kind, then the content |

use crate::batch::Cell;
use crate::scalar::convert;
use crate::scalar::decimal::Decimal;
use crate::scalar::json::{Json, Node};
use crate::scalar::temporal::{Date, DateTime, Time, Timestamp};
use crate::types::{Collation, Kind, Type};
use crate::value::Value;

const NULL: u8 = 0;
const SOME: u8 = 1;

/// Appends the key of a value in stored form.
pub fn encode(value: &Value, ty: &Type, descending: bool, out: &mut Vec<u8>) {
    let from = out.len();
    match value {
        Value::Null => out.push(NULL),
        value => {
            out.push(SOME);
            encode_some(value, ty, out);
        }
    }
    if descending {
        out[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The same of a row's cell.
pub fn encode_cell(cell: Cell<'_>, ty: &Type, descending: bool, out: &mut Vec<u8>) {
    let string = match cell {
        Cell::Text(text) if ty.is_string() => text.as_bytes(),
        Cell::Bytes(bytes) if ty.is_string() => bytes,
        Cell::Value(value) => return encode(value, ty, descending, out),
        other => return encode(&other.to_value(), ty, descending, out),
    };
    let from = out.len();
    out.push(SOME);
    ty.collation.sort_key(string, out);
    if descending {
        out[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The first eight bytes of a text's key as a number that compares like them, where they are known before the key is made. It is longer than that.
pub fn start_of_cell(cell: Cell<'_>, ty: &Type, descending: bool) -> Option<u64> {
    let string = match cell {
        Cell::Text(text) if ty.is_string() => text.as_bytes(),
        Cell::Bytes(bytes) if ty.is_string() => bytes,
        _ => return None,
    };
    let start = u64::from_be_bytes(ty.collation.sort_key_start(string)?);
    let start = (start >> 8) | (u64::from(SOME) << 56);
    Some(if descending { !start } else { start })
}

fn encode_some(value: &Value, ty: &Type, out: &mut Vec<u8>) {
    match ty.kind {
        kind if kind.is_integer() || matches!(kind, Kind::Year | Kind::Enum | Kind::Set | Kind::Bit) => {
            integer(value, ty.unsigned || !kind.is_integer(), out);
        }
        Kind::Float | Kind::Double => out.extend_from_slice(&double(number(value)).to_be_bytes()),
        Kind::Decimal => match value {
            Value::Decimal(decimal) => decimal_key(decimal, out),
            Value::Int(number) => decimal_key(&Decimal::from(*number), out),
            Value::UInt(number) => decimal_key(&Decimal::from(*number), out),
            other => decimal_key(&Decimal::from_f64(number(other)).unwrap_or(Decimal::ZERO), out),
        },
        Kind::Date | Kind::Time | Kind::DateTime | Kind::Timestamp => temporal(value, ty.kind, out),
        Kind::Json => json(Json::from_value(value).node(), out),
        _ => match value.as_string_bytes() {
            Some(text) => ty.collation.sort_key(text, out),
            None => ty.collation.sort_key(convert::to_text(value, ty).as_bytes(), out),
        },
    }
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Float(number) => f64::from(*number),
        Value::Double(number) => *number,
        Value::Decimal(decimal) => decimal.to_f64(),
        _ => 0.0,
    }
}

fn integer(value: &Value, unsigned: bool, out: &mut Vec<u8>) {
    let wide = match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        other => number(other) as i128,
    };
    let bits = match unsigned {
        true => wide.clamp(0, u64::MAX.into()) as u64,
        false => (wide.clamp(i64::MIN.into(), i64::MAX.into()) as i64 as u64) ^ (1 << 63),
    };
    out.extend_from_slice(&bits.to_be_bytes());
}

/// Negative doubles have all bits turned, others the sign only; both zeros are one.
fn double(number: f64) -> u64 {
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn decimal_key(decimal: &Decimal, out: &mut Vec<u8>) {
    let digits = match decimal.small() {
        Some(small) => small.unsigned_abs().to_string(),
        None => decimal.coefficient().magnitude().to_string(),
    };
    number_key(decimal.is_negative(), &digits, digits.len() as i32 - i32::from(decimal.scale()), out);
}

/// 0.d1d2d3... times 10^`exponent`: class (negative, zero, positive), exponent, the digits in pairs as 1 to 100, then 0. A negative number has all but its class turned over.
fn number_key(negative: bool, digits: &str, exponent: i32, out: &mut Vec<u8>) {
    let leading = digits.bytes().take_while(|digit| *digit == b'0').count();
    let digits = digits[leading..].trim_end_matches('0').as_bytes();
    if digits.is_empty() {
        out.push(1);
        return;
    }
    out.push(if negative { 0 } else { 2 });
    let from = out.len();
    let exponent = (exponent - leading as i32 + 0x4000) as u16;
    out.extend_from_slice(&exponent.to_be_bytes());
    for pair in digits.chunks(2) {
        let second = pair.get(1).map_or(0, |digit| digit - b'0');
        out.push((pair[0] - b'0') * 10 + second + 1);
    }
    out.push(0);
    if negative {
        out[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn date_bits(date: Date) -> u32 {
    u32::from(date.year) << 9 | u32::from(date.month) << 5 | u32::from(date.day)
}

fn datetime_bits(at: DateTime) -> u64 {
    // A day has less than 2^37 microseconds.
    u64::from(date_bits(at.date)) << 37 | at.micros_of_day() as u64
}

fn signed(number: i64) -> [u8; 8] {
    (number as u64 ^ 1 << 63).to_be_bytes()
}

fn temporal(value: &Value, kind: Kind, out: &mut Vec<u8>) {
    match (value, kind) {
        (Value::Date(date), Kind::Date) => out.extend_from_slice(&date_bits(*date).to_be_bytes()),
        (Value::DateTime(at), Kind::Date) => out.extend_from_slice(&date_bits(at.date).to_be_bytes()),
        (Value::Date(date), _) => out.extend_from_slice(&datetime_bits((*date).into()).to_be_bytes()),
        (Value::DateTime(at), _) => out.extend_from_slice(&datetime_bits(*at).to_be_bytes()),
        (Value::Time(time), _) => out.extend_from_slice(&signed(time.micros())),
        (Value::Timestamp(at), _) => out.extend_from_slice(&signed(at.0)),
        _ => out.extend_from_slice(&[0; 8]),
    }
}

fn json(node: &Node, out: &mut Vec<u8>) {
    out.push(node.rank());
    match node {
        Node::Null => {}
        Node::Bool(truth) => out.push(u8::from(*truth)),
        Node::Int(number) => decimal_key(&Decimal::from(*number), out),
        Node::UInt(number) => decimal_key(&Decimal::from(*number), out),
        Node::Decimal(decimal) => decimal_key(decimal, out),
        Node::Double(number) => {
            let shown = format!("{:e}", number.abs());
            let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
            let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
            number_key(*number < 0.0, &digits, exponent.parse::<i32>().unwrap_or(0) + 1, out);
        }
        Node::String(text) => Collation::Binary.sort_key(text.as_bytes(), out),
        Node::Array(elements) => {
            for element in elements {
                out.push(SOME);
                json(element, out);
            }
            out.push(NULL);
        }
        Node::Object(members) => {
            out.extend_from_slice(&(members.len() as u32).to_be_bytes());
            for (name, node) in members.iter() {
                Collation::Binary.sort_key(name.as_bytes(), out);
                json(node, out);
            }
        }
        Node::Date(date) => out.extend_from_slice(&date_bits(*date).to_be_bytes()),
        Node::Time(time) => out.extend_from_slice(&signed(time.micros())),
        Node::DateTime(at) => out.extend_from_slice(&datetime_bits(*at).to_be_bytes()),
        Node::Bytes(bytes) => Collation::Binary.sort_key(bytes, out),
    }
}

/// Is a value of the type kept by its key as it was?
pub fn is_kept(ty: &Type) -> bool {
    use Kind::{Bit, Date, DateTime, Enum, Set, Time, Timestamp, Year};
    ty.kind.is_integer() || matches!(ty.kind, Year | Enum | Set | Bit | Date | Time | DateTime | Timestamp)
}

/// The value back from its key, and how many bytes it took, where the key keeps it: numbers and times. `None` for strings and JSON, whose keys do not.
pub fn decode(key: &[u8], ty: &Type, descending: bool) -> Option<(Value, usize)> {
    let byte = |place: usize| key.get(place).map(|byte| if descending { !byte } else { *byte });
    if byte(0)? == NULL {
        return Some((Value::Null, 1));
    }
    let bits = |width: usize| (1..=width).try_fold(0, |bits: u64, at| Some(bits << 8 | u64::from(byte(at)?)));
    let word = || bits(8);
    Some(match ty.kind {
        kind if kind.is_integer() && !ty.unsigned => (Value::Int((word()? ^ 1 << 63) as i64), 9),
        kind if kind.is_integer() || matches!(kind, Kind::Year | Kind::Enum | Kind::Set | Kind::Bit) => {
            (Value::UInt(word()?), 9)
        }
        Kind::Double | Kind::Float => {
            let bits = word()?;
            let number = f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits });
            (if ty.kind == Kind::Float { Value::Float(number as f32) } else { Value::Double(number) }, 9)
        }
        Kind::Date => {
            let bits = bits(4)?;
            (Value::Date(date_of(bits as u32)), 5)
        }
        Kind::DateTime => {
            let bits = word()?;
            let micros = (bits & ((1 << 37) - 1)) as i64;
            (Value::DateTime(DateTime::new(date_of((bits >> 37) as u32), micros)), 9)
        }
        Kind::Time => (Value::Time(Time::checked((word()? ^ 1 << 63) as i64)?), 9),
        Kind::Timestamp => (Value::Timestamp(Timestamp((word()? ^ 1 << 63) as i64)), 9),
        _ => return None,
    })
}

/// How many bytes at the beginning of `key` are one value of the type. None: it is no such key, or of a kind that never stands in one.
pub fn length(key: &[u8], ty: &Type, descending: bool) -> Option<usize> {
    let byte = |place: usize| key.get(place).map(|byte| if descending { !byte } else { *byte });
    if byte(0)? == NULL {
        return Some(1);
    }
    match ty.kind {
        Kind::Date => Some(5),
        Kind::Decimal => {
            let class = byte(1)?;
            if class == 1 {
                return Some(2);
            }
            let end = if class == 0 { 0xFF } else { 0 };
            (4..key.len()).find(|at| byte(*at) == Some(end)).map(|at| at + 1)
        }
        Kind::Json => None,
        kind if kind.is_integer() || kind.is_number() => Some(9),
        Kind::Year | Kind::Enum | Kind::Set | Kind::Bit | Kind::Time | Kind::DateTime | Kind::Timestamp => Some(9),
        _ => ty.collation.sort_key_length(|at| byte(at + 1)).map(|length| length + 1),
    }
}

fn date_of(bits: u32) -> Date {
    Date::new((bits >> 9) as u16, (bits >> 5 & 15) as u8, (bits & 31) as u8)
}

#[cfg(test)]
mod tests;
