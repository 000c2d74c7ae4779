//! `multibyte.bin`: the character sets of several bytes for a character, and the weights of their collations.
//!
//! A container of tables like `charsets.bin`, made by `scripts/charsets_multibyte.py` from a MySQL server. A character set's table lists the characters of its codes of two bytes as runs
//! (`Runs`), and behind them the codes to be written where a character has several and the first is not it. A code of three bytes (`8F a b` of the sets of
//! EUC) stands as the two bytes `a`, `b` without the high bit of `b`, which no code of two bytes has. The tables of some sets are told as differences to
//! those of others. gb18030's codes of four bytes follow from a rule.
//!
//! A collation's table lists the weights that are not the bytes of the character. A weight is one or two units of 16 bits: a byte alone is the high half of a unit, so that units compare as the bytes do.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use super::bytes::{self, Tables};
use super::{Charset, Collation};

static PACKED: LazyLock<Tables> = LazyLock::new(|| bytes::tables(include_bytes!("multibyte.bin")));

/// By character set, unpacked at first use.
static SETS: [OnceLock<MultiByteSet>; Charset::ALL.len()] = [const { OnceLock::new() }; Charset::ALL.len()];

/// The number of codes of two bytes.
const CODES: usize = 1 << 16;
/// The numbers of gb18030's codes of four bytes begin with this plane's first character behind the Basic Multilingual Plane.
const GB18030_BEYOND: u32 = 189_000;
/// The character of two bytes whose code of four bytes stands for another one.
const GB18030_MOVED: (u16, char) = (0x1E3F, '\u{E7C7}');

/// A character set of several bytes for a character: from codes to characters, and back. 0 where there is none.
pub struct MultiByteSet {
    chars: Box<[u16]>,
    codes: Box<[u16]>,
    /// gb18030's characters of four bytes, in the order of their codes.
    four: Vec<u16>,
}

/// A character's bytes.
pub type Encoded = ([u8; 4], usize);

/// Returns the map of a character set. Panics if it has none in the file.
pub fn of(charset: Charset) -> &'static MultiByteSet {
    SETS[charset as usize].get_or_init(|| MultiByteSet::unpack(charset))
}

/// Returns the number of bytes of the character that begins the text: 1 for a byte that begins none of several bytes.
pub fn length(charset: Charset, text: &[u8]) -> usize {
    let [first, rest @ ..] = text else { return 0 };
    let second = rest.first().copied().unwrap_or(0);
    let is_gbk = matches!(first, 0x81..=0xFE) && matches!(second, 0x40..=0x7E | 0x80..=0xFE);
    let is_euc = matches!(first, 0xA1..=0xFE) && matches!(second, 0xA1..=0xFE);
    let is_double = match charset {
        Charset::Gbk => is_gbk,
        Charset::Gb18030 => match rest {
            [0x30..=0x39, 0x81..=0xFE, 0x30..=0x39, ..] if matches!(first, 0x81..=0xFE) => return 4,
            _ => is_gbk,
        },
        Charset::Gb2312 => is_euc && *first <= 0xF7,
        Charset::Big5 => matches!(first, 0xA1..=0xF9) && matches!(second, 0x40..=0x7E | 0xA1..=0xFE),
        Charset::Sjis | Charset::Cp932 => {
            matches!(first, 0x81..=0x9F | 0xE0..=0xFC) && matches!(second, 0x40..=0x7E | 0x80..=0xFC)
        }
        Charset::Ujis | Charset::Eucjpms => match (first, rest) {
            (0x8F, [0xA1..=0xFE, 0xA1..=0xFE, ..]) => return 3,
            (0x8E, _) => matches!(second, 0xA0..=0xDF),
            _ => is_euc,
        },
        Charset::Euckr => matches!(first, 0x81..=0xFE) && matches!(second, 0x41..=0x5A | 0x61..=0x7A | 0x81..=0xFE),
        _ => false,
    };
    if is_double { 2 } else { 1 }
}

