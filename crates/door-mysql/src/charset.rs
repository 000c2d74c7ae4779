//! What a client's bytes mean, and what bytes it wants.
//!
//! All text here is UTF-8. A client that says `utf8mb4` or `utf8mb3` (nearly all) needs nothing done. One that says `latin1` or `ascii` gets its
//! letters turned on the way in and out; what its character set lacks becomes `?`, as in MySQL. `binary` gets UTF-8 as it stands.

use std::borrow::Cow;

use query::types::{Charset, Collation, latin1_byte, latin1_char};

use crate::wire::put_bytes;

/// The bytes of a client as text. `None`: they are not text in its character set.
pub fn decode(bytes: &[u8], charset: Charset) -> Option<Cow<'_, str>> {
    match charset {
        Charset::Latin1 if !bytes.is_ascii() => Some(Cow::Owned(bytes.iter().map(|byte| latin1_char(*byte)).collect())),
        _ => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
    }
}

/// What results are written in: `character_set_results`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results {
    /// `None`: as each column's character set is called, turned into nothing else.
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

    /// Are the text's bytes those that are sent?
    pub fn takes_as_it_is(self, text: &str) -> bool {
        !matches!(self.charset, Some(Charset::Latin1 | Charset::Ascii)) || text.is_ascii()
    }

    /// Text behind its length, in the client's letters.
    #[inline]
    pub fn put_text(self, out: &mut Vec<u8>, text: &str) {
        if self.takes_as_it_is(text) { put_bytes(out, text.as_bytes()) } else { self.put_narrow(out, text) }
    }

    #[cold]
    fn put_narrow(self, out: &mut Vec<u8>, text: &str) {
        let narrow = |letter: char| match self.charset {
            Some(Charset::Latin1) => latin1_byte(letter).unwrap_or(b'?'),
            _ => u8::try_from(letter).ok().filter(u8::is_ascii).unwrap_or(b'?'),
        };
        put_bytes(out, &text.chars().map(narrow).collect::<Vec<u8>>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin1_comes_back_as_it_went() {
        let all: Vec<u8> = (0..=255).collect();
        let text = decode(&all, Charset::Latin1).unwrap();
        let mut out = Vec::new();
        Results::named("latin1").put_text(&mut out, &text);
        assert_eq!(out[3..], all);
        assert_eq!(decode(b"\x80\xe4", Charset::Latin1).as_deref(), Some("€ä"));
    }

    #[test]
    fn letters_that_a_character_set_lacks_become_question_marks() {
        for (name, expected) in
            [("latin1", &b"\x05a\xe4\x80??"[..]), ("ascii", b"\x05a????"), ("utf8mb4", "\u{0f}aä€字🐋".as_bytes())]
        {
            let mut out = Vec::new();
            Results::named(name).put_text(&mut out, "aä€字🐋");
            let expected =
                if name == "utf8mb4" { &["\u{0d}".as_bytes(), &expected[1..]].concat()[..] } else { expected };
            assert_eq!(out, expected, "{name}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_are_no_text() {
        assert_eq!(decode(b"a\xff", Charset::Utf8mb4), None);
        assert_eq!(decode("ä".as_bytes(), Charset::Utf8mb3).as_deref(), Some("ä"));
    }
}
