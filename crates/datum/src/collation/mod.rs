//! Character sets and collations: which characters a text may have, and the order of texts.
//!
//! All text is UTF-8 in memory and on disk, whatever its character set: a set limits the characters that a column may hold. A collation is a set of weights
//! (bytes, or a list of numbers for each character) and whether spaces at the end count (`NO PAD`) or not (`PAD SPACE`). Both are named here by what they
//! are; the names and numbers that clients know them by belong to the dialects.
//!
//! DA-1: `compare(a, b)` is the order of `sort_key(a)` and `sort_key(b)`.

mod bytes;
mod multibyte;
mod order;
mod table;

use std::borrow::Cow;

use crate::value::Text;

macro_rules! charsets {
    ($($name:ident)*) => {
        /// The characters that a text may have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Charset {
            /// No characters: bytes.
            Binary,
            Ascii,
            $($name,)*
            /// Windows-1252, whose holes are control characters.
            Latin1,
            // Sets of several bytes for a character, which `multibyte.bin` describes.
            Gb2312,
            Gbk,
            Big5,
            Sjis,
            Cp932,
            Ujis,
            Eucjpms,
            Euckr,
            Gb18030,
            // Unicode in units of two and four bytes, the high byte first; the second without what takes two units.
            Utf16,
            Ucs2,
            Utf32,
            /// The low byte first.
            Utf16Le,
            /// The Basic Multilingual Plane: what UTF-8 writes in up to three bytes.
            Utf8Bmp,
            Utf8,
        }

        impl Charset {
            pub const ALL: &[Charset] = &[
                Charset::Binary, Charset::Ascii, $(Charset::$name,)* Charset::Latin1, Charset::Gb2312, Charset::Gbk,
                Charset::Big5, Charset::Sjis, Charset::Cp932, Charset::Ujis, Charset::Eucjpms, Charset::Euckr,
                Charset::Gb18030, Charset::Utf16, Charset::Ucs2, Charset::Utf32, Charset::Utf16Le, Charset::Utf8Bmp,
                Charset::Utf8,
            ];
        }
    };
}

// The sets of one byte for each character that `charsets.bin` describes.
charsets! {
    Dec8 Cp850 Hp8 Koi8r Latin2 Hebrew Koi8u Greek Cp1250 Latin5 Armscii8 Cp866 Keybcs2 Macce Macroman Cp852 Latin7 Cp1251 Cp1256 Cp1257 Geostd8 Swe7
}

