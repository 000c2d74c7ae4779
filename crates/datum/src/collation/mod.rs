//! Character sets and collations: which characters a text may have, and the order of texts.
//!
//! All text is UTF-8 in memory and on disk, whatever its character set: a set limits the characters that a column may hold. A collation is a set of weights
//! (bytes, or a list of numbers for each character) and whether spaces at the end count (`NO PAD`) or not (`PAD SPACE`). Both are named here by what they
//! are; the names and numbers that clients know them by belong to the dialects.
//!
//! DA-1: `compare(a, b)` is the order of `sort_key(a)` and `sort_key(b)`.

mod bytes;
mod order;
mod table;

use std::borrow::Cow;

use crate::value::Text;

macro_rules! charsets {
    ($($name:ident)*) => {
        /// The characters that a text may have. A later variant is the wider set, for two sets of which one contains the other.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Charset {
            /// No characters: bytes.
            Binary,
            Ascii,
            $($name,)*
            /// Windows-1252, whose holes are control characters.
            Latin1,
            /// The Basic Multilingual Plane: what UTF-8 writes in up to three bytes.
            Utf8Bmp,
            Utf8,
        }

        impl Charset {
            pub const ALL: &[Charset] = &[
                Charset::Binary, Charset::Ascii, $(Charset::$name,)* Charset::Latin1, Charset::Utf8Bmp, Charset::Utf8,
            ];
        }
    };
}

// The sets of one byte for each character that `charsets.bin` describes.
charsets! {
    Dec8 Cp850 Hp8 Koi8r Latin2 Hebrew Koi8u Greek Cp1250 Latin5 Armscii8 Cp866 Keybcs2 Macce Macroman Cp852 Latin7 Cp1251 Cp1256 Cp1257 Geostd8
}

/// How characters become weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// The bytes of UTF-8, which are in the order of the code points.
    Bytes,
    /// One weight for each character: the letter in upper case without its accent.
    General,
    /// The alphabetical order of Swedish and Finnish, for Windows-1252.
    Latin1Swedish,
    /// The collation's own table in `charsets.bin`.
    Packed,
    /// Primary weights of the Unicode collation algorithm, by the version of its tables.
    Uca400,
    Uca520,
    Uca900,
    /// And where the primary weights are equal, the secondary ones, which tell accents apart.
    Uca900Accents,
    /// And where those are equal, the tertiary ones, which tell cases apart.
    Uca900Cases,
}

/// The characters of Windows-1252 from 0x80 to 0x9F. Its five holes stand for themselves.
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
    ([$($name:ident $code:literal $charset:ident $weights:ident $pad:literal;)*]
     [$($packed:ident $packed_code:literal $packed_charset:ident;)*]) => {
        /// An order of texts in one character set.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Collation { $($name,)* $($packed,)* }

        impl Collation {
            pub const ALL: &[Collation] = &[$(Collation::$name,)* $(Collation::$packed,)*];

            /// Returns the number that stands for the collation in files. It never changes.
            pub const fn code(self) -> u16 {
                match self {
                    $(Collation::$name => $code,)*
                    $(Collation::$packed => $packed_code,)*
                }
            }

            const fn row(self) -> (Charset, Weights, bool) {
                match self {
                    $(Collation::$name => (Charset::$charset, Weights::$weights, $pad),)*
                    $(Collation::$packed => (Charset::$packed_charset, Weights::Packed, true),)*
                }
            }

            /// The name of a packed collation's table.
            fn table_name(self) -> &'static str {
                match self {
                    $(Collation::$packed => stringify!($packed),)*
                    _ => "",
                }
            }
        }
    };
}

