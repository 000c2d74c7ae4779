//! `charsets.bin`: the character sets of one byte for each character, and the weights of their collations.
//!
//! A list of tables, each behind its name (a length and ASCII) and the length of its bytes. A character set's has the code point of each of its 256 bytes, 0xFFFD
//! for none; that of a collation is unpacked by `table`. Tables are named as the variants of `Charset` and `Collation` are. `scripts/charsets.py` makes the file
//! from the tables of a MySQL server.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use super::Charset;

const NONE: char = '\u{FFFD}';

/// A character set: from bytes to characters, and back.
pub struct CodePage {
    chars: [char; 256],
    bytes: HashMap<char, u8>,
}

/// The tables of a container, by name.
pub type Tables = HashMap<&'static str, &'static [u8]>;

static PACKED: LazyLock<Tables> = LazyLock::new(|| tables(include_bytes!("charsets.bin")));

/// By character set, unpacked at first use.
static SETS: [OnceLock<CodePage>; Charset::ALL.len()] = [const { OnceLock::new() }; Charset::ALL.len()];

/// Returns the packed table of that name. Panics if there is none.
pub fn packed(name: &str) -> &'static [u8] {
    PACKED[name]
}

/// Returns the map of a character set. Panics if it has none in the file: `Charset::Latin1` and the sets that are not single-byte.
pub fn of(charset: Charset) -> &'static CodePage {
    SETS[charset as usize].get_or_init(|| CodePage::unpack(packed(&format!("{charset:?}"))))
}

/// Reads a container. Panics if it is not whole.
pub fn tables(mut rest: &'static [u8]) -> Tables {
    let mut tables = HashMap::new();
    while let [length, after @ ..] = rest {
        let (name, after) = after.split_at(usize::from(*length));
        let (size, after) = after.split_first_chunk().expect("the tables are whole");
        let (table, after) = after.split_at(u32::from_le_bytes(*size) as usize);
        tables.insert(std::str::from_utf8(name).expect("names are ASCII"), table);
        rest = after;
    }
    tables
}

/// Reads a number in groups of seven bits, the lowest first.
pub fn varint(bytes: &mut std::slice::Iter<'_, u8>) -> u32 {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.next().expect("the tables are whole");
        number |= u32::from(byte & 127) << shift;
        if byte < 128 {
            break;
        }
    }
    number
}

/// Reads a number with a sign, which is in its lowest bit.
pub fn zigzag(bytes: &mut std::slice::Iter<'_, u8>) -> i32 {
    let number = varint(bytes);
    (number >> 1) as i32 ^ -((number & 1) as i32)
}

impl CodePage {
    fn unpack(table: &[u8]) -> CodePage {
        let codes = table.as_chunks::<2>().0;
        let char_of = |byte: usize| char::from_u32(u32::from(u16::from_le_bytes(codes[byte]))).unwrap_or(NONE);
        let chars = std::array::from_fn(char_of);
        // Of two bytes with the same character, the first is written.
        let bytes =
            (0..=255u8).rev().map(|byte| (chars[usize::from(byte)], byte)).filter(|(c, _)| *c != NONE).collect();
        CodePage { chars, bytes }
    }

    pub fn char(&self, byte: u8) -> Option<char> {
        Some(self.chars[usize::from(byte)]).filter(|c| *c != NONE)
    }

    pub fn byte(&self, c: char) -> Option<u8> {
        self.bytes.get(&c).copied()
    }
}
