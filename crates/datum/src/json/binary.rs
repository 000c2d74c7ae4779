//! The binary form of a document, for rows: a tag, then the content. Lengths are four bytes, little-endian. `decode` checks every length and the depth, as
//! the bytes come from disk (DA-5).
//!
//! | tag | content |
//! |---|---|
//! | 0, 1, 2 | nothing: null, false, true |
//! | 3, 4, 5 | 8 bytes: signed, unsigned, double |
//! | 6, 7 | length, text: string, decimal |
//! | 8 | count, then each element |
//! | 9 | count, then of each member length and name, then its value |
//! | 10, 11 | 8 bytes: date as a number; time in microseconds |
//! | 12 | 16 bytes: date as a number, microseconds of the day |
//! | 13 | length, bytes |
//! | 14 | length, a decimal of more digits than `Decimal::parse` reads, as a row has it |

use super::{DEPTH_MAX, Json, Members, Node};
use crate::decimal::Decimal;
use crate::row::{decimal_of_bytes, put_decimal};
use crate::temporal::{Date, DateTime, MICROS_PER_DAY, Time};

impl Json {
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode(&self.0, out);
    }

    /// `None` for bytes that are not a document.
    pub fn decode(mut bytes: &[u8]) -> Option<Json> {
        let node = decode(&mut bytes, 0)?;
        bytes.is_empty().then(|| Json::from(node))
    }
}

/// The digits in all and behind the point that `Decimal::parse` keeps.
const PARSED_DIGITS: u32 = 65;
const PARSED_SCALE: u16 = 30;

fn counted(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn length(length: usize, out: &mut Vec<u8>) {
    let length = u32::try_from(length).expect("values are at most 1 GB");
    out.extend_from_slice(&length.to_le_bytes());
}

fn fixed(tag: u8, bytes: [u8; 8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&bytes);
}

fn encode(node: &Node, out: &mut Vec<u8>) {
    match node {
        Node::Null => out.push(0),
        Node::Bool(truth) => out.push(1 + u8::from(*truth)),
        Node::Int(number) => fixed(3, number.to_le_bytes(), out),
        Node::UInt(number) => fixed(4, number.to_le_bytes(), out),
        Node::Double(number) => fixed(5, number.to_le_bytes(), out),
        Node::String(text) => counted(6, text.as_bytes(), out),
        Node::Decimal(decimal) if decimal.digits() <= PARSED_DIGITS && decimal.scale() <= PARSED_SCALE => {
            counted(7, decimal.to_string().as_bytes(), out);
        }
        Node::Decimal(decimal) => {
            let mut bytes = Vec::new();
            put_decimal(decimal, &mut bytes);
            counted(14, &bytes, out);
        }
        Node::Array(elements) => {
            out.push(8);
            length(elements.len(), out);
            elements.iter().for_each(|element| encode(element, out));
        }
        Node::Object(members) => {
            out.push(9);
            length(members.len(), out);
            for (name, node) in members.iter() {
                length(name.len(), out);
                out.extend_from_slice(name.as_bytes());
                encode(node, out);
            }
        }
        Node::Date(date) => fixed(10, date.number().to_le_bytes(), out),
        Node::Time(time) => fixed(11, time.micros().to_le_bytes(), out),
        Node::DateTime(at) => {
            fixed(12, at.date.number().to_le_bytes(), out);
            out.extend_from_slice(&at.micros_of_day().to_le_bytes());
        }
        Node::Bytes(bytes) => counted(13, bytes, out),
    }
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

fn take_fixed(bytes: &mut &[u8]) -> Option<[u8; 8]> {
    take(bytes, 8)?.try_into().ok()
}

fn take_length(bytes: &mut &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?) as usize)
}

fn take_text<'b>(bytes: &mut &'b [u8]) -> Option<&'b str> {
    let count = take_length(bytes)?;
    std::str::from_utf8(take(bytes, count)?).ok()
}

fn date(number: i64) -> Option<Date> {
    let year = u16::try_from(number / 10_000).ok()?;
    Some(Date::new(year, (number / 100 % 100) as u8, (number % 100) as u8))
}

fn decode(bytes: &mut &[u8], depth: usize) -> Option<Node> {
    if depth > DEPTH_MAX {
        return None;
    }
    Some(match take(bytes, 1)?[0] {
        0 => Node::Null,
        1 => Node::Bool(false),
        2 => Node::Bool(true),
        3 => Node::Int(i64::from_le_bytes(take_fixed(bytes)?)),
        4 => Node::UInt(u64::from_le_bytes(take_fixed(bytes)?)),
        5 => Node::Double(f64::from_le_bytes(take_fixed(bytes)?)),
        6 => Node::String(take_text(bytes)?.into()),
        7 => Node::Decimal(Decimal::parse(take_text(bytes)?)?),
        8 => {
            let count = take_length(bytes)?;
            Node::Array((0..count).map(|_| decode(bytes, depth + 1)).collect::<Option<_>>()?)
        }
        9 => {
            let count = take_length(bytes)?;
            let member = |_| Some((Box::from(take_text(bytes)?), decode(bytes, depth + 1)?));
            Node::Object(Members::new((0..count).map(member).collect::<Option<_>>()?))
        }
        10 => Node::Date(date(i64::from_le_bytes(take_fixed(bytes)?))?),
        11 => Node::Time(Time::checked(i64::from_le_bytes(take_fixed(bytes)?))?),
        12 => {
            let date = date(i64::from_le_bytes(take_fixed(bytes)?))?;
            let micros = i64::from_le_bytes(take_fixed(bytes)?);
            (0..MICROS_PER_DAY).contains(&micros).then(|| Node::DateTime(DateTime::new(date, micros)))?
        }
        13 => {
            let count = take_length(bytes)?;
            Node::Bytes(take(bytes, count)?.into())
        }
        14 => {
            let count = take_length(bytes)?;
            Node::Decimal(decimal_of_bytes(take(bytes, count)?).ok()?)
        }
        _ => return None,
    })
}