impl MultiByteSet {
    fn unpack(charset: Charset) -> MultiByteSet {
        let base = match charset {
            Charset::Gb2312 | Charset::Gb18030 => Some(Charset::Gbk),
            Charset::Cp932 => Some(Charset::Sjis),
            Charset::Eucjpms => Some(Charset::Ujis),
            _ => None,
        };
        let base = base.map(of);
        let predicted = |code: u32| base.map_or(0, |set| set.chars[code as usize]);
        let zeros = || vec![0; CODES].into_boxed_slice();
        let mut set = MultiByteSet { chars: zeros(), codes: zeros(), four: Vec::new() };
        let mut bytes = PACKED[&format!("{charset:?}")[..]].iter();
        let mut listed = Vec::new();
        read_runs(&mut bytes, predicted, |code, c| listed.push((code as u16, c as u16)));
        // Of several codes of a character, the first is written.
        for (code, c) in listed.into_iter().rev() {
            set.chars[usize::from(code)] = c;
            set.codes[usize::from(c)] = code;
        }
        while bytes.len() > 0 {
            let code = bytes::varint(&mut bytes) as u16;
            set.codes[usize::from(set.chars[usize::from(code)])] = code;
        }
        // Half-wide Katakana has codes of one byte.
        if matches!(charset, Charset::Sjis | Charset::Cp932) {
            for byte in 0xA1..=0xDFu16 {
                set.codes[usize::from(0xFF61 + (byte - 0xA1))] = byte;
            }
        }
        if charset == Charset::Gb18030 {
            let is_four = |c: &u16| {
                let has_two = set.codes[usize::from(*c)] != 0 && *c != GB18030_MOVED.0;
                !matches!(c, 0..0x80 | 0xD800..=0xDFFF) && !has_two && u32::from(*c) != u32::from(GB18030_MOVED.1)
            };
            set.four = (0..=u16::MAX).filter(is_four).collect();
        }
        set
    }

    /// Returns the character of a code, a whole character's bytes.
    pub fn char(&self, code: &[u8]) -> Option<char> {
        let number = match *code {
            [byte @ ..0x80] => return Some(char::from(byte)),
            // Only the sets with half-wide Katakana have a code of one byte behind ASCII.
            [byte @ 0xA1..=0xDF] if self.codes[0xFF61] == 0xA1 => 0xFF61 + u32::from(byte - 0xA1),
            [a, b] => self.chars[usize::from(u16::from_be_bytes([a, b]))].into(),
            [_, a, b] => self.chars[usize::from(u16::from_be_bytes([a, b & 0x7F]))].into(),
            [a, b, c, d] => {
                let high = (u32::from(a) - 0x81) * 10 + u32::from(b) - 0x30;
                let linear = high * 1260 + (u32::from(c) - 0x81) * 10 + u32::from(d) - 0x30;
                match self.four.get(linear as usize) {
                    Some(moved) if *moved == GB18030_MOVED.0 => GB18030_MOVED.1.into(),
                    Some(c) => (*c).into(),
                    None => linear.checked_sub(GB18030_BEYOND)? + 0x1_0000,
                }
            }
            _ => 0,
        };
        char::from_u32(number).filter(|c| *c != '\0')
    }

    /// Returns the number of a character among gb18030's codes of four bytes.
    pub fn linear(&self, c: char) -> Option<u32> {
        let place = match u16::try_from(u32::from(c)) {
            Err(_) => return Some(u32::from(c) - 0x1_0000 + GB18030_BEYOND),
            Ok(_) if c == GB18030_MOVED.1 => self.four.binary_search(&GB18030_MOVED.0),
            Ok(code) if code == GB18030_MOVED.0 => return None,
            Ok(code) => self.four.binary_search(&code),
        };
        place.ok().map(|place| place as u32)
    }

