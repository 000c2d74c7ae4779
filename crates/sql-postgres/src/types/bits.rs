//! bit and bit varying.
//!
//! The bytes of a value order as PostgreSQL orders bit strings: by their bytes, then by their length. They are groups of 8 bytes, the last one with zeros at its end, each followed by a count: the bits of the
//! group, or one more than it has if another group follows.

use crate::error::{PgError, Result, state};
use crate::types::io;
use crate::types::oid::{self, Oid};
use crate::value::Value;

/// The most bits of a value.
pub const BITS_MAX: usize = i32::MAX as usize - 7;
const GROUP: usize = 8;
/// The count of a group that is not the last.
const MORE: u8 = 65;

/// A bit string, from the highest bit of the first byte on. Bits behind its end are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    pub length: usize,
    pub bytes: Vec<u8>,
}

impl Bits {
    /// Returns bits from bytes, of which those behind the length do not count.
    pub fn new(length: usize, mut bytes: Vec<u8>) -> Bits {
        bytes.resize(length.div_ceil(8), 0);
        if let (Some(last), 1..) = (bytes.last_mut(), length % 8) {
            *last &= !(0xff >> (length % 8));
        }
        Bits { length, bytes }
    }

    pub fn zeros(length: usize) -> Bits {
        Bits { length, bytes: vec![0; length.div_ceil(8)] }
    }

    pub fn get(&self, at: usize) -> bool {
        self.bytes[at / 8] & 0x80 >> (at % 8) != 0
    }

    pub fn set(&mut self, at: usize, bit: bool) {
        let mask = 0x80 >> (at % 8);
        match bit {
            true => self.bytes[at / 8] |= mask,
            false => self.bytes[at / 8] &= !mask,
        }
    }

    /// Returns the 8 bits from a place on; those behind the end are zero.
    pub fn byte_at(&self, at: usize) -> u8 {
        let byte = |at: usize| u16::from(self.bytes.get(at).copied().unwrap_or(0));
        ((byte(at / 8) << 8 | byte(at / 8 + 1)) >> (8 - at % 8)) as u8
    }

    /// Returns the bits of a range that ends within the string.
    pub fn part(&self, start: usize, end: usize) -> Bits {
        let length = end.saturating_sub(start);
        Bits::new(length, (0..length.div_ceil(8)).map(|at| self.byte_at(start + 8 * at)).collect())
    }

    /// Appends bits. The sum of the lengths is a length.
    pub fn append(&mut self, other: &Bits) {
        let shift = self.length % 8;
        for byte in &other.bytes {
            match self.bytes.last_mut().filter(|_| shift > 0) {
                None => self.bytes.push(*byte),
                Some(last) => {
                    *last |= byte >> shift;
                    self.bytes.push(byte << (8 - shift));
                }
            }
        }
        self.length += other.length;
        self.bytes.truncate(self.length.div_ceil(8));
    }

    pub fn to_value(&self) -> Value {
        let mut out = Vec::with_capacity(self.bytes.len().div_ceil(GROUP) * (GROUP + 1));
        let mut left = self.length;
        for group in self.bytes.chunks(GROUP) {
            out.extend_from_slice(group);
            out.resize(out.len() + GROUP - group.len(), 0);
            out.push(if left > 8 * GROUP { MORE } else { left as u8 });
            left = left.saturating_sub(8 * GROUP);
        }
        Value::from_bytes(out)
    }

    /// Returns the bits in the bytes of a value; `None` for others.
    pub fn of_bytes(bytes: &[u8]) -> Option<Bits> {
        let (groups, rest) = bytes.as_chunks::<{ GROUP + 1 }>();
        let mut out = Vec::with_capacity(groups.len() * GROUP);
        let mut length = 0;
        for (at, group) in groups.iter().enumerate() {
            let (count, bytes) = group.split_last()?;
            match *count {
                MORE if at + 1 < groups.len() => length += 8 * GROUP,
                bits @ 1..MORE if at + 1 == groups.len() => length += usize::from(bits),
                _ => return None,
            }
            out.extend_from_slice(bytes);
        }
        rest.is_empty().then(|| Bits::new(length, out))
    }
}

#[cold]
pub fn too_long() -> PgError {
    let text = format!("bit string length exceeds the maximum allowed ({BITS_MAX})");
    PgError::new(state::PROGRAM_LIMIT_EXCEEDED, text)
}

