//! Character sets and collations: one table of their names and numbers, comparison, and sort keys.
//!
//! All characters are UTF-8 in memory and on disk whatever the character set is called: a character set limits what a column may hold. A collation is a set
//! of weights (bytes, or a list of numbers for each character) and whether blanks at the end count (`NO PAD`) or not (`PAD SPACE`).
//! Invariant: `compare(a, b)` is the order of `sort_key(a)` and `sort_key(b)`.

mod bytes;
mod order;
mod table;

use std::borrow::Cow;

use crate::error::{self, Result};
use crate::value::Text;

macro_rules! charsets {
    ($($name:ident $text:literal $collation:ident $description:literal;)*) => {
        /// Whether a character set can hold a character, and how many bytes a client may count for one. The wider set is the greater.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Charset {
            Binary,
            Ascii,
            $($name,)*
            Latin1,
            Utf8mb3,
            Utf8mb4,
        }

        impl Charset {
            pub const ALL: &[Charset] = &[
                Charset::Binary, Charset::Ascii, $(Charset::$name,)* Charset::Latin1, Charset::Utf8mb3, Charset::Utf8mb4,
            ];

            /// Name, default collation, description, bytes of a character at most.
            fn row(self) -> (&'static str, Collation, &'static str, u32) {
                match self {
                    Charset::Binary => ("binary", Collation::Binary, "Binary pseudo charset", 1),
                    Charset::Ascii => ("ascii", Collation::AsciiGeneralCi, "US ASCII", 1),
                    $(Charset::$name => ($text, Collation::$collation, $description, 1),)*
                    Charset::Latin1 => ("latin1", Collation::Latin1SwedishCi, "cp1252 West European", 1),
                    Charset::Utf8mb3 => ("utf8mb3", Collation::Utf8mb3GeneralCi, "UTF-8 Unicode", 3),
                    Charset::Utf8mb4 => ("utf8mb4", Collation::DEFAULT, "UTF-8 Unicode", 4),
                }
            }
        }
    };
}

// Character sets with a byte a character, from `charsets.bin`: name, default collation, description.
charsets! {
    Dec8 "dec8" Dec8SwedishCi "DEC West European";
    Cp850 "cp850" Cp850GeneralCi "DOS West European";
    Hp8 "hp8" Hp8EnglishCi "HP West European";
    Koi8r "koi8r" Koi8rGeneralCi "KOI8-R Relcom Russian";
    Latin2 "latin2" Latin2GeneralCi "ISO 8859-2 Central European";
    Hebrew "hebrew" HebrewGeneralCi "ISO 8859-8 Hebrew";
    Koi8u "koi8u" Koi8uGeneralCi "KOI8-U Ukrainian";
    Greek "greek" GreekGeneralCi "ISO 8859-7 Greek";
    Cp1250 "cp1250" Cp1250GeneralCi "Windows Central European";
    Latin5 "latin5" Latin5TurkishCi "ISO 8859-9 Turkish";
    Armscii8 "armscii8" Armscii8GeneralCi "ARMSCII-8 Armenian";
    Cp866 "cp866" Cp866GeneralCi "DOS Russian";
    Keybcs2 "keybcs2" Keybcs2GeneralCi "DOS Kamenicky Czech-Slovak";
    Macce "macce" MacceGeneralCi "Mac Central European";
    Macroman "macroman" MacromanGeneralCi "Mac West European";
    Cp852 "cp852" Cp852GeneralCi "DOS Central European";
    Latin7 "latin7" Latin7GeneralCi "ISO 8859-13 Baltic";
    Cp1251 "cp1251" Cp1251GeneralCi "Windows Cyrillic";
    Cp1256 "cp1256" Cp1256GeneralCi "Windows Arabic";
    Cp1257 "cp1257" Cp1257GeneralCi "Windows Baltic";
    Geostd8 "geostd8" Geostd8GeneralCi "GEOSTD8 Georgian";
}

