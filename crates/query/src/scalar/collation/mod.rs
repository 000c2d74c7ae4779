//! Character sets and collations: one table of their names and numbers, comparison, and sort keys.
//!
//! All characters are UTF-8 in memory and on disk whatever the character set is called: a character set limits what a column may hold. A collation is a set
//! of weights (bytes, or a list of numbers for each character) and whether blanks at the end count (`NO PAD`) or not (`PAD SPACE`).
//! Invariant: `compare(a, b)` is the order of `sort_key(a)` and `sort_key(b)`.

mod order;
mod table;

use std::borrow::Cow;

use crate::error::{self, Result};
use crate::value::Text;

/// Whether a character set can hold a character, and how many bytes a client may count for one. The wider set is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Charset {
    Binary,
    Ascii,
    Latin1,
    Utf8mb3,
    Utf8mb4,
}

/// How characters become weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// The bytes of UTF-8, which are in the order of the code points.
    Bytes,
    /// One weight a character: the letter in upper case without its accent.
    General,
    Latin1Swedish,
    /// Primary weights of the Unicode collation algorithm, by the age of its tables.
    Uca400,
    Uca520,
    Uca900,
}

/// What latin1 (MySQL's is Windows-1252) has from 0x80 to 0x9f. Its five holes stand for themselves.
const LATIN1_HIGH: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

pub fn latin1_char(byte: u8) -> char {
    match byte {
        0x80..=0x9f => LATIN1_HIGH[usize::from(byte - 0x80)],
        byte => char::from(byte),
    }
}

fn latin1_byte(letter: char) -> Option<u8> {
    match u32::from(letter) {
        code @ (0..=0x7f | 0xa0..=0xff) => Some(code as u8),
        _ => LATIN1_HIGH.iter().position(|high| *high == letter).map(|at| 0x80 + at as u8),
    }
}

