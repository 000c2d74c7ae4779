//! Values of `query` as rows and chunks have them, and what a client is told of their columns.
//!
//! A value must be of its column's kind: the client decodes by the column's type alone, so a value that is not is an error of the statement, not a guess (P6).

pub mod chunk;
pub mod column;
pub mod row;

use std::borrow::Cow;

use query::types::{Charset, Collation};

/// What strings of characters are written in: `character_set_results`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results {
    /// None: as each column's character set is called, turned into nothing else.
    charset: Option<Charset>,
}

impl Results {
    pub const UTF8: Results = Results { charset: Some(Charset::Utf8mb4) };

    /// By the variable's text, which is empty or NULL for "as it is".
    pub fn named(name: &str) -> Results {
        Results { charset: Charset::by_name(name).ok() }
    }

    /// The collation to tell the client for a text column, and the bytes that one of its letters takes at most.
    pub fn of_column(self, column: Collation) -> (u16, u32) {
        match self.charset {
            None | Some(Charset::Binary) => (column.id(), column.charset().max_bytes()),
            Some(charset) => (charset.default_collation().id(), charset.max_bytes()),
        }
    }

    /// Text in the client's letters; what these lack becomes `?`.
    #[inline]
    pub fn encode(self, text: &str) -> Cow<'_, [u8]> {
        match self.charset {
            Some(Charset::Latin1) => Charset::Latin1.encode(text),
            Some(Charset::Ascii) if !text.is_ascii() => {
                text.chars().map(|letter| if letter.is_ascii() { letter as u8 } else { b'?' }).collect()
            }
            _ => Cow::Borrowed(text.as_bytes()),
        }
    }
}
