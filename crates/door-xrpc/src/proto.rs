//! The wire format of protobuf: fields are read in place, and written directly into the connection's buffer.
//!
//! The implementation is our own, because every request and every row passes through it. A library reads a message into a structure that owns copies of its
//! strings, and needs a whole row as such a structure before it writes one; here a string of a request is a slice of the received bytes, and a row is written
//! from the executor's batch.
//!
//! The bytes are untrusted: a message that is cut short, promises more than there is, or has another wire type than its field is `Malformed`, and that ends a
//! connection. Unknown fields are skipped (DX-3): newer clients have some.

/// The bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

pub type Result<T> = std::result::Result<T, Malformed>;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// Iterates over the fields of a message in their order: numbers and values.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields(message)
    }

    #[inline]
    fn field(&mut self) -> Result<(u32, Wire<'a>)> {
        let tag = take_varint(&mut self.0)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number)).ok_or(Malformed)?;
        let value = match tag & 7 {
            VARINT => Wire::Varint(take_varint(&mut self.0)?),
            FIXED64 => Wire::Fixed64(self.array()?),
            BYTES => {
                let length = usize::try_from(take_varint(&mut self.0)?).map_err(|_| Malformed)?;
                let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
                self.0 = rest;
                Wire::Bytes(bytes)
            }
            FIXED32 => Wire::Fixed32(self.array()?),
            // Groups: no message of this protocol has ever had one.
            _ => return Err(Malformed),
        };
        Ok((number, value))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            // The iterator ends at a field that cannot be read.
            self.0 = &[];
        }
        Some(field)
    }
}

/// Takes a varint off the front: seven bits a byte, the lowest first.
#[inline]
pub fn take_varint(bytes: &mut &[u8]) -> Result<u64> {
    // Tags and most lengths have one byte.
    if let [byte @ ..0x80, rest @ ..] = bytes {
        let number = u64::from(*byte);
        *bytes = rest;
        return Ok(number);
    }
    take_long_varint(bytes)
}

fn take_long_varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut number = 0u64;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        // The tenth byte has space for one bit.
        if at == 9 && *byte > 1 {
            return Err(Malformed);
        }
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            *bytes = &bytes[at + 1..];
            return Ok(number);
        }
    }
    Err(Malformed)
}

impl<'a> Wire<'a> {
    /// Returns the number of an int64, a uint64 or a narrower field, unchecked.
    #[inline]
    pub fn varint(self) -> Result<u64> {
        match self {
            Wire::Varint(number) => Ok(number),
            _ => Err(Malformed),
        }
    }

    /// Returns a uint32. The higher bits are dropped, as protobuf does.
    #[inline]
    pub fn u32(self) -> Result<u32> {
        self.varint().map(|number| number as u32)
    }

    /// Returns an int32: a negative one is written with 64 bits.
    #[inline]
    pub fn i32(self) -> Result<i32> {
        self.varint().map(|number| number as i32)
    }

    pub fn bool(self) -> Result<bool> {
        self.varint().map(|number| number != 0)
    }

    /// Returns a sint64.
    #[inline]
    pub fn zigzag(self) -> Result<i64> {
        self.varint().map(unzigzag)
    }

    /// Returns bytes, a string or a message.
    #[inline]
    pub fn bytes(self) -> Result<&'a [u8]> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed),
        }
    }

    pub fn double(self) -> Result<f64> {
        match self {
            Wire::Fixed64(bytes) => Ok(f64::from_le_bytes(bytes)),
            _ => Err(Malformed),
        }
    }

    pub fn float(self) -> Result<f32> {
        match self {
            Wire::Fixed32(bytes) => Ok(f32::from_le_bytes(bytes)),
            _ => Err(Malformed),
        }
    }
}

/// Maps small numbers of either sign to small numbers.
#[inline]
pub fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

#[inline]
pub fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a field with a number: uint64, bool, enum; sint64 after `zigzag`.
#[inline]
pub fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    put_varint(out, u64::from(field) << 3 | VARINT);
    put_varint(out, number);
}

/// Appends a field with bytes.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_varint(out, u64::from(field) << 3 | BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a field with the output of `write`: a nested message, or bytes whose number is not known before.
#[inline]
pub fn put_measured<R>(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    put_varint(out, u64::from(field) << 3 | BYTES);
    put_with_length(out, write)
}

/// Appends the output of `write` behind its length. Below 128 bytes, as of most values of rows, nothing is moved.
#[inline]
pub fn put_with_length<R>(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let at = out.len();
    out.push(0);
    let result = write(out);
    let length = out.len() - at - 1;
    if length < 0x80 {
        out[at] = length as u8;
    } else {
        widen(out, at, length);
    }
    result
}

/// The length needs more than the byte that was left for it.
#[cold]
fn widen(out: &mut Vec<u8>, at: usize, length: usize) {
    let mut bytes = Vec::with_capacity(10);
    put_varint(&mut bytes, length as u64);
    out.splice(at..=at, bytes);
}

#[cfg(test)]
mod tests;
