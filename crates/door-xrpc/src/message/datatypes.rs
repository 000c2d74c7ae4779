//! Scalars and their containers: arguments of statements, literals and names in plans, values of capabilities.

use crate::message::DEPTH_MAX;
use crate::proto::{Fields, Malformed, Result, put_bytes, put_measured, put_number};

/// The numbers of the types that are also written.
pub const V_SINT: u64 = 1;
pub const V_UINT: u64 = 2;
pub const V_STRING: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    Int(i64),
    UInt(u64),
    Null,
    Octets(&'a [u8]),
    Double(f64),
    Float(f32),
    Bool(bool),
    /// The number of the collation, if the client sends one.
    String(&'a [u8], Option<u64>),
    /// The position of a plan's parameter.
    Placeholder(u32),
    Identifier(&'a [u8]),
    /// Text that becomes a part of the statement unchanged.
    Raw(&'a [u8]),
}

/// The fields of a scalar, before its type says which of them counts.
#[derive(Default)]
struct Parts<'a> {
    kind: Option<u64>,
    signed: i64,
    unsigned: u64,
    octets: Option<&'a [u8]>,
    double: f64,
    float: f32,
    bool: bool,
    string: Option<(&'a [u8], Option<u64>)>,
    position: u32,
    identifier: Option<&'a [u8]>,
}

impl<'a> Scalar<'a> {
    pub fn read(message: &'a [u8]) -> Result<Scalar<'a>> {
        let mut parts = Parts::default();
        for field in Fields::of(message) {
            let (number, value) = field?;
            match number {
                1 => parts.kind = Some(value.varint()?),
                2 => parts.signed = value.zigzag()?,
                3 => parts.unsigned = value.varint()?,
                5 => parts.octets = Some(string_parts(value.bytes()?)?.0),
                6 => parts.double = value.double()?,
                7 => parts.float = value.float()?,
                8 => parts.bool = value.bool()?,
                9 => parts.string = Some(string_parts(value.bytes()?)?),
                10 => parts.position = value.u32()?,
                11 | 21 => parts.identifier = Some(string_parts(value.bytes()?)?.0),
                _ => {}
            }
        }
        parts.scalar()
    }

    /// Returns a scalar as a string, which clients also use for names of tables and columns.
    pub fn name(self) -> Option<&'a [u8]> {
        match self {
            Scalar::String(name, _) | Scalar::Identifier(name) | Scalar::Octets(name) => Some(name),
            _ => None,
        }
    }
}

impl<'a> Parts<'a> {
    fn scalar(self) -> Result<Scalar<'a>> {
        let string = self.string.unwrap_or_default();
        Ok(match self.kind.ok_or(Malformed)? {
            V_SINT => Scalar::Int(self.signed),
            V_UINT => Scalar::UInt(self.unsigned),
            3 => Scalar::Null,
            4 => Scalar::Octets(self.octets.unwrap_or_default()),
            5 => Scalar::Double(self.double),
            6 => Scalar::Float(self.float),
            7 => Scalar::Bool(self.bool),
            V_STRING => Scalar::String(string.0, string.1),
            9 => Scalar::Placeholder(self.position),
            // Clients put the name of a plan's parameter where strings are.
            10 | 21 => Scalar::Identifier(self.identifier.unwrap_or(string.0)),
            11 => Scalar::Raw(string.0),
            _ => return Err(Malformed),
        })
    }
}

/// Reads Scalar.String or Scalar.Octets: bytes, and the number of a collation or of a content type.
fn string_parts(message: &[u8]) -> Result<(&[u8], Option<u64>)> {
    let (mut bytes, mut about) = (None, None);
    for field in Fields::of(message) {
        match field? {
            (1, value) => bytes = Some(value.bytes()?),
            (2, value) => about = Some(value.varint()?),
            _ => {}
        }
    }
    Ok((bytes.ok_or(Malformed)?, about))
}

#[derive(Clone, Debug, PartialEq)]
pub enum Any<'a> {
    Scalar(Scalar<'a>),
    Object(Vec<(&'a [u8], Any<'a>)>),
    Array(Vec<Any<'a>>),
}

impl<'a> Any<'a> {
    pub fn read(message: &'a [u8]) -> Result<Any<'a>> {
        Any::at_depth(message, 0)
    }

    fn at_depth(message: &'a [u8], depth: usize) -> Result<Any<'a>> {
        if depth == DEPTH_MAX {
            return Err(Malformed);
        }
        let (mut kind, mut scalar, mut object, mut array) = (None, None, None, None);
        for field in Fields::of(message) {
            match field? {
                (1, value) => kind = Some(value.varint()?),
                (2, value) => scalar = Some(Scalar::read(value.bytes()?)?),
                (3, value) => object = Some(members(value.bytes()?, depth + 1)?),
                (4, value) => array = Some(elements(value.bytes()?, depth + 1)?),
                _ => {}
            }
        }
        match kind {
            Some(1) => scalar.map(Any::Scalar).ok_or(Malformed),
            Some(2) => object.map(Any::Object).ok_or(Malformed),
            Some(3) => array.map(Any::Array).ok_or(Malformed),
            _ => Err(Malformed),
        }
    }
}

fn members(message: &[u8], depth: usize) -> Result<Vec<(&[u8], Any<'_>)>> {
    let mut all = Vec::new();
    for field in Fields::of(message) {
        let (1, value) = field? else { continue };
        let (mut key, mut held) = (None, None);
        for field in Fields::of(value.bytes()?) {
            match field? {
                (1, value) => key = Some(value.bytes()?),
                (2, value) => held = Some(Any::at_depth(value.bytes()?, depth)?),
                _ => {}
            }
        }
        all.push((key.ok_or(Malformed)?, held.ok_or(Malformed)?));
    }
    Ok(all)
}

fn elements(message: &[u8], depth: usize) -> Result<Vec<Any<'_>>> {
    let mut all = Vec::new();
    for field in Fields::of(message) {
        if let (1, value) = field? {
            all.push(Any::at_depth(value.bytes()?, depth)?);
        }
    }
    Ok(all)
}

/// The fields of a scalar that is an unsigned number.
pub fn put_uint_scalar(out: &mut Vec<u8>, number: u64) {
    put_number(out, 1, V_UINT);
    put_number(out, 3, number);
}

/// The fields of a scalar that is a string.
pub fn put_string_scalar(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, 1, V_STRING);
    put_measured(out, 9, |out| put_bytes(out, 1, text));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(bytes: &[u8]) -> Result<Scalar<'_>> {
        Scalar::read(bytes)
    }

    #[test]
    fn each_type_is_read_from_its_own_field() {
        for (bytes, value) in [
            (&b"\x08\x01\x10\x0e"[..], Scalar::Int(7)),
            (b"\x08\x01\x10\x0d", Scalar::Int(-7)),
            (b"\x08\x02\x18\x07", Scalar::UInt(7)),
            (b"\x08\x03", Scalar::Null),
            (b"\x08\x04\x2a\x04\x0a\x02\x00\xff", Scalar::Octets(&[0, 255])),
            (b"\x08\x05\x31\x00\x00\x00\x00\x00\x00\xf8\x3f", Scalar::Double(1.5)),
            (b"\x08\x06\x3d\x00\x00\xc0\x3f", Scalar::Float(1.5)),
            (b"\x08\x07\x40\x01", Scalar::Bool(true)),
            (b"\x08\x08\x4a\x05\x0a\x01a\x10\x2d", Scalar::String(b"a", Some(45))),
            (b"\x08\x08\x4a\x03\x0a\x01a", Scalar::String(b"a", None)),
            (b"\x08\x09\x50\x03", Scalar::Placeholder(3)),
            (b"\x08\x0a\x5a\x03\x0a\x01t", Scalar::Identifier(b"t")),
            (b"\x08\x0b\x4a\x05\x0a\x031,2", Scalar::Raw(b"1,2")),
            // Only the type is present: protobuf's default value.
            (b"\x08\x01", Scalar::Int(0)),
            (b"\x08\x08", Scalar::String(b"", None)),
        ] {
            assert_eq!(scalar(bytes), Ok(value), "{bytes:x?}");
        }
    }

    #[test]
    fn an_identifier_may_stand_where_strings_do() {
        assert_eq!(scalar(b"\x08\x0a\x4a\x05\x0a\x01t\x10\x2d"), Ok(Scalar::Identifier(b"t")));
        assert_eq!(scalar(b"\x08\x15\xaa\x01\x03\x0a\x01t"), Ok(Scalar::Identifier(b"t")));
    }

    #[test]
    fn a_scalar_without_type_or_of_an_unknown_one_is_malformed() {
        for bad in [&b""[..], b"\x10\x0e", b"\x08\x0c", b"\x08\x08\x4a\x02\x10\x2d", b"\x08\x08\x48\x01"] {
            assert_eq!(scalar(bad), Err(Malformed), "{bad:x?}");
        }
    }

    #[test]
    fn objects_and_arrays_hold_others_but_not_without_end() {
        let one = b"\x08\x01\x12\x04\x08\x01\x10\x0e";
        let array = [b"\x08\x03\x22\x0a\x0a\x08", &one[..]].concat();
        assert_eq!(Any::read(&array), Ok(Any::Array(vec![Any::Scalar(Scalar::Int(7))])));
        let object = [b"\x08\x02\x1a\x0f\x0a\x0d\x0a\x01k\x12\x08", &one[..]].concat();
        assert_eq!(Any::read(&object), Ok(Any::Object(vec![(b"k", Any::Scalar(Scalar::Int(7)))])));
        let mut deep = one.to_vec();
        for depth in 1..DEPTH_MAX + 2 {
            let read = Any::read(&deep).is_ok();
            assert_eq!(read, depth <= DEPTH_MAX, "{depth}");
            let mut outer = Vec::new();
            put_number(&mut outer, 1, 3);
            put_measured(&mut outer, 4, |out| put_bytes(out, 1, &deep));
            deep = outer;
        }
        for bad in [&b"\x08\x01"[..], b"\x08\x02", b"\x12\x04\x08\x01\x10\x0e", b"\x08\x02\x1a\x05\x0a\x03\x0a\x01k"] {
            assert_eq!(Any::read(bad), Err(Malformed), "{bad:x?}");
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let mut out = Vec::new();
        put_uint_scalar(&mut out, 9);
        assert_eq!(out, b"\x08\x02\x18\x09");
        out.clear();
        put_string_scalar(&mut out, b"Rows matched: 1");
        assert_eq!(scalar(&out), Ok(Scalar::String(b"Rows matched: 1", None)));
    }
}