/// How characters become weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// The bytes of UTF-8, which are in the order of the code points.
    Bytes,
    /// One weight for each character: the letter in upper case without its accent.
    General,
    /// The collation's own table in `charsets.bin`.
    Packed,
    /// The bytes of the character set, but where the collation's table in `multibyte.bin` has other weights.
    MultiByte,
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
    AsciiGeneralCi 11 Ascii General true;
    AsciiBin 65 Ascii Bytes true;
    Latin1Bin 47 Latin1 Bytes true;
    Big5ChineseCi 1 Big5 MultiByte true;
    Big5Bin 84 Big5 MultiByte true;
    UjisJapaneseCi 12 Ujis MultiByte true;
    UjisBin 91 Ujis MultiByte true;
    SjisJapaneseCi 13 Sjis MultiByte true;
    SjisBin 88 Sjis MultiByte true;
    EuckrKoreanCi 19 Euckr MultiByte true;
    EuckrBin 85 Euckr MultiByte true;
    Gb2312ChineseCi 24 Gb2312 MultiByte true;
    Gb2312Bin 86 Gb2312 MultiByte true;
    GbkChineseCi 28 Gbk MultiByte true;
    GbkBin 87 Gbk MultiByte true;
    Cp932JapaneseCi 95 Cp932 MultiByte true;
    Cp932Bin 96 Cp932 MultiByte true;
    EucjpmsJapaneseCi 97 Eucjpms MultiByte true;
    EucjpmsBin 98 Eucjpms MultiByte true;
    Gb18030ChineseCi 248 Gb18030 MultiByte true;
    Gb18030Bin 249 Gb18030 MultiByte true;
    Gb18030Uca520Ci 250 Gb18030 Uca520 true;
    Ucs2GeneralCi 35 Ucs2 General true;
    Ucs2Bin 90 Ucs2 Bytes true;
    Ucs2Uca400Ci 128 Ucs2 Uca400 true;
    Ucs2Uca520Ci 150 Ucs2 Uca520 true;
    Utf16GeneralCi 54 Utf16 General true;
    Utf16Bin 55 Utf16 Bytes true;
    Utf16Uca400Ci 101 Utf16 Uca400 true;
    Utf16Uca520Ci 123 Utf16 Uca520 true;
    Utf16LeGeneralCi 56 Utf16Le General true;
    Utf16LeBin 62 Utf16Le Bytes true;
    Utf32GeneralCi 60 Utf32 General true;
    Utf32Bin 61 Utf32 Bytes true;
    Utf32Uca400Ci 160 Utf32 Uca400 true;
    Utf32Uca520Ci 182 Utf32 Uca520 true;
] [
    Dec8SwedishCi 3 Dec8;
    Dec8Bin 69 Dec8;
    Cp850GeneralCi 4 Cp850;
    Cp850Bin 80 Cp850;
    Hp8EnglishCi 6 Hp8;
    Hp8Bin 72 Hp8;
    Koi8rGeneralCi 7 Koi8r;
    Koi8rBin 74 Koi8r;
    Latin1SwedishCi 8 Latin1;
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
    Swe7SwedishCi 10 Swe7;
    Swe7Bin 82 Swe7;
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
            Charset::Utf8 | Charset::Utf16 | Charset::Utf16Le | Charset::Utf32 | Charset::Gb18030 => 4,
            Charset::Utf8Bmp | Charset::Ujis | Charset::Eucjpms => 3,
            Charset::Ucs2 => 2,
            charset if charset.is_multi_byte() => 2,
            _ => 1,
        }
    }

    /// The fewest bytes that a character takes in the set's own encoding.
    pub fn min_bytes(self) -> usize {
        match self {
            Charset::Utf32 => 4,
            Charset::Utf16 | Charset::Utf16Le | Charset::Ucs2 => 2,
            _ => 1,
        }
    }

    /// True for the sets with one byte for each character, beyond ASCII.
    pub fn is_single_byte(self) -> bool {
        self > Charset::Ascii && self <= Charset::Latin1
    }

    /// True for the sets of `multibyte.bin`.
    fn is_multi_byte(self) -> bool {
        self >= Charset::Gb2312 && self <= Charset::Gb18030
    }

    /// True for the sets whose own encoding is not a part of UTF-8.
    pub fn has_own_encoding(self) -> bool {
        self > Charset::Ascii && self < Charset::Utf8Bmp
    }

    /// True where ASCII characters are their own bytes.
    pub fn contains_ascii(self) -> bool {
        self.min_bytes() == 1 && self != Charset::Swe7
    }

    /// True for Unicode in any of its encodings.
    pub fn is_unicode(self) -> bool {
        self >= Charset::Utf16
    }

    /// True for a character of the set.
    pub fn holds(self, c: char) -> bool {
        match self {
            Charset::Binary | Charset::Utf8 | Charset::Utf16 | Charset::Utf16Le | Charset::Utf32 | Charset::Gb18030 => {
                true
            }
            Charset::Ascii => c.is_ascii(),
            Charset::Latin1 => latin1_byte(c).is_some(),
            Charset::Utf8Bmp | Charset::Ucs2 => u32::from(c) < 0x1_0000,
            own if own.is_multi_byte() => multibyte::of(own).code(c).is_some(),
            Charset::Swe7 => bytes::of(self).byte(c).is_some(),
            own => c.is_ascii() || bytes::of(own).byte(c).is_some(),
        }
    }

    /// Returns the text in the set's own encoding; a character that the set lacks becomes a question mark.
    pub fn encode(self, text: &str) -> Cow<'_, [u8]> {
        if !self.has_own_encoding() || (self.contains_ascii() && text.is_ascii()) {
            return Cow::Borrowed(text.as_bytes());
        }
        let letters = text.chars();
        Cow::Owned(match self {
            Charset::Latin1 => letters.map(|letter| latin1_byte(letter).unwrap_or(b'?')).collect(),
            Charset::Utf16 => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Charset::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Charset::Ucs2 => letters
                .flat_map(|letter| u16::try_from(u32::from(letter)).unwrap_or(b'?'.into()).to_be_bytes())
                .collect(),
            Charset::Utf32 => letters.flat_map(|letter| u32::from(letter).to_be_bytes()).collect(),
            own if own.is_multi_byte() => {
                let set = multibyte::of(own);
                let mut out = Vec::with_capacity(text.len());
                for letter in letters {
                    let (code, length) = set.code(letter).unwrap_or(([b'?', 0, 0, 0], 1));
                    out.extend_from_slice(&code[..length]);
                }
                out
            }
            own => {
                let map = bytes::of(own);
                letters.map(|letter| map.byte(letter).unwrap_or(b'?')).collect()
            }
        })
    }

    /// Returns the length of the character that begins bytes in the set's own encoding, at least 1 while there are any.
    pub fn char_length(self, text: &[u8]) -> usize {
        match self {
            own if own.is_multi_byte() => multibyte::length(own, text),
            Charset::Utf16 if matches!(text, [0xD8..=0xDB, _, 0xDC..=0xDF, _, ..]) => 4,
            Charset::Utf16Le if matches!(text, [_, 0xD8..=0xDB, _, 0xDC..=0xDF, ..]) => 4,
            own => own.min_bytes().min(text.len()),
        }
    }

    /// Returns the character of a whole character's bytes.
    fn decode_char(self, code: &[u8]) -> Option<char> {
        match (self, code) {
            (Charset::Latin1, [byte]) => Some(latin1_char(*byte)),
            (own, _) if own.is_multi_byte() => multibyte::of(own).char(code),
            (Charset::Utf32, _) => char::from_u32(u32::from_be_bytes(code.try_into().ok()?)),
            (Charset::Utf16 | Charset::Ucs2 | Charset::Utf16Le, _) => {
                let of = if self == Charset::Utf16Le { u16::from_le_bytes } else { u16::from_be_bytes };
                char::decode_utf16(code.as_chunks::<2>().0.iter().map(|unit| of(*unit)))
                    .next()?
                    .ok()
                    .filter(|_| code.len() > 1)
            }
            (own, [byte]) => bytes::of(own).char(*byte),
            _ => None,
        }
    }

    /// Decodes bytes in the set's own encoding. Gives the place of the first that are no character of it.
    pub fn try_decode(self, text: &[u8]) -> Result<String, usize> {
        let mut out = String::with_capacity(text.len());
        self.decode_each(text, |at, c| c.map(|c| out.push(c)).ok_or(at))?;
        Ok(out)
    }

    fn decode_each(
        self,
        text: &[u8],
        mut take: impl FnMut(usize, Option<char>) -> Result<(), usize>,
    ) -> Result<(), usize> {
        let mut at = 0;
        while at < text.len() {
            let length = self.char_length(&text[at..]);
            take(at, self.decode_char(&text[at..at + length]))?;
            at += length;
        }
        Ok(())
    }

    /// Returns the text that bytes in the set's own encoding are. Bytes without a character become a question mark.
    pub fn decode_bytes(self, text: &[u8]) -> String {
        let mut out = String::with_capacity(text.len());
        let done = self.decode_each(text, |_, c| {
            out.push(c.unwrap_or('?'));
            Ok(())
        });
        debug_assert!(done.is_ok());
        out
    }

    /// Returns the text with a question mark for each character that the set lacks.
    pub fn narrowed(self, text: Text) -> Text {
        if (self.contains_ascii() && text.is_ascii()) || text.chars().all(|letter| self.holds(letter)) {
            return text;
        }
        text.chars().map(|letter| if self.holds(letter) { letter } else { '?' }).collect::<String>().into()
    }
}

#[cfg(test)]
mod tests;