    /// Returns the bytes of a character.
    pub fn code(&self, c: char) -> Option<Encoded> {
        if c.is_ascii() {
            return Some(([c as u8, 0, 0, 0], 1));
        }
        let code = u16::try_from(u32::from(c)).map_or(0, |c| self.codes[usize::from(c)]);
        let [a, b] = code.to_be_bytes();
        Some(match code {
            0 if self.four.is_empty() => return None,
            0 => {
                let linear = self.linear(c)?;
                let digit = |divisor: u32, radix: u32, base: u32| ((linear / divisor) % radix + base) as u8;
                ([digit(12600, 126, 0x81), digit(1260, 10, 0x30), digit(10, 126, 0x81), digit(1, 10, 0x30)], 4)
            }
            1..0x100 => ([b, 0, 0, 0], 1),
            _ if a >= 0xA1 && (0x21..0x7F).contains(&b) && self.is_euc() => ([0x8F, a, b | 0x80, 0], 3),
            _ => ([a, b, 0, 0], 2),
        })
    }

    /// True for the sets with codes of three bytes: those with half-wide Katakana of two bytes.
    fn is_euc(&self) -> bool {
        self.codes[0xFF61] == 0x8EA1
    }

    /// Calls `give` with each code point that has a code of up to three bytes, and the code.
    fn each(&self, mut give: impl FnMut(u32, Encoded)) {
        let known = (0..CODES as u32).filter(|c| *c < 0x80 || self.codes[*c as usize] != 0);
        for c in known.filter_map(char::from_u32) {
            if let Some(code) = self.code(c) {
                give(c.into(), code);
            }
        }
    }
}

/// Calls `give` with the weight of each character of the collation's set: the units, and how many there are. gb18030's characters of four bytes are given
/// where the table has them.
pub fn weights(collation: Collation, mut give: impl FnMut(u32, &[u16])) {
    let set = of(collation.charset());
    let mut listed: HashMap<u32, u32> = HashMap::new();
    if let Some(table) = PACKED.get(&format!("{collation:?}")[..]) {
        read_runs(&mut table.iter(), |_| 0, |key, weight| listed.extend([(key, weight)]));
    }
    let units = |weight: u32| ([(weight >> 16) as u16, weight as u16], if weight > 0xFFFF { 0 } else { 1 });
    let by_character = collation.charset() == Charset::Gb18030;
    set.each(|c, (code, length)| {
        let [first, second, third, _] = code;
        let key = match length {
            1 => u32::from(first),
            2 => u32::from(u16::from_be_bytes([first, second])),
            _ => u32::from(u16::from_be_bytes([second, third & 0x7F])),
        };
        match listed.remove(if by_character { &c } else { &key }) {
            Some(weight) => {
                let (pair, from) = units(weight);
                give(c, &pair[from..]);
            }
            None => {
                let own = [u16::from_be_bytes([first, second]), u16::from_be_bytes([third, 0])];
                give(c, &own[..length.div_ceil(2)]);
            }
        }
    });
    for (c, weight) in listed {
        let (pair, from) = units(weight);
        give(c, &pair[from..]);
    }
}

/// Returns the units of a character that `weights` does not give: of gb18030's codes of four bytes, and of characters that the set lacks, which sort after all that it has.
pub fn weight_by_rule(collation: Collation, c: char) -> [u16; 2] {
    let set = of(collation.charset());
    let weight = match (set.linear(c), set.code(c)) {
        (Some(linear), Some(_)) if collation == Collation::Gb18030ChineseCi => 0xFF00_0000 + linear,
        (Some(_), Some((bytes, 4))) => u32::from_be_bytes(bytes),
        _ => 0xFFC0_0000 + u32::from(c),
    };
    [(weight >> 16) as u16, weight as u16]
}

/// Reads runs, and calls `give` with each key and its value. They are: their number; of each the keys left out before it, its length, and the values, each as its distance from
/// the predicted one, or else (0) from the one after the value before.
fn read_runs(bytes: &mut std::slice::Iter<'_, u8>, predicted: impl Fn(u32) -> u16, mut give: impl FnMut(u32, u32)) {
    let (mut key, mut last) = (0, 0u32);
    for _ in 0..bytes::varint(bytes) {
        key += bytes::varint(bytes);
        for _ in 0..bytes::varint(bytes) {
            let expected = match predicted(key) {
                0 => last.wrapping_add(1),
                value => value.into(),
            };
            last = expected.wrapping_add_signed(bytes::zigzag(bytes));
            give(key, last);
            key += 1;
        }
    }
}