// Number in files, character set, weights, PAD SPACE. Then the collations whose weights are in `charsets.bin`, all of them PAD SPACE.
collations! {[
    Binary 63 Binary Bytes false;
    Utf8Uca900AiCi 255 Utf8 Uca900 false;
    Utf8Uca900AsCi 305 Utf8 Uca900Accents false;
    Utf8Uca900AsCs 278 Utf8 Uca900Cases false;
    Utf8GeneralCi 45 Utf8 General true;
    Utf8PadBin 46 Utf8 Bytes true;
    Utf8Uca400Ci 224 Utf8 Uca400 true;
    Utf8Uca520Ci 246 Utf8 Uca520 true;
    Utf8Bin 309 Utf8 Bytes false;
    Utf8BmpGeneralCi 33 Utf8Bmp General true;
    Utf8BmpPadBin 83 Utf8Bmp Bytes true;
    Utf8BmpUca400Ci 192 Utf8Bmp Uca400 true;
    Utf8BmpUca520Ci 214 Utf8Bmp Uca520 true;
    Latin1SwedishCi 8 Latin1 Latin1Swedish true;
    Latin1Bin 47 Latin1 Bytes true;
    AsciiGeneralCi 11 Ascii General true;
    AsciiBin 65 Ascii Bytes true;
] [
    Dec8SwedishCi 3 Dec8;
    Dec8Bin 69 Dec8;
    Cp850GeneralCi 4 Cp850;
    Cp850Bin 80 Cp850;
    Hp8EnglishCi 6 Hp8;
    Hp8Bin 72 Hp8;
    Koi8rGeneralCi 7 Koi8r;
    Koi8rBin 74 Koi8r;
    Latin1German1Ci 5 Latin1;
    Latin1DanishCi 15 Latin1;
    Latin1German2Ci 31 Latin1;
    Latin1GeneralCi 48 Latin1;
    Latin1GeneralCs 49 Latin1;
    Latin1SpanishCi 94 Latin1;
    Latin2GeneralCi 9 Latin2;
    Latin2HungarianCi 21 Latin2;
    Latin2CroatianCi 27 Latin2;
    Latin2Bin 77 Latin2;
    HebrewGeneralCi 16 Hebrew;
    HebrewBin 71 Hebrew;
    Koi8uGeneralCi 22 Koi8u;
    Koi8uBin 75 Koi8u;
    GreekGeneralCi 25 Greek;
    GreekBin 70 Greek;
    Cp1250GeneralCi 26 Cp1250;
    Cp1250CroatianCi 44 Cp1250;
    Cp1250Bin 66 Cp1250;
    Cp1250PolishCi 99 Cp1250;
    Latin5TurkishCi 30 Latin5;
    Latin5Bin 78 Latin5;
    Armscii8GeneralCi 32 Armscii8;
    Armscii8Bin 64 Armscii8;
    Cp866GeneralCi 36 Cp866;
    Cp866Bin 68 Cp866;
    Keybcs2GeneralCi 37 Keybcs2;
    Keybcs2Bin 73 Keybcs2;
    MacceGeneralCi 38 Macce;
    MacceBin 43 Macce;
    MacromanGeneralCi 39 Macroman;
    MacromanBin 53 Macroman;
    Cp852GeneralCi 40 Cp852;
    Cp852Bin 81 Cp852;
    Latin7EstonianCs 20 Latin7;
    Latin7GeneralCi 41 Latin7;
    Latin7GeneralCs 42 Latin7;
    Latin7Bin 79 Latin7;
    Cp1251BulgarianCi 14 Cp1251;
    Cp1251UkrainianCi 23 Cp1251;
    Cp1251Bin 50 Cp1251;
    Cp1251GeneralCi 51 Cp1251;
    Cp1251GeneralCs 52 Cp1251;
    Cp1256GeneralCi 57 Cp1256;
    Cp1256Bin 67 Cp1256;
    Cp1257LithuanianCi 29 Cp1257;
    Cp1257Bin 58 Cp1257;
    Cp1257GeneralCi 59 Cp1257;
    Geostd8GeneralCi 92 Geostd8;
    Geostd8Bin 93 Geostd8;
]}

impl Collation {
    /// Returns the collation with that number in files.
    pub fn of_code(code: u16) -> Option<Collation> {
        Collation::ALL.iter().copied().find(|collation| collation.code() == code)
    }

    pub fn charset(self) -> Charset {
        self.row().0
    }

    pub fn weights(self) -> Weights {
        self.row().1
    }

    /// True: spaces at the end of a text do not count.
    pub fn pads(self) -> bool {
        self.row().2
    }
}

impl Charset {
    /// The most bytes that a character takes in the set's own encoding.
    pub fn max_bytes(self) -> u32 {
        match self {
            Charset::Utf8 => 4,
            Charset::Utf8Bmp => 3,
            _ => 1,
        }
    }

    /// True for the sets whose own encoding is not a part of UTF-8: one byte for each character, beyond ASCII.
    pub fn is_single_byte(self) -> bool {
        self > Charset::Ascii && self <= Charset::Latin1
    }

    /// True for a character of the set.
    pub fn holds(self, c: char) -> bool {
        match self {
            Charset::Binary | Charset::Utf8 => true,
            Charset::Ascii => c.is_ascii(),
            Charset::Latin1 => latin1_byte(c).is_some(),
            Charset::Utf8Bmp => u32::from(c) < 0x1_0000,
            own => c.is_ascii() || bytes::of(own).byte(c).is_some(),
        }
    }

    /// Returns the text in the set's own encoding; a character that the set lacks becomes a question mark.
    pub fn encode(self, text: &str) -> Cow<'_, [u8]> {
        if !self.is_single_byte() || text.is_ascii() {
            return Cow::Borrowed(text.as_bytes());
        }
        if self == Charset::Latin1 {
            return Cow::Owned(text.chars().map(|letter| latin1_byte(letter).unwrap_or(b'?')).collect());
        }
        let map = bytes::of(self);
        Cow::Owned(text.chars().map(|letter| map.byte(letter).unwrap_or(b'?')).collect())
    }

    /// Returns the text that bytes in the encoding of a single-byte set are. A byte without a character becomes a question mark.
    pub fn decode_bytes(self, text: &[u8]) -> String {
        if self == Charset::Latin1 {
            return text.iter().map(|byte| latin1_char(*byte)).collect();
        }
        let map = bytes::of(self);
        text.iter().map(|byte| map.char(*byte).unwrap_or('?')).collect()
    }

    /// Returns the text with a question mark for each character that the set lacks.
    pub fn narrowed(self, text: Text) -> Text {
        if text.is_ascii() || text.chars().all(|letter| self.holds(letter)) {
            return text;
        }
        text.chars().map(|letter| if self.holds(letter) { letter } else { '?' }).collect::<String>().into()
    }
}

#[cfg(test)]
mod tests;
