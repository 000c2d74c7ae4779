//! Writes replies in RESP2 or RESP3.

use crate::float;
use crate::number;

/// The end of the output buffer, and the protocol version to write.
pub struct Reply<'o> {
    pub out: &'o mut Vec<u8>,
    pub resp3: bool,
}

impl Reply<'_> {
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// Writes a status line.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Writes an error line, including its code. Line ends inside the text become spaces, as in Redis.
    pub fn error(&mut self, text: &str) {
        self.out.push(b'-');
        self.out.extend(text.bytes().map(|byte| if byte == b'\r' || byte == b'\n' { b' ' } else { byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    fn header(&mut self, kind: u8, count: usize) {
        self.out.push(kind);
        number::append_unsigned(self.out, count as u64);
        self.out.extend_from_slice(b"\r\n");
    }

    pub fn integer(&mut self, value: i64) {
        self.out.push(b':');
        number::append(self.out, value);
        self.out.extend_from_slice(b"\r\n");
    }

    pub fn flag(&mut self, value: bool) {
        self.integer(i64::from(value));
    }

    pub fn bulk(&mut self, bytes: &[u8]) {
        const AROUND_MAX: usize = 32;
        self.out.reserve(bytes.len() + AROUND_MAX);
        bulk_header(self.out, bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes text with its format, where the protocol version supports that.
    pub fn verbatim(&mut self, text: &[u8]) {
        if !self.resp3 {
            return self.bulk(text);
        }
        self.header(b'=', text.len() + 4);
        self.out.extend_from_slice(b"txt:");
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    pub fn null(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    pub fn null_array(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    pub fn array(&mut self, count: usize) {
        self.header(b'*', count);
    }

    /// Writes the header of a message that is not a reply. In RESP2 it is an array.
    pub fn push(&mut self, count: usize) {
        self.header(if self.resp3 { b'>' } else { b'*' }, count);
    }

    /// Writes the header of a map of `count` pairs. In RESP2 it is an array of twice as many elements.
    pub fn map(&mut self, count: usize) {
        if self.resp3 { self.header(b'%', count) } else { self.header(b'*', count * 2) }
    }

    pub fn set(&mut self, count: usize) {
        self.header(if self.resp3 { b'~' } else { b'*' }, count);
    }

    /// Writes a double, in RESP2 as a bulk string of its text.
    pub fn double(&mut self, value: f64) {
        let mut text = Vec::new();
        float::print(&mut text, value);
        self.number(&text);
    }

    /// Writes the text of a double, in RESP2 as a bulk string.
    pub fn number(&mut self, text: &[u8]) {
        if self.resp3 { self.line(b',', text) } else { self.bulk(text) }
    }
}

/// Writes the header of a bulk string.
#[inline]
pub fn bulk_header(out: &mut Vec<u8>, len: usize) {
    let digit = |number: usize| b'0' + number as u8;
    match len {
        0..10 => out.extend_from_slice(&[b'$', digit(len), b'\r', b'\n']),
        10..100 => out.extend_from_slice(&[b'$', digit(len / 10), digit(len % 10), b'\r', b'\n']),
        _ => {
            out.push(b'$');
            number::append_unsigned(out, len as u64);
            out.extend_from_slice(b"\r\n");
        }
    }
}
