//! The reader of a message's body. Every function fails with the error that PostgreSQL has for bytes that are missing or malformed.

use std::ffi::CStr;

use sql_postgres::error::{PgError, Result};

use crate::errors;

/// The unread bytes of a body.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(errors::insufficient_data)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn byte(&mut self) -> Result<u8> {
        let (byte, rest) = self.0.split_first().ok_or_else(|| errors::protocol("no data left in message"))?;
        self.0 = rest;
        Ok(*byte)
    }

    pub fn u16(&mut self) -> Result<u16> {
        let bytes = self.bytes(2)?;
        Ok(u16::from_be_bytes(bytes.try_into().expect("two bytes")))
    }

    pub fn u32(&mut self) -> Result<u32> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_be_bytes(bytes.try_into().expect("four bytes")))
    }

    pub fn i32(&mut self) -> Result<i32> {
        Ok(self.u32()? as i32)
    }

    /// Reads the bytes up to a zero byte, and the zero byte.
    pub fn c_string(&mut self) -> Result<&'a [u8]> {
        // Most names are empty.
        if let [0, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(&[]);
        }
        let text = CStr::from_bytes_until_nul(self.0).map_err(|_| errors::protocol("invalid string in message"))?;
        self.0 = &self.0[text.count_bytes() + 1..];
        Ok(text.to_bytes())
    }

    /// Reads a zero-terminated text in UTF-8.
    pub fn text(&mut self) -> Result<&'a str> {
        decode(self.c_string()?)
    }

    pub fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(errors::protocol("invalid message format")) }
    }
}

/// Decodes text of the client.
pub fn decode(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| not_text(&bytes[error.valid_up_to()..]))
}

/// Returns PostgreSQL's error for bytes that begin with an invalid sequence; it shows as many of them as their first one announces.
fn not_text(bytes: &[u8]) -> PgError {
    let announced = match bytes.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    let shown = bytes.iter().take(announced).map(|byte| format!("0x{byte:02x}")).collect::<Vec<_>>().join(" ");
    PgError::new("22021", format!("invalid byte sequence for encoding \"UTF8\": {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_to_its_end_and_not_beyond() {
        let mut reader = Reader(b"ann\0\x00\x02\xff\xff\xff\xffx");
        assert_eq!(reader.text().unwrap(), "ann");
        assert_eq!((reader.u16().unwrap(), reader.i32().unwrap()), (2, -1));
        assert_eq!(reader.end().unwrap_err().message, "invalid message format");
        assert_eq!(reader.u16().unwrap_err().message, "insufficient data left in message");
        assert_eq!(reader.c_string().unwrap_err().message, "invalid string in message");
        assert_eq!(reader.byte().unwrap(), b'x');
        assert_eq!(reader.byte().unwrap_err().message, "no data left in message");
        assert!(reader.end().is_ok());
    }

    #[test]
    fn invalid_text_is_shown_as_postgresql_shows_it() {
        for (bytes, shown) in [(&b"a\xff"[..], "0xff"), (b"\xe4b", "0xe4 0x62"), (b"\xf0\x9f", "0xf0 0x9f")] {
            let error = decode(bytes).unwrap_err();
            assert_eq!(error.message, format!("invalid byte sequence for encoding \"UTF8\": {shown}"));
        }
    }
}