/// Reads the digits of `B'..'` or `X'..'`, perhaps behind their letter.
pub fn input(text: &str, ty: Oid, typmod: i32) -> Result<Value> {
    let (is_hex, digits) = match text.as_bytes().first() {
        Some(b'b' | b'B') => (false, &text[1..]),
        Some(b'x' | b'X') => (true, &text[1..]),
        _ => (false, text),
    };
    let width = if is_hex { 4 } else { 1 };
    if digits.len() > BITS_MAX / width {
        return Err(too_long());
    }
    check_length(digits.len() * width, ty, typmod)?;
    of_digits(digits, is_hex).map(|bits| bits.to_value())
}

/// Returns the bits of binary or hexadecimal digits.
pub fn of_digits(digits: &str, is_hex: bool) -> Result<Bits> {
    let (width, name) = if is_hex { (4, "hexadecimal") } else { (1, "binary") };
    let mut bits = Bits::zeros(digits.len() * width);
    for (at, letter) in digits.chars().enumerate() {
        let digit = letter.to_digit(1 << width).ok_or_else(|| {
            let text = format!("\"{letter}\" is not a valid {name} digit");
            PgError::new(state::INVALID_TEXT_REPRESENTATION, text)
        })?;
        let first = at * width;
        bits.bytes[first / 8] |= (digit as u8) << (8 - width - first % 8);
    }
    Ok(bits)
}

/// Refuses a length that is not that of the type's modifier, or of bit varying, more.
fn check_length(length: usize, ty: Oid, typmod: i32) -> Result<()> {
    match usize::try_from(typmod) {
        Ok(wanted @ 1..) if ty == oid::BIT && length != wanted => Err(PgError::new(
            state::STRING_DATA_LENGTH_MISMATCH,
            format!("bit string length {length} does not match type bit({wanted})"),
        )),
        Ok(most @ 1..) if ty == oid::VARBIT && length > most => Err(PgError::new(
            state::STRING_DATA_RIGHT_TRUNCATION,
            format!("bit string too long for type bit varying({most})"),
        )),
        _ => Ok(()),
    }
}

/// Brings a value to the length of its type's modifier; cuts it, or pads it with zeros, where the cast is explicit.
pub fn with_typmod(value: &[u8], ty: Oid, typmod: i32, is_explicit: bool) -> Result<Value> {
    let mut bits = Bits::of_bytes(value).ok_or_else(corrupt)?;
    match usize::try_from(typmod) {
        Ok(wanted @ 1..=BITS_MAX) if is_explicit => {
            if ty == oid::BIT || wanted < bits.length {
                bits = Bits::new(wanted, bits.bytes);
            }
        }
        _ => check_length(bits.length, ty, typmod)?,
    }
    Ok(bits.to_value())
}

#[cold]
pub fn corrupt() -> PgError {
    PgError::new(state::DATA_CORRUPTED, "bytes that are no bit string")
}

pub fn output(bits: &Bits, out: &mut Vec<u8>) {
    out.extend((0..bits.length).map(|at| if bits.get(at) { b'1' } else { b'0' }));
}

pub fn receive(bytes: &[u8], ty: Oid, typmod: i32) -> Result<Value> {
    let (length, rest) = bytes.split_at_checked(4).ok_or_else(short)?;
    let length = i32::from_be_bytes(io::fixed(length)?);
    let Some(length) = usize::try_from(length).ok().filter(|length| *length <= BITS_MAX) else {
        return Err(PgError::new(state::INVALID_BINARY_REPRESENTATION, "invalid length in external bit string"));
    };
    check_length(length, ty, typmod)?;
    match rest.len().cmp(&length.div_ceil(8)) {
        std::cmp::Ordering::Less => Err(short()),
        std::cmp::Ordering::Equal => Ok(Bits::new(length, rest.to_vec()).to_value()),
        std::cmp::Ordering::Greater => {
            Err(PgError::new(state::INVALID_BINARY_REPRESENTATION, "incorrect binary data format"))
        }
    }
}

#[cold]
fn short() -> PgError {
    PgError::new(state::PROTOCOL_VIOLATION, "insufficient data left in message")
}

pub fn send(bits: &Bits, out: &mut Vec<u8>) {
    out.extend_from_slice(&(bits.length as i32).to_be_bytes());
    out.extend_from_slice(&bits.bytes);
}
