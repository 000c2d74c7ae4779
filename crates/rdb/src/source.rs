//! Reads numbers, lengths and strings of a dump, and counts bytes for errors.

use std::borrow::Cow;
use std::io::Read;

use crc::{CRC_64_REDIS, Crc, Digest, Table};

use crate::error::{Error, Result};
use crate::{STRING_MAX, lzf};

pub(crate) static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// Bytes that are asked for at once, whatever length the input claims.
const STEP: u64 = 1 << 20;

/// The input, and how much of it was read.
pub struct Source<R> {
    input: R,
    at: u64,
    /// The checksum of all bytes so far, if the input ends in one.
    digest: Option<Digest<'static, u64, Table<16>>>,
}

/// A length, or the form of a string that has none.
enum Length {
    Plain(u64),
    /// 0, 1, 2: an integer of 1, 2 or 4 bytes; 3: compressed.
    Special(u8),
}

impl<'b> Source<&'b [u8]> {
    /// Reads bytes in memory, whose checksum somebody else has seen to.
    pub fn of_bytes(bytes: &'b [u8]) -> Source<&'b [u8]> {
        Source { input: bytes, at: 0, digest: None }
    }

    pub fn is_at_end(&self) -> bool {
        self.input.is_empty()
    }
}

impl<R: Read> Source<R> {
    /// Reads a file and computes its checksum. The reader should be buffered.
    pub fn of_file(input: R) -> Source<R> {
        Source { input, at: 0, digest: Some(CRC.digest()) }
    }

    /// Returns the number of bytes read.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Returns an error about the bytes just read.
    pub(crate) fn bad(&self, rule: &'static str) -> Error {
        Error::Bad { at: self.at, rule }
    }

    pub(crate) fn unsupported(&self, what: &'static str, number: u8) -> Error {
        Error::Unsupported { at: self.at, what, number }
    }

    /// Returns the checksum of all bytes so far, as the number that Redis writes.
    pub(crate) fn checksum(&self) -> u64 {
        self.digest.as_ref().map_or(0, |digest| digest.clone().finalize())
    }

    /// Adds `count` bytes to `out`. An input that is shorter than it claims takes no more memory than it has bytes (RD-1).
    fn read_into(&mut self, out: &mut Vec<u8>, count: u64) -> Result<()> {
        let start = out.len();
        let mut left = count;
        while left > 0 {
            let step = left.min(STEP);
            let read = (&mut self.input).take(step).read_to_end(out).map_err(Error::Io)? as u64;
            self.at += read;
            if read < step {
                return Err(Error::Short { at: self.at });
            }
            left -= step;
        }
        if let Some(digest) = &mut self.digest {
            digest.update(&out[start..]);
        }
        Ok(())
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        match self.input.read_exact(&mut bytes) {
            Ok(()) => {
                self.at += N as u64;
                if let Some(digest) = &mut self.digest {
                    digest.update(&bytes);
                }
                Ok(bytes)
            }
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(Error::Short { at: self.at }),
            Err(error) => Err(Error::Io(error)),
        }
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn bytes(&mut self, count: u64) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.read_into(&mut out, count)?;
        Ok(out)
    }

    /// Reads a time in milliseconds.
    pub(crate) fn time(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn any_length(&mut self) -> Result<Length> {
        let first = self.byte()?;
        Ok(match first >> 6 {
            0 => Length::Plain(u64::from(first & 0x3f)),
            1 => Length::Plain(u64::from(first & 0x3f) << 8 | u64::from(self.byte()?)),
            2 if first == 0x80 => Length::Plain(u32::from_be_bytes(self.array()?).into()),
            2 if first == 0x81 => Length::Plain(u64::from_be_bytes(self.array()?)),
            2 => return Err(self.bad("a length of an unknown form")),
            _ => Length::Special(first & 0x3f),
        })
    }

    /// Reads a length or another number.
    pub(crate) fn length(&mut self) -> Result<u64> {
        match self.any_length()? {
            Length::Plain(length) => Ok(length),
            Length::Special(_) => Err(self.bad("a string where a number is expected")),
        }
    }

    /// Reads a string of any form, as the bytes that a client sees.
    pub fn string(&mut self) -> Result<Vec<u8>> {
        let integer = match self.any_length()? {
            Length::Plain(length) if length > STRING_MAX => return Err(self.bad("a string is longer than 512 MB")),
            Length::Plain(length) => return self.bytes(length),
            Length::Special(0) => i8::from_le_bytes(self.array()?).into(),
            Length::Special(1) => i16::from_le_bytes(self.array()?).into(),
            Length::Special(2) => i32::from_le_bytes(self.array()?),
            Length::Special(3) => return self.compressed(),
            Length::Special(_) => return Err(self.bad("a string of an unknown form")),
        };
        Ok(integer.to_string().into_bytes())
    }

    fn compressed(&mut self) -> Result<Vec<u8>> {
        let short = self.length()?;
        let long = self.length()?;
        if short > STRING_MAX || long > STRING_MAX {
            return Err(self.bad("a string is longer than 512 MB"));
        }
        let bytes = self.bytes(short)?;
        lzf::expand(&bytes, long as usize).ok_or_else(|| self.bad("a compressed string is damaged"))
    }
}

/// Returns an integer as the text that a client sees.
pub(crate) fn decimal<'b>(number: i64) -> Cow<'b, [u8]> {
    Cow::Owned(number.to_string().into_bytes())
}