macro_rules! collations {
    ($($name:ident $text:literal $id:literal $charset:ident $weights:ident $pad:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Collation { $($name),* }

        impl Collation {
            pub const ALL: &[Collation] = &[$(Collation::$name),*];

            const fn row(self) -> (&'static str, u16, Charset, Weights, bool) {
                match self { $(Collation::$name => ($text, $id, Charset::$charset, Weights::$weights, $pad)),* }
            }
        }
    };
}

// Name, MySQL's number, character set, weights, PAD SPACE.
collations! {
    Binary "binary" 63 Binary Bytes false;
    Utf8mb40900AiCi "utf8mb4_0900_ai_ci" 255 Utf8mb4 Uca900 false;
    Utf8mb4GeneralCi "utf8mb4_general_ci" 45 Utf8mb4 General true;
    Utf8mb4Bin "utf8mb4_bin" 46 Utf8mb4 Bytes true;
    Utf8mb4UnicodeCi "utf8mb4_unicode_ci" 224 Utf8mb4 Uca400 true;
    Utf8mb4Unicode520Ci "utf8mb4_unicode_520_ci" 246 Utf8mb4 Uca520 true;
    Utf8mb40900Bin "utf8mb4_0900_bin" 309 Utf8mb4 Bytes false;
    Utf8mb3GeneralCi "utf8mb3_general_ci" 33 Utf8mb3 General true;
    Utf8mb3Bin "utf8mb3_bin" 83 Utf8mb3 Bytes true;
    Utf8mb3UnicodeCi "utf8mb3_unicode_ci" 192 Utf8mb3 Uca400 true;
    Latin1SwedishCi "latin1_swedish_ci" 8 Latin1 Latin1Swedish true;
    Latin1Bin "latin1_bin" 47 Latin1 Bytes true;
    AsciiGeneralCi "ascii_general_ci" 11 Ascii General true;
    AsciiBin "ascii_bin" 65 Ascii Bytes true;
}

impl Collation {
    pub const DEFAULT: Collation = Collation::Utf8mb40900AiCi;

    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The number that stands for it on the wire and in information_schema.
    pub fn id(self) -> u16 {
        self.row().1
    }

    pub fn charset(self) -> Charset {
        self.row().2
    }

    pub fn weights(self) -> Weights {
        self.row().3
    }

    /// Do blanks at the end not count?
    pub fn pads(self) -> bool {
        self.row().4
    }

    pub fn by_id(id: u16) -> Option<Collation> {
        Collation::ALL.iter().copied().find(|collation| collation.id() == id)
    }

    /// By name, case-insensitive; error 1273.
    pub fn by_name(name: &str) -> Result<Collation> {
        let wanted = name.to_ascii_lowercase();
        let wanted = match wanted.strip_prefix("utf8_") {
            Some(rest) => format!("utf8mb3_{rest}"),
            None => wanted,
        };
        let found = Collation::ALL.iter().copied().find(|collation| collation.name() == wanted);
        found.ok_or_else(|| error::UNKNOWN_COLLATION.with(&[&name]))
    }

    /// The `_bin` collation of the same character set.
    pub fn binary_twin(self) -> Collation {
        match self.charset() {
            Charset::Binary => Collation::Binary,
            Charset::Ascii => Collation::AsciiBin,
            Charset::Latin1 => Collation::Latin1Bin,
            Charset::Utf8mb3 => Collation::Utf8mb3Bin,
            Charset::Utf8mb4 => Collation::Utf8mb4Bin,
        }
    }
}

impl Charset {
    pub const ALL: &[Charset] = &[Charset::Binary, Charset::Ascii, Charset::Latin1, Charset::Utf8mb3, Charset::Utf8mb4];

    pub fn name(self) -> &'static str {
        match self {
            Charset::Binary => "binary",
            Charset::Ascii => "ascii",
            Charset::Latin1 => "latin1",
            Charset::Utf8mb3 => "utf8mb3",
            Charset::Utf8mb4 => "utf8mb4",
        }
    }

    /// Can a column of this set hold the character?
    pub fn holds(self, c: char) -> bool {
        match self {
            Charset::Binary | Charset::Utf8mb4 => true,
            Charset::Ascii => c.is_ascii(),
            Charset::Latin1 => latin1_byte(c).is_some(),
            Charset::Utf8mb3 => u32::from(c) < 0x1_0000,
        }
    }

    /// The bytes that MySQL keeps for the text: here all text is UTF-8.
    pub fn encode(self, text: &str) -> Cow<'_, [u8]> {
        if self != Charset::Latin1 || text.is_ascii() {
            return Cow::Borrowed(text.as_bytes());
        }
        Cow::Owned(text.chars().map(|letter| latin1_byte(letter).unwrap_or(b'?')).collect())
    }

    /// The text with a question mark for each letter that the set has not.
    pub fn narrowed(self, text: Text) -> Text {
        let has = |letter: char| match self {
            Charset::Ascii => letter.is_ascii(),
            Charset::Latin1 => latin1_byte(letter).is_some(),
            Charset::Utf8mb3 => letter <= '\u{FFFF}',
            Charset::Utf8mb4 | Charset::Binary => true,
        };
        if text.is_ascii() || text.chars().all(has) {
            return text;
        }
        text.chars().map(|letter| if has(letter) { letter } else { '?' }).collect::<String>().into()
    }

    pub fn max_bytes(self) -> u32 {
        match self {
            Charset::Binary | Charset::Ascii | Charset::Latin1 => 1,
            Charset::Utf8mb3 => 3,
            Charset::Utf8mb4 => 4,
        }
    }

    pub fn default_collation(self) -> Collation {
        match self {
            Charset::Binary => Collation::Binary,
            Charset::Ascii => Collation::AsciiGeneralCi,
            Charset::Latin1 => Collation::Latin1SwedishCi,
            Charset::Utf8mb3 => Collation::Utf8mb3GeneralCi,
            Charset::Utf8mb4 => Collation::DEFAULT,
        }
    }

    /// By name, case-insensitive; error 1115.
    pub fn by_name(name: &str) -> Result<Charset> {
        let wanted = name.to_ascii_lowercase();
        let wanted = if wanted == "utf8" { "utf8mb3" } else { &wanted };
        let found = Charset::ALL.iter().copied().find(|charset| charset.name() == wanted);
        found.ok_or_else(|| error::UNKNOWN_CHARACTER_SET.with(&[&name]))
    }
}

#[cfg(test)]
mod tests;