/// How characters become weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// The bytes of UTF-8, which are in the order of the code points.
    Bytes,
    /// One weight a character: the letter in upper case without its accent.
    General,
    Latin1Swedish,
    /// Those of `charsets.bin`, by the collation's number.
    Packed(u16),
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

fn latin1_char(byte: u8) -> char {
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
    ([$($name:ident $text:literal $id:literal $charset:ident $weights:ident $pad:literal;)*]
     [$($packed:ident $packed_text:literal $packed_id:literal $packed_charset:ident;)*]) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Collation { $($name,)* $($packed,)* }

        impl Collation {
            pub const ALL: &[Collation] = &[$(Collation::$name,)* $(Collation::$packed,)*];

            const fn row(self) -> (&'static str, u16, Charset, Weights, bool) {
                match self {
                    $(Collation::$name => ($text, $id, Charset::$charset, Weights::$weights, $pad),)*
                    $(Collation::$packed => ($packed_text, $packed_id, Charset::$packed_charset, Weights::Packed($packed_id), true),)*
                }
            }
        }
    };
}

// Name, MySQL's number, character set, weights, PAD SPACE. Then those whose weights are in `charsets.bin`, all of them PAD SPACE.
collations! {[
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
] [
    Dec8SwedishCi "dec8_swedish_ci" 3 Dec8;
    Dec8Bin "dec8_bin" 69 Dec8;
    Cp850GeneralCi "cp850_general_ci" 4 Cp850;
    Cp850Bin "cp850_bin" 80 Cp850;
    Hp8EnglishCi "hp8_english_ci" 6 Hp8;
    Hp8Bin "hp8_bin" 72 Hp8;
    Koi8rGeneralCi "koi8r_general_ci" 7 Koi8r;
    Koi8rBin "koi8r_bin" 74 Koi8r;
    Latin1German1Ci "latin1_german1_ci" 5 Latin1;
    Latin1DanishCi "latin1_danish_ci" 15 Latin1;
    Latin1German2Ci "latin1_german2_ci" 31 Latin1;
    Latin1GeneralCi "latin1_general_ci" 48 Latin1;
    Latin1GeneralCs "latin1_general_cs" 49 Latin1;
    Latin1SpanishCi "latin1_spanish_ci" 94 Latin1;
    Latin2GeneralCi "latin2_general_ci" 9 Latin2;
    Latin2HungarianCi "latin2_hungarian_ci" 21 Latin2;
    Latin2CroatianCi "latin2_croatian_ci" 27 Latin2;
    Latin2Bin "latin2_bin" 77 Latin2;
    HebrewGeneralCi "hebrew_general_ci" 16 Hebrew;
    HebrewBin "hebrew_bin" 71 Hebrew;
    Koi8uGeneralCi "koi8u_general_ci" 22 Koi8u;
    Koi8uBin "koi8u_bin" 75 Koi8u;
    GreekGeneralCi "greek_general_ci" 25 Greek;
    GreekBin "greek_bin" 70 Greek;
    Cp1250GeneralCi "cp1250_general_ci" 26 Cp1250;
    Cp1250CroatianCi "cp1250_croatian_ci" 44 Cp1250;
    Cp1250Bin "cp1250_bin" 66 Cp1250;
    Cp1250PolishCi "cp1250_polish_ci" 99 Cp1250;
    Latin5TurkishCi "latin5_turkish_ci" 30 Latin5;
    Latin5Bin "latin5_bin" 78 Latin5;
    Armscii8GeneralCi "armscii8_general_ci" 32 Armscii8;
    Armscii8Bin "armscii8_bin" 64 Armscii8;
    Cp866GeneralCi "cp866_general_ci" 36 Cp866;
    Cp866Bin "cp866_bin" 68 Cp866;
    Keybcs2GeneralCi "keybcs2_general_ci" 37 Keybcs2;
    Keybcs2Bin "keybcs2_bin" 73 Keybcs2;
    MacceGeneralCi "macce_general_ci" 38 Macce;
    MacceBin "macce_bin" 43 Macce;
    MacromanGeneralCi "macroman_general_ci" 39 Macroman;
    MacromanBin "macroman_bin" 53 Macroman;
    Cp852GeneralCi "cp852_general_ci" 40 Cp852;
    Cp852Bin "cp852_bin" 81 Cp852;
    Latin7EstonianCs "latin7_estonian_cs" 20 Latin7;
    Latin7GeneralCi "latin7_general_ci" 41 Latin7;
    Latin7GeneralCs "latin7_general_cs" 42 Latin7;
    Latin7Bin "latin7_bin" 79 Latin7;
    Cp1251BulgarianCi "cp1251_bulgarian_ci" 14 Cp1251;
    Cp1251UkrainianCi "cp1251_ukrainian_ci" 23 Cp1251;
    Cp1251Bin "cp1251_bin" 50 Cp1251;
    Cp1251GeneralCi "cp1251_general_ci" 51 Cp1251;
    Cp1251GeneralCs "cp1251_general_cs" 52 Cp1251;
    Cp1256GeneralCi "cp1256_general_ci" 57 Cp1256;
    Cp1256Bin "cp1256_bin" 67 Cp1256;
    Cp1257LithuanianCi "cp1257_lithuanian_ci" 29 Cp1257;
    Cp1257Bin "cp1257_bin" 58 Cp1257;
    Cp1257GeneralCi "cp1257_general_ci" 59 Cp1257;
    Geostd8GeneralCi "geostd8_general_ci" 92 Geostd8;
    Geostd8Bin "geostd8_bin" 93 Geostd8;
]}

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
            Charset::Utf8mb4 => Collation::Utf8mb4Bin,
            charset => {
                let is_twin = |other: &Collation| other.charset() == charset && other.name().ends_with("_bin");
                Collation::ALL.iter().copied().find(is_twin).unwrap_or(Collation::Utf8mb4Bin)
            }
        }
    }
}

