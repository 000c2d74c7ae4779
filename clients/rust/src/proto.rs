//! Protobuf for requests and rows: fields are appended without a structure, and read as slices of the received bytes.

use crate::error::Error;

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

pub fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub fn put_number(out: &mut Vec<u8>, field: u64, number: u64) {
    put_varint(out, field << 3 | VARINT);
    put_varint(out, number);
}

pub fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub fn put_message(out: &mut Vec<u8>, field: u64, message: &impl prost::Message) {
    put_varint(out, field << 3 | BYTES);
    put_varint(out, message.encoded_len() as u64);
    message.encode_raw(out);
}

pub fn cut_varint(bytes: &mut &[u8]) -> Result<u64, Error> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or_else(|| cut_short("a number"))?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            return Ok(number);
        }
    }
    Err(Error::Protocol("a number of more than 64 bits".into()))
}

pub fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

pub fn cut_bytes<'a>(bytes: &mut &'a [u8], count: u64) -> Result<&'a [u8], Error> {
    let count = usize::try_from(count).map_err(|_| cut_short("a value"))?;
    let (value, rest) = bytes.split_at_checked(count).ok_or_else(|| cut_short("a value"))?;
    *bytes = rest;
    Ok(value)
}

fn cut_short(what: &str) -> Error {
    Error::Protocol(format!("{what} is cut short"))
}

pub enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A fixed-length number: of no message that is read here.
    Other,
}

/// The next field of a message and its number; None at the end.
pub fn cut_field<'a>(bytes: &mut &'a [u8]) -> Result<Option<(u64, Field<'a>)>, Error> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let tag = cut_varint(bytes)?;
    let field = match tag & 7 {
        VARINT => Field::Number(cut_varint(bytes)?),
        BYTES => {
            let count = cut_varint(bytes)?;
            Field::Bytes(cut_bytes(bytes, count)?)
        }
        FIXED64 => cut_bytes(bytes, 8).map(|_| Field::Other)?,
        FIXED32 => cut_bytes(bytes, 4).map(|_| Field::Other)?,
        wire => return Err(Error::Protocol(format!("a field of wire type {wire}"))),
    };
    Ok(Some((tag >> 3, field)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            let mut rest = &out[..];
            assert_eq!((cut_varint(&mut rest).unwrap(), rest.len()), (number, 0));
        }
        assert_eq!([0, 1, 2, u64::MAX].map(unzigzag), [0, -1, 1, i64::MIN]);
        assert!(cut_varint(&mut &[0xff; 11][..]).is_err());
        assert!(cut_varint(&mut &[0x80][..]).is_err());
    }

    #[test]
    fn unknown_fields_are_passed_over_and_halves_are_errors() {
        let mut bytes = &[0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 1, 7][..];
        assert!(matches!(cut_field(&mut bytes), Ok(Some((1, Field::Other)))));
        assert!(matches!(cut_field(&mut bytes), Ok(Some((2, Field::Bytes(&[7]))))));
        assert!(matches!(cut_field(&mut bytes), Ok(None)));
        assert!(cut_field(&mut &[0x12, 5, 7][..]).is_err());
        assert!(cut_field(&mut &[0x0b][..]).is_err());
    }
}
