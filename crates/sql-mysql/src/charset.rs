//! Character sets of clients: conversion of their text to and from UTF-8, and the lengths of columns in them, for all
//! doors.
//!
//! All text inside is UTF-8. Clients with `utf8mb4` or `utf8mb3` (nearly all) need no conversion. Text of `ascii` and
//! of sets with an encoding of their own, such as `latin1` or `gbk`, is converted on the way in and out; a character that
//! the set lacks becomes `?`, as in MySQL. `binary` receives UTF-8 as it is.

use crate::scalar::charsets;
use std::borrow::Cow;

use crate::error::{self, SqlError};
use crate::types::{Charset, CharsetName as _, Collation, CollationName as _, Kind, MysqlType as _, Type};

/// Decodes a client's bytes. Returns None if they are invalid in its character set (`not_text`). A byte of a single-byte set
/// that has no character is `?`.
pub fn decode(bytes: &[u8], charset: Charset) -> Option<Cow<'_, str>> {
    match charset {
        charset if charset.contains_ascii() && bytes.is_ascii() => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        charset if charset.is_single_byte() => Some(Cow::Owned(charset.decode_bytes(bytes))),
        charset if charset.has_own_encoding() => charset.try_decode(bytes).ok().map(Cow::Owned),
        _ => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
    }
}

/// Decodes the bytes of a binary string that become text of a character set. Returns the place of the first invalid byte.
/// Of a set with units of several bytes the first unit is filled up with zeros, as in MySQL.
pub fn text_of_bytes(bytes: &[u8], charset: Charset) -> Result<Cow<'_, str>, usize> {
    let missing = bytes.len().next_multiple_of(charset.min_bytes()) - bytes.len();
    if missing > 0 {
        let filled = [&vec![0; missing][..], bytes].concat();
        return charset.try_decode(&filled).map(Cow::Owned).map_err(|at| at.saturating_sub(missing));
    }
    match charset {
        charset if charset.is_single_byte() => Ok(Cow::Owned(charset.decode_bytes(bytes))),
        charset if charset.has_own_encoding() => charset.try_decode(bytes).map(Cow::Owned),
        _ => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| error.valid_up_to()),
    }
}

/// Returns the error that quotes the first invalid bytes, as MySQL does.
pub fn not_text(bytes: &[u8], charset: Charset) -> SqlError {
    let from = text_of_bytes(bytes, charset).err().unwrap_or(0);
    let shown: String = bytes[from..].iter().take(6).map(|byte| format!("\\x{byte:02X}")).collect();
    error::INVALID_CHARACTER_STRING.with(&[&charset.name(), &shown])
}

/// The character set of results: `character_set_results`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results {
    /// None: each column's own character set, without conversion.
    charset: Option<Charset>,
}

impl Results {
    pub const UTF8: Results = Results { charset: Some(Charset::Utf8) };

    /// Returns the set that the variable's text names; an empty text means no conversion.
    pub fn named(name: &str) -> Results {
        Results { charset: charsets::charset(name).ok() }
    }

    /// Returns the id of the collation of a text column as sent to the client, and the most bytes of a character.
    fn of_column(self, column: Collation) -> (u16, u32) {
        match self.charset {
            None | Some(Charset::Binary) => (column.id(), column.charset().max_bytes()),
            Some(charset) => (charset.default_collation().id(), charset.max_bytes()),
        }
    }

    /// Returns whether the text is sent without conversion.
    pub fn takes_as_it_is(self, text: &str) -> bool {
        let differs = |charset: Charset| charset == Charset::Ascii || charset.has_own_encoding();
        !self.charset.is_some_and(differs) || (self.charset.is_some_and(Charset::contains_ascii) && text.is_ascii())
    }

    /// Encodes text for the client; a character that its set lacks becomes `?`.
    #[inline]
    pub fn encode(self, text: &str) -> Cow<'_, [u8]> {
        match self.charset {
            Some(charset) if charset.has_own_encoding() => charset.encode(text),
            Some(Charset::Ascii) if !text.is_ascii() => {
                text.chars().map(|letter| if letter.is_ascii() { letter as u8 } else { b'?' }).collect()
            }
            _ => Cow::Borrowed(text.as_bytes()),
        }
    }

    /// Returns the id of the column's collation for the client, and the most bytes of a displayed value.
    pub fn collation_and_length(self, ty: &Type) -> (u16, u32) {
        const BINARY: u16 = 63;
        let fraction = if ty.scale > 0 { u32::from(ty.scale) + 1 } else { 0 };
        let length = match ty.kind() {
            kind if kind.is_text() => {
                let (collation, letter_bytes) = self.of_column(ty.collation);
                return (collation, letters(ty).saturating_mul(letter_bytes));
            }
            kind if kind.is_integer() => ty.length.max(1),
            // The point and the sign.
            Kind::Decimal => ty.length + u32::from(ty.scale > 0) + u32::from(!ty.is_unsigned()),
            Kind::Time => 10 + fraction,
            Kind::DateTime | Kind::Timestamp => 19 + fraction,
            Kind::Date => 10,
            _ => ty.length,
        };
        (BINARY, length)
    }
}

/// Returns the width of a value in a file of fields without separators, or None for BLOB, TEXT and JSON.
///
/// These are the widths that MySQL writes and reads. Integers have at least their declared display width, and BIT has
/// its bytes.
pub fn fixed_width(ty: &Type) -> Option<usize> {
    let width = match ty.kind() {
        kind if kind.is_blob() => return None,
        kind if kind.is_integer() => {
            let (width, _) = kind.default_length();
            let widened = if ty.has_zerofill() { ty.length } else { 0 };
            widened.max(width - u32::from(ty.is_unsigned() && kind != Kind::BigInt))
        }
        Kind::Bit => ty.length.div_ceil(8),
        kind if kind.is_text() => letters(ty).saturating_mul(ty.charset().max_bytes()),
        _ => Results::UTF8.collation_and_length(ty).1,
    };
    Some(width as usize)
}

/// Returns the most characters of a value of a text type.
fn letters(ty: &Type) -> u32 {
    let members = ty.members().iter().map(|member| member.chars().count());
    match ty.kind() {
        Kind::Enum => members.max().unwrap_or(0) as u32,
        Kind::Set => (members.map(|letters| letters + 1).sum::<usize>() as u32).saturating_sub(1),
        _ => ty.length,
    }
}