impl Charset {
    pub fn name(self) -> &'static str {
        self.row().0
    }

    pub fn description(self) -> &'static str {
        self.row().2
    }

    pub fn max_bytes(self) -> u32 {
        self.row().3
    }

    pub fn default_collation(self) -> Collation {
        self.row().1
    }

    /// Does MySQL keep a text of this set in other bytes than UTF-8's, with a byte for each character?
    pub fn is_single_byte(self) -> bool {
        self > Charset::Ascii && self <= Charset::Latin1
    }

    /// Can a column of this set hold the character?
    pub fn holds(self, c: char) -> bool {
        match self {
            Charset::Binary | Charset::Utf8mb4 => true,
            Charset::Ascii => c.is_ascii(),
            Charset::Latin1 => latin1_byte(c).is_some(),
            Charset::Utf8mb3 => u32::from(c) < 0x1_0000,
            own => c.is_ascii() || bytes::of(own.name()).byte(c).is_some(),
        }
    }

    /// The bytes that MySQL keeps for the text: here all text is UTF-8.
    pub fn encode(self, text: &str) -> Cow<'_, [u8]> {
        if !self.is_single_byte() || text.is_ascii() {
            return Cow::Borrowed(text.as_bytes());
        }
        if self == Charset::Latin1 {
            return Cow::Owned(text.chars().map(|letter| latin1_byte(letter).unwrap_or(b'?')).collect());
        }
        let map = bytes::of(self.name());
        Cow::Owned(text.chars().map(|letter| map.byte(letter).unwrap_or(b'?')).collect())
    }

    /// The text that those bytes are, in a set with a byte a character. Bytes that mean none become question marks.
    pub fn decode_bytes(self, text: &[u8]) -> String {
        if self == Charset::Latin1 {
            return text.iter().map(|byte| latin1_char(*byte)).collect();
        }
        let map = bytes::of(self.name());
        text.iter().map(|byte| map.char(*byte).unwrap_or('?')).collect()
    }

    /// The text with a question mark for each letter that the set has not.
    pub fn narrowed(self, text: Text) -> Text {
        if text.is_ascii() || text.chars().all(|letter| self.holds(letter)) {
            return text;
        }
        text.chars().map(|letter| if self.holds(letter) { letter } else { '?' }).collect::<String>().into()
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
