//! Character sets of clients: what their bytes mean, what bytes they want, and how long a column's values may be in those. For all doors whose clients choose one.
//!
//! All text within is UTF-8. A client that says `utf8mb4` or `utf8mb3` (nearly all) needs nothing done. One that says `ascii` or a set with a byte a character, as `latin1` or `cp1251`, gets its
//! letters turned on the way in and out; what its character set lacks becomes `?`, as in MySQL. `binary` gets UTF-8 as it stands.

use crate::scalar::charsets;
use std::borrow::Cow;

use crate::error::{self, SqlError};
use crate::types::{Charset, CharsetName as _, Collation, CollationName as _, Kind, MysqlType as _, Type};

/// The bytes of a client as text. None: they are not text in its character set (`not_text`).
pub fn decode(bytes: &[u8], charset: Charset) -> Option<Cow<'_, str>> {
    match charset {
        charset if charset.is_single_byte() && !bytes.is_ascii() => Some(Cow::Owned(charset.decode_bytes(bytes))),
        _ => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
    }
}

/// The error that names the bytes, as MySQL cuts them.
pub fn not_text(bytes: &[u8], charset: Charset) -> SqlError {
    let from = std::str::from_utf8(bytes).err().map_or(0, |error| error.valid_up_to());
    let shown: String = bytes[from..].iter().take(6).map(|byte| format!("\\x{byte:02X}")).collect();
    error::INVALID_CHARACTER_STRING.with(&[&charset.name(), &shown])
}

/// What results are written in: `character_set_results`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results {
    /// None: as each column's character set is called, turned into nothing else.
    charset: Option<Charset>,
}

impl Results {
    pub const UTF8: Results = Results { charset: Some(Charset::Utf8) };

    /// By the variable's text, which is empty or NULL for "as it is".
    pub fn named(name: &str) -> Results {
        Results { charset: charsets::charset(name).ok() }
    }

    /// The collation to tell the client for a text column, and the bytes that one of its letters takes at most.
    fn of_column(self, column: Collation) -> (u16, u32) {
        match self.charset {
            None | Some(Charset::Binary) => (column.id(), column.charset().max_bytes()),
            Some(charset) => (charset.default_collation().id(), charset.max_bytes()),
        }
    }

    /// Are the text's bytes those that are sent?
    pub fn takes_as_it_is(self, text: &str) -> bool {
        let differs = |charset: Charset| charset == Charset::Ascii || charset.is_single_byte();
        !self.charset.is_some_and(differs) || text.is_ascii()
    }

    /// Text in the client's letters; what these lack becomes `?`.
    #[inline]
    pub fn encode(self, text: &str) -> Cow<'_, [u8]> {
        match self.charset {
            Some(charset) if charset.is_single_byte() => charset.encode(text),
            Some(Charset::Ascii) if !text.is_ascii() => {
                text.chars().map(|letter| if letter.is_ascii() { letter as u8 } else { b'?' }).collect()
            }
            _ => Cow::Borrowed(text.as_bytes()),
        }
    }

    /// The number of the collation that a column has for the client, and how many bytes a value of it takes at most when it is shown.
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

/// How many bytes a value takes in a file of fields without separators. None: BLOB, TEXT, JSON.
///
/// Columns of a file that MySQL has written, or reads, are so wide; of integers whatever display width is declared, and BIT has its bytes.
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

/// The most characters that a value of a text kind has.
fn letters(ty: &Type) -> u32 {
    let members = ty.members().iter().map(|member| member.chars().count());
    match ty.kind() {
        Kind::Enum => members.max().unwrap_or(0) as u32,
        Kind::Set => (members.map(|letters| letters + 1).sum::<usize>() as u32).saturating_sub(1),
        _ => ty.length,
    }
}
